"""A corpus by one worker, by two, on Ray, with a machine lost on the way, and by other loops.

Every way translates the same files with one thread a worker, and its lines are compared with those
of one worker. "Two commands" are two that know nothing of each other, each with half of the files:
what the machine can do at most. The start is the time that one line takes.
"""

import argparse
import operator
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks._machine import spread, spread_text

ENGINES = Path(__file__).parent / "engines"
HALVES = ("a", "b")  # in the names of files
TRANSLATE = [sys.executable, "-m", "tfformer", "translate"]

Commands = list[list[str]]  # that run at once
Way = Callable[[str, Path], Commands]  # a pattern of files and the folder of the translations


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--model", required=True, help="a run or an export")
    parser.add_argument(
        "--beside",
        nargs="*",
        default=[],
        metavar="MODEL",
        help="the run and its exports for other runtimes, each by one worker",
    )
    parser.add_argument("--text", required=True, help="sentences, one a line, which are drawn")
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--ctranslate2", help="the version of an export, for CTranslate2's own loop"
    )
    parser.add_argument(
        "--transformers",
        nargs=2,
        metavar=("PYTHON", "EXPORT"),
        help="an environment with transformers and torch, and an export by --format hugging_face",
    )
    parser.add_argument(
        "--lose", action="store_true", help="only: on three machines, of which one is lost"
    )


def measure(options: argparse.Namespace) -> dict:
    """Return the seconds of every way.

    Returns:
        `start` and the rounds of `seconds` of each way, the spread of `lines_per_second` without
        the start, `ratios` round by round, and `equal_lines`: of each way, how many are those of
        one worker; with `--lose` what became of the text alone.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder, options)
        if options.lose:
            return {"lines": options.lines, "lost": _with_a_loss(options, folder)}
        return {"lines": options.lines} | _ways(options, folder)


def write_corpus(folder: Path, options: argparse.Namespace, seed: int = 1) -> None:
    """Write `part-*`, drawn sentences, and `line-*`, a sentence for each of two workers."""
    sentences = Path(options.text).read_text(encoding="utf-8").splitlines(keepends=True)
    draw = random.Random(seed)
    for number in range(options.files):
        drawn = draw.choices(sentences, k=options.lines // options.files)
        (folder / f"part-{HALVES[number % 2]}{number:03}").write_text("".join(drawn), "utf-8")
    for half in HALVES:
        (folder / f"line-{half}").write_text(sentences[0], "utf-8")


def _ways(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    seconds: dict[str, list[float]] = {}
    start: dict[str, float] = {}
    equal: dict[str, int] = {}
    expected: list[str] = []  # the lines of the first way
    with _cluster([2]) as (address, _):
        ways = dict(_named_ways(options, address))
        for name, way in ways.items():
            start[name], _ = _timed(way, "line-*", folder)
            seconds[name] = []
        for _ in range(options.rounds):
            for name, way in ways.items():
                taken, lines = _timed(way, "part-*", folder)
                expected = expected or lines
                seconds[name].append(taken)
                equal[name] = min(_equal(lines, expected), equal.get(name, len(expected)))
                print(f"{name:24} {taken:7.1f} s", flush=True)
    rates = {
        name: _lines_per_second(options.lines, start[name], rounds)
        for name, rounds in seconds.items()
    }
    for name, rounds in rates.items():
        of_way = f"start {start[name]:.1f} s, {equal[name]:,} equal lines"
        print(f"{name:24} {spread_text(rounds, 'lines/s')}, {of_way}")
    return {
        "start": start,
        "seconds": seconds,
        "lines_per_second": {name: spread(rounds) for name, rounds in rates.items()},
        "ratios": _ratios(seconds),
        "equal_lines": equal,
    }


def _lines_per_second(lines: int, start: float, rounds: list[float]) -> list[float]:
    """Return the rate of each round, without the seconds that a way takes to start."""
    return [round(lines / (seconds - start), 1) for seconds in rounds]


def _named_ways(options: argparse.Namespace, address: str) -> Iterator[tuple[str, Way]]:
    def ours(model: str, *more: str) -> Way:
        return lambda pattern, output: [_command(model, pattern, output, *more)]

    def halves(pattern: str, output: Path) -> Commands:
        patterns = {half: pattern.replace("*", f"{half}*") for half in HALVES}
        return [
            _command(options.model, of_half, output / half, "--workers", "1")
            for half, of_half in patterns.items()
        ]

    yield "one worker", ours(options.model, "--workers", "1")
    for model in options.beside:
        yield f"one worker, {model}", ours(model, "--workers", "1")
    yield "two workers", ours(options.model, "--workers", "2")
    yield "two commands", halves
    yield "Ray, two workers", ours(options.model, "--workers", "2", "--ray", address)
    if options.ctranslate2:
        program = [sys.executable, str(ENGINES / "ctranslate2_loop.py"), options.ctranslate2]
        yield "CTranslate2's loop", _loop(program)
    if options.transformers:
        python, export = options.transformers
        yield "Transformers' loop", _loop([python, str(ENGINES / "transformers_loop.py"), export])


def _command(model: str, pattern: str, output: Path, *more: str) -> list[str]:
    words = ["--input", pattern, "--output", str(output), "--beam-size", "1"]
    return [*TRANSLATE, model, *words, *more]


def _loop(program: list[str]) -> Way:
    def commands(pattern: str, output: Path) -> Commands:
        files = sorted(Path(pattern).parent.glob(Path(pattern).name))
        return [[*program, str(output), *map(str, files)]]

    return commands


def _timed(way: Way, pattern: str, folder: Path) -> tuple[float, list[str]]:
    """Return the seconds of a way, and the lines of its translations."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        begin = time.monotonic()
        commands = way(str(folder / pattern), Path(name))
        processes = [subprocess.Popen(one, stdout=subprocess.DEVNULL) for one in commands]
        codes = [process.wait() for process in processes]
        seconds = round(time.monotonic() - begin, 2)
        if any(codes):
            raise OSError(f"{commands} ended with {codes}")
        return seconds, _lines(Path(name))


