"""Read small text and JSON files, which may be damaged."""

import hashlib
import json
import stat
from pathlib import Path

MAX_BYTES = 65_536  # thirty times the package's largest recipe


def read_text(path: Path) -> str:
    """Read a regular UTF-8 file of at most `MAX_BYTES` bytes; other files raise ValueError."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is not a regular file; use a regular file")
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"{path} has more than {MAX_BYTES:,} bytes; check that it is the right file"
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 at byte {error.start + 1}; save it as UTF-8 text"
        ) from None


def parse_json(text: str) -> object:
    """Parse JSON; raise ValueError for any text that is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("collections are nested too deeply") from None


def digest_of_values(values: object) -> str:
    """Return the SHA-256 of plain JSON values, independent of the order of keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
