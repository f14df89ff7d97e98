"""Compare a student's exports with Marian's engines and with its teacher, in tokens per second.

pymarian and fxtranslate, Firefox's engine, run the same weights, fxtranslate in int8; CTranslate2
runs the teacher. All weights are random, and every translation has twice the length of its source;
fxtranslate's are a few tokens longer. Each engine's own tokens count. Words and the candidates of a
shortlist are distributed by Zipf's law. In each round the engines translate the same sentences in
turn, text in and text out, while the others sleep.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks._engine_process import EngineProcess
from benchmarks._machine import spread_text
from benchmarks._random_models import (
    END_ID,
    SOURCE_LENGTH,
    frequencies,
    random_sentences,
    random_translator,
)
from benchmarks.decode import PAUSE, Rounds, summary

if TYPE_CHECKING:
    from tfformer.inference.shortlist import Shortlist

CANDIDATES = 100  # of each source piece
OURS = {  # engine -> format and options of the student's export
    "SavedModel float32": ("saved_model", {}),
    "LiteRT float32": ("litert", {}),
    "LiteRT int8": ("litert", {"quantize": "int8"}),
}
FILES = {  # program of Marian's family -> the files that it reads
    "pymarian": ("model.npz", "vocab.spm", "lex.s2t.gz"),
    "fxtranslate": ("model.bin", "vocab.spm", "lex.bin"),
}
TEACHER = "teacher, SavedModel float32"
PEERS = (TEACHER, "teacher, CTranslate2 int8", "fxtranslate, shortlist")


class Artifact(NamedTuple):
    """What an engine translates with."""

    program: str  # of `student_process`
    folder: Path
    files: Sequence[str] = ("*",)  # patterns of the files that it reads

    def megabytes(self) -> float:
        """Return the size of the files."""
        found = {path for pattern in self.files for path in self.folder.rglob(pattern)}
        return round(sum(path.stat().st_size for path in found if path.is_file()) / 1e6, 1)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="student-tiny", help="student-tiny or student-base")
    parser.add_argument("--teacher", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces of both languages")
    parser.add_argument(
        "--batches",
        type=int,
        nargs="+",
        default=[1, 32],
        choices=range(1, 65),
        metavar="N",
        help="batch sizes, at most 64",
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of threads")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")
    parser.add_argument("--engines", nargs="+", default=["*"], help="patterns of engines' names")
    parser.add_argument("--marian-python", help="a Python with pymarian, fxtranslate and PyYAML")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return tokens per second, memory, load time and megabytes of every engine.

    Returns:
        `tokens_per_second` of each round by threads and batch, their `spread`, the median `ratios`
        to `PEERS`, and the `engines` by threads.
    """
    speeds, about = {}, {}
    with tempfile.TemporaryDirectory() as name:
        artifacts = _write(Path(name), options)
        for threads in options.threads:
            engines = {
                engine: _start(engine, artifact, threads, options)
                for engine, artifact in artifacts.items()
                if artifact.program != "fxtranslate" or threads == 1  # it has one thread
            }
            for batch in options.batches:
                setting = f"threads {threads}, batch {batch}"
                speeds[setting] = _rounds(engines, setting, batch, options.rounds)
            about[threads] = {engine: process.stop() for engine, process in engines.items()}
        megabytes = {engine: artifact.megabytes() for engine, artifact in artifacts.items()}
    return {
        "student": options.preset,
        "teacher": options.teacher,
        "vocab_size": options.vocab_size,
        "tokens": 2 * SOURCE_LENGTH,
        "megabytes": megabytes,
        "engines": about,
    } | summary(speeds, [(name, peer) for peer in PEERS for name in artifacts if name != peer])


def _write(folder: Path, options: argparse.Namespace) -> dict[str, Artifact]:
    """Export the random models; return the artifact of each engine."""
    from tfformer.config import DIALECTS

    settings = {
        "beam_size": 1,
        "max_length": 2 * SOURCE_LENGTH,
        "norm": "post",  # fxtranslate's
        "dialect": dict(DIALECTS["marian"]) | {"max_length_factor": 2.0},
    }
    return _write_teacher(folder, options, settings) | _write_student(folder, options, settings)


