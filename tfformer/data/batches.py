"""Ids to batches: rows of like lengths together, in an order that a seed decides. Knows no model."""

from __future__ import annotations

import bisect
import functools
import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tfformer.data.encoding import EncodedText, IdRows, encode_text, sampled_texts
from tfformer.data.sources import SentencePair
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import PAD_ID, START_ID


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
