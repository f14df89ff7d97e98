"""The process of one engine that translates a batch, greedily, for every line that it reads.

python ENGINE_turns.py EXPORT SENTENCES THREADS ...   SENTENCES: pieces between blanks, one a line
"""

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

TOKENS = 32  # of every translation
SOURCE_TOKENS = 20  # of every sentence, with the end
BATCH = 32  # sentences at most

Translate = Callable[[list[list[str]]], list[int]]  # pieces -> tokens of each translation


def run(load: Callable[..., Translate]) -> None:
    """Translate as standard input says, and print figures as lines of JSON.

    Args:
        load: Called as `load(folder, threads, *arguments)` with those of the command line.
    """
    folder, sentences, threads, *arguments = sys.argv[1:]
    start = time.perf_counter()
    translate = load(Path(folder), int(threads), *arguments)
    _say(load_seconds=round(time.perf_counter() - start, 2))
    rows = [line.split() for line in Path(sentences).read_text(encoding="utf-8").splitlines()]
    for line in sys.stdin:
        batch = rows[: int(line)]
        start = time.perf_counter()
        counts = translate(batch)
        _say(seconds=time.perf_counter() - start, counts=counts)
    _say(peak_memory_megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def numbering(folder: Path) -> Callable[[list[str]], list[int]]:
    """Return a function from pieces of the source to ids, by a file beside an export."""
    file = min(folder.glob("*.pieces.json"))  # "source" is before "target"
    pieces = json.loads(file.read_text(encoding="utf-8"))["pieces"]
    numbers = {piece: number for number, piece in enumerate(pieces)}

    def ids_of(row: list[str]) -> list[int]:
        return [numbers[piece] for piece in row]

    return ids_of


def _say(**figures: object) -> None:
    print(json.dumps(figures), flush=True)
