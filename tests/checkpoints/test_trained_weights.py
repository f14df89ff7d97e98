"""Compare a third-party model that translates well.

CTranslate2's Arabic transliterator (MIT licence) is copied into this package's layers by name, and
CTranslate2's answers are the reference. The repository does not contain the files; without them the
test is skipped.
"""

import struct

import numpy as np
import pytest
import tensorflow as tf
from support.beside import beside_the_checkout
from support.marian_checkpoints import put

from tfformer.checkpoints.weight_names import OUTPUT, OUTPUT_BIAS, SOURCE, TARGET, Slot, variables
from tfformer.model.transformer import Transformer

AREN = beside_the_checkout("oracles", "aren", "v2", "aren-transliteration")
pytestmark = pytest.mark.skipif(AREN is None, reason="the model is not beside this checkout")
LAYERS, WIDTH, HEADS = 6, 32, 8
BLOCKS = {"self_attention": "self_attention", "cross_attention": "attention"}


def read_model(path):
    """Read CTranslate2's model.bin, version 2: names and float32 arrays."""
    content, place, found = path.read_bytes(), 0, {}

    def take(form):
        nonlocal place
        values = struct.unpack_from(f"<{form}", content, place)
        place += struct.calcsize(f"<{form}")
        return values

    def text():
        nonlocal place
        (length,) = take("H")
        place += length
        return content[place - length : place].rstrip(b"\0").decode()

    assert take("I") == (2,)
    text()
    take("I")
    for _ in range(take("I")[0]):
        name = text()
        (rank,) = take("B")
        shape = take("I" * rank)
        item, count = take("BI")
        dtype = {4: np.float32, 2: np.int16, 1: np.int8}[item]
        found[name] = np.frombuffer(content[place : place + count * item], dtype).reshape(shape)
        place += count * item
    return found


def places(stored):
    """Return CTranslate2's tensors by this package's names.

    CTranslate2 joins query, key and value.
    """
    found = {
        SOURCE: next(
            t
            for name, t in stored.items()
            if name.startswith("encoder/embeddings") and name.endswith("weight")
        ),
        TARGET: stored["decoder/embeddings/weight"],
        OUTPUT: stored["decoder/projection/weight"],
        OUTPUT_BIAS: stored["decoder/projection/bias"],
    }
    for side in ("encoder", "decoder"):
        for kind, name in (("scale", "gamma"), ("bias", "beta")):
            found[Slot(side, None, "final", "norm", kind)] = stored[f"{side}/layer_norm/{name}"]
        for layer in range(LAYERS):
            begin = f"{side}/layer_{layer}"
            blocks = ["self_attention", "cross_attention"][: 1 + (side == "decoder")]
            for block in blocks:
                parts = joined(stored, f"{begin}/{BLOCKS[block]}", block == "self_attention")
                for (part, kind), tensor in parts.items():
                    found[Slot(side, layer, block, part, kind)] = tensor
            for number, part in enumerate(("inner", "outer")):
                linear = f"{begin}/ffn/linear_{number}"
                found[Slot(side, layer, "feed_forward", part, "kernel")] = stored[
                    f"{linear}/weight"
                ].T
                found[Slot(side, layer, "feed_forward", part, "bias")] = stored[f"{linear}/bias"]
            for block in (*blocks, "feed_forward"):
                norm = f"{begin}/{BLOCKS.get(block, 'ffn')}/layer_norm"
                found[Slot(side, layer, block, "norm", "scale")] = stored[f"{norm}/gamma"]
                found[Slot(side, layer, block, "norm", "bias")] = stored[f"{norm}/beta"]
    return found


def joined(stored, name, is_self):
    groups = [("query", "key", "value"), ("output",)]
    if not is_self:
        groups = [("query",), ("key", "value"), ("output",)]
    found = {}
    for number, parts in enumerate(groups):
        kernels = np.split(stored[f"{name}/linear_{number}/weight"], len(parts))
        biases = np.split(stored[f"{name}/linear_{number}/bias"], len(parts))
        for part, kernel, bias in zip(parts, kernels, biases, strict=True):
            found[part, "kernel"], found[part, "bias"] = kernel.T, bias
    return found


@pytest.mark.parametrize(("source", "target"), [("آتشيسون", "achison"), ("آتزمون", "atzmon")])
def test_real_weights_give_the_log_probabilities_of_ctranslate2(source, target):
    ctranslate2 = pytest.importorskip("ctranslate2")
    oracle = ctranslate2.Translator(str(AREN), compute_type="float32", intra_threads=1)
    wanted = oracle.score_batch([list(source)], [list(target)])[0].log_probs
    tensors = places(read_model(AREN / "model.bin"))
    names = [
        (AREN / f"{side}_vocabulary.txt").read_text(encoding="utf-8").split("\n")
        for side in ("source", "target")
    ]
    model = Transformer(
        *(len(tensors[SOURCE]), len(tensors[TARGET])),
        num_layers=LAYERS,
        d_model=WIDTH,
        num_heads=HEADS,
        d_ff=tensors[Slot("encoder", 0, "feed_forward", "inner", "bias")].size,
        dropout=0.0,
        tie_embeddings="none",
        norm="pre",
        dialect={
            "output_bias": True,
            "epsilon": 1e-5,
            "position_layout": "halves",
            "position_timescale": "t2t",
            "position_offset": 1,
        },
    )
    put(model, tensors)
    assert len(list(variables(model))) == len(model.weights)
    source_ids = [[names[0].index(letter) for letter in source]]
    target_ids = [names[1].index(letter) for letter in [*target, "</s>"]]
    begun = [[names[1].index("<s>"), *target_ids[:-1]]]
    memory, mask = model.encode(tf.constant(source_ids))
    logits = model.decode(tf.constant(begun), memory, mask)[0]
    found = tf.nn.log_softmax(logits).numpy()[np.arange(len(target_ids)), target_ids]
    np.testing.assert_allclose(found, wanted, atol=1e-4)
