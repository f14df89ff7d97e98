"""Beam search over token ids in the graph.

Shape letters: B sentences, N beams, V vocabulary, K continuations (2N, or fewer if the vocabulary
is small), L length of the ids.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, get_args

import tensorflow as tf

from tfformer.argument_checks import require, require_number, require_size
from tfformer.config import LengthNormalization
from tfformer.inference.logits import argmax, log_sum_exp, top_k, without
from tfformer.inference.search import (
    EMPTY,
    Hypotheses,
    LogitsRule,
    Rounds,
    StepFn,
    finish,
    gather_rows,
    is_used,
    number_or,
    within_capacity,
    write_tokens,
)
from tfformer.special_ids import END_ID, START_ID

LENGTH_NORMALIZATIONS = get_args(LengthNormalization)


def length_penalty(length: tf.Tensor, alpha: float, length_normalization: str = "wu") -> tf.Tensor:
    """Return the divisor of a hypothesis' log-probability: float32, 1 for one token.

    Args:
        length: Number of tokens of a hypothesis, including the end token; any shape.
        alpha: 0 for no penalty; larger values favour longer hypotheses.
        length_normalization: "wu" for ((5 + length) / 6)^alpha (Wu et al. 2016, equation 14),
            "power" for length^alpha, as in Marian, Transformers and CTranslate2.

    Example:
        >>> float(length_penalty(tf.constant(7), alpha=1.0))
        2.0
    """
    length = tf.cast(length, tf.float32)
    return length**alpha if length_normalization == "power" else ((5.0 + length) / 6.0) ** alpha


class _Beams(NamedTuple):
    """The state of beam search."""

    step: tf.Tensor  # () tokens appended so far
    unfinished: tf.Tensor  # (B,) bool
    last: tf.Tensor  # (B, N) last token of each live beam
    ids: tf.Tensor  # (B, N, L) all tokens of each live beam
    scores: tf.Tensor  # (B, N) their log-probabilities in nats
    finished: Hypotheses  # (B, N) finished hypotheses
    max_lengths: tf.Tensor  # (B,) maximum tokens of a hypothesis
    state: Any  # the step function's state, with B * N rows


def beam_search(
    step_fn: StepFn,
    state: Any,
    max_lengths: tf.Tensor,
    *,
    beam_size: int,
    alpha: float = 0.6,
    capacity: int | tf.Tensor | None = None,
    length_normalization: str = "wu",
    narrowing: bool = False,
    early_stopping: bool = True,
    suppressed: int | None = None,
    rule: LogitsRule | None = None,
    reorder: Callable[[Any, tf.Tensor], Any] = gather_rows,
    rounds: Rounds | None = None,
) -> Hypotheses:
    """Find the best hypotheses of each sentence with `beam_size` beams.

    Each step ranks the 2N most likely continuations of a sentence's N live beams. Each beam has
    only one continuation with the end token, so at least N of the 2N are unfinished. Among the
    first N continuations, those with the end token become finished hypotheses; continuations ranked
    lower would not have survived the pruning to N beams. The N most likely unfinished continuations
    become the next live beams. At the sentence's maximum length, the first N continuations become
    finished hypotheses even without an end token.

    The best N finished hypotheses are kept. With `early_stopping`, a sentence stops as soon as it
    has N of them, even if a live beam could still overtake one. Without it, the sentence stops as
    soon as the best live beam, if it ended now, would not overtake the worst of the N. The result
    of a sentence does not depend on the other sentences of the batch: it no longer changes once
    the sentence has stopped.

    Keeping N partial hypotheses, and removing one from the beam when it ends, is the search of
    Sutskever et al. 2014 ("Sequence to Sequence Learning with Neural Networks"), section 3.2; the
    ranking is that of Wu et al. 2016 ("Google's Neural Machine Translation System"), equation 14.

    Args:
        step_fn: Computes the logits of the next token; see `StepFn`.
        state: The model's state with B * N rows, the beams of a sentence adjacent, or any state
            that `reorder` knows.
        max_lengths: (B,) integers, maximum tokens of each sentence's hypotheses, the end token
            included.
        beam_size: N, at least 1.
        alpha: Exponent of the length penalty.
        capacity: The length L of the ids; by default the largest of `max_lengths`. A Python int
            makes every shape static.
        length_normalization: The form of the length penalty, "wu" or "power".
        narrowing: Whether each finished hypothesis narrows the beam by one, as in Marian; otherwise
            N beams continue until the sentence stops.
        early_stopping: Whether a sentence stops at its first N hypotheses; Transformers' default is
            False.
        suppressed: The id of a token that is never chosen; the other probabilities do not change.
        rule: As in `greedy_search`, but it returns log-probabilities, which add up to scores.
        reorder: `reorder(state, rows)` returns the state of beams that continue the beams `rows` (B
            * N,); by default it gathers these rows of each tensor.
        rounds: As in `greedy_search`.

    Returns:
        N hypotheses for each sentence. A score is the log-probability, divided by
        `length_penalty(length, alpha, length_normalization)`.

    Raises:
        ValueError: `beam_size` is not an integer of at least 1, `alpha` is negative or not finite,
            or `length_normalization` is unknown.

    Example:
        The most likely first token is 4, but the most likely pair begins with 5.

        >>> import numpy, tfformer, tensorflow as tf
        >>> from tfformer.special_ids import START_ID
        >>> p = numpy.full((6, 6), 1e-9, "float32")  # P(next token | last token)
        >>> p[START_ID, 3:] = [0.1, 0.5, 0.4]
        >>> p[4, 3:] = [0.3, 0.4, 0.3]
        >>> p[5, 3:] = [0.9, 0.0, 0.1]
        >>> def step_fn(ids, step, state):
        ...     return tf.math.log(tf.gather(p, ids)), state
        >>> state, max_lengths = tf.zeros(2), tf.constant([2])
        >>> hypotheses = tfformer.beam_search(step_fn, state, max_lengths, beam_size=2, alpha=0.0)
        >>> hypotheses.ids[0, 0].numpy().tolist(), round(float(tf.exp(hypotheses.scores[0, 0])), 2)
        ([5, 3], 0.36)
    """
    beam_size = require_size("beam_size", beam_size)
    require_number("alpha", number_or(alpha, 0.0))
    require("length_normalization", length_normalization, LENGTH_NORMALIZATIONS)
    max_lengths, capacity = within_capacity(max_lengths, capacity)  # (B,) and L

    def append_token(beams: _Beams) -> list[_Beams]:
        # Consider the 2N most likely continuations of each sentence.
        step = beams.step
        logits, state = step_fn(tf.reshape(beams.last, [-1]), step, beams.state)  # (B * N, V)
        logits = tf.cast(logits, tf.float32)
        if rule is not None:
            ids = tf.reshape(beams.ids, [tf.shape(logits)[0], -1])  # (B * N, L)
            logits = rule(logits, ids, step)
        continuations = _top_continuations(
            logits, beams.scores, 2 * beam_size, suppressed, are_log_probs=rule is not None
        )
        top_scores, top_beams, top_tokens = continuations  # each (B, K)
        if narrowing:  # each finished hypothesis leaves one beam fewer
            ended = tf.reduce_sum(tf.cast(is_used(beams.finished.scores), tf.int32), axis=1)  # (B,)
            is_within = tf.sequence_mask(beam_size - ended, tf.shape(top_scores)[1])
            top_scores = tf.where(is_within, top_scores, EMPTY)
        top_ids = tf.gather(beams.ids, top_beams, batch_dims=1)  # (B, K, L)
        top_ids = write_tokens(top_ids, top_tokens, step)  # (B, K, L)

        # Among the first N, continuations that end become finished hypotheses.
        penalty = length_penalty(step + 1, alpha, length_normalization)
        is_last_step = step + 1 >= beams.max_lengths  # (B,)
        is_finished = (top_tokens == END_ID) | is_last_step[:, tf.newaxis]  # (B, K)
        finished = _add_finished(
            beams.finished,
            ids=top_ids[:, :beam_size],
            scores=top_scores[:, :beam_size],
            is_finished=is_finished[:, :beam_size],
            is_open=beams.unfinished,
            length=step + 1,
            penalty=penalty,
        )

        # The N most likely unfinished continuations become the live beams; each inherits a state.
        unfinished_scores = tf.where(is_finished, EMPTY, top_scores)  # (B, K)
        live_scores, live = tf.math.top_k(unfinished_scores, beam_size)  # (B, N)
        live_beams = tf.gather(top_beams, live, batch_dims=1)  # (B, N)
        may_stop = is_used(finished.scores[:, -1])  # (B,), all N slots are used
        if not early_stopping:
            may_stop &= live_scores[:, 0] / penalty <= finished.scores[:, -1]
        row_of_beam_0 = tf.range(tf.shape(live_beams)[0])[:, tf.newaxis] * beam_size  # (B, 1)
        after = beams._replace(
            step=step + 1,
            unfinished=beams.unfinished & ~(may_stop | is_last_step),
            last=tf.gather(top_tokens, live, batch_dims=1),
            ids=tf.gather(top_ids, live, batch_dims=1),
            scores=live_scores,
            finished=finished,
            state=reorder(state, tf.reshape(row_of_beam_0 + live_beams, [-1])),
        )
        return [after]

    return finish(_first_beams(state, max_lengths, beam_size, capacity), append_token, rounds)


def _first_beams(
    state: Any, max_lengths: tf.Tensor, beam_size: int, capacity: int | tf.Tensor
) -> _Beams:
    """Return N identical beams per sentence; only the first beam can be continued."""
    sentences = tf.shape(max_lengths)[0]  # B
    no_ids = tf.zeros([sentences, beam_size, capacity], tf.int32)  # (B, N, L)
    no_lengths = tf.zeros([sentences, beam_size], tf.int32)  # (B, N)
    no_scores = tf.fill([sentences, beam_size], EMPTY)  # (B, N)
    first_score = tf.where(max_lengths > 0, 0.0, EMPTY)[:, tf.newaxis]  # (B, 1)
    return _Beams(
        step=tf.constant(0),
        unfinished=max_lengths > 0,
        last=tf.fill([sentences, beam_size], START_ID),
        ids=no_ids,
        scores=tf.concat([first_score, no_scores[:, 1:]], axis=1),
        finished=Hypotheses(no_ids, no_lengths, no_scores),
        max_lengths=max_lengths,
        state=state,
    )


def _top_continuations(
    logits: tf.Tensor,
    scores: tf.Tensor,
    count: int,
    suppressed: int | None,
    are_log_probs: bool,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return scores, beams and tokens (B, K) of the most likely continuations, best first.

    `logits` (B * N, V) are every beam's logits of the next token, `scores` (B, N) the beams'
    log-probabilities. K is `count`, or less if the vocabulary is small.
    """
    sentences = tf.shape(scores)[0]  # B
    beam_size = scores.shape[1]  # N
    # No beam contributes more than `count` tokens. A shortlist has at least as many candidates.
    per_beam = min(count, logits.shape[-1] or count)
    top_logits, tokens = top_k(without(logits, suppressed), per_beam)  # (B * N, per_beam)
    best = tokens[:, 0]
    if suppressed is not None:  # it may itself be the most likely token
        best = argmax(logits)
    log_probs = top_logits
    if not are_log_probs:
        log_probs -= log_sum_exp(logits, best)[:, tf.newaxis]
    log_probs = tf.reshape(log_probs, [sentences, beam_size, per_beam])
    candidates = log_probs + scores[:, :, tf.newaxis]  # (B, N, per_beam)
    candidates = tf.reshape(candidates, [sentences, beam_size * per_beam])
    tokens = tf.reshape(tokens, [sentences, beam_size * per_beam])
    top_scores, indices = tf.math.top_k(candidates, min(count, beam_size * per_beam))  # (B, K)
    top_beams = indices // per_beam  # (B, K), the beam that each continues
    top_tokens = tf.gather(tokens, indices, batch_dims=1)  # (B, K)
    return top_scores, top_beams, top_tokens


