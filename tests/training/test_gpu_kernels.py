"""Every operation of a training step, a search and an export has a GPU kernel.

TensorFlow lists its kernels on machines without a GPU, too.
"""

import functools
import itertools

import pytest
import tensorflow as tf
from support.nightly import sampled
from support.untrained_models import letters_tokenizer
from tensorflow.python.framework.kernels import get_registered_kernels_for_op

import tfformer
from tfformer.config import Config, DecodingConfig
from tfformer.export.saved_model.signatures import signatures_of
from tfformer.inference.graphs import translate_ids
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.model.simcut import SimCutCrossEntropy
from tfformer.training.optimizer import new_optimizer

SIZES = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 32}
OF_TEXT = {  # run once for a text, before and after the search
    "RaggedRange",
    "RaggedTensorToTensor",
    "SentencepieceDetokenizeOp",
    "SentencepieceOp",
    "Substr",
    "TFText>FastSentencepieceTokenize",
}


@functools.cache
def kernels_of(operation):
    return get_registered_kernels_for_op(operation).kernel


def nodes(function):
    """Return the operations of a concrete function and of all functions that it calls."""
    graph = function.graph.as_graph_def()
    yield from graph.node
    for called in graph.library.function:
        yield from called.node_def


def without_gpu_kernel(function):
    """Return the operations, with their types, that have only a CPU kernel."""
    missing = set()
    for node in nodes(function):
        kernels = kernels_of(node.op)
        fitting = [
            kernel
            for kernel in kernels
            if kernel.device_type in ("GPU", "DEFAULT")
            and all(
                node.attr[rule.name].type in rule.allowed_values.list.type
                for rule in kernel.constraint
                if rule.HasField("allowed_values")
            )
        ]
        if not fitting:
            types = sorted(
                {tf.as_dtype(attr.type).name for attr in node.attr.values() if attr.type}
            )
            missing.add(f"{node.op} {types}")
    return missing


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "packed", "optimizer"),
    sampled(
        itertools.product(["float32", "mixed_bfloat16"], [False, True], ["adam", "muon"]),
        by_day=[("mixed_bfloat16", True, "muon")],
    ),
)
def test_a_training_step_runs_on_a_gpu(dtype, packed, optimizer):
    model = tfformer.Transformer(50, 50, dtype=dtype, tie_embeddings="all", **SIZES)
    settings = {"optimizer": optimizer, "clip_norm": 1.0, "ema_momentum": 0.9, "dtype": dtype}
    updates = new_optimizer(Config.from_dict({"training": settings}), epoch_steps=10)
    model.compile(updates, SmoothedCrossEntropy(0.1), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    ids = tf.TensorSpec((None, None), tf.int32)
    weights = tf.TensorSpec((None, None), tf.float32)
    step = tf.function(model.train_step, autograph=False)
    names = ["source", "target", "source_segments", "target_segments"]
    inputs = dict.fromkeys(names if packed else names[:2], ids)
    traced = step.get_concrete_function((inputs, ids, weights))
    assert len(list(nodes(traced))) > 300
    assert without_gpu_kernel(traced) == set()


def test_the_loss_of_simcut_runs_on_a_gpu():
    labels = tf.TensorSpec((None, None), tf.int32)
    logits = tf.TensorSpec((2, None, None, 50), tf.bfloat16)

    @tf.function(input_signature=[labels, logits])
    def gradient(labels, logits):
        with tf.GradientTape() as tape:
            tape.watch(logits)
            loss = SimCutCrossEntropy(3.0, 0.1)(labels, logits)
        return tape.gradient(loss, logits)

    assert without_gpu_kernel(gradient.get_concrete_function()) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("beam_size", "dtype"),
    sampled(
        itertools.product([1, 3], ["float32", "bfloat16", "float16"]),
        by_day=[(3, "bfloat16")],
    ),
)
def test_a_search_runs_on_a_gpu(beam_size, dtype):
    model = tfformer.Transformer(50, 50, dtype=dtype, tie_embeddings="all", **SIZES)

    @tf.function(autograph=False)
    def search(source):
        return translate_ids(model, source, 9, DecodingConfig(beam_size=beam_size), model.logits)

    traced = search.get_concrete_function(tf.TensorSpec((None, None), tf.int32))
    assert without_gpu_kernel(traced) == set()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["translator", "generator"])
def test_an_export_runs_on_a_gpu(kind):
    """Strings, their pieces and the division into rows of ids remain on the CPU."""
    tokenizer = letters_tokenizer()
    size = tokenizer.vocab_size
    exported = (
        tfformer.Translator(tfformer.Transformer(size, size, **SIZES), tokenizer, beam_size=2)
        if kind == "translator"
        else tfformer.Generator(tfformer.LanguageModel(size, **SIZES), tokenizer)
    )
    signatures = signatures_of(exported, exported.model.logits)
    for function in signatures.over_ids.values():
        assert without_gpu_kernel(function.get_concrete_function()) == set()
    for function in signatures.over_text.values():
        missing = without_gpu_kernel(function.get_concrete_function())
        assert {name.split()[0] for name in missing if "'string'" not in name} <= OF_TEXT


def test_an_operation_on_strings_is_found():
    """The list above would therefore not miss such an operation."""
    length = tf.function(lambda text: tf.strings.length(text), autograph=False)
    traced = length.get_concrete_function(tf.TensorSpec((None,), tf.string))
    assert {name.split()[0] for name in without_gpu_kernel(traced)} == {"StringLength"}
