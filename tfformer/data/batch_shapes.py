"""A small set of shapes for batches, as XLA compiles a program for each shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tfformer.special_ids import PAD_ID

# Each shape costs XLA up to a minute on a GPU, and each that is left out costs padding.
TRAINING_SHAPES = 6
VALIDATION_SHAPES = 3
MULTIPLE = 8  # of the rows and tokens of an odd batch, so that there are few such shapes, too


class BatchShapes:
    """A few shapes (rows, width) to which batches are padded.

    The widths are those that need the least padding. A batch has as many rows as fit; missing rows
    are padding only. A width for each side would save less than 1 % of padding.

    Args:
        batch_tokens: Maximum number of tokens on each side of a batch, padding included.
        counts: (longest + 1,) number of rows of each length of the longer side.
        most: Maximum number of shapes.

    Example:
        >>> shapes = BatchShapes(batch_tokens=32, counts=np.bincount([3, 8, 9, 9, 9]), most=3)
        >>> shapes.widths(np.array([9, 8, 5, 3])).tolist()
        [9, 8, 8, 3]
        >>> source, target = shapes.padded([np.ones((2, 3)), np.ones((2, 7))])
        >>> source.shape, target.shape
        ((4, 8), (4, 8))
    """

    def __init__(self, batch_tokens: int, counts: np.ndarray, most: int) -> None:
        self.batch_tokens = batch_tokens
        self.rows = int(counts.sum())
        self._widths = best_widths(counts, most)

    def widths(self, lengths: np.ndarray) -> np.ndarray:
        """Return the smallest width that holds each length.

        A row longer than any counted row, which another segmentation can produce, gets the next
        multiple of 8 that fits into a batch.
        """
        places = np.searchsorted(self._widths, lengths).clip(max=len(self._widths) - 1)
        widths = self._widths[places]
        longer = np.minimum(_rounded_up(lengths), self.batch_tokens)
        return np.where(lengths > widths, np.maximum(longer, lengths), widths)

    def shapes(self, rows: np.ndarray, longest: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the padded rows and widths of batches, both (batches,).

        `rows` are the rows of each batch, `longest` its longest row. A batch is padded to the rows
        that fit into `batch_tokens`, at most the rows of the text; one with more rows is padded to
        a multiple of 8.
        """
        widths = self.widths(longest)
        fitting = np.minimum(self.batch_tokens // widths, self.rows)
        return np.where(rows <= fitting, fitting, _rounded_up(rows)), widths

    def padded(self, sides: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Pad the sides of a batch, ids (B, longest of the side) int32, to its shape."""
        longest = max(ids.shape[1] for ids in sides)
        rows, width = self.shapes(np.array(len(sides[0])), np.array(longest))
        return [_padded(ids, int(rows), int(width)) for ids in sides]


def best_widths(counts: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` widths, in ascending order, that need the least padding.

    `counts` (longest + 1,) has the number of rows of each length.

    Example:
        >>> best_widths(np.bincount([1, 2, 2, 9, 9, 9]), most=2).tolist()
        [2, 9]
    """
    lengths = np.flatnonzero(counts)
    rows = np.append(0, np.cumsum(counts[lengths]))
    # Rows i to j of the sorted lengths, padded to the length of j: (i, j), infinite for i > j.
    positions = (rows[1:] - rows[:-1, np.newaxis]) * lengths.astype(float)
    positions[np.tril_indices_from(positions, -1)] = np.inf
    fewest = positions[0]  # fewest[j]: of all rows up to j, by the widths so far
    previous = []
    for _ in range(min(most, len(lengths)) - 1):
        sums = np.append(0, fewest[:-1])[:, np.newaxis] + positions
        previous.append(sums.argmin(axis=0))
        fewest = sums.min(axis=0)
    chosen = [len(lengths) - 1]
    for firsts in reversed(previous):
        chosen.append(firsts[chosen[-1]] - 1)
    return lengths[chosen[::-1]]


def _rounded_up(sizes: np.ndarray) -> np.ndarray:
    return MULTIPLE * -(-sizes // MULTIPLE)


def _padded(ids: np.ndarray, rows: int, width: int) -> np.ndarray:
    missing = [(0, rows - ids.shape[0]), (0, width - ids.shape[1])]
    return np.pad(ids, missing, constant_values=PAD_ID)
