"""The gradients of biases and normalisations, which are products with ones, beside Keras' own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfformer.model.fast_layers import Dense

RNG = np.random.default_rng(0)
TOLERANCE = {"float32": 1e-5, "mixed_bfloat16": 0.02}


@pytest.mark.parametrize("dtype", list(TOLERANCE))
@pytest.mark.parametrize("use_bias", [False, True])
@pytest.mark.parametrize("shape", [(4, 6), (2, 3, 4, 6)])
def test_the_gradients_of_dense_equal_keras_own(dtype, use_bias, shape):
    arguments = {"activation": "relu", "use_bias": use_bias, "dtype": dtype}
    ours, theirs = Dense(5, **arguments), keras.layers.Dense(5, **arguments)
    x = tf.constant(RNG.normal(size=shape), tf.float32)
    upstream = tf.constant(RNG.normal(size=(*shape[:-1], 5)), tf.float32)
    found = []
    for layer in (ours, theirs):
        layer.build(shape)
    weights = [RNG.normal(size=weight.shape) for weight in theirs.weights]
    for layer in (ours, theirs):
        layer.set_weights(weights)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.cast(layer(x, training=True), tf.float32)
            loss = tf.reduce_sum(y * upstream)
        variables = [weight.value for weight in layer.trainable_variables]
        found.append([y, *tape.gradient(loss, [x, *variables])])
    for one, other in zip(*found, strict=True):
        scale = np.abs(other).max()
        np.testing.assert_allclose(one, other, rtol=0, atol=TOLERANCE[dtype] * scale)
