"""Compare the loss with NumPy's sum over the vocabulary, and with Keras' cross-entropy."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfformer.model.losses import SmoothedCrossEntropy

RNG = np.random.default_rng(1)
LOGITS = RNG.normal(scale=3, size=(2, 5, 7)).astype(np.float32)
LABELS = np.array([[4, 6, 3, 0, 0], [1, 2, 5, 6, 3]])
WEIGHTS = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.float32)
SMOOTHINGS = [0.0, 0.1, 0.6]


def cross_entropy(labels, logits, smoothing):
    """-sum over v of ((1 - e) [v = label] + e / V) log p_v, token by token."""
    probabilities = np.exp(logits, dtype=np.float64) / np.exp(logits, dtype=np.float64).sum(
        -1, keepdims=True
    )
    nats = np.zeros(labels.shape)
    for index in np.ndindex(labels.shape):
        for v, p in enumerate(probabilities[index]):
            nats[index] -= (
                (1 - smoothing) * (v == labels[index]) + smoothing / logits.shape[-1]
            ) * np.log(p)
    return nats


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_each_token_costs_the_smoothed_cross_entropy_in_nats(smoothing):
    loss = SmoothedCrossEntropy(smoothing, reduction="none")
    np.testing.assert_allclose(
        loss(LABELS, LOGITS), cross_entropy(LABELS, LOGITS, smoothing), rtol=1e-5
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_equals_keras_cross_entropy_of_one_hot_labels(smoothing):
    reference = keras.losses.CategoricalCrossentropy(
        from_logits=True, label_smoothing=smoothing, reduction="none"
    )
    expected = reference(np.eye(7, dtype=np.float32)[LABELS], LOGITS)
    np.testing.assert_allclose(
        SmoothedCrossEntropy(smoothing, reduction="none")(LABELS, LOGITS), expected, rtol=1e-5
    )


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_weights_of_zero_make_it_the_mean_over_real_tokens(smoothing):
    expected = cross_entropy(LABELS, LOGITS, smoothing)[WEIGHTS == 1].mean()
    loss = SmoothedCrossEntropy(smoothing)(LABELS, LOGITS, sample_weight=WEIGHTS)
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
def test_the_gradient_is_the_softmax_less_the_smoothed_target(smoothing):
    logits = tf.Variable(LOGITS)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(
            SmoothedCrossEntropy(smoothing, reduction="none")(LABELS, logits) * WEIGHTS
        )
    softmax = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    target = (1 - smoothing) * np.eye(7)[LABELS] + smoothing / 7
    np.testing.assert_allclose(
        tape.gradient(loss, logits), WEIGHTS[..., None] * (softmax - target), atol=1e-6
    )


def test_a_label_without_any_probability_costs_how_far_below_the_best_it_is():
    logits = np.array([[[0.0, 300.0, -50.0]]], np.float32)  # e^-300 is 0 in float32
    np.testing.assert_allclose(SmoothedCrossEntropy(0.0)([[0]], logits), 300, rtol=1e-6)


def test_an_ignored_class_is_left_out_of_the_mean_as_with_weights_of_0():
    rng = np.random.default_rng(3)
    labels, logits = rng.integers(0, 4, (3, 5)), rng.normal(size=(3, 5, 4)).astype(np.float32)
    labels[0, 0] = 0
    ignoring = SmoothedCrossEntropy(0.1, ignore_class=0)
    weights = (labels != 0).astype(np.float32)
    expected = SmoothedCrossEntropy(0.1)(labels, logits, sample_weight=weights)
    np.testing.assert_allclose(ignoring(labels, logits), expected, rtol=1e-6)
    keras_own = keras.losses.SparseCategoricalCrossentropy(
        from_logits=True, ignore_class=0, reduction="mean_with_sample_weight"
    )
    plain = SmoothedCrossEntropy(ignore_class=0)
    np.testing.assert_allclose(plain(labels, logits), keras_own(labels, logits), rtol=1e-6)


def loss_and_gradient(labels, logits):
    with tf.GradientTape() as tape:
        tape.watch(logits)
        losses = SmoothedCrossEntropy(0.1, reduction="none").call(labels, logits)
    return losses, tape.gradient(losses, logits)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (3, 11)])
def test_half_precision_logits_are_measured_in_float32_block_by_block(shape):
    """There are few positions, or an odd number of them."""
    labels, logits = RNG.integers(0, 7, shape), RNG.normal(size=(*shape, 7)).astype(np.float32)
    losses, gradient = loss_and_gradient(tf.constant(labels), tf.cast(logits, tf.bfloat16))
    logits = np.asarray(tf.cast(logits, tf.bfloat16), np.float32)
    np.testing.assert_allclose(losses, cross_entropy(labels, logits, 0.1), rtol=1e-5)
    softmax = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    expected = softmax - 0.9 * np.eye(7)[labels] - 0.1 / 7
    assert (losses.dtype, gradient.dtype) == (tf.float32, tf.bfloat16)
    np.testing.assert_allclose(np.asarray(gradient, np.float32), expected, rtol=2**-8, atol=1e-7)


def test_no_float32_copy_of_half_precision_logits_is_made():
    labels = tf.TensorSpec((8, 10), tf.int32)
    logits = tf.TensorSpec((8, 10, 70), tf.bfloat16)
    graph = tf.function(loss_and_gradient, autograph=False).get_concrete_function(labels, logits)
    outputs = [output for node in graph.graph.get_operations() for output in node.outputs]
    sizes = [output.shape.num_elements() for output in outputs if output.dtype == tf.float32]
    assert None not in sizes
    assert max(sizes) == 8 * 10 * 70 // 8


def test_a_dtype_that_rounds_labels_is_refused() -> None:
    """257 is 256 in bfloat16, and 2,049 is 2,048 in float16."""
    for dtype in ("bfloat16", "mixed_bfloat16", "float16"):
        with pytest.raises(ValueError, match="would round the labels"):
            SmoothedCrossEntropy(dtype=dtype)


def test_an_ignored_label_may_be_outside_the_vocabulary() -> None:
    """-1 and 255 are common values. The loss is the mean over the other labels."""
    labels = np.where(np.arange(LABELS.size).reshape(LABELS.shape) % 2, LABELS, -1)
    counted = labels != -1
    losses = SmoothedCrossEntropy(0.1, reduction=None)(LABELS, LOGITS).numpy()
    loss = SmoothedCrossEntropy(0.1, ignore_class=-1)(labels, LOGITS)
    np.testing.assert_allclose(loss, losses[counted].mean(), rtol=1e-6)
