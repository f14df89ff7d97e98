"""The Transformer's layers (Vaswani et al. 2017, section 3).

Shape letters: B batch, R rows being decoded (B, or B times the beam size), T query positions, S key
positions, D d_model, H heads, L cache capacity, V vocabulary.
"""

from typing import Any, Self, get_args

import keras
import numpy as np
import tensorflow as tf

from tfformer import config
from tfformer.argument_checks import require, require_fraction, require_number, require_size
from tfformer.model.cache import KeysValues
from tfformer.model.fast_layers import (
    Dense,
    Dropout,
    LayerNormalization,
    check_not_quantized,
    gather,
    quantization_error,
    with_last_axis,
)
from tfformer.model.masks import carried_mask, join_masks
from tfformer.model.registry import DType, Regularizer, Shape, arguments_of, register

ACTIVATIONS = get_args(config.Activation)
NORMS = get_args(config.Norm)
POSITION_LAYOUTS = get_args(config.PositionLayout)
POSITION_TIMESCALES = get_args(config.PositionTimescale)
LAYER_ARGUMENTS = (  # constructor arguments that a stack hands to its layers
    "d_model",
    "num_heads",
    "d_ff",
    "dropout",
    "activation",
    "norm",
    "use_bias",
    "epsilon",
)


def positional_encoding(
    positions: tf.Tensor, d_model: int, layout: str = "interleaved", timescale: str = "paper"
) -> tf.Tensor:
    """Compute sines and cosines of pos / 10000^(2i / d_model) (section 3.5).

    Always in float32: in bfloat16 neighbouring positions above 256 would be equal.

    Args:
        positions: Positions (T,), from 0 on.
        d_model: Width of the model, the size of each vector; must be even.
        layout: "interleaved" is the paper's order (sin, cos, sin, cos, ...); "halves" has all sines
            before all cosines.
        timescale: "paper": the i-th wavelength is 2 pi 10000^(2i / d_model). "t2t", as in
            Tensor2Tensor and Marian: 2 pi 10000^(i / (d_model / 2 - 1)), so that the last one is
            2 pi 10000.

    Returns:
        Encodings (T, D) float32.

    Example:
        >>> positional_encoding(tf.range(2), d_model=4).numpy().round(3)
        array([[0.   , 1.   , 0.   , 1.   ],
               [0.841, 0.54 , 0.01 , 1.   ]], dtype=float32)
    """
    pairs = d_model // 2
    steps = pairs if timescale == "paper" else max(pairs - 1, 1)
    exponents = tf.range(pairs, dtype=tf.float32) / steps  # (D // 2,)
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * tf.pow(10000.0, -exponents)
    sines, cosines = tf.sin(angles), tf.cos(angles)  # each (T, D // 2)
    if layout == "halves":
        return tf.concat([sines, cosines], axis=-1)
    return tf.reshape(tf.stack([sines, cosines], axis=-1), (-1, d_model))


@register
class PositionalEncoding(keras.layers.Layer):
    """Adds positional encodings to embeddings (section 3.5).

    It has no weights and no length limit.

    Args:
        d_model: Width of the model, the size of each vector; must be even.
        layout: The order of sines and cosines, see `positional_encoding`.
        timescale: The range of their wavelengths, "paper" or "t2t".
        offset: The position of the first token; M2M100 counts from 2.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: `d_model` is odd or below 1, or `layout` or `timescale` unknown.

    Example:
        >>> import numpy, tfformer
        >>> tfformer.PositionalEncoding(d_model=2)(numpy.zeros((1, 2, 2))).numpy().round(3)
        array([[[0.   , 1.   ],
                [0.841, 0.54 ]]], dtype=float32)
    """

    def __init__(
        self,
        d_model: int,
        layout: str = "interleaved",
        timescale: str = "paper",
        offset: int = 0,
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
        self.d_model = require_size("d_model", d_model)
        if self.d_model % 2:
            raise ValueError(
                f"d_model={d_model} is odd; sines and cosines come in pairs, so choose an even "
                "d_model"
            )
        self.layout = require("layout", layout, POSITION_LAYOUTS)
        self.timescale = require("timescale", timescale, POSITION_TIMESCALES)
        self.offset = require_size("offset", offset, least=0)
        self.supports_masking = True
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: self.d_model})

    def build(self, input_shape: Shape | None = None) -> None:
        """Create nothing: there are no weights."""

    def call(self, embeddings: tf.Tensor, position: tf.Tensor | int = 0) -> tf.Tensor:
        """Add the encodings of position, position + 1, ... to embeddings (B, T, D)."""
        positions = position + self.offset + tf.range(tf.shape(embeddings)[1])  # (T,)
        encodings = positional_encoding(
            positions, self.d_model, self.layout, self.timescale
        )  # (T, D)
        return embeddings + tf.cast(encodings, embeddings.dtype)

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return (B, T, D), the shape of the embeddings."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | arguments_of(
            self, ("d_model", "layout", "timescale", "offset")
        )


