"""Group rows of similar length into batches and shuffle the batches with a seed."""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from os import PathLike
from reprlib import repr as shown
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tfformer.data.encoding import BLOCK, EncodedText, IdRows, encode_text, in_batches, pad
from tfformer.data.mixture import rows_by_shares
from tfformer.data.packing import count_bins, fill, pack, packed_links
from tfformer.data.sources import SentencePair
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID, START_ID

if TYPE_CHECKING:
    import tensorflow as tf

FIRST_DRAWS = 4  # draws of a mixture; steps_per_epoch is the most batches that any of them needs
MOST_DRAWS = 20  # maximum draws per epoch; usually the first or second draw fits
CUTS = 1  # distinguishes the random numbers of a step's cuts from those of an epoch's order
MULTIPLE = 8  # the width of packed batches is rounded up to a multiple: faster on GPUs
Batch = tuple[dict[str, np.ndarray] | np.ndarray, np.ndarray, np.ndarray]  # inputs, labels, weights


def by_length(rows: Sequence[Sequence[int]]) -> list[int]:
    """Return the indices of rows, shortest rows first."""
    return sorted(range(len(rows)), key=lambda index: len(rows[index]))


def like_length_batches(
    rows: Sequence[Sequence[int]], batch_size: int
) -> Iterator[tuple[list[int], np.ndarray]]:
    """Yield the indices and the padded ids (B, longest) of rows of similar length, shortest first.

    Empty rows are left out.
    """
    order = [index for index in by_length(rows) if rows[index]]
    for indices in in_batches(order, batch_size):
        yield indices, pad([rows[index] for index in indices])


def token_batches(
    order: Sequence[int], lengths: Sequence[int], batch_tokens: int
) -> Iterator[list[int]]:
    """Yield the indices of rows whose padded batch has at most `batch_tokens` tokens.

    `order` lists the rows by ascending length. A row of more than `batch_tokens` is a batch by
    itself.
    """
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) + 1) * lengths[index] > batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def snake_order(
    source_lengths: np.ndarray, target_lengths: np.ndarray, ties: np.ndarray
) -> np.ndarray:
    """Return the indices of pairs, (pairs,) int64, so that neighbours have similar lengths.

    Pairs are sorted by their longer side, longest first, as that side decides how many pairs fit
    into a batch. Pairs whose longer sides are equally long are sorted by the difference between
    their sides. The direction alternates between ascending and descending, so that the length of
    the shorter side changes gradually. `ties` (pairs,) orders equal pairs.
    """
    longer = np.maximum(source_lengths, target_lengths)
    upwards = np.where(longer % 2, 1, -1)
    return np.lexsort((ties, upwards * (source_lengths - target_lengths), -longer))


def order_by_length(
    text: EncodedText, rows: Sequence[int] | np.ndarray, random: np.random.Generator
) -> np.ndarray:
    """Order rows as `snake_order` does, and equal rows at random, using 12 bytes per row.

    A counting sort groups the rows by their longer side, and then each group is sorted separately.
    """
    counts = length_counts(text, rows)
    # The end of each length's rows in `order`, which begins with the longest rows.
    stops = np.cumsum(counts[::-1])[::-1]
    free = stops - counts
    order = np.empty(len(rows), np.promote_types(np.int32, np.min_scalar_type(-text.kept)))
    ties = np.empty(len(rows))
    for block in _blocks(rows):
        drawn = random.random(len(block))
        longer = _longer(text, block)
        ascending = np.argsort(longer, kind="stable")
        longer = longer[ascending]
        # The index of each row among the rows of equal length.
        rank = np.arange(len(block)) - np.searchsorted(longer, longer)
        indices = free[longer] + rank
        order[indices] = block[ascending]
        ties[indices] = drawn[ascending]
        free += np.bincount(longer, minlength=len(free))
    for start, stop in zip(stops - counts, stops, strict=True):
        group = order[start:stop]
        lengths = text.source.lengths_of(group), text.target.lengths_of(group)
        group[:] = group[snake_order(*lengths, ties[start:stop])]
    return order


def length_counts(text: EncodedText, rows: Sequence[int] | np.ndarray) -> np.ndarray:
    """Count the rows per length of the longer side, (longest + 1,)."""
    counts = np.zeros(1, np.int64)
    for block in _blocks(rows):
        block_counts = np.bincount(_longer(text, block), minlength=len(counts))
        block_counts[: len(counts)] += counts
        counts = block_counts
    return counts


def _blocks(rows: Sequence[int] | np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BLOCK):
        yield np.asarray(rows[start : start + BLOCK])


