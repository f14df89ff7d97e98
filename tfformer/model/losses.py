"""Label-smoothed cross-entropy, averaged over the tokens that are not padding.

The sample weights of the data set are 1 for these tokens and 0 for padding.

Shape letters: B batch, T positions, V vocabulary.
"""

import itertools
from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf

from tfformer.argument_checks import require_number
from tfformer.model.base_layer import DType, register

BLOCKS = 8  # blocks of positions; the probabilities of one block at a time are in memory


@register
class SmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy against (1 - e) one_hot(label) + e / V.

    Source: Szegedy et al. 2016, section 7; e = 0.1 in Vaswani et al., section 5.4. The loss takes
    labels (B, T) and logits (B, T, V); its unit is the nat. If the sample weights are 0 on padding,
    the default reduction is the mean over the tokens that are not padding; Keras' own default would
    include padding in the divisor.

    Args:
        label_smoothing: The e of the formula, at least 0 and below 1.
        reduction: How the losses (B, T) are reduced to a scalar, see `keras.losses.Loss`.
        name: The loss's name in Keras' logs.
        ignore_class: A label whose positions are ignored, as in Keras' own loss. With 0, padding is
            ignored even without sample weights.
        dtype: The dtype or dtype policy to which Keras converts labels and logits, and in which it
            reduces the losses.

    Raises:
        ValueError: `label_smoothing` is outside its range, or `dtype` is not precise enough for
            labels.

    Example:
        >>> import numpy, tfformer
        >>> labels, logits = numpy.array([[1, 0]]), numpy.array([[[0.0, 9.0], [5.0, 0.0]]])
        >>> loss = tfformer.SmoothedCrossEntropy(label_smoothing=0.1)
        >>> round(float(loss(labels, logits, sample_weight=numpy.array([[1.0, 0.0]]))), 4)
        0.4501
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str | None = "mean_with_sample_weight",
        name: str = "loss",
        *,
        ignore_class: int | None = None,
        dtype: DType = None,
    ) -> None:
        super().__init__(name=name, reduction=reduction, dtype=dtype)
        if self.dtype in ("bfloat16", "float16"):
            raise ValueError(
                f"dtype={self.dtype!r} would round the labels, which Keras converts to it; use "
                "float32: logits in half precision are accepted"
            )
        self.label_smoothing = require_number("label_smoothing", label_smoothing, below=1)
        self.ignore_class = ignore_class

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Compute the loss (B, T) in nats of logits (B, T, V) and labels (B, T)."""
        labels = tf.cast(y_true, tf.int32)
        if self.ignore_class is None:
            return self.losses(labels, y_pred)
        is_counted = labels != self.ignore_class
        labels = tf.where(is_counted, labels, 0)  # the ignored label may be outside the vocabulary
        losses = self.losses(labels, y_pred)
        losses = tf.where(is_counted, losses, 0.0)
        losses._keras_mask = is_counted  # Keras leaves these positions out of the mean
        return losses

    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Compute the loss (B, T) in nats of logits and labels (B, T) within the vocabulary."""
        return smoothed_cross_entropy(labels, logits, self.label_smoothing)

    def get_config(self) -> dict[str, Any]:
        arguments = {"label_smoothing": self.label_smoothing, "ignore_class": self.ignore_class}
        return super().get_config() | arguments


def smoothed_cross_entropy(labels: tf.Tensor, logits: tf.Tensor, smoothing: float) -> tf.Tensor:
    """Compute logsumexp(z) - t . z in nats (B, T) float32, for the smoothed target t of each label.

    The hand-written gradient, softmax(z) - t, recomputes the softmax, so only the logits `z` (B, T,
    V) are kept for it. Loss and gradient are computed in float32 for one block of positions at a
    time, which needs an eighth of the memory and fits a CPU's cache. `smoothing` is the share of
    the target that is spread over the vocabulary.
    """
    shape = tf.shape(labels)
    vocab_size = tf.shape(logits)[-1]
    off = smoothing / tf.cast(vocab_size, tf.float32)
    labels = tf.reshape(labels, [-1])  # (B * T,)

    @tf.custom_gradient
    def measure(logits: tf.Tensor) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
        def losses(block: slice) -> tf.Tensor:
            z = tf.cast(logits[block], tf.float32)
            # The largest probability is exp(max(z) - logsumexp(z)).
            log_sum_exp = tf.reduce_max(z, -1) - tf.math.log(tf.reduce_max(tf.nn.softmax(z), -1))
            at_label = tf.gather(z, labels[block], batch_dims=1)
            mean = tf.reduce_mean(z, -1)
            return log_sum_exp - (1.0 - smoothing) * at_label - smoothing * mean

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            def gradient_of(block: slice) -> tf.Tensor:
                probabilities = tf.nn.softmax(tf.cast(logits[block], tf.float32))
                targets = tf.one_hot(labels[block], vocab_size, 1.0 - smoothing + off, off)
                scaled = upstream[block][:, tf.newaxis] * (probabilities - targets)
                return tf.cast(scaled, logits.dtype)

            return blockwise(gradient_of, tf.size(labels))

        return blockwise(losses, tf.size(labels)), gradient

    return tf.reshape(measure(tf.reshape(logits, [-1, vocab_size])), shape)


def blockwise(function: Callable[[slice], Any], size: tf.Tensor) -> Any:
    """Call a function for `BLOCKS` slices of `size` rows, and concatenate its results."""
    starts = [size * number // BLOCKS for number in range(BLOCKS + 1)]
    results = [function(slice(*bounds)) for bounds in itertools.pairwise(starts)]
    return tf.nest.map_structure(lambda *parts: tf.concat(parts, axis=0), *results)
