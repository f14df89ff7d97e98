"""The fast layers equal Keras' layers; dropout is tested against its probabilities."""

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import numpy_normalization, randomized

from tfformer.model import fast_layers
from tfformer.model.fast_layers import Dense, Dropout, LayerNormalization
from tfformer.model.layers import DecoderLayer, Residual
from tfformer.model.masks import look_ahead_mask, padding_mask

D, HEADS, D_FF = 12, 3, 20
RATE = 0.25
TOLERANCE = {"float32": 1e-5, "mixed_bfloat16": 0.02}  # of gradients
RNG = np.random.default_rng(0)
TARGET = RNG.normal(size=(2, 4, D)).astype(np.float32)
MEMORY = RNG.normal(size=(2, 5, D)).astype(np.float32)
MEMORY_MASK = padding_mask(tf.constant([[4, 7, 9, 3, 0], [4, 3, 0, 0, 0]]))


@pytest.fixture(autouse=True)
def same_weights_and_dropout_in_every_run():
    keras.utils.set_random_seed(0)


@pytest.fixture(params=[False, True], ids=["plain", "xla"])
def gradients_for(request, monkeypatch):
    """Compute sums over vectors as without XLA, or as for XLA."""
    monkeypatch.setattr(fast_layers, "is_for_xla", lambda: request.param)


@pytest.mark.parametrize("training", [False, True])
def test_normalisation_and_its_gradients_equal_keras_own(training, gradients_for):
    upstream, results = RNG.normal(size=TARGET.shape).astype(np.float32), []
    for kind, arguments in (
        (LayerNormalization, {"training": training}),
        (keras.layers.LayerNormalization, {}),
    ):
        layer = kind(epsilon=0.1)
        layer.build(TARGET.shape)
        randomized(layer)
        x = tf.Variable(3 * TARGET + 1)
        with tf.GradientTape() as tape:
            output = layer(x, **arguments)
            loss = tf.reduce_sum(output * upstream)
        results.append([output, *tape.gradient(loss, [x, layer.gamma.value, layer.beta.value])])
    for our_value, their_value in zip(*results, strict=True):
        np.testing.assert_allclose(our_value, their_value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(3, 5, 7), (4, 4)])
def test_dropout_decides_for_every_number_by_itself(shape):
    """Neighbours, which share a random word, agree as often as other values.

    The count is odd in one case.
    """
    layer = Dropout(RATE)
    ones = tf.ones(shape)
    dropped = tf.function(lambda: layer(ones, training=True))
    kept = np.array([dropped().numpy().ravel() > 0 for _ in range(4000 // shape[0])])
    tolerance = 5 / np.sqrt(len(kept))
    np.testing.assert_allclose(
        kept.mean(axis=0), 1 - RATE, atol=tolerance * np.sqrt(RATE * (1 - RATE))
    )
    correlation = np.corrcoef(kept.T) - np.eye(kept.shape[1])
    assert np.abs(correlation).max() < tolerance


def test_dropout_of_nearly_everything_is_still_finite():
    x = tf.Variable(tf.ones([1000]))
    with tf.GradientTape() as tape:
        output = Dropout(1 - 1e-9)(x, training=True)
    assert np.isfinite(output).all()
    assert np.isfinite(tape.gradient(output, x)).all()


def test_dropout_zeroes_its_share_of_the_sublayers_output_and_scales_the_rest():
    residual = Residual(64, dropout=RATE, norm="pre")
    x, sublayer_output = tf.random.stateless_normal([2, 32, 50, 64], seed=[1, 2])
    added = np.asarray(residual.after(x, sublayer_output, training=True) - x)
    dropped = np.abs(added) < 1e-5
    np.testing.assert_allclose(
        added[~dropped], (sublayer_output / (1 - RATE)).numpy()[~dropped], rtol=1e-3, atol=1e-5
    )
    share = 4 * np.sqrt(RATE * (1 - RATE) / dropped.size)
    assert dropped.mean() == pytest.approx(RATE, abs=share)
    np.testing.assert_allclose(
        residual.after(x, sublayer_output, training=False), x + sublayer_output, rtol=1e-6
    )


def test_post_norm_drops_before_it_adds_and_normalises():
    """If the whole output of a sub-layer is dropped, LayerNorm(x) remains."""
    residual = randomized(Residual(D, dropout=0.999999, epsilon=0.1))
    output = residual.after(tf.constant(TARGET), tf.ones(TARGET.shape), training=True)
    expected = numpy_normalization(residual.normalization, TARGET.astype(np.float64))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("sublayer", ["self_attention", "cross_attention", "feed_forward"])
def test_dropout_falls_on_the_output_of_each_sublayer_and_nowhere_inside(sublayer):
    """The other sub-layers return zeros.

    x then increases by the sub-layer's output over 1 - rate, or by 0.
    """
    layer = DecoderLayer(D, HEADS, D_FF, dropout=RATE, norm="pre")
    layer.build()
    for name in {"self_attention", "cross_attention", "feed_forward"} - {sublayer}:
        output = (
            layer.feed_forward.outer
            if name == "feed_forward"
            else getattr(layer, name).output_projection
        )
        output.set_weights([0 * weight for weight in output.get_weights()])
    x, memory = tf.constant(TARGET), tf.constant(MEMORY)
    full = np.asarray(layer(x, memory, look_ahead_mask(4), MEMORY_MASK, training=False) - x)
    added = np.asarray(layer(x, memory, look_ahead_mask(4), MEMORY_MASK, training=True) - x)
    dropped = np.abs(added) < 1e-6
    assert 0.1 < dropped.mean() < 0.4
    np.testing.assert_allclose(added[~dropped], full[~dropped] / (1 - RATE), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize(("use_bias", "shape"), [(True, (2, 3, 4, 6)), (False, (4, 6))])
@pytest.mark.parametrize("training", [False, True])
def test_dense_and_its_gradients_equal_keras_own(dtype, use_bias, training, shape, gradients_for):
    arguments = {"activation": "relu", "use_bias": use_bias, "dtype": dtype}
    ours, theirs = Dense(5, **arguments), keras.layers.Dense(5, **arguments)
    x = tf.constant(RNG.normal(size=shape), tf.float32)
    upstream = tf.constant(RNG.normal(size=(*shape[:-1], 5)), tf.float32)
    results = []
    for layer in (ours, theirs):
        layer.build(shape)
    weights = [RNG.normal(size=weight.shape) for weight in theirs.weights]
    for layer in (ours, theirs):
        layer.set_weights(weights)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cast(layer(x, training=training), tf.float32)
            loss = tf.reduce_sum(y * upstream)
        variables = [weight.value for weight in layer.trainable_variables]
        results.append([y, *tape.gradient(loss, [x, *variables])])
    for our_value, their_value in zip(*results, strict=True):
        scale = np.abs(their_value).max()
        np.testing.assert_allclose(our_value, their_value, rtol=0, atol=TOLERANCE[dtype] * scale)
