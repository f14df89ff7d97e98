"""Is a token of a long translation as cheap as one of a short translation?

Greedy decoding of 128 and of 256 forced tokens, one after the other in each round, by the cache of
the exports, which begins short and grows.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

ROUNDS = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocab-size", type=int, default=32000)


def measure(options: argparse.Namespace) -> dict:
    """Return the seconds of both lengths.

    The median of their ratios over the rounds comes with them.
    """
    import tensorflow as tf

    from tfformer import Transformer
    from tfformer.config import PRESETS
    from tfformer.inference.graphs import FIRST_CAPACITY
    from tfformer.inference.search import Rounds, gather_rows, greedy_search
    from tfformer.model.cache import capacity_of, enlarged
    from tfformer.special_ids import END_ID

    model = Transformer(options.vocab_size, options.vocab_size, **PRESETS[options.preset])
    source = tf.random.uniform((options.batch, 20), 4, options.vocab_size, tf.int32)
    never_end = tf.one_hot(END_ID, options.vocab_size, on_value=-1e9)

    @tf.function
    def decode(tokens: tf.Tensor) -> tf.Tensor:
        memory = model.encode_and_project(source)

        def step_fn(ids: tf.Tensor, step: tf.Tensor, cache: Any) -> tuple[tf.Tensor, Any]:
            hidden, cache = model.hidden_step(ids[:, tf.newaxis], step, cache, memory)
            return model.logits(hidden)[:, 0] + never_end, cache

        first_capacity = tf.minimum(tokens, FIRST_CAPACITY)  # a tensor, as its shape will change
        cache = model.decoder.empty_cache(options.batch, first_capacity)
        rounds = Rounds(capacity_of, enlarged, gather_rows)
        limits = tf.fill([options.batch], tokens)
        return greedy_search(step_fn, cache, limits, rounds=rounds).lengths

    short = tf.constant(128)
    long = tf.constant(256)
    assert decode(short).numpy().min() == 128
    assert decode(long).numpy().min() == 256
    short_seconds = []
    long_seconds = []
    for _ in range(ROUNDS):
        short_seconds.append(seconds(lambda: decode(short)))
        long_seconds.append(seconds(lambda: decode(long)))
        times = f"128 tokens {short_seconds[-1]:6.3f} s   256 tokens {long_seconds[-1]:6.3f} s"
        print(f"{times}   ratio {long_seconds[-1] / short_seconds[-1]:.2f}", flush=True)
    ratios = [b / a for a, b in zip(short_seconds, long_seconds, strict=True)]
    return {
        "preset": options.preset,
        "batch": options.batch,
        "seconds_128": statistics.median(short_seconds),
        "seconds_256": statistics.median(long_seconds),
        "ratio": statistics.median(ratios),
    }


def seconds(work: Callable[[], object]) -> float:
    """Return the seconds that a piece of work takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