def _longer(text: EncodedText, rows: np.ndarray) -> np.ndarray:
    return np.maximum(text.source.lengths_of(rows), text.target.lengths_of(rows))


def _descending(counts: np.ndarray) -> np.ndarray:
    """Expand the result of `length_counts` into a list of lengths, longest first, (rows,) int32."""
    lengths = np.arange(len(counts), dtype=np.int32)
    return np.repeat(lengths[::-1], counts[::-1])


def plan_batches(longer_lengths: np.ndarray, batch_tokens: int) -> list[tuple[int, int]]:
    """Return (start, stop) of each batch of at most `batch_tokens` tokens per side, with padding.

    `longer_lengths` (rows,) are the tokens of each row's longer side, in descending order. The last
    two batches share their rows evenly, so that the last batch is not a small remainder. A row that
    does not fit into a batch raises ValueError.

    Example:
        >>> plan_batches(np.array([5, 5, 4, 4, 3, 2]), batch_tokens=10)
        [(0, 2), (2, 4), (4, 6)]
    """
    if longer_lengths[0] > batch_tokens:
        raise ValueError(
            f"batch_tokens is {batch_tokens:,}, but one sentence has {longer_lengths[0]:,} tokens "
            f"and must fit; raise batch_tokens, or encode with max_length={batch_tokens}"
        )
    rows = len(longer_lengths)
    bounds = [0]
    while bounds[-1] < rows:
        start = bounds[-1]
        fitting = batch_tokens // int(longer_lengths[start])  # the first row is the longest
        bounds.append(min(rows, start + fitting))
    if len(bounds) > 2:
        # Even out the last two batches: the last one holds only the remainder.
        bounds[-2] = min(bounds[-2], (bounds[-3] + rows) // 2)
    return list(itertools.pairwise(bounds))


def plan_steps(longer_lengths: np.ndarray, batch_tokens: int, steps: int) -> list[tuple[int, int]]:
    """Divide rows as `plan_batches` does, but into exactly `steps` batches.

    Every epoch must have the same number of batches, even if each draws different rows of a
    mixture. `batch_tokens` is raised until at most `steps` batches are needed. If there are then
    fewer than `steps`, the largest batches are halved. Fewer rows than steps raise ValueError.
    """
    rows = len(longer_lengths)
    if rows < steps:
        raise ValueError(
            f"{rows:,} rows are too few for {steps:,} batches; use more text or fewer steps"
        )
    # The number of batches falls as the budget grows: bisect on its negative for the smallest
    # budget that needs at most `steps`.
    longest = int(longer_lengths[0])
    budgets = range(max(batch_tokens, longest), rows * longest + batch_tokens)
    smallest = bisect.bisect_left(
        budgets, -steps, key=lambda tokens: -len(plan_batches(longer_lengths, tokens))
    )
    plan = plan_batches(longer_lengths, budgets[smallest])
    largest = [(start - stop, start, stop) for start, stop in plan]  # a heap, the most rows first
    heapq.heapify(largest)
    while len(largest) < steps:
        _, start, stop = heapq.heappop(largest)
        middle = (start + stop) // 2
        heapq.heappush(largest, (start - middle, start, middle))
        heapq.heappush(largest, (middle - stop, middle, stop))
    return sorted((start, stop) for _, start, stop in largest)


class Epoch(NamedTuple):
    """One pass over the text."""

    order: np.ndarray  # (rows,) row numbers
    # (steps, 2) start and stop of each batch in `order`, or in `bounds` of packed rows
    plan: np.ndarray
    # (bins + 1,) where each bin begins in `order`; None if the rows are not packed
    bounds: np.ndarray | None = None


class Batches:
    """Deterministic batches of rows of similar length.

    Batch n depends only on the arguments and n, so training can resume at any step. Every epoch has
    the same number of batches and contains each row once or, with `shares`, a mixture of the
    corpora. The order of the batches, and the grouping of equally long rows, change from epoch to
    epoch.

    Args:
        text: The encoded text.
        batch_tokens: Maximum number of tokens on each side of a batch, padding included.
        seed: Seed of the shuffling: which rows share a batch, and the order of the batches.
        shares: The share of each of `text.corpora` in an epoch; the shares sum to 1.
            `rows_by_shares` draws the rows, and draws again if the batches would exceed
            `batch_tokens`.
        packed: Put several rows, one after the other, into each row of a batch (`packing`). All
            batches then have one shape, for which XLA compiles one program, and rows of any length
            share a batch.
        cutoff: The share of the tokens that SimCut cuts; None without SimCut.
        links: The links of the target tokens, see `learn_links`; None without guided alignment.

    Attributes:
        steps_per_epoch: Batches in an epoch.
    """

    def __init__(
        self,
        text: EncodedText,
        batch_tokens: int,
        seed: int = 0,
        *,
        shares: Sequence[float] | np.ndarray | None = None,
        packed: bool = False,
        cutoff: float | None = None,
        links: IdRows | None = None,
    ) -> None:
        self.text = text
        self.links = links
        self.cutoff = cutoff
        self.shares = shares
        self.batch_tokens = batch_tokens
        self.seed = seed
        self._epoch = functools.lru_cache(maxsize=1)(self._shuffle)  # an order is large
        self._bins: tuple[int, int] | None = None  # (B, width), the shape of packed batches
        attempts = range(1 if shares is None else FIRST_DRAWS)
        draws = (self._draw(0, attempt) for attempt in attempts)  # one at a time, as they are large
        if not packed:
            self.steps_per_epoch = max(map(self._steps_for, draws))
        else:
            longest = len(length_counts(text, range(text.kept))) - 1
            if longest > batch_tokens:
                raise ValueError(
                    f"batch_tokens is {batch_tokens:,}, but a packed row may have {longest:,} "
                    f"tokens; raise batch_tokens, or encode with max_length={batch_tokens}"
                )
            width = min(MULTIPLE * math.ceil(longest / MULTIPLE), batch_tokens)
            bins = max(count_bins(self._lengths(rows), width) for rows in draws)
            self.steps_per_epoch = -(-bins // (batch_tokens // width))
            self._bins = (-(-bins // self.steps_per_epoch), width)

    @functools.cached_property
    def padding_share(self) -> float:
        """Fraction of the first epoch's positions that is padding. Other epochs are similar."""
        order, plan, _ = self._epoch(0)
        starts, stops = np.sort(plan, axis=0).T
        tokens = positions = 0
        for side in self.text.sides:
            lengths = side.lengths_of(order)
            tokens += int(lengths.sum())
            if self._bins:
                positions += len(plan) * math.prod(self._bins)
            else:
                positions += int(np.maximum.reduceat(lengths, starts) @ (stops - starts))
        return 1 - tokens / positions

    def report(self) -> str:
        """Say in one line how many batches there are and how much of them is padding."""
        return f"{self.steps_per_epoch:,} batches per epoch, {self.padding_share:.1%} padding"

    def batch(self, step: int) -> Batch:
        """Return the batch of a step, counted from 0 through all epochs.

        Returns:
            Inputs `{"source": (B, S), "target": (B, T)}` int32, labels (B, T) int32 and weights (B,
            T) float32. Labels end in END_ID; `target` is the labels shifted right by one position,
            beginning with START_ID; weights are 1 at tokens and 0 at padding. For text with one
            side the inputs are the array `target` alone. Packed rows have "source_segments" and
            "target_segments" too: 1, 2, ... at the tokens of each row, 0 at padding. With a cutoff
            there are "source_kept" and "target_kept", see `_kept`. With links there are "links" (B,
            T), the positions of source tokens in the row, from 1 on, and 0 for none.
        """
        epoch, number = divmod(step, self.steps_per_epoch)
        order, plan, bounds = self._epoch(epoch)
        start, stop = plan[number]
        before = ((0, 0), (1, 0))
        links = []
        if bounds is None:
            *sources, labels = (side.padded(order[start:stop]) for side in self.text.sides)
            previous = np.pad(labels[:, :-1], before, constant_values=START_ID)
            segments = []
            if self.links:
                links = [self.links.padded(order[start:stop])]
        else:
            assert self._bins is not None
            bounds = bounds[start : stop + 1]
            rows, sizes = order[bounds[0] : bounds[-1]], np.diff(bounds)
            filled = [fill(side, rows, sizes, self._bins) for side in self.text.sides]
            *sources, labels = (ids for ids, _ in filled)
            segments = [segments for _, segments in filled]
            is_first = segments[-1] != np.pad(segments[-1][:, :-1], before)
            previous = np.where(is_first, START_ID, np.pad(labels[:, :-1], before))
            if self.links:
                links = [packed_links(self.links, self.text.source, rows, sizes, self._bins)]
        is_real = labels != PAD_ID
        ids = [*sources, np.where(is_real, previous, PAD_ID)]
        arrays = [*ids, *segments, *self._kept(ids, step), *links]
        inputs = dict(zip(self._input_names(), arrays, strict=True))
        if len(inputs) == 1:
            inputs = inputs["target"]
        return inputs, labels, is_real.astype(np.float32)

    def _input_names(self) -> list[str]:
        sides = ["source", "target"][-len(self.text.sides) :]
        names = list(sides)
        if self._bins:
            names += [f"{side}_segments" for side in sides]
        if self.cutoff is not None:
            names += [f"{side}_kept" for side in sides]
        return [*names, "links"] if self.links else names

    def _kept(self, ids: list[np.ndarray], step: int) -> list[np.ndarray]:
        """With a cutoff, draw 0 with this probability, otherwise 1, for the ids (B, S) and (B, T).

        The start token and the end token are always kept, as in the authors' program.
        """
        if self.cutoff is None:
            return []
        random = np.random.default_rng([self.seed, step, CUTS])
        always = (START_ID, END_ID)
        kept = [np.isin(side, always) | (random.random(side.shape) >= self.cutoff) for side in ids]
        return [side.astype(np.int32) for side in kept]

    def dataset(self, first_step: int = 0) -> tf.data.Dataset:
        """Make an endless dataset of `batch(first_step)`, `batch(first_step + 1)`, ..."""
        import tensorflow as tf

        return self._of_steps(tf.data.Dataset.counter(first_step))

    def dataset_of_epochs(self) -> tf.data.Dataset:
        """Make a dataset that contains one epoch; each pass over it yields the next epoch."""
        import tensorflow as tf

        steps = self.steps_per_epoch
        epochs = itertools.count()

        def next_epoch(_: tf.Tensor) -> tf.data.Dataset:
            epoch = tf.numpy_function(lambda: next(epochs), [], tf.int64)
            return tf.data.Dataset.range(epoch * steps, (epoch + 1) * steps)

        numbers = tf.data.Dataset.range(1).flat_map(next_epoch)
        cardinality = tf.data.experimental.assert_cardinality(steps)
        return self._of_steps(numbers).apply(cardinality)

    def _of_steps(self, steps: tf.data.Dataset) -> tf.data.Dataset:
        """Map a dataset of step numbers to batches.

        `Dataset.from_generator` is avoided: its first use in a process sets malloc's
        M_MMAP_THRESHOLD to 128 KiB. malloc then maps fresh memory for every larger tensor, and
        training takes 25% more CPU time (TensorFlow 2.21, `ApplyPython311MemoryPatch`).
        """
        import tensorflow as tf

        ids = tf.TensorSpec([None, None], tf.int32)
        weights = tf.TensorSpec([None, None], tf.float32)
        names = self._input_names()
        inputs = dict.fromkeys(names, ids) if len(names) > 1 else ids
        structure = (inputs, ids, weights)
        specs = tf.nest.flatten(structure)

        def arrays(step: np.int64) -> list[np.ndarray]:
            return tf.nest.flatten(self.batch(int(step)))

        def batch(step: tf.Tensor) -> tuple[dict[str, tf.Tensor] | tf.Tensor, tf.Tensor, tf.Tensor]:
            tensors = tf.numpy_function(arrays, [step], [spec.dtype for spec in specs])
            shaped = map(tf.ensure_shape, tensors, [spec.shape for spec in specs])
            return tf.nest.pack_sequence_as(structure, list(shaped))

        options = tf.data.Options()
        # The tuner has no parameter here, and its thread may outlive training.
        options.autotune.enabled = False
        return steps.map(batch).prefetch(2).with_options(options)

    def _draw(self, epoch: int, attempt: int) -> Sequence[int] | np.ndarray:
        if self.shares is None:
            return range(self.text.kept)
        number = epoch + attempt * 2**32
        return rows_by_shares(self.text.corpora, self.shares, self.seed, number)

    def _fits(self, rows: Sequence[int] | np.ndarray) -> bool:
        if self._bins:
            bins, width = self._bins
            return count_bins(self._lengths(rows), width) <= self.steps_per_epoch * bins
        return self._steps_for(rows) <= self.steps_per_epoch

    def _steps_for(self, rows: Sequence[int] | np.ndarray) -> int:
        """Return the number of batches of at most `batch_tokens` that unpacked rows need."""
        return len(plan_batches(_descending(length_counts(self.text, rows)), self.batch_tokens))

    def _lengths(self, rows: Sequence[int] | np.ndarray) -> list[np.ndarray]:
        return [side.lengths_of(np.asarray(rows)) for side in self.text.sides]

    def _shuffle(self, epoch: int) -> Epoch:
        random = np.random.default_rng([self.seed, epoch])
        for attempt in range(MOST_DRAWS):  # until the batches of a mixture fit
            rows = self._draw(epoch, attempt)
            if self.shares is None or self._fits(rows):
                break
        steps = self.steps_per_epoch
        if self._bins:
            bins, width = self._bins
            order, bounds = pack(self._lengths(rows), width, random)
            bounds = bounds[: steps * bins + 1]  # a mixture that never fitted loses some rows
            missing = steps - (len(bounds) - 1)
            if missing > 0:  # shorter rows fill fewer bins: divide some, so that no batch is empty
                inside = np.setdiff1d(np.arange(len(order)), bounds)
                cuts = random.permutation(inside)[:missing]
                bounds = np.sort(np.concatenate([bounds, cuts]))
            stops = np.arange(steps + 1) * (len(bounds) - 1) // steps
            even = np.stack([stops[:-1], stops[1:]], axis=1)
            return Epoch(np.asarray(rows)[order], even, bounds)
        order = order_by_length(self.text, rows, random)
        lengths = _descending(length_counts(self.text, rows))
        plan = plan_steps(lengths, self.batch_tokens, steps)
        return Epoch(order, random.permutation(plan))


def training_dataset(
    pairs: Iterable[SentencePair] | tf.data.Dataset,
    tokenizer: Tokenizer,
    target_tokenizer: Tokenizer | None = None,
    *,
    batch_tokens: int = 4096,
    max_length: int = 128,
    seed: int = 0,
    packed: bool = False,
) -> tf.data.Dataset:
    """Turn sentence pairs into a dataset for `model.fit(dataset, epochs=...)`.

    Each pass is shuffled differently. Unless `packed`, rows of similar length share a batch
    (Vaswani et al. 2017, section 5.1). Pairs with an empty side or a side that is too long are
    dropped; a warning says how many.

    Args:
        pairs: (source, target) texts, read once, or a `tf.data.Dataset` of such pairs.
        tokenizer: The tokenizer of the source, and of the target unless `target_tokenizer` is
            given.
        target_tokenizer: The tokenizer of the target.
        batch_tokens: Maximum number of tokens on each side of a batch, padding included.
        max_length: Maximum number of tokens of a side, the end token included.
        seed: Seed of the shuffling: which rows share a batch, and the order of the batches.
        packed: Put several pairs into each row of a batch, so that all batches have one shape, for
            which XLA compiles one program. Keras compiles with XLA on a GPU unless `model.compile`
            is given `jit_compile=False`.

    Returns:
        A dataset of `({"source": (B, S), "target": (B, T)}, labels (B, T), weights (B, T))`, see
        `Batches.batch`.

    Raises:
        ValueError: No pair is left, an element is not a pair, a sentence is not Unicode text, or
            the longest pair does not fit into a batch.

    Example:
        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c"] * 20, vocab_size=8)
        >>> dataset = tfformer.training_dataset([("a b", "c a")] * 10, tokenizer, batch_tokens=50)
        >>> inputs, labels, weights = next(iter(dataset))
        >>> inputs["source"].shape.as_list(), inputs["target"].shape.as_list()
        ([10, 5], [10, 5])
    """
    tokenizers = (tokenizer, target_tokenizer or tokenizer)
    if hasattr(pairs, "as_numpy_iterator"):
        pairs = _texts_of(pairs)
    encoded = encode_text(_checked(pairs), tokenizers, max_length)
    if encoded.dropped_empty or encoded.dropped_long:
        warnings.warn(encoded.report(), stacklevel=2)
    return Batches(encoded, batch_tokens, seed, packed=packed).dataset_of_epochs()


def _texts_of(dataset: tf.data.Dataset) -> Iterator[SentencePair]:
    """Yield the pairs of a data set of string tensors as texts."""
    for element in dataset.as_numpy_iterator():
        if not (isinstance(element, tuple) and all(isinstance(text, bytes) for text in element)):
            raise ValueError(
                f"the data set has elements {shown(dataset.element_spec)}, but must have pairs of "
                "strings (source, target), not batched"
            )
        yield tuple(text.decode() for text in element)


def _checked(pairs: Iterable[SentencePair]) -> Iterator[SentencePair]:
    """Yield the pairs; raise ValueError at the first element that is not a pair."""
    if isinstance(pairs, str | PathLike):
        raise ValueError(
            f"pairs={str(pairs)!r} is a path; pass pairs of texts, such as "
            "tfformer.data.sources.read_pairs(...)"
        )
    for number, pair in enumerate(pairs, start=1):
        if isinstance(pair, str) or not isinstance(pair, Sized) or len(pair) != 2:
            raise ValueError(f"pair {number} is {shown(pair)}, but must be (source, target)")
        yield pair
