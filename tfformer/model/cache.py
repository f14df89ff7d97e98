"""The key/value cache of a decoder, written position by position.

It contains one pair of tensors per layer.

Shape letters: B sentences, N beams, R rows being decoded (B, or B * N), H heads, L the cache's
capacity, T new positions, D d_model.
"""

from typing import Any, NamedTuple, TypeVar

import tensorflow as tf

from tfformer.runtime.tracing import traced

# Marks a function that LiteRT's converter replaces with its own operator.
UPDATE_SLICE = 'name: "dynamic_update_slice" attr { key: "tfl_fusable_op" value { b: true } }'


class KeysValues(NamedTuple):
    """Projected keys and values, each (R, H, L, D // H).

    Attention reads them, and a decoder caches them.
    """

    keys: tf.Tensor  # of each position, to be compared with queries
    values: tf.Tensor  # of each position, to be averaged by attention

    def write(self, new: "KeysValues", position: tf.Tensor | int) -> "KeysValues":
        """Return this cache with T new positions written from `position` on.

        The cache must have capacity for them: position + T must be at most L.
        """
        begin = tf.stack([0, 0, position, 0])
        # Created in each call: a shared function would accumulate a trace per shape.
        update = traced(_update_slice, experimental_implements=UPDATE_SLICE)
        keys = update(self.keys, new.keys, begin)
        values = update(self.values, new.values, begin)
        return KeysValues(keys, values)


Cache = tuple[KeysValues, ...]  # one for each layer
AnyCache = TypeVar("AnyCache")  # a nest of tensors


def empty_cache(layers: int, shape: tuple[tf.Tensor | int, ...], dtype: str) -> Cache:
    """Return zeros as the keys and values of each layer, each of `shape` (R, H, L, D // H)."""
    empty = tf.zeros(shape, dtype)
    return tuple(KeysValues(empty, empty) for _ in range(layers))


def with_capacity(cache: AnyCache, length: tf.Tensor | int) -> AnyCache:
    """Return a cache with capacity for `length` positions.

    A cache is a nest of tensors (..., ..., L, ...) with four axes. If it must grow, its capacity is
    at least doubled, and the new positions are zeros. A cache of static shape inside a graph cannot
    grow and is returned unchanged.
    """
    if tf.nest.flatten(cache)[0].shape[2] is not None and not tf.executing_eagerly():
        return cache
    capacity = capacity_of(cache)

    def grown() -> AnyCache:
        more = tf.maximum(capacity, length - capacity)
        padding = ((0, 0), (0, 0), (0, more), (0, 0))
        return tf.nest.map_structure(lambda tensor: tf.pad(tensor, padding), cache)

    return tf.cond(length <= capacity, lambda: cache, grown)


def grown_eagerly(cache: AnyCache, length: tf.Tensor | int) -> AnyCache:
    """In eager mode, return a cache with capacity for `length` positions.

    Inside a graph, the cache is returned unchanged: a search enlarges it between two rounds,
    because a branch in every step would be slow.
    """
    return with_capacity(cache, length) if tf.executing_eagerly() else cache


def enlarged(cache: AnyCache, times: tf.Tensor | int) -> AnyCache:
    """Return a copy of a cache with `times` its capacity; the new positions are zeros."""
    if isinstance(cache, RecurrentStates):
        return cache

    def longer(x: tf.Tensor) -> tf.Tensor:
        rows, heads, length, size = tf.unstack(tf.shape(x))
        empty = tf.zeros([rows, heads, length * (times - 1), size], x.dtype)
        return tf.concat([x, empty], axis=2)

    return tf.nest.map_structure(longer, cache)


def capacity_of(cache: Any) -> tf.Tensor:
    """Return L, the number of positions or slots in a cache: () int32."""
    if isinstance(cache, RecurrentStates):
        return tf.constant(tf.int32.max)
    return tf.shape(tf.nest.flatten(cache)[0])[2]


