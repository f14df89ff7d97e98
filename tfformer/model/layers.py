"""The Transformer's layers (Vaswani et al. 2017, section 3). Knows no configuration, no text and no search.

Shape letters: B batch, T query positions, S key positions, D d_model, H heads, L cache length, V vocabulary.
"""

from typing import NamedTuple

import keras
import tensorflow as tf

register = keras.saving.register_keras_serializable(package="tfformer")

ACTIVATIONS = ("relu", "gelu", "swish")
NORMS = ("post", "pre")
POSITION_LAYOUTS = ("interleaved", "halves")
UPDATE_SLICE = 'name: "dynamic_update_slice" attr { key: "tfl_fusable_op" value { b: true } }'


def require(name: str, value: object, known: tuple) -> object:
    """Return `value` if it is one of `known`; otherwise a ValueError that lists them."""
    if value not in known:
        raise ValueError(
            f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}"
        )
    return value


def positional_encoding(
    positions: tf.Tensor, d_model: int, layout: str = "interleaved"
) -> tf.Tensor:
    """Positions (T,) -> (T, D) float32: sine and cosine of pos / 10000^(2i / d_model) (section 3.5).

    `interleaved` is the paper's order (sin, cos, sin, cos, ...), `halves` has all sines before all cosines.
    Always computed in float32: in bfloat16 neighbouring positions above 256 would be equal.
    """
    exponents = tf.range(0, d_model, 2, dtype=tf.float32) / d_model
    angles = tf.cast(positions, tf.float32)[:, tf.newaxis] * tf.pow(10000.0, -exponents)
    if layout == "halves":
        return tf.concat([tf.sin(angles), tf.cos(angles)], axis=-1)
    return tf.reshape(tf.stack([tf.sin(angles), tf.cos(angles)], axis=-1), (-1, d_model))


@register
class PositionalEncoding(keras.layers.Layer):
    """Adds the encoding of positions first, first + 1, ... to embeddings (B, T, D). No weights, no length limit."""

    def __init__(self, d_model: int, layout: str = "interleaved", **kwargs):
        super().__init__(**kwargs)
        if d_model % 2:
            raise ValueError(
                f"d_model={d_model} is odd; sines and cosines come in pairs, so choose an even d_model"
            )
        self.d_model = d_model
        self.layout = require("layout", layout, POSITION_LAYOUTS)

    def call(self, embeddings: tf.Tensor, first: tf.Tensor | int = 0) -> tf.Tensor:
        positions = first + tf.range(tf.shape(embeddings)[1])
        return embeddings + tf.cast(
            positional_encoding(positions, self.d_model, self.layout), embeddings.dtype
        )

    def get_config(self) -> dict:
        return super().get_config() | {"d_model": self.d_model, "layout": self.layout}


@tf.custom_gradient
def _gather_with_dense_gradient(table: tf.Tensor, ids: tf.Tensor):
    """`tf.gather`, with the gradients of a repeated id summed: Keras' Adam would square each of them by itself."""

    def gradient(upstream: tf.Tensor):
        return tf.math.unsorted_segment_sum(upstream, ids, tf.shape(table)[0]), None

    return tf.gather(table, ids), gradient


