"""Compare operations on logits with sorted rows, and rules with lists of tokens."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st

from tfformer.inference.logits import (
    LARGE,
    argmax,
    forbid_repeated_ngrams,
    forbid_words,
    keep_top_k,
    keep_top_p,
    penalize_repetition,
    top_k,
    without,
)


@pytest.mark.parametrize("vocab_size", [5, 64, 200, 640, 1000])
@pytest.mark.parametrize("distinct", [3, 10**6])
def test_the_largest_logits_by_blocks_are_those_of_a_sorted_row(vocab_size, distinct):
    """With three distinct values, most logits are equal; among equal logits, the first wins."""
    logits = np.random.default_rng(vocab_size).integers(0, distinct, (50, vocab_size))
    values, ids = top_k(tf.constant(logits, tf.float32), 5)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=1))


def test_of_equal_logits_in_two_blocks_the_first_comes_first():
    """The block of the second logit also contains a larger logit."""
    logits = np.zeros((1, 640), np.float32)
    logits[0, [600, 601, 3]] = [7, 5, 5]
    np.testing.assert_array_equal(top_k(tf.constant(logits), 3)[1], [[600, 3, 601]])


@pytest.mark.parametrize("vocab_size", [7, LARGE, LARGE + 1, LARGE + 63])
@pytest.mark.parametrize("distinct", [3, 10**6])
def test_the_largest_logit_by_blocks_is_that_of_numpy(vocab_size, distinct):
    logits = np.random.default_rng(vocab_size).integers(0, distinct, (200, vocab_size))
    indices = argmax(tf.constant(logits, tf.float32))
    np.testing.assert_array_equal(indices, logits.argmax(axis=1))


@pytest.mark.parametrize("indices", [[LARGE - 1], [LARGE], [LARGE + 4], [LARGE - 1, LARGE], [0]])
def test_the_largest_logit_may_stand_at_the_end_of_the_last_whole_block_or_behind_it(indices):
    logits = np.zeros((1, LARGE + 5), np.float32)
    logits[0, indices] = 1
    assert argmax(tf.constant(logits)).numpy().tolist() == indices[:1]


def test_a_token_that_is_left_out_has_the_lowest_logit_and_the_others_their_own():
    logits = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float32)
    reduced = without(tf.constant(logits), 3).numpy()
    kept = np.arange(9) != 3
    np.testing.assert_array_equal(reduced[:, kept], logits[:, kept])
    assert (reduced[:, 3] <= np.finfo(np.float32).min).all()
    np.testing.assert_array_equal(without(tf.constant(logits), None), logits)


def of_likelier_tokens(row):
    """Return, for each token, the total probability of all more likely tokens."""
    return [row[row > probability].sum() for probability in row]


def test_top_k_and_top_p_keep_exactly_the_expected_logits_of_every_row():
    logits = np.random.default_rng(0).normal(scale=2, size=(50, 9)).astype(np.float32)
    lowest = np.finfo(np.float32).min
    for k in (0, 1, 4, 9, 20):
        rank = (-logits).argsort(axis=1).argsort(axis=1)
        np.testing.assert_array_equal(
            keep_top_k(tf.constant(logits), k), np.where(rank < (k or 9), logits, lowest)
        )
    probabilities = np.exp(logits, dtype=np.float64) / np.exp(logits, dtype=np.float64).sum(
        axis=1, keepdims=True
    )
    before = np.array([of_likelier_tokens(row) for row in probabilities])
    for p in (0.2, 0.5, 0.9, 1.0):
        np.testing.assert_array_equal(
            keep_top_p(tf.constant(logits), p), np.where(before < p, logits, lowest)
        )


@st.composite
def written(draw):
    """Return logits (R, 4), ids (R, L) and the number of tokens; later ids are arbitrary."""
    rows, length = draw(st.integers(1, 3)), draw(st.integers(1, 8))
    dice = np.random.default_rng(draw(st.integers(0, 999)))
    logits = dice.normal(size=(rows, 4)).astype(np.float32)
    ids = dice.integers(0, 4, (rows, length)).astype(np.int32)
    return logits, ids, draw(st.integers(1, length))


def ends_with(tokens, word):
    return tokens[len(tokens) - len(word) :] == word


@given(written(), st.sampled_from([0.5, 1.3]))
def test_the_penalty_is_for_each_token_that_occurs_once(given_, penalty):
    logits, ids, count = given_
    expected = logits.copy()
    for row, tokens in zip(expected, ids, strict=True):
        for token in set(tokens[:count]):
            row[token] *= penalty if row[token] < 0 else 1 / penalty
    penalized = penalize_repetition(*map(tf.constant, given_), penalty)
    np.testing.assert_allclose(penalized, expected, rtol=1e-6)


@given(written(), st.integers(1, 4))
def test_no_ngram_occurs_twice(given_, size):
    logits, ids, count = given_
    expected = logits.copy()
    for row, tokens in zip(expected, ids[:, :count].tolist(), strict=True):
        before = [tokens[n : n + size] for n in range(count - size + 1)]
        for token in range(4):
            if [*tokens, token][count + 1 - size :] in before and count + 1 >= size:
                row[token] = np.finfo(np.float32).min
    filtered = forbid_repeated_ngrams(*map(tf.constant, given_), size)
    np.testing.assert_array_equal(filtered, expected)


@given(written(), st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1))
def test_no_word_is_completed(given_, words):
    logits, ids, count = given_
    expected = logits.copy()
    for row, tokens in zip(expected, ids[:, :count].tolist(), strict=True):
        for word in words:
            if len(word) - 1 <= count and ends_with(tokens, word[:-1]):
                row[word[-1]] = np.finfo(np.float32).min
    filtered = forbid_words(*map(tf.constant, given_), words)
    np.testing.assert_array_equal(filtered, expected)
