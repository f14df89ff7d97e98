"""Read Marian's tables of likely translations, which Firefox's models also have.

`lex.s2t` is a text with the lines "target source probability", as marian-dev reads it in
src/data/shortlist.cpp. `lex.bin` is the binary table of the fork browsermt/marian-dev: a header of
six integers, the offset of each source piece, and the ids of all target pieces.
"""

import itertools
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tfformer.checkpoints.vocabulary import END, RowOrder
from tfformer.data.encoding import IdRows
from tfformer.data.sources import read_lines
from tfformer.data.translation_table import BEST, FREQUENT

MAGIC = struct.pack("<Q", 0xF11A48D5013417F5)
HEADER = struct.Struct("<8s5Q")  # magic, checksum, frequent, best, number of offsets and of ids


def table_in(folder: Path) -> Path | None:
    """Return the table from source to target in a model's folder; None without one."""
    files = [file for file in sorted(folder.glob("lex*")) if "t2s" not in file.name]
    if len(files) > 1:
        names = ", ".join(file.name for file in files)
        raise ValueError(f"{folder} contains {len(files)} shortlists ({names}); keep only one")
    return files[0] if files else None


def read_table(path: Path, source: Sequence[str], target: Sequence[str]) -> IdRows:
    """Return the candidates of each source piece, by foreign ids; those of the end are frequent.

    `source` and `target` are the pieces by foreign id. As in Marian, the first pieces of the target
    count as frequent, and if both are the same, a piece is its own candidate. ValueError: the table
    is damaged, has an unknown layout, or does not fit the vocabularies.
    """
    with path.open("rb") as file:
        is_binary = file.read(len(MAGIC)) == MAGIC
    if is_binary:
        frequent, rows = _read_binary(path, len(source), len(target))
    elif path.suffix == ".bin":
        raise ValueError(
            f"{path} is a shortlist of an unknown layout; use the lex.s2t that it was made from"
        )
    else:
        frequent, rows = FREQUENT, _read_text(path, source, target)
    if source == target:
        rows = [np.append(row, number) for number, row in enumerate(rows)]
    end = source.index(END)
    rows[end] = np.append(rows[end], np.arange(min(frequent, len(target))))
    return IdRows.of([np.unique(row) for row in rows])


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
    """Return Marian's hash of the 64-bit integers, util::hashMem; an odd last half is left out."""
    seed = 0
    for number in np.frombuffer(content, "<u8", len(content) // 8).tolist():
        seed ^= (number + 0x9E3779B9 + (seed << 6) + (seed >> 2)) & (2**64 - 1)
    return seed


def _read_text(path: Path, source: Sequence[str], target: Sequence[str]) -> list[np.ndarray]:
    source_ids, target_ids = ({p: n for n, p in enumerate(side)} for side in (source, target))
    found: list[list[tuple[float, int]]] = [[] for _ in source]
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
            found[source_ids[source_piece]].append(entry)
        else:
            unknown += "NULL" not in (source_piece, target_piece)
    if not count or unknown > count / 2:
        raise ValueError(
            f"{path} does not fit the vocabularies: they lack pieces in {unknown:,} of its "
            f"{count:,} lines; use the shortlist of this model, and lex.s2t rather than lex.t2s"
        )
    best = (sorted(row, reverse=True)[:BEST] for row in found)
    return [np.array([number for _, number in row], np.int64) for row in best]


def in_our_order(table: IdRows, source: RowOrder, target: RowOrder) -> IdRows:
    """Return a table in this package's ids, without the pieces that the orders leave out."""
    ids = np.full(target.foreign_size, -1)
    for number, row in enumerate(target.rows):
        if row is not None:
            ids[row] = number
    rows = [ids[table[row]] if row is not None else ids[:0] for row in source.rows]
    return IdRows.of([row[row >= 0] for row in rows])
