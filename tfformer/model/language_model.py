"""The decoder without an encoder: an autoregressive language model.

Shape letters: B batch, T positions, D d_model, H heads, V vocabulary, L cache capacity, R rows
being continued.
"""

from collections.abc import Mapping
from typing import Any, Unpack

import keras
import tensorflow as tf

from tfformer.argument_checks import require, require_number, require_size
from tfformer.config import Dialect
from tfformer.model.base_layer import Activation, LayerOptions, Shape, arguments_of, register
from tfformer.model.cache import Cache, with_capacity
from tfformer.model.masks import look_ahead_mask, positions_in_segments, segment_mask
from tfformer.model.stacks import STACK_ARGUMENTS, Encoder
from tfformer.model.token_model import TIES, TokenModel, ToLogits
from tfformer.special_ids import END_ID, START_ID


@register
class LanguageModel(TokenModel):
    """A decoder-only Transformer: an autoregressive language model.

    It uses encoder layers with a look-ahead mask, which are decoder layers without cross-attention
    (Liu et al. 2018, section 4.2.3). The probability of a sequence is exact: log p(x) = sum over t
    of log p(x_t | x_<t), including the end token. Padding may follow. The arguments without a
    description are those of `Transformer`.

    Args:
        vocab_size: Size V of the vocabulary.
        tie_embeddings: With "none" or "input" the output projection is a separate matrix, otherwise
            the transposed embedding.
        norm: "post" as in the paper, or "pre".

    Attributes:
        embedding: The `TokenEmbedding` of the input tokens.
        output_embedding: The `TokenEmbedding` whose transposed matrix projects to logits.
        output_bias: The bias (V,) of the logits, or None.
        stack: The layers, an `Encoder`.
        stack_class: The class of the stack. A subclass may name a subclass of `Encoder`.

    Raises:
        ValueError: An argument is invalid; the message names it and its valid values.

    Example:
        >>> import numpy, tfformer
        >>> model = tfformer.LanguageModel(100, num_layers=1, d_model=8, num_heads=2, d_ff=32)
        >>> model(numpy.array([[2, 9, 8, 4]])).shape
        TensorShape([1, 4, 100])
    """

    stack_class = Encoder
    arguments = ("vocab_size", *STACK_ARGUMENTS, "tie_embeddings")

    def __init__(
        self,
        vocab_size: int,
        num_layers: int = 6,
        d_model: int = 512,
        *,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
        tie_embeddings: str = "output",
        activation: Activation = "relu",
        norm: str = "post",
        use_bias: bool = True,
        dialect: str | Mapping[str, Any] | Dialect = "paper",
        **options: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**options)
        self.vocab_size = require_size("vocab_size", vocab_size)
        self.num_layers = require_size("num_layers", num_layers)
        self.d_model = require_size("d_model", d_model)
        self.num_heads = require_size("num_heads", num_heads)
        self.d_ff = require_size("d_ff", d_ff)
        self.dropout = require_number("dropout", dropout, below=1)
        self.tie_embeddings = require("tie_embeddings", tie_embeddings, TIES)
        self.activation = activation
        self.norm = require("norm", norm, ("post", "pre"))
        self.use_bias = use_bias
        self.dialect = Dialect.of(dialect)
        self.embedding = self._embedding(self.vocab_size, "embedding")
        self.output_embedding = self.embedding
        if tie_embeddings in ("none", "input"):
            self.output_embedding = self._embedding(self.vocab_size, "output_embedding")
        arguments = arguments_of(self, (*STACK_ARGUMENTS, "dialect"))
        self.stack = self.stack_class(**arguments, name="stack", dtype=self.dtype_policy)
        self.build((None, None))

    def build(self, ids_shape: Shape | None = None) -> None:
        if self.built:
            return
        self._build_embeddings(self.embedding, self.output_embedding)
        self.stack.build((None, None, self.d_model))
        self._create_output_bias(self.vocab_size)

    def call(
        self, ids: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None
    ) -> tf.Tensor:
        """Compute the logits for the token after each position.

        Args:
            ids: Integers (B, T), beginning with the start token. Pass packed rows, which contain
                several sentences, as {"target": ids, "target_segments": (B, T)}, see
                `segment_mask`.
            training: Whether to apply dropout.

        Returns:
            Logits (B, T, V).
        """
        return self.logits(self.hidden(ids, training=training))

    def hidden(
        self, ids: tf.Tensor | dict[str, tf.Tensor], training: bool | None = None
    ) -> tf.Tensor:
        """Compute the hidden states (B, T, D) of ids (B, T); the arguments are those of `call`.

        `logits` projects them to the vocabulary.
        """
        segments = None
        if isinstance(ids, dict):
            ids, segments = ids["target"], ids["target_segments"]
        mask = look_ahead_mask(tf.shape(ids)[1])  # (1, 1, T, T)
        embeddings = self.embedding(ids, training=training)  # (B, T, D)
        if segments is None:
            return self.stack(embeddings, mask, training=training)
        mask &= segment_mask(segments, segments)  # (B, 1, T, T)
        segment_positions = positions_in_segments(segments)
        return self.stack(embeddings, mask, training=training, segment_positions=segment_positions)

    def step(
        self, ids: tf.Tensor, position: tf.Tensor | int, cache: Cache
    ) -> tuple[tf.Tensor, Cache]:
        """Read T new positions: one in a step of a search, several for a prefix.

        Args:
            ids: Token ids (R, T) at positions `position`, `position + 1`, ...
            position: The first of these positions, from 0 on.
            cache: Keys and values of the earlier positions, see `stack.empty_cache`. A cache that
                is too short is enlarged, unless it has a static shape inside a graph.

        Returns:
            Logits (R, T, V), and the cache with these positions added.
        """
        cache = with_capacity(cache, position + tf.shape(ids)[1])
        hidden, cache = self.hidden_step(ids, position, cache)
        return self.logits(hidden), cache

    def hidden_step(
        self, ids: tf.Tensor, position: tf.Tensor | int, cache: Cache
    ) -> tuple[tf.Tensor, Cache]:
        """Read as `step` does, but return hidden states (R, T, D) in place of logits.

        Inside a graph the cache must have capacity for these positions.
        """
        return self.stack.step(self.embedding(ids), position, cache)

    def token_log_probs(self, ids: tf.Tensor, to_logits: ToLogits | None = None) -> tf.Tensor:
        """Compute log p(x_t | x_1 ... x_{t-1}) of each token.

        Args:
            ids: Sequences (B, T) int32, without the start token. A row without an end token is only
                the beginning of a sequence.
            to_logits: Projects hidden states (..., D) to logits (..., V); by default `logits`.

        Returns:
            Log-probabilities (B, T) float32 in nats, 0 after the end token.
        """
        to_logits = to_logits or self.logits
        starts = tf.fill((tf.shape(ids)[0], 1), START_ID)
        hidden = self.hidden(tf.concat([starts, ids], axis=1)[:, :-1])  # (B, T, D)
        logits = tf.cast(to_logits(hidden), tf.float32)  # (B, T, V)
        log_probs = -tf.nn.sparse_softmax_cross_entropy_with_logits(ids, logits)
        is_over = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1, exclusive=True) > 0
        return tf.where(is_over, 0.0, log_probs)

    def log_prob(self, ids: tf.Tensor, to_logits: ToLogits | None = None) -> tf.Tensor:
        """Compute log p(x_1 ... x_T) of whole sequences.

        Args:
            ids: Sequences (B, T) int32, each with its end token.
            to_logits: Projects hidden states (..., D) to logits (..., V); by default `logits`.

        Returns:
            Log-probabilities (B,) float32 in nats.
        """
        return tf.reduce_sum(self.token_log_probs(ids, to_logits), axis=1)

    def compute_output_shape(self, ids_shape: Shape) -> Shape:
        return (*ids_shape, self.vocab_size)

    def input_signature(self) -> list[keras.InputSpec]:
        """Return the input for Keras' `export`: int32 ids of any shape."""
        return [keras.InputSpec(dtype="int32", shape=(None, None))]
