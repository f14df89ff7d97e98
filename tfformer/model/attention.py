"""Multi-head attention (Vaswani et al. 2017, section 3.2).

Shape letters: B batch, T query positions, S key positions, D d_model, H heads.
"""

from typing import Any, Unpack

import keras
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.model.base_layer import LayerOptions, SequenceLayer, Shape, arguments_of, register
from tfformer.model.cache import KeysValues
from tfformer.model.fast_layers import Dense, with_axes
from tfformer.model.masks import carried_mask, join_masks


@register
class MultiHeadAttention(SequenceLayer):
    """softmax(Q K^T / sqrt(d_k)) V in several heads (section 3.2, eq. 1).

    Each head has d_k = d_model / num_heads dimensions. A call attends from a sequence to a memory.
    A decoder with a cache calls the two steps separately: `project` once for the memory, then
    `attend` at each step. As in the paper, no dropout is applied to the attention weights;
    Tensor2Tensor applies it.

    Args:
        d_model: Width of the model, the size of each vector.
        num_heads: Number of attention heads; must divide `d_model`.
        use_bias: Add a bias to each of the four projections.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, or one of them is below 1.

    Example:
        >>> import numpy, tfformer
        >>> attention = tfformer.MultiHeadAttention(d_model=8, num_heads=2)
        >>> query, memory = numpy.ones((1, 3, 8)), numpy.ones((1, 5, 8))
        >>> output, weights = attention(query, memory, return_weights=True)
        >>> output.shape, weights.shape
        (TensorShape([1, 3, 8]), TensorShape([1, 2, 3, 5]))
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        use_bias: bool = True,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.d_model = require_size("d_model", d_model)
        self.num_heads = require_size("num_heads", num_heads)
        if self.d_model % self.num_heads:
            raise ValueError(
                f"d_model={d_model} cannot be split into num_heads={num_heads} equal heads; choose "
                "a divisor"
            )
        self.d_k = self.d_model // self.num_heads  # dimensions of a head
        self.use_bias = use_bias
        dense = {"use_bias": use_bias, "dtype": self.dtype_policy}
        self.query = Dense(self.d_model, name="query", **dense)
        self.key_value = Dense(2 * self.d_model, name="key_value", **dense)
        self.output_projection = Dense(self.d_model, name="output", **dense)

    def build(self, query_shape: Shape | None = None, memory_shape: Shape | None = None) -> None:
        for dense in (self.query, self.key_value, self.output_projection):
            dense.build((None, None, self.d_model))

    def call(
        self,
        query: tf.Tensor,
        memory: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        return_weights: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Attend from a query to a memory.

        Args:
            query: Vectors (B, T, D).
            memory: Vectors (B, S, D). A Keras mask attached to them is applied too.
            attention_mask: Boolean (B, S), (B, T, S) or broadcastable to (B, H, T, S), True = may
                be attended to. Rank 2 is (B, S); for a mask (T, S) pass `mask[None]`.
            return_weights: Whether to return the attention weights too.

        Returns:
            Vectors (B, T, D), and with `return_weights` the weights (B, H, T, S), see `attend`.
        """
        allowed = join_masks(attention_mask, carried_mask(memory))
        output, weights = self.attend(query, self.project(memory), allowed)
        return (output, weights) if return_weights else output

    def project(self, memory: tf.Tensor) -> KeysValues:
        """Project a memory (B, S, D) to keys and values in heads, each (B, H, S, D // H)."""
        keys, values = tf.split(self.key_value(memory), 2, axis=-1)  # each (B, S, D)
        return KeysValues(self._split_heads(keys), self._split_heads(values))

    def attend(
        self, query: tf.Tensor, keys_values: KeysValues, mask: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Attend from a query to projected keys and values.

        Args:
            query: Vectors (B, T, D).
            keys_values: Keys and values, each (B, H, S, D // H).
            mask: Boolean, broadcastable to (B, H, T, S), True = may be attended to.

        Returns:
            Vectors (B, T, D) and weights (B, H, T, S). The weight of a masked key is 0. If all keys
            of a query are masked, its weights are uniform (in float16, only if its scores are
            between -8 and 8).
        """
        # Scaling the queries, T * d_k numbers, is cheaper than scaling the T * S scores.
        queries = self._split_heads(self.query(query)) * self.d_k**-0.5  # (B, H, T, D // H)
        scores = tf.matmul(queries, keys_values.keys, transpose_b=True)  # (B, H, T, S)
        if mask is not None:
            # Half the largest float, so that the difference cannot overflow to -inf: the softmax of
            # a row of -inf would be NaN. A sum would be fused into a product that takes 18 times as
            # long on a CPU if the mask is the same for all rows (TensorFlow 2.21).
            masked = scores.dtype.max / 2
            scores -= tf.where(mask, tf.zeros((), scores.dtype), masked)
        weights = tf.nn.softmax(scores)  # (B, H, T, S)
        heads = tf.matmul(weights, keys_values.values)  # (B, H, T, D // H)
        return self.output_projection(self._merge_heads(heads)), weights

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, T, D) -> (B, H, T, D // H)."""
        if x.shape[1] == 1:  # no axis to transpose
            return tf.reshape(x, (-1, self.num_heads, 1, self.d_k))
        heads = tf.reshape(x, with_axes(x, 2, self.num_heads, self.d_k))  # (B, T, H, D // H)
        return tf.transpose(heads, (0, 2, 1, 3))

    def _merge_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, H, T, D // H) -> (B, T, D)."""
        if x.shape[2] == 1:
            return tf.reshape(x, (-1, 1, self.d_model))
        heads = tf.transpose(x, (0, 2, 1, 3))  # (B, T, H, D // H)
        return tf.reshape(heads, with_axes(heads, 2, self.d_model))

    def compute_output_spec(
        self,
        query: keras.KerasTensor,
        memory: keras.KerasTensor,
        attention_mask: keras.KerasTensor | None = None,
        return_weights: bool = False,
    ) -> keras.KerasTensor | tuple[keras.KerasTensor, keras.KerasTensor]:
        output = keras.KerasTensor(query.shape, self.compute_dtype)
        if not return_weights:
            return output
        batch, queries, _ = query.shape
        shape = (batch, self.num_heads, queries, memory.shape[1])
        return output, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | arguments_of(self, ("d_model", "num_heads", "use_bias"))
