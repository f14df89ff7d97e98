"""Compare an exported LiteRT file with CTranslate2 int8, with the same random weights.

Each measurement runs in a new process. The maximum length is the length of the source, 32 tokens. A
cold start lasts from the start of a process to its first translation; the first cold start is not
counted. Peak memory is measured in a process that translates batches of one size. Private memory
excludes pages of files: the system can drop these and read them again, and their number depends on
how it caches the files.

With `extra_length=0`, the export reserves no cache for the 50 additional tokens that it otherwise
allows. The caches of a dynamic file then have the length of the source, and those in a static file
have the width of the signature.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks._engine_process import SCRIPTS
from benchmarks._random_models import END_ID, TOKENS, ids_of, random_sentences, random_translator
from benchmarks.decode import THREADS, load_ctranslate2

PEER = "ctranslate2 int8"
ENGINES = ("litert int8", "litert int8 static", PEER)

Decode = Callable[[list[str]], int]  # sentences -> tokens of their translations


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces per language")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32], help="batch sizes")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return speed, memory and cold start of every engine, the file sizes and the ratios."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _run("write", folder, options.preset, options.vocab_size)
        engines = {}
        for engine in ENGINES:
            engines[engine] = {"cold_start_seconds": _cold_start(folder, engine, options)}
        for batch in options.batches:
            for engine in ENGINES:
                if batch > 1 and "static" in engine:
                    continue  # a static file translates one sentence at a time
                run = _run("speed", folder, engine, options.vocab_size, batch, options.rounds)
                for figure in ("tokens_per_second", "peak_megabytes", "private_megabytes"):
                    engines[engine][f"{figure}_batch_{batch}"] = run[figure]
        sizes = {path.name: round(path.stat().st_size / 1e6, 1) for path in folder.glob("*.tflite")}
    print(json.dumps(engines, indent=2))
    return {
        "preset": options.preset,
        "threads": THREADS,
        "tokens": TOKENS,
        "engines": engines,
        "megabytes": sizes,
        "ratios": _ratios(engines),
    }


def _cold_start(folder: Path, engine: str, options: argparse.Namespace) -> float:
    """Return the median duration of new processes in seconds, after an uncounted first one."""
    seconds = []
    for _ in range(options.rounds + 1):
        run = _run("speed", folder, engine, options.vocab_size, 1, 0)
        seconds.append(run["wall_seconds"])
    return statistics.median(seconds[1:])


def _ratios(engines: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Return the ratios of the figures of each of our engines to the peer's."""
    theirs = engines[PEER]
    ratios = {}
    for engine, ours in engines.items():
        if engine != PEER:
            ratios[engine] = {name: round(ours[name] / theirs[name], 2) for name in ours}
    return ratios


def _run(task: str, *arguments: object) -> dict[str, Any]:
    """Run a task in a new process of this file and return the figures that it prints."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.on_device", task, *map(str, arguments)]
    process = subprocess.Popen(command, cwd=SCRIPTS, stdout=subprocess.PIPE, text=True)
    line = next(process.stdout or iter(()), "")
    seconds = time.perf_counter() - start
    process.communicate()
    if process.returncode:
        raise RuntimeError(f"{task} {arguments} ended with exit code {process.returncode}")
    return json.loads(line) | {"wall_seconds": round(seconds, 2)}


def write(folder: str, preset: str, vocab_size: str) -> dict[str, Any]:
    """Write the random model as LiteRT files and for CTranslate2."""
    from tfformer.export import ctranslate2 as ctranslate2_export
    from tfformer.export.litert import writer as litert_writer

    translator = random_translator(
        preset,
        int(vocab_size),
        beam_size=1,
        max_length=2 * TOKENS,
        dialect={"output_bias": True, "extra_length": 0},
    )
    files = {"float32": ("none", False), "int8": ("int8", False), "static": ("int8", True)}
    for name, (quantize, static) in files.items():
        path = Path(folder, f"{name}.tflite")
        litert_writer.write(path, translator, quantize, static, aligns=False)
    peer = Path(folder, "ctranslate2")
    peer.mkdir()
    ctranslate2_export.write(
        peer, translator.model, translator.tokenizers, TOKENS, quantization="int8"
    )
    return {}


def speed(folder: str, engine: str, vocab_size: str, batch: str, rounds: str) -> dict[str, Any]:
    """Translate one batch repeatedly; return tokens per second and memory in MB.

    The first round is not counted, unless it is the only one.
    """
    decode = _load(Path(folder), engine)
    sentences = random_sentences(int(vocab_size), int(batch), TOKENS)
    durations = []
    for _ in range(int(rounds) + 1):
        begin = time.perf_counter()
        assert decode(sentences) == TOKENS * len(sentences)
        durations.append(time.perf_counter() - begin)
    seconds = statistics.median(durations[1:] or durations)
    return {
        "tokens_per_second": round(int(batch) * TOKENS / seconds, 1),
        "peak_megabytes": _megabytes("VmHWM"),
        "private_megabytes": _megabytes("RssAnon"),
    }


def _megabytes(name: str) -> int:
    """Return the peak ("VmHWM") or private memory ("RssAnon") of this process."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return round(int(lines[name].split()[0]) / 1024)


def _load(folder: Path, engine: str) -> Decode:
    if engine == PEER:
        translate = load_ctranslate2(folder / "ctranslate2", "int8")
        return lambda sentences: sum(len(text.split()) for text in translate(sentences, 1))
    file = folder / ("static.tflite" if "static" in engine else "int8.tflite")
    return _litert(file)


def _litert(file: Path) -> Decode:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(file), num_threads=THREADS)
    runners = {}

    def decode(sentences: list[str]) -> int:
        rows = [ids_of(sentence) for sentence in sentences]
        longest = len(rows[0])
        name = "translate"
        if file.stem == "static":
            width = next(width for width in (16, 32, 64) if longest < width)
            rows = [[*row, *[END_ID] * width][:width] for row in rows]
            name = "translate" if width == 64 else f"translate_{width}"
        if name not in runners:
            runners[name] = interpreter.get_signature_runner(name)
        outputs = runners[name](
            ids=np.array(rows, np.int32), lengths=np.full(len(rows), longest, np.int32)
        )
        return int(outputs["lengths"].sum())

    return decode


if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    print(json.dumps(write(*arguments) if task == "write" else speed(*arguments)))
