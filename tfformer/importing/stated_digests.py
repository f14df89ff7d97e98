"""Compares a checkpoint's files with the digests that came with them.

Three ways to state a digest are known: the cache of `huggingface_hub`, which names a file by its
digest; the notes that its downloads into a folder leave; and the list of the program `sha256sum`.
They are kept by Git's digest of a file, 40 hexadecimal digits, or by SHA-256, 64 of them.
"""

import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tfformer.files import file_digest

DOWNLOADS = Path(".cache", "huggingface", "download")
NOTE = ".metadata"  # behind a file's name: the commit, the file's digest and the time, a line each
LIST = "SHA256SUMS"
DIGEST = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
LISTED = re.compile("(?P<digest>[0-9a-f]{64}) [ *](?:\\./)?(?P<name>.+)")


class Stated(NamedTuple):
    """A digest that is stated of a file.

    Attributes:
        file: The file.
        digest: 40 or 64 hexadecimal digits.
        remedy: The way out for somebody who has changed the file on purpose.
    """

    file: Path
    digest: str
    remedy: str


def check_stated_digests(folder: Path) -> None:
    """Compare each file of a checkpoint with the digests that are stated of it.

    Args:
        folder: A folder; where nothing is stated, nothing is compared.

    Raises:
        ValueError: A file has another digest, or the list of `sha256sum` has a line that is none.
    """
    for of_a_kind in (_of_the_cache, _of_downloads, _of_the_list):
        for stated in of_a_kind(folder):
            found = _digest(stated.file, len(stated.digest))
            if found != stated.digest:
                raise ValueError(
                    f"{stated.file} is damaged or changed: its digest is {found[:12]}..., but "
                    f"{stated.digest[:12]}... came with it; copy it again, or {stated.remedy}"
                )


def _of_the_cache(folder: Path) -> Iterator[Stated]:
    """Digests of files that are links to blobs/DIGEST."""
    for path in sorted(folder.iterdir()):
        blob = path.resolve()
        if path.is_symlink() and blob.parent.name == "blobs" and DIGEST.fullmatch(blob.name):
            yield Stated(path, blob.name, "put a file in place of the link")


def _of_downloads(folder: Path) -> Iterator[Stated]:
    for note in sorted((folder / DOWNLOADS).glob(f"*{NOTE}")):
        file = folder / note.name.removesuffix(NOTE)
        lines = note.read_text(encoding="utf-8", errors="replace").splitlines()
        if file.is_file() and len(lines) > 1 and DIGEST.fullmatch(lines[1]):
            yield Stated(file, lines[1], f"remove {note}")


def _of_the_list(folder: Path) -> Iterator[Stated]:
    place = folder / LIST
    lines = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
    for number, line in enumerate(lines.splitlines(), 1):
        listed = LISTED.fullmatch(line)
        if listed is None:
            raise ValueError(
                f"{place}, line {number}: {line[:80]!r} is no line of sha256sum; write the list "
                "again, or remove it"
            )
        if (file := folder / listed["name"]).is_file():
            yield Stated(file, listed["digest"], f"write {place} again")


def _digest(file: Path, digits: int) -> str:
    """Git's digest is the SHA-1 of the file behind a head with its size."""
    if digits == 64:
        return file_digest(file)
    content = file.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
