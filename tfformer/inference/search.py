"""Greedy search and sampling over token ids in the graph, and helpers shared with beam search.

A search takes a step function, see `StepFn`, in place of a model. `step` is the number of tokens
appended so far; the step function turns it into a position of the model.

Shape letters: B sentences, N beams, R rows (B, or B * N), V vocabulary, L length of the ids.
"""

import math
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.config import LARGEST_SEED
from tfformer.inference.logits import argmax, keep_top_k, keep_top_p, log_sum_exp, top_k, without
from tfformer.special_ids import END_ID, PAD_ID, START_ID

EMPTY = -1e9  # the score of a slot without a beam or hypothesis
COLDEST = 1e-30  # lower temperatures, which float32 may round to 0, count as this one
Number = TypeVar("Number", int, float)
# Changes the logits (R, V) of a step () after the tokens (R, L).
LogitsRule = Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor]


class StepFn(Protocol):
    """Computes the logits of the next token and the model's new state."""

    def __call__(self, ids: tf.Tensor, step: tf.Tensor, state: Any, /) -> tuple[tf.Tensor, Any]:
        """Take one step.

        Args:
            ids: (R,) int32, the last token of each row; the start token at step 0.
            step: () int32, number of tokens appended so far.
            state: A nest of tensors, such as a cache. The first axis of each tensor indexes rows,
                unless `beam_search` is passed a custom `reorder`.

        Returns:
            Logits (R, V) of the next token, and the new state.
        """


class Rounds(NamedTuple):
    """How a search's state grows and drops rows between rounds.

    A round ends when the state is full or half of its sentences are finished. A full state is then
    doubled. Finished sentences are dropped, so that no step computes more than twice the rows that
    it needs. Within a round all shapes are fixed, because runtimes such as LiteRT re-plan whenever
    a shape may change.
    """

    # `capacity(state)` is the number of steps that fit into a state, () int32
    capacity: Callable[[Any], tf.Tensor]
    # `enlarged(state, times)` is the same state with its capacity multiplied by `times`, which is 1
    # or 2
    enlarged: Callable[[Any, tf.Tensor], Any]
    # `kept(state, sentences)` is the state of the sentences with these numbers, (B,) int32
    kept: Callable[[Any, tf.Tensor], Any]


class Hypotheses(NamedTuple):
    """The sequences that a search found for each sentence, best first.

    A score is a log-probability in nats. Only `beam_search` divides it by `length_penalty(length,
    alpha)`; its scores are comparable with those of `greedy_search` and `sample` only if alpha is
    0.
    """

    ids: tf.Tensor  # (B, N, L) int32, padded with 0 after the last token
    lengths: tf.Tensor  # (B, N) int32, number of tokens, including any end token
    scores: tf.Tensor  # (B, N) float32; `EMPTY` marks an empty slot, see `is_used`


def is_used(scores: tf.Tensor) -> tf.Tensor:
    """Return whether the slot of each score holds a hypothesis.

    A log-probability, even divided by a length penalty, is far above `EMPTY`.
    """
    return scores > EMPTY / 2


