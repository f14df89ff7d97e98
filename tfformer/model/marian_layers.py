"""How Marian differs from the paper: a zero start vector, and keys that are not normalised.

Only imported models use this. Shape letters: B batch, R rows being decoded, T positions, D d_model,
H heads, L cache capacity, V vocabulary.
"""

import numpy as np
import tensorflow as tf

from tfformer.model.base_layer import register
from tfformer.model.cache import KeysValues
from tfformer.model.embedding import TokenEmbedding
from tfformer.model.layers import DecoderLayer
from tfformer.special_ids import START_ID


@register
class ZeroStartEmbedding(TokenEmbedding):
    """A `TokenEmbedding` whose vector for the start token is zero and not trained."""

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Look up token ids (B, T) as vectors (B, T, D)."""
        vectors = super().call(ids, training)
        is_other = tf.cast(ids != START_ID, vectors.dtype)  # (B, T)
        return vectors * tf.expand_dims(is_other, -1)

    def table(self) -> np.ndarray:
        """Return the vectors (V, D) of all ids, before they are scaled."""
        table = super().table()
        table[START_ID] = 0
        return table


@register
class MarianDecoderLayer(DecoderLayer):
    """Pre-norm as marian-decoder computes it, which differs from Marian's training.

    The queries of self-attention are normalised, but its keys and values are not, except where the
    first token attends to itself. (Since 1.10.28, LayerAttention of models/transformer.h normalises
    keys and values if they are the same tensor as the queries, as in training; marian-decoder
    passes the past too.)
    """

    def attend_to_sequence(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: KeysValues | None = None,
        position: tf.Tensor | int = 0,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, KeysValues]:
        """Attend from normalised to earlier, unnormalised positions; see `DecoderLayer`."""
        attention = self.self_attention
        h = self.self_attention_residual.before(x)  # (R, T, D)
        new = attention.project(x)  # keys and values, each (R, H, T, D // H)
        cache = new if cache is None else cache.write(new, position)  # each (R, H, L, D // H)
        attended, weights = attention.attend(h, cache, mask)
        _, values = tf.split(attention.key_value(h), 2, axis=-1)
        to_itself = attention.output_projection(values)  # (R, T, D), with attention weight 1
        visible = tf.ones((1, 1, 1, tf.shape(cache.keys)[2]), tf.bool)
        if mask is not None:
            visible = tf.logical_and(visible, mask)  # (R or 1, 1, T or 1, L), equal in all heads
        counts = tf.reduce_sum(tf.cast(visible, tf.int32), axis=-1)
        sees_one_key = counts[:, 0, :, tf.newaxis] == 1
        attended = tf.where(sees_one_key, to_itself, attended)
        return self.self_attention_residual.after(x, attended, training), weights, cache
