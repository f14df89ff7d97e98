"""Measure training and decoding on a GPU, also of PyTorch and Transformers if installed.

Each program runs in a separate process, one after the other, until the time is used up. All
programs train the same shape on random ids with Adam, dropout 0.1 and label smoothing 0.1. In the
batches of tfformer, half of the rows contain two sentences. The programs that XLA compiles are
stored only for the duration of the measurement, so the first start is cold; "again" is the second
start.
"""

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[1]
LEAST_SECONDS = 20  # every program needs more time


class Work(NamedTuple):
    """A program, relative to this folder, with its arguments and the library that it needs."""

    program: str
    arguments: tuple[str, ...]
    library: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--seconds", type=float, default=480, help="maximum time for all programs")
    parser.add_argument("--presets", nargs="+", default=["base", "big"])
    parser.add_argument(
        "--rows", type=int, default=512, help="rows per batch; half for the big shape"
    )
    parser.add_argument("--length", type=int, default=48, help="tokens per row")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--steps", type=int, default=20, help="steps in each of the three rounds")
    parser.add_argument("--batches", nargs="+", default=["512x1", "32x4", "64x1", "32x1", "1x1"])
    parser.add_argument(
        "--work", nargs="+", help="the programs to run, in this order; default: all"
    )
    parser.add_argument("--list", action="store_true", help="print the names of the programs")


def measure(options: argparse.Namespace) -> dict:
    """Return the figures of each program, by name."""
    everything = all_work(options)
    if options.list:
        print("\n".join(everything))
        return {}
    end = time.monotonic() + options.seconds
    figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for name in options.work or everything:
            work = everything[name]
            figures[name] = _figures(work, end - time.monotonic(), cache)
            print(f"{name:40} {json.dumps(figures[name])}", flush=True)
    return {"rows": options.rows, "length": options.length, "work": figures}


def all_work(options: argparse.Namespace) -> dict[str, Work]:
    """Return the programs by name, the most important first."""
    sizes = (str(options.vocab_size), str(options.length), str(options.steps))
    training, decoding = {}, {}
    for preset in options.presets:
        rows = str(options.rows // 2 if preset == "big" else options.rows)
        for dtype, way in (
            *(("mixed_bfloat16", "XLA"), ("mixed_bfloat16", "plain")),
            *(("float32", "XLA"), ("float32", "plain")),
        ):
            arguments = (preset, dtype, way, rows, *sizes)
            name = f"train {preset} {dtype} {way}"
            training[name] = Work("trainers/gpu_tfformer.py", arguments)
            if len(training) == 1:  # the programs are stored now
                training[f"{name} again"] = training[name]
        for dtype, way in (("bfloat16", "plain"), ("float32", "plain"), ("bfloat16", "compiled")):
            arguments = (preset, dtype, way, rows, *sizes)
            name = f"torch {preset} {dtype} {way}"
            training[name] = Work("trainers/gpu_torch.py", arguments, "torch")
    for dtype in ("float32", "bfloat16"):
        arguments = (options.presets[0], dtype, str(options.vocab_size), *options.batches)
        decoding[f"decode {dtype}"] = Work("engines/gpu_saved_model.py", arguments)
        peer = Work("engines/gpu_transformers.py", arguments, "transformers")
        decoding[f"transformers {dtype}"] = peer
    return training | decoding


def _figures(work: Work, seconds: float, cache: str) -> list[dict]:
    """Run a program and return its lines; the last line states if the program did not finish."""
    if work.library and importlib.util.find_spec(work.library) is None:
        return [{"left_out": f"{work.library} is not installed"}]
    if seconds < LEAST_SECONDS:
        return [{"left_out": "no time was left"}]
    command = [sys.executable, str(FOLDER / work.program), *work.arguments]
    environment = _environment(work, cache)
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, timeout=seconds)
    except subprocess.TimeoutExpired as late:
        return [*_lines(late.stdout or b""), {"left_out": f"not done after {seconds:.0f} s"}]
    failed = [{"left_out": f"exit code {done.returncode}"}] if done.returncode else []
    return _lines(done.stdout) + failed


def _environment(work: Work, cache: str) -> dict[str, str]:
    """Return the environment variables of a program.

    Paths to CUDA's libraries that were set for TensorFlow are removed for other frameworks.
    """
    if work.library:
        theirs = ("PYTHONPATH", "LD_LIBRARY_PATH")
        return {name: value for name, value in os.environ.items() if name not in theirs}
    paths = [str(REPOSITORY), str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    ours = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "XDG_CACHE_HOME": cache,
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    return {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ | ours


def _lines(output: bytes) -> list[dict]:
    return [json.loads(line) for line in output.decode().splitlines() if line.startswith("{")]
