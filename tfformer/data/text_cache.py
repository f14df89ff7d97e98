"""Encoded text in files, written once and mapped by every training that needs it.

A cache is a folder with a subfolder per encoded text, named by a digest of everything that the ids
depend on:

KEY/manifest.json     the key in full, the row counts, the digest of the ids, and its own digest
KEY/SIDE.ids.npy      the ids of one side, or the links, in the smallest sufficient type
KEY/SIDE.offsets.npy  the start of each row, and the end of the last row
"""

from __future__ import annotations

import functools
import json
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import sentencepiece

from tfformer.config import corpora_of
from tfformer.data.encoding import EncodedText, IdRows, Sides, array_dtypes, encode_corpora
from tfformer.data.sources import Row, check_exists, read_linked_pairs, source_files, tfds_version
from tfformer.data.tokenizers import Tokenizer
from tfformer.storage.whole_files import (
    OWN_BYTES,
    digest_of_values,
    file_digest,
    parse_json,
    publish_as,
    read_text,
    temporary_folder,
    write_text,
)

# Increase this when a change here, in augmentation, encoding or sources gives other rows or ids.
FORMAT = 4
MANIFEST = "manifest.json"
ARRAYS = {1: ("text",), 2: ("source", "target"), 3: ("source", "target", "links")}  # their names


def cached_text(
    folder: Path,
    fingerprint: Callable[[], object],
    read_corpora: Callable[[], Iterable[Iterable[Row]]],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
    with_links: bool = False,
) -> EncodedText:
    """Return an encoded text whose arrays are mapped from files in `folder`.

    If the text is not in the cache, it is read, encoded and written atomically. If two processes do
    this at the same time, both then read the files of the process that finished first.
    `fingerprint` returns a plain value that identifies the text; the other arguments are those of
    `encode_corpora`.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"data.cache={folder} is a file; set it to a folder, or leave it out")
    content = fingerprint()
    key = {  # everything that the ids depend on
        "format": FORMAT,
        "text": digest_of_values(content),
        "vocabularies": [tokenizer.digest for tokenizer in tokenizers],
        "max_length": max_length,
        "links": with_links,
        "sentencepiece": sentencepiece.__version__,
    }
    entry = folder / digest_of_values(key)[:32]
    if not entry.exists():
        with temporary_folder(folder) as temporary:
            dtypes = array_dtypes(tokenizers, max_length, with_links)
            collect = functools.partial(_write_arrays, temporary, dtypes, max_length)
            text = encode_corpora(
                read_corpora(), tokenizers, max_length, on_progress, collect, with_links
            )
            if fingerprint() != content:
                raise ValueError(
                    "the training text was changed while it was encoded; start again when it is "
                    "complete"
                )
            values = {
                "key": key,
                "corpora": text.corpora,
                "dropped_empty": text.dropped_empty,
                "dropped_long": text.dropped_long,
                "ids": text.digest,
            }
            manifest = json.dumps(values | {"digest": digest_of_values(values)}, indent=2)
            write_text(temporary / MANIFEST, manifest + "\n")
            publish_as(temporary, entry)
    return _open(entry, key, ARRAYS[len(tokenizers) + with_links])


# Writing


def _write_arrays(
    folder: Path, dtypes: Sequence[np.dtype], max_length: int, chunks: Iterator[Sides]
) -> Sides:
    names = ARRAYS[len(dtypes)]
    with ExitStack() as stack:
        writers = [
            stack.enter_context(_RowsWriter(folder, name, dtype, max_length=max_length))
            for name, dtype in zip(names, dtypes, strict=True)
        ]
        for sides in chunks:
            for writer, rows in zip(writers, sides, strict=True):
                writer.add(rows)
    return _mapped(folder, names)


class _RowsWriter:
    """Writes the rows of one side as they arrive; only the lengths stay in memory."""

    def __init__(self, folder: Path, name: str, dtype: np.dtype, *, max_length: int) -> None:
        self._ids, self._offsets = _array_files(folder, name)
        self._dtype = dtype
        self._lengths = [np.zeros(0, np.min_scalar_type(max_length))]
        self._size = 0

    def __enter__(self) -> _RowsWriter:
        self._file = self._ids.open("wb")
        self._write_header()
        return self

    def add(self, rows: IdRows) -> None:
        with _explained(self._ids):
            self._file.write(rows.ids.astype(self._dtype, copy=False).data)
            self._file.flush()
        self._lengths.append(rows.lengths.astype(self._lengths[0].dtype))
        self._size += len(rows.ids)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            with suppress(OSError):  # the disk is still full
                self._file.close()
            return
        with _explained(self._ids), self._file:
            self._file.seek(0)
            self._write_header()
        lengths = np.concatenate(self._lengths)
        offsets = np.zeros(len(lengths) + 1, np.min_scalar_type(self._size))
        np.cumsum(lengths, dtype=offsets.dtype, out=offsets[1:])
        with _explained(self._offsets):
            np.save(self._offsets, offsets)

    def _write_header(self) -> None:
        """Write the header, whose length does not depend on the number of ids."""
        descr = np.lib.format.dtype_to_descr(self._dtype)
        header = {"descr": descr, "fortran_order": False, "shape": (self._size,)}
        np.lib.format.write_array_header_1_0(self._file, header)


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """Name the file in errors about writing it, such as on a full disk."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise OSError(
            f"{file.name} of the text cache cannot be written ({reason}); free some space, or set "
            "data.cache to another folder"
        ) from error


