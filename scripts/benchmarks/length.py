"""Is a token of a long translation as cheap as one of a short translation?

Greedy decoding of 128 and of 256 forced tokens, one after the other in each round.
"""

import argparse
import statistics
import time
from collections.abc import Callable

ROUNDS = 5


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocab-size", type=int, default=32000)


def measure(options: argparse.Namespace) -> dict:
    import tensorflow as tf

    from tfformer import Transformer
    from tfformer.config import PRESETS
    from tfformer.inference.search import greedy_search
    from tfformer.special_ids import END_ID

    model = Transformer(options.vocab_size, options.vocab_size, **PRESETS[options.preset])
    source = tf.random.uniform((options.batch, 20), 4, options.vocab_size, tf.int32)
    never_end = tf.one_hot(END_ID, options.vocab_size, on_value=-1e9)

    @tf.function
    def decode(tokens: tf.Tensor) -> tf.Tensor:
        memory = model.memory(source)

        def step_fn(ids, step, cache):
            logits, cache = model.decode_step(ids, step, cache, memory)
            return logits + never_end, cache

        cache = model.decoder.empty_cache(options.batch, tokens)
        return greedy_search(step_fn, cache, tf.fill([options.batch], tokens)).lengths

    short, long = tf.constant(128), tf.constant(256)
    assert decode(short).numpy().min() == 128
    assert decode(long).numpy().min() == 256
    rounds = [
        (seconds(lambda: decode(short)), seconds(lambda: decode(long))) for _ in range(ROUNDS)
    ]
    for first, second in rounds:
        print(
            f"128 tokens {first:6.3f} s   256 tokens {second:6.3f} s   ratio {second / first:.2f}",
            flush=True,
        )
    return {
        "preset": options.preset,
        "batch": options.batch,
        "seconds_128": statistics.median(first for first, _ in rounds),
        "seconds_256": statistics.median(second for _, second in rounds),
        "ratio": statistics.median(second / first for first, second in rounds),
    }


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
