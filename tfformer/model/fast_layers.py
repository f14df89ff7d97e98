"""Dense, layer normalisation, dropout and look-up, faster on a CPU than Keras' versions.

The computations are the same as in Keras, and the LiteRT converter supports them.
"""

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfformer.model.base_layer import register
from tfformer.runtime.tracing import is_for_xla


@register
class Dense(keras.layers.Dense):
    """Keras' layer, computed as one product of two matrices: (..., I) -> (..., units).

    For tensors with more axes Keras uses `tensordot`, which computes shapes with a dozen operations
    in every step.
    """

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        check_not_quantized(self)
        super().build(input_shape)

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Project vectors (..., I) to (..., units)."""
        flat = tf.reshape(x, (-1, x.shape[-1]))
        if training and self.use_bias:
            flat = _add_bias(tf.matmul(flat, self.kernel), tf.convert_to_tensor(self.bias))
            flat = self.activation(flat)
        else:
            flat = super().call(flat)
        return tf.reshape(flat, with_axes(x, -1, self.units))

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        raise quantization_error(self, mode)


@tf.custom_gradient
def _add_bias(
    x: tf.Tensor, bias: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
    """Add a bias (I,) to vectors (N, I)."""
    return tf.nn.bias_add(x, bias), lambda upstream: (upstream, _sum_of_vectors(upstream))


def _sum_of_vectors(x: tf.Tensor) -> tf.Tensor:
    """Sum vectors (..., I) to a vector (I,).

    A product with ones is 2 to 4 times as fast as TensorFlow's sums on a CPU, and more on a GPU;
    but XLA can fuse only a sum with the operations around it.
    """
    flat = tf.reshape(x, (-1, x.shape[-1]))
    if is_for_xla():
        return tf.reduce_sum(flat, axis=0)
    ones = tf.ones((1, tf.shape(flat)[0]), flat.dtype)
    return tf.matmul(ones, flat)[0]


def check_not_quantized(layer: keras.layers.Layer) -> None:
    """Raise NotImplementedError if the layer's dtype policy requests 8-bit weights."""
    if layer.dtype_policy.quantization_mode is not None:
        raise quantization_error(layer, layer.dtype_policy.quantization_mode)


def quantization_error(layer: keras.layers.Layer, mode: str | None) -> NotImplementedError:
    """Return an error about quantisation, which `Model.quantize` turns into a warning."""
    return NotImplementedError(
        f"quantize({mode!r}) leaves the {type(layer).__name__} {layer.name!r} of tfformer in "
        "floating point; for 8-bit weights export the run: tfformer export RUN --format litert "
        "--quantize int8"
    )


def with_axes(x: tf.Tensor, kept: int, *sizes: int) -> tf.Tensor | list[int]:
    """Return `shape[:kept]` of `x`, followed by `sizes`.

    It is a constant if at most one axis is unknown, so a decoding step does not have to compute it.
    """
    axes = list(x.shape[:kept])
    if axes.count(None) > 1:
        return tf.concat([tf.shape(x)[:kept], sizes], axis=0)
    return [-1 if axis is None else axis for axis in axes] + [*sizes]


@register
class LayerNormalization(keras.layers.LayerNormalization):
    """Keras' layer normalisation over the last axis (Ba et al. 2016).

    It computes in float32, in training with a hand-written gradient.
    """

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Normalise vectors (..., D) to mean beta and standard deviation gamma."""
        x = tf.cast(x, tf.float32)  # its squares are summed
        gamma = tf.cast(self.gamma, tf.float32)
        beta = tf.cast(self.beta, tf.float32)
        if training:
            y = _layer_norm_with_gradient(x, gamma, beta, self.epsilon)
        else:
            normal, _ = _normalize(x, self.epsilon)
            y = normal * gamma + beta
        return tf.cast(y, self.compute_dtype)


def _normalize(x: tf.Tensor, epsilon: float) -> tuple[tf.Tensor, tf.Tensor]:
    """Return vectors (..., D) of mean 0 and variance 1, and their scale (..., 1).

    See Ba et al. 2016, eq. 3.
    """
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + epsilon)
    return centred * scale, scale


def _layer_norm_with_gradient(
    x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor, epsilon: float
) -> tf.Tensor:
    """Return gamma n + beta for the vectors n of `_normalize`, with gradients in closed form.

    For the gradient u of the result and g = gamma u: dx = scale * (g - mean(g) - n * mean(g * n)).
    """

    @tf.custom_gradient
    def layer_norm(
        x: tf.Tensor, gamma: tf.Tensor, beta: tf.Tensor
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, tf.Tensor]]]:
        normal, scale = _normalize(x, epsilon)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
            g = upstream * gamma
            mean = tf.reduce_mean(g, -1, keepdims=True)
            along = normal * tf.reduce_mean(g * normal, -1, keepdims=True)
            d_gamma = _sum_of_vectors(upstream * normal)
            return scale * (g - mean - along), d_gamma, _sum_of_vectors(upstream)

        return normal * gamma + beta, gradient

    return layer_norm(x, gamma, beta)


@register
class Dropout(keras.layers.Dropout):
    """Keras' dropout with half the random bits: 16 per input.

    The rate is therefore rounded to a multiple of 2^-16, and the kept inputs are scaled by that
    rate.
    """

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """In training, set a fraction `rate` of the inputs to 0 and scale the rest.

        The factor 1 / (1 - rate) keeps their mean.
        """
        if not (training and self.rate):
            return x
        size = tf.size(x)
        dropped = min(round(self.rate * 2**16), 2**16 - 1)  # of 2^16 16-bit values
        seed = self.seed_generator.next()
        words = tf.random.stateless_uniform(
            [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.uint32
        )
        draws = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
        kept = tf.reshape(draws >= dropped, tf.shape(x))
        return tf.where(kept, x / (1 - dropped / 2**16), tf.zeros((), x.dtype))


def gather(table: tf.Tensor, ids: tf.Tensor, dense_gradient: bool | None = False) -> tf.Tensor:
    """Look up rows: ids (...) in a table (V, D) give (..., D).

    The ids are flattened because LiteRT can quantise the table only then. With `dense_gradient` the
    gradients of a repeated id are summed; otherwise Keras' Adam would square each of them
    separately.
    """
    flat = tf.reshape(ids, (-1,))
    rows = _gather_with_dense_gradient(table, flat) if dense_gradient else tf.gather(table, flat)
    return tf.reshape(rows, tf.concat([tf.shape(ids), [table.shape[1]]], axis=0))


@tf.custom_gradient
def _gather_with_dense_gradient(
    table: tf.Tensor, ids: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, None]]]:
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, None]:
        return tf.math.unsorted_segment_sum(upstream, ids, tf.shape(table)[0]), None

    return tf.gather(table, ids), gradient
