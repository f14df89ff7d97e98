"""The sizes of the parts that scripts/faults.sh raises, and its table's lines."""

import os
from collections import Counter
from pathlib import Path

cases: Counter[str] = Counter()  # of each evil that was looked for
seen: Counter[str] = Counter()  # and those that had it


def size(part: str, sample: int) -> int:
    """How much of a part is tried: FAULTS_PART of the environment, or a sample."""
    return int(os.environ.get(f"FAULTS_{part.upper()}", sample))


def record(part: str, found: str) -> None:
    """Add a line to the table, if there is one to be made."""
    line = f"{part:<42} {found}"
    print(line)
    if table := os.environ.get("FAULTS_TABLE"):
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def check_without(evil: str, is_without: bool, found: object) -> None:
    """Count a case of the evils that the table ends with, such as "hangs"; it must be without.

    Args:
        evil: the evil's name.
        is_without: whether the case is good.
        found: what the message of a bad one says.
    """
    cases[evil] += 1
    seen[evil] += not is_without
    assert is_without, found


def record_evils() -> None:
    """Add the lines of all parts together."""
    for evil, count in cases.items():
        record(f"{evil}, of all parts", f"{seen[evil]} of {count:,}")
