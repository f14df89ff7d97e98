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
    """Tell what a data source holds.

    Files are told by the SHA-256 of their bytes; a data set of TFDS by its name, version, split and
    languages.

    Args:
        source: The data source, as `read_pairs` takes it.
        folder: File paths are relative to it.
        languages: The keys of the sides in TensorFlow Datasets.
        split: The split of a `tfds:NAME` without one.
        notes: A folder for notes about the files, see `noted_digest`.

    Returns:
        Of each corpus a plain value.

    Raises:
        FileNotFoundError: There is no such file.
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
    """Return the SHA-256 of a file, from a note if the file is as it was then.

    A note is trusted if path, inode, size and the times of the last change of content (mtime) and
    of the last change at all (ctime) are the same, in nanoseconds. A copy that keeps its mtime has
    another ctime.

    Args:
        file: The file.
        notes: A folder that takes a note for each file. A damaged note, or one that cannot be
            written, costs only the time to read the file again.

    Raises:
        FileNotFoundError: There is no such file.
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
