"""The loop of a process that measures one engine's search on a GPU."""

import json
import sys
import time
from collections.abc import Callable

TOKENS = 32  # of every translation
ROUNDS = 3


def measure(prepare: Callable[[], Callable[[int, int], object]], batches: list[str]) -> None:
    """Print a line of JSON when the engine is ready, and one for each batch, such as "32x4".

    Args:
        prepare: Returns a function that decodes a batch of sentences with a number of beams.
        batches: Sentences and beams of each batch.
    """
    start = time.perf_counter()
    decode = prepare()
    ready = time.perf_counter() - start
    print(json.dumps({"ready_seconds": round(ready, 1)}), flush=True)
    sys.stdin.readline()  # until the other programs are ready
    for batch in batches:
        rows, beams = map(int, batch.split("x"))
        seconds = []
        for _ in range(1 + ROUNDS):
            start = time.perf_counter()
            decode(rows, beams)
            seconds.append(time.perf_counter() - start)
        speed = round(rows * TOKENS / min(seconds[1:]))
        figures = {"batch": batch, "first_seconds": round(seconds[0], 1)}
        print(json.dumps(figures | {"tokens_per_second": speed}), flush=True)
