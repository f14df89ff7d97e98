"""The process of one training engine.

It takes a first step and one step per batch as a warm-up, and then a round for each line of its
input.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

THREADS = 2  # per engine

# source (B, S), target (B, T) and labels (B, T), int32; 0 is padding
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]
Step = Callable[[Batch], float]  # updates the weights once; returns the loss before the update
Count = Callable[[], int]  # returns the number of parameters, after a training step


def run(build: Callable[..., tuple[Step, Count]]) -> None:
    """Train once per line of standard input, and print figures as lines of JSON.

    Args:
        build: Called as `build(shape, *arguments)` with the arguments of the command line; returns
            the engine's training step, and a function that counts the parameters.
    """
    start = time.perf_counter()
    folder = Path(sys.argv[1])
    arguments = sys.argv[2:]
    shape = json.loads((folder / "shape.json").read_text(encoding="utf-8"))
    batches = _batches(folder / "batches.npz")
    step, count_parameters = build(shape, *arguments)
    first_loss = step(batches[0])
    first = time.perf_counter() - start
    for batch in batches:
        step(batch)
    _say(
        first_step_seconds=round(first, 1),
        parameters=count_parameters(),
        first_loss=round(first_loss, 2),
    )
    for _ in sys.stdin:
        start = time.perf_counter()
        losses = [step(batch) for batch in batches]
        _say(seconds=time.perf_counter() - start, loss=round(float(np.mean(losses)), 2))
    # `getrusage` counts the memory of the process that started this one too.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    _say(peak_memory_megabytes=int(status.partition("VmHWM:")[2].split()[0]) // 1024)


def _batches(path: Path) -> list[Batch]:
    arrays = np.load(path)
    return [
        (arrays[f"source_{number}"], arrays[f"target_{number}"], arrays[f"labels_{number}"])
        for number in range(len(arrays.files) // 3)
    ]


def _say(**figures: float) -> None:
    print(json.dumps(figures), flush=True)
