"""In-graph search over token ids: greedy, sampling and beam. Knows no model and no text.

A search takes `step_fn(ids, step, state) -> (logits, state)`: the last token of each row (R,) int32, its position and
whatever the model keeps, give the next token's logits (R, V). State is a nest of tensors whose first axis is the rows.
Shape letters: B sentences, N beams, R rows (B, or B * N), V vocabulary, L the longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfformer.special_ids import END_ID, PAD_ID, START_ID

LOWEST = -1e9

StepFn = Callable[[tf.Tensor, tf.Tensor, Any], tuple[tf.Tensor, Any]]


class Hypotheses(NamedTuple):
    """What a search found, best first.

    Ids (B, N, L) int32, padded with 0; lengths (B, N) int32, with the end token if there is one; scores (B, N) float32,
    log-probability in nats over the length penalty. LOWEST marks an empty place.
    """

    ids: tf.Tensor
    lengths: tf.Tensor
    scores: tf.Tensor


def length_penalty(length: tf.Tensor, alpha: float) -> tf.Tensor:
    """((5 + length) / 6)^alpha (Wu et al. 2016, eq. 14); the length counts the end token."""
    return ((5.0 + tf.cast(length, tf.float32)) / 6.0) ** alpha


def greedy_search(
    step_fn: StepFn, state: Any, max_lengths: tf.Tensor, room: int | tf.Tensor | None = None
) -> Hypotheses:
    """The likeliest token at each step. `max_lengths` (B,) int32 bounds each sentence by itself; state has B rows.

    `room` is L where that is not the largest limit: a plain number gives every tensor a fixed shape.
    """

    def choose(logits: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        return tf.argmax(logits, axis=-1, output_type=tf.int32)

    return _one_by_one(step_fn, state, max_lengths, choose, room)


def sample(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    seed: int | tf.Tensor,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
) -> Hypotheses:
    """A random token at each step, from softmax(logits / temperature).

    `top_k` > 0 keeps the k likeliest tokens (Fan et al. 2018); `top_p` < 1 the fewest that together reach probability
    p (Holtzman et al. 2020). The same seed gives the same tokens. Scores are those of the unchanged distribution.
    """

    def choose(logits: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        logits = keep_top_p(keep_top_k(logits / temperature, top_k), top_p)
        uniform = tf.random.stateless_uniform(
            tf.shape(logits), seed=tf.stack([seed, step]), minval=1e-30
        )
        return tf.argmax(logits - tf.math.log(-tf.math.log(uniform)), axis=-1, output_type=tf.int32)

    return _one_by_one(step_fn, state, max_lengths, choose)


def check_sampling(temperature: float, top_k: int, top_p: float) -> None:
    """ValueError for settings of `sample` that make no sense."""
    if temperature <= 0:
        raise ValueError(
            f"temperature={temperature} must be above 0; the likeliest token is the limit of low ones"
        )
    if top_k < 0 or not 0 < top_p <= 1:
        raise ValueError(
            f"top_k={top_k} must be at least 0 and top_p={top_p} above 0 and at most 1"
        )


def keep_top_k(logits: tf.Tensor, k: int) -> tf.Tensor:
    """(R, V) with all but the k largest logits of each row at the lowest float; k = 0 keeps all."""
    if not k:
        return logits
    smallest_kept = tf.math.top_k(logits, tf.minimum(k, tf.shape(logits)[-1])).values[:, -1:]
    return tf.where(logits >= smallest_kept, logits, logits.dtype.min)


def keep_top_p(logits: tf.Tensor, p: float) -> tf.Tensor:
    """(R, V) with all but the fewest likeliest tokens that reach probability p at the lowest float; p = 1 keeps all."""
    if p >= 1.0:
        return logits
    ordered = tf.sort(logits, direction="DESCENDING")
    before = tf.cumsum(tf.nn.softmax(ordered), axis=-1, exclusive=True)
    smallest_kept = tf.reduce_min(
        tf.where(before < p, ordered, ordered.dtype.max), axis=-1, keepdims=True
    )
    return tf.where(logits >= smallest_kept, logits, logits.dtype.min)


def _one_by_one(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    choose: Callable,
    room: int | tf.Tensor | None = None,
) -> Hypotheses:
    """Append `choose(logits, step)` to every row until each has its end token or its limit."""
    rows, longest = tf.shape(max_lengths)[0], tf.reduce_max(max_lengths) if room is None else room

    def body(step, last, finished, ids, lengths, scores, state):
        logits, state = step_fn(last, step, state)
        logits = tf.cast(logits, tf.float32)
        chosen = choose(logits, step)
        log_prob = tf.gather(logits, chosen, batch_dims=1) - tf.reduce_logsumexp(logits, axis=-1)
        chosen = tf.where(finished, PAD_ID, chosen)
        scores += tf.where(finished, 0.0, log_prob)
        lengths += tf.cast(tf.logical_not(finished), tf.int32)
        ids = tf.where(tf.range(longest) == step, chosen[:, tf.newaxis], ids)
        finished |= (chosen == END_ID) | (step + 1 >= max_lengths)
        return step + 1, chosen, finished, ids, lengths, scores, state

    _, _, _, ids, lengths, scores, _ = tf.while_loop(
        lambda step, last, finished, *_: tf.logical_not(tf.reduce_all(finished)),
        body,
        (
            tf.constant(0),
            tf.fill([rows], START_ID),
            max_lengths < 1,
            tf.zeros([rows, longest], tf.int32),
            tf.zeros([rows], tf.int32),
            tf.zeros([rows], tf.float32),
            state,
        ),
        maximum_iterations=longest,
    )
    return Hypotheses(ids[:, tf.newaxis], lengths[:, tf.newaxis], scores[:, tf.newaxis])


def beam_search(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    beam_size: int,
    alpha: float = 0.6,
    room: int | tf.Tensor | None = None,
) -> Hypotheses:
    """The `beam_size` best hypotheses of each sentence, ranked by log-probability / length_penalty(length, alpha).

    State has B * N rows, the beams of a sentence side by side. At each step the 2N likeliest continuations are looked
    at: of the first N, those that end become hypotheses and never change again; the N likeliest that do not end live
    on. A sentence is done, and frozen, when it has N hypotheses; at its limit what lives becomes a hypothesis as it is.
    So a sentence's result never depends on its neighbours in the batch. `room` as in `greedy_search`.
    """
    sentences, longest = (
        tf.shape(max_lengths)[0],
        tf.reduce_max(max_lengths) if room is None else room,
    )
    first_rows = tf.range(sentences)[:, tf.newaxis] * beam_size

    def body(step, last, alive_ids, alive_scores, found, state):
        logits, state = step_fn(tf.reshape(last, [-1]), step, state)
        scores, beams, tokens = _continuations(logits, alive_scores, 2 * beam_size)
        ids = _append(tf.gather(alive_ids, beams, batch_dims=1), tokens, step)
        at_limit = (step + 1 >= max_lengths)[:, tf.newaxis]
        ends = (tokens == END_ID) | at_limit
        found = _add_found(found, ids, scores, ends, step + 1, beam_size, alpha)
        alive_scores, order = tf.math.top_k(tf.where(ends, LOWEST, scores), beam_size)
        beams = tf.gather(beams, order, batch_dims=1)
        state = _gather_rows(state, tf.reshape(first_rows + beams, [-1]))
        last = tf.gather(tokens, order, batch_dims=1)
        return step + 1, last, tf.gather(ids, order, batch_dims=1), alive_scores, found, state

    no_ids = tf.zeros([sentences, beam_size, longest], tf.int32)
    no_scores = tf.fill([sentences, beam_size], LOWEST)
    empty = Hypotheses(no_ids, tf.zeros([sentences, beam_size], tf.int32), no_scores)
    first_score = tf.where(max_lengths > 0, 0.0, LOWEST)[:, tf.newaxis]
    only_first = tf.concat([first_score, no_scores[:, 1:]], axis=1)
    start = tf.fill([sentences, beam_size], START_ID)
    *_, found, _ = tf.while_loop(
        lambda step, last, alive_ids, alive_scores, found, state: tf.reduce_any(
            tf.logical_not(_is_done(found)) & (step < max_lengths)
        ),
        body,
        (tf.constant(0), start, no_ids, only_first, empty, state),
        maximum_iterations=longest,
    )
    return found


def _continuations(
    logits: tf.Tensor, alive_scores: tf.Tensor, count: int
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The `count` likeliest next tokens of each sentence: scores, the beams they continue, tokens, each (B, count)."""
    logits = tf.cast(logits, tf.float32)
    sentences, beams = tf.shape(alive_scores)[0], alive_scores.shape[1]
    each = min(count, logits.shape[-1])
    top, tokens = tf.math.top_k(logits, each)
    log_probs = top - tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
    scores = tf.reshape(log_probs, [sentences, beams, each]) + alive_scores[:, :, tf.newaxis]
    scores, places = tf.math.top_k(tf.reshape(scores, [sentences, -1]), min(count, beams * each))
    return (
        scores,
        places // each,
        tf.gather(tf.reshape(tokens, [sentences, -1]), places, batch_dims=1),
    )