def greedy_search(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    *,
    capacity: int | tf.Tensor | None = None,
    suppressed: int | None = None,
    rule: LogitsRule | None = None,
    rounds: Rounds | None = None,
) -> Hypotheses:
    """Choose the most likely token at each step.

    Args:
        step_fn: Computes the logits of the next token; see `StepFn`.
        state: The model's state, with B rows.
        max_lengths: (B,) integers, maximum tokens of each sentence's hypothesis, the end token
            included.
        capacity: The length L of the ids; by default the largest of `max_lengths`. A Python int
            makes every shape static.
        suppressed: The id of a token that is never chosen; the other probabilities do not change.
        rule: `rule(logits, ids, step)` returns logits (R, V) that replace the model's. `ids` (R, L)
            contains the first `step` tokens of each row.
        rounds: How the state grows and drops rows. By default the state must have capacity for all
            steps, and its shape is fixed.

    Returns:
        One hypothesis per sentence; its score is the log-probability without a length penalty.

    Example:
        >>> import tensorflow as tf, tfformer
        >>> table = tf.constant([[0, 0, 0, 1, 3.0], [0, 0, 0, 2, 1.0]])  # logits at step 0 and 1
        >>> def step_fn(ids, step, state):
        ...     return tf.repeat(table[step : step + 1], len(ids), axis=0), state
        >>> hypotheses = tfformer.greedy_search(step_fn, tf.zeros(1), max_lengths=tf.constant([2]))
        >>> hypotheses.ids.numpy().tolist()
        [[[4, 3]]]
    """

    def choose(logits: tf.Tensor, step: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        return _most_likely(logits, suppressed)

    return _decode_rows(step_fn, state, max_lengths, choose, capacity, rounds, rule)


def _most_likely(logits: tf.Tensor, suppressed: int | None) -> tf.Tensor:
    """Return the token (R,) of the largest logit (R, V), except `suppressed`."""
    if suppressed is None:
        return argmax(logits)
    first, second = tf.unstack(top_k(logits, 2)[1], axis=1)  # each (R,)
    return tf.where(first == suppressed, second, first)


def branch(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    begun: tf.Tensor,
    count: int,
    *,
    capacity: int | tf.Tensor | None = None,
    suppressed: int | None = None,
    rule: LogitsRule | None = None,
    rounds: Rounds | None = None,
) -> Hypotheses:
    """Search greedily, except that the rows of a sentence differ in one token.

    A sentence has K = `count` rows. After `begun` (B * K,) int32 tokens, row r gets the k-th most
    likely token, k = r mod K, where the ids for padding and start do not count. The score is the
    log-probability of the first `begun` + 1 tokens. The other arguments are those of
    `greedy_search`.
    """

    def choose(logits: tf.Tensor, step: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        # The lowest float would tie with tokens that a rule forbids, which must rank higher.
        never = [token for token in (PAD_ID, START_ID, suppressed) if token is not None]
        size = logits.shape[-1] or tf.shape(logits)[-1]
        lowest = tf.reduce_min(tf.one_hot(never, size, -math.inf, 0.0), axis=0)  # (V,)
        ranked = top_k(logits + lowest, count)[1]  # (R, K)
        differing = tf.gather(ranked, rows % count, batch_dims=1)
        is_there = step == tf.gather(begun, rows)
        return tf.where(is_there, differing, _most_likely(logits, suppressed))

    return _decode_rows(step_fn, state, max_lengths, choose, capacity, rounds, rule, begun + 1)


def sample(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    *,
    seed: int | tf.Tensor,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    batch: int | tf.Tensor = 0,
    rounds: Rounds | None = None,
    suppressed: int | None = None,
    rule: LogitsRule | None = None,
) -> Hypotheses:
    """Draw a token at each step from softmax(logits / temperature).

    The draws use the Gumbel-max trick (Maddison et al. 2014).

    Args:
        step_fn: Computes the logits of the next token; see `StepFn`.
        state: The model's state, with B rows.
        max_lengths: (B,) integers, maximum tokens of each sentence's hypothesis, the end token
            included.
        seed: From 0 to 2^31 - 1; the same seed draws the same tokens.
        temperature: Above 0; values near 0 approach greedy search.
        top_k: If above 0, only the k most likely tokens may be drawn (Fan et al. 2018).
        top_p: If below 1, only the smallest set of tokens whose total probability reaches p may be
            drawn (Holtzman et al. 2020).
        batch: Number of this batch. Batches with different numbers or seeds draw independently.
        rounds: As in `greedy_search`.
        suppressed: The id of a token that is never drawn.
        rule: As in `greedy_search`.

    Returns:
        One hypothesis per sentence; its score is the log-probability after `rule`, but before
        temperature, `top_k` and `top_p`.

    Raises:
        ValueError: `seed`, `temperature`, `top_k` or `top_p` is outside its range.

    Example:
        >>> import tensorflow as tf, tfformer
        >>> def step_fn(ids, step, state):
        ...     return tf.repeat([[-1e9, -1e9, -1e9, 1.0, 1.0]], len(ids), axis=0), state
        >>> max_lengths = tf.constant([9, 9, 9, 9])
        >>> drawn = tfformer.sample(step_fn, tf.zeros(4), max_lengths, seed=1)
        >>> again = tfformer.sample(step_fn, tf.zeros(4), max_lengths, seed=1)
        >>> bool(tf.reduce_all(drawn.ids == again.ids))
        True
    """
    check_sampling(number_or(seed, 0), number_or(temperature, 1.0), top_k, top_p)
    # The key of a draw is (seed, batch * 2^32 + step): no two steps of a seed share one.
    first_draw = tf.cast(batch, tf.int64) * 2**32
    all_rows = tf.shape(max_lengths)[0]
    divisor = tf.maximum(tf.cast(temperature, tf.float32), COLDEST)

    def choose(logits: tf.Tensor, step: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
        logits = without(logits, suppressed)
        logits -= tf.reduce_max(logits, axis=1, keepdims=True)  # so that none becomes +inf
        logits /= divisor
        logits = keep_top_p(keep_top_k(logits, top_k), top_p)
        key = tf.stack([tf.cast(seed, tf.int64), first_draw + tf.cast(step, tf.int64)])
        # The argmax of logits + Gumbel noise is a draw from softmax(logits).
        # All rows draw, so that a row's noise does not depend on which other rows have finished.
        shape = [all_rows, tf.shape(logits)[1]]
        uniform = tf.random.stateless_uniform(shape, key, minval=1e-30)  # log(0) would be -inf
        gumbel = -tf.math.log(-tf.math.log(tf.gather(uniform, rows)))
        return argmax(logits + gumbel)

    return _decode_rows(step_fn, state, max_lengths, choose, rounds=rounds, rule=rule)


def check_sampling(seed: int, temperature: float, top_k: int, top_p: float) -> None:
    """Raise ValueError if a setting of `sample` is outside its range."""
    if require_size("seed", seed, least=0) > LARGEST_SEED:
        raise ValueError(f"seed={seed} must be at most {LARGEST_SEED}")
    if not (isinstance(temperature, numbers.Real) and 0 < temperature < math.inf):
        raise ValueError(
            f"temperature={temperature} must be a finite number above 0; to choose the "
            "most likely token at each step, use greedy search"
        )
    require_size("top_k", top_k, least=0)
    if not (isinstance(top_p, numbers.Real) and 0 < top_p <= 1):
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1")


def number_or(value: Number | tf.Tensor, default: Number) -> Number:
    """Return a number unchanged, and `default` for a tensor, whose value a graph does not know."""
    return default if tf.is_tensor(value) else value


class _Sequences(NamedTuple):
    """The state of greedy search and sampling: one sequence per row."""

    step: tf.Tensor  # () tokens appended so far
    row: tf.Tensor  # (R,) number of each sequence in the batch
    last: tf.Tensor  # (R,) last token of each sequence
    unfinished: tf.Tensor  # (R,) bool
    ids: tf.Tensor  # (R, L) all tokens
    lengths: tf.Tensor  # (R,) tokens, the end token included
    scores: tf.Tensor  # (R,) log-probabilities in nats
    max_lengths: tf.Tensor  # (R,) maximum tokens of each sequence
    state: Any  # the step function's, of R rows

    @property
    def finished(self) -> Hypotheses:
        """One hypothesis for each row."""
        return Hypotheses(
            ids=self.ids[:, tf.newaxis],  # (R, 1, L)
            lengths=self.lengths[:, tf.newaxis],  # (R, 1)
            scores=self.scores[:, tf.newaxis],  # (R, 1)
        )


def _decode_rows(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    choose: Callable[[tf.Tensor, tf.Tensor, tf.Tensor], tf.Tensor],
    capacity: int | tf.Tensor | None = None,
    rounds: Rounds | None = None,
    rule: LogitsRule | None = None,
    scored: tf.Tensor | None = None,
) -> Hypotheses:
    """Append one token at a time to each of R rows, up to its end token or maximum length.

    `choose` returns the next tokens (R,) int32 for logits (R, V), the step () and the rows' numbers
    (R,). The score of a hypothesis is the sum of its tokens' log-probabilities, or those of its
    first `scored` (R,) tokens.
    """
    max_lengths, capacity = within_capacity(max_lengths, capacity)  # (R,) and L
    rows = tf.shape(max_lengths)[0]

    def append_token(sequences: _Sequences) -> list[_Sequences]:
        step = sequences.step
        unfinished = sequences.unfinished  # (R,)
        logits, state = step_fn(sequences.last, step, sequences.state)
        logits = tf.cast(logits, tf.float32)  # (R, V)
        if rule is not None:
            logits = rule(logits, sequences.ids, step)
        chosen = choose(logits, step, sequences.row)  # (R,)
        best = argmax(logits)  # (R,)
        log_prob = tf.gather(logits, chosen, batch_dims=1) - log_sum_exp(logits, best)
        appended = tf.where(unfinished, chosen, PAD_ID)  # (R,)
        is_scored = unfinished
        if scored is not None:
            is_scored &= step < tf.gather(scored, sequences.row)
        may_go_on = (appended != END_ID) & (step + 1 < sequences.max_lengths)  # (R,)
        after = sequences._replace(
            step=step + 1,
            last=appended,
            unfinished=unfinished & may_go_on,
            ids=write_tokens(sequences.ids, appended, step),
            lengths=sequences.lengths + tf.cast(unfinished, tf.int32),
            scores=sequences.scores + tf.where(is_scored, log_prob, 0.0),
            state=state,
        )
        return [after]

    start = _Sequences(
        step=tf.constant(0),
        row=tf.range(rows),
        last=tf.fill([rows], START_ID),
        unfinished=max_lengths > 0,
        ids=tf.zeros([rows, capacity], tf.int32),
        lengths=tf.zeros([rows], tf.int32),
        scores=tf.zeros([rows], tf.float32),
        max_lengths=max_lengths,
        state=state,
    )
    return finish(start, append_token, rounds)


Live = TypeVar("Live", bound=Any)  # a NamedTuple such as `_Sequences`


def finish(
    start: Live, append_token: Callable[[Live], list[Live]], rounds: Rounds | None
) -> Hypotheses:
    """Append tokens until all sentences are finished.

    `append_token` returns a list with one element: the sequences, extended by one token.
    """

    def is_unfinished(live: Live) -> tf.Tensor:
        return tf.reduce_any(live.unfinished)

    if rounds is None:  # the loop variables are a list of one NamedTuple
        return tf.while_loop(is_unfinished, append_token, [start])[0].finished

    def take_round(
        is_live: tf.Tensor, live: Live, finished: Hypotheses
    ) -> tuple[tf.Tensor, Live, Hypotheses]:
        """Continue the live sentences, which `is_live` (B,) marks in the batch."""
        live = _one_round(live, append_token, rounds)
        # The index (B,) of each sentence among the live sentences.
        number = tf.maximum(tf.cumsum(tf.cast(is_live, tf.int32)) - 1, 0)
        finished = _replaced(finished, is_live, gather_rows(live.finished, number))
        is_live &= tf.gather(live.unfinished, number)
        return is_live, _without_finished(live, rounds), finished

    def is_any_live(is_live: tf.Tensor, live: Live, finished: Hypotheses) -> tf.Tensor:
        return tf.reduce_any(is_live)

    begin = start.unfinished, _without_finished(start, rounds), start.finished
    return tf.while_loop(is_any_live, take_round, begin)[2]


def _one_round(live: Live, append_token: Callable[[Live], list[Live]], rounds: Rounds) -> Live:
    """Append tokens until the state is full or half of the sentences are finished."""
    is_full = live.step >= rounds.capacity(live.state)
    state = rounds.enlarged(live.state, tf.where(is_full, 2, 1))
    capacity = rounds.capacity(state)
    sentences = tf.size(live.unfinished)

    def may_go_on(live: Live) -> tf.Tensor:
        count = tf.reduce_sum(tf.cast(live.unfinished, tf.int32))
        return (2 * count > sentences) & (live.step < capacity)

    return tf.while_loop(may_go_on, append_token, [live._replace(state=state)])[0]


def _without_finished(live: Live, rounds: Rounds) -> Live:
    """Return the sequences of the unfinished sentences."""
    sentences = tf.cast(tf.where(live.unfinished)[:, 0], tf.int32)
    state = rounds.kept(live.state, sentences)
    rows = gather_rows(live._replace(step=(), state=()), sentences)
    return rows._replace(step=live.step, state=state)


def _replaced(hypotheses: Hypotheses, is_new: tf.Tensor, new: Hypotheses) -> Hypotheses:
    """Replace the hypotheses of the sentences (B,) that have new ones."""
    is_new = is_new[:, tf.newaxis]
    return Hypotheses(
        tf.where(is_new[:, :, tf.newaxis], new.ids, hypotheses.ids),
        tf.where(is_new, new.lengths, hypotheses.lengths),
        tf.where(is_new, new.scores, hypotheses.scores),
    )


def gather_rows(state: Any, rows: tf.Tensor) -> Any:
    """Gather `rows` (R,) of every tensor of the state."""
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)


def within_capacity(
    max_lengths: tf.Tensor, capacity: int | tf.Tensor | None
) -> tuple[tf.Tensor, int | tf.Tensor]:
    """Return `max_lengths` (B,) int32, at most L, and the length L of the ids.

    L is `capacity` or, if that is None, the largest of `max_lengths`; 0 if B is 0.
    """
    max_lengths = tf.cast(max_lengths, tf.int32)
    if capacity is None:
        capacity = tf.maximum(tf.reduce_max(max_lengths), 0)
    elif tf.is_tensor(capacity):
        capacity = tf.cast(capacity, tf.int32)
    return tf.minimum(max_lengths, capacity), capacity


def write_tokens(ids: tf.Tensor, tokens: tf.Tensor, position: tf.Tensor) -> tf.Tensor:
    """Write tokens (...) at `position` of ids (..., L)."""
    is_position = tf.range(tf.shape(ids)[-1]) == position  # (L,)
    return tf.where(is_position, tokens[..., tf.newaxis], ids)
