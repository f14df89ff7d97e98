"""The stacks of encoder and decoder (Vaswani et al. 2017, section 3.1).

In training, a stack's `call` processes all positions at once; a search calls `step` for each
position and keeps the keys and values of earlier positions in a cache (`cache.py`).

Shape letters: B batch, S source, T target, D d_model, H heads, L cache capacity, N beams, R rows
being decoded (B, or B times the beam size).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Unpack

import keras
import tensorflow as tf

from tfformer.argument_checks import require_number, require_size
from tfformer.config import Dialect
from tfformer.model.base_layer import (
    Activation,
    LayerOptions,
    SequenceLayer,
    Shape,
    arguments_of,
    register,
)
from tfformer.model.cache import (
    BeamCache,
    Cache,
    KeysValues,
    capacity_of,
    empty_cache,
    grown_eagerly,
)
from tfformer.model.fast_layers import Dropout, LayerNormalization
from tfformer.model.layers import LAYER_ARGUMENTS, DecoderLayer, EncoderLayer
from tfformer.model.marian_layers import MarianDecoderLayer
from tfformer.model.masks import carried_mask, join_masks, look_ahead_mask
from tfformer.model.positions import PositionalEncoding

STACK_ARGUMENTS = ("num_layers", *LAYER_ARGUMENTS)


class ProjectedMemory(NamedTuple):
    """The memory, projected once for each decoder layer and reused in all steps."""

    # For each layer the keys and values of its cross-attention, each (B, H, S, D // H)
    keys_values: tuple[KeysValues, ...]
    mask: tf.Tensor  # the padding mask (B, 1, 1, S)


class _Stack(SequenceLayer):
    """Positional encoding, identical layers and, for pre-norm, a final normalisation."""

    layer_class: type[EncoderLayer] | type[DecoderLayer]

    def __init__(
        self,
        num_layers: int,
        d_model: int,
        num_heads: int,
        *,
        d_ff: int,
        dropout: float = 0.0,
        activation: Activation = "relu",
        norm: str = "post",
        use_bias: bool = True,
        dialect: str | Mapping[str, Any] | Dialect = "paper",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.dialect = Dialect.of(dialect)
        self.num_layers = require_size("num_layers", num_layers)
        self.d_model = require_size("d_model", d_model)
        self.num_heads = require_size("num_heads", num_heads)
        self.d_ff = require_size("d_ff", d_ff)
        self.dropout = require_number("dropout", dropout, below=1)
        self.activation = activation
        self.norm = norm
        self.use_bias = use_bias
        self.input_spec = keras.layers.InputSpec(ndim=3, axes={-1: self.d_model})
        policy = self.dtype_policy
        self.positions = PositionalEncoding(
            self.d_model,
            self.dialect.position_layout,
            self.dialect.position_timescale,
            offset=self.dialect.position_offset,
            dtype=policy,
        )
        self.dropout_layer = Dropout(self.dropout, dtype=policy)
        arguments = arguments_of(self, LAYER_ARGUMENTS)
        arguments |= {"epsilon": self.dialect.epsilon, "dtype": policy}
        self.layers = [
            self._new_layer(**arguments, name=f"layer_{n}") for n in range(self.num_layers)
        ]
        self.normalization = None
        if norm != "post":
            self.normalization = LayerNormalization(
                epsilon=self.dialect.epsilon, name="normalization", dtype=policy
            )

    def _new_layer(self, **arguments: Any) -> EncoderLayer | DecoderLayer:
        return self.layer_class(**arguments)

    def build(self, embeddings_shape: Shape | None = None) -> None:
        for layer in (self.positions, self.dropout_layer, *self.layers):
            layer.build((None, None, self.d_model))
        if self.normalization:
            self.normalization.build((None, None, self.d_model))

    def add_positions(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int = 0,
        training: bool | None = None,
        segment_positions: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Add the positional encoding from `position` on and apply dropout (sections 3.5, 5.4).

        `segment_positions` (B, T) contains the positions of packed rows, see
        `positions_in_segments`.
        """
        encoded = self.positions(embeddings, position=position, segment_positions=segment_positions)
        return self.dropout_layer(encoded, training=training)

    def final_norm(self, x: tf.Tensor) -> tf.Tensor:
        """Normalise the last layer's output (B, T, D) unless post-norm layers have done so."""
        return self.normalization(x) if self.normalization else x

    def empty_cache(self, rows: tf.Tensor | int, capacity: tf.Tensor | int) -> Cache:
        """Return a cache of zeros: keys and values of each layer, each (R, H, L, D // H)."""
        shape = (rows, self.num_heads, capacity, self.d_model // self.num_heads)
        return empty_cache(len(self.layers), shape, self.compute_dtype)

    def step(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int,
        cache: Cache,
        memory: ProjectedMemory | None = None,
    ) -> tuple[tf.Tensor, Cache]:
        """Transform T new positions of a sequence.

        Each position attends to the cached positions, to the new positions up to itself and, in a
        decoder, to the memory.

        Args:
            embeddings: Vectors (R, T, D) at positions `position`, `position + 1`, ...
            position: The first of these positions.
            cache: Keys and values of each layer, each (R, H, L, D // H). Inside a graph it must
                have capacity for these positions; in eager mode it grows.
            memory: The projected memory, for a decoder.

        Returns:
            Vectors (R, T, D), and the cache with these positions.
        """
        x = self.add_positions(embeddings, position)  # (R, T, D)
        count = x.shape[1] or tf.shape(x)[1]  # T
        cache = grown_eagerly(cache, position + count)
        mask = look_ahead_mask(count, capacity_of(cache), position)  # (1, 1, T, L)
        return self._step_layers(x, mask, cache, position, memory)

    def empty_beam_cache(
        self, sentences: tf.Tensor | int, beams: int, capacity: tf.Tensor | int
    ) -> BeamCache:
        """Return an empty cache for `capacity` positions of N beams of B sentences."""
        slots = capacity * beams
        keys_values = self.empty_cache(sentences, slots)
        return BeamCache(keys_values, tf.zeros((sentences * beams, 1, slots, 1), tf.bool))

    def beam_step(
        self,
        embeddings: tf.Tensor,
        position: tf.Tensor | int,
        cache: BeamCache,
        memory: ProjectedMemory | None = None,
    ) -> tuple[tf.Tensor, BeamCache]:
        """Transform the next position of N beams of each sentence.

        The N beams are queries to one shared cache; each beam attends only to the slots of its own
        past.

        Args:
            embeddings: Vectors (B, N, D), all at the same position; N must be static.
            position: The position of the vectors.
            cache: See `empty_beam_cache`. Inside a graph it must have capacity for this position;
                in eager mode it grows.
            memory: The projected memory, for a decoder.

        Returns:
            Vectors (B, N, D), and the cache with this position.
        """
        beams = embeddings.shape[1]  # N
        x = self._add_position(embeddings, position)
        cache = cache.opened(position, beams)
        slots = tf.shape(cache.visible)[2:3]  # (1,), L
        mask = tf.reshape(cache.visible, tf.concat([[-1, 1, beams], slots], axis=0))
        x, keys_values = self._step_layers(x, mask, cache.keys_values, position * beams, memory)
        return x, cache._replace(keys_values=keys_values)

    def _add_position(self, embeddings: tf.Tensor, position: tf.Tensor | int) -> tf.Tensor:
        """Add one position to vectors (B, N, D) of N beams."""
        rows = tf.reshape(embeddings, (-1, 1, self.d_model))  # (B * N, 1, D)
        return tf.reshape(self.add_positions(rows, position), (-1, *embeddings.shape[1:]))

    def _step_layers(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None,
        cache: Cache,
        position: tf.Tensor | int,
        memory: ProjectedMemory | None,
    ) -> tuple[tf.Tensor, Cache]:
        """Pass vectors through all layers, writing to their caches from `position` on."""
        new_cache = []
        for n, layer in enumerate(self.layers):
            to_memory = () if memory is None else (memory.keys_values[n], memory.mask)
            x, keys_values = layer.step(x, mask, cache[n], position, *to_memory)
            new_cache.append(keys_values)
        return self.final_norm(x), tuple(new_cache)

    def get_config(self) -> dict[str, Any]:
        arguments = arguments_of(self, STACK_ARGUMENTS)
        return super().get_config() | arguments | {"dialect": self.dialect.to_dict()}


@register
class Encoder(_Stack):
    """Positional encoding and a stack of encoder layers (section 3.1).

    It turns the embeddings of a source into the memory that a decoder attends to. With a look-ahead
    mask it is a decoder-only model: `LanguageModel` uses it in this way, and decodes with `step`.

    Args:
        num_layers: Number of layers.
        d_model: Width of the model, the size of each vector; must be even.
        num_heads: Number of attention heads; must divide `d_model`.
        d_ff: Width of the feed-forward sub-layers' hidden layer.
        dropout: Dropout rate on the embeddings and on each sub-layer's output (section 5.4).
        activation: "relu", "gelu", "swish" or a function, see `FeedForward`.
        norm: "post" as in the paper, or "pre", with one more normalisation after the last layer;
            "marian" is the same here as "pre".
        use_bias: Add a bias to the projections of the attention.
        dialect: Where an imported model differs from the paper: "paper", "marian", "m2m100", or a
            mapping of fields, see `Dialect`. A stack reads its positions and its epsilon.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Attributes:
        layer_class: The class of the layers. A subclass may name a subclass of `EncoderLayer`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> encoder = tfformer.Encoder(num_layers=2, d_model=8, num_heads=2, d_ff=32)
        >>> ids = numpy.array([[5, 7, 3, 0]])
        >>> embeddings = tfformer.TokenEmbedding(vocab_size=10, d_model=8)(ids)
        >>> encoder(embeddings, attention_mask=tfformer.padding_mask(ids)).shape
        TensorShape([1, 4, 8])
    """

    layer_class = EncoderLayer

    def call(
        self,
        embeddings: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        mask: tf.Tensor | None = None,
        training: bool | None = None,
        segment_positions: tf.Tensor | None = None,
    ) -> tf.Tensor:
        """Encode all positions at once.

        Args:
            embeddings: Vectors (B, S, D). A Keras mask attached to them is applied too.
            attention_mask: Boolean (B, S), (B, S, S) or broadcastable to (B, H, S, S), True = may
                be attended to. Rank 2 is (B, S); for a mask (S, S) pass `mask[None]`.
            mask: The mask that Keras passes by this name, combined with `attention_mask`.
            training: Whether to apply dropout.
            segment_positions: The positions (B, S) of packed rows, see `positions_in_segments`.

        Returns:
            Vectors (B, S, D).
        """
        allowed = join_masks(attention_mask, mask, carried_mask(embeddings))
        x = self.add_positions(embeddings, training=training, segment_positions=segment_positions)
        for layer in self.layers:
            x = layer(x, attention_mask=allowed, training=training)
        return self.final_norm(x)


@register
class Decoder(_Stack):
    """Positional encoding and a stack of decoder layers (section 3.1).

    `call` decodes all positions at once, by default with a causal mask; `step` decodes new
    positions, given a cache of earlier ones. The arguments are those of `Encoder`; with
    `norm="marian"`, which is "pre" computed as in marian-decoder, the layers are of the class
    `MarianDecoderLayer`.

    Attributes:
        layer_class: The class of the layers. A subclass may name a subclass of `DecoderLayer`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> decoder = tfformer.Decoder(num_layers=2, d_model=8, num_heads=2, d_ff=32)
        >>> target, memory = numpy.ones((1, 3, 8)), numpy.ones((1, 5, 8))
        >>> decoder(target, memory).shape
        TensorShape([1, 3, 8])
    """

    layer_class = DecoderLayer

    def _new_layer(self, **arguments: Any) -> DecoderLayer:
        return (MarianDecoderLayer if self.norm == "marian" else self.layer_class)(**arguments)

    def build(
        self, embeddings_shape: Shape | None = None, memory_shape: Shape | None = None
    ) -> None:
        super().build(embeddings_shape)

    def call(
        self,
        embeddings: tf.Tensor,
        memory: tf.Tensor,
        attention_mask: tf.Tensor | None = None,
        memory_mask: tf.Tensor | None = None,
        training: bool | None = None,
        use_causal_mask: bool = True,
        segment_positions: tf.Tensor | None = None,
        return_weights: bool = False,
    ) -> tf.Tensor | tuple[tf.Tensor, tf.Tensor]:
        """Decode all positions at once.

        Args:
            embeddings: Vectors (B, T, D) of the target.
            memory: Vectors (B, S, D) of the source. A Keras mask attached to them or to
                `embeddings` is applied too.
            attention_mask: Boolean (B, T), (B, T, T) or broadcastable to (B, H, T, T), True = may
                be attended to. Rank 2 is (B, T); for a mask (T, T) pass `mask[None]`.
            memory_mask: Boolean (B, S), (B, T, S) or broadcastable to (B, H, T, S), True = may be
                attended to.
            training: Whether to apply dropout.
            use_causal_mask: Whether to hide later positions, in addition to the masks.
            segment_positions: The positions (B, T) of packed rows, see `positions_in_segments`.
            return_weights: Whether to return the cross-attention of the penultimate or only layer.

        Returns:
            Vectors (B, T, D), and with `return_weights` the weights (B, H, T, S).
        """
        causal = look_ahead_mask(tf.shape(embeddings)[1]) if use_causal_mask else None
        arguments = {
            "attention_mask": join_masks(attention_mask, carried_mask(embeddings), causal),
            "memory_mask": join_masks(memory_mask, carried_mask(memory)),
            "training": training,
            "use_causal_mask": False,
        }
        x = self.add_positions(embeddings, training=training, segment_positions=segment_positions)
        for layer in self.layers:
            if return_weights and layer is self.layers[-2:][0]:
                x, weights = layer(x, memory, **arguments, return_weights=True)
            else:
                x = layer(x, memory, **arguments)
        x = self.final_norm(x)
        return (x, weights) if return_weights else x

    def project_memory(self, memory: tf.Tensor, mask: tf.Tensor) -> ProjectedMemory:
        """Project a memory (B, S, D) with mask (B, 1, 1, S) for each layer."""
        keys_values = tuple(layer.cross_attention.project(memory) for layer in self.layers)
        return ProjectedMemory(keys_values, mask)
