"""Mixes several corpora: the share of each, and the rows of an epoch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

STREAM = 1  # a random stream separate from the stream that orders batches


def shares_by_temperature(sizes: Sequence[int], temperature: float) -> np.ndarray:
    """Return each corpus' share of an epoch, proportional to size^(1/temperature).

    See Arivazhagan et al. 2019, "Massively Multilingual Neural Machine Translation in the Wild". At
    temperature 1 the shares are proportional to the sizes; a higher temperature evens them out. The
    result is (corpora,) float64 and sums to 1.

    Example:
        >>> shares_by_temperature([100, 10_000], temperature=2).round(3).tolist()
        [0.091, 0.909]
    """
    scaled = (np.asarray(sizes) / sum(sizes)) ** (1 / temperature)
    return scaled / scaled.sum()


def rows_by_shares(
    sizes: Sequence[int], shares: Sequence[float] | np.ndarray, seed: int, epoch: int
) -> np.ndarray:
    """Return the row numbers of an epoch, as many as all corpora have rows, ascending per corpus.

    If a corpus's share is larger than its size, all its rows are used before any row is repeated;
    otherwise rows are drawn without replacement. `sizes` contains the number of rows per corpus, at
    least one each; `shares` sums to 1.
    """
    total = sum(sizes)
    for number, size in enumerate(sizes, start=1):
        if not size:
            raise ValueError(
                f"corpus {number} of data.train has no row within data.max_length; remove the "
                "corpus from the list or raise data.max_length"
            )
    random = np.random.default_rng([seed, epoch, STREAM])
    dtype = np.promote_types(np.int32, np.min_scalar_type(-total))
    rows = np.empty(total, dtype)
    stops = np.rint(np.cumsum(shares) * total).astype(np.int64)
    stops[-1] = total
    first = start = 0
    for size, stop in zip(sizes, stops.tolist(), strict=True):
        passes, remainder = divmod(stop - start, size)
        drawn = random.choice(size, remainder, replace=False, shuffle=False)
        drawn.sort()
        rows[start : stop - remainder] = np.tile(np.arange(size, dtype=dtype), passes)
        rows[stop - remainder : stop] = drawn
        rows[start:stop] += first
        first += size
        start = stop
    return rows
