"""The decoder alone: an autoregressive model of sequences, of the Transformer's layers. Knows no text and no files.

Shape letters: B batch, T positions, V vocabulary, R rows being continued.
"""

import tensorflow as tf

from tfformer.model.batch_shards import ShardedModel
from tfformer.model.layers import KeyValue, TokenEmbedding, register, require
from tfformer.model.masks import look_ahead_mask
from tfformer.model.transformer import TIES, Encoder, ToLogits, output_logits
from tfformer.special_ids import END_ID, START_ID


@register
class LanguageModel(ShardedModel):
    """p(x_1 ... x_T) = p(x_1) p(x_2 | x_1) ... p(x_T | x_1 ... x_{T-1}), where x_T is the end token.

    Each factor is p(x_t | x_1 ... x_{t-1}) = Cat(softmax(f_t(x_1 ... x_{t-1}))): a neural autoregressive distribution
    estimator (NADE, Larochelle and Murray 2011) whose f_t are one Transformer. Its layers are the encoder's under a
    look-ahead mask, which is the decoder without cross-attention (Liu et al. 2018, section 4.2.3). So a sequence has an
    exact probability, and those of all sequences sum to 1. A row ends at its end token; what follows is padding.

    `tie_embeddings`: with "none" the output projection is a matrix of its own, otherwise the transposed embedding. The
    rest are the names of the paper. Weights exist from construction on.
    """

    def __init__(
        self,
        vocab_size: int,
        num_layers: int = 6,
        d_model: int = 512,
        num_heads: int = 8,
        d_ff: int = 2048,
        dropout: float = 0.1,
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
        self.vocab_size = vocab_size
        self.ties = {
            "tie_embeddings": require("tie_embeddings", tie_embeddings, TIES),
            "output_bias": output_bias,
        }
        self.embedding = TokenEmbedding(vocab_size, d_model, dtype=self.dtype_policy)
        self.output_embedding = self.embedding
        if tie_embeddings == "none":
            self.output_embedding = TokenEmbedding(vocab_size, d_model, dtype=self.dtype_policy)
        self.stack = Encoder(
            num_layers=num_layers,
            d_model=d_model,
            num_heads=num_heads,
            d_ff=d_ff,
            dropout=dropout,
            activation=activation,
            norm=norm,
            use_bias=use_bias,
            epsilon=epsilon,
            position_layout=position_layout,
            dtype=self.dtype_policy,
        )
        self.build()

    def build(self, input_shape=None) -> None:
        if self.built:
            return
        for layer in (self.embedding, self.output_embedding, self.stack):
            if not layer.built:
                layer.build(None)
        self.output_bias = None
        if self.ties["output_bias"]:
            self.output_bias = self.add_weight(
                shape=(self.vocab_size,), initializer="zeros", name="output_bias"
            )
        self.built = True

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Ids (B, T), beginning with the start token -> logits (B, T, V) for the token after each position."""
        return self.logits(self.hidden(ids, training=training))

    def hidden(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Ids (B, T), beginning with the start token -> hidden states (B, T, D), of which `logits` makes logits."""
        mask = look_ahead_mask(tf.shape(ids)[1])
        return self.stack(self.embedding(ids, training=training), mask, training=training)

    def step(
        self, ids: tf.Tensor, first: tf.Tensor | int, cache: tuple[KeyValue, ...]
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """Ids (R, T) at positions first, first + 1, ..., and the cache of those before -> logits (R, T, V), new cache.

        One position is a step of a search, several are a prefix.
        """
        hidden, cache = self.hidden_step(ids, first, cache)
        return self.logits(hidden), cache

    def hidden_step(
        self, ids: tf.Tensor, first: tf.Tensor | int, cache: tuple[KeyValue, ...]
    ) -> tuple[tf.Tensor, tuple[KeyValue, ...]]:
        """As `step`, but gives hidden states (R, T, D), of which `logits` makes logits."""
        return self.stack.step(self.embedding(ids), first, cache)

    def token_log_probs(self, ids: tf.Tensor, to_logits: ToLogits | None = None) -> tf.Tensor:
        """Sequences (B, T) int32, without start token -> log p(x_t | x_1 ... x_{t-1}) (B, T) in nats.

        0 after the end token. A row without one is only the beginning of a sequence. `to_logits` takes the place of
        `logits`.
        """
        to_logits = to_logits or self.logits
        starts = tf.fill((tf.shape(ids)[0], 1), START_ID)
        hidden = self.hidden(tf.concat([starts, ids[:, :-1]], axis=1))
        logits = tf.cast(to_logits(hidden), tf.float32)
        log_probs = -tf.nn.sparse_softmax_cross_entropy_with_logits(ids, logits)
        is_over = tf.cumsum(tf.cast(ids == END_ID, tf.int32), axis=1, exclusive=True) > 0
        return tf.where(is_over, 0.0, log_probs)

    def log_prob(self, ids: tf.Tensor, to_logits: ToLogits | None = None) -> tf.Tensor:
        """Sequences (B, T) int32, each with its end token -> log p(x_1 ... x_T) (B,) in nats."""
        return tf.reduce_sum(self.token_log_probs(ids, to_logits), axis=1)

    def logits(self, hidden: tf.Tensor, kernel: tf.Tensor | None = None) -> tf.Tensor:
        """Hidden states (..., D) -> logits (..., V); `kernel` as in `Transformer.logits`."""
        return output_logits(hidden, self.output_embedding, self.output_bias, kernel)

    def get_config(self) -> dict:
        stack = self.stack.get_config()
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
        return super().get_config() | {"vocab_size": self.vocab_size} | self.ties | config
