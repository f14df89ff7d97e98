"""Graphs over ids, for untrained models. NumPy recomputes the ids without a cache."""

import itertools

import numpy as np
import pytest
import tensorflow as tf
from support.nightly import sampled
from support.numpy_layers import log_softmax
from support.uncached_search import greedy_by_hand, next_log_probs
from support.untrained_models import untrained_language_model, untrained_transformer

from tfformer.config import DecodingConfig, Dialect
from tfformer.inference import graphs
from tfformer.inference.search import Hypotheses, greedy_search
from tfformer.special_ids import END_ID, PAD_ID, START_ID

SOURCES = [[5, 6, 7, END_ID], [8, END_ID], [9, 9, 4, 12, 5, 6, END_ID], [10, 4, END_ID]]


@pytest.fixture(scope="module")
def model():
    return untrained_transformer(dialect={"output_bias": True})


@pytest.fixture(scope="module")
def language_model():
    return untrained_language_model(dialect={"output_bias": True})


def padded(rows, width=None):
    width = width or max(map(len, rows))
    return tf.constant([row + [PAD_ID] * (width - len(row)) for row in rows], tf.int32)


def ids_and_scores(hypotheses):
    """Return the best sequence of each sentence, without padding, and its score."""
    best = zip(
        hypotheses.ids[:, 0].numpy(),
        hypotheses.lengths[:, 0].numpy(),
        hypotheses.scores[:, 0].numpy(),
        strict=True,
    )
    return [(ids[:length].tolist(), float(score)) for ids, length, score in best]


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", sampled([1, 3], by_day=[3]))
def test_a_translation_is_the_same_alone_in_a_batch_and_with_extra_padding(model, beam_size):
    ids = tf.TensorSpec((None, None), tf.int32)
    search = tf.function(
        lambda source: graphs.translate_ids(model, source, 20, DecodingConfig(beam_size=beam_size)),
        input_signature=[ids],
    )
    together = ids_and_scores(search(padded(SOURCES)))
    with_padding = ids_and_scores(search(padded(SOURCES, width=15)))
    alone = [ids_and_scores(search(padded([source])))[0] for source in SOURCES]
    for batched, wide, single in zip(together, with_padding, alone, strict=True):
        assert batched[0] == wide[0] == single[0]
        assert batched[1] == pytest.approx(wide[1], abs=1e-4)
        assert batched[1] == pytest.approx(single[1], abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", sampled([1, 3], by_day=[3]))
def test_a_long_translation_is_the_same_by_a_cache_that_grows(model, beam_size):
    """A growing cache has 16 positions, then 32, then 64.

    A source of fixed width has a cache for the maximum length. If no token ends it, a translation
    has 50 tokens more than its source.
    """
    source = padded([[5, 6, 7, END_ID], [8, END_ID]])

    def long(hidden: tf.Tensor) -> tf.Tensor:
        return model.logits(hidden) - 1e4 * tf.one_hot(END_ID, 13)

    def translate(source: tf.Tensor) -> Hypotheses:
        return graphs.translate_ids(model, source, 100, DecodingConfig(beam_size=beam_size), long)

    grown = tf.function(translate, input_signature=[tf.TensorSpec((None, None), tf.int32)])(source)
    fixed = tf.function(translate)(source)
    np.testing.assert_array_equal(fixed.lengths, [[54] * beam_size, [52] * beam_size])
    np.testing.assert_array_equal(grown.ids, fixed.ids)
    np.testing.assert_allclose(grown.scores, fixed.scores, rtol=1e-5)


PREFIXES = [[9, 4], [], [12, 5, 8, 8, 6], [7]]


@pytest.mark.parametrize("width", [None, 7])
def test_a_prefix_is_continued_as_without_a_cache(model, width):
    @tf.function(input_signature=[tf.TensorSpec((None, width), tf.int32)] * 2)
    def translate(source: tf.Tensor, prefix: tf.Tensor) -> Hypotheses:
        decoding = DecodingConfig(beam_size=1)
        return graphs.translate_ids(model, source, 9, decoding, prefix=prefix)

    sources = [source[:width] for source in SOURCES]
    found = ids_and_scores(translate(padded(sources, width), padded(PREFIXES, width)))
    for source, prefix, (ids, score) in zip(sources, PREFIXES, found, strict=True):
        limit = int(graphs.length_limits(tf.constant(len(source)), 9, model.dialect))
        assert ids == greedy_by_hand(model, source, prefix, limit)
        steps = range(len(prefix), len(ids))
        expected = sum(next_log_probs(model, source, ids[:n])[ids[n]] for n in steps)
        assert score == pytest.approx(expected, abs=1e-4)


def test_beams_after_a_prefix_are_the_best_of_all_continuations(model):
    """With as many beams as there are pieces, two steps are searched exhaustively."""
    source, prefix = SOURCES[0], [9, 4]
    decoding = DecodingConfig(beam_size=13, length_penalty=0.0)
    short = untrained_transformer(
        dialect={"output_bias": True, "max_length_factor": 1.0, "extra_length": 0}
    )
    short.set_weights(model.get_weights())
    found = graphs.translate_ids(short, padded([source]), 9, decoding, prefix=padded([prefix]))
    first = next_log_probs(short, source, prefix)
    best = {(END_ID,): first[END_ID]}
    for token in set(range(13)) - {END_ID}:
        second = first[token] + next_log_probs(short, source, [*prefix, token])
        best |= {(token, last): second[last] for last in range(13)}
    expected = sorted(best, key=best.get, reverse=True)[:3]
    ids, lengths = found.ids[0].numpy(), found.lengths[0].numpy()
    assert [tuple(row[2:length].tolist()) for row, length in zip(ids, lengths, strict=True)][
        :3
    ] == expected
    np.testing.assert_allclose(found.scores[0, :3], [best[key] for key in expected], rtol=1e-4)


@pytest.mark.parametrize("first_token", [None, 9])
def test_continuations_begin_with_the_most_likely_tokens(model, first_token):
    prefixes = PREFIXES
    if first_token is not None:
        prefixes = [[first_token, *prefix[1:]] for prefix in PREFIXES]
    found = graphs.continue_translations(
        model,
        padded([*SOURCES, [PAD_ID]]),
        padded([*PREFIXES, []]),
        3,
        9,
        first_token=first_token,
    )
    for number, (source, prefix) in enumerate(zip(SOURCES, prefixes, strict=True)):
        log_probs = next_log_probs(model, source, prefix)
        possible = set(range(13)) - {PAD_ID, START_ID}
        tokens = sorted(possible, key=log_probs.__getitem__, reverse=True)[:3]
        np.testing.assert_allclose(found.scores[number], log_probs[tokens], atol=1e-4)
        limit = int(graphs.length_limits(tf.constant(len(source)), 9, model.dialect))
        for rank, token in enumerate(tokens):
            ids = found.ids[number, rank, : found.lengths[number, rank]].numpy().tolist()
            limit = max(limit, len(prefix) + 1)
            assert ids == greedy_by_hand(model, source, [*prefix, token], limit)
    assert found.lengths[len(SOURCES)].numpy().tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("rules", "beam_size"),
    [
        ({"repetition_penalty": 3.0}, 1),
        ({"no_repeat_ngram_size": 2}, 1),
        ({"bad_words": [[8], [5]]}, 3),
        ({"min_length": 4}, 1),
        ({"no_repeat_ngram_size": 2, "beam_scores": "renormalized"}, 3),
    ],
)
def test_rules_apply_after_a_prefix_but_not_within_it(rules, beam_size):
    """The third prefix repeats a pair of pieces, and two prefixes contain forbidden pieces."""
    model = untrained_transformer(dialect={"output_bias": True, "rules": rules})
    sources, prefixes = padded(SOURCES), [[9, 4], [], [12, 8, 5, 12, 8], [8]]
    decoding = DecodingConfig(beam_size=beam_size)
    translated = graphs.translate_ids(model, sources, 9, decoding, prefix=padded(prefixes))
    for (ids, score), prefix in zip(ids_and_scores(translated), prefixes, strict=True):
        assert ids[: len(prefix)] == prefix
        assert score > -100
    continued = graphs.continue_translations(model, sources, padded(prefixes), 10, 9)
    lengths = continued.lengths.numpy()
    for number, prefix in enumerate(prefixes):
        for row, length in zip(
            continued.ids[number].numpy().tolist(), lengths[number], strict=True
        ):
            assert row[: len(prefix)] == prefix
            assert PAD_ID not in row[: min(len(prefix) + 1, length)]
    if beam_size == 1:  # the first continuation is the translation with this prefix
        assert [ids for ids, _ in ids_and_scores(continued)] == [
            ids for ids, _ in ids_and_scores(translated)
        ]


