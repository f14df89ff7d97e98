"""Encode text: sentences and sentence pairs become flat arrays of ids."""

from __future__ import annotations

import collections
import concurrent.futures
import dataclasses
import functools
import hashlib
import itertools
import mmap
import reprlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tfformer.argument_checks import require_size
from tfformer.data.sources import Row
from tfformer.data.tokenizers import WORD_START, Tokenizer
from tfformer.special_ids import END_ID, PAD_ID, UNKNOWN_ID

A = TypeVar("A")
B = TypeVar("B")

CHUNK = 10_000  # sentences or pairs encoded at a time, to limit the text in memory
ENCODERS = 4  # chunks at a time: SentencePiece releases the GIL, and uses every core itself
BLOCK = 2**16  # elements that are read at a time from large arrays


@dataclasses.dataclass(frozen=True)
class IdRows:
    """Millions of rows of ids in two flat arrays.

    The arrays may be memory-mapped files (`np.memmap`). `padded` then releases the pages that it
    has read, so that the process does not grow.

    Example:
        >>> rows = IdRows.of([[5, 6, 3], [7, 3]])
        >>> rows[1].tolist(), rows.padded([1, 0]).tolist()
        ([7, 3], [[7, 3, 0], [5, 6, 3]])
    """

    ids: np.ndarray  # (sum of lengths,) integers
    offsets: np.ndarray  # (rows + 1,) integers; row i is `ids[offsets[i] : offsets[i + 1]]`

    @classmethod
    def of(
        cls, rows: Sequence[Sequence[int] | np.ndarray], dtype: npt.DTypeLike = np.int32
    ) -> IdRows:
        """Copy lists of ids into an array of `dtype`."""
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return cls(np.fromiter(itertools.chain.from_iterable(rows), dtype, offsets[-1]), offsets)

    @classmethod
    def join(cls, chunks: Sequence[IdRows]) -> IdRows:
        """Concatenate the rows of all chunks."""
        lengths = np.concatenate([np.zeros(1, np.int64), *(chunk.lengths for chunk in chunks)])
        ids = [chunk.ids for chunk in chunks] or [np.zeros(0, np.int32)]
        return cls(np.concatenate(ids), np.cumsum(lengths))

    @property
    def lengths(self) -> np.ndarray:
        """The number of ids of each row, (rows,) int64."""
        return np.diff(self.offsets).astype(np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def lengths_of(self, rows: np.ndarray) -> np.ndarray:
        """Return the number of ids of the chosen rows, (B,) int32."""
        lengths = np.empty(len(rows), np.int32)
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            lengths[start : start + BLOCK] = self.offsets[block + 1] - self.offsets[block]
        release(self.offsets)
        return lengths

    def padded(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the chosen rows, at least one, padded to the longest: (B, longest) int32."""
        chosen = np.asarray(rows)
        starts = self.offsets[chosen].astype(np.int64)
        lengths = self.lengths_of(chosen)
        columns = np.arange(lengths.max())
        is_real = columns < lengths[:, np.newaxis]  # (B, longest)
        indices = starts[:, np.newaxis] + columns
        batch = np.full(is_real.shape, PAD_ID, np.int32)
        batch[is_real] = self.take(indices[is_real])
        return batch

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Return the elements of `ids` at these indices."""
        taken = self.ids[indices]
        release(self.ids)
        return taken

    def counts_after_first(self, size: int) -> np.ndarray:
        """Count each id except the first of every row: (size,) int64."""
        counts = np.zeros(size, np.int64)
        for start in range(0, len(self.ids), BLOCK):
            counts += np.bincount(self.ids[start : start + BLOCK], minlength=size)
        for start in range(0, len(self), BLOCK):
            firsts = self.offsets[start : min(start + BLOCK, len(self))]
            counts -= np.bincount(self.ids[firsts], minlength=size)
        release(self.ids)
        return counts

    def update(self, digest: hashlib._Hash) -> None:
        """Add the ids as int32 and the offsets as int64 to a digest, a block at a time."""
        for array, dtype in ((self.ids, np.int32), (self.offsets, np.int64)):
            for start in range(0, len(array), BLOCK):
                digest.update(np.ascontiguousarray(array[start : start + BLOCK], dtype).data)
                release(array)


def release(array: np.ndarray) -> None:
    """Release the pages of a memory-mapped array; a later use reads them again."""
    if isinstance(array.base, mmap.mmap):
        array.base.madvise(mmap.MADV_DONTNEED)


def in_batches(items: Iterable[A], batch_size: int) -> Iterator[list[A]]:
    """Yield `batch_size` items at a time; the last batch may have fewer."""
    require_size("batch_size", batch_size)
    remaining = iter(items)
    while batch := list(itertools.islice(remaining, batch_size)):
        yield batch


def pad(rows: Sequence[Sequence[int]]) -> np.ndarray:
    """Pad B lists of ids, at least one, with 0 to the longest: (B, longest) int32."""
    return IdRows.of(rows).padded(range(len(rows)))


# Sentences for a trained model


@dataclasses.dataclass(frozen=True)
class EncodedSentences:
    """Sentences as ids without start and end, each of at most `max_tokens`."""

    ids: list[list[int]]  # one list per sentence; a blank sentence has an empty list
    is_truncated: list[bool]  # whether each sentence was truncated
    max_tokens: int  # maximum number of ids per sentence

    @property
    def truncated(self) -> int:
        """Number of sentences that were truncated."""
        return sum(self.is_truncated)

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, numbers: Sequence[int]) -> EncodedSentences:
        """Select sentences by index, in the given order."""
        ids = [self.ids[number] for number in numbers]
        is_truncated = [self.is_truncated[number] for number in numbers]
        return EncodedSentences(ids, is_truncated, self.max_tokens)


Sentences = Sequence[str] | EncodedSentences  # texts, or texts that have been encoded


def encode_truncated(
    tokenizer: Tokenizer, sentences: Sentences, max_tokens: int
) -> EncodedSentences:
    """Encode B sentences and truncate each to `max_tokens` ids, unless they are encoded already."""
    if isinstance(sentences, EncodedSentences):
        return sentences
    rows = tokenizer.encode(sentences)
    is_truncated = [len(ids) > max_tokens for ids in rows]
    return EncodedSentences([ids[:max_tokens] for ids in rows], is_truncated, max_tokens)


def warn_if_truncated(truncated: int, sentences: int, max_tokens: int, stacklevel: int) -> None:
    """Warn if sentences were truncated; `stacklevel` counts from the caller."""
    if truncated:
        warnings.warn(
            f"{truncated} of {sentences} sentences had more than {max_tokens} tokens, the model's "
            "limit, and were truncated",
            stacklevel=stacklevel + 1,
        )


def check_pairs(sources: Sentences, targets: Sentences) -> None:
    """Raise ValueError unless there are as many targets as sources."""
    if len(sources) != len(targets):
        raise ValueError(
            f"{len(sources)} sources and {len(targets)} targets cannot be paired; pass one target "
            "per source"
        )


def encode_prefixes(
    tokenizer: Tokenizer, prefixes: Sequence[str], max_length: int
) -> list[list[int]]:
    """Encode the beginnings of B translations of at most `max_length` tokens, the end included.

    ValueError: a prefix is too long, or has a character that the vocabulary lacks.
    """
    rows = tokenizer.encode(prefixes)
    for prefix, ids in zip(prefixes, rows, strict=True):
        if len(ids) >= max_length:
            raise ValueError(
                f"the prefix {reprlib.repr(prefix)} has {len(ids)} tokens, and a translation has "
                f"at most {max_length - 1}; shorten it"
            )
        if UNKNOWN_ID in ids:
            raise ValueError(
                f"the vocabulary lacks a character of the prefix {reprlib.repr(prefix)}; use "
                "another word, or train with tokenizer.byte_fallback"
            )
    return rows


def warn_of_truncation(
    given: Sequence[Sentences], encoded: Sequence[EncodedSentences], stacklevel: int
) -> None:
    """Warn once about truncated sentences, except those that the caller had encoded.

    `given` and `encoded` are the same lists of sentences before and after encoding. `stacklevel`
    counts from the caller.
    """
    newly_encoded = [
        encoded_side
        for sentences, encoded_side in zip(given, encoded, strict=True)
        if not isinstance(sentences, EncodedSentences)
    ]
    truncated = sum(encoded_side.truncated for encoded_side in newly_encoded)
    total = sum(len(encoded_side) for encoded_side in newly_encoded)
    if newly_encoded:
        warn_if_truncated(truncated, total, newly_encoded[0].max_tokens, stacklevel + 1)


# Text to train on


@dataclasses.dataclass(frozen=True)
class EncodedText:
    """Rows of ids to train on, each ending with END_ID, and the counts of dropped rows."""

    sides: tuple[IdRows, ...]  # the rows of source and target, or of the only side
    max_length: int  # maximum number of ids per row, END_ID included
    dropped_empty: int  # rows dropped because a side is empty
    dropped_long: int  # rows dropped because a side is too long
    corpora: tuple[int, ...] = ()  # the number of rows of each corpus, in order
    links: IdRows | None = None  # rows like the target's, see `linked_positions`

    @property
    def source(self) -> IdRows:
        """The first side."""
        return self.sides[0]

    @property
    def target(self) -> IdRows:
        """The target side, or the only side."""
        return self.sides[-1]

    @property
    def arrays(self) -> tuple[IdRows, ...]:
        """The sides, and the links if there are any."""
        return self.sides if self.links is None else (*self.sides, self.links)

    @property
    def kept(self) -> int:
        """Number of rows."""
        return len(self.target)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the ids in hexadecimal, independent of how the arrays are stored."""
        digest = hashlib.sha256()
        for rows in self.arrays:
            rows.update(digest)
        return digest.hexdigest()

    def report(self) -> str:
        """Report in one line how many rows were kept and dropped."""
        if len(self.sides) == 1:
            return (
                f"{self.kept:,} sentences kept ({len(self.target.ids):,} tokens), "
                f"{self.dropped_empty:,} dropped as empty, {self.dropped_long:,} as longer than "
                f"{self.max_length:,} tokens"
            )
        return (
            f"{self.kept:,} sentence pairs kept ({len(self.source.ids):,} source and "
            f"{len(self.target.ids):,} target tokens), {self.dropped_empty:,} dropped because a "
            f"side is empty, {self.dropped_long:,} because a side exceeds {self.max_length:,} "
            "tokens"
        )


def encode_text(
    rows: Iterable[Row],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
) -> EncodedText:
    """Encode the rows of one corpus, as `encode_corpora` does."""
    return encode_corpora([rows], tokenizers, max_length, on_progress)


Sides = tuple[IdRows, ...]


def joined(chunks: Iterable[Sides]) -> Sides:
    """Concatenate the rows of one or more chunks in memory."""
    return tuple(IdRows.join(side) for side in zip(*chunks, strict=True))


def encode_corpora(
    corpora: Iterable[Iterable[Row]],
    tokenizers: Sequence[Tokenizer],
    max_length: int,
    on_progress: Callable[[int], None] = lambda rows_done: None,
    collect: Callable[[Iterator[Sides]], Sides] = joined,
    with_links: bool = False,
) -> EncodedText:
    """Encode several corpora as one text and drop rows with an empty or overlong side.

    Args:
        corpora: The rows of each corpus, (source, target), (source, target, links) or (sentence,),
            read once.
        tokenizers: One per side.
        max_length: Maximum number of ids of a side, END_ID included.
        on_progress: Called with the number of rows read so far.
        collect: Joins the encoded chunks, in memory or in files.
        with_links: Whether rows have links between their words.
    """
    kept: list[int] = []
    dropped_empty = dropped_long = 0

    def encoded_chunks() -> Iterator[Sides]:
        nonlocal dropped_empty, dropped_long
        encode = functools.partial(_encode_chunk, tokenizers=tokenizers, max_length=max_length)
        for rows in corpora:
            kept.append(0)
            for chunk in _map_in_order(encode, in_batches(rows, CHUNK), ENCODERS):
                kept[-1] += chunk.kept
                dropped_empty += chunk.dropped_empty
                dropped_long += chunk.dropped_long
                yield chunk.arrays
                on_progress(sum(kept) + dropped_empty + dropped_long)

    dtypes = array_dtypes(tokenizers, max_length, with_links)
    nothing = tuple(IdRows.of([], dtype) for dtype in dtypes)
    arrays = collect(itertools.chain([nothing], encoded_chunks()))
    sides, links = arrays[: len(tokenizers)], arrays[len(tokenizers) :]
    encoded = EncodedText(sides, max_length, dropped_empty, dropped_long, tuple(kept), *links)
    if not encoded.kept:
        raise ValueError(f"no text is left: {encoded.report()}; use more text or raise max_length")
    return encoded


def _map_in_order(function: Callable[[A], B], items: Iterable[A], workers: int) -> Iterator[B]:
    """Yield `function(item)` for each item in order, computed in `workers` threads."""
    with concurrent.futures.ThreadPoolExecutor(workers) as threads:
        waiting: collections.deque[concurrent.futures.Future[B]] = collections.deque()
        for item in items:
            waiting.append(threads.submit(function, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _encode_chunk(
    chunk: list[Row], tokenizers: Sequence[Tokenizer], max_length: int
) -> EncodedText:
    columns = list(zip(*chunk, strict=True))
    sides = [
        IdRows.of(tokenizer.encode(sentences), id_dtype(tokenizer))
        for tokenizer, sentences in zip(tokenizers, columns, strict=False)
    ]
    lengths = np.stack([rows.lengths + 1 for rows in sides])  # includes END_ID
    is_full = (lengths > 1).all(axis=0)
    is_short = (lengths <= max_length).all(axis=0)
    is_kept = np.logical_and(is_full, is_short)
    ended = tuple(_ended(rows, is_kept) for rows in sides)
    links = None
    if len(columns) > len(tokenizers):
        linked = list(itertools.compress(chunk, is_kept))
        links = linked_positions(linked, ended, tokenizers, np.min_scalar_type(max_length))
    return EncodedText(
        sides=ended,
        max_length=max_length,
        dropped_empty=int((~is_full).sum()),
        dropped_long=int((is_full & ~is_short).sum()),
        links=links,
    )


def id_dtype(tokenizer: Tokenizer) -> np.dtype:
    """Return the smallest unsigned type that can represent a tokenizer's ids."""
    return np.min_scalar_type(tokenizer.vocab_size - 1)


def array_dtypes(
    tokenizers: Sequence[Tokenizer], max_length: int, with_links: bool
) -> list[np.dtype]:
    """Return the smallest types for the ids of each side and, with links, for positions."""
    positions = [np.min_scalar_type(max_length)] if with_links else []
    return [*map(id_dtype, tokenizers), *positions]


def _ended(rows: IdRows, is_kept: np.ndarray) -> IdRows:
    """Select rows, and append END_ID to each."""
    ids = rows.ids[np.repeat(is_kept, rows.lengths)]
    ends = np.cumsum(rows.lengths[is_kept])
    offsets = np.concatenate([np.zeros(1, np.int64), ends + np.arange(1, len(ends) + 1)])
    return IdRows(np.insert(ids, ends, END_ID), offsets)


def linked_positions(
    rows: Sequence[Row], sides: Sides, tokenizers: Sequence[Tokenizer], dtype: npt.DTypeLike
) -> IdRows:
    """Return the position, from 1 on, of the source token that each target token translates.

    Each piece of a word with several links gets one of them at random, so that training divides its
    attention evenly, as in Garg et al. 2019. A word without links is linked to the end token, and
    so is the end token. If the tokenizer removes or divides words, such as at a zero-width space,
    the numbers of a row's words are not known, and its links are ignored.

    Args:
        rows: Source, target and the links between their words, see `read_linked_pairs`.
        sides: The ids of source and target, each row with its end token.
        tokenizers: Of source and target.
        dtype: The type of the positions.

    Returns:
        Rows like those of the target; all 0 for a row without links.
    """
    source, target = sides
    # Of each side; words are numbered through all rows.
    words, first, end = zip(*map(_words, sides, tokenizers), strict=True)
    sizes = np.stack(end, axis=1) - np.stack(first, axis=1)  # words of each row
    texts = [
        links if [len(text.split()) for text in pair] == size else ""
        for (*pair, links), size in zip(rows, sizes.tolist(), strict=True)
    ]
    row_of_token = np.repeat(np.arange(len(target)), target.lengths)
    row_of_link = np.repeat(np.arange(len(target)), [text.count("-") for text in texts])
    numbers = np.array(" ".join(texts).replace("-", " ").split(), np.int64).reshape(-1, 2)
    links = numbers + np.stack(first, axis=1)[row_of_link]
    row_of_word = row_of_token[words[1]]
    is_alone = np.bincount(links[:, 1], minlength=len(words[1])) == 0
    is_alone &= np.isin(row_of_word, row_of_link)
    to_end = np.stack([end[0][row_of_word[is_alone]], np.flatnonzero(is_alone)], axis=1)
    links = np.concatenate([links, to_end])
    links = links[np.argsort(links[:, 1], kind="stable")]
    # Draw a link of each token's word, and a piece of the source word.
    counts = np.bincount(links[:, 1], minlength=len(words[1]))
    word = np.searchsorted(words[1], np.arange(len(target.ids)), side="right") - 1  # of each token
    is_linked = counts[word] > 0
    random = np.random.default_rng(0).random((2, int(is_linked.sum())))
    word = word[is_linked]
    begins = np.cumsum(counts) - counts
    chosen = links[begins[word] + (random[0] * counts[word]).astype(int), 0]
    pieces = np.diff(words[0], append=len(source.ids))[chosen]
    positions = np.zeros(len(target.ids), dtype)
    tokens = words[0][chosen] + (random[1] * pieces).astype(int)
    positions[is_linked] = tokens - source.offsets[row_of_token[is_linked]] + 1
    return IdRows(positions, target.offsets)


def _words(side: IdRows, tokenizer: Tokenizer) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the first token of each word, and the number of each row's first word and end token.

    All tokens and words of a side are counted from 0. The tokenizer's `begin_ids` are not words.
    """
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    begins_word = np.array([piece.startswith(WORD_START) for piece in pieces])
    is_first = begins_word[side.ids]
    first_of_row = side.offsets[:-1] + len(tokenizer.begin_ids)
    for tokens in (side.offsets[:-1], first_of_row, side.offsets[1:] - 1):
        is_first[tokens] = True
    words = np.flatnonzero(is_first)
    return words, np.searchsorted(words, first_of_row), np.searchsorted(words, side.offsets[1:] - 1)
