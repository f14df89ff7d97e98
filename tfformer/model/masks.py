"""Attention masks, built here and nowhere else. Knows no layer.

A mask is boolean, True = may be attended to, and broadcasts over attention scores of shape (B, H, T, S).
It is passed explicitly from call to call: Keras' implicit masks can be lost inside `tf.function`.
"""

import tensorflow as tf

from tfformer.special_ids import PAD_ID


def padding_mask(ids: tf.Tensor) -> tf.Tensor:
    """Token ids (B, S) -> (B, 1, 1, S): every query may attend to every position that is not padding."""
    is_token = tf.not_equal(ids, PAD_ID)
    return tf.expand_dims(
        tf.expand_dims(is_token, 1), 1
    )  # not [:, None, None]: LiteRT has no two new axes at once


def look_ahead_mask(
    queries: tf.Tensor | int, keys: tf.Tensor | int | None = None, first: tf.Tensor | int = 0
) -> tf.Tensor:
    """(1, 1, T, S): position `first + t` may attend to positions 0 .. first + t, never to a later one.

    `queries` is T, `keys` is S (by default T). `first` is the position of the first query: a decoder that continues
    from a cache has T = 1, S = cache length and first = the step.
    """
    keys = queries if keys is None else keys
    return (tf.range(keys) <= first + tf.range(queries)[:, tf.newaxis])[tf.newaxis, tf.newaxis]