def marian_limit(width, factor):
    """Return the steps of Marian's loop if no hypothesis ends, see translator/beam_search.cpp."""
    history_size = 1  # the start's hypothesis
    while history_size < np.float32(factor) * np.float32(width):
        history_size += 1
    return history_size


@pytest.mark.parametrize(("factor", "extra"), [(3.0, 0), (1.1, 0), (0.01, 0), (1.0, 50), (0.5, 2)])
def test_the_limit_of_a_length_is_that_of_marians_loop(factor, extra):
    dialect = Dialect(max_length_factor=factor, extra_length=extra)
    wanted = [0, *(min(marian_limit(width, factor) + extra, 90) for width in range(1, 100))]
    assert graphs.length_limits(tf.range(100), 90, dialect).numpy().tolist() == wanted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("search", "width"),
    sampled(
        itertools.product(["greedy", "beam", "sample"], [None, 4]),
        by_day=[("greedy", None), ("beam", 4), ("sample", None)],
    ),
)
def test_every_search_stops_at_the_limit_of_each_source(model, monkeypatch, search, width):
    """No token ends a translation; the sources have 4, 2 and 0 tokens."""
    monkeypatch.setattr(model, "logits", lambda hidden: model_logits(hidden) + never_end)
    model_logits, never_end = type(model).logits.__get__(model), -1e4 * tf.one_hot(END_ID, 13)
    monkeypatch.setattr(model, "dialect", Dialect(max_length_factor=1.5, extra_length=0))
    decoding = DecodingConfig(beam_size=3 if search == "beam" else 1)

    @tf.function(input_signature=[tf.TensorSpec((None, width), tf.int32)])
    def translate(source: tf.Tensor) -> Hypotheses:
        if search == "sample":
            return graphs.sample_ids(model, source, 1, 0, 100, 1.0, 0, 1.0)
        return graphs.translate_ids(model, source, 100, decoding)

    source = padded([[5, 6, 7, END_ID], [8, END_ID], [0]])
    np.testing.assert_array_equal(translate(source).lengths[:, 0], [6, 3, 0])


