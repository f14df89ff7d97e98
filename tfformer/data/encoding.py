"""Text to ids: sentences and pairs of them as flat arrays of ids. Knows no files and no batches."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tfformer.data.sources import Sides
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID

Cut = Callable[[Tokenizer, Sequence[str]], list[list[int]]]  # how sentences become ids

CHUNK = 10_000  # sentences or pairs encoded at a time, so that memory holds their text only


@dataclasses.dataclass(frozen=True)
class IdRows:
    """Many rows of ids in two flat arrays, so that millions fit: row i is `ids[offsets[i]:offsets[i + 1]]`."""

    ids: np.ndarray  # (sum of lengths,) int32
    offsets: np.ndarray  # (rows + 1,) int64

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> IdRows:
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(np.fromiter(itertools.chain.from_iterable(rows), np.int32, offsets[-1]), offsets)

    @classmethod
    def join(cls, parts: Sequence[IdRows]) -> IdRows:
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        return cls(
            np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)]),
            np.cumsum(lengths),
        )

    @property
    def lengths(self) -> np.ndarray:
        """(rows,) int64."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def padded(self, rows: Iterable[int]) -> np.ndarray:
        """The chosen rows as (B, longest) int32, with PAD_ID after their ends."""
        chosen = [self[row] for row in rows]
        batch = np.full((len(chosen), max(map(len, chosen))), PAD_ID, np.int32)
        for place, ids in zip(batch, chosen, strict=True):
            place[: len(ids)] = ids
        return batch


@dataclasses.dataclass(frozen=True)
class EncodedText:
    """Sentence pairs, or sentences, as ids, END_ID closing every row, and the count of those left out."""

    sides: tuple[IdRows, ...]
    max_length: int
    dropped_empty: int
    dropped_long: int

    @property
    def source(self) -> IdRows:
        return self.sides[0]

    @property
    def target(self) -> IdRows:
        """What is learned; of text with one side, that side."""
        return self.sides[-1]

    @property
    def kept(self) -> int:
        return len(self.target)

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, in hexadecimal: the same for the same text, vocabulary and `max_length`."""
        return hashlib.sha256(
            b"".join(rows.ids.tobytes() + rows.offsets.tobytes() for rows in self.sides)
        ).hexdigest()

    def report(self) -> str:
        if len(self.sides) == 1:
            return (
                f"{self.kept:,} sentences kept ({len(self.target.ids):,} tokens), {self.dropped_empty:,} dropped as "
                f"empty, {self.dropped_long:,} as longer than {self.max_length:,} tokens"
            )
        return (
            f"{self.kept:,} sentence pairs kept ({len(self.source.ids):,} source and {len(self.target.ids):,} target "
            f"tokens), {self.dropped_empty:,} dropped for an empty side, {self.dropped_long:,} for a side of more than "
            f"{self.max_length:,} tokens"
        )


def encode_text(
    rows: Iterable[Sides],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
    cut: Cut = lambda tokenizer, sentences: tokenizer.encode(sentences),
) -> EncodedText:
    """Tokenizes each side and drops the rows with an empty side or with more than `max_length` ids, END_ID included.

    Calls `on_progress` with the number of rows read so far. Raises ValueError where none is left.
    """
    parts, rows_done = [], 0
    for chunk in _chunks(rows):
        parts.append(_encode_chunk(chunk, tokenizers, max_length, cut))
        on_progress(rows_done := rows_done + len(chunk))
    encoded = EncodedText(
        sides=tuple(
            IdRows.join([part.sides[side] for part in parts]) for side in range(len(tokenizers))
        ),
        max_length=max_length,
        dropped_empty=sum(part.dropped_empty for part in parts),
        dropped_long=sum(part.dropped_long for part in parts),
    )
    if not encoded.kept:
        raise ValueError(f"no text is left: {encoded.report()}; give more text or raise max_length")
    return encoded


def _chunks(rows: Iterable[Sides]) -> Iterator[list[Sides]]:
    rows = iter(rows)
    return iter(lambda: list(itertools.islice(rows, CHUNK)), [])


def _encode_chunk(
    chunk: list[Sides], tokenizers: Sequence[Tokenizer], max_length: int, cut: Cut
) -> EncodedText:
    sides = [
        cut(tokenizer, side)
        for tokenizer, side in zip(tokenizers, zip(*chunk, strict=True), strict=True)
    ]
    full = [[[*ids, END_ID] for ids in row] for row in zip(*sides, strict=True) if all(row)]
    kept = [row for row in full if max(map(len, row)) <= max_length]
    return EncodedText(
        sides=tuple(IdRows.of([row[side] for row in kept]) for side in range(len(tokenizers))),
        max_length=max_length,
        dropped_empty=len(chunk) - len(full),
        dropped_long=len(full) - len(kept),
    )


def random_cut(alpha: float, max_length: int, seed: Sequence[int]) -> Cut:
    """Cuts sentences at random, by `Tokenizer.sample`; one that would not fit into `max_length` ids is cut as usual.

    So the same rows are dropped as with the usual cuts.
    """
    random = np.random.default_rng(seed)

    def cut(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
        usual = tokenizer.encode(sentences)
        drawn = tokenizer.sample(sentences, alpha, seed=int(random.integers(2**32 - 1)))
        pairs = zip(drawn, usual, strict=True)
        return [one if max(len(one), len(other)) < max_length else other for one, other in pairs]

    return cut


def sampled_texts(
    rows: Sequence[Sides], tokenizers: Sequence[Tokenizer], max_length: int, alpha: float, seed: int
) -> Callable[[int], EncodedText]:
    """The text of pass 0, 1, ..., cut at random in another way each time (subword regularisation, Kudo 2018).

    Each pass takes the time of encoding the text twice, by one processor. In another process it is cut in other ways.
    """
    return lambda epoch: encode_text(
        rows, tokenizers, max_length, cut=random_cut(alpha, max_length, [seed, epoch])
    )