@register
class TokenEmbedding(keras.layers.Layer):
    """Token ids (B, T) -> (B, T, D), scaled by sqrt(d_model); its transpose gives the logits (section 3.4).

    Initialised with standard deviation d_model^-0.5, so that both ends have unit variance.
    """

    def __init__(self, vocab_size: int, d_model: int, **kwargs):
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.d_model = d_model

    def build(self, input_shape=None) -> None:
        initializer = keras.initializers.RandomNormal(stddev=self.d_model**-0.5)
        self.embeddings = self.add_weight(
            shape=(self.vocab_size, self.d_model),
            initializer=initializer,
            name="embeddings",
            autocast=False,
        )

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        look_up = _gather_with_dense_gradient if training else tf.gather
        flat = look_up(
            tf.convert_to_tensor(self.embeddings), tf.reshape(ids, (-1,))
        )  # what LiteRT can quantise
        flat = tf.cast(flat, self.compute_dtype)
        return (
            tf.reshape(flat, tf.concat([tf.shape(ids), [self.d_model]], axis=0)) * self.d_model**0.5
        )

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """(..., D) -> (..., V): the product with the transposed embedding.

        All positions make one product: of one for each sentence, the gradient would be a (B, V, D), to be summed.
        """
        flat = tf.reshape(
            x, (1, -1, self.d_model)
        )  # a batch of one: TensorFlow's plain product is slower for few rows
        logits = tf.matmul(flat, tf.cast(self.embeddings, x.dtype), transpose_b=True)
        return tf.reshape(logits, tf.concat([tf.shape(x)[:-1], [self.vocab_size]], axis=0))

    def get_config(self) -> dict:
        return super().get_config() | {"vocab_size": self.vocab_size, "d_model": self.d_model}


class Dense(keras.layers.Dense):
    """Keras' layer as one product of two matrices: (..., I) -> (..., units).

    Keras multiplies what has more axes by `tensordot`, which works out its shapes in a dozen operations at every step.
    """

    def call(self, x: tf.Tensor) -> tf.Tensor:
        flat = super().call(tf.reshape(x, (-1, x.shape[-1])))
        return tf.reshape(flat, tf.concat([tf.shape(x)[:-1], [self.units]], axis=0))


class KeyValue(NamedTuple):
    """Projected keys and values, each (B, H, L, D // H): what attention looks up, and what a decoder caches."""

    key: tf.Tensor
    value: tf.Tensor

    def write(self, new: "KeyValue", first: tf.Tensor) -> "KeyValue":
        """This cache with `new`'s positions (B, H, T, D // H) in the places first, first + 1, ..., first + T - 1."""
        begin = tf.stack([0, 0, first, 0])
        update = tf.function(
            _update_slice, autograph=False, experimental_implements=UPDATE_SLICE
        )  # for these shapes
        return KeyValue(update(self.key, new.key, begin), update(self.value, new.value, begin))


def _update_slice(cache: tf.Tensor, new: tf.Tensor, begin: tf.Tensor) -> tf.Tensor:
    """`cache` with `new` from `begin` (4,) on. Named, so that an exporter can put its runtime's own operation here."""
    return tf.raw_ops.TensorStridedSliceUpdate(
        input=cache, begin=begin, end=begin + tf.shape(new), strides=tf.ones_like(begin), value=new
    )


