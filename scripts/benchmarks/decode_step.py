"""The parts of a decoding step's time, beside the floor that memory and arithmetic set.

The measurement decodes with the exported SavedModel under TensorFlow's profiler and adds up the
time of every operation, all threads together; the encoder and the projection of the memory are
spread over the steps. The floor is what the products alone would take: every weight is read once
a step at the bandwidth of a large product of one row, and multiplied at the speed of a large
product of many rows. Both are measured first.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.decode import (
    SOURCE_LENGTH,
    THREADS,
    TOKENS,
    load_saved_model,
    random_sentences,
    write_models,
)
from benchmarks.step import by_kind

KINDS = {  # of operations, by a part of their names; the first that fits
    "attention, softmax": ("BatchMatMul", "Softmax"),  # one softmax is that of the scores
    "products with weights": ("FusedMatMul",),
    "logits": ("MatMul",),
    "cache": ("TensorStridedSliceUpdate", "Pad"),
    "choice of tokens": ("TopK", "ArgMax", "Max", "Log", "Gather"),
    "transpositions, copies": ("Transpose", "Split", "Concat", "Pack", "Unpack", "Tile"),
    "element by element": ("Mul", "Add", "Sub", "Square", "Mean", "Rsqrt", "Select", "Sum"),
    "shapes, variables, text": ("",),
}
ROUNDS = 5
FLOAT_BYTES = 4


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32, 64])
    parser.add_argument("--beam-batches", type=int, nargs="*", default=[32])
    parser.add_argument("--threads", type=int, default=THREADS)


def measure(options: argparse.Namespace) -> dict:
    """Return the milliseconds of a step, of its parts and of its floor, by batch and beams."""
    import tensorflow as tf

    from tfformer.export.processor_speed import multiplications_per_second

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    speed = multiplications_per_second("float32")
    bandwidth = bytes_per_second()
    print(f"{bandwidth / 1e9:.1f} GB/s, {speed / 1e9:.0f} * 10^9 multiplications a second")
    work = [(batch, 1) for batch in options.batches] + [(b, 4) for b in options.beam_batches]
    found = {}
    with tempfile.TemporaryDirectory() as name:
        write_models(Path(name), options.preset, options.vocab_size)
        decode = load_saved_model(Path(name, "float32"))
        for batch, beams in work:
            sentences = random_sentences(options.vocab_size, batch)
            step = _step(lambda s=sentences, b=beams: decode(s, b))
            weights, products = numbers(options, batch, beams)
            floor = {
                "reading": 1e3 * weights * FLOAT_BYTES / bandwidth,
                "multiplying": 1e3 * products / speed,
            }
            _print(f"batch {batch}, beam {beams}", step, floor)
            found[f"batch {batch}, beam {beams}"] = step | {"floor": floor}
    return {"bytes_per_second": bandwidth, "multiplications_per_second": speed, "steps": found}


def _step(decode: Callable[[], object]) -> dict:
    """Return the milliseconds of a step, and those of its parts under the profiler."""
    import tensorflow as tf

    decode()
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        decode()
        seconds.append(time.perf_counter() - start)
    with tempfile.TemporaryDirectory() as folder:
        tf.profiler.experimental.start(folder)
        decode()
        tf.profiler.experimental.stop()
        parts = {kind: spent / TOKENS for kind, spent in by_kind(folder, KINDS).items()}
    return {"milliseconds": 1e3 * statistics.median(seconds) / TOKENS, "parts": parts}


def _print(setting: str, step: dict, floor: dict[str, float]) -> None:
    floors = ", ".join(f"{kind} {spent:.1f}" for kind, spent in floor.items())
    print(f"{setting}: {step['milliseconds']:.1f} ms a step; floor: {floors} ms")
    for kind, spent in sorted(step["parts"].items(), key=lambda item: -item[1]):
        print(f"    {kind:24} {spent:7.2f} ms of threads' time", flush=True)


def numbers(options: argparse.Namespace, batch: int, beams: int) -> tuple[int, int]:
    """Return the weights that a step reads and the multiplications that it makes.

    Without attention's products. The encoder's share of a step is in both.
    """
    from tfformer.config import PRESETS

    shape = PRESETS[options.preset]
    width, layers = shape["d_model"], shape["num_layers"]
    feed_forward = 2 * width * shape["d_ff"]
    encoder = layers * (4 * width**2 + feed_forward)
    memory = layers * 2 * width**2  # keys and values for the decoder
    decoder = layers * (6 * width**2 + feed_forward)
    logits = width * options.vocab_size
    once = encoder + memory
    weights = decoder + logits + once // TOKENS
    products = batch * beams * (decoder + logits) + batch * SOURCE_LENGTH * once // TOKENS
    return weights, products


def bytes_per_second() -> float:
    """Measure how fast the product of one row and a large matrix reads it, the best of ten."""
    import tensorflow as tf

    from tfformer.export.processor_speed import best_of_ten

    size = 8192
    row, matrix = tf.ones((1, size)), tf.Variable(tf.ones((size, size)))
    multiply = tf.function(lambda: tf.matmul(row, matrix))
    return size**2 * FLOAT_BYTES / best_of_ten(lambda: multiply().numpy())
