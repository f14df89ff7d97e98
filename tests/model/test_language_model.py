"""The decoder as a distribution over sequences: chain rule, total probability, causality, cache."""

import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import log_softmax, randomized

import tfformer
from tfformer.inference.search import greedy_search
from tfformer.model.language_model import LanguageModel
from tfformer.model.masks import look_ahead_mask
from tfformer.special_ids import END_ID, START_ID

ROWS = np.array([[7, 12, 5, 5, 9, 3], [4, 3, 0, 0, 0, 0], [11, 6, 8, 4, 3, 0]], np.int32)
READ = np.pad(ROWS[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)
each_norm = pytest.mark.parametrize("norm", ["post", "pre"])


def small(vocab_size=13, seed=1, **changes):
    """A model with random weights, so that no bias is zero and no scale is one."""
    settings = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}
    return randomized(LanguageModel(vocab_size, **(settings | changes)), seed, scale=0.25)


def steps(model, rows, room):
    """Return log p(x_t | x_1 ... x_{t-1}) of each token, computed step by step with the cache."""
    cache, last, log_probs = (
        model.stack.empty_cache(len(rows), room),
        np.full(len(rows), START_ID, np.int32),
        [],
    )
    for t in range(rows.shape[1]):
        logits, cache = model.step(tf.constant(last)[:, tf.newaxis], t, cache)
        log_probs.append(log_softmax(logits[:, 0])[np.arange(len(rows)), rows[:, t]])
        last = rows[:, t]
    return np.stack(log_probs, axis=1)


# A distribution


@each_norm
@pytest.mark.parametrize("output_bias", [False, True])
def test_log_prob_is_the_sum_of_the_cached_steps_log_probabilities(norm, output_bias):
    """The chain rule. Tokens after the end token do not count."""
    model = small(norm=norm, num_layers=2, dialect={"output_bias": output_bias})
    each = steps(model, ROWS, room=8)
    expected = [each[n, : np.argmax(row == END_ID) + 1].sum() for n, row in enumerate(ROWS)]
    np.testing.assert_allclose(model.log_prob(ROWS), expected, rtol=1e-5)
    np.testing.assert_allclose(model.log_prob(np.where(ROWS == 0, 9, ROWS)), expected, rtol=1e-5)
    np.testing.assert_allclose(
        tf.reduce_sum(model.token_log_probs(ROWS), axis=1), expected, rtol=1e-5
    )
    assert model.log_prob(ROWS[:, :0]).numpy().tolist() == [0.0] * len(ROWS)


@each_norm
def test_the_probabilities_of_all_sequences_sum_to_one(norm):
    """All sequences of five tokens that end within four, and unfinished prefixes of four tokens."""
    model = small(vocab_size=5, norm=norm)
    vocabulary = [token for token in range(5) if token != END_ID]
    total = 0.0
    for length in range(4):
        ended = [[*tokens, END_ID] for tokens in itertools.product(vocabulary, repeat=length)]
        total += np.exp(model.log_prob(np.array(ended, np.int32)).numpy().astype(np.float64)).sum()
    assert 0.1 < total < 0.999
    going_on = np.array(list(itertools.product(vocabulary, repeat=4)), np.int32)
    total += np.exp(model.log_prob(going_on).numpy().astype(np.float64)).sum()
    assert total == pytest.approx(1.0, abs=1e-5)


