"""The layers of the encoder and the decoder (Vaswani et al. 2017, figure 1).

In training, a layer's `call` processes all positions at once; a search calls `step`, which reads
the keys and values of earlier positions from a cache (`cache.py`).

Shape letters: B batch, R rows being decoded (B, or B times the beam size), T query positions, S key
positions, D d_model, H heads, L cache capacity.
"""

from collections.abc import Iterator
from typing import Any, Unpack, get_args

import keras
import tensorflow as tf

from tfformer import config
from tfformer.argument_checks import require, require_fraction, require_number, require_size
from tfformer.model.attention import MultiHeadAttention
from tfformer.model.base_layer import (
    Activation,
    LayerOptions,
    SequenceLayer,
    Shape,
    arguments_of,
    register,
)
from tfformer.model.cache import KeysValues
from tfformer.model.fast_layers import Dropout, LayerNormalization
from tfformer.model.feed_forward import FeedForward
from tfformer.model.masks import carried_mask, join_masks, look_ahead_mask

NORMS = get_args(config.Norm)
LAYER_ARGUMENTS = (  # constructor arguments that a stack passes to its layers
    "d_model",
    "num_heads",
    "d_ff",
    "dropout",
    "activation",
    "norm",
    "use_bias",
)


@register
class Residual(SequenceLayer):
    """The residual connection, dropout and layer normalisation around a sub-layer.

    "post" is LayerNorm(x + Dropout(Sublayer(x))), as in the paper (sections 3.1 and 5.4); "pre" and
    "marian" are x + Dropout(Sublayer(LayerNorm(x))). A layer calls `before`, then its sub-layer,
    then `after`.

    Args:
        d_model: Width of the model, the size of each vector.
        dropout: Dropout rate on the sub-layer's output (section 5.4).
        norm: "post", "pre" or "marian".
        epsilon: Added to the variance in the layer normalisation.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

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
        *,
        epsilon: float = 1e-6,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.d_model = require_size("d_model", d_model)
        self.dropout = require_number("dropout", dropout, below=1)
        self.norm = require("norm", norm, NORMS)
        self.epsilon = require_fraction("epsilon", epsilon)
        self.normalization = LayerNormalization(
            epsilon=self.epsilon, name="normalization", dtype=self.dtype_policy
        )
        self.dropout_layer = Dropout(self.dropout, dtype=self.dtype_policy)

    def build(
        self, x_shape: Shape | None = None, sublayer_output_shape: Shape | None = None
    ) -> None:
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
        """Return `after(x, sublayer_output)`; a functional Keras model requires `call`."""
        return self.after(x, sublayer_output, training=training)

    def get_config(self) -> dict[str, Any]:
        names = ("d_model", "dropout", "norm", "epsilon")
        return super().get_config() | arguments_of(self, names)


class _TransformerLayer(SequenceLayer):
    """The arguments and sub-layers that EncoderLayer and DecoderLayer share."""

    feed_forward_class: type[keras.layers.Layer] = FeedForward
    sublayer_names: tuple[str, ...] = ("self_attention", "feed_forward")  # attributes

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_ff: int,
        *,
        dropout: float = 0.0,
        activation: Activation = "relu",
        norm: str = "post",
        use_bias: bool = True,
        epsilon: float = 1e-6,
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
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
        self._add_self_attention()
        self.feed_forward = self.feed_forward_class(
            self.d_model,
            self.d_ff,
            self.activation,
            name="feed_forward",
            dtype=self.dtype_policy,
        )
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _add_self_attention(self) -> None:
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")

    def _attention(self, name: str) -> MultiHeadAttention:
        return MultiHeadAttention(
            self.d_model, self.num_heads, self.use_bias, name=name, dtype=self.dtype_policy
        )

    def _residual(self, name: str) -> Residual:
        return Residual(
            self.d_model,
            self.dropout,
            self.norm,
            epsilon=self.epsilon,
            name=name,
            dtype=self.dtype_policy,
        )

    def sublayers(self) -> Iterator[keras.layers.Layer]:
        """Yield each sub-layer and its residual, in the order of computation."""
        for name in self.sublayer_names:
            yield getattr(self, name)
            yield getattr(self, f"{name}_residual")

    def build(self, x_shape: Shape | None = None) -> None:
        for layer in self.sublayers():
            layer.build((None, None, self.d_model))

    def attend_to_sequence(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: KeysValues | None = None,
        position: tf.Tensor | int = 0,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, tf.Tensor, KeysValues]:
        """Attend from T new positions to earlier ones and to each other.

        This is the self-attention sub-layer with the residual connection; the arguments are those
        of `EncoderLayer.step`. It returns vectors (R, T, D), weights (R, H, T, L), and the cache
        with these positions.
        """
        h = self.self_attention_residual.before(x)  # (R, T, D)
        new = self.self_attention.project(h)  # keys and values, each (R, H, T, D // H)
        cache = new if cache is None else cache.write(new, position)  # each (R, H, L, D // H)
        attended, weights = self.self_attention.attend(h, cache, mask)  # attended is (R, T, D)
        return self.self_attention_residual.after(x, attended, training), weights, cache

    def _feed(self, x: tf.Tensor, training: bool | None) -> tf.Tensor:
        """Apply the feed-forward sub-layer with its residual: (R, T, D) -> (R, T, D)."""
        h = self.feed_forward_residual.before(x)
        return self.feed_forward_residual.after(x, self.feed_forward(h), training)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | arguments_of(self, (*LAYER_ARGUMENTS, "epsilon"))


@register
class EncoderLayer(_TransformerLayer):
    """Self-attention and feed-forward, each with a residual (figure 1, left).

    With a look-ahead mask, it serves as the layer of a decoder-only model.

    Args:
        d_model: Width of the model, the size of each vector.
        num_heads: Number of attention heads; must divide `d_model`.
        d_ff: Width of the feed-forward sub-layer's hidden layer.
        dropout: Dropout rate on each sub-layer's output (section 5.4).
        activation: "relu", "gelu", "swish" or a function, see `FeedForward`.
        norm: "post" as in the paper, or "pre"; "marian" is the same here as "pre".
        use_bias: Add a bias to the projections of the attention.
        epsilon: Added to the variance in each layer normalisation.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Attributes:
        feed_forward_class: The class of the feed-forward sub-layer. A subclass may set another
            layer class, which is called with `(d_model, d_ff, activation, name=..., dtype=...)`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> layer = tfformer.EncoderLayer(d_model=8, num_heads=2, d_ff=32, norm="pre")
        >>> layer(numpy.ones((1, 5, 8))).shape
        TensorShape([1, 5, 8])
    """

    def call(
        self,
        x: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Transform all positions at once.

        Args:
            x: Vectors (B, S, D). A Keras mask attached to them is applied too.
            attention_mask: Boolean (B, S), (B, S, S) or broadcastable to (B, H, S, S), True = may
                be attended to. Rank 2 is (B, S); for a mask (S, S) pass `mask[None]`.
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
        """Transform T new positions of a sequence, given the cache of earlier ones.

        Args:
            x: Vectors (R, T, D) at positions `position`, `position + 1`, ...
            mask: Boolean, broadcastable to (R, H, T, L).
            cache: Keys and values, each (R, H, L, D // H). Without it the positions attend only to
                each other, and L is T.
            position: The position of the first vector.
            training: Whether to apply dropout.

        Returns:
            Vectors (R, T, D), and the cache with these positions.
        """
        x, _, cache = self.attend_to_sequence(x, mask, cache, position, training)  # (R, T, D)
        return self._feed(x, training), cache


@register
class DecoderLayer(_TransformerLayer):
    """Self-attention, attention to the memory and feed-forward (figure 1, right).

    Each sub-layer has a residual connection. `call` applies the causal mask by default. The
    arguments and attributes are those of `EncoderLayer`; for `norm="marian"`, see
    `MarianDecoderLayer`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> layer = tfformer.DecoderLayer(d_model=8, num_heads=2, d_ff=32)
        >>> target, memory = numpy.ones((1, 3, 8)), numpy.ones((1, 5, 8))
        >>> layer(target, memory).shape
        TensorShape([1, 3, 8])
    """

    sublayer_names = ("self_attention", "cross_attention", "feed_forward")

    def _add_sublayers(self) -> None:
        # Cross-attention last: the order determines the initialisers' seeds and the weight order.
        super()._add_sublayers()
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")

    def build(self, x_shape: Shape | None = None, memory_shape: Shape | None = None) -> None:
        super().build(x_shape)

    def call(
        self,
        x: tf.Tensor,
        memory: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        memory_mask: tf.Tensor | None = None,
        training: bool | None = None,
        use_causal_mask: bool = True,
        return_weights: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Transform all positions at once.

        Args:
            x: Vectors (B, T, D) of the target.
            memory: Vectors (B, S, D) of the source. A Keras mask attached to them or to `x` is
                applied too.
            attention_mask: Boolean (B, T), (B, T, T) or broadcastable to (B, H, T, T), True = may
                be attended to. Rank 2 is (B, T); for a mask (T, T) pass `mask[None]`.
            memory_mask: Boolean (B, S), (B, T, S) or broadcastable to (B, H, T, S), True = may be
                attended to.
            training: Whether to apply dropout.
            use_causal_mask: Whether to hide later positions, in addition to the masks.
            return_weights: Whether to return the weights of the cross-attention too.

        Returns:
            Vectors (B, T, D), and with `return_weights` the weights (B, H, T, S).
        """
        causal = look_ahead_mask(tf.shape(x)[1]) if use_causal_mask else None
        allowed = join_masks(attention_mask, carried_mask(x), causal)
        memory_allowed = join_masks(memory_mask, carried_mask(memory))
        x, _, _ = self.attend_to_sequence(x, allowed, training=training)
        h = self.cross_attention_residual.before(x)
        attended, weights = self.cross_attention(h, memory, memory_allowed, return_weights=True)
        x = self._feed(self.cross_attention_residual.after(x, attended, training), training)
        return (x, weights) if return_weights else x

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
        """Transform T new positions of a target, given the cache of earlier ones.

        Args:
            x: Vectors (R, T, D) at positions `position`, `position + 1`, ...
            mask: Boolean, broadcastable to (R, H, T, L).
            cache: Keys and values, each (R, H, L, D // H). Without it the positions attend only to
                each other, and L is T.
            position: The position of the first vector.
            memory_keys_values: Keys and values of the memory, each (R, H, S, D // H).
            memory_mask: Boolean, broadcastable to (R, H, T, S).
            training: Whether to apply dropout.

        Returns:
            Vectors (R, T, D), and the cache with these positions.
        """
        x, _, cache = self.attend_to_sequence(x, mask, cache, position, training)  # (R, T, D)
        h = self.cross_attention_residual.before(x)  # (R, T, D)
        attended, _ = self.cross_attention.attend(h, memory_keys_values, memory_mask)
        x = self.cross_attention_residual.after(x, attended, training)
        return self._feed(x, training), cache
