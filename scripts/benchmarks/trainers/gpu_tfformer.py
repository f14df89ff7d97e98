"""Measure a training step of tfformer on a GPU.

Arguments: PRESET DTYPE XLA|plain ROWS VOCABULARY LENGTH STEPS [profile]. With the last argument,
the kernels of the step are printed too.
"""

import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

START = time.perf_counter()

from tfformer.runtime.tensorflow import import_tensorflow  # noqa: E402

import_tensorflow()

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
from tensorflow.tsl.profiler.protobuf.xplane_pb2 import XSpace  # noqa: E402

from tfformer import SmoothedCrossEntropy, Transformer  # noqa: E402
from tfformer.config import PRESETS, Config  # noqa: E402
from tfformer.data.batches import Batches  # noqa: E402
from tfformer.data.encoding import EncodedText, IdRows  # noqa: E402
from tfformer.training.optimizer import new_optimizer  # noqa: E402

ROUNDS = 3
BATCHES = 50  # batches in the text
PROFILED_STEPS = 5
LISTED_KERNELS = 40


def main() -> None:
    """Train, and print the figures as a line of JSON."""
    preset, dtype, way = sys.argv[1:4]
    rows, vocab_size, length, steps = map(int, sys.argv[4:8])
    keras.utils.set_random_seed(1)
    shape: dict[str, Any] = {"dropout": 0.1, "tie_embeddings": "all"} | PRESETS[preset]
    model = Transformer(vocab_size, vocab_size, dtype=dtype, **shape)
    config = Config.from_dict({"model": {"preset": preset}, "training": {"optimizer": "adam"}})
    optimizer = new_optimizer(config, epoch_steps=100)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=way == "XLA")
    batches = Batches(_text(rows, length, vocab_size), rows * length, packed=True)
    stream = batches.dataset()
    one_batch = stream.take(1).cache().repeat().prefetch(2)

    def seconds(count: int, dataset: tf.data.Dataset = one_batch) -> float:
        start = time.perf_counter()
        history = model.fit(dataset, steps_per_epoch=count, shuffle=False, verbose=0)
        losses.extend(history.history["loss"])
        return time.perf_counter() - start

    losses: list[float] = []
    seconds(1)
    first = time.perf_counter() - START
    print(json.dumps({"first_update_seconds": round(first, 1)}), flush=True)
    sys.stdin.readline()  # until the other programs are ready
    step = min(seconds(steps) for _ in range(ROUNDS)) / steps
    fed_step = min(seconds(steps, stream) for _ in range(ROUNDS)) / steps
    gpus = tf.config.list_physical_devices("GPU")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 2**10
    if gpus:
        peak = tf.config.experimental.get_memory_info("GPU:0")["peak"]
    flops = _flops(model, rows * length, vocab_size) / step
    figures = {
        "step_ms": round(step * 1e3, 1),
        "step_ms_with_pipeline": round(fed_step * 1e3, 1),
        "pipeline_tokens_per_second": _pipeline_speed(batches),
        "target_tokens_per_second": round(rows * length / step),
        "teraflops": round(flops / 1e12, 2),
        "of_own_products": round(flops / _product_flops(dtype, 8192 if gpus else 512), 3),
        "peak_gib": round(peak / 2**30, 1),
        "losses": [round(loss, 3) for loss in losses],
    }
    print(json.dumps(figures), flush=True)
    if "profile" in sys.argv:
        print(json.dumps(_profile(lambda: seconds(PROFILED_STEPS))), flush=True)


def _text(rows: int, length: int, vocab_size: int) -> EncodedText:
    """Return pairs for `BATCHES` batches, in which half of the rows contain two pairs."""
    lengths = np.repeat([length, length // 2, length - length // 2], BATCHES * rows // 2)
    offsets = np.append(0, np.cumsum(lengths))
    dice = np.random.default_rng(0)
    ids = [dice.integers(4, vocab_size, offsets[-1]).astype("uint16") for _ in range(2)]
    return EncodedText(tuple(IdRows(side, offsets) for side in ids), length, 0, 0)


def _pipeline_speed(batches: Batches) -> int:
    """Return the target tokens per second of the input pipeline alone."""
    tokens = 0
    start = time.perf_counter()
    for _, labels, _ in batches.dataset().take(100):
        tokens += labels.shape[0] * labels.shape[1]
    return round(tokens / (time.perf_counter() - start))


def _flops(model: keras.Model, tokens: int, vocab_size: int) -> float:
    """Return the operations of a step in matrix products: 6 for each weight and token.

    `tokens` source tokens pass through the encoder, and as many target tokens through the decoder.
    Only the target is multiplied by the embedding matrix.
    """
    embeddings = vocab_size * model.d_model
    encoder, decoder = model.encoder.count_params(), model.decoder.count_params()
    return 6 * tokens * (encoder + decoder + embeddings)


def _product_flops(dtype: str, size: int) -> float:
    """Return the operations per second of a product of two square matrices."""
    compute_dtype = keras.DTypePolicy(dtype).compute_dtype
    a = tf.cast(tf.random.normal((size, size)), compute_dtype)
    multiply = tf.function(lambda a: tf.matmul(a, a))
    multiply(a).numpy()
    start = time.perf_counter()
    for _ in range(20):
        product = multiply(a)
    product[0, 0].numpy()
    return 20 * 2 * size**3 / (time.perf_counter() - start)


def _profile(train: Callable[[], float]) -> dict[str, list[tuple[str, float, int]]]:
    """Return the longest kernels of each line of the GPU's timeline: name, ms a step, launches."""
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            train()
        (file,) = Path(folder).rglob("*.xplane.pb")
        space = XSpace.FromString(file.read_bytes())
    kernels = {}
    for plane in space.planes:
        for line in plane.lines if "GPU" in plane.name else ():
            picoseconds: Counter[str] = Counter()
            launches: Counter[str] = Counter()
            for event in line.events:
                name = plane.event_metadata[event.metadata_id].name
                picoseconds[name] += event.duration_ps
                launches[name] += 1
            longest = picoseconds.most_common(LISTED_KERNELS)
            kernels[f"{plane.name} {line.name}"] = [
                _per_step("all", picoseconds.total(), launches.total()),
                *(_per_step(name[:100], time, launches[name]) for name, time in longest),
            ]
    return kernels


def _per_step(name: str, picoseconds: int, launches: int) -> tuple[str, float, int]:
    milliseconds = picoseconds / 1e9 / PROFILED_STEPS
    return name, round(milliseconds, 3), round(launches / PROFILED_STEPS)


main()
