"""Learn which target pieces translate each source piece, by IBM Model 1.

Brown et al. 1993, "The Mathematics of Statistical Machine Translation", section 4.2: every target
token translates one source token, and each source token is equally likely to be that one. The end
token of the source is the empty word.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from tfformer.data.encoding import EncodedText, IdRows
from tfformer.data.tokenizers import Tokenizers
from tfformer.special_ids import END_ID

FREQUENT = 100  # most frequent target pieces, candidates of every sentence
BEST = 100  # most likely translations of a source piece; both as in Marian
ROUNDS = 5  # of expectation maximisation
CHUNK = 2_000  # sentence pairs at a time
MAX_LINKS = 100_000_000  # pairs of a source and a target token: 160,000 sentence pairs of 25 tokens


def learn_table(text: EncodedText, tokenizers: Tokenizers) -> IdRows:
    """Return the likely translations of each source piece, the table of a `Shortlist`.

    The row of the end token contains the most frequent pieces. From a text with more than
    `MAX_LINKS`, only every second, third, ... sentence pair is used.
    """
    size = tokenizers.target.vocab_size
    source, target = sampled_sides(text)
    sources, targets, probabilities = translation_probabilities(source, target, size)
    order = np.lexsort((-probabilities, sources))
    ends = np.cumsum(np.bincount(sources, minlength=tokenizers.source.vocab_size))
    rows = [row[:BEST] for row in np.split(targets[order], ends[:-1])]
    counts = np.bincount(text.target.ids, minlength=size)
    rows[END_ID] = np.argsort(-counts, kind="stable")[:FREQUENT]
    sides = (tokenizers.source, tokenizers.target)
    return with_same_texts(rows, *(side.pieces(range(side.vocab_size)) for side in sides))


def sampled_sides(text: EncodedText) -> tuple[IdRows, IdRows]:
    """Return source and target, or every second, third, ... pair if there are over `MAX_LINKS`."""
    link_count = int(text.source.lengths @ text.target.lengths)
    step = max(-(-link_count // MAX_LINKS), 1)
    if step == 1:
        return text.source, text.target
    sample = range(0, text.kept, step)
    source, target = (IdRows.of([side[row] for row in sample]) for side in text.sides)
    return source, target


def with_same_texts(
    rows: Iterable[np.ndarray], source: Sequence[str], target: Sequence[str]
) -> IdRows:
    """Add the target piece of the same text to each row, so that a search can copy names."""
    ids = {piece: [number] for number, piece in enumerate(target)}
    same = (np.array(ids.get(piece, []), int) for piece in source)
    return IdRows.of(list(map(np.union1d, rows, same)))


def translation_probabilities(
    source: IdRows, target: IdRows, target_size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return P(target piece | source piece) of all pieces that occur in the same sentence pair.

    Returns:
        The source ids, the target ids and the probabilities, each (pairs of pieces,).

    Example:
        >>> source, target = IdRows.of([[4, 5], [4]]), IdRows.of([[7, 6], [7]])
        >>> sources, targets, probabilities = translation_probabilities(source, target, 8)
        >>> sources.tolist(), targets.tolist(), probabilities.round(2).tolist()
        ([4, 4, 5, 5], [6, 7, 6, 7], [0.04, 0.96, 0.83, 0.17])
    """
    distinct, chunks = [], []
    for links, starts in _chunks(source, target, target_size):
        values, inverse = np.unique(links, return_inverse=True)
        distinct.append(values)
        chunks.append((inverse.astype(np.int32), starts))
    keys = np.unique(np.concatenate(distinct))
    columns = [np.searchsorted(keys, values).astype(np.int32) for values in distinct]
    sources, targets = np.divmod(keys, target_size)
    probabilities = np.ones(len(keys))
    for _ in range(ROUNDS):
        counts = np.zeros(len(keys))
        for column, (index, starts) in zip(columns, chunks, strict=True):
            weights = probabilities[column][index]
            sums = np.add.reduceat(weights, starts)
            weights /= np.repeat(sums, np.diff(starts, append=len(weights)))
            counts[column] += np.bincount(index, weights, len(column))
        probabilities = counts / np.bincount(sources, counts)[sources]
    return sources, targets, probabilities


def _chunks(
    source: IdRows, target: IdRows, target_size: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of a source and a target token in `CHUNK` sentence pairs, by target token.

    A pair is source id * V + target id. The second array has the index of the first pair of each
    target token.
    """
    for first in range(0, len(source), CHUNK):
        rows = np.arange(first, min(first + CHUNK, len(source)))
        positions, starts = token_pairs(source, target, rows)
        target_ids = target.ids[target.offsets[first] : target.offsets[rows[-1] + 1]]
        source_ids = source.take(positions).astype(np.int64)
        counts = np.diff(starts, append=len(positions))
        yield source_ids * target_size + np.repeat(target_ids, counts), starts


def token_pairs(source: IdRows, target: IdRows, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Pair each target token of the rows with all source tokens of its row.

    Returns:
        The index in `source.ids` of each pair's source token (pairs,), and the index of the first
        pair of each target token (target tokens,).
    """
    source_lengths, target_lengths = source.lengths_of(rows), target.lengths_of(rows)
    counts = np.repeat(source_lengths, target_lengths).astype(np.int64)
    begins = np.repeat(source.offsets[rows].astype(np.int64), target_lengths)
    starts = np.cumsum(counts) - counts
    return np.arange(counts.sum()) + np.repeat(begins - starts, counts), starts


def coverage(table: IdRows, text: EncodedText) -> tuple[float, float]:
    """Return the share of the target tokens that are candidates, and the candidates per sentence.

    The translations of a text vary more than a model's, so a search misses less than this.
    """
    known = candidates = 0
    special = np.arange(END_ID + 1)
    for row in range(text.kept):
        allowed = np.unique(np.concatenate([special, *(table[n] for n in text.source[row])]))
        known += int(np.isin(text.target[row], allowed).sum())
        candidates += len(allowed)
    return known / len(text.target.ids), candidates / text.kept
