"""The parts of a training step's time.

They are compared with the time of its matrix products alone. The measurement trains real batches of
a corpus under TensorFlow's profiler, adds up the time of every operation, and multiplies two large
matrices to find this machine's speed: no step can be faster than its products at that speed.
"""

import argparse
import collections
import glob
import statistics
import tempfile
import time
from typing import TYPE_CHECKING

from benchmarks.train import add_work, real_batches

if TYPE_CHECKING:
    import keras

    from tfformer import Transformer

KINDS = {  # of operations, by a part of their names; the first that fits
    "matrix products": ("MatMul",),
    "softmax": ("Softmax",),
    "random numbers": ("Random",),
    "conversions": ("Cast",),
    "sums, means, maxima": ("Sum", "Mean", "Max", "BiasAddGrad", "SquaredDifference"),
    "transpositions, copies": (
        *("Transpose", "Pack", "Unpack", "Concat"),
        *("Tile", "BroadcastTo", "Gather", "OneHot"),
    ),
    "element by element": ("",),
}
NOT_OPERATIONS = ("Executor", "KernelAndDevice", "EagerLocalExecute")
ROUNDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    add_work(parser)
    parser.add_argument("--optimizer", default="adam", help="adam or muon")
    parser.add_argument("--dtype", default="mixed_bfloat16", help="float32 or mixed_bfloat16")
    parser.add_argument(
        "--shards", type=int, default=1, help="parts of a batch, each learned by a thread"
    )


def measure(options: argparse.Namespace) -> dict:
    """Return the seconds of a step and of its products alone.

    Each kind of operation's share comes with them.
    """
    import tensorflow as tf

    if options.shards > 1:
        tf.config.threading.set_intra_op_parallelism_threads(1)

    from tfformer import SmoothedCrossEntropy, Transformer
    from tfformer.config import PRESETS, Config
    from tfformer.export.processor_speed import multiplications_per_second
    from tfformer.training.optimizer import new_optimizer

    shape = {"dropout": 0.3, "norm": "pre", "tie_embeddings": "all"} | PRESETS[options.preset]
    model = Transformer(options.vocab_size, options.vocab_size, dtype=options.dtype, **shape)
    rate = {"schedule": "inverse_sqrt", "learning_rate": 1e-3, "warmup_steps": 1}
    training = {"optimizer": options.optimizer, "dtype": options.dtype} | rate
    batches = real_batches(options)
    optimizer = new_optimizer(Config.from_dict({"training": training}), epoch_steps=len(batches))
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=False)
    model.shards = options.shards
    for _ in range(2):
        train(model, batches)
    seconds = statistics.median(train(model, batches) for _ in range(ROUNDS)) / len(batches)
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        train(model, batches)
        tf.profiler.experimental.stop()
        milliseconds = {
            kind: spent / len(batches) for kind, spent in by_kind(folder, KINDS).items()
        }
    whole = sum(milliseconds.values())
    for kind, spent in sorted(milliseconds.items(), key=lambda item: -item[1]):
        print(f"{kind:24} {spent:7.1f} ms of threads' time a step, {spent / whole:6.1%}")
    multiplications = products(model, batches) / len(batches)
    floor = multiplications / multiplications_per_second(model.compute_dtype)
    print(f"a step: {seconds:.3f} s; its products at the speed of large matrices: {floor:.3f} s")
    return {
        "seconds": round(seconds, 4),
        "floor_seconds": round(floor, 4),
        "shares": {kind: round(spent / whole, 3) for kind, spent in milliseconds.items()},
    }


def train(model: "Transformer", batches: list) -> float:
    """Return the seconds for one update by each batch."""
    start = time.perf_counter()
    for batch in batches:
        model.train_on_batch(*batch)
    return time.perf_counter() - start


def by_kind(folder: str, kinds: dict[str, tuple[str, ...]]) -> dict[str, float]:
    """Return the milliseconds of every kind of operation, over all threads.

    Args:
        folder: The folder that the profiler has written into.
        kinds: Kind -> parts of the names of its operations; the first that fits counts.
    """
    from tensorflow.tsl.profiler.protobuf import xplane_pb2

    [path] = glob.glob(f"{folder}/**/*.xplane.pb", recursive=True)
    space = xplane_pb2.XSpace()
    with open(path, "rb") as stream:
        space.ParseFromString(stream.read())
    milliseconds = collections.Counter()
    for plane in space.planes:
        if "CPU" not in plane.name:
            continue
        for line in plane.lines:
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                place, colon, operation = name.rpartition(":")
                if colon and not place.startswith(NOT_OPERATIONS):
                    milliseconds[_kind(operation, kinds)] += event.duration_ps / 1e9
    return dict(milliseconds)


def _kind(operation: str, kinds: dict[str, tuple[str, ...]]) -> str:
    for kind, parts in kinds.items():
        if any(part in operation for part in parts):
            return kind
    raise ValueError(f"no kind of {list(kinds)} fits {operation!r}")


def products(model: "Transformer", batches: list) -> float:
    """Return the multiplications of forward and backward pass, each with its addition."""
    d_model = model.d_model
    widths = (layer.cross_attention.key_value.kernel.shape[1] for layer in model.decoder.layers)
    crossed = sum(widths) * d_model
    encoder = _matrix_elements(model.encoder)
    decoder = _matrix_elements(model.decoder)
    vocabulary = d_model * model.target_vocab_size
    total = 0
    for inputs, *_ in batches:
        rows, source = inputs["source"].shape
        target = inputs["target"].shape[1]
        total += rows * source * (encoder + crossed)
        total += rows * target * (decoder - crossed + vocabulary)
        total += len(model.encoder.layers) * 2 * rows * source * source * d_model
        total += len(model.decoder.layers) * 2 * rows * target * (target + source) * d_model
    return 3 * total  # the backward pass multiplies for the inputs and for the weights


def _matrix_elements(stack: "keras.layers.Layer") -> int:
    matrices = (weight for weight in stack.weights if len(weight.shape) == 2)
    return sum(int(matrix.shape.num_elements()) for matrix in matrices)