def _add_finished(
    hypotheses: Hypotheses,
    ids: tf.Tensor,
    scores: tf.Tensor,
    is_finished: tf.Tensor,
    is_open: tf.Tensor,
    length: tf.Tensor,
    penalty: tf.Tensor,
) -> Hypotheses:
    """Add the finished continuations of open sentences to the hypotheses and keep the best N.

    Sentences that have stopped do not change. Continuations are `ids` (B, N, L) with
    log-probabilities `scores` (B, N); `length` and its `penalty` are scalars.
    """
    beam_size = hypotheses.scores.shape[1]
    is_new = is_finished & is_used(scores) & is_open[:, tf.newaxis]  # (B, N)
    new_scores = tf.where(is_new, scores / penalty, EMPTY)  # (B, N)
    new_lengths = tf.fill(tf.shape(new_scores), length)  # (B, N)
    all_scores = tf.concat([hypotheses.scores, new_scores], axis=1)  # (B, 2N)
    all_lengths = tf.concat([hypotheses.lengths, new_lengths], axis=1)  # (B, 2N)
    all_ids = tf.concat([hypotheses.ids, ids], axis=1)  # (B, 2N, L)
    best_scores, best = tf.math.top_k(all_scores, beam_size)  # (B, N)
    best_ids = tf.gather(all_ids, best, batch_dims=1)  # (B, N, L)
    best_lengths = tf.gather(all_lengths, best, batch_dims=1)  # (B, N)
    return Hypotheses(best_ids, best_lengths, best_scores)
