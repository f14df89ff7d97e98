"""Count the operations that launch a kernel on a GPU; no GPU is needed.

A GPU's launches bound a decoding step and, without XLA, a large part of a training step. TensorFlow
optimises and runs a narrow model with the layers of a preset on the CPU, and its list of kernels
says which operations a GPU computes on the GPU. The fusion of operations (remapping) is disabled,
because it differs between CPU and GPU. One operation may launch several kernels.
"""

import argparse
import functools
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorflow.core.framework.node_def_pb2 import NodeDef

VOCAB_SIZE = 5120  # long enough for the search's faster functions on logits, and whole blocks
LENGTHS = (6, 14)  # tokens of two translations; both fit into the first capacity of a cache
LISTED = 25
# They control the graph or return a tensor as it is; slices of whole rows share the rows' memory.
NO_KERNEL = re.compile(
    "Bitcast|Const|EnsureShape|Enter|Exit|ExpandDims|IdentityN?|LoopCond|Merge|NextIteration|NoOp|"
    "PreventGradient|ReadVariableOp|Reshape|Squeeze|StopGradient|StridedSlice|Switch|VarHandleOp|"
    "_Arg|_Recv|_Retval|_Send"
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="the number of layers and heads")
    parser.add_argument(
        "--work", nargs="+", default=["train", "decode"], choices=["train", "decode"]
    )


def measure(options: argparse.Namespace) -> dict:
    """Return the launches of a training step and of a decoding step, by dtype."""
    os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"  # its operations exist only on CPUs
    from tfformer.runtime.tensorflow import import_tensorflow

    import_tensorflow()
    from tfformer.config import PRESETS

    shape = PRESETS[options.preset]
    PRESETS["narrow"] = shape | {"d_model": 8 * shape["num_heads"], "d_ff": 64}
    counts = {}
    if "train" in options.work:
        for dtype in ("float32", "mixed_bfloat16"):
            counts[f"train {dtype}"] = _report(f"train {dtype}", _training_step(dtype))
    if "decode" in options.work:
        for dtype in ("float32", "bfloat16"):
            for name, operations in _decoding_steps(dtype).items():
                counts[f"{name} {dtype}"] = _report(f"{name} {dtype}", operations)
    return {"preset": options.preset, "launches": counts}


def _report(name: str, operations: Counter) -> int:
    """Print the most frequent operations, and return the number of all."""
    print(f"{name}: {operations.total():.0f} operations launch kernels")
    for operation, count in operations.most_common(LISTED):
        print(f"{count:8.0f} {operation}", flush=True)
    return round(operations.total())


def _training_step(dtype: str) -> Counter:
    """Count the operations of a step of Adam on packed rows."""
    import tensorflow as tf
    from tensorflow.python.eager import context

    from tfformer import SmoothedCrossEntropy, Transformer
    from tfformer.config import PRESETS, Config
    from tfformer.training.optimizer import new_optimizer

    shape = {"dropout": 0.1, "tie_embeddings": "all"} | PRESETS["narrow"]
    model = Transformer(VOCAB_SIZE, VOCAB_SIZE, dtype=dtype, **shape)
    optimizer = new_optimizer(Config.from_dict({"training": {"optimizer": "adam"}}), 100)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=False)
    optimizer.build(model.trainable_variables)
    ids = tf.ones((4, 6), tf.int32)
    spec = tf.TensorSpec((None, None), tf.int32)
    names = ("source", "target", "source_segments", "target_segments")
    signature = [(dict.fromkeys(names, spec), spec, tf.TensorSpec((None, None)))]
    step = tf.function(model.train_step, signature, autograph=False)
    tf.config.optimizer.set_experimental_options({"remapping": False})
    context.enable_run_metadata()
    step((dict.fromkeys(names, ids), ids, tf.ones((4, 6))))
    graphs = context.export_run_metadata().function_graphs
    context.disable_run_metadata()
    nodes = [node for graph in graphs for part in graph.partition_graphs for node in part.node]
    return _launches((node, 1) for node in nodes)


