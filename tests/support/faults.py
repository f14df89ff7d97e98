"""Sample sizes, which scripts/faults.sh increases, and the lines of its table."""

import os
from collections import Counter
from pathlib import Path

cases: Counter[str] = Counter()  # how often each kind of fault was checked for
seen: Counter[str] = Counter()  # how often it was found


def size(kind: str, sample: int) -> int:
    """Return how many cases of a part to try: the environment's FAULTS_PART, or `sample`."""
    return int(os.environ.get(f"FAULTS_{kind.upper()}", sample))


def record(subject: str, outcome: str) -> None:
    """Add a line to the table, if FAULTS_TABLE names one."""
    line = f"{subject:<42} {outcome}"
    print(line)
    if table := os.environ.get("FAULTS_TABLE"):
        with Path(table).open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def check_without(evil: str, is_without: bool, evidence: object) -> None:
    """Count and assert that a case does not show a kind of fault, such as "hangs".

    Args:
        evil: the kind of fault.
        is_without: whether the case is good.
        found: the assertion's message if it is not.
    """
    cases[evil] += 1
    seen[evil] += not is_without
    assert is_without, evidence


def record_evils() -> None:
    """Add the lines with the totals over all parts."""
    for evil, count in cases.items():
        record(f"{evil}, of all parts", f"{seen[evil]} of {count:,}")
