"""Operations on logits against sorted rows."""

import numpy as np
import pytest
import tensorflow as tf

from tfformer.inference.logits import LARGE, argmax, keep_top_k, keep_top_p, top_k, without


@pytest.mark.parametrize("vocab_size", [5, 64, 200, 640, 1000])
@pytest.mark.parametrize("distinct", [3, 10**6])
def test_the_largest_logits_by_blocks_are_those_of_a_sorted_row(vocab_size, distinct):
    """With three distinct values most are equal, and of equals the first counts."""
    logits = np.random.default_rng(vocab_size).integers(0, distinct, (50, vocab_size))
    values, ids = top_k(tf.constant(logits, tf.float32), 5)
    expected = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(ids, expected)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, expected, axis=1))


def test_of_equal_logits_in_two_blocks_the_first_comes_first():
    """Although the block of the second has a larger logit too."""
    logits = np.zeros((1, 640), np.float32)
    logits[0, [600, 601, 3]] = [7, 5, 5]
    np.testing.assert_array_equal(top_k(tf.constant(logits), 3)[1], [[600, 3, 601]])


@pytest.mark.parametrize("vocab_size", [7, LARGE, LARGE + 1, LARGE + 63])
@pytest.mark.parametrize("distinct", [3, 10**6])
def test_the_largest_logit_by_blocks_is_that_of_numpy(vocab_size, distinct):
    logits = np.random.default_rng(vocab_size).integers(0, distinct, (200, vocab_size))
    found = argmax(tf.constant(logits, tf.float32))
    np.testing.assert_array_equal(found, logits.argmax(axis=1))


@pytest.mark.parametrize("places", [[LARGE - 1], [LARGE], [LARGE + 4], [LARGE - 1, LARGE], [0]])
def test_the_largest_logit_may_stand_at_the_end_of_the_last_whole_block_or_behind_it(places):
    logits = np.zeros((1, LARGE + 5), np.float32)
    logits[0, places] = 1
    assert argmax(tf.constant(logits)).numpy().tolist() == places[:1]


def test_a_token_that_is_left_out_has_the_lowest_logit_and_the_others_their_own():
    logits = np.random.default_rng(0).normal(size=(4, 9)).astype(np.float32)
    found = without(tf.constant(logits), 3).numpy()
    others = np.arange(9) != 3
    np.testing.assert_array_equal(found[:, others], logits[:, others])
    assert (found[:, 3] <= np.finfo(np.float32).min).all()
    np.testing.assert_array_equal(without(tf.constant(logits), None), logits)


def of_likelier_tokens(row):
    """For each token the probability of all likelier ones together."""
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
