"""Translate ids to ids inside a TensorFlow graph, as exporters need it.

Shape letters: B sentences, S source tokens, T target tokens, N beams, R rows (B, or B * N), P
tokens of a prefix, D d_model, V vocabulary, L the longest limit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfformer.config import DecodingConfig, Dialect, Rules
from tfformer.inference.beam_search import beam_search
from tfformer.inference.logits import (
    forbid_repeated_ngrams,
    forbid_words,
    penalize_repetition,
    without,
)
from tfformer.inference.search import (
    EMPTY,
    Hypotheses,
    LogitsRule,
    Rounds,
    StepFn,
    branch,
    gather_rows,
    greedy_search,
    sample,
)
from tfformer.inference.shortlist import IMPOSSIBLE, Shortlist
from tfformer.model.cache import BeamCache, Cache, capacity_of, enlarged
from tfformer.model.language_model import LanguageModel
from tfformer.model.stacks import ProjectedMemory
from tfformer.model.token_model import ToLogits
from tfformer.model.transformer import Transformer
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

FIRST_CAPACITY = 16  # initial positions in a growing cache

PrefixState = tuple[Cache, tf.Tensor, tf.Tensor]  # cache, prefixes and their lengths


class DecoderState(NamedTuple):
    """The tensors that a decoding step reads for B sentences."""

    cache: Any  # keys and values of the positions decoded so far; a `BeamCache` with several beams
    memory: ProjectedMemory  # the projected sources
    # (B, U), added to the logits of the candidates; () without a shortlist
    bias: Any = ()
    # (B, P) int32, the tokens that the translations begin with, 0 after the last; () without any
    prefix: Any = ()

    def enlarged(self, times: tf.Tensor) -> "DecoderState":
        """Return this state with `times` its capacity."""
        return self._replace(cache=enlarged(self.cache, times))

    def reordered(self, rows: tf.Tensor) -> "DecoderState":
        """Return the state of the beams that continue the beams `rows` (B * N,)."""
        return self._replace(cache=self.cache.reordered(rows))

    def kept(self, sentences: tf.Tensor) -> "DecoderState":
        """Return the state of the sentences with these indices."""
        fixed = gather_rows((self.memory, self.bias, self.prefix), sentences)
        if isinstance(self.cache, BeamCache):
            return DecoderState(self.cache.kept(sentences), *fixed)
        return DecoderState(gather_rows(self.cache, sentences), *fixed)


class Decoding(NamedTuple):
    """A batch of sources prepared for any search."""

    step_fn: StepFn  # computes the next token's logits (R, V) from the last tokens and the state
    state: DecoderState  # the memory and an empty cache
    max_lengths: tf.Tensor  # (B,) int32, maximum tokens of a translation; 0 for a blank source
    # Positions for the longest translation; a Python int if the sources' width is one
    capacity: int | tf.Tensor
    rounds: Rounds | None  # how the state changes its shape; None if it is static


def translate_ids(
    model: Transformer,
    source: tf.Tensor,
    max_length: int,
    decoding: DecodingConfig,
    to_logits: ToLogits | None = None,
    first_token: int | None = None,
    shortlist: Shortlist | None = None,
    prefix: tf.Tensor | None = None,
    grows: bool = True,
) -> Hypotheses:
    """Find the best translations of each source, by greedy or beam search.

    Args:
        model: The translation model.
        source: (B, S) int32, each row ending with the end token. A row of padding is a blank
            sentence with one empty hypothesis of score 0.
        max_length: Maximum number of tokens of a source or translation.
        decoding: The search, with N beams; 1 is greedy search, which has no length penalty.
        to_logits: Projects hidden states (..., D) to logits (..., V); `model.logits` by default. It
            is not called with a shortlist.
        first_token: The id that every translation begins with, such as a language token.
        shortlist: The pieces to choose from, by default all. Scores are log-probabilities among the
            candidates of a sentence. There must be no rules in the dialect.
        prefix: (B, P) int32, the ids that each translation begins with, 0 after the last; the first
            is `first_token`, if there is one. They have probability 1, so that scores are
            log-probabilities of what follows.
        grows: Whether the cache starts small and grows, because few translations approach their
            limit; otherwise it starts with capacity for the longest.

    Returns:
        N hypotheses for each of the B sources, best first.
    """
    beam_size, dialect = decoding.beam_size, model.dialect
    prefix = _beginning(source, first_token, prefix)
    candidates = shortlist.candidates(source, prefix, spare=2 * beam_size) if shortlist else None
    start = start_decoding(
        model, source, max_length, beam_size, to_logits, prefix, candidates, grows
    )
    step_fn, state, max_lengths, capacity, rounds = start
    limits: dict[str, Any] = {
        "capacity": capacity,
        "suppressed": suppressed_token(dialect),
        "rule": logits_rule(dialect, of_beams=beam_size > 1),
        "rounds": rounds,
    }
    if beam_size == 1:
        hypotheses = greedy_search(step_fn, state, max_lengths, **limits)
    else:
        hypotheses = beam_search(
            step_fn,
            state,
            max_lengths,
            beam_size=beam_size,
            alpha=decoding.length_penalty,
            length_normalization=dialect.length_normalization,
            narrowing=dialect.narrowing,
            early_stopping=dialect.early_stopping,
            reorder=DecoderState.reordered,
            **limits,
        )
        hypotheses = _empty_where(max_lengths < 1, hypotheses)
    if candidates is None:
        return hypotheses
    return hypotheses._replace(ids=tf.gather(candidates[0], hypotheses.ids))


def sample_ids(
    model: Transformer,
    source: tf.Tensor,
    seed: tf.Tensor,
    batch: tf.Tensor,
    max_length: int,
    temperature: float,
    top_k: int,
    top_p: float,
    first_token: int | None = None,
) -> Hypotheses:
    """Draw one random translation of each source, as `search.sample` does.

    `batch` () int32 distinguishes batches that share a seed. Scores are log-probabilities in nats
    after the dialect's rules, but before temperature, `top_k` and `top_p`.
    """
    prefix = _beginning(source, first_token)
    start = start_decoding(model, source, max_length, beam_size=1, prefix=prefix)
    step_fn, state, max_lengths, _, rounds = start
    return sample(
        step_fn,
        state,
        max_lengths,
        seed=seed,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        batch=batch,
        rounds=rounds,
        suppressed=suppressed_token(model.dialect),
        rule=logits_rule(model.dialect, of_beams=False),
    )


def continue_translations(
    model: Transformer,
    source: tf.Tensor,
    prefix: tf.Tensor,
    count: int,
    max_length: int,
    to_logits: ToLogits | None = None,
    first_token: int | None = None,
    shortlist: Shortlist | None = None,
    grows: bool = True,
) -> Hypotheses:
    """Find the most likely tokens after a prefix of each translation, and continue each greedily.

    The arguments are those of `translate_ids`.

    Returns:
        K = `count` hypotheses for each of the B sources: the k-th begins with the prefix and the
        k-th most likely token after it. Its score is the log-probability of that token. The first
        is the greedy translation with this prefix.
    """
    prefix = _beginning(source, first_token, prefix)
    spare = count + END_ID
    candidates = shortlist.candidates(source, prefix, spare) if shortlist else None
    start = start_decoding(model, source, max_length, 1, to_logits, prefix, candidates, grows)
    step_fn, state, max_lengths, capacity, rounds = start
    lengths = tf.math.count_nonzero(prefix, axis=1, dtype=tf.int32)  # (B,)
    rows = tf.range(tf.size(lengths) * count) // count  # (B * K,)
    continued = branch(
        step_fn,
        state.kept(rows),
        tf.gather(max_lengths, rows),
        tf.gather(lengths, rows),
        count,
        capacity=capacity,
        suppressed=suppressed_token(model.dialect),
        rule=logits_rule(model.dialect, of_beams=False),
        rounds=rounds,
    )
    ids = continued.ids
    if candidates is not None:
        ids = tf.gather(candidates[0], ids)
    hypotheses = Hypotheses(
        ids=tf.reshape(ids, (-1, count, ids.shape[2] or tf.shape(ids)[2])),
        lengths=tf.reshape(continued.lengths, (-1, count)),
        scores=tf.reshape(continued.scores, (-1, count)),
    )
    return _empty_where(source[:, 0] == PAD_ID, hypotheses)


def suppressed_token(dialect: Dialect) -> int | None:
    """Return the id of the token that a search must never choose, or None."""
    return None if dialect.allow_unknown else UNKNOWN_ID


def logits_rule(dialect: Dialect, of_beams: bool) -> LogitsRule | None:
    """Return a function that applies a dialect's rules in Transformers' order; None without rules.

    The rule of a beam search returns log-probabilities. It does not change the logits of `_forced`.
    """
    rules = dialect.rules
    if rules == Rules():
        return None
    words = rules.bad_words if dialect.allow_unknown else [*rules.bad_words, [UNKNOWN_ID]]

    def rule(logits: tf.Tensor, ids: tf.Tensor, step: tf.Tensor) -> tf.Tensor:
        unruled = logits
        is_forced = tf.math.count_nonzero(logits > IMPOSSIBLE / 2, axis=1, keepdims=True) == 1
        ids = tf.pad(ids, ((0, 0), (1, 0)), constant_values=rules.start_token)
        count = step + 1
        if of_beams and rules.beam_scores != "logits":
            logits = tf.nn.log_softmax(logits)
        if rules.repetition_penalty != 1:
            logits = penalize_repetition(logits, ids, count, rules.repetition_penalty)
        if rules.no_repeat_ngram_size:
            logits = forbid_repeated_ngrams(logits, ids, count, rules.no_repeat_ngram_size)
        if words:
            logits = forbid_words(logits, ids, count, words)
        logits = tf.where(step < rules.min_length, without(logits, END_ID), logits)
        if of_beams and rules.beam_scores != "log_probs":
            logits = tf.nn.log_softmax(logits)
        return tf.where(is_forced, unruled, logits)

    return rule


def start_decoding(
    model: Transformer,
    source: tf.Tensor,
    max_length: int,
    beam_size: int,
    to_logits: ToLogits | None = None,
    prefix: tf.Tensor | None = None,
    candidates: tuple[tf.Tensor, tf.Tensor] | None = None,
    grows: bool = True,
) -> Decoding:
    """Encode the sources and prepare the step function and state that every search needs.

    If S is static, so is the capacity, which also fits a prefix of P tokens, and every shape in the
    graph is fixed. With `candidates`, the search uses their indices as ids. At least one token
    follows a prefix, if `max_length` permits it. The other arguments are those of `translate_ids`.
    """
    lengths = tf.math.count_nonzero(source, axis=1, dtype=tf.int32)  # (B,)
    max_lengths = length_limits(lengths, max_length, model.dialect)  # (B,)
    if prefix is not None:
        longer = tf.math.count_nonzero(prefix, axis=1, dtype=tf.int32) + 1  # (B,)
        longer = tf.minimum(tf.maximum(max_lengths, longer), max_length)
        max_lengths = tf.where(lengths > 0, longer, 0)
    capacity: int | tf.Tensor
    if source.shape[1]:
        with tf.init_scope():  # outside the graph that is being traced
            width = tf.constant(source.shape[1])
            capacity = int(length_limits(width, max_length, model.dialect))
            if prefix is not None:
                longest = prefix.shape[1] or max_length
                capacity = min(max(capacity, longest + 1), max_length)
        first_capacity = capacity
        rounds = None
    else:
        capacity = tf.maximum(tf.reduce_max(max_lengths), 1)  # a cache is never empty
        first_capacity = tf.minimum(capacity, FIRST_CAPACITY) if grows else capacity
        rounds = Rounds(
            capacity=lambda state: capacity_of(state.cache) // beam_size,
            enlarged=DecoderState.enlarged if grows else lambda state, times: state,
            kept=DecoderState.kept,
        )
    memory = model.encode_and_project(source)
    cache: Cache | BeamCache
    if beam_size == 1:
        cache = model.decoder.empty_cache(tf.size(lengths), first_capacity)
    else:
        cache = model.decoder.empty_beam_cache(tf.size(lengths), beam_size, first_capacity)
    state = DecoderState(cache, memory)
    if candidates is None:
        step_fn = _step_fn(model, beam_size, to_logits or model.logits)
    else:
        ids, bias = candidates
        step_fn = _step_fn_among(model, beam_size, ids)
        if model.output_bias is not None:
            bias += tf.cast(tf.gather(model.output_bias, ids), tf.float32)
        state = state._replace(bias=bias)
        if prefix is not None:
            prefix = tf.argmax(prefix[:, :, tf.newaxis] == ids, axis=2, output_type=tf.int32)
    if prefix is not None:
        state = state._replace(prefix=tf.pad(prefix, ((0, 0), (0, 1))))  # 0 at all later steps
    return Decoding(step_fn, state, max_lengths, capacity, rounds)


def _beginning(
    source: tf.Tensor, first_token: int | None, prefix: tf.Tensor | None = None
) -> tf.Tensor | None:
    """Return the ids (B, P) that translations begin with, 0 after the last; None for no ids."""
    if first_token is None:
        return prefix
    first = tf.fill((tf.shape(source)[0], 1), first_token)
    return first if prefix is None else tf.concat([first, prefix[:, 1:]], axis=1)


def _forced(logits: tf.Tensor, given: tf.Tensor) -> tf.Tensor:
    """Give the tokens (R,) probability 1 in logits (R, V); padding leaves its row unchanged."""
    is_given = tf.range(tf.shape(logits)[1]) == given[:, tf.newaxis]
    certain = tf.cast(tf.where(is_given, 0.0, IMPOSSIBLE), logits.dtype)
    return tf.where((given != PAD_ID)[:, tf.newaxis], certain, logits)


def _step_fn(model: Transformer, beam_size: int, to_logits: ToLogits) -> StepFn:
    """Return the step function of a search with N beams, over a `DecoderState`."""
    hidden_step: Callable[..., tuple[tf.Tensor, Any]] = model.hidden_step
    if beam_size > 1:
        hidden_step = model.hidden_beam_step

    def step_fn(
        ids: tf.Tensor, step: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        ids = tf.reshape(ids, (-1, beam_size))  # (B, N)
        hidden, cache = hidden_step(ids, step, state.cache, state.memory)  # (B, N, D)
        logits = to_logits(tf.reshape(hidden, (-1, model.d_model)))  # (R, V)
        if tf.is_tensor(state.prefix):
            last = tf.shape(state.prefix)[1] - 1
            given = tf.gather(state.prefix, tf.minimum(step, last), axis=1)  # (B,)
            logits = _forced(logits, tf.repeat(given, beam_size))
        return logits, state._replace(cache=cache)

    return step_fn


def _step_fn_among(model: Transformer, beam_size: int, candidates: tf.Tensor) -> StepFn:
    """Return a step function whose ids are indices of candidates (U,); its logits are (R, U)."""
    table = tf.convert_to_tensor(model.output_embedding.embeddings)  # (V, D)
    kernel = tf.transpose(tf.gather(table, candidates))  # (D, U)

    def to_logits(hidden: tf.Tensor) -> tf.Tensor:
        return tf.matmul(hidden, tf.cast(kernel, hidden.dtype))

    over_indices = _step_fn(model, beam_size, to_logits)

    def step_fn(
        ids: tf.Tensor, step: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
        logits, state = over_indices(tf.gather(candidates, ids), step, state)
        bias = state.bias if beam_size == 1 else tf.repeat(state.bias, beam_size, axis=0)
        return tf.cast(logits, tf.float32) + bias, state

    return step_fn


def length_limits(lengths: tf.Tensor, max_length: int, dialect: Dialect) -> tf.Tensor:
    """Return the maximum tokens of translations, (B,) int32; 0 for a blank source.

    The product is computed in float32 and rounded up, as in Marian, whose beam search stops at
    `size >= max-length-factor * width` (translator/beam_search.cpp). `lengths` (B,) int32 counts
    the tokens of each source, the end token included.

    Example:
        >>> marian = Dialect(max_length_factor=1.5, extra_length=0)
        >>> length_limits(tf.constant([0, 4, 5, 90]), 100, marian).numpy().tolist()
        [0, 6, 8, 100]
    """
    proportional = tf.math.ceil(dialect.max_length_factor * tf.cast(lengths, tf.float32))
    limits = tf.minimum(tf.cast(proportional, tf.int32) + dialect.extra_length, max_length)
    return tf.where(lengths > 0, limits, 0)


def _empty_where(is_blank: tf.Tensor, hypotheses: Hypotheses) -> Hypotheses:
    """Give each blank sentence (B,) a single empty hypothesis with score 0."""
    is_blank = is_blank[:, tf.newaxis]
    is_first = tf.range(tf.shape(hypotheses.scores)[1]) == 0
    one_of_score_0 = tf.where(is_first, 0.0, EMPTY)  # (N,)
    return Hypotheses(
        tf.where(is_blank[:, :, tf.newaxis], PAD_ID, hypotheses.ids),
        tf.where(is_blank, 0, hypotheses.lengths),
        tf.where(is_blank, one_of_score_0, hypotheses.scores),
    )


def source_ids(ids: tf.Tensor, lengths: tf.Tensor, max_length: int) -> tf.Tensor:
    """Turn a tokenizer's ids (B, S) into the sources (B, W) of `translate_ids`.

    Each row is truncated to `max_length`, ended by the end token and padded with 0; a blank
    sentence is all padding. W is S if S is static, otherwise the longest row's width. `lengths`
    (B,) counts the ids of each row.
    """
    ended = with_end(ids, lengths, max_length)
    return tf.where((lengths > 0)[:, tf.newaxis], ended, PAD_ID)


def with_end(ids: tf.Tensor, lengths: tf.Tensor, max_length: int) -> tf.Tensor:
    """Append the end token as `source_ids` does, but to blank sentences too."""
    width = ids.shape[1]
    longest = tf.minimum(tf.shape(ids)[1], max_length - 1)
    lengths = tf.clip_by_value(lengths, 0, longest)
    needed = tf.maximum(tf.reduce_max(lengths), 0) + 1  # without rows the maximum is negative
    positions = tf.range(width or needed)  # (W,)
    ids = tf.pad(ids, ((0, 0), (0, 1)))[:, : width or tf.size(positions)]
    ids = tf.where(positions < lengths[:, tf.newaxis], ids, PAD_ID)
    return tf.where(positions == lengths[:, tf.newaxis], END_ID, ids)


def token_log_probs(
    model: Transformer, source: tf.Tensor, target: tf.Tensor, to_logits: ToLogits | None = None
) -> tf.Tensor:
    """Return log P(token | source, target tokens before it), (B, T) float32 in nats.

    `source` (B, S) and `target` (B, T) are int32, each row ending with the end token; a blank
    sentence is all padding. The result is 0 at padding and for a blank source.
    """
    hidden = model.hidden({"source": source, "target": _previous(target)})  # (B, T, D)
    return _log_probs(hidden, source, target, to_logits or model.logits)


class AlignedIds(NamedTuple):
    """The probabilities and the attention of B given pairs."""

    log_probs: tf.Tensor  # log P(token | source, target tokens before it), (B, T) float32 in nats
    attention: tf.Tensor  # (B, T, S) float32, see `Transformer.hidden_and_alignment`


def aligned_ids(
    model: Transformer,
    source: tf.Tensor,
    target: tf.Tensor,
    to_logits: ToLogits | None = None,
    temperature: float = 1.0,
) -> AlignedIds:
    """Compute `token_log_probs`, and the attention of each target token to the source tokens.

    The logits are divided by the temperature, see `tfformer.inference.calibration`.
    """
    inputs = {"source": source, "target": _previous(target)}
    hidden, attention = model.hidden_and_alignment(inputs)
    return AlignedIds(
        _log_probs(hidden, source, target, to_logits or model.logits, temperature),
        tf.where(_is_real(source, target)[..., tf.newaxis], tf.cast(attention, tf.float32), 0.0),
    )


def _previous(target: tf.Tensor) -> tf.Tensor:
    """Return the token before each target token, (B, T), even if T is 0."""
    starts = tf.fill((tf.shape(target)[0], 1), START_ID)
    return tf.concat([starts, target], axis=1)[:, :-1]


def _log_probs(
    hidden: tf.Tensor,
    source: tf.Tensor,
    target: tf.Tensor,
    to_logits: ToLogits,
    temperature: float = 1.0,
) -> tf.Tensor:
    logits = tf.cast(to_logits(hidden), tf.float32) / temperature  # (B, T, V)
    log_probs = tf.gather(tf.nn.log_softmax(logits), target, axis=2, batch_dims=2)
    return tf.where(_is_real(source, target), log_probs, 0.0)


def _is_real(source: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    return (target != PAD_ID) & (source[:, :1] != PAD_ID)


def continue_prefixes(
    model: LanguageModel,
    prefixes: tf.Tensor,
    lengths: tf.Tensor,
    max_length: int,
    search_fn: Callable[..., Hypotheses],
    to_logits: ToLogits | None = None,
) -> Hypotheses:
    """Continue prefixes of sequences with a language model.

    The positions that all prefixes have are written to the cache in one step. The remaining tokens
    of longer prefixes are forced and do not count in the score.

    Args:
        model: The language model.
        prefixes: (R, P) int32, each row beginning with the start token.
        lengths: (R,) int32, number of ids of each row, at least 1.
        max_length: Maximum tokens of a sequence, without the start token.
        search_fn: `search_fn(step_fn, state, max_lengths, rounds=rounds)` finds one sequence per
            row, such as `greedy_search`.
        to_logits: As in `translate_ids`.

    Returns:
        One whole sequence per row, without the start token; scores are log p(continuation | prefix)
        in nats.
    """
    to_logits = to_logits or model.logits
    rows, longest = tf.unstack(tf.shape(prefixes))
    shortest = tf.minimum(tf.reduce_min(lengths), longest)  # without rows the minimum is huge
    shared = tf.maximum(shortest, 1) - 1  # tokens that every prefix has before its last token
    cache = model.stack.empty_cache(rows, shared + 1)  # grows during the search
    _, cache = model.hidden_step(prefixes[:, :shared], 0, cache)

    def step_fn(
        ids: tf.Tensor, step: tf.Tensor, state: PrefixState
    ) -> tuple[tf.Tensor, PrefixState]:
        cache, prefixes, lengths = state
        ids = tf.where(step == 0, prefixes[:, shared], ids)  # (R,)
        position = shared + step
        hidden, cache = model.hidden_step(ids[:, tf.newaxis], position, cache)  # (R, 1, D)
        logits = tf.cast(to_logits(hidden[:, 0]), tf.float32)  # (R, V)
        next_position = position + 1
        given = tf.gather(prefixes, tf.minimum(next_position, longest - 1), axis=1)  # (R,)
        given = tf.where(next_position < lengths, given, PAD_ID)
        return _forced(logits, given), (cache, prefixes, lengths)

    rounds = Rounds(
        capacity=lambda state: capacity_of(state[0]) - shared,
        enlarged=lambda state, times: (enlarged(state[0], times), *state[1:]),
        kept=gather_rows,
    )
    limits = tf.fill([rows], max_length - shared)
    continued = search_fn(step_fn, (cache, prefixes, lengths), limits, rounds=rounds)
    ids = tf.concat([prefixes[:, tf.newaxis, 1 : shared + 1], continued.ids], axis=2)
    return Hypotheses(ids, continued.lengths + shared, continued.scores)