@register
class TokenEmbedding(keras.layers.Embedding):
    """Turns token ids into vectors, scaled by sqrt(d_model) (section 3.4).

    Transposed, its matrix projects hidden states to logits. It is initialised with standard
    deviation d_model^-0.5: after scaling the vectors have unit variance, and so have the logits of
    states of unit variance. In training the gradient is dense, so that the gradients of a repeated
    id are summed before Adam squares them. It is Keras' layer, with its `enable_lora`.

    Args:
        vocab_size: The number V of token ids.
        d_model: Width of the model, the size of each vector.
        scale: Multiply the vectors by sqrt(d_model).
        zero_id: An id whose vector is zeros, whatever its row of the matrix is; None for none.
        embeddings_initializer: Keras' initialiser of the matrix, in place of the one above.
        embeddings_regularizer: Keras' regulariser of the matrix.
        embeddings_constraint: Keras' constraint of the matrix.
        mask_zero: Mask the id 0 for the layers that follow.
        weights: The matrix (V, D) to begin with, or a list of it. It is not part of the layer's
            config: a saved model has the matrix among its weights.
        lora_rank: The rank of a LoRA from the beginning, as by `enable_lora`.
        lora_alpha: Over the rank, the factor of the LoRA; by default the rank.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Attributes:
        embeddings: The matrix (V, D).

    Raises:
        ValueError: A size is not a whole number from 1.

    Example:
        >>> import numpy, tfformer
        >>> embedding = tfformer.TokenEmbedding(vocab_size=100, d_model=8)
        >>> vectors = embedding(numpy.array([[5, 7, 3]]))
        >>> vectors.shape, embedding.logits(vectors).shape
        (TensorShape([1, 3, 8]), TensorShape([1, 3, 100]))
    """

    embeddings_initializer: keras.initializers.Initializer | None  # None for the one above
    lora_alpha: float | None

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: bool = True,
        zero_id: int | None = None,
        embeddings_initializer: str | keras.initializers.Initializer | None = None,
        embeddings_regularizer: Regularizer = None,
        embeddings_constraint: str | keras.constraints.Constraint | None = None,
        mask_zero: bool = False,
        weights: np.ndarray | list[np.ndarray] | None = None,
        lora_rank: int | None = None,
        lora_alpha: float | None = None,
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            require_size("vocab_size", vocab_size),
            require_size("d_model", d_model),
            embeddings_initializer=embeddings_initializer,
            embeddings_regularizer=embeddings_regularizer,
            embeddings_constraint=embeddings_constraint,
            mask_zero=mask_zero,
            weights=weights,
            lora_rank=lora_rank,
            lora_alpha=lora_alpha,
            activity_regularizer=activity_regularizer,
            trainable=trainable,
            dtype=dtype,
            name=name,
        )
        self.scale = scale
        self.zero_id = zero_id

    @property
    def vocab_size(self) -> int:
        """The number V of token ids."""
        return self.input_dim

    @property
    def d_model(self) -> int:
        """The size D of each vector."""
        return self.output_dim

    def build(self, input_shape: Shape | None = None) -> None:
        """Create the matrix (V, D)."""
        check_not_quantized(self)
        initializer = self.embeddings_initializer
        lora_alpha = self.lora_alpha
        if initializer is None:
            # Not in the constructor: an initialiser draws its seed when it is made, and so decides
            # the seeds of all layers made after it.
            self.embeddings_initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        super().build(input_shape)
        self.embeddings_initializer = initializer
        self.lora_alpha = lora_alpha  # Keras has set it to the rank

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Look up token ids (B, T) as vectors (B, T, D).

        Ids of other types than int32 and int64 are cast to int32.
        """
        if ids.dtype not in (tf.int32, tf.int64):
            ids = tf.cast(ids, tf.int32)
        table = tf.convert_to_tensor(self.embeddings)  # (V, D)
        vectors = gather(table, ids, dense_gradient=training)  # (B, T, D)
        vectors = tf.cast(vectors, self.compute_dtype)
        if self.zero_id is not None:
            vectors *= tf.expand_dims(tf.cast(ids != self.zero_id, vectors.dtype), -1)
        return vectors * self.d_model**0.5 if self.scale else vectors

    def table(self) -> np.ndarray:
        """Return the vectors (V, D) of all ids, before they are scaled."""
        table = np.array(self.embeddings)
        if self.zero_id is not None:
            table[self.zero_id] = 0
        return table

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """Multiply vectors (..., D) by the transposed matrix: (..., V).

        All positions go into one matrix product. With one product for each sentence the gradient of
        the matrix would be (B, V, D), still to be summed over B.
        """
        flat = tf.reshape(x, (1, -1, self.d_model))  # a batch of one is faster for few rows
        logits = tf.matmul(flat, tf.cast(self.embeddings, x.dtype), transpose_b=True)
        return tf.reshape(logits, with_last_axis(x, self.vocab_size))

    def load_own_variables(self, store: Any) -> None:
        """Load the matrix, into which a LoRA is merged when it is saved.

        Keras sets both factors of the LoRA to 0, and then neither would ever have a gradient.
        """
        lora_a = self.lora_embeddings_a.numpy() if self.lora_enabled else None
        super().load_own_variables(store)
        if lora_a is not None:
            self.lora_embeddings_a.assign(lora_a)

    def quantize(
        self, mode: str | None = None, type_check: bool = True, config: Any = None
    ) -> None:
        """Refuse quantisation; where Keras quantises a model, this becomes a warning."""
        raise quantization_error(self, mode)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments, except the `weights` to begin with."""
        config = super().get_config()
        for name in ("input_dim", "output_dim", "quantization_config"):  # Keras' own
            config.pop(name, None)
        return config | arguments_of(self, ("vocab_size", "d_model", "scale", "zero_id"))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Build the layer of a config.

        Keras' embedding would add a `quantization_config` to it.
        """
        return super(keras.layers.Embedding, cls).from_config(config)


class MaskedLayer(keras.layers.Layer):
    """A layer that passes its input's padding mask (B, S) on to the next layer.

    Keras does so for any layer with `supports_masking`. This one also takes masks over attention
    scores, and passes none of them on.
    """

    def __init__(self, **layer: Any) -> None:
        super().__init__(**layer)
        self.supports_masking = True

    def compute_mask(self, inputs: tf.Tensor, previous_mask: tf.Tensor | None = None) -> tf.Tensor:
        """Return a padding mask (B, S) as it is, and None for a mask over scores."""
        is_over_positions = previous_mask is not None and len(previous_mask.shape) == 2
        return previous_mask if is_over_positions else None


@register
class MultiHeadAttention(MaskedLayer):
    """softmax(Q K^T / sqrt(d_k)) V in several heads (section 3.2, eq. 1).

    Each head has d_k = d_model / num_heads dimensions. A call attends from a sequence to a
    memory. A decoder with a cache uses its two halves: `project` the memory once, then `attend` to
    its keys and values at each step. The attention weights have no dropout, as in the paper;
    Tensor2Tensor has it.

    Args:
        d_model: Width of the model, the size of each vector.
        num_heads: Number of attention heads; must divide `d_model`.
        use_bias: Add a bias in each of the four projections.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: `num_heads` does not divide `d_model`, or one is below 1.

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
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
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
        """Create the weights of the projections."""
        for dense in (self.query, self.key_value, self.output_projection):
            dense.build((None, None, self.d_model))

    def call(
        self,
        query: tf.Tensor,
        memory: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        return_weights: bool = False,
        mask: tf.Tensor | None = None,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Attend from a query to a memory.

        Args:
            query: Vectors (B, T, D).
            memory: Vectors (B, S, D). A mask that Keras carries along with them is applied too.
            attention_mask: Boolean (B, S), (B, T, S) or broadcasting over (B, H, T, S), True = may
                be attended to. Rank 2 is (B, S); for a mask (T, S) give `mask[None]`.
            return_weights: Return the attention weights too.
            mask: The mask that Keras passes by this name, combined with `attention_mask`.

        Returns:
            Vectors (B, T, D), and with `return_weights` the weights (B, H, T, S), see `attend`.
        """
        allowed = join_masks(attention_mask, mask, carried_mask(memory))
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
            mask: Boolean, broadcasting over (B, H, T, S), True = may be attended to.

        Returns:
            Vectors (B, T, D) and weights (B, H, T, S): 0 where masked. They are uniform in a row
            whose keys are all masked, in float16 only if its scores are between -8 and 8.
        """
        # Scaling the queries, T * d_k numbers, is cheaper than scaling the T * S scores.
        queries = self._split_heads(self.query(query)) * self.d_k**-0.5  # (B, H, T, D // H)
        scores = tf.matmul(queries, keys_values.keys, transpose_b=True)  # (B, H, T, S)
        if mask is not None:
            # Half the lowest float: adding a score cannot overflow to -inf, and softmax of a row of
            # -inf would be NaN.
            masked = scores.dtype.min / 2
            scores += tf.where(mask, tf.zeros((), scores.dtype), masked)
        weights = tf.nn.softmax(scores)  # (B, H, T, S)
        heads = tf.matmul(weights, keys_values.values)  # (B, H, T, D // H)
        return self.output_projection(self._merge_heads(heads)), weights

    def attend_to_itself(self, x: tf.Tensor) -> tf.Tensor:
        """Attend from each vector (B, T, D) to itself alone, with the weight 1: (B, T, D)."""
        _, values = tf.split(self.key_value(x), 2, axis=-1)
        return self.output_projection(values)

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, T, D) -> (B, H, T, D // H)."""
        if x.shape[1] == 1:  # nothing to transpose
            return tf.reshape(x, (-1, self.num_heads, 1, self.d_k))
        shape = tf.concat([tf.shape(x)[:2], [self.num_heads, self.d_k]], axis=0)
        return tf.transpose(tf.reshape(x, shape), (0, 2, 1, 3))

    def _merge_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, H, T, D // H) -> (B, T, D)."""
        if x.shape[2] == 1:
            return tf.reshape(x, (-1, 1, self.d_model))
        heads = tf.transpose(x, (0, 2, 1, 3))  # (B, T, H, D // H)
        return tf.reshape(heads, tf.concat([tf.shape(heads)[:2], [self.d_model]], axis=0))

    def compute_output_shape(self, query_shape: Shape, memory_shape: Shape | None = None) -> Shape:
        """Return (B, T, D), the shape of the query."""
        return tuple(query_shape)

    def compute_output_spec(
        self,
        query: keras.KerasTensor,
        memory: keras.KerasTensor,
        attention_mask: keras.KerasTensor | None = None,
        return_weights: bool = False,
        mask: keras.KerasTensor | None = None,
    ) -> keras.KerasTensor | tuple[keras.KerasTensor, keras.KerasTensor]:
        """Return the shapes of a call without computing it, for Keras.

        Args:
            query: Vectors (B, T, D).
            memory: Vectors (B, S, D).
            attention_mask: Without effect on the shapes.
            return_weights: Return the weights too.
            mask: Without effect on the shapes.

        Returns:
            Symbolic vectors (B, T, D), and with `return_weights` symbolic weights (B, H, T, S).
        """
        output = keras.KerasTensor(query.shape, self.compute_dtype)
        if not return_weights:
            return output
        batch, queries, _ = query.shape
        shape = (batch, self.num_heads, queries, memory.shape[1])
        return output, keras.KerasTensor(shape, self.compute_dtype)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = ("d_model", "num_heads", "use_bias")
        return super().get_config() | arguments_of(self, names)


@register
class FeedForward(keras.layers.Layer):
    """Position-wise max(0, x W1 + b1) W2 + b2 (section 3.3, eq. 2).

    Gelu or swish may take the place of relu.

    Args:
        d_model: Width of the model, the size of each vector.
        d_ff: Width of the hidden layer.
        activation: "relu", "gelu" or "swish".
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: `activation` is unknown, or a size is below 1.

    Example:
        >>> import numpy, tfformer
        >>> tfformer.FeedForward(d_model=8, d_ff=32)(numpy.ones((1, 3, 8))).shape
        TensorShape([1, 3, 8])
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        activation: str = "relu",
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
        self.d_model = require_size("d_model", d_model)
        self.d_ff = require_size("d_ff", d_ff)
        self.activation = require("activation", activation, ACTIVATIONS)
        self.supports_masking = True
        self.inner = Dense(self.d_ff, activation=activation, name="inner", dtype=self.dtype_policy)
        self.outer = Dense(self.d_model, name="outer", dtype=self.dtype_policy)

    def build(self, input_shape: Shape | None = None) -> None:
        """Create the weights of both projections."""
        self.inner.build((None, None, self.d_model))
        self.outer.build((None, None, self.d_ff))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        """Transform vectors (B, T, D), each by itself."""
        return self.outer(self.inner(x))

    def compute_output_shape(self, input_shape: Shape) -> Shape:
        """Return (B, T, D), the shape of the input."""
        return tuple(input_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | arguments_of(self, ("d_model", "d_ff", "activation"))


@register
class Residual(keras.layers.Layer):
    """The residual connection, dropout and layer normalisation around a sub-layer.

    "post" is LayerNorm(x + Dropout(Sublayer(x))), as in the paper (sections 3.1 and 5.4); "pre" is
    x + Dropout(Sublayer(LayerNorm(x))), and so is "marian", but for a decoder's self-attention (see
    `DecoderLayer`). A layer calls `before`, then its sub-layer, then `after`.

    Args:
        d_model: Width of the model, the size of each vector.
        dropout: Dropout rate on the sub-layer's output (section 5.4).
        norm: "post", "pre" or "marian".
        epsilon: Added to the variance in the layer normalisation.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: `norm` is unknown, or `dropout` is outside its range.

    Example:
        >>> residual = Residual(d_model=2, norm="pre")
        >>> x = tf.constant([[[1.0, 3.0]]])
        >>> residual.before(x).numpy().round(2).tolist()
        [[[-1.0, 1.0]]]
        >>> residual.after(x, sublayer_output=10 * x).numpy().tolist()
        [[[11.0, 33.0]]]
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        norm: str = "post",
        epsilon: float = 1e-6,
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
        self.d_model = require_size("d_model", d_model)
        self.dropout = require_number("dropout", dropout, below=1)
        self.norm = require("norm", norm, NORMS)
        self.epsilon = require_fraction("epsilon", epsilon)
        self.supports_masking = True
        self.normalization = LayerNormalization(
            epsilon=self.epsilon, name="normalization", dtype=self.dtype_policy
        )
        self.dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy)

    def build(
        self, x_shape: Shape | None = None, sublayer_output_shape: Shape | None = None
    ) -> None:
        """Create the scale and shift of the normalisation."""
        self.normalization.build((None, None, self.d_model))

    def before(self, x: tf.Tensor) -> tf.Tensor:
        """Return the sub-layer's input: `x` (B, T, D), normalised unless `norm` is "post"."""
        return x if self.norm == "post" else self.normalization(x)

    def after(
        self, x: tf.Tensor, sublayer_output: tf.Tensor, training: bool | None = None
    ) -> tf.Tensor:
        """Return x plus the sub-layer's output (B, T, D), normalised if `norm` is "post"."""
        x = x + self.dropout_layer(sublayer_output, training=training)
        return self.normalization(x) if self.norm == "post" else x

    def call(
        self, x: tf.Tensor, sublayer_output: tf.Tensor, training: bool | None = None
    ) -> tf.Tensor:
        """Return `after(x, sublayer_output)`; a functional Keras model needs a call."""
        return self.after(x, sublayer_output, training=training)

    def compute_output_shape(
        self, x_shape: Shape, sublayer_output_shape: Shape | None = None
    ) -> Shape:
        """Return (B, T, D), the shape of `x`."""
        return tuple(x_shape)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        names = ("d_model", "dropout", "norm", "epsilon")
        return super().get_config() | arguments_of(self, names)


