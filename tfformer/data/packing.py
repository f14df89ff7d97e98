"""Pack rows of text into bins of equal width, so that all batches have the same shape.

XLA compiles a program for each shape. T5 and other models trained on TPUs, whose compiler has the
same limitation, pack their text too (Raffel et al. 2020, section 3.1.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.special_ids import PAD_ID

if TYPE_CHECKING:
    from tfformer.data.encoding import IdRows

Pattern = tuple[int, list[int]]  # a number of equal bins, and the kinds of the rows in each


class Packed(NamedTuple):
    """Rows in bins."""

    order: np.ndarray  # (rows,) the numbers of the rows, bin after bin
    bounds: np.ndarray  # (bins + 1,) where each bin begins in `order`, and the end


def pack(lengths: Sequence[np.ndarray], width: int, random: np.random.Generator) -> Packed:
    """Distribute rows at random over the bins that `patterns` plans.

    The number of bins depends on the lengths alone, so it is the same in each epoch of a text.

    Args:
        lengths: (rows,) tokens of each row, for each side of the text.
        width: Capacity of a bin in tokens per side; no row may be longer.
        random: Decides which rows of equal lengths share a bin, and the order of the bins.
    """
    kinds, kind_of_row, counts = _kinds(lengths)
    shuffled = random.permutation(len(kind_of_row))
    rows = shuffled[np.argsort(kind_of_row[shuffled], kind="stable")]  # by kind
    unused = np.cumsum(counts) - counts  # the index in `rows` of each kind's next row
    bins, sizes = [], []
    for copies, pattern in patterns(kinds, counts, width):
        columns = np.empty((copies, len(pattern)), rows.dtype)
        for column, kind in enumerate(pattern):
            columns[:, column] = rows[unused[kind] : unused[kind] + copies]
            unused[kind] += copies
        bins.append(columns.ravel())
        sizes.append(np.full(copies, len(pattern)))
    return _shuffled(np.concatenate(bins), np.concatenate(sizes), random)


def count_bins(lengths: Sequence[np.ndarray], width: int) -> int:
    """Return the number of bins that `pack` fills."""
    kinds, _, counts = _kinds(lengths)
    return sum(copies for copies, _ in patterns(kinds, counts, width))


def patterns(kinds: np.ndarray, counts: np.ndarray, width: int) -> list[Pattern]:
    """Fill bins with rows, always choosing the longest row that fits (first-fit decreasing).

    Args:
        kinds: (kinds, sides) the lengths of each kind of row, sorted by the longer side.
        counts: (kinds,) the number of rows of each kind.
        width: Capacity of a bin in tokens per side.

    Example:
        >>> patterns(np.array([[1, 2], [3, 2]]), np.array([5, 3]), width=4)
        [(3, [1, 0]), (1, [0, 0])]
    """
    left = counts.copy()
    packings = []
    unfinished = np.arange(len(left))
    while unfinished.size:
        pattern: list[int] = []
        used: dict[int, int] = {}
        room = np.full(kinds.shape[1], width)
        fitting = unfinished
        while (fitting := fitting[(kinds[fitting] <= room).all(axis=1)]).size:
            kind = int(fitting[-1])
            used[kind] = min(int(left[kind]), int((room // kinds[kind]).min()))
            pattern += [kind] * used[kind]
            room = room - used[kind] * kinds[kind]
            fitting = fitting[:-1]
        copies = min(int(left[kind]) // count for kind, count in used.items())
        for kind, count in used.items():
            left[kind] -= copies * count
        unfinished = unfinished[left[unfinished] > 0]
        packings.append((copies, pattern))
    return packings


def fill(
    id_rows: IdRows, rows: np.ndarray, sizes: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Write rows of ids into bins, one after the other.

    `rows` (B,) are the numbers of the rows, bin after bin, and `sizes` (bins,) the rows of each
    bin. The result is ids and segments, (2, *shape) int32: the rows of a bin are its segments 1, 2,
    ...; padding is segment 0.
    """
    lengths = id_rows.lengths_of(rows).astype(np.int64)
    before = np.cumsum(lengths) - lengths  # tokens in all earlier rows
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)  # (B,) the first row of each row's bin
    bins = np.repeat(np.arange(len(sizes)), sizes)
    begins = bins * shape[1] + before - before[first]
    counted = np.arange(lengths.sum())
    indices = np.repeat(begins - before, lengths) + counted
    filled = np.full((2, shape[0] * shape[1]), PAD_ID, np.int32)
    filled[0, indices] = id_rows.take(np.repeat(id_rows.offsets[rows] - before, lengths) + counted)
    filled[1, indices] = np.repeat(np.arange(len(rows)) - first + 1, lengths)
    return filled.reshape(2, *shape)


def packed_links(
    links: IdRows, source: IdRows, rows: np.ndarray, sizes: np.ndarray, shape: tuple[int, int]
) -> np.ndarray:
    """Write links into bins as `fill` does, with the positions of the source tokens in their bin.

    The links count from 1, 0 for none, and so does the result, (bins, width) int32.
    """
    filled, segments = fill(links, rows, sizes, shape)
    lengths = source.lengths_of(rows).astype(np.int64)
    before = np.cumsum(lengths) - lengths  # source tokens in all earlier rows
    first = np.cumsum(sizes) - sizes  # (bins,) the first row of each bin
    row = np.minimum(first[:, np.newaxis] + np.maximum(segments, 1) - 1, len(rows) - 1)
    begins = before[row] - before[first][:, np.newaxis]
    return np.where(filled > 0, filled + begins, 0).astype(np.int32)


def _kinds(lengths: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the distinct lengths (kinds, sides), each row's kind, and each kind's count."""
    rows = np.stack(lengths, axis=1).astype(np.int64)
    base = int(rows.max()) + 1
    key = rows.max(axis=1)  # the longer side first
    for side_lengths in rows.T:
        key = key * base + side_lengths
    _, firsts, kind_of_row, counts = np.unique(key, True, True, True)
    return rows[firsts], kind_of_row, counts


def _shuffled(rows: np.ndarray, sizes: np.ndarray, random: np.random.Generator) -> Packed:
    """Shuffle bins of these sizes."""
    starts = np.cumsum(sizes) - sizes
    order = random.permutation(len(sizes))
    bounds = np.append(0, np.cumsum(sizes[order]))
    indices = np.repeat(starts[order] - bounds[:-1], sizes[order]) + np.arange(len(rows))
    return Packed(rows[indices], bounds)
