"""The content of a text in a few digests, which tell two texts apart."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tfformer.config import SELF_CONTAINED, corpora_of
from tfformer.data.sources import read_pairs, source_files, tfds_version
from tfformer.storage.small_files import parse_json, read_text
from tfformer.storage.whole_files import write_text


def text_fingerprint(
    source: str | Path | Sequence[Any],
    folder: str | Path,
    languages: tuple[str, ...] | None,
    split: str,
    notes: Path,
) -> list[dict[str, Any]]:
    """Return a plain value per corpus that identifies the content of a data source.

    A file is identified by the SHA-256 of its bytes, a TFDS data set by name, version, split and
    languages. `notes` is a folder for `noted_digest`; the other arguments are those of
    `read_pairs`.
    """
    return [
        _corpus_fingerprint(corpus.text, folder, languages, split, notes)
        for corpus in corpora_of(source)
    ]


def _corpus_fingerprint(
    text: str | list[str],
    folder: str | Path,
    languages: tuple[str, ...] | None,
    split: str,
    notes: Path,
) -> dict[str, Any]:
    name = str(text)
    if name.startswith("tfds:"):
        name, _, own_split = name.removeprefix("tfds:").partition("@")
        return {"tfds": tfds_version(name), "split": own_split or split, "languages": languages}
    if name.startswith(SELF_CONTAINED):
        rows = json.dumps(list(read_pairs(name)))
        return {"rows": hashlib.sha256(rows.encode()).hexdigest(), "languages": languages}
    digest = functools.partial(noted_digest, notes=notes)
    return {"files": [list(map(digest, files)) for files in source_files(text, folder)]}


def noted_digest(file: Path, notes: Path) -> str:
    """Return the SHA-256 of a file, from a note if the file has not changed since.

    A note is trusted if path, inode, size, mtime and ctime are equal, in nanoseconds: a copy that
    keeps its mtime has another ctime. A note that is damaged or cannot be written only costs the
    time to read the file again.
    """
    if not file.is_file():
        raise FileNotFoundError(
            f"{file}: there is no such file; correct the path or fetch the data first"
        )
    status = file.stat()
    numbers = [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    path = str(file.resolve())
    seen = {"path": path, "status": numbers}
    note = notes / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}.json"
    with suppress(OSError, ValueError):
        known = parse_json(read_text(note))
        if isinstance(known, dict) and known.get("seen") == seen:
            return str(known["sha256"])
    with file.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    with suppress(OSError):
        notes.mkdir(parents=True, exist_ok=True)
        write_text(note, json.dumps({"seen": seen, "sha256": digest}) + "\n")
    return digest
