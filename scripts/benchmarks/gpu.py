"""Measure training and decoding on a GPU, beside PyTorch, Transformers and CTranslate2.

Peers that are not installed are skipped. Each program runs in a separate process: it prepares
(imports, builds, compiles), reports that it is ready, and is measured while all others wait. With
`--together N`, N programs prepare at once, which saves minutes on a machine with many cores; their
peaks of memory add up. The most important programs come first, in case the time ends. All programs
train the same shape on random ids with Adam, dropout 0.1 and label smoothing 0.1. In the batches of
tfformer, half of the rows contain two sentences. The programs that XLA compiles are stored only for
the duration of the measurement, so the first start is cold; "again" is the second start. Two
programs run again with other settings of XLA: training without command buffers, which launch
several kernels at once, and decoding with operations that XLA clusters and compiles.
"""

import argparse
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

FOLDER = Path(__file__).parent
REPOSITORY = FOLDER.parents[1]
LEAST_SECONDS = 20  # every program needs more time
SIZES = ("num_layers", "d_model", "num_heads", "d_ff")

Figures = dict[str, list[dict[str, Any]]]  # program -> the lines that it prints


class Work(NamedTuple):
    """A program, relative to this folder, with its arguments and the library that it needs."""

    program: str
    arguments: tuple[str, ...]
    library: str = ""
    flags: tuple[tuple[str, str], ...] = ()  # environment variables and what is added to them


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--seconds", type=float, default=480, help="maximum time for all programs")
    parser.add_argument("--presets", nargs="+", default=["base", "big"], help="shapes of the model")
    parser.add_argument(
        "--rows", type=int, default=512, help="rows per batch; half for the big shape"
    )
    parser.add_argument("--length", type=int, default=48, help="tokens per row")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces per language")
    parser.add_argument("--steps", type=int, default=20, help="steps in each of the three rounds")
    batches = ["512x1", "32x4", "64x1", "32x1", "1x1"]
    parser.add_argument("--batches", nargs="+", default=batches, help="sentences x beams")
    parser.add_argument(
        "--work", nargs="+", help="the programs to run, in this order; default: all"
    )
    parser.add_argument(
        "--together",
        type=int,
        default=max(1, min(3, len(os.sched_getaffinity(0)) // 4)),
        help="programs that prepare at once; default: one per four cores, at most 3",
    )
    parser.add_argument("--list", action="store_true", help="print the names of the programs")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of each program, by name."""
    everything = all_work(options)
    if options.list:
        print("\n".join(everything))
        return {}
    names = options.work or list(everything)
    end = time.monotonic() + options.seconds
    figures: Figures = {}
    with tempfile.TemporaryDirectory() as cache:
        for start in range(0, len(names), options.together):
            works = {name: everything[name] for name in names[start : start + options.together]}
            figures |= _measure_together(works, end - time.monotonic(), cache)
    return {"rows": options.rows, "length": options.length, "work": figures}


def all_work(options: argparse.Namespace) -> dict[str, Work]:
    """Return the programs by name, the most important of each kind first."""
    sizes = (str(options.vocab_size), str(options.length), str(options.steps))
    rows = {preset: str(options.rows // (1 + (preset == "big"))) for preset in options.presets}
    ours: dict[str, Work] = {}
    torch: dict[str, Work] = {}
    decoding: dict[str, Work] = {}
    arguments: tuple[str, ...]
    ways = itertools.product(("mixed_bfloat16", "float32"), ("XLA", "plain"), options.presets)
    for dtype, way, preset in ways:
        arguments = (preset, dtype, way, rows[preset], *sizes)
        name = f"train {preset} {dtype} {way}"
        ours[name] = Work("trainers/gpu_tfformer.py", arguments)
        if len(ours) == 1:  # the programs are stored now
            ours[f"{name} again"] = ours[name]
    for way, dtype in (("compiled", "bfloat16"), ("plain", "bfloat16"), ("plain", "float32")):
        for preset in options.presets:
            arguments = (shape_of(preset), dtype, way, rows[preset], *sizes)
            name = f"torch {preset} {dtype} {way}"
            torch[name] = Work("trainers/gpu_torch.py", arguments, "torch")
    preset = options.presets[0]
    sizes = (str(options.vocab_size), *options.batches)
    for dtype in ("bfloat16", "float32"):
        arguments = ("saved_model", preset, dtype, *sizes)
        decoding[f"decode {dtype}"] = Work("engines/gpu_exports.py", arguments)
        arguments = (shape_of(preset), dtype, *sizes)
        decoding[f"transformers {dtype}"] = Work(
            "engines/gpu_transformers.py", arguments, "transformers"
        )
    arguments = ("ctranslate2", preset, "float16", *sizes)
    decoding["ctranslate2 float16"] = Work("engines/gpu_exports.py", arguments, "ctranslate2")
    clustered = (("TF_XLA_FLAGS", "--tf_xla_auto_jit=2"),)
    decoding["decode float32 clustered"] = decoding["decode float32"]._replace(flags=clustered)
    name, first = next(iter(ours.items()))
    without = (("XLA_FLAGS", "--xla_gpu_enable_command_buffer="),)
    ours[f"{name} no command buffers"] = first._replace(flags=without)
    profiled = first._replace(arguments=(*first.arguments, "profile"))
    ours[f"profile {name.removeprefix('train ')}"] = profiled
    turns = itertools.zip_longest(*(kind.items() for kind in (ours, torch, decoding)))
    return dict(filter(None, itertools.chain.from_iterable(turns)))


def shape_of(preset: str) -> str:
    """Return the shape of a preset as JSON, for programs that do not import tfformer."""
    from tfformer.config import PRESETS

    return json.dumps({name: PRESETS[preset][name] for name in SIZES})


def _measure_together(works: dict[str, Work], seconds: float, cache: str) -> Figures:
    """Let all programs prepare, measure them one after another, and return their lines."""
    figures: Figures = {}
    processes: dict[str, subprocess.Popen[str]] = {}
    for name, work in works.items():
        if obstacle := _obstacle(work, seconds):
            figures[name] = [{"left_out": obstacle}]
        else:
            processes[name] = subprocess.Popen(
                [sys.executable, str(FOLDER / work.program), *work.arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=_environment(work, cache),
                text=True,
            )

    def end() -> None:
        for process in processes.values():
            process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    ready = {name: next(process.stdout or iter(()), "") for name, process in processes.items()}
    for name, process in processes.items():
        output, _ = process.communicate("measure\n")
        lines = (ready[name] + output).splitlines()
        figures[name] = [json.loads(line) for line in lines if line.startswith("{")]
        if process.returncode:
            figures[name].append({"left_out": f"exit code {process.returncode}"})
    timer.cancel()
    for name in works:
        print(f"{name:40} {json.dumps(figures[name])}", flush=True)
    return figures


def _obstacle(work: Work, seconds: float) -> str:
    """Say why the work cannot be done; empty if it can."""
    if work.library and importlib.util.find_spec(work.library) is None:
        return f"{work.library} is not installed"
    return "no time was left" if seconds < LEAST_SECONDS else ""


def _environment(work: Work, cache: str) -> dict[str, str]:
    """Return the environment variables of a program.

    Paths to CUDA's libraries that were set for TensorFlow are removed for PyTorch.
    """
    if work.library in ("torch", "transformers"):
        theirs = ("PYTHONPATH", "LD_LIBRARY_PATH")
        return {name: value for name, value in os.environ.items() if name not in theirs}
    paths = [str(REPOSITORY), str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    ours = {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        # A folder for each set of flags: a stored program does not record its flags.
        "XDG_CACHE_HOME": os.path.join(cache, *(flag for _, flag in work.flags)),
        "TF_FORCE_GPU_ALLOW_GROWTH": "true",
    }
    added = {name: f"{os.environ.get(name, '')} {flag}".strip() for name, flag in work.flags}
    return {"TF_CPP_MIN_LOG_LEVEL": "3"} | os.environ | ours | added