def _append(ids: tf.Tensor, tokens: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
    """(B, K, L) with tokens (B, K) written at position `step`."""
    return tf.where(tf.range(tf.shape(ids)[2]) == step, tokens[:, :, tf.newaxis], ids)


def _add_found(found, ids, scores, ends, length, beam_size, alpha) -> Hypotheses:
    """`found` and those of the first N continuations that end, the best N of both; a sentence that is done stays."""
    first = scores[:, :beam_size]
    accepted = ends[:, :beam_size] & (first > LOWEST / 2) & ~_is_done(found)[:, tf.newaxis]
    new_scores = tf.where(accepted, first / length_penalty(length, alpha), LOWEST)
    best, order = tf.math.top_k(tf.concat([found.scores, new_scores], axis=1), beam_size)
    lengths = tf.concat([found.lengths, tf.fill(tf.shape(new_scores), length)], axis=1)
    all_ids = tf.concat([found.ids, ids[:, :beam_size]], axis=1)
    return Hypotheses(
        tf.gather(all_ids, order, batch_dims=1), tf.gather(lengths, order, batch_dims=1), best
    )


def _is_done(found: Hypotheses) -> tf.Tensor:
    """(B,): all N places are taken."""
    return found.scores[:, -1] > LOWEST / 2


def _gather_rows(state: Any, rows: tf.Tensor) -> Any:
    return tf.nest.map_structure(lambda tensor: tf.gather(tensor, rows), state)