# Reading


def _open(entry: Path, key: dict[str, Any], names: Sequence[str]) -> EncodedText:
    """Map a text's files, and verify their digest."""
    try:
        if not (entry / MANIFEST).is_file():
            raise ValueError(f"{MANIFEST} is missing")
        values = parse_json(read_text(entry / MANIFEST, OWN_BYTES))
        digest = values.pop("digest", None) if isinstance(values, dict) else None
        if not isinstance(values, dict) or digest != digest_of_values(values):
            raise ValueError(f"{MANIFEST} does not match its digest")
        if values["key"] != key:
            raise ValueError("it was written for another text, vocabulary or version")
        arrays = _mapped(entry, names)
        text = EncodedText(
            arrays[:2],
            key["max_length"],
            values["dropped_empty"],
            values["dropped_long"],
            tuple(values["corpora"]),
            *arrays[2:],
        )
        if text.digest != values["ids"]:
            raise ValueError("its ids do not match their digest")
    except (OSError, ValueError, tokenize.TokenError) as error:  # from NumPy, for a bad header
        raise ValueError(
            f"{entry} is not a complete text cache ({error}); delete this folder; the next "
            "training run writes it again"
        ) from None
    return text


def _mapped(folder: Path, names: Sequence[str]) -> Sides:
    files = [_array_files(folder, name) for name in names]
    return tuple(
        IdRows(np.load(ids, mmap_mode="r"), np.load(offsets, mmap_mode="r"))
        for ids, offsets in files
    )


def _array_files(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.ids.npy", folder / f"{name}.offsets.npy"


def text_fingerprint(
    source: str | Path | Sequence[Any],
    folder: str | Path,
    languages: tuple[str, ...] | None,
    split: str,
    tags: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Return a plain value per corpus that identifies the content of a data source.

    A file is identified by the SHA-256 of its bytes, a TFDS data set by name, version, split and
    languages.
    """
    fingerprints: list[dict[str, Any]] = []
    for corpus in corpora_of(source):
        text, pair = str(corpus.text), corpus.languages or languages
        if text.startswith("tfds:"):
            name, _, stated = text.removeprefix("tfds:").partition("@")
            fingerprints.append(
                {"tfds": tfds_version(name), "split": stated or split, "languages": pair}
            )
        elif text.startswith("phrasebook:"):
            rows = digest_of_values(list(read_linked_pairs(corpus.text, tags=tags)))
            fingerprints.append({"rows": rows, "languages": pair})
        else:
            files = source_files(corpus.text, folder)
            fingerprints.append({"files": [list(map(_digest, part)) for part in files]})
    return fingerprints


def _digest(file: Path) -> str:
    check_exists(file)
    return file_digest(file)
