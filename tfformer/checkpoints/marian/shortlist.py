"""Read and write Marian's tables of likely translations, which Firefox's models also have.

`lex.s2t` is a text with the lines "target source probability", as marian-dev reads it in
src/data/shortlist.cpp. `lex.bin` is the binary table of the fork browsermt/marian-dev: a header of
six integers, the offset of each source piece, and the ids of all target pieces.
"""

import gzip
import itertools
import struct
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.vocabulary import END, RowOrder
from tfformer.data.encoding import IdRows
from tfformer.data.sources import read_lines
from tfformer.data.translation_table import BEST, FREQUENT, with_same_texts

MAGIC = struct.pack("<Q", 0xF11A48D5013417F5)
HEADER = struct.Struct("<8s5Q")  # magic, checksum, frequent, best, number of offsets and of ids
LIMITS = (FREQUENT, BEST, 0.0)  # Marian's; a likely translation is more probable than the last


def table_in(folder: Path, stated: Any) -> Path | None:
    """Return a model's table from source to target; `stated` is decoder.yml's `shortlist`."""
    if isinstance(stated, list) and stated:
        path = folder / Path(str(stated[0])).name
        if path.is_file():
            return path
        warnings.warn(
            f"{path}, the shortlist in decoder.yml, is missing; it is omitted", stacklevel=3
        )
        return None
    patterns = ("lex.s2t", "lex.s2t.gz", "lex*.bin", "lex*.bin.gz")
    paths = sorted(path for pattern in patterns for path in folder.glob(pattern))
    files = [path for path in paths if path.is_file() and "t2s" not in path.name]
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{folder} contains {len(files)} shortlists ({names}); keep only one")
    return files[0] if files else None


def read_table(
    path: Path, source: Sequence[str], target: Sequence[str], stated: Any = None
) -> IdRows:
    """Return the candidates of each source piece, by foreign ids; those of the end are frequent.

    `source` and `target` are the pieces by foreign id, and `stated` is decoder.yml's `shortlist`:
    the path and, for a text, its `LIMITS`. As in Marian, the first pieces of the target count as
    frequent. A target piece with the same text as the source piece is a candidate, in Marian only
    if both vocabularies are the same. ValueError: the table is damaged, has an unknown layout, or
    does not fit the vocabularies, or a limit is not a number of at least 0.
    """
    if path.name.endswith(".bin.gz"):
        raise ValueError(f"{path} is compressed; unpack it, for example with gunzip")
    with path.open("rb") as file:
        is_binary = file.read(len(MAGIC)) == MAGIC
    if is_binary:
        frequent, rows = _read_binary(path, len(source), len(target))
    elif path.suffix == ".bin":
        raise ValueError(
            f"{path} is a shortlist of an unknown layout; use the lex.s2t that it was made from"
        )
    else:
        frequent, best, threshold = _limits(stated)
        rows = _read_text(path, source, target, best, threshold)
    end = source.index(END)
    rows[end] = np.append(rows[end], np.arange(min(frequent, len(target))))
    return with_same_texts(rows, source, target)


def _limits(stated: Any) -> tuple[int, int, float]:
    values = stated[1:4] if isinstance(stated, list) else []
    try:
        frequent, best, threshold = map(float, map(str, [*values, *LIMITS[len(values) :]]))
        if not all(limit >= 0 for limit in (frequent, best, threshold)):
            raise ValueError
        return int(frequent), int(best), threshold
    except (ValueError, OverflowError):
        raise ValueError(
            f"decoder.yml has the shortlist {stated}, but after the path there must be numbers of "
            "at least 0: the frequent pieces, the best translations and a probability"
        ) from None