def _decoding_steps(dtype: str) -> dict[str, Counter]:
    """Count the operations of a step of an exported search, greedy and with four beams.

    The longer translation has more steps; all of its other operations are those of the shorter.
    """
    import tensorflow_text  # noqa: F401  its operations

    from benchmarks._random_models import random_sentences, random_translator
    from tfformer.export.saved_model import writer

    limits = {"max_length_factor": 1.0, "extra_length": 0}
    translator = random_translator("narrow", VOCAB_SIZE, max_length=max(LENGTHS), **limits)
    steps = {}
    with tempfile.TemporaryDirectory() as folder:
        writer.write(Path(folder, "export"), translator, dtype, with_text=True)
        for name, signature in (("greedy", "serving_default"), ("beams", "translate_beam")):
            shorter, longer = (
                _executions(f"{folder}/export", signature, random_sentences(VOCAB_SIZE, 3, length))
                for length in LENGTHS
            )
            each = 1 / (LENGTHS[1] - LENGTHS[0])
            times = {
                name: (node, each * (count - shorter[name][1]))
                for name, (node, count) in longer.items()
            }
            steps[name] = _launches(times.values())
    return steps


def _executions(
    folder: str, signature: str, sentences: list[str]
) -> dict[str, tuple["NodeDef", int]]:
    """Translate, and return each node of the optimised graph and how often it was executed."""
    from tensorflow.compat import v1
    from tensorflow.core.protobuf.rewriter_config_pb2 import RewriterConfig

    config = v1.ConfigProto()
    config.graph_options.rewrite_options.remapping = RewriterConfig.OFF
    with v1.Session(graph=v1.Graph(), config=config) as session:
        described = v1.saved_model.load(session, ["serve"], folder).signature_def[signature]
        fetched = [output.name for output in described.outputs.values()]
        fed = {described.inputs["text"].name: sentences}
        options = v1.RunOptions(trace_level=v1.RunOptions.FULL_TRACE, output_partition_graphs=True)
        record = v1.RunMetadata()
        session.run(fetched, fed, options, record)
    statistics = [node for device in record.step_stats.dev_stats for node in device.node_stats]
    times = Counter(node.node_name for node in statistics)
    nodes = [node for graph in record.partition_graphs for node in graph.node]
    return {node.name: (node, times[node.name]) for node in nodes}


def _launches(executions: Iterable[tuple["NodeDef", float]]) -> Counter:
    """Count the operations that launch kernels, by name and types."""
    from tensorflow import as_dtype

    counts: Counter[str] = Counter()
    for node, times in executions:
        if times and _has_kernel(node):
            types = [as_dtype(node.attr[name].type).name for name in ("SrcT", "DstT", "T", "dtype")
                     if node.attr[name].type]  # fmt: skip
            counts[" ".join([node.op, *types])] += times
    return counts


def _has_kernel(node: "NodeDef") -> bool:
    """Return whether a GPU computes the operation on the GPU."""
    # Of two tensors of equal shape, which is unknown here, the gradient is summed over no axes.
    is_empty_sum = any("BroadcastGradientArgs" in name for name in node.input)
    if NO_KERNEL.fullmatch(node.op) or is_empty_sum:
        return False
    outputs = _outputs(node.op)
    for kernel in _kernels(node.op):
        fits = kernel.device_type in ("GPU", "DEFAULT") and all(
            node.attr[rule.name].type in rule.allowed_values.list.type
            for rule in kernel.constraint
            if rule.HasField("allowed_values")
        )
        if fits:
            return not (outputs and outputs <= set(kernel.host_memory_arg))
    return False


@functools.cache
def _kernels(operation: str) -> list[Any]:
    from tensorflow.python.framework.kernels import get_registered_kernels_for_op

    return list(get_registered_kernels_for_op(operation).kernel)


@functools.cache
def _outputs(operation: str) -> set[str]:
    from tensorflow.python.framework import op_def_registry

    return {output.name for output in op_def_registry.get(operation).output_arg}
