"""A training step of tfformer on a GPU: preset, dtype, XLA or plain, rows, vocabulary, ..."""

import json
import sys
import time

START = time.perf_counter()

from tfformer.runtime.tensorflow import import_tensorflow  # noqa: E402

import_tensorflow()

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from tfformer import SmoothedCrossEntropy, Transformer  # noqa: E402
from tfformer.config import PRESETS, Config  # noqa: E402
from tfformer.training.optimizer import new_optimizer  # noqa: E402

ROUNDS = 3


def main() -> None:
    """Train, and print the figures as a line of JSON."""
    preset, dtype, way = sys.argv[1:4]
    rows, vocab_size, length, steps = map(int, sys.argv[4:])
    keras.utils.set_random_seed(1)
    shape = {"dropout": 0.1, "tie_embeddings": "all"} | PRESETS[preset]
    model = Transformer(vocab_size, vocab_size, dtype=dtype, **shape)
    optimizer = new_optimizer(Config.from_dict({"model": {"preset": preset}}), epoch_steps=100)
    model.compile(optimizer, SmoothedCrossEntropy(0.1), jit_compile=way == "XLA")
    dice = np.random.default_rng(0)
    ids = [dice.integers(4, vocab_size, (rows, length)).astype("int32") for _ in range(3)]
    weights = np.ones((rows, length), "float32")
    batch = ({"source": ids[0], "target": ids[1]}, ids[2], weights)
    dataset = tf.data.Dataset.from_tensors(batch).repeat().prefetch(2)

    def seconds(count: int) -> float:
        start = time.perf_counter()
        history = model.fit(dataset, steps_per_epoch=count, shuffle=False, verbose=0)
        losses.extend(history.history["loss"])
        return time.perf_counter() - start

    losses = []
    seconds(1)
    first = time.perf_counter() - START
    step = min(seconds(steps) for _ in range(ROUNDS)) / steps
    gpus = tf.config.list_physical_devices("GPU")
    peak = tf.config.experimental.get_memory_info("GPU:0")["peak"] if gpus else 0
    flops = _flops(model, rows * length, vocab_size) / step
    figures = {
        "first_update_seconds": round(first, 1),
        "step_ms": round(step * 1e3, 1),
        "target_tokens_per_second": round(rows * length / step),
        "teraflops": round(flops / 1e12, 2),
        "of_own_products": round(flops / _product_flops(dtype, 8192 if gpus else 512), 3),
        "peak_gib": round(peak / 2**30, 1),
        "losses": [round(loss, 3) for loss in losses],
    }
    print(json.dumps(figures), flush=True)


def _flops(model: keras.Model, tokens: int, vocab_size: int) -> float:
    """Operations of a step by the products with weights: 6 for each weight and token.

    Source and target have `tokens` each, and each passes through its own stack; the matrix of the
    embeddings multiplies the target alone.
    """
    embeddings = vocab_size * model.d_model
    encoder, decoder = model.encoder.count_params(), model.decoder.count_params()
    return 6 * tokens * (encoder + decoder + embeddings)


def _product_flops(dtype: str, size: int) -> float:
    """The operations a second of a product of two square matrices."""
    compute_dtype = keras.DTypePolicy(dtype).compute_dtype
    a = tf.cast(tf.random.normal((size, size)), compute_dtype)
    multiply = tf.function(lambda a: tf.matmul(a, a))
    multiply(a).numpy()
    start = time.perf_counter()
    for _ in range(20):
        product = multiply(a)
    product[0, 0].numpy()
    return 20 * 2 * size**3 / (time.perf_counter() - start)


main()
