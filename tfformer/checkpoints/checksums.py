"""Compares a checkpoint's files with the digests that came with them.

Four ways to state a digest are known: the cache of `huggingface_hub`, which names a file by its
digest; the notes that its downloads into a folder leave; the list of the program `sha256sum`; and
the manifest of an export by this package. A digest is SHA-256, 64 hexadecimal digits, or has 40 of
them, such as Git's of a file.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tfformer.storage.run_folders import MANIFEST
from tfformer.storage.whole_files import file_digest

DOWNLOADS = Path(".cache", "huggingface", "download")
NOTE = ".metadata"  # behind a file's name: the commit, the file's digest and the time, a line each
LIST = "SHA256SUMS"
DIGEST = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
LISTED = (  # a line of `sha256sum`, and of `sha256sum --tag`
    re.compile(r"(?P<digest>[0-9a-fA-F]{64}) [ *](?:\./)?(?P<name>.+)"),
    re.compile(r"SHA256 \((?:\./)?(?P<name>.+)\) = (?P<digest>[0-9a-fA-F]{64})"),
)


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
        ValueError: A file has another digest, or a list of digests cannot be read.
    """
    for of_a_kind in (_of_the_cache, _of_downloads, _of_the_list, _of_the_manifest):
        for stated in of_a_kind(folder):
            found = _digests(stated.file, len(stated.digest))
            if stated.digest not in found:
                raise ValueError(
                    f"{stated.file} is damaged or changed: its digest is {found[0][:12]}..., but "
                    f"{stated.digest[:12]}... came with it; copy it again, or {stated.remedy}"
                )


def _of_the_cache(folder: Path) -> Iterator[Stated]:
    """Digests of files that are links to blobs/DIGEST."""
    for path in sorted(path for path in folder.iterdir() if path.is_symlink() and path.is_file()):
        blob = path.resolve()
        if blob.parent.name == "blobs" and DIGEST.fullmatch(blob.name):
            yield Stated(path, blob.name, "put a file in place of the link")


def _of_downloads(folder: Path) -> Iterator[Stated]:
    for note in sorted((folder / DOWNLOADS).glob(f"*{NOTE}")):
        file = folder / note.name.removesuffix(NOTE)
        lines = note.read_text(encoding="utf-8", errors="replace").splitlines()
        if file.is_file() and len(lines) > 1 and DIGEST.fullmatch(lines[1]):
            yield Stated(file, lines[1], f"remove {note}")


def _of_the_list(folder: Path) -> Iterator[Stated]:
    """Digests of the files that are there; the list may name itself too."""
    place = folder / LIST
    lines = place.read_text(encoding="utf-8", errors="replace") if place.is_file() else ""
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        listed = next(filter(None, (form.fullmatch(line) for form in LISTED)), None)
        if listed is None:
            raise ValueError(
                f"{place}, line {number}: {line[:80]!r} is no line of sha256sum; write the list "
                "again, or remove it"
            )
        file = folder / listed["name"]
        if file.is_file() and file != place:
            yield Stated(file, listed["digest"].lower(), f"write {place} again")


def _of_the_manifest(folder: Path) -> Iterator[Stated]:
    """Digests that an export states; other programs have other manifests."""
    place = folder / MANIFEST
    if not place.is_file():
        return
    try:
        manifest = json.loads(place.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place} is damaged ({error}); copy it again, or remove it") from None
    digests = manifest.get("digests") if isinstance(manifest, dict) else None
    if not isinstance(digests, dict):
        return
    for name, digest in digests.items():
        file = folder / name
        if file.is_file() and isinstance(digest, str) and DIGEST.fullmatch(digest):
            yield Stated(file, digest, f"remove {place}")


def _digests(file: Path, digits: int) -> list[str]:
    """Return the digests of a file that have so many digits.

    Git's is the SHA-1 of the file behind a head with its size. Some mirrors of the hub state that
    of the file alone.
    """
    if digits == 64:
        return [file_digest(file)]
    content = file.read_bytes()
    head = b"blob %d\0" % len(content)
    both = (head + content, content)
    return [hashlib.sha1(part, usedforsecurity=False).hexdigest() for part in both]