@register
class MultiHeadAttention(keras.layers.Layer):
    """softmax(Q K^T / sqrt(d_k)) V in `num_heads` heads of d_model / num_heads (section 3.2, eq. 1).

    `call` attends from a sequence to a memory. A decoder with a cache uses its two halves: `project` the memory once,
    then `attend` to it at each step.
    """

    def __init__(self, d_model: int, num_heads: int, use_bias: bool = True, **kwargs):
        super().__init__(**kwargs)
        if d_model % num_heads:
            raise ValueError(
                f"d_model={d_model} cannot be split into num_heads={num_heads} equal heads; choose a divisor"
            )
        self.d_model = d_model
        self.num_heads = num_heads
        self.use_bias = use_bias
        dense = {"use_bias": use_bias, "dtype": self.dtype_policy}
        self.query = Dense(d_model, name="query", **dense)
        self.key_value = Dense(2 * d_model, name="key_value", **dense)
        self.output_projection = Dense(d_model, name="output", **dense)

    def build(self, query_shape=None, memory_shape=None) -> None:
        for dense in (self.query, self.key_value, self.output_projection):
            dense.build((None, None, self.d_model))

    def call(
        self,
        query: tf.Tensor,
        memory: tf.Tensor,
        mask: tf.Tensor | None = None,
        return_weights: bool = False,
    ):
        """Query (B, T, D) and memory (B, S, D) -> (B, T, D); with `return_weights` also the weights (B, H, T, S)."""
        output, weights = self.attend(query, self.project(memory), mask)
        return (output, weights) if return_weights else output

    def project(self, memory: tf.Tensor) -> KeyValue:
        """Memory (B, S, D) -> its keys and values in heads."""
        shape, depth = tf.shape(memory), self.d_model // self.num_heads
        both = tf.reshape(self.key_value(memory), (shape[0], shape[1], 2, self.num_heads, depth))
        return KeyValue(*tf.unstack(tf.transpose(both, (2, 0, 3, 1, 4))))

    def attend(
        self, query: tf.Tensor, memory: KeyValue, mask: tf.Tensor | None = None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Query (B, T, D) and projected memory -> output (B, T, D) and weights (B, H, T, S), exactly 0 where masked."""
        query = self._split_heads(self.query(query)) * (self.d_model // self.num_heads) ** -0.5
        scores = tf.matmul(query, memory.key, transpose_b=True)
        if mask is not None:
            scores += tf.where(mask, tf.zeros((), scores.dtype), scores.dtype.min / 2)
        weights = tf.nn.softmax(scores)
        return self.output_projection(self._merge_heads(tf.matmul(weights, memory.value))), weights

    def _split_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, T, D) -> (B, H, T, D // H)."""
        shape = tf.shape(x)
        return tf.transpose(
            tf.reshape(x, (shape[0], shape[1], self.num_heads, self.d_model // self.num_heads)),
            (0, 2, 1, 3),
        )

    def _merge_heads(self, x: tf.Tensor) -> tf.Tensor:
        """(B, H, T, D // H) -> (B, T, D)."""
        shape = tf.shape(x)
        return tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (shape[0], shape[2], self.d_model))

    def get_config(self) -> dict:
        return super().get_config() | {
            "d_model": self.d_model,
            "num_heads": self.num_heads,
            "use_bias": self.use_bias,
        }


@register
class FeedForward(keras.layers.Layer):
    """Position-wise max(0, x W1 + b1) W2 + b2 (section 3.3, eq. 2), or with gelu or swish in place of relu."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.d_model = d_model
        self.d_ff = d_ff
        self.activation = require("activation", activation, ACTIVATIONS)
        self.inner = Dense(d_ff, activation=activation, name="inner", dtype=self.dtype_policy)
        self.outer = Dense(d_model, name="outer", dtype=self.dtype_policy)

    def build(self, input_shape=None) -> None:
        self.inner.build((None, None, self.d_model))
        self.outer.build((None, None, self.d_ff))

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.outer(self.inner(x))

    def get_config(self) -> dict:
        return super().get_config() | {
            "d_model": self.d_model,
            "d_ff": self.d_ff,
            "activation": self.activation,
        }


@register
class LayerNormalization(keras.layers.LayerNormalization):
    """Keras' layer over the last axis, with a written-out gradient where it is trained: fewer passes over memory."""

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        x = tf.cast(x, tf.float32)  # its squares are summed
        normal = (
            _normalize_with_short_gradient(x, self.epsilon)
            if training
            else _normalize(x, self.epsilon)[0]
        )
        return tf.cast(
            normal * tf.cast(self.gamma, tf.float32) + tf.cast(self.beta, tf.float32),
            self.compute_dtype,
        )


def _normalize(x: tf.Tensor, epsilon: float) -> tuple[tf.Tensor, tf.Tensor]:
    """(..., D) -> (..., D) of mean 0 and variance 1 (Ba et al. 2016, eq. 3), and what it was multiplied by."""
    centred = x - tf.reduce_mean(x, -1, keepdims=True)
    scale = tf.math.rsqrt(tf.reduce_mean(tf.square(centred), -1, keepdims=True) + epsilon)
    return centred * scale, scale


def _normalize_with_short_gradient(x: tf.Tensor, epsilon: float) -> tf.Tensor:
    """Sends back what is left of a gradient without its mean and without its share along the normalised vector."""

    @tf.custom_gradient
    def normalize(x: tf.Tensor):
        normal, scale = _normalize(x, epsilon)

        def gradient(upstream: tf.Tensor) -> tf.Tensor:
            mean = tf.reduce_mean(upstream, -1, keepdims=True)
            return scale * (
                upstream - mean - normal * tf.reduce_mean(upstream * normal, -1, keepdims=True)
            )

        return normal, gradient

    return normalize(x)


@register
class Dropout(keras.layers.Dropout):
    """Keras' layer at half the random numbers: 16 bits, half of a random word, decide for each input.

    So the rate is a multiple of 2^-16, and what is kept is scaled by just that.
    """

    def call(self, x: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        if not (training and self.rate):
            return x
        size, dropped = tf.size(x), min(round(self.rate * 2**16), 2**16 - 1)
        seed = tf.cast(self.seed_generator.next(), tf.int32)
        words = tf.random.stateless_uniform(
            [(size + 1) // 2], seed, minval=None, maxval=None, dtype=tf.uint32
        )
        halves = tf.reshape(tf.bitcast(words, tf.uint16), [-1])[:size]
        kept = tf.reshape(halves >= dropped, tf.shape(x))
        return tf.where(kept, x / (1 - dropped / 2**16), tf.zeros((), x.dtype))


@register
class Residual(keras.layers.Layer):
    """What surrounds every sub-layer: residual connection, dropout and layer normalisation (sections 3.1 and 5.4).

    post: LayerNorm(x + Dropout(Sublayer(x))), as in the paper; pre: x + Dropout(Sublayer(LayerNorm(x))).
    A layer calls `enter` before its sub-layer and the object itself after it.
    """

    def __init__(
        self,
        d_model: int,
        dropout: float = 0.0,
        norm: str = "post",
        epsilon: float = 1e-6,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.d_model = d_model
        self.norm = require("norm", norm, NORMS)
        self.normalization = LayerNormalization(
            epsilon=epsilon, name="normalization", dtype=self.dtype_policy
        )
        self.dropout = Dropout(dropout, dtype=self.dtype_policy)

    def build(self, input_shape=None) -> None:
        self.normalization.build((None, None, self.d_model))

    def enter(self, x: tf.Tensor) -> tf.Tensor:
        """The sub-layer's input."""
        return self.normalization(x) if self.norm == "pre" else x

    def call(
        self, x: tf.Tensor, sublayer_output: tf.Tensor, training: bool | None = None
    ) -> tf.Tensor:
        x = x + self.dropout(sublayer_output, training=training)
        return self.normalization(x) if self.norm == "post" else x

    def get_config(self) -> dict:
        return super().get_config() | {
            "d_model": self.d_model,
            "dropout": self.dropout.rate,
            "norm": self.norm,
            "epsilon": self.normalization.epsilon,
        }


class _StackLayer(keras.layers.Layer):
    """What EncoderLayer and DecoderLayer share: their constructor arguments, a feed-forward sub-layer, residuals."""

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
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.config = {
            "d_model": d_model,
            "num_heads": num_heads,
            "d_ff": d_ff,
            "dropout": dropout,
            "activation": activation,
            "norm": norm,
            "use_bias": use_bias,
            "epsilon": epsilon,
        }
        self.self_attention = self._attention("self_attention")
        self.self_attention_residual = self._residual("self_attention_residual")
        self.feed_forward = FeedForward(
            d_model, d_ff, activation, name="feed_forward", dtype=self.dtype_policy
        )
        self.feed_forward_residual = self._residual("feed_forward_residual")

    def _attention(self, name: str) -> MultiHeadAttention:
        config = self.config
        return MultiHeadAttention(
            config["d_model"],
            config["num_heads"],
            config["use_bias"],
            name=name,
            dtype=self.dtype_policy,
        )

    def _residual(self, name: str) -> Residual:
        config = self.config
        return Residual(
            config["d_model"],
            config["dropout"],
            config["norm"],
            config["epsilon"],
            name=name,
            dtype=self.dtype_policy,
        )

    def build(self, input_shape=None) -> None:
        for layer in self.sublayers():
            layer.build(None)

    def sublayers(self) -> tuple[keras.layers.Layer, ...]:
        return (
            self.self_attention,
            self.self_attention_residual,
            self.feed_forward,
            self.feed_forward_residual,
        )

    def get_config(self) -> dict:
        return super().get_config() | self.config

    def _attend_to_self(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None,
        cache: KeyValue | None,
        first: tf.Tensor | int,
        training: bool | None,
    ) -> tuple[tf.Tensor, KeyValue]:
        """The first sub-layer, and the cache that holds the positions of `x` too; without a cache, these alone."""
        h = self.self_attention_residual.enter(x)
        keys = self.self_attention.project(h)
        cache = keys if cache is None else cache.write(keys, first)
        return self.self_attention_residual(
            x, self.self_attention.attend(h, cache, mask)[0], training=training
        ), cache

    def _feed_forward(self, x: tf.Tensor, training: bool | None) -> tf.Tensor:
        """The last sub-layer."""
        h = self.feed_forward_residual.enter(x)
        return self.feed_forward_residual(x, self.feed_forward(h), training=training)


@register
class EncoderLayer(_StackLayer):
    """Self-attention, then feed-forward, each in its residual (section 3.1, figure 1 left).

    With a look-ahead mask it is a decoder's layer for a model that has no source.
    """

    def call(
        self, x: tf.Tensor, mask: tf.Tensor | None = None, training: bool | None = None
    ) -> tf.Tensor:
        """All positions at once: (B, S, D) with a mask over the keys -> (B, S, D)."""
        return self.step(x, mask, training=training)[0]

    def step(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None = None,
        cache: KeyValue | None = None,
        first: tf.Tensor | int = 0,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, KeyValue]:
        """Positions first .. first + T - 1 of a sequence, and the cache that holds them too."""
        x, cache = self._attend_to_self(x, mask, cache, first, training)
        return self._feed_forward(x, training), cache


@register
class DecoderLayer(_StackLayer):
    """Masked self-attention, attention to the memory, feed-forward, each in its residual (figure 1 right)."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.cross_attention = self._attention("cross_attention")
        self.cross_attention_residual = self._residual("cross_attention_residual")

    def sublayers(self) -> tuple[keras.layers.Layer, ...]:
        return *super().sublayers(), self.cross_attention, self.cross_attention_residual

    def call(self, x, memory, mask=None, memory_mask=None, training=None) -> tf.Tensor:
        """All positions at once: (B, T, D) and memory (B, S, D) -> (B, T, D)."""
        return self.step(
            x, mask, None, 0, self.cross_attention.project(memory), memory_mask, training
        )[0]

    def step(
        self,
        x: tf.Tensor,
        mask: tf.Tensor | None,
        cache: KeyValue | None,
        first: tf.Tensor | int,
        memory: KeyValue,
        memory_mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tuple[tf.Tensor, KeyValue]:
        """Positions first .. first + T - 1 of the target, and the cache that holds them too.

        Without a cache the positions attend to themselves alone. Several rows of `x` may share one row of memory (the
        beams of a sentence): to the memory they are simply more queries.
        """
        x, cache = self._attend_to_self(x, mask, cache, first, training)
        h = self.cross_attention_residual.enter(x)
        queries = tf.reshape(h, (tf.shape(memory.key)[0], -1, self.config["d_model"]))
        attended = tf.reshape(
            self.cross_attention.attend(queries, memory, memory_mask)[0], tf.shape(x)
        )
        x = self.cross_attention_residual(x, attended, training=training)
        return self._feed_forward(x, training), cache
