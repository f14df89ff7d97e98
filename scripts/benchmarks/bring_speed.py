"""Tokens per second of a model of OPUS-MT's shape, beside CTranslate2 and Marian.

The checkpoint is that of `bring`. It is imported as Marian trains, and every engine has an export
of that run, a process of its own, and its own setting of threads. In each round all engines
translate the same sentences greedily, one engine after the other, while the others sleep. No
sentence may end before the last token, and each engine's tokens are counted.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks._engine_process import EngineProcess
from benchmarks._machine import spread, spread_text
from benchmarks.bring import write_checkpoint
from benchmarks.engines.turns import BATCH, SOURCE_TOKENS, TOKENS

ENGINES = Path(__file__).parent / "engines"
PAUSE = 0.5  # seconds before an engine's turn, in which the threads of the one before go to sleep
PEERS = ("ctranslate2 float32", "ctranslate2 int8", "pymarian float32")
LENGTH = ("--max-length", str(TOKENS))
EXPORTS = {
    "float32": ("--format", "saved_model"),
    "bfloat16": ("--format", "saved_model", "--dtype", "bfloat16", "--for-other-processors"),
    "litert": ("--format", "litert", "--quantize", "int8"),
    "ctranslate2": ("--format", "ctranslate2"),
    "marian": ("--format", "marian"),
}

Rounds = dict[str, list[float]]  # engine -> its tokens per second in each round


class Program(NamedTuple):
    """An engine: its export, its program and the program's arguments."""

    export: str
    script: str
    arguments: tuple[str, ...] = ()


PROGRAMS = {
    "tfformer float32": Program("float32", "saved_model_turns.py"),
    "tfformer bfloat16": Program("bfloat16", "saved_model_turns.py"),
    "tfformer LiteRT int8": Program("litert", "litert_turns.py"),
    "ctranslate2 float32": Program("ctranslate2", "ctranslate2_turns.py", ("float32",)),
    "ctranslate2 int8": Program("ctranslate2", "ctranslate2_turns.py", ("int8",)),
    "pymarian float32": Program("marian", "pymarian_turns.py"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument(
        "--pymarian", metavar="PYTHON", help="of an environment with pymarian; left out without it"
    )
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, BATCH])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument(
        "--folder", help="keeps the exports, and those that are in it are not written again"
    )


def measure(options: argparse.Namespace) -> dict:
    """Return tokens per second of every engine, by threads and sentences.

    Returns:
        Under `tokens_per_second` the rounds, under `spread` their minimum, median and maximum,
        under `ratios` the same of ours against the peers, round by round.
    """
    names = [name for name in PROGRAMS if options.pymarian or name != "pymarian float32"]
    speeds: dict[str, Rounds] = {}
    about = {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(options.folder or temporary)
        write_exports(folder, [PROGRAMS[name].export for name in names])
        for threads in options.threads:
            engines = {name: _engine(name, folder, threads, options.pymarian) for name in names}
            for batch in options.batches:
                setting = f"threads {threads}, sentences {batch:2}"
                speeds[setting] = _rounds(setting, engines, batch, options.rounds)
            about[threads] = {name: engine.stop() for name, engine in engines.items()}
    return {
        "tokens": TOKENS,
        "engines": about,
        "tokens_per_second": speeds,
        "spread": {setting: _spreads(rounds) for setting, rounds in speeds.items()},
        "ratios": {setting: _ratios(rounds) for setting, rounds in speeds.items()},
    }


def write_exports(folder: Path, names: list[str]) -> None:
    """Write checkpoint, sentences, run and exports, but for those that are there."""
    folder.mkdir(exist_ok=True)
    if not (folder / "opus").exists():
        write_checkpoint(folder / "opus")
        _write_sentences(folder)
    run = str(folder / "run")
    if not (folder / "run").exists():
        _tfformer("import", str(folder / "opus"), "--positions", "marian", "--run-dir", run)
    for name in dict.fromkeys(names):
        if not (folder / name).exists():
            of_search = [] if name == "marian" else [*LENGTH, "--samples", str(folder / "sample")]
            _tfformer("export", run, *EXPORTS[name], *of_search, "--output", str(folder / name))


def _write_sentences(folder: Path) -> None:
    """Draw the pieces of each sentence, behind which every engine puts the end."""
    pieces = list(json.loads((folder / "opus" / "vocab.json").read_text(encoding="utf-8")))
    dice = random.Random(1)
    rows = [dice.choices(pieces[2:-1], k=SOURCE_TOKENS - 1) for _ in range(BATCH)]
    text = "".join(f"{' '.join(row)}\n" for row in rows)
    (folder / "sentences").write_text(text, encoding="utf-8")
    # An export is compared with the run by this one.
    (folder / "sample").write_text("Good morning.\n", encoding="utf-8")


def _tfformer(*words: str) -> None:
    subprocess.run([sys.executable, "-P", "-m", "tfformer", *words], check=True)


def _rounds(setting: str, engines: dict[str, EngineProcess], batch: int, rounds: int) -> Rounds:
    """Measure every engine in every round, after a first one that does not count."""
    speeds: Rounds = {name: [] for name in engines}
    for number in range(rounds + 1):
        for name, engine in engines.items():
            time.sleep(PAUSE)
            speed = _tokens_per_second(name, engine, batch)
            if number:
                speeds[name].append(round(speed, 1))
    for name, measured in speeds.items():
        print(f"{setting}  {name:22} {spread_text(measured, 'tokens/s')}", flush=True)
    return speeds


def _spreads(rounds: Rounds) -> dict[str, dict[str, float]]:
    return {name: spread(measured) for name, measured in rounds.items()}


def _ratios(rounds: Rounds) -> dict[str, dict[str, float]]:
    """The spread over the rounds of ours against theirs."""
    ratios = {}
    for ours in (name for name in rounds if name not in PEERS):
        for theirs in (name for name in PEERS if name in rounds):
            both = zip(rounds[ours], rounds[theirs], strict=True)
            ratios[f"{ours} / {theirs}"] = spread([round(a / b, 2) for a, b in both])
    return ratios


def _engine(name: str, folder: Path, threads: int, pymarian: str | None) -> EngineProcess:
    """Begin the process of an engine, which translates as engines/turns.py says."""
    program = PROGRAMS[name]
    python = pymarian if program.export == "marian" else sys.executable
    place, sentences = folder / program.export / "1", folder / "sentences"
    command = [python, ENGINES / program.script, place, sentences, threads, *program.arguments]
    return EngineProcess(name, command, {})


def _tokens_per_second(name: str, engine: EngineProcess, batch: int) -> float:
    """Translate one batch.

    Raises:
        ValueError: A translation has not the tokens that every engine must give.
    """
    answer = engine.work(str(batch))
    if answer["counts"] != [TOKENS] * batch:
        raise ValueError(f"{name} gave {answer['counts']} tokens, not {TOKENS} each")
    return sum(answer["counts"]) / answer["seconds"]