def _is_measured(engine: str, options: argparse.Namespace) -> bool:
    return any(fnmatch(engine, pattern) for pattern in options.engines)


def _write_teacher(
    folder: Path, options: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Artifact]:
    from tfformer.export import ctranslate2 as ctranslate2_export

    artifacts = {}
    teacher = random_translator(options.teacher, options.vocab_size, **settings)
    if _is_measured(TEACHER, options):
        samples = random_sentences(options.vocab_size, 2, 8)
        version = teacher.export(folder / "teacher", samples=samples)
        artifacts[TEACHER] = Artifact("tfformer", version)
    for dtype in ("float32", "int8"):
        name, path = f"teacher, CTranslate2 {dtype}", folder / dtype
        if _is_measured(name, options):
            path.mkdir()
            ctranslate2_export.write(
                path, teacher.model, teacher.tokenizers, teacher.max_length, quantization=dtype
            )
            artifacts[name] = Artifact("ctranslate2", path)
    return artifacts


def _write_student(
    folder: Path, options: argparse.Namespace, settings: dict[str, Any]
) -> dict[str, Artifact]:
    artifacts = {}
    samples = random_sentences(options.vocab_size, 2, 8)
    student = random_translator(options.preset, options.vocab_size, **settings)
    for ending in ("", ", shortlist"):
        parent = folder / ("shortlist" if ending else "student")  # pymarian accepts no spaces
        if ending:
            student.shortlist = _random_shortlist(options.vocab_size)
        for name, (format, chosen) in OURS.items():
            if _is_measured(f"{name}{ending}", options):
                version = student.export(parent / name, format, samples=samples, **chosen)
                artifacts[f"{name}{ending}"] = Artifact("tfformer", version)
        if options.marian_python:
            version = student.export(parent / "marian", "marian", samples=samples, quantize="int8")
            for program, files in FILES.items():
                if _is_measured(f"{program}{ending}", options):
                    artifacts[f"{program}{ending}"] = Artifact(program, version, files)
    return artifacts


def _random_shortlist(vocab_size: int) -> "Shortlist":
    """Return a table with up to `CANDIDATES` pieces in each row, distributed as the words are."""
    import numpy as np

    from tfformer.data.encoding import IdRows
    from tfformer.inference.shortlist import Shortlist

    chances = np.append(np.zeros(END_ID + 1), frequencies(vocab_size))
    drawn = np.random.default_rng(1).choice(
        vocab_size, (vocab_size, CANDIDATES), p=chances / chances.sum()
    )
    rows = list(map(np.unique, drawn))
    rows[END_ID] = np.arange(END_ID + 1, END_ID + 1 + CANDIDATES)  # the most frequent pieces
    return Shortlist(IdRows.of(rows), vocab_size)


def _start(
    name: str, artifact: Artifact, threads: int, options: argparse.Namespace
) -> EngineProcess:
    other = Path(options.marian_python or "").absolute()
    python = other if artifact.program in FILES else sys.executable
    program = ["-m", "benchmarks.engines.student_process", artifact.program]
    command = [python, *program, artifact.folder, threads, options.vocab_size]
    variables = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS")
    engine = EngineProcess(name, command, dict.fromkeys(variables, str(threads)))
    print(f"{name:29} {engine.about}", flush=True)
    return engine


def _rounds(engines: dict[str, EngineProcess], setting: str, batch: int, rounds: int) -> Rounds:
    """Measure every engine in every round, after an uncounted warm-up round."""
    speeds: Rounds = {name: [] for name in engines}
    for number in range(rounds + 1):
        for name, engine in engines.items():
            time.sleep(PAUSE)
            answer = engine.work(str(batch))
            if number:
                speeds[name].append(round(answer["tokens"] / answer["seconds"], 1))
    for name, measured in speeds.items():
        print(f"{setting:20} {name:29} {spread_text(measured, 'tokens/s')}", flush=True)
    return speeds