@each_norm
@pytest.mark.parametrize("t", [0, 2, 4])
def test_a_token_never_changes_the_probability_of_those_before_it_nor_its_own_logits(norm, t):
    model, changed = small(norm=norm), ROWS.copy()
    changed[:, t] = 10
    read = np.pad(changed[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)
    before, after = model(READ).numpy(), model(read).numpy()
    np.testing.assert_array_equal(after[:, : t + 1], before[:, : t + 1])
    assert (np.abs(after[:, t + 1 :] - before[:, t + 1 :]).max(axis=-1) > 1e-3).all()


@pytest.mark.parametrize(("tie", "norm"), [("none", "post"), ("output", "pre"), ("all", "post")])
def test_cached_equals_uncached_in_steps_of_one_and_after_a_prefix(tie, norm):
    others = {"num_layers": 2, "dialect": {"position_layout": "halves"}}
    model = small(tie_embeddings=tie, norm=norm, **others)
    expected = model(READ)
    for first_steps in ((1, 1, 1, 1, 1, 1), (3, 1, 2)):
        cache, first, cached = model.stack.empty_cache(3, 9), 0, []
        for count in first_steps:
            logits, cache = model.step(tf.constant(READ[:, first : first + count]), first, cache)
            cached.append(logits)
            first += count
        np.testing.assert_allclose(tf.concat(cached, axis=1), expected, rtol=1e-4, atol=1e-5)


def test_logits_are_the_transformers_decoder_with_nothing_to_look_up():
    """A decoder with the same weights gives the same logits. Its attention to the source adds 0."""
    model = small(norm="pre")
    decoder = tfformer.Decoder(1, 16, 2, d_ff=24, norm="pre")
    decoder.build(None)
    decoder.normalization.set_weights(model.stack.normalization.get_weights())
    for layer, decoder_layer in zip(model.stack.layers, decoder.layers, strict=True):
        for name in (
            "self_attention",
            "self_attention_residual",
            "feed_forward",
            "feed_forward_residual",
        ):
            getattr(decoder_layer, name).set_weights(getattr(layer, name).get_weights())
        silent = decoder_layer.cross_attention.output_projection
        silent.set_weights([np.zeros_like(weight) for weight in silent.get_weights()])
    x = decoder(
        model.embedding(READ), tf.ones((3, 4, 16)), look_ahead_mask(6), tf.ones((1, 1, 1, 4), bool)
    )
    np.testing.assert_allclose(model.output_embedding.logits(x), model(READ), rtol=1e-5, atol=1e-5)


def test_a_tied_embedding_is_one_matrix():
    embedding = 13 * 16
    assert small(tie_embeddings="none").count_params() == small().count_params() + embedding
    assert small(tie_embeddings="all").count_params() == small().count_params()


# What Keras does with it


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_half_precision_has_log_probs_in_float32(policy):
    model, full = small(dtype=policy), small()
    assert model.log_prob(ROWS).dtype == tf.float32
    np.testing.assert_allclose(model.log_prob(ROWS), full.log_prob(ROWS), rtol=0.05)


@pytest.mark.slow
def test_learns_two_sentences_and_is_saved(tmp_path):
    """5 4 6 and 7 4 8, equally often.

    The best log-probability is log 1/2, and greedy search continues 7 4 with 8.
    """
    rows = np.array([[5, 4, 6, 3], [7, 4, 8, 3]], np.int32)
    read = np.pad(rows[:, :-1], ((0, 0), (1, 0)), constant_values=START_ID)
    keras.utils.set_random_seed(1)
    model = LanguageModel(9, num_layers=1, d_model=16, num_heads=2, d_ff=32, dropout=0.0)
    loss = tfformer.SmoothedCrossEntropy()
    model.compile(keras.optimizers.Adam(0.02), loss, jit_compile=False)
    dataset = tf.data.Dataset.from_tensors((read, rows, np.ones((2, 4), np.float32))).repeat(120)
    model.fit(dataset, verbose=0)
    np.testing.assert_allclose(np.exp(model.log_prob(rows)), [0.5, 0.5], atol=0.03)

    def step_fn(ids, step, cache):
        ids = tf.where(step == 0, 4, ids)
        logits, cache = model.step(ids[:, tf.newaxis], 2 + step, cache)
        return logits[:, 0], cache

    _, cache = model.step(tf.constant([[START_ID, 7]]), 0, model.stack.empty_cache(1, 6))
    assert greedy_search(step_fn, cache, tf.constant([4])).ids[0, 0, :2].numpy().tolist() == [
        8,
        END_ID,
    ]

    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again.log_prob(rows), model.log_prob(rows))
