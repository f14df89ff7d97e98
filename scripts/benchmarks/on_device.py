"""Compare an exported LiteRT file with CTranslate2 int8, with the same random weights.

Each measurement runs in a new process. The end token has a bias of -1e9 and the maximum length is
the length of the source, so 8 source tokens give 8 target tokens. A cold start lasts from the start
of a process to its first translation; the first cold start is not counted. Peak memory is measured
in a process that translates batches of one size. Private memory excludes pages of files: the system
can drop these and read them again, and their number depends on how it caches the files.

With `extra_length=0`, the export reserves no cache for the 50 additional tokens that it otherwise
allows. The caches of a dynamic file then have the length of the source, and those in a static file
have the width of the signature.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.decode import vocabulary

THREADS = 2
TOKENS = 32
END_ID = 3
PEER = "ctranslate2 int8"
ENGINES = ("litert int8", "litert int8 static", PEER)

Decode = Callable[[list[list[int]]], int]  # pieces of sentences -> tokens of their translations


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--preset", default="base", help="tiny, small, base or big")
    parser.add_argument("--vocab-size", type=int, default=32000, help="pieces per language")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 32], help="batch sizes")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds per engine")


def measure(options: argparse.Namespace) -> dict:
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
        short = _run("lengths", folder, "litert int8 static", options.vocab_size, 1, options.rounds)
        sizes = {path.name: round(path.stat().st_size / 1e6, 1) for path in folder.glob("*.tflite")}
    print(json.dumps(engines, indent=2))
    return {
        "preset": options.preset,
        "threads": THREADS,
        "tokens": TOKENS,
        "engines": engines,
        "megabytes": sizes,
        "static_8_to_32_tokens": short["ratio"],
        "ratios": _ratios(engines),
    }


def _cold_start(folder: Path, engine: str, options: argparse.Namespace) -> float:
    """Return the median duration of new processes in seconds, after an uncounted first one."""
    seconds = []
    for _ in range(options.rounds + 1):
        run = _run("start", folder, engine, options.vocab_size, 1, 1)
        seconds.append(run["wall_seconds"])
    return statistics.median(seconds[1:])


def _ratios(engines: dict[str, dict]) -> dict[str, dict[str, float]]:
    """Return the ratios of the figures of each of our engines to the peer's."""
    return {
        engine: _over(ours, engines[PEER]) for engine, ours in engines.items() if engine != PEER
    }


def _over(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, float]:
    return {name: round(value / theirs[name], 2) for name, value in ours.items()}


