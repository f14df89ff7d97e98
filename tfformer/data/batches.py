"""Sentences and pairs of them as batches of ids. Knows no files and no model."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import hashlib
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tfformer.data.sources import SentencePair, Sides
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID, START_ID

Cut = Callable[[Tokenizer, Sequence[str]], list[list[int]]]  # how sentences become ids

CHUNK = 10_000  # sentences or pairs encoded at a time, so that memory holds their text only

# Text to ids


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


def like_length_batches(
    rows: Sequence[Sequence[int]], batch_size: int
) -> Iterator[tuple[list[int], np.ndarray]]:
    """The rows that are not empty, shortest first, `batch_size` at a time: their numbers and their ids, padded."""
    order = [
        number
        for number in sorted(range(len(rows)), key=lambda number: len(rows[number]))
        if rows[number]
    ]
    for first in range(0, len(order), batch_size):
        numbers = order[first : first + batch_size]
        yield numbers, IdRows.of([rows[number] for number in numbers]).padded(range(len(numbers)))


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


# Ids to batches


def snake_order(
    source_lengths: np.ndarray, target_lengths: np.ndarray, ties: np.ndarray
) -> np.ndarray:
    """The order in which pairs of like lengths are neighbours, (pairs,) int64, longest first.

    Pairs are sorted by their longer side, which decides how many fit into a batch; of equal ones, by how much longer
    the source is, upwards and downwards in turn, so that the shorter side does not jump. `ties` decides the rest.
    """
    longer = np.maximum(source_lengths, target_lengths)
    upwards = np.where(longer % 2, 1, -1)
    return np.lexsort((ties, upwards * (source_lengths - target_lengths), -longer))


def plan_batches(longer_lengths: np.ndarray, batch_tokens: int) -> list[tuple[int, int]]:
    """Cuts rows, the longest first, into (start, stop) of at most `batch_tokens` padded tokens a side.

    Vaswani et al. 2017, section 5.1. The last two batches share their rows evenly, so that none is a mere rest. Raises
    ValueError where the longest pair does not fit into a batch.
    """
    if longer_lengths[0] > batch_tokens:
        raise ValueError(
            f"batch_tokens is {batch_tokens:,}, but one sentence has {longer_lengths[0]:,} tokens and must fit; "
            f"raise batch_tokens, or encode with max_length={batch_tokens}"
        )
    bounds, pairs = [0], len(longer_lengths)
    while bounds[-1] < pairs:
        bounds.append(min(pairs, bounds[-1] + batch_tokens // int(longer_lengths[bounds[-1]])))
    if len(bounds) > 2:
        bounds[-2] = min(bounds[-2], (bounds[-3] + pairs) // 2)
    return list(itertools.pairwise(bounds))


def plan_steps(longer_lengths: np.ndarray, batch_tokens: int, steps: int) -> list[tuple[int, int]]:
    """As `plan_batches`, but in exactly `steps` batches: with no more tokens a batch than that takes, or halved ones.

    Raises ValueError where there are fewer rows than steps.
    """
    rows = len(longer_lengths)
    if rows < steps:
        raise ValueError(
            f"{rows:,} rows cannot make {steps:,} batches; give more text or fewer steps"
        )
    budgets = range(batch_tokens, rows * int(longer_lengths[0]) + batch_tokens)
    enough = bisect.bisect_left(
        budgets, -steps, key=lambda tokens: -len(plan_batches(longer_lengths, tokens))
    )
    plan = plan_batches(longer_lengths, budgets[enough])
    while len(plan) < steps:
        start, stop = most = max(plan, key=lambda bounds: bounds[1] - bounds[0])
        middle = (start + stop) // 2
        plan[plan.index(most) : plan.index(most) + 1] = [(start, middle), (middle, stop)]
    return plan


class Epoch(NamedTuple):
    """One pass over the text: as it is cut into tokens this time, its rows in their order, its batches in theirs."""

    text: EncodedText
    order: np.ndarray  # (rows,)
    plan: np.ndarray  # (steps, 2): each batch as (start, stop) in `order`


class Batches:
    """Batches of rows of like lengths; batch `step` follows from the text, `batch_tokens`, `seed` and `step` alone.

    So a training run resumes at any step without a state. Every epoch holds each row once, in as many batches; which of
    the equally long rows share a batch, and the order of batches, change with the epoch. `sampled` gives the text of an
    epoch, where it is cut anew each time: then a batch may need a few tokens more than `batch_tokens`, and another
    process has other cuts.
    Raises what `plan_batches` raises.
    """

    def __init__(
        self,
        text: EncodedText,
        batch_tokens: int,
        seed: int = 0,
        sampled: Callable[[int], EncodedText] | None = None,
    ):
        self.text = text
        self.batch_tokens = batch_tokens
        self.seed = seed
        self._text_of = functools.lru_cache(maxsize=1)(sampled) if sampled else lambda epoch: text
        self._epoch = functools.lru_cache(maxsize=2)(self._shuffle)
        self.steps_per_epoch = len(plan_batches(_longer(self._text_of(0)), batch_tokens))

    @functools.cached_property
    def padding_share(self) -> float:
        """The share of padding among all positions of all sides in the first epoch; in the others about the same."""
        text, order, plan = self._epoch(0)
        starts, stops = np.sort(plan, axis=0).T
        longest = [np.maximum.reduceat(rows.lengths[order], starts) for rows in text.sides]
        return 1 - sum(len(rows.ids) for rows in text.sides) / float(
            sum(longest) @ (stops - starts)
        )

    def report(self) -> str:
        return f"{self.steps_per_epoch:,} batches an epoch, {self.padding_share:.1%} padding"

    def batch(self, step: int) -> tuple[dict[str, np.ndarray] | np.ndarray, np.ndarray, np.ndarray]:
        """({"source": (B, S), "target": (B, T)}, labels (B, T), weights (B, T)): ids are int32, weights float32.

        `labels` end in END_ID; `target` is the same one place later, behind START_ID; `weights` are 1 at real labels.
        Text with one side has no source: `target` takes the place of the dictionary.
        """
        epoch, place = divmod(step, self.steps_per_epoch)
        text, order, plan = self._epoch(epoch)
        rows = order[slice(*plan[place])]
        *sources, labels = (side.padded(rows) for side in text.sides)
        is_real = labels != PAD_ID
        previous = np.pad(labels[:, :-1], [(0, 0), (1, 0)], constant_values=START_ID)
        target = np.where(is_real, previous, PAD_ID)
        inputs = {"source": sources[0], "target": target} if sources else target
        return inputs, labels, is_real.astype(np.float32)

    def dataset(self, first_step: int = 0):
        """An endless `tf.data.Dataset` of `batch(first_step)`, `batch(first_step + 1)`, ..."""
        return self._dataset(lambda: map(self.batch, itertools.count(first_step)))

    def dataset_of_epochs(self):
        """A `tf.data.Dataset` of one epoch, the next one at each pass."""
        import tensorflow as tf

        steps, epochs = self.steps_per_epoch, itertools.count()

        def one_epoch():
            epoch = next(epochs)
            return map(self.batch, range(epoch * steps, (epoch + 1) * steps))

        return self._dataset(one_epoch).apply(tf.data.experimental.assert_cardinality(steps))

    def _dataset(self, generator: Callable[[], Iterator]):
        import tensorflow as tf

        ids, weights = (
            tf.TensorSpec([None, None], tf.int32),
            tf.TensorSpec([None, None], tf.float32),
        )
        inputs = {"source": ids, "target": ids} if len(self.text.sides) == 2 else ids
        options = tf.data.Options()
        options.autotune.enabled = (
            False  # nothing to tune; and its thread may sleep on for a minute when training ends
        )
        dataset = tf.data.Dataset.from_generator(generator, output_signature=(inputs, ids, weights))
        return dataset.prefetch(2).with_options(options)

    def _shuffle(self, epoch: int) -> Epoch:
        random = np.random.default_rng([self.seed, epoch])
        text = self._text_of(epoch)
        order = snake_order(text.source.lengths, text.target.lengths, ties=random.random(text.kept))
        plan = plan_steps(_longer(text), self.batch_tokens, self.steps_per_epoch)
        return Epoch(text, order, random.permutation(plan))


def _longer(text: EncodedText) -> np.ndarray:
    """The lengths of the rows' longer sides, downwards."""
    return np.sort(np.maximum(text.source.lengths, text.target.lengths))[::-1]


def training_dataset(
    pairs: Iterable[SentencePair],
    tokenizer: Tokenizer,
    target_tokenizer: Tokenizer | None = None,
    *,
    batch_tokens: int = 4096,
    max_length: int = 128,
    seed: int = 0,
    sampling_alpha: float | None = None,
):
    """Sentence pairs -> a `tf.data.Dataset` for `model.fit(dataset, epochs=...)`; each pass is shuffled anew.

    Elements are those of `Batches.batch`; both sides share `tokenizer` unless the target has its own. With
    `sampling_alpha`, each pass cuts the sentences anew at random (`Tokenizer.sample`). Warns where pairs are dropped;
    raises what `encode_text` and `Batches` raise.
    """
    vocabularies, sampled = (tokenizer, target_tokenizer or tokenizer), None
    if sampling_alpha is not None:
        pairs = list(pairs)
        sampled = sampled_texts(pairs, vocabularies, max_length, sampling_alpha, seed)
    encoded = encode_text(pairs, vocabularies, max_length)
    if encoded.dropped_empty or encoded.dropped_long:
        warnings.warn(encoded.report(), stacklevel=2)
    return Batches(encoded, batch_tokens, seed, sampled).dataset_of_epochs()
