"""The key/value cache of a decoder, written position by position.

It holds one pair of tensors for each layer.

Shape letters: R rows being decoded, H heads, L the cache's capacity, T new positions, D d_model.
"""

from typing import NamedTuple

import tensorflow as tf

# Marks a function that LiteRT's converter replaces by its own operator.
UPDATE_SLICE = 'name: "dynamic_update_slice" attr { key: "tfl_fusable_op" value { b: true } }'


class KeysValues(NamedTuple):
    """Projected keys and values, each (R, H, L, D // H).

    Attention reads them, and a decoder caches them.

    Attributes:
        keys: Of each position, to be compared with queries.
        values: Of each position, to be averaged by attention.

    Example:
        >>> cache = KeysValues(tf.zeros((1, 1, 3, 2)), tf.zeros((1, 1, 3, 2)))
        >>> new = KeysValues(tf.ones((1, 1, 1, 2)), tf.ones((1, 1, 1, 2)))
        >>> cache.write(new, position=1).keys[0, 0].numpy().tolist()
        [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]]
    """

    keys: tf.Tensor
    values: tf.Tensor

    def write(self, new: "KeysValues", position: tf.Tensor | int) -> "KeysValues":
        """Return this cache with new positions written to it.

        Args:
            new: Keys and values of T positions, each (R, H, T, D // H).
            position: The first of their positions; position + T is at most L.

        Returns:
            Keys and values of L positions.
        """
        begin = tf.stack([0, 0, position, 0])
        # Made anew in each call: a function kept for all would collect a trace for each shape.
        update = tf.function(_update_slice, autograph=False, experimental_implements=UPDATE_SLICE)
        keys = update(self.keys, new.keys, begin)
        values = update(self.values, new.values, begin)
        return KeysValues(keys, values)


Cache = tuple[KeysValues, ...]  # one for each layer


def empty_cache(layers: int, shape: tuple, dtype: str) -> Cache:
    """Return a cache of zeros for each layer.

    All keys and values have one `shape`, (R, H, L, D // H).
    """
    empty = tf.zeros(shape, dtype)
    return tuple(KeysValues(empty, empty) for _ in range(layers))


def with_capacity(cache: Cache, length: tf.Tensor | int) -> Cache:
    """Return a cache with room for `length` positions.

    The capacity is at least doubled if it must grow. A cache of static shape inside a graph cannot
    grow and is returned unchanged.

    Args:
        cache: Keys and values of each layer, each (R, H, L, D // H).
        length: The positions that must fit.

    Returns:
        The cache itself, or a copy with zeros behind its positions.
    """
    if cache[0].keys.shape[2] is not None and not tf.executing_eagerly():
        return cache
    capacity = tf.shape(cache[0].keys)[2]

    def grown() -> Cache:
        more = tf.maximum(capacity, length - capacity)
        padding = ((0, 0), (0, 0), (0, more), (0, 0))
        return tf.nest.map_structure(lambda tensor: tf.pad(tensor, padding), cache)

    return tf.cond(length <= capacity, lambda: cache, grown)


def _update_slice(cache: tf.Tensor, new: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """Return `cache` with `new` written from `begin` (4,) on.

    A function of its own, which LiteRT replaces by its operator (see `UPDATE_SLICE`).
    """
    end = begin + tf.shape(new)
    return tf.raw_ops.TensorStridedSliceUpdate(
        input=cache, begin=begin, end=end, strides=tf.ones_like(begin), value=new
    )