def test_continuing_equals_recomputing_every_prefix(language_model):
    """The maximum length applies to the whole sequence."""
    prefixes = [[START_ID, 7, 5], [START_ID], [START_ID, 4, 4, 9, 10]]
    lengths = tf.constant([3, 1, 5])
    hypotheses = graphs.continue_prefixes(
        language_model, padded(prefixes), lengths, 8, greedy_search
    )
    for prefix, (ids, score) in zip(prefixes, ids_and_scores(hypotheses), strict=True):
        expected, nats = list(prefix), 0.0
        while len(expected) <= 8 and expected[-1] != END_ID:
            log_probs = log_softmax(language_model(np.array([expected]))[0, -1])
            expected.append(int(log_probs.argmax()))
            nats += log_probs.max()
        assert ids == expected[1:]
        assert score == pytest.approx(nats, abs=1e-4)


# The function that makes logits


def test_the_logits_function_decides(model):
    def end(hidden: tf.Tensor) -> tf.Tensor:
        return 50.0 * tf.one_hot(tf.fill(tf.shape(hidden)[:-1], END_ID), 13)

    hypotheses = graphs.translate_ids(model, padded(SOURCES), 20, DecodingConfig(beam_size=1), end)
    assert [ids for ids, _ in ids_and_scores(hypotheses)] == [[END_ID]] * 4


def transposed(model):
    """Return logits computed from a copy (D, V) of the output matrix, as in a SavedModel."""
    kernel = tf.transpose(model.output_embedding.embeddings)
    return lambda hidden: model.add_output_bias(hidden @ kernel)


@pytest.mark.slow
@pytest.mark.parametrize("tie_embeddings", sampled(["output", "none"], by_day=["none"]))
def test_a_transposed_copy_of_the_output_matrix_gives_the_models_own(tie_embeddings):
    model = untrained_transformer(dialect={"output_bias": True}, tie_embeddings=tie_embeddings)
    to_logits = transposed(model)
    for compute in (
        lambda *to_logits: (
            graphs.translate_ids(
                model, padded(SOURCES), 4, DecodingConfig(beam_size=2), *to_logits
            ).scores
        ),
        lambda *to_logits: graphs.token_log_probs(model, *[padded(SOURCES)] * 2, *to_logits),
    ):
        np.testing.assert_allclose(compute(to_logits), compute(), rtol=1e-4, atol=1e-5)


def test_a_language_models_transposed_copy_gives_its_own(language_model):
    to_logits = transposed(language_model)
    rows = padded(SOURCES)
    expected = language_model.log_prob(rows)
    np.testing.assert_allclose(language_model.log_prob(rows, to_logits), expected, rtol=1e-4)


# Ids


def test_sources_are_ended_truncated_and_padded_to_what_the_longest_needs():
    ids = tf.constant([[5, 6, 7, 8], [9, 9, 9, 9], [4, 5, 9, 9]])
    dynamic = tf.function(
        lambda ids, lengths: graphs.source_ids(ids, lengths, max_length=3),
        input_signature=[tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((None,), tf.int32)],
    )
    expected = [[5, 6, END_ID], [0, 0, 0], [4, 5, END_ID]]
    assert dynamic(ids, tf.constant([4, 0, 2])).numpy().tolist() == expected


def test_sources_of_fixed_width_keep_it():
    ids = tf.constant([[5, 6, 7, 8], [9, 9, 9, 9]])
    sources = graphs.source_ids(ids, tf.constant([2, 0]), max_length=9)
    assert sources.numpy().tolist() == [[5, 6, END_ID, 0], [0, 0, 0, 0]]
