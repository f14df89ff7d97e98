"""Compare SimCut's loss with NumPy's divergence, and its gradient with small steps."""

import keras
import numpy as np
import tensorflow as tf
from support.numpy_layers import smoothed_cross_entropy

from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.model.simcut import SimCutCrossEntropy, divergence

RNG = np.random.default_rng(1)
LABELS = np.array([[4, 6, 3, 0, 0], [1, 2, 5, 6, 3]])
WEIGHTS = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.float32)
PAIR = RNG.normal(scale=3, size=(2, 2, 5, 7))  # logits (2, B, T, V)


def kullback_leibler(logits, other_logits):
    p, q = (np.exp(z) / np.exp(z).sum(-1, keepdims=True) for z in (logits, other_logits))
    return (p * np.log(p / q)).sum(-1)


def test_simcut_is_the_cross_entropy_of_the_first_logits_and_alpha_times_the_divergence():
    nats = smoothed_cross_entropy(PAIR[0], LABELS, 0.1) + 3 * kullback_leibler(*PAIR)
    loss = SimCutCrossEntropy(3.0, 0.1)
    np.testing.assert_allclose(loss(LABELS, PAIR, WEIGHTS), nats[WEIGHTS == 1].mean(), rtol=1e-5)
    np.testing.assert_allclose(
        SimCutCrossEntropy(3.0, 0.1, ignore_class=0)(LABELS, PAIR),
        nats[LABELS != 0].mean(),
        rtol=1e-5,
    )
    plain = SmoothedCrossEntropy(0.1)(LABELS, PAIR[0], WEIGHTS)
    np.testing.assert_allclose(loss(LABELS, PAIR[0], WEIGHTS), plain, rtol=1e-6)


def test_the_divergence_has_the_slope_of_small_steps_for_both_logits():
    step, weights = 1e-5, RNG.normal(size=(2, 5))
    pair = [tf.constant(z, tf.float32) for z in PAIR]
    with tf.GradientTape() as tape:
        tape.watch(pair)
        total = tf.reduce_sum(divergence(*pair) * weights.astype(np.float32))
    for side, gradient in enumerate(tape.gradient(total, pair)):
        slopes = np.zeros_like(PAIR[side])
        for index in np.ndindex(slopes.shape):
            ends = []
            for sign in (1, -1):
                moved = PAIR.copy()
                moved[side][index] += sign * step
                ends.append((kullback_leibler(*moved) * weights).sum())
            slopes[index] = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(gradient, slopes, atol=1e-4)


def test_the_divergence_is_finite_for_probabilities_below_the_smallest_float():
    pair = [tf.constant([[[0.0, 300.0, -50.0]]]), tf.constant([[[300.0, 0.0, -50.0]]])]
    with tf.GradientTape() as tape:
        tape.watch(pair)
        nats = divergence(*pair)
    np.testing.assert_allclose(nats, 300, rtol=1e-6)
    for_p, for_q = tape.gradient(nats, pair)
    np.testing.assert_allclose(for_p, [[[0, 0, 0]]], atol=1e-6)
    np.testing.assert_allclose(for_q, [[[1, -1, 0]]], atol=1e-6)


def test_simcut_survives_serialising():
    loss = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(SimCutCrossEntropy(2.5, 0.3))
    )
    assert (type(loss), loss.alpha, loss.label_smoothing) == (SimCutCrossEntropy, 2.5, 0.3)
