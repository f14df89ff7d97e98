"""Read a JSON object from a stranger's file, and write one.

Every fault of a file that is read is a ValueError that names it.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HALF = re.compile(r"\\u[dD][89a-fA-F]")  # of a surrogate pair; two halves are a character
MAX_JSON_BYTES = 256 * 1024 * 1024  # a vocabulary of two million pieces has 60 MB


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file.

    Args:
        path: A file of UTF-8 text.

    Returns:
        The object as a dictionary, in the file's order.

    Raises:
        ValueError: The file is missing or too large, is not JSON, holds something else than an
            object or half a surrogate pair, or names a key twice.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder of the checkpoint")
    if path.stat().st_size > MAX_JSON_BYTES:
        raise ValueError(f"{path} has more than {MAX_JSON_BYTES:,} bytes; give a checkpoint's file")
    return parse_object(path.read_bytes(), str(path))


def parse_object(content: bytes, place: str) -> dict[str, Any]:
    """Return the JSON object that `content` is.

    Args:
        content: UTF-8 text.
        place: The name of its source, for messages.

    Returns:
        The object as a dictionary, in the order of the text.

    Raises:
        ValueError: As `read_object`.
    """
    doubles: list[str] = []

    def noting_doubles(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            doubles.extend(name for name, count in counts.items() if count > 1)
        return found

    try:
        text = content.decode("utf-8")
        values = json.loads(text, object_pairs_hook=noting_doubles)
        if HALF.search(text):
            json.dumps(values, ensure_ascii=False).encode("utf-8")  # fails for a half alone
    except (ValueError, RecursionError) as error:  # also a number of more digits than Python reads
        reason = str(error).splitlines()[0][:100]
        raise ValueError(f"{place} is not JSON ({reason}); copy the file again") from None
    if doubles:
        raise ValueError(f"{place} names {doubles[0]!r} twice; keep one of them")
    if not isinstance(values, dict):
        raise ValueError(f"{place} must hold a JSON object, not a {type(values).__name__}")
    return values


def write_object(path: Path, values: Mapping[str, object]) -> None:
    """Write a JSON object.

    Args:
        path: The new file.
        values: Plain values by name.
    """
    text = json.dumps(values, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")
