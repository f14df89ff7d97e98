"""Texts that lie in many files: the parts that a pattern names, side by side."""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path


def matching_files(names: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Return the files of each part of a text, one file per side, in the order of the parts' names.

    A `*` in a name matches any text within a file name, the same text on all sides. Names without a
    `*` are one part, whether these files exist or not.

    Raises:
        FileNotFoundError: No file matches, or a part lacks a side.
        ValueError: One side has more stars than the other.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> for name in ("part-1.en", "part-1.de", "part-2.en", "part-2.de"):
        ...     folder.joinpath(name).touch()
        >>> parts = matching_files([folder / "part-*.en", folder / "part-*.de"])
        >>> [[file.name for file in part] for part in parts]
        [['part-1.en', 'part-1.de'], ['part-2.en', 'part-2.de']]
    """
    stars = {str(name).count("*") for name in names}
    if stars == {0}:
        return [tuple(names)]
    if len(stars) > 1:
        raise ValueError(
            f"{' and '.join(map(str, names))} must have as many * as each other, since each stands "
            "for the same text in both"
        )
    found = [_found(str(name)) for name in names]
    for number, name in enumerate(names):
        if not found[number]:
            raise FileNotFoundError(
                f"{name}: no file has such a name; correct it or fetch the data first"
            )
        for part, files in sorted((part, file) for side in found for part, file in side.items()):
            if part not in found[number]:
                raise FileNotFoundError(
                    f"{_filled(str(name), part)}: there is no such file, but {files} needs it as "
                    "its other side"
                )

    def files_of(part: tuple[str, ...]) -> tuple[Path, ...]:
        return tuple(side[part] for side in found)

    return list(map(files_of, sorted(found[0])))


def _found(pattern: str) -> dict[tuple[str, ...], Path]:
    """What the stars stand for -> the file, of all files of the pattern."""
    pieces = pattern.split("*")
    regex = re.compile("([^/]*)".join(map(re.escape, pieces)))
    matches = map(regex.fullmatch, glob.iglob("*".join(map(glob.escape, pieces))))
    return {match.groups(): Path(match[0]) for match in matches if match}


def _filled(pattern: str, part: tuple[str, ...]) -> str:
    pieces = pattern.split("*")
    return "".join(piece + text for piece, text in zip(pieces, (*part, ""), strict=True))
