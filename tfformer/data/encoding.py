"""Text to ids: sentences and their pairs as flat arrays of ids."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np

from tfformer.data.sources import Row
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID

Segmentation = Callable[[Tokenizer, Sequence[str]], list[list[int]]]  # of sentences into ids

CHUNK = 10_000  # sentences or pairs encoded at a time, so that memory holds their text only


@dataclasses.dataclass(frozen=True)
class IdRows:
    """Many rows of ids in two flat arrays, so that millions fit into memory.

    Attributes:
        ids: (sum of lengths,) int32.
        offsets: (rows + 1,) int64; row i is `ids[offsets[i] : offsets[i + 1]]`.

    Example:
        >>> rows = IdRows.of([[5, 6, 3], [7, 3]])
        >>> rows[1].tolist(), rows.padded([1, 0]).tolist()
        ([7, 3], [[7, 3, 0], [5, 6, 3]])
    """

    ids: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> IdRows:
        """Copy lists of ids."""
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(np.fromiter(itertools.chain.from_iterable(rows), np.int32, offsets[-1]), offsets)

    @classmethod
    def join(cls, parts: Sequence[IdRows]) -> IdRows:
        """Put the rows of all parts one after the other."""
        lengths = np.concatenate([np.zeros(1, np.int64), *(part.lengths for part in parts)])
        ids = np.concatenate([np.zeros(0, np.int32), *(part.ids for part in parts)])
        return cls(ids, np.cumsum(lengths))

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each row, (rows,) int64."""
        return np.diff(self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def padded(self, rows: Iterable[int]) -> np.ndarray:
        """Return the chosen rows as one batch.

        Args:
            rows: Numbers of B rows, at least one.

        Returns:
            (B, longest) int32, with PAD_ID behind the ends.
        """
        chosen = [self[row] for row in rows]
        batch = np.full((len(chosen), max(map(len, chosen))), PAD_ID, np.int32)
        for row, ids in zip(batch, chosen, strict=True):
            row[: len(ids)] = ids
        return batch


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Pad B lists of ids, at least one, with 0 to the longest: (B, longest) int32."""
    return IdRows.of(rows).padded(range(len(rows)))


# Sentences for a model that is trained


@dataclasses.dataclass(frozen=True)
class EncodedSentences:
    """Sentences as ids without start and end, each of at most `max_tokens`.

    Attributes:
        ids: A list for each sentence; an empty one for a blank sentence.
        is_truncated: Of each sentence whether it had more ids.
        max_tokens: Ids that a sentence keeps.
    """

    ids: list[list[int]]
    is_truncated: list[bool]
    max_tokens: int

    @property
    def truncated(self) -> int:
        """Number of sentences that were truncated."""
        return sum(self.is_truncated)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, numbers: Sequence[int]) -> EncodedSentences:
        """Choose sentences by their numbers, in that order."""
        ids = [self.ids[number] for number in numbers]
        is_truncated = [self.is_truncated[number] for number in numbers]
        return EncodedSentences(ids, is_truncated, self.max_tokens)


Sentences = Sequence[str] | EncodedSentences  # texts, or texts that have been encoded


class TextEncoder(Protocol):
    """Anything that encodes as `Tokenizer` does."""

    def encode(self, sentences: Sequence[str]) -> list[list[int]]:
        """Encode B texts as B lists of ids."""


def encode_truncated(
    tokenizer: TextEncoder, sentences: Sentences, max_tokens: int
) -> EncodedSentences:
    """Encode sentences and truncate those that are too long for a model.

    Args:
        tokenizer: Encodes them.
        sentences: B texts; sentences that are encoded already stay as they are.
        max_tokens: Ids that a sentence keeps, without start and end.

    Returns:
        The ids, and which sentences were truncated.

    Raises:
        ValueError: A sentence is not Unicode text.

    Example:
        >>> tokenizer = Tokenizer.train(["a b c"] * 20, vocab_size=8)
        >>> encoded = encode_truncated(tokenizer, ["a", "a b c a b c"], max_tokens=4)
        >>> encoded.truncated, len(encoded.ids[1])
        (1, 4)
    """
    if isinstance(sentences, EncodedSentences):
        return sentences
    rows = tokenizer.encode(sentences)
    is_truncated = [len(ids) > max_tokens for ids in rows]
    return EncodedSentences([ids[:max_tokens] for ids in rows], is_truncated, max_tokens)


def truncation_report(truncated: int, sentences: int, max_tokens: int) -> str:
    """Say in one line how many of so many sentences were truncated."""
    return (
        f"{truncated} of {sentences} sentences had more than {max_tokens} tokens, the model's "
        "most, and were truncated"
    )


def warn_of_truncation(
    given: Sequence[Sentences], encoded: Sequence[EncodedSentences], stacklevel: int
) -> None:
    """Warn once of the sentences that were truncated.

    Those that the caller gave encoded are left out: the caller has their count.

    Args:
        given: One or more lists of sentences.
        encoded: The same lists, encoded.
        stacklevel: That of `warnings.warn`, seen from the caller of this function.
    """
    sides = [
        side
        for sentences, side in zip(given, encoded, strict=True)
        if not isinstance(sentences, EncodedSentences)
    ]
    truncated = sum(side.truncated for side in sides)
    if truncated:
        total = sum(len(side) for side in sides)
        report = truncation_report(truncated, total, sides[0].max_tokens)
        warnings.warn(report, stacklevel=stacklevel + 1)


# Text to train on


@dataclasses.dataclass(frozen=True)
class EncodedText:
    """Sentence pairs, or sentences, as ids, and the counts of rows left out.

    END_ID stands at the end of every row.

    Attributes:
        sides: The rows of source and target, or of the one side.
        max_length: Ids that a row has at most, END_ID included.
        dropped_empty: Rows left out for an empty side.
        dropped_long: Rows left out for a side that is too long.
    """

    sides: tuple[IdRows, ...]
    max_length: int
    dropped_empty: int
    dropped_long: int

    @property
    def source(self) -> IdRows:
        """The first side."""
        return self.sides[0]

    @property
    def target(self) -> IdRows:
        """The side that is learned; of text with one side, that side."""
        return self.sides[-1]

    @property
    def kept(self) -> int:
        """Number of rows."""
        return len(self.target)

    @property
    def digest(self) -> str:
        """SHA-256 of the ids, in hexadecimal.

        It is the same for the same text, vocabulary and `max_length`.
        """
        digest = hashlib.sha256()
        for rows in self.sides:
            digest.update(rows.ids.data)
            digest.update(rows.offsets.data)
        return digest.hexdigest()

    def report(self) -> str:
        """Say in one line how many rows were kept and dropped."""
        if len(self.sides) == 1:
            return (
                f"{self.kept:,} sentences kept ({len(self.target.ids):,} tokens), "
                f"{self.dropped_empty:,} dropped as empty, {self.dropped_long:,} as longer than "
                f"{self.max_length:,} tokens"
            )
        return (
            f"{self.kept:,} sentence pairs kept ({len(self.source.ids):,} source and "
            f"{len(self.target.ids):,} target tokens), {self.dropped_empty:,} dropped for an empty "
            f"side, {self.dropped_long:,} for a side of more than {self.max_length:,} tokens"
        )


def likeliest_segmentation(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
    """Encode sentences as they are always encoded outside training."""
    return tokenizer.encode(sentences)


def encode_text(
    rows: Iterable[Row],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
    segmentation: Segmentation = likeliest_segmentation,
) -> EncodedText:
    """Encode text to train on.

    Rows with an empty side, or with a side that is too long, are dropped.

    Args:
        rows: (source, target) or (sentence,), read once.
        tokenizers: One for each side.
        max_length: Ids that a side may have, END_ID included.
        on_progress: Called with the number of rows read so far.
        segmentation: How a tokenizer makes ids of sentences.

    Returns:
        The rows that are left, and the counts of the others.

    Raises:
        ValueError: No row is left, or a sentence is not Unicode text.

    Example:
        >>> tokenizer = Tokenizer.train(["a b c"] * 20, vocab_size=8)
        >>> text = encode_text([("a b", "c"), ("", "c")], [tokenizer, tokenizer], max_length=9)
        >>> text.kept, text.dropped_empty, text.dropped_long
        (1, 1, 0)
    """
    parts = []
    rows_done = 0
    for chunk in _chunks(rows):
        parts.append(_encode_chunk(chunk, tokenizers, max_length, segmentation))
        rows_done += len(chunk)
        on_progress(rows_done)
    numbers = range(len(tokenizers))
    encoded = EncodedText(
        sides=tuple(IdRows.join([part.sides[side] for part in parts]) for side in numbers),
        max_length=max_length,
        dropped_empty=sum(part.dropped_empty for part in parts),
        dropped_long=sum(part.dropped_long for part in parts),
    )
    if not encoded.kept:
        raise ValueError(f"no text is left: {encoded.report()}; give more text or raise max_length")
    return encoded


def _chunks(rows: Iterable[Row]) -> Iterator[list[Row]]:
    iterator = iter(rows)
    while chunk := list(itertools.islice(iterator, CHUNK)):
        yield chunk


def _encode_chunk(
    chunk: list[Row],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    segmentation: Segmentation,
) -> EncodedText:
    texts = zip(*chunk, strict=True)  # the sentences of each side
    sides = [segmentation(*side) for side in zip(tokenizers, texts, strict=True)]
    full = [[[*ids, END_ID] for ids in row] for row in zip(*sides, strict=True) if all(row)]
    kept = [row for row in full if max(map(len, row)) <= max_length]
    return EncodedText(
        sides=tuple(IdRows.of([row[side] for row in kept]) for side in range(len(tokenizers))),
        max_length=max_length,
        dropped_empty=len(chunk) - len(full),
        dropped_long=len(full) - len(kept),
    )


def random_segmentation(alpha: float, max_length: int, seed: Sequence[int]) -> Segmentation:
    """Segment sentences at random, by `Tokenizer.sample`.

    The rows that are dropped are the same as without it.

    Args:
        alpha: That of `Tokenizer.sample`.
        max_length: A sentence whose random segmentation or likeliest one does not fit into so many
            ids, END_ID included, is segmented as usual.
        seed: Of all the sentences to come, in their order.
    """
    random = np.random.default_rng(seed)

    def segment(tokenizer: Tokenizer, sentences: Sequence[str]) -> list[list[int]]:
        likeliest = tokenizer.encode(sentences)
        drawn = tokenizer.sample(sentences, alpha, seed=int(random.integers(2**32 - 1)))
        pairs = zip(drawn, likeliest, strict=True)
        return [one if max(len(one), len(other)) < max_length else other for one, other in pairs]

    return segment


def sampled_texts(
    rows: Sequence[Row], tokenizers: Sequence[Tokenizer], max_length: int, alpha: float, seed: int
) -> Callable[[int], EncodedText]:
    """Encode the text of pass 0, 1, ..., each with other segmentations.

    This is subword regularisation (Kudo 2018). Each pass takes the time of encoding the text twice,
    by one processor. In another process the segmentations differ.

    Args:
        rows: (source, target) or (sentence,).
        tokenizers: One for each side.
        max_length: Ids that a side may have, END_ID included.
        alpha: That of `Tokenizer.sample`.
        seed: Of all passes.

    Returns:
        A function from the number of a pass to its text.
    """

    def text_of(epoch: int) -> EncodedText:
        segmentation = random_segmentation(alpha, max_length, [seed, epoch])
        return encode_text(rows, tokenizers, max_length, segmentation=segmentation)

    return text_of