def _lines(folder: Path) -> list[str]:
    """Return the lines of all translations, in the order of their names."""
    files = sorted(folder.rglob("part-*"), key=lambda file: file.name)
    return [line for file in files for line in file.read_text(encoding="utf-8").split("\n")[:-1]]


def _equal(lines: list[str], expected: list[str]) -> int:
    """Return how many lines are equal; ValueError if one is missing."""
    if len(lines) != len(expected):
        raise ValueError(f"{len(lines)} lines were written in place of {len(expected)}")
    return sum(map(operator.eq, lines, expected))


def _ratios(seconds: dict[str, list[float]]) -> dict[str, dict[str, float]]:
    """Return the spread of the rounds' ratios."""

    def ratio(first: str, second: str) -> dict[str, float]:
        pairs = zip(seconds[first], seconds[second], strict=True)
        return spread([round(one / other, 3) for one, other in pairs])

    return {
        "two workers are so many times as fast as one": ratio("one worker", "two workers"),
        "two commands": ratio("one worker", "two commands"),
        "two workers, of two commands": ratio("two commands", "two workers"),
        "Ray's seconds, of the processes'": ratio("Ray, two workers", "two workers"),
    }


def _with_a_loss(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Translate on three machines, of which one is lost and replaced, and with one worker."""
    with tempfile.TemporaryDirectory(dir=folder) as name, _cluster([1, 1, 1]) as (address, cluster):
        output, begin = Path(name), time.monotonic()
        more = ("--workers", "3", "--ray", address)
        process = subprocess.Popen(_command(options.model, str(folder / "part-*"), output, *more))
        events = {}
        for share, event, act in _events(cluster):
            while len(list(output.glob("part-*"))) < share * options.files:
                if process.poll() is not None:
                    raise OSError(f"the translation ended with {process.returncode}")
                time.sleep(0.1)
            act()
            events[event] = round(time.monotonic() - begin, 1)
            print(event, events[event], "s", flush=True)
        if process.wait() != 0:
            raise OSError(f"the translation ended with {process.returncode}")
        seconds, lines = round(time.monotonic() - begin, 1), _lines(output)
    alone, expected = _timed(
        lambda pattern, output: [_command(options.model, pattern, output, "--workers", "1")],
        "part-*",
        folder,
    )
    return {
        "events": events,
        "seconds": seconds,
        "seconds_of_one_worker": alone,
        "lines_written": len(lines),
        "equal_lines": _equal(lines, expected),
    }


def _events(cluster: Any) -> Iterator[tuple[float, str, Callable[[], object]]]:
    """Yield the share of the files after which something happens to the cluster."""
    victim = cluster.worker_nodes.copy().pop()
    yield 0.3, "lost", lambda: cluster.remove_node(victim, allow_graceful=False)
    yield 0.5, "added", lambda: cluster.add_node(num_cpus=1)


@contextmanager
def _cluster(processors: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Yield the address of a Ray cluster with machines of so many processors, and the cluster."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": processors[0]})
    try:
        for count in islice(processors, 1, None):
            cluster.add_node(num_cpus=count)
        yield cluster.address, cluster
    finally:
        cluster.shutdown()