class BeamCache(NamedTuple):
    """The cache of a beam search, whose tensors need not be reordered with the beams.

    At each position, every beam of a sentence writes to its own slot. A beam sees only the slots of
    its past: when it continues another beam, it inherits that beam's visible slots.

    Example:
        >>> slots = empty_cache(1, (1, 1, 4, 2), "float32")
        >>> cache = BeamCache(slots, tf.zeros((2, 1, 4, 1), tf.bool)).opened(position=0, beams=2)
        >>> cache = cache.reordered(tf.constant([1, 1])).opened(position=1, beams=2)
        >>> cache.visible[:, 0, :, 0].numpy().astype(int).tolist()
        [[0, 1, 1, 0], [0, 1, 0, 1]]
    """

    # Keys and values of each layer, (B, H, L, D // H). At position p, beam n writes to slot
    # p * N + n.
    keys_values: Cache
    visible: tf.Tensor  # (B * N, 1, L, 1) bool, the slots that each beam may attend to

    def opened(self, position: tf.Tensor | int, beams: int) -> "BeamCache":
        """Return this cache with a new slot per beam at `position`, visible only to that beam."""
        keys_values, visible = grown_eagerly(self, (position + 1) * beams)
        rows, _, slots, _ = tf.unstack(tf.shape(visible))
        slot = position * beams + tf.range(rows) % beams  # (B * N,)
        is_new = tf.range(slots)[:, tf.newaxis] == slot[:, tf.newaxis, tf.newaxis, tf.newaxis]
        return BeamCache(keys_values, visible | is_new)

    def reordered(self, rows: tf.Tensor) -> "BeamCache":
        """Return the cache of the beams that continue the beams `rows` (B * N,)."""
        return self._replace(visible=tf.gather(self.visible, rows))

    def kept(self, sentences: tf.Tensor) -> "BeamCache":
        """Return the cache of the sentences with these indices."""
        batch = tf.maximum(tf.shape(self.keys_values[0].keys)[0], 1)  # B, or 1 for an empty batch
        beams = tf.shape(self.visible)[0] // batch  # N
        rows = sentences[:, tf.newaxis] * beams + tf.range(beams)  # (B, N)
        keys_values = tf.nest.map_structure(lambda x: tf.gather(x, sentences), self.keys_values)
        return BeamCache(keys_values, tf.gather(self.visible, tf.reshape(rows, [-1])))


class RecurrentStates(NamedTuple):
    """The states of recurrent layers, whose size does not depend on the number of positions."""

    states: tuple[tf.Tensor, ...]  # for each layer (B, N, D) float32, of N beams of B sentences

    def reordered(self, rows: tf.Tensor) -> "RecurrentStates":
        """Return the states of the beams that continue the beams `rows` (B * N,)."""

        def gathered(state: tf.Tensor) -> tf.Tensor:
            _, beams, d_model = state.shape
            flat = tf.reshape(state, (-1, d_model))  # (B * N, D)
            return tf.reshape(tf.gather(flat, rows), (-1, beams, d_model))

        return RecurrentStates(tuple(map(gathered, self.states)))


def _update_slice(cache: tf.Tensor, new: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """Return `cache` with `new` written from `begin` (4,) on.

    This is a separate function because LiteRT replaces it with its operator (see `UPDATE_SLICE`).
    """
    # As matrices: the operation computes each element's index, twice as fast for two axes.
    shape, size = tf.shape(cache), cache.shape[3]
    matrix = tf.reshape(cache, [-1, shape[2] * size])
    width = (new.shape[2] or tf.shape(new)[2]) * size
    rows = -1 if new.shape[2] else tf.shape(matrix)[0]  # -1 fails without new positions
    first = begin[2] * size
    updated = tf.raw_ops.TensorStridedSliceUpdate(
        input=matrix,
        begin=[0, first],
        end=[0, first + width],
        strides=[1, 1],
        value=tf.reshape(new, [rows, width]),
        end_mask=1,  # of all rows
    )
    return tf.reshape(updated, shape)
