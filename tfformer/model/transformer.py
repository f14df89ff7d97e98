"""Encoder, decoder and the Transformer made of them (Vaswani et al. 2017, figure 1). Knows no text and no files.

Shape letters: B batch, S source, T target, D d_model, H heads, V vocabulary, L cache length, R rows being decoded
(B, or B times the beam size).
"""

from collections.abc import Callable
from typing import NamedTuple

import keras
import tensorflow as tf

from tfformer.model.batch_shards import ShardedModel
from tfformer.model.layers import (
    DecoderLayer,
    Dropout,
    EncoderLayer,
    KeyValue,
    LayerNormalization,
    PositionalEncoding,
    TokenEmbedding,
    register,
    require,
)
from tfformer.model.masks import look_ahead_mask, padding_mask

TIES = ("none", "output", "all")

ToLogits = Callable[[tf.Tensor], tf.Tensor]  # hidden states (..., D) -> logits (..., V)


class Memory(NamedTuple):
    """What the decoder looks up while it writes: per layer the projected source (B, H, S, D // H), and its mask."""

    key_values: tuple[KeyValue, ...]
    mask: tf.Tensor


class _Stack(keras.layers.Layer):
    """Positions and dropout, then `num_layers` equal layers, then a normalisation if these are pre-norm."""

    layer_class: type[keras.layers.Layer]

    def __init__(
        self,
        num_layers: int,
        d_model: int,
        num_heads: int,
        d_ff: int,
        dropout: float = 0.0,
        activation: str = "relu",
        norm: str = "post",
        use_bias: bool = True,
        epsilon: float = 1e-6,
        position_layout: str = "interleaved",
        **kwargs,
    ):
        super().__init__(**kwargs)
        layer = {
            "d_model": d_model,
            "num_heads": num_heads,
            "d_ff": d_ff,
            "dropout": dropout,
            "activation": activation,
            "norm": norm,
            "use_bias": use_bias,
            "epsilon": epsilon,
        }
        self.config = {"num_layers": num_layers, "position_layout": position_layout} | layer
        policy = self.dtype_policy
        self.positions = PositionalEncoding(d_model, position_layout, dtype=policy)
        self.dropout = Dropout(dropout, dtype=policy)
        self.layers = [
            self.layer_class(**layer, name=f"layer_{n}", dtype=policy) for n in range(num_layers)
        ]
        self.normalization = None
        if norm == "pre":
            self.normalization = LayerNormalization(
                epsilon=epsilon, name="normalization", dtype=policy
            )

    def build(self, input_shape=None) -> None:
        for layer in self.layers:
            layer.build(None)
        if self.normalization:
            self.normalization.build((None, None, self.config["d_model"]))

    def enter(
        self, embeddings: tf.Tensor, first: tf.Tensor | int = 0, training: bool | None = None
    ) -> tf.Tensor:
        """What the first layer sees: embeddings (B, T, D) plus positions first, first + 1, ... (sections 3.5, 5.4)."""
        return self.dropout(self.positions(embeddings, first=first), training=training)

    def leave(self, x: tf.Tensor) -> tf.Tensor:
        """What follows the last layer."""
        return self.normalization(x) if self.normalization else x

    def empty_cache(self, rows: tf.Tensor, length: tf.Tensor) -> tuple[KeyValue, ...]:
        """Room for `length` positions of `rows` sentences, for each layer."""
        heads, depth = self.config["num_heads"], self.config["d_model"] // self.config["num_heads"]
        empty = tf.zeros((rows, heads, length, depth), self.compute_dtype)
        return tuple(KeyValue(empty, empty) for _ in self.layers)

    def step(
        self, embeddings: tf.Tensor, first: tf.Tensor, cache: tuple[KeyValue, ...], *memories
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """Positions first, first + 1, ... (R, T, D), which see the cache before them -> (R, T, D) and the new cache.

        A cache that is too short grows, but for one whose length is fixed in a graph.
        `memories`: what else the layers look up, each with one element for each layer.
        """
        x = self.enter(embeddings, first)
        cache = _with_room(cache, first + tf.shape(x)[1])
        mask = look_ahead_mask(tf.shape(x)[1], tf.shape(cache[0].key)[2], first)
        written = []
        for layer, layer_cache, *memory in zip(self.layers, cache, *memories, strict=True):
            x, layer_cache = layer.step(x, mask, layer_cache, first, *memory)
            written.append(layer_cache)
        return self.leave(x), tuple(written)

    def get_config(self) -> dict:
        return super().get_config() | self.config


def _with_room(cache: tuple[KeyValue, ...], length: tf.Tensor) -> tuple[KeyValue, ...]:
    """`cache`, or twice as much where `length` positions do not fit. In a graph one of a fixed shape stays as it is."""
    if cache[0].key.shape[2] is not None and not tf.executing_eagerly():
        return cache
    room = tf.shape(cache[0].key)[2]
    padding = ((0, 0), (0, 0), (0, room), (0, 0))
    return tf.cond(
        length <= room,
        lambda: cache,
        lambda: tf.nest.map_structure(lambda tensor: tf.pad(tensor, padding), cache),
    )


@register
class Encoder(_Stack):
    """Token embeddings (B, S, D) and a mask over the keys -> (B, S, D), such as the memory of a source.

    With look-ahead masks it is a decoder without cross-attention, and may go step by step.
    """

    layer_class = EncoderLayer

    def call(
        self, embeddings: tf.Tensor, mask: tf.Tensor | None = None, training: bool | None = None
    ) -> tf.Tensor:
        x = self.enter(embeddings, training=training)
        masks = () if mask is None else (mask,)  # Keras takes no None by position
        for layer in self.layers:
            x = layer(x, *masks, training=training)
        return self.leave(x)


@register
class Decoder(_Stack):
    """Token embeddings (B, T, D) and a memory (B, S, D) -> (B, T, D), all positions at once or step by step."""

    layer_class = DecoderLayer

    def call(self, embeddings, memory, mask=None, memory_mask=None, training=None) -> tf.Tensor:
        x = self.enter(embeddings, training=training)
        for layer in self.layers:
            x = layer(x, memory, mask, memory_mask=memory_mask, training=training)
        return self.leave(x)

    def project(self, memory: tf.Tensor, mask: tf.Tensor) -> Memory:
        """Each layer's keys and values of the memory (B, S, D): computed once, used at every step."""
        return Memory(tuple(layer.cross_attention.project(memory) for layer in self.layers), mask)

    def step(
        self, embeddings: tf.Tensor, first: tf.Tensor, cache: tuple[KeyValue, ...], memory: Memory
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """Positions first, first + 1, ... (R, T, D), which see the cache before them and the memory."""
        return super().step(
            embeddings, first, cache, memory.key_values, [memory.mask] * len(self.layers)
        )


def output_logits(
    hidden: tf.Tensor,
    embedding: TokenEmbedding,
    bias: tf.Variable | None,
    kernel: tf.Tensor | None = None,
) -> tf.Tensor:
    """Hidden states (..., D) -> logits (..., V), by the output embedding or by `kernel` (D, V), its transposed copy."""
    logits = embedding.logits(hidden) if kernel is None else tf.tensordot(hidden, kernel, axes=1)
    return logits if bias is None else logits + tf.cast(bias, logits.dtype)


@register
class Transformer(ShardedModel):
    """The encoder-decoder model for translation; id 0 is padding.

    `tie_embeddings`: "none"; "output": the output projection is the transposed target embedding; "all": source, target
    and output are one matrix, as in the paper (section 3.4), which needs one shared vocabulary and so is not the
    default. The rest are the names of the paper.
    Weights exist from construction on: nothing depends on a first call.
    """

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        num_layers: int = 6,
        d_model: int = 512,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        num_decoder_layers: int | None = None,
        tie_embeddings: str = "output",
        output_bias: bool = False,
        activation: str = "relu",
        norm: str = "post",
        use_bias: bool = True,
        epsilon: float = 1e-6,
        position_layout: str = "interleaved",
        **kwargs,
    ):
        super().__init__(**kwargs)
        if (
            require("tie_embeddings", tie_embeddings, TIES) == "all"
            and source_vocab_size != target_vocab_size
        ):
            raise ValueError(
                f"tie_embeddings='all' needs one shared vocabulary, but source_vocab_size={source_vocab_size} and "
                f"target_vocab_size={target_vocab_size}; share the vocabulary or choose 'output'"
            )
        self.vocab_sizes = {
            "source_vocab_size": source_vocab_size,
            "target_vocab_size": target_vocab_size,
        }
        self.ties = {"tie_embeddings": tie_embeddings, "output_bias": output_bias}
        stack = {
            "d_model": d_model,
            "num_heads": num_heads,
            "d_ff": d_ff,
            "dropout": dropout,
            "activation": activation,
            "norm": norm,
            "use_bias": use_bias,
            "epsilon": epsilon,
            "position_layout": position_layout,
            "dtype": self.dtype_policy,
        }
        self.source_embedding = TokenEmbedding(source_vocab_size, d_model, dtype=self.dtype_policy)
        self.target_embedding = self.source_embedding
        if tie_embeddings != "all":
            self.target_embedding = TokenEmbedding(
                target_vocab_size, d_model, dtype=self.dtype_policy
            )
        self.output_embedding = self.target_embedding
        if tie_embeddings == "none":
            self.output_embedding = TokenEmbedding(
                target_vocab_size, d_model, dtype=self.dtype_policy
            )
        self.encoder = Encoder(num_layers, **stack)
        self.decoder = Decoder(
            num_layers if num_decoder_layers is None else num_decoder_layers, **stack
        )
        self.build()

    def build(self, input_shape=None) -> None:
        if self.built:
            return
        for layer in (
            self.source_embedding,
            self.target_embedding,
            self.output_embedding,
            self.encoder,
            self.decoder,
        ):
            if not layer.built:
                layer.build(None)
        self.output_bias = None
        if self.ties["output_bias"]:
            self.output_bias = self.add_weight(
                shape=(self.vocab_sizes["target_vocab_size"],),
                initializer="zeros",
                name="output_bias",
            )
        self.built = True

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """{"source": (B, S), "target": (B, T)} ids -> logits (B, T, V) for the token after each target position."""
        return self.logits(self.hidden(inputs, training=training))

    def hidden(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """The inputs of `call` -> the decoder's hidden states (B, T, D), of which `logits` makes logits."""
        memory, memory_mask = self.encode(inputs["source"], training=training)
        return self._hidden(inputs["target"], memory, memory_mask, training)

    def encode(
        self, source: tf.Tensor, training: bool | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Source ids (B, S) -> memory (B, S, D) and its mask (B, 1, 1, S)."""
        mask = padding_mask(source)
        return self.encoder(
            self.source_embedding(source, training=training), mask, training=training
        ), mask

    def decode(
        self,
        target: tf.Tensor,
        memory: tf.Tensor,
        memory_mask: tf.Tensor,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Target ids (B, T), beginning with the start token, and a memory -> logits (B, T, V)."""
        return self.logits(self._hidden(target, memory, memory_mask, training))

    def _hidden(
        self,
        target: tf.Tensor,
        memory: tf.Tensor,
        memory_mask: tf.Tensor,
        training: bool | None,
    ) -> tf.Tensor:
        mask = look_ahead_mask(tf.shape(target)[1])
        embeddings = self.target_embedding(target, training=training)
        return self.decoder(embeddings, memory, mask, memory_mask, training=training)

    def memory(self, source: tf.Tensor) -> Memory:
        """Source ids (B, S) -> what every decoding step looks up."""
        return self.decoder.project(*self.encode(source))

    def decode_step(
        self, ids: tf.Tensor, step: tf.Tensor, cache: tuple[KeyValue, ...], memory: Memory
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """Ids (R,) at position `step`, given the cache of the positions before -> logits (R, V) and the new cache."""
        hidden, cache = self.hidden_step(ids, step, cache, memory)
        return self.logits(hidden), cache

    def hidden_step(
        self, ids: tf.Tensor, position: tf.Tensor, cache: tuple[KeyValue, ...], memory: Memory
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """As `decode_step`, but gives the decoder's hidden states (R, D), of which `logits` makes logits."""
        embeddings = self.target_embedding(ids[:, tf.newaxis])  # (R, 1, D)
        hidden, cache = self.decoder.step(embeddings, position, cache, memory)
        return hidden[:, 0], cache

    def logits(self, hidden: tf.Tensor, kernel: tf.Tensor | None = None) -> tf.Tensor:
        """Hidden states (..., D) -> logits (..., V): their product with the output embedding, transposed, and the bias.

        `kernel` (D, V) is a copy of the transposed output embedding, which a runtime may read faster.
        """
        return output_logits(hidden, self.output_embedding, self.output_bias, kernel)

    def get_config(self) -> dict:
        stack = self.encoder.get_config()
        names = (
            "num_layers",
            "d_model",
            "num_heads",
            "d_ff",
            "dropout",
            "activation",
            "norm",
            "use_bias",
            "epsilon",
        )
        config = {name: stack[name] for name in (*names, "position_layout")}
        config["num_decoder_layers"] = len(self.decoder.layers)
        return super().get_config() | self.vocab_sizes | self.ties | config
