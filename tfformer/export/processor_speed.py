"""The speed of this processor's matrix products, measured for a type of number.

No flag of a processor foretells it: some have instructions for bfloat16 that multiply half as fast
as those for float32.
"""

import time
from collections.abc import Callable

import tensorflow as tf

from tfformer.runtime.tracing import traced

SIZE = 2048  # of the two square matrices


def beside_float32(dtype: str) -> float:
    """Return how many times as fast a large product is in `dtype` as in float32.

    Args:
        dtype: The type of both matrices, such as `bfloat16`.

    Returns:
        The ratio of both speeds, with two decimals.
    """
    return round(multiplications_per_second(dtype) / multiplications_per_second("float32"), 2)


def check_not_slower(dtype: str, speed: float) -> None:
    """Raise ValueError for a type in which products are slower than in float32.

    Args:
        dtype: The type.
        speed: Its speed beside float32's, see `beside_float32`.
    """
    if speed < 1:
        raise ValueError(
            f"this processor multiplies in {dtype} {speed:.2f} times as fast as in float32, so "
            "--dtype float32 is the faster one here; for a processor of another kind give "
            "--for-other-processors too"
        )


def multiplications_per_second(dtype: str) -> float:
    """Measure the product of two large matrices, the best of ten.

    Args:
        dtype: The type of both matrices.

    Returns:
        Multiplications a second, each with its addition, by all threads of TensorFlow.
    """
    left = tf.cast(tf.random.normal((SIZE, SIZE)), dtype)
    right = tf.cast(tf.random.normal((SIZE, SIZE)), dtype)
    multiply = traced(tf.matmul)
    return SIZE**3 / best_of_ten(lambda: multiply(left, right).numpy())


def best_of_ten(call: Callable[[], object]) -> float:
    """Return the seconds of the fastest of ten calls."""
    best = float("inf")
    for _ in range(10):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best
