"""The sizes of the parts that scripts/faults.sh raises, and its table's lines."""

import os
from pathlib import Path


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
