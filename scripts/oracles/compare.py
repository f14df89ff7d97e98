"""Count the equal translations in two JSON files, which contain lists of texts or [text, score].

Usage: python scripts/oracles/compare.py ours.json theirs.json
"""

import json
import sys
from pathlib import Path


def texts(path: str) -> list[str]:
    """Read the texts of a file."""
    values = json.loads(Path(path).read_text(encoding="utf-8"))
    return [value[0] if isinstance(value, list) else value for value in values]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    ours, theirs = texts(sys.argv[1]), texts(sys.argv[2])
    pairs = [(a.strip(), b.strip()) for a, b in zip(ours, theirs, strict=True)]
    unequal = [(a, b) for a, b in pairs if a != b]
    cut = sum(a.startswith(b) or b.startswith(a) for a, b in unequal)
    print(f"{len(pairs) - len(unequal)} of {len(pairs)} equal, {cut} cut at another length")
    for a, b in unequal[:5]:
        print(f"  {a!r}\n  {b!r}")