class _TransformerLayer(MaskedLayer):
    """The arguments and sub-layers that EncoderLayer and DecoderLayer have in common."""

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        use_bias: bool = True,
        epsilon: float = 1e-6,
        *,
        activity_regularizer: Regularizer = None,
        trainable: bool = True,
        dtype: DType = None,
        name: str | None = None,
    ) -> None:
        super().__init__(
            activity_regularizer=activity_regularizer, trainable=trainable, dtype=dtype, name=name
        )
        self.d_model = require_size("d_model", d_model)
        self.num_heads = require_size("num_heads", num_heads)
        self.d_ff = require_size("d_ff", d_ff)
        self.dropout = require_number("dropout", dropout, below=1)
        self.activation = activation
        self.norm = norm
        self.use_bias = use_bias
        self.epsilon = require_fraction("epsilon", epsilon)
        self._add_sublayers()

    def _add_sublayers(self) -> None:
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = FeedForward(
            self.d_model,
            self.d_ff,
            self.activation,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _attention(self, name: str) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.d_model, self.num_heads, self.use_bias, name=name, dtype=self.dtype_policy
        )

    def _residual(self, name: str) -> Residual:
        return Residual(
            self.d_model, self.dropout, self.norm, self.epsilon, name=name, dtype=self.dtype_policy
        )

    def sublayers(self) -> tuple[keras.layers.Layer, ...]:
        """Return the sub-layers and their residuals in the order of computation."""
        return (
            self.self_attention,
            self.self_attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        )

    def attend_to_sequence(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: KeysValues | None = None,
        position: tf.Tensor | int = 0,
    ) -> tuple[tf.Tensor, tf.Tensor, KeysValues]:
        """Attend from T new positions to those before and to each other.

        It is the sub-layer without its residual sum.

        Args:
            x: Vectors (R, T, D) at position, position + 1, ...
            mask: Boolean, broadcasting over (R, H, T, L); with the norm "marian" alike in all
                heads.
            cache: Keys and values, each (R, H, L, D // H). Without it the positions attend only to
                each other, and L is T.
            position: The first of these positions.

        Returns:
            Vectors (R, T, D), weights (R, H, T, L), and the cache with these positions.
        """
        h = self.self_attention_residual.before(x)  # (R, T, D)
        remembered = self._remembered(x, h)
        new = self.self_attention.project(remembered)  # keys and values, each (R, H, T, D // H)
        cache = new if cache is None else cache.write(new, position)  # each (R, H, L, D // H)
        attended, weights = self.self_attention.attend(h, cache, mask)
        if remembered is not h:
            is_first = _sees_one_key(mask, tf.shape(cache.keys)[2])
            attended = tf.where(is_first, self.self_attention.attend_to_itself(h), attended)
        return attended, weights, cache

    def _remembered(self, x: tf.Tensor, normalised: tf.Tensor) -> tf.Tensor:
        """Return the vectors (R, T, D) whose keys and values are kept."""
        return normalised

    def _build_sublayers(self) -> None:
        for layer in self.sublayers():
            layer.build((None, None, self.d_model))

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | arguments_of(self, LAYER_ARGUMENTS)


