"""Attention masks: which query may attend to which key.

A mask is boolean, True = may be attended to, and broadcasts over attention scores of shape
(B, H, T, S). Shape letters: B batch, H heads, T query positions, S key positions.
"""

import functools

import keras
import tensorflow as tf
from numpy.typing import ArrayLike

from tfformer.special_ids import PAD_ID


def padding_mask(ids: tf.Tensor | keras.KerasTensor | ArrayLike) -> tf.Tensor:
    """Allow every query to attend to every position that is not padding.

    Args:
        ids: Token ids (B, S), integers, 0 = padding; also a symbolic tensor such as `keras.Input`.

    Returns:
        A boolean mask (B, 1, 1, S).

    Example:
        >>> import tfformer
        >>> tfformer.padding_mask([[7, 5, 0]]).numpy().tolist()
        [[[[True, True, False]]]]
    """
    if not hasattr(ids, "shape"):
        ids = tf.convert_to_tensor(ids)
    is_token = keras.ops.not_equal(ids, PAD_ID)  # (B, S)
    return over_keys(is_token)


def look_ahead_mask(
    queries: tf.Tensor | keras.KerasTensor | ArrayLike,
    keys: tf.Tensor | int | None = None,
    position: tf.Tensor | int = 0,
) -> tf.Tensor:
    """Allow position t to attend to positions 0 to t, but not to later positions.

    Section 3.2.3 of the paper.

    Args:
        queries: The number T of query positions, or their token ids (B, T); also a symbolic tensor
            such as `keras.Input`.
        keys: The number S of key positions; by default T.
        position: The position of the first query. A decoder that continues from a cache has T = 1,
            S = the cache's capacity and position = the step.

    Returns:
        A boolean mask (1, 1, T, S), or (B, 1, T, T) for token ids.

    Raises:
        ValueError: `queries` is None, as the length of a symbolic tensor can be; or `keys` or
            `position` is passed with token ids.

    Example:
        >>> import tfformer
        >>> tfformer.look_ahead_mask(3)[0, 0].numpy().astype(int)
        array([[1, 0, 0],
               [1, 1, 0],
               [1, 1, 1]])
    """
    if queries is None:
        raise ValueError("queries=None is not a length; pass the token ids (B, T) instead")
    if isinstance(queries, (list, tuple)):
        queries = tf.convert_to_tensor(queries)
    if len(getattr(queries, "shape", ())) == 2:
        if keys is not None or not (isinstance(position, int) and position == 0):
            raise ValueError(
                "keys and position cannot be combined with token ids, whose mask is (B, 1, T, T); "
                "pass the number of queries"
            )
        # Count the positions from the ids, because the length of a `keras.Input` is unknown.
        counted = keras.ops.cumsum(keras.ops.ones_like(queries, dtype="int32"), axis=1)  # (B, T)
        allowed = keras.ops.expand_dims(counted, 1) <= keras.ops.expand_dims(counted, 2)
        return over_keys(allowed)
    keys = queries if keys is None else keys
    allowed = tf.range(keys) <= position + tf.range(queries)[:, tf.newaxis]  # (T, S)
    return allowed[tf.newaxis, tf.newaxis]


def segment_mask(queries: tf.Tensor, keys: tf.Tensor) -> tf.Tensor:
    """Allow each token to attend to the tokens of its segment.

    A segment is a sentence of a packed row, see `tfformer.data.packing`.

    Args:
        queries: The segments (B, T) of the queries, integers.
        keys: The segments (B, S) of the keys.

    Returns:
        A boolean mask (B, 1, T, S).

    Example:
        >>> segment_mask(tf.constant([[1, 2]]), tf.constant([[1, 1, 2]]))[0, 0].numpy().astype(int)
        array([[1, 1, 0],
               [0, 0, 1]])
    """
    return queries[:, tf.newaxis, :, tf.newaxis] == keys[:, tf.newaxis, tf.newaxis]


def positions_in_segments(segments: tf.Tensor) -> tf.Tensor:
    """Return the position of each token in its segment, (B, T) int32, counted from 0.

    Example:
        >>> positions_in_segments(tf.constant([[1, 1, 1, 2, 2, 0]])).numpy().tolist()
        [[0, 1, 2, 0, 1, 0]]
    """
    earlier = segment_mask(segments, segments) & look_ahead_mask(tf.shape(segments)[1])
    return tf.reduce_sum(tf.cast(earlier[:, 0], tf.int32), axis=-1) - 1


def over_keys(mask: tf.Tensor) -> tf.Tensor:
    """Add axes to a mask so that it broadcasts over attention scores.

    (B, S) becomes (B, 1, 1, S), and (B, T, S) becomes (B, 1, T, S). A mask with four axes is
    returned unchanged.
    """
    rank = len(mask.shape)
    if rank == 2:  # not [:, None, None]: LiteRT cannot add two axes at once
        mask = keras.ops.expand_dims(mask, 1)
    if rank in (2, 3):
        mask = keras.ops.expand_dims(mask, 1)
    return mask


def carried_mask(x: tf.Tensor) -> tf.Tensor | None:
    """Return the mask (B, S) that Keras has attached to `x`.

    A layer such as `Embedding(mask_zero=True)` sets it.
    """
    return getattr(x, "_keras_mask", None)


def join_masks(*masks: tf.Tensor | None) -> tf.Tensor | None:
    """Allow a query to attend to a key if every given mask does; return None if no mask is given.

    Masks are boolean, over keys (B, S), queries and keys (B, T, S), or scores (B, H, T, S). The
    result broadcasts to scores.
    """
    # Keras also passes the mask attached to `x` as `mask`, so the same tensor occurs twice.
    distinct = {id(mask): mask for mask in masks if mask is not None}
    if not distinct:
        return None
    over_scores = [over_keys(tf.cast(mask, tf.bool)) for mask in distinct.values()]
    return functools.reduce(tf.logical_and, over_scores)