def _read_binary(path: Path, sources: int, targets: int) -> tuple[int, list[np.ndarray]]:
    content = path.read_bytes()
    header = content[: HEADER.size].ljust(HEADER.size, b"\0")
    _, checksum, frequent, _, offset_count, id_count = HEADER.unpack(header)
    if len(content) != HEADER.size + 8 * offset_count + 4 * id_count:
        raise ValueError(f"{path} is cut off or has extra bytes; copy the file again")
    if _checksum(content[16:]) != checksum:
        raise ValueError(f"{path} is damaged: its checksum differs; copy the file again")
    offsets = np.frombuffer(content, "<u8", offset_count, HEADER.size).astype(np.int64)
    ids = np.frombuffer(content, "<u4", id_count, HEADER.size + 8 * offset_count)
    bounds = np.concatenate([[0], offsets, [id_count]])
    if np.any(np.diff(bounds) < 0) or offset_count > sources + 1 or np.any(ids >= targets):
        raise ValueError(
            f"{path} does not fit the vocabularies of {sources:,} and {targets:,} pieces; use the "
            "shortlist of this model"
        )
    rows = [ids[begin:end] for begin, end in itertools.pairwise(offsets)]
    return frequent, rows + [ids[:0]] * (sources - len(rows))  # the last pieces may have none


def _checksum(content: bytes) -> int:
    """Return util::hashMem of the 64-bit integers; four trailing bytes are ignored."""
    seed = 0
    for number in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        seed ^= (number + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & (2**64 - 1)
    return seed


def _read_text(
    path: Path, source: Sequence[str], target: Sequence[str], best: int, threshold: float
) -> list[np.ndarray]:
    source_ids, target_ids = ({p: n for n, p in enumerate(side)} for side in (source, target))
    entries: list[list[tuple[float, int]]] = [[] for _ in source]
    unknown = count = 0
    for count, line in enumerate(read_lines(path), start=1):
        try:
            target_piece, source_piece, probability = line.split()
            entry = float(probability), target_ids.get(target_piece, -1)
        except ValueError:
            raise ValueError(
                f"{path}, line {count} is not 'target source probability'; use Marian's lex.s2t"
            ) from None
        if source_piece in source_ids and entry[1] >= 0:
            entries[source_ids[source_piece]].append(entry)
        else:
            unknown += "NULL" not in (source_piece, target_piece)
    if not count or unknown > count / 2:
        raise ValueError(
            f"{path} does not fit the vocabularies: they lack pieces in {unknown:,} of its "
            f"{count:,} lines; use the shortlist of this model, and lex.s2t rather than lex.t2s"
        )
    likely = ([entry for entry in row if entry[0] > threshold] for row in entries)
    chosen = (sorted(row, reverse=True)[:best] for row in likely)
    return [np.array([number for _, number in row], np.int64) for row in chosen]


def write_tables(
    folder: Path, table: IdRows, source: Sequence[str], target: Sequence[str]
) -> list[Any]:
    """Write lex.bin for Firefox and lex.s2t.gz for Marian; return decoder.yml's `shortlist`.

    Arguments are as in `read_table`, which reads the same table from either file. A run does not
    store probabilities, so the text has a 1 for each candidate.
    """
    common = table[source.index(END)]
    frequent = int(np.sum(common == np.arange(len(common))))  # the ids without a gap after 0
    best = int(table.lengths.max())
    body = struct.pack("<4Q", frequent, best, len(table.offsets), len(table.ids))
    body += table.offsets.astype("<u8").tobytes() + table.ids.astype("<u4").tobytes()
    (folder / "lex.bin").write_bytes(MAGIC + struct.pack("<Q", _checksum(body)) + body)
    with gzip.open(folder / "lex.s2t.gz", "wt", encoding="utf-8", newline="\n") as file:
        for number, piece in enumerate(source):
            file.writelines(f"{target[n]} {piece} 1\n" for n in table[number])
    return ["lex.s2t.gz", frequent, best, 0]


def in_our_order(table: IdRows, source: RowOrder, target: RowOrder) -> IdRows:
    """Return a table in this package's ids, without the pieces that the orders leave out."""
    ids = np.full(target.foreign_size, -1)
    for number, row in enumerate(target.rows):
        if row is not None:
            ids[row] = number
    rows = [ids[table[row]] if row is not None else ids[:0] for row in source.rows]
    return IdRows.of([row[row >= 0] for row in rows])


def in_foreign_order(table: IdRows, source: RowOrder, target: RowOrder) -> IdRows:
    """Return the table that `in_our_order` reads, with the foreign ids of each row ascending."""
    rows = [np.array([], int)] * source.foreign_size
    for number, row in enumerate(source.rows):
        if row is not None:
            ids = [target.rows[candidate] for candidate in table[number]]
            rows[row] = np.union1d(rows[row], [n for n in ids if n is not None]).astype(int)
    return IdRows.of(rows)
