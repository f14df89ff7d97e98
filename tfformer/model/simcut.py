"""SimCut: predictions must be the same when some tokens are cut (Gao et al. 2022).

Shape letters: B batch, T positions, V vocabulary.
"""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tfformer.argument_checks import require_number
from tfformer.model.base_layer import register
from tfformer.model.losses import SmoothedCrossEntropy, blockwise


@register
class SimCutCrossEntropy(SmoothedCrossEntropy):
    """Cross-entropy plus alpha KL(p || q), where q is predicted from a sentence with tokens cut.

    Source: SimCut, Gao et al. 2022, with alpha = 3. The logits (2, B, T, V) are predicted from the
    sentences, then from the same sentences with some embeddings set to 0, see `Transformer.hidden`.
    As in the paper, the gradient flows through p and q: with a constant p, as in virtual
    adversarial training, the authors measured a lower BLEU. For logits (B, T, V), as in validation,
    the loss is the cross-entropy alone.

    Args:
        alpha: The weight of the divergence.
        label_smoothing: As in `SmoothedCrossEntropy`; the divergence is not smoothed.
        **options: Other arguments of `SmoothedCrossEntropy`.

    Raises:
        ValueError: `alpha` is negative or not finite.
    """

    def __init__(self, alpha: float, label_smoothing: float = 0.0, **options: Any) -> None:
        super().__init__(label_smoothing, **options)
        self.alpha = require_number("alpha", alpha)

    def losses(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        if logits.shape.rank == 3:
            return super().losses(labels, logits)
        original, cut = tf.unstack(logits, num=2)
        return super().losses(labels, original) + self.alpha * divergence(original, cut)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"alpha": self.alpha}


def divergence(logits: tf.Tensor, other_logits: tf.Tensor) -> tf.Tensor:
    """Compute KL(p || q) in nats (B, T) float32 for p = softmax(logits), q of `other_logits`.

    With gap = log p - log q, the gradient is p (gap - KL) for `logits` and q - p for
    `other_logits`, both (B, T, V). Like `smoothed_cross_entropy`, it computes in float32 for one
    block of positions at a time.
    """
    shape = tf.shape(logits)
    size = shape[0] * shape[1]

    @tf.custom_gradient
    def measure(
        *flat: tf.Tensor,  # both logits, (B * T, V)
    ) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor]]]:
        def log_probabilities(block: slice) -> list[tf.Tensor]:
            return [tf.nn.log_softmax(tf.cast(z[block], tf.float32)) for z in flat]

        def losses(block: slice) -> tf.Tensor:
            log_p, log_q = log_probabilities(block)
            return tf.reduce_sum(tf.exp(log_p) * (log_p - log_q), -1)

        def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            def gradients_of(block: slice) -> tuple[tf.Tensor, tf.Tensor]:
                log_p, log_q = log_probabilities(block)
                p, gap = tf.exp(log_p), log_p - log_q
                mean = tf.reduce_sum(p * gap, -1, keepdims=True)
                scale = upstream[block][:, tf.newaxis]
                for_p, for_q = scale * p * (gap - mean), scale * (tf.exp(log_q) - p)
                return tf.cast(for_p, logits.dtype), tf.cast(for_q, logits.dtype)

            return blockwise(gradients_of, size)

        return blockwise(losses, size), gradient

    flat = [tf.reshape(z, [-1, shape[-1]]) for z in (logits, other_logits)]
    return tf.reshape(measure(*flat), shape[:-1])