def _run(task: str, *arguments: object) -> dict:
    """Run a task in a new process of this file and return the figures that it prints."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.on_device", task, *map(str, arguments)]
    process = subprocess.Popen(
        command, cwd=Path(__file__).parents[1], stdout=subprocess.PIPE, text=True
    )
    line = process.stdout.readline()
    seconds = time.perf_counter() - start
    process.communicate()
    if process.returncode:
        raise RuntimeError(f"{task} {arguments} ended with exit code {process.returncode}")
    return json.loads(line) | {"wall_seconds": round(seconds, 2)}


def write(folder: str, preset: str, vocab_size: str) -> dict:
    """Write the random model as LiteRT files and for CTranslate2."""
    import numpy as np

    from tfformer import Transformer
    from tfformer.config import PRESETS
    from tfformer.data.tokenizers import Tokenizer
    from tfformer.export import ctranslate2 as ctranslate2_export
    from tfformer.export.litert import writer as litert_writer
    from tfformer.inference.translator import Translator

    shape = PRESETS[preset] | {
        "tie_embeddings": "all",
        "dialect": {"output_bias": True, "extra_length": 0},
    }
    tokenizer = Tokenizer(vocabulary(int(vocab_size)))
    model = Transformer(int(vocab_size), int(vocab_size), **shape)
    model.output_bias.assign(-1e9 * np.eye(int(vocab_size))[END_ID])
    random = Translator(model, tokenizer, beam_size=1, length_penalty=0.0, max_length=2 * TOKENS)
    files = {"float32": ("none", False), "int8": ("int8", False), "static": ("int8", True)}
    for name, (quantize, static) in files.items():
        path = Path(folder) / f"{name}.tflite"
        litert_writer.write(path, random, quantize, static)
    (Path(folder) / "ctranslate2").mkdir()
    ctranslate2_export.write(
        Path(folder) / "ctranslate2", model, random.tokenizers, TOKENS, quantization="int8"
    )
    return {}


def start(folder: str, engine: str, vocab_size: str, batch: str, rounds: str) -> dict:
    """Load an engine and translate one batch."""
    decode = _load(Path(folder), engine)
    return {"tokens": decode(_sentences(int(vocab_size), int(batch), TOKENS))}


def speed(folder: str, engine: str, vocab_size: str, batch: str, rounds: str) -> dict:
    """Translate one batch repeatedly; return tokens per second and memory in MB."""
    decode = _load(Path(folder), engine)
    rows = _sentences(int(vocab_size), int(batch), TOKENS)
    seconds = _seconds(decode, rows, int(rounds))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "tokens_per_second": round(int(batch) * TOKENS / seconds, 1),
        "peak_megabytes": round(peak),
        "private_megabytes": round(_private_kilobytes() / 1024),
    }


def lengths(folder: str, engine: str, vocab_size: str, batch: str, rounds: str) -> dict:
    """Return the ratio of the durations of sentences of 8 and of 32 tokens."""
    decode = _load(Path(folder), engine)
    seconds = {}
    for tokens in (8, 32):
        rows = _sentences(int(vocab_size), 1, tokens)
        seconds[tokens] = _seconds(decode, rows, 3 * int(rounds), tokens)
    return {"ratio": round(seconds[8] / seconds[32], 2)}


def _private_kilobytes() -> int:
    """Return the memory of this process without pages of files, as counted by Linux."""
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return int(lines["RssAnon"].split()[0])


def _seconds(decode: Decode, rows: list[list[int]], rounds: int, tokens: int = TOKENS) -> float:
    """Return the median duration of a round, after an uncounted warm-up round."""
    durations = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        assert decode(rows) == tokens * len(rows)
        durations.append(time.perf_counter() - begin)
    return statistics.median(durations[1:])


def _sentences(vocab_size: int, count: int, tokens: int) -> list[list[int]]:
    """Return random sentences of `tokens` - 1 pieces; the end token is the last token."""
    import random

    dice = random.Random(1)

    def sentence() -> list[int]:
        return [dice.randrange(4, vocab_size) for _ in range(tokens - 1)]

    return [sentence() for _ in range(count)]


def _load(folder: Path, engine: str) -> Decode:
    if engine == PEER:
        return _ctranslate2(folder / "ctranslate2")
    file = folder / ("static.tflite" if "static" in engine else "int8.tflite")
    return _litert(file)


def _litert(file: Path) -> Decode:
    import numpy as np
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(model_path=str(file), num_threads=THREADS)
    runners = {}

    def decode(rows: list[list[int]]) -> int:
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


def _ctranslate2(folder: Path) -> Decode:
    import ctranslate2

    translator = ctranslate2.Translator(
        str(folder), compute_type="int8", inter_threads=1, intra_threads=THREADS
    )

    def words_of(row: list[int]) -> list[str]:
        return [f"\u2581w{piece}" for piece in row]

    def decode(rows: list[list[int]]) -> int:
        results = translator.translate_batch(
            list(map(words_of, rows)),
            beam_size=1,
            min_decoding_length=TOKENS,
            max_decoding_length=TOKENS,
        )
        return sum(len(result.hypotheses[0]) for result in results)

    return decode


TASKS = {"write": write, "start": start, "speed": speed, "lengths": lengths}

if __name__ == "__main__":
    task, *arguments = sys.argv[1:]
    print(json.dumps(TASKS[task](*arguments)))
