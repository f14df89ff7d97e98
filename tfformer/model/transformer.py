"""The Transformer for translation (Vaswani et al. 2017, figure 1).

Shape letters: B batch, S source, T target, N beams, D d_model, V vocabulary, R rows being decoded
(B, or B times the beam size).
"""

from collections.abc import Mapping
from typing import Any, Unpack, get_args

import keras
import tensorflow as tf

from tfformer.argument_checks import require, require_number, require_size
from tfformer.config import DecoderKind, Dialect
from tfformer.model.base_layer import Activation, LayerOptions, Shape, arguments_of, register
from tfformer.model.cache import BeamCache, Cache, with_capacity
from tfformer.model.guided_alignment import alignment_loss
from tfformer.model.marian_layers import ZeroStartEmbedding
from tfformer.model.masks import padding_mask, positions_in_segments, segment_mask
from tfformer.model.recurrence import RecurrentDecoder
from tfformer.model.stacks import STACK_ARGUMENTS, Decoder, Encoder, ProjectedMemory
from tfformer.model.token_model import TIES, TokenModel

DECODER_KINDS = get_args(DecoderKind)


@register
class Transformer(TokenModel):
    """The encoder-decoder model for translation (figure 1).

    Token id 0 is padding. In training, `call` computes the logits of all target positions at once;
    `encode` and `decode` are its two parts. In a search, `encode_and_project` runs once and `step`
    once per token. `hidden` and `hidden_step` are `call` and `step` without the projection to
    logits.

    Args:
        source_vocab_size: Size of the source vocabulary.
        target_vocab_size: Size V of the target vocabulary.
        num_layers: Number of layers of the encoder, and of the decoder unless `num_decoder_layers`
            is given.
        d_model: Width of the model, the size of each vector; must be even.
        num_heads: Number of attention heads; must divide `d_model`.
        d_ff: Width of the feed-forward sub-layers' hidden layer.
        dropout: Dropout rate on the embeddings and on each sub-layer's output (section 5.4).
        num_decoder_layers: Number of layers of the decoder; by default `num_layers`.
        decoder_kind: How the decoder reads the target: "attention", or "ssru", see
            `SimpleRecurrentUnit`.
        tie_embeddings: "none": three matrices; "output": the output projection is the transposed
            target embedding; "all": source, target and output are one matrix, as in the paper
            (section 3.4); "input": source and target are one matrix. "all" and "input" need a
            shared vocabulary. Equal sizes do not prove a shared vocabulary, so the default is
            "output".
        activation: "relu", "gelu", "swish" or a function, see `FeedForward`.
        norm: "post" as in the paper, "pre", or "marian", which is "pre" as marian-decoder computes
            it.
        use_bias: Add a bias to the projections of the attentions.
        dialect: How an imported model differs from the paper: "paper", "marian", "m2m100", or a
            mapping of fields, see `Dialect`. The model itself ignores the fields that configure the
            search.
        **options: Keyword arguments of any Keras layer, see `LayerOptions`.

    Attributes:
        source_embedding: The `TokenEmbedding` of the source.
        target_embedding: The `TokenEmbedding` of the target.
        output_embedding: The `TokenEmbedding` whose transposed matrix projects to logits.
        output_bias: The bias (V,) of the logits, or None.
        encoder: The `Encoder`.
        decoder: The `Decoder`.
        encoder_class: The class of the encoder. A subclass may name a subclass of `Encoder`.
        decoder_class: The class of the decoder. A subclass may name a subclass of `Decoder`.

    Raises:
        ValueError: An argument is invalid, or `tie_embeddings` needs one shared vocabulary but the
            vocabulary sizes differ; the message names the argument and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> model = tfformer.Transformer(100, 120, num_layers=1, d_model=8, num_heads=2, d_ff=32)
        >>> source, target = numpy.array([[5, 7, 3]]), numpy.array([[2, 9, 8, 4]])
        >>> model({"source": source, "target": target}).shape
        TensorShape([1, 4, 120])
    """

    can_align = True  # whether `hidden_and_alignment` is available
    encoder_class = Encoder
    decoder_class = Decoder
    arguments = (
        "source_vocab_size",
        "target_vocab_size",
        *STACK_ARGUMENTS,
        "num_decoder_layers",
        "decoder_kind",
        "tie_embeddings",
    )

    def __init__(
        self,
        source_vocab_size: int,
        target_vocab_size: int,
        num_layers: int = 6,
        *,
        d_model: int = 512,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        num_decoder_layers: int | None = None,
        decoder_kind: str = "attention",
        tie_embeddings: str = "output",
        activation: Activation = "relu",
        norm: str = "post",
        use_bias: bool = True,
        dialect: str | Mapping[str, Any] | Dialect = "paper",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        require("tie_embeddings", tie_embeddings, TIES)
        if tie_embeddings in ("all", "input") and source_vocab_size != target_vocab_size:
            raise ValueError(
                f"tie_embeddings={tie_embeddings!r} needs one shared vocabulary, but "
                f"source_vocab_size={source_vocab_size} and target_vocab_size={target_vocab_size}; "
                "share the vocabulary or choose 'output'"
            )
        self.source_vocab_size = require_size("source_vocab_size", source_vocab_size)
        self.target_vocab_size = require_size("target_vocab_size", target_vocab_size)
        self.num_layers = require_size("num_layers", num_layers)
        self.d_model = require_size("d_model", d_model)
        self.num_heads = require_size("num_heads", num_heads)
        self.d_ff = require_size("d_ff", d_ff)
        self.dropout = require_number("dropout", dropout, below=1)
        if num_decoder_layers is None:
            num_decoder_layers = num_layers
        self.num_decoder_layers = require_size("num_decoder_layers", num_decoder_layers)
        self.decoder_kind = require("decoder_kind", decoder_kind, DECODER_KINDS)
        self.tie_embeddings = tie_embeddings
        self.activation = activation
        self.norm = norm
        self.use_bias = use_bias
        self.dialect = Dialect.of(dialect)
        self._add_embeddings()
        self._add_stacks()
        self.build({"source": (None, None), "target": (None, None)})  # no shape depends on a call

    def _add_embeddings(self) -> None:
        """Create the embeddings; embeddings that `tie_embeddings` ties are one object."""
        ties = self.tie_embeddings
        if self.dialect.zero_start:  # every target begins with a start token, but no source
            self.embedding_class = ZeroStartEmbedding
        name_of_source = "shared_embedding" if ties == "all" else "source_embedding"
        self.source_embedding = self._embedding(self.source_vocab_size, name_of_source)
        self.target_embedding = self.source_embedding
        if ties not in ("all", "input"):
            self.target_embedding = self._embedding(self.target_vocab_size, "target_embedding")
        self.output_embedding = self.target_embedding
        if ties not in ("all", "output"):
            self.output_embedding = self._embedding(self.target_vocab_size, "output_embedding")

    def _add_stacks(self) -> None:
        """Create the encoder and the decoder."""
        arguments = arguments_of(self, (*STACK_ARGUMENTS, "dialect"))
        arguments |= {"dtype": self.dtype_policy}
        self.encoder = self.encoder_class(**arguments, name="encoder")
        arguments |= {
            "num_layers": self.num_decoder_layers,
            "num_heads": self.dialect.num_decoder_heads or self.num_heads,
            "d_ff": self.dialect.decoder_d_ff or self.d_ff,
        }
        decoder_class = RecurrentDecoder if self.decoder_kind == "ssru" else self.decoder_class
        self.decoder = decoder_class(**arguments, name="decoder")

    def build(
        self, inputs_shape: dict[str, Shape] | None = None, target_shape: Shape | None = None
    ) -> None:
        if self.built:
            return
        self._build_embeddings(self.source_embedding, self.target_embedding, self.output_embedding)
        vectors = (None, None, self.d_model)
        self.encoder.build(vectors)
        self.decoder.build(vectors)
        self._create_output_bias(self.target_vocab_size)

    def call(
        self,
        inputs: dict[str, tf.Tensor] | list[tf.Tensor] | tf.Tensor,
        target: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Compute the logits for the token after each target position.

        Args:
            inputs: {"source": ids (B, S), "target": ids (B, T)}, or [source, target], or the source
                alone. Ids are integers; a target begins with the start token.
            target: Target ids (B, T), if `inputs` is only the source.
            training: Whether to apply dropout.

        Returns:
            Logits (B, T, V); for SimCut (2, B, T, V), see `hidden`.

        Raises:
            ValueError: Source or target is missing.
        """
        return self.logits(self.hidden(_source_and_target(inputs, target), training=training))

    def hidden(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Compute the decoder's hidden states; `logits` projects them to the vocabulary.

        Args:
            inputs: {"source": ids (B, S), "target": ids (B, T)}. Packed rows, which contain several
                sentences, also have "source_segments" (B, S) and "target_segments" (B, T), see
                `segment_mask`. For SimCut, "source_kept" (B, S) and "target_kept" (B, T) are 0 at
                the tokens to cut and 1 at all others. With "links" (B, T), the `alignment_loss` of
                the penultimate layer's first head is added to the losses, times `guided_alignment`.
            training: Whether to apply dropout.

        Returns:
            Vectors (B, T, D). For SimCut (2, B, T, D): first of the rows, then of the same rows
            with embeddings of 0 at the tokens to cut.
        """
        source = self.source_embedding(inputs["source"], training=training)  # (B, S, D)
        target = self.target_embedding(inputs["target"], training=training)  # (B, T, D)
        if "source_kept" not in inputs:
            return self._hidden(source, target, inputs, training)
        source = _followed_by_cut(source, inputs["source_kept"])  # (2 * B, S, D)
        target = _followed_by_cut(target, inputs["target_kept"])
        twice = {name: tf.concat([ids, ids], axis=0) for name, ids in inputs.items()}
        hidden = self._hidden(source, target, twice, training)  # (2 * B, T, D)
        return tf.reshape(hidden, [2, -1, tf.shape(hidden)[1], self.d_model])

    def hidden_and_alignment(self, inputs: dict[str, tf.Tensor]) -> tuple[tf.Tensor, tf.Tensor]:
        """Compute `hidden`, and the attention (B, T, S) of target to source positions.

        The penultimate decoder layer aligns best (Garg et al. 2019, "Jointly Learning to Align and
        Translate with Transformer Models"). Its first head is used if it was trained to align
        (`guided_alignment`), otherwise the mean of its heads.
        """
        memory, mask = self.encode(inputs["source"])
        embeddings = self.target_embedding(inputs["target"])  # (B, T, D)
        hidden, weights = self.decoder(embeddings, memory, memory_mask=mask, return_weights=True)
        return hidden, weights[:, 0] if self.guided_alignment else tf.reduce_mean(weights, axis=1)

    def _hidden(
        self,
        source: tf.Tensor,
        target: tf.Tensor,
        inputs: dict[str, tf.Tensor],
        training: bool | None,
    ) -> tf.Tensor:
        """Compute the hidden states (B, T, D) of embedded sources and targets."""
        if "source_segments" not in inputs:
            mask = padding_mask(inputs["source"])
            memory = self.encoder(source, mask, training=training)  # (B, S, D)
            arguments = {"memory_mask": mask, "training": training}
        else:
            source_segments, target_segments = inputs["source_segments"], inputs["target_segments"]
            mask = segment_mask(source_segments, source_segments)
            positions = positions_in_segments(source_segments)
            memory = self.encoder(source, mask, training=training, segment_positions=positions)
            arguments = {
                "attention_mask": segment_mask(target_segments, target_segments),
                "memory_mask": segment_mask(target_segments, source_segments),
                "segment_positions": positions_in_segments(target_segments),
                "training": training,
            }
        if "links" not in inputs:
            return self.decoder(target, memory, **arguments)
        hidden, weights = self.decoder(target, memory, **arguments, return_weights=True)
        nats = alignment_loss(weights[:, 0], inputs["links"], inputs["target"])
        self.add_loss(self.guided_alignment * nats)
        return hidden

    def encode(
        self, source: tf.Tensor, training: bool | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Encode a source.

        Args:
            source: Ids (B, S), 0 = padding.
            training: Whether to apply dropout.

        Returns:
            The memory (B, S, D) and its mask (B, 1, 1, S).
        """
        mask = padding_mask(source)
        embeddings = self.source_embedding(source, training=training)  # (B, S, D)
        return self.encoder(embeddings, mask, training=training), mask

    def decode(
        self,
        target: tf.Tensor,
        memory: tf.Tensor,
        memory_mask: tf.Tensor,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Decode a target, all positions at once.

        Args:
            target: Ids (B, T), beginning with the start token.
            memory: The encoded source (B, S, D).
            memory_mask: Its mask (B, 1, 1, S).
            training: Whether to apply dropout.

        Returns:
            Logits (B, T, V).
        """
        embeddings = self.target_embedding(target, training=training)  # (B, T, D)
        hidden = self.decoder(embeddings, memory, memory_mask=memory_mask, training=training)
        return self.logits(hidden)

    def encode_and_project(self, source: tf.Tensor) -> ProjectedMemory:
        """Encode source ids (B, S) and project the memory to keys and values for all steps."""
        memory, mask = self.encode(source)
        return self.decoder.project_memory(memory, mask)

    def step(
        self, ids: tf.Tensor, position: tf.Tensor | int, cache: Cache, memory: ProjectedMemory
    ) -> tuple[tf.Tensor, Cache]:
        """Decode T new positions: one in a step of a search, several for a prefix.

        Args:
            ids: Target ids (R, T) int32 at positions `position`, `position + 1`, ...
            position: The first of these positions, from 0 on.
            cache: Keys and values of the earlier positions, see `decoder.empty_cache`. A cache that
                is too short is enlarged, unless it has a static shape inside a graph.
            memory: The projected memory of R rows, see `encode_and_project`.

        Returns:
            Logits (R, T, V), and the cache with these positions added.
        """
        cache = with_capacity(cache, position + tf.shape(ids)[1])
        hidden, cache = self.hidden_step(ids, position, cache, memory)
        return self.logits(hidden), cache

    def hidden_step(
        self, ids: tf.Tensor, position: tf.Tensor | int, cache: Cache, memory: ProjectedMemory
    ) -> tuple[tf.Tensor, Cache]:
        """Decode as `step` does, but return hidden states (R, T, D) in place of logits.

        Inside a graph the cache must have capacity for these positions.
        """
        embeddings = self.target_embedding(ids)  # (R, T, D)
        return self.decoder.step(embeddings, position, cache, memory)

    def hidden_beam_step(
        self, ids: tf.Tensor, position: tf.Tensor | int, cache: BeamCache, memory: ProjectedMemory
    ) -> tuple[tf.Tensor, BeamCache]:
        """Decode the next position of N beams of each sentence.

        Args:
            ids: Target ids (B, N) int32, all at `position`; N must be known statically.
            position: The position, counted from 0.
            cache: The beams' cache, see `decoder.empty_beam_cache`; inside a graph it must have
                capacity for this position.
            memory: The projected memory of B rows, see `encode_and_project`.

        Returns:
            Hidden states (B, N, D), and the cache with this position added.
        """
        embeddings = self.target_embedding(ids)  # (B, N, D)
        return self.decoder.beam_step(embeddings, position, cache, memory)

    def compute_output_shape(
        self,
        inputs_shape: dict[str, Shape] | list[Shape],
        target_shape: Shape | None = None,
    ) -> Shape:
        if isinstance(inputs_shape, dict):
            target_shape = inputs_shape["target"]
        elif target_shape is None:
            _, target_shape = inputs_shape
        return (*target_shape, self.target_vocab_size)

    def input_signature(self) -> list[dict[str, keras.InputSpec]]:
        """Return the inputs for Keras' `export`: int32 ids of source and target, of any shape."""
        sides = ("source", "target")
        return [{side: keras.InputSpec(dtype="int32", shape=(None, None)) for side in sides}]


def _followed_by_cut(vectors: tf.Tensor, kept: tf.Tensor) -> tf.Tensor:
    """Append the vectors (B, T, D), multiplied by 0 at the tokens to cut: (2 * B, T, D)."""
    factors = tf.cast(kept[..., tf.newaxis], vectors.dtype)
    return tf.concat([vectors, vectors * factors], axis=0)


def _source_and_target(
    inputs: dict[str, tf.Tensor] | list[tf.Tensor] | tf.Tensor, target: tf.Tensor | None
) -> dict[str, tf.Tensor]:
    """Return the inputs of `Transformer.call`, in any of its forms, as a dictionary."""
    if isinstance(inputs, dict) and {"source", "target"} <= set(inputs):
        return inputs
    if isinstance(inputs, list | tuple) and len(inputs) == 2:
        return {"source": inputs[0], "target": inputs[1]}
    if target is not None and not isinstance(inputs, dict | list | tuple):
        return {"source": inputs, "target": target}
    names = f"the names {sorted(inputs)}" if isinstance(inputs, dict) else type(inputs).__name__
    raise ValueError(
        f"the inputs are {names}; a Transformer accepts "
        "{'source': ids (B, S), 'target': ids (B, T)}, [source, target], or model(source, target)"
    )
