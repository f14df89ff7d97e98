#!/usr/bin/env python
"""Measurements of tfformer; each prints what it does and ends in one JSON line.

scripts/benchmark.py length     is a token of a long translation as cheap as one of a short translation?
scripts/benchmark.py serve --run RUN --source FILE     what do several clients at once get from `tfformer serve`?
"""

import argparse
import http.client
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice

ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def length(options: argparse.Namespace) -> dict:
    """Greedy decoding of 128 and of 256 forced tokens, one after the other in each round."""
    import tensorflow as tf

    from tfformer import Transformer
    from tfformer.config import PRESETS
    from tfformer.decoding import greedy_search
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
    assert decode(short).numpy().min() == 128 and decode(long).numpy().min() == 256
    rounds = [(seconds(lambda: decode(short)), seconds(lambda: decode(long))) for _ in range(ROUNDS)]
    for first, second in rounds:
        print(f"128 tokens {first:6.3f} s   256 tokens {second:6.3f} s   ratio {second / first:.2f}")
    return {
        "preset": options.preset,
        "batch": options.batch,
        "seconds_128": statistics.median(first for first, _ in rounds),
        "seconds_256": statistics.median(second for _, second in rounds),
        "ratio": statistics.median(second / first for first, second in rounds),
    }


def serve(options: argparse.Namespace) -> dict:
    """Clients that send one sentence after the other: first one of them, then all at once. Every answer is checked."""
    from tfformer.data import read_lines
    from tfformer.translator import Translator

    sentences = list(islice(read_lines(options.source), 200))
    expected = dict(zip(sentences, Translator.load(options.run).translate(sentences, beam_size=1), strict=True))
    found = {}
    with server(options.run) as address:
        for clients in (1, options.clients):
            answered = load(address, expected, clients, options.seconds)
            found[clients] = answered / options.seconds
            print(f"{clients:3} clients: {answered} sentences in {options.seconds:g} s, every translation right")
    one, many = found.values()
    return {"clients": options.clients, "one_per_second": one, "all_per_second": many, "ratio": many / one}


@contextmanager
def server(run: str) -> Iterator[str]:
    """`tfformer serve` in a process of its own: HOST:PORT."""
    command = [sys.executable, "-m", "tfformer", "serve", run, "--name", "model", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield next(found[1] for line in process.stdout if (found := re.search(r"at http://(\S+)/", line)))
        finally:
            process.terminate()


def load(address: str, expected: dict[str, str], clients: int, duration: float) -> int:
    """How many sentences the clients got translated; AssertionError at the first wrong answer."""
    end = time.perf_counter() + duration

    def client(number: int) -> int:
        connection = http.client.HTTPConnection(address)
        for done, sentence in enumerate(islice(cycle(expected), 7 * number, None)):
            if time.perf_counter() > end:
                return done
            connection.request("POST", "/v1/models/model:predict", json.dumps({"instances": [sentence]}))
            answer = json.loads(connection.getresponse().read())
            assert answer["predictions"][0]["translation"] == expected[sentence], (sentence, answer)

    with ThreadPoolExecutor(clients) as threads:
        return sum(threads.map(client, range(clients)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measurement", choices=["length", "serve"])
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--run", help="a run directory, for serve")
    parser.add_argument("--source", help="sentences, for serve")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    print(json.dumps({"length": length, "serve": serve}[options.measurement](options)))


if __name__ == "__main__":
    main()
