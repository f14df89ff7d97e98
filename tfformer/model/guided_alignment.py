"""Guided alignment: the loss that trains an attention head to align words (Garg et al. 2019)."""

import tensorflow as tf

TINY = 1e-6  # added to the weights, which may be 0


def alignment_loss(weights: tf.Tensor, links: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Return -log of the attention to the linked source token, as a mean over the target tokens.

    Args:
        weights: The attention (B, T, S) of a head.
        links: The position (B, T), counted from 1, of the source token to which each target token
            is linked; 0 for a token without a link, which adds no loss.
        target: Target ids (B, T), 0 = padding.

    Returns:
        Nats () float32.

    Example:
        >>> weights = tf.constant([[[0.5, 0.5], [0.25, 0.75], [1.0, 0.0]]])
        >>> links, target = tf.constant([[1, 2, 0]]), tf.constant([[2, 5, 6]])
        >>> round(float(3 * alignment_loss(weights, links, target)), 3)  # -log(0.5 * 0.75)
        0.981
    """
    to_link = tf.gather(weights, tf.maximum(links - 1, 0), axis=2, batch_dims=2)  # (B, T)
    nats = tf.where(links > 0, -tf.math.log(tf.cast(to_link, tf.float32) + TINY), 0.0)
    tokens = tf.math.count_nonzero(target, dtype=tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(nats), tokens)