@register
class EncoderLayer(_TransformerLayer):
    """Self-attention and feed-forward, each with a residual (figure 1, left).

    With a look-ahead mask it is the layer of a decoder-only model.

    Args:
        d_model: Width of the model, the size of each vector.
        num_heads: Number of attention heads; must divide `d_model`.
        d_ff: Width of the feed-forward sub-layer's hidden layer.
        dropout: Dropout rate on each sub-layer's output (section 5.4).
        activation: "relu", "gelu" or "swish".
        norm: "post" as in the paper, or "pre"; "marian" is the same here as "pre".
        use_bias: Add a bias in the projections of the attention.
        epsilon: Added to the variance in each layer normalisation.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> layer = tfformer.EncoderLayer(d_model=8, num_heads=2, d_ff=32, norm="pre")
        >>> layer(numpy.ones((1, 5, 8))).shape
        TensorShape([1, 5, 8])
    """

    def build(self, x_shape: Shape | None = None) -> None:
        """Create the weights; their shapes follow from the constructor's arguments."""
        self._build_sublayers()

    def call(
        self,
        x: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Transform all positions at once.

        Args:
            x: Vectors (B, S, D). A mask that Keras carries along with them is applied too.
            attention_mask: Boolean (B, S), (B, S, S) or broadcasting over (B, H, S, S), True = may
                be attended to. Rank 2 is (B, S); for a mask (S, S) give `mask[None]`.
            mask: The mask that Keras passes by this name, combined with `attention_mask`.
            training: Whether to apply dropout.

        Returns:
            Vectors (B, S, D).
        """
        allowed = join_masks(attention_mask, mask, carried_mask(x))
        x, _ = self.step(x, allowed, training=training)
        return x

    def step(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: KeysValues | None = None,
        position: tf.Tensor | int = 0,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, KeysValues]:
        """Transform T new positions of a sequence, given the cache of those before.

        Args:
            x: Vectors (R, T, D) at position, position + 1, ...
            mask: Boolean, broadcasting over (R, H, T, L).
            cache: Keys and values, each (R, H, L, D // H). Without it the positions attend only to
                each other, and L is T.
            position: The first of these positions.
            training: Whether to apply dropout.

        Returns:
            Vectors (R, T, D), and the cache with these positions.
        """
        attended, _, cache = self.attend_to_sequence(x, mask, cache, position)  # (R, T, D)
        x = self.self_attention_residual.after(x, attended, training=training)

        h = self.feed_forward_residual.before(x)  # (R, T, D)
        x = self.feed_forward_residual.after(x, self.feed_forward(h), training=training)
        return x, cache

    def compute_output_shape(self, x_shape: Shape) -> Shape:
        """Return (B, S, D), the shape of the input."""
        return tuple(x_shape)


@register
class DecoderLayer(_TransformerLayer):
    """Self-attention, attention to the memory and feed-forward (figure 1, right).

    Each has a residual connection. A call is causal only with a look-ahead mask as its
    `attention_mask`.

    The norm "marian" is "pre" as marian-decoder computes it, not as Marian trains it. The queries
    of self-attention are normalised, but its keys and values are not, except where the first token
    attends to itself. (Since 1.10.28, LayerAttention of models/transformer.h normalises keys and
    values if they are those of the queries, as in training; marian-decoder gives it the past too.)

    Args:
        d_model: Width of the model, the size of each vector.
        num_heads: Number of attention heads; must divide `d_model`.
        d_ff: Width of the feed-forward sub-layer's hidden layer.
        dropout: Dropout rate on each sub-layer's output (section 5.4).
        activation: "relu", "gelu" or "swish".
        norm: "post" as in the paper, "pre", or "marian".
        use_bias: Add a bias in the projections of both attentions.
        epsilon: Added to the variance in each layer normalisation.
        activity_regularizer: Keras' regulariser of the output.
        trainable: Whether the weights are trained.
        dtype: A dtype such as "mixed_bfloat16", or a dtype policy.
        name: The name of the layer.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> layer = tfformer.DecoderLayer(d_model=8, num_heads=2, d_ff=32)
        >>> target, memory = numpy.ones((1, 3, 8)), numpy.ones((1, 5, 8))
        >>> layer(target, memory, attention_mask=tfformer.look_ahead_mask(3)).shape
        TensorShape([1, 3, 8])
    """

    def _add_sublayers(self) -> None:
        # Cross-attention last: this order decides the initialisers' seeds and the order of weights.
        super()._add_sublayers()
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")

    def sublayers(self) -> tuple[keras.layers.Layer, ...]:
        """Return the sub-layers and their residuals in the order of computation."""
        return (
            self.self_attention,
            self.self_attention_residual,
            self.cross_attention,
            self.cross_attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        )

    def build(self, x_shape: Shape | None = None, memory_shape: Shape | None = None) -> None:
        """Create the weights; their shapes follow from the constructor's arguments."""
        self._build_sublayers()

    def _remembered(self, x: tf.Tensor, normalised: tf.Tensor) -> tf.Tensor:
        return x if self.norm == "marian" else normalised

    def call(
        self,
        x: tf.Tensor,
        memory: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        memory_mask: tf.Tensor | None = None,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Transform all positions at once.

        Args:
            x: Vectors (B, T, D) of the target.
            memory: Vectors (B, S, D) of the source. A mask that Keras carries along with them, or
                with `x`, is applied too.
            attention_mask: Boolean (B, T), (B, T, T) or broadcasting over (B, H, T, T), True = may
                be attended to. Rank 2 is (B, T); for a mask (T, T) give `mask[None]`.
            memory_mask: Boolean (B, S), (B, T, S) or broadcasting over (B, H, T, S), True = may be
                attended to.
            mask: The mask that Keras passes by this name, combined with `attention_mask`.
            training: Whether to apply dropout.

        Returns:
            Vectors (B, T, D).
        """
        allowed = join_masks(attention_mask, mask, carried_mask(x))
        memory_allowed = join_masks(memory_mask, carried_mask(memory))
        keys_values = self.cross_attention.project(memory)  # each (B, H, S, D // H)
        x, _ = self.step(
            x,
            allowed,
            cache=None,
            position=0,
            memory_keys_values=keys_values,
            memory_mask=memory_allowed,
            training=training,
        )
        return x

    def step(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None,
        cache: KeysValues | None,
        position: tf.Tensor | int,
        memory_keys_values: KeysValues,
        memory_mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, KeysValues]:
        """Transform T new positions of a target, given the cache of those before.

        The beams of a sentence are R // B rows of `x` that share one row of the memory. In the
        cross-attention they are R // B * T queries of that row.

        Args:
            x: Vectors (R, T, D) at position, position + 1, ...
            mask: Boolean, broadcasting over (R, H, T, L).
            cache: Keys and values, each (R, H, L, D // H). Without it the positions attend only to
                each other, and L is T.
            position: The first of these positions.
            memory_keys_values: Keys and values of the memory, each (B, H, S, D // H); B divides R.
            memory_mask: Boolean, broadcasting over (B, H, R // B * T, S).
            training: Whether to apply dropout.

        Returns:
            Vectors (R, T, D), and the cache with these positions.
        """
        attended, _, cache = self.attend_to_sequence(x, mask, cache, position)  # (R, T, D)
        x = self.self_attention_residual.after(x, attended, training=training)

        h = self.cross_attention_residual.before(x)  # (R, T, D)
        sentences = tf.shape(memory_keys_values.keys)[:1]  # (1,), B
        shape = tf.concat([sentences, [-1, self.d_model]], axis=0)
        queries = tf.reshape(h, shape)  # (B, R // B * T, D)
        attended, _ = self.cross_attention.attend(queries, memory_keys_values, memory_mask)
        attended = tf.reshape(attended, tf.shape(x))  # (R, T, D)
        x = self.cross_attention_residual.after(x, attended, training=training)

        h = self.feed_forward_residual.before(x)  # (R, T, D)
        x = self.feed_forward_residual.after(x, self.feed_forward(h), training=training)
        return x, cache

    def compute_output_shape(self, x_shape: Shape, memory_shape: Shape | None = None) -> Shape:
        """Return (B, T, D), the shape of the target."""
        return tuple(x_shape)


def _sees_one_key(mask: tf.Tensor | None, keys: tf.Tensor) -> tf.Tensor:
    """Return which positions may attend to one key alone, broadcasting over (R, T, 1).

    Args:
        mask: Boolean, broadcasting over (R, H, T, L); None lets them attend to all.
        keys: Their number L.
    """
    visible = tf.ones((1, 1, 1, keys), tf.bool)
    if mask is not None:
        visible = tf.logical_and(visible, mask)  # (R or 1, H or 1, T or 1, L)
    counts = tf.reduce_sum(tf.cast(visible, tf.int32), axis=-1)
    return counts[:, 0, :, tf.newaxis] == 1
