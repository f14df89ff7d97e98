"""Train tfformer, keras-hub's layers, or Keras' attention as in TensorFlow's tutorial."""

from collections.abc import Callable
from typing import Any

import process
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(process.THREADS)
tf.config.threading.set_inter_op_parallelism_threads(process.THREADS)

import keras  # noqa: E402

from tfformer import SmoothedCrossEntropy, Transformer  # noqa: E402
from tfformer.model.positions import positional_encoding  # noqa: E402

Layers = list[keras.layers.Layer]

PAPER = {"beta_1": 0.9, "beta_2": 0.98, "epsilon": 1e-9}


def build(
    shape: dict[str, Any], engine: str, dtype: str, *flags: str
) -> tuple[process.Step, process.Count]:
    """Return the engine's training step, and a function that counts the parameters."""
    keras.config.set_dtype_policy(dtype)
    shape = dict(shape)
    smoothing = shape.pop("label_smoothing")
    model = MODELS[engine](**shape)
    optimizer = keras.optimizers.Adam(1e-3, **PAPER)
    is_ours = engine == "tfformer" or "our_loss" in flags
    loss = SmoothedCrossEntropy(smoothing) if is_ours else KerasCrossEntropy(smoothing)
    model.compile(optimizer, loss, jit_compile="jit_compile" in flags)

    def step(batch: process.Batch) -> float:
        source, target, labels = batch
        inputs = {"source": source, "target": target}
        weights = (labels != 0).astype("float32")
        return float(model.train_on_batch(inputs, labels, weights))

    return step, model.count_params


class KerasCrossEntropy(keras.losses.Loss):
    """Keras' cross-entropy with label smoothing, per token without padding."""

    def __init__(self, smoothing: float) -> None:
        super().__init__(reduction="mean_with_sample_weight")
        self.smoothing = smoothing

    def call(self, labels: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
        """Return the losses (B, T) of logits (B, T, V) for labels (B, T)."""
        targets = tf.one_hot(tf.cast(labels, tf.int32), tf.shape(logits)[-1])
        return keras.losses.categorical_crossentropy(
            targets, logits, from_logits=True, label_smoothing=self.smoothing
        )


def ours(vocab_size: int, **shape: Any) -> keras.Model:
    """Return tfformer's model, in which both embeddings and the output share one matrix."""
    return Transformer(vocab_size, vocab_size, tie_embeddings="all", **shape)


class Embedding(keras.layers.Layer):
    """A tied token embedding with the paper's positions, for peers without one."""

    def __init__(self, vocab_size: int, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        self.table = self.add_weight(
            shape=(vocab_size, d_model),
            initializer=keras.initializers.RandomNormal(stddev=d_model**-0.5),
        )

    def call(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the vectors (B, T, D) of ids (B, T), with positions."""
        x = tf.gather(tf.cast(self.table, self.compute_dtype), ids) * self.d_model**0.5
        return x + tf.cast(positional_encoding(tf.range(tf.shape(ids)[1]), self.d_model), x.dtype)

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """Return the logits (B, T, V) of vectors (B, T, D)."""
        return tf.matmul(x, tf.cast(self.table, x.dtype), transpose_b=True)


class Peer(keras.Model):
    """A model of an embedding, the layers `encode`, the layers `decode`, and logits."""

    def __init__(
        self, vocab_size: int, d_model: int, dropout: float, encoders: Layers, decoders: Layers
    ) -> None:
        super().__init__()
        self.embedding = Embedding(vocab_size, d_model)
        self.dropout = keras.layers.Dropout(dropout)
        self.encoders = encoders
        self.decoders = decoders

    def call(self, inputs: dict[str, tf.Tensor], training: bool | None = None) -> tf.Tensor:
        """Return the logits (B, T, V) of the ids "source" (B, S) and "target" (B, T)."""
        source = inputs["source"]
        target = inputs["target"]
        memory = self.dropout(self.embedding(source), training=training)
        for encoder in self.encoders:
            memory = encoder(memory, padding_mask=source != 0, training=training)
        x = self.dropout(self.embedding(target), training=training)
        for decoder in self.decoders:
            x = decoder(x, memory, encoder_padding_mask=source != 0, training=training)
        return self.embedding.logits(x)


def keras_hub_model(
    vocab_size: int, num_layers: int, d_model: int, num_heads: int, d_ff: int, dropout: float
) -> keras.Model:
    """Return a model of keras-hub's layers."""
    import keras_hub

    encoders = [
        keras_hub.layers.TransformerEncoder(d_ff, num_heads, dropout) for _ in range(num_layers)
    ]
    decoders = [
        keras_hub.layers.TransformerDecoder(d_ff, num_heads, dropout) for _ in range(num_layers)
    ]
    return Peer(vocab_size, d_model, dropout, encoders, decoders)


class TutorialLayer(keras.layers.Layer):
    """A post-norm layer: attention, then feed-forward, each with a residual connection."""

    def __init__(
        self, d_model: int, num_heads: int, d_ff: int, dropout: float, attentions: int
    ) -> None:
        super().__init__()
        self.attentions = [
            keras.layers.MultiHeadAttention(num_heads, d_model // num_heads, dropout=dropout)
            for _ in range(attentions)
        ]
        self.feed_forward = keras.Sequential(
            [
                keras.layers.Dense(d_ff, "relu"),
                keras.layers.Dense(d_model),
                keras.layers.Dropout(dropout),
            ]
        )
        self.normalizations = [keras.layers.LayerNormalization() for _ in range(attentions + 1)]

    def call(
        self,
        x: tf.Tensor,
        memory: tf.Tensor | None = None,
        padding_mask: tf.Tensor | None = None,
        encoder_padding_mask: tf.Tensor | None = None,
        training: bool | None = None,
    ) -> tf.Tensor:
        """Return vectors (B, T, D); a decoder also attends to a memory (B, S, D)."""
        first, *further = self.attentions
        mask = None if padding_mask is None else padding_mask[:, None, :]
        attended = first(
            x, x, attention_mask=mask, use_causal_mask=memory is not None, training=training
        )
        x = self.normalizations[0](x + attended)
        for attention in further:
            assert encoder_padding_mask is not None
            mask = encoder_padding_mask[:, None, :]
            x = self.normalizations[1](
                x + attention(x, memory, attention_mask=mask, training=training)
            )
        return self.normalizations[-1](x + self.feed_forward(x, training=training))


def tutorial_model(
    vocab_size: int, num_layers: int, d_model: int, num_heads: int, d_ff: int, dropout: float
) -> keras.Model:
    """Return a model of Keras' attention, as in the tutorial."""
    encoders = [TutorialLayer(d_model, num_heads, d_ff, dropout, 1) for _ in range(num_layers)]
    decoders = [TutorialLayer(d_model, num_heads, d_ff, dropout, 2) for _ in range(num_layers)]
    return Peer(vocab_size, d_model, dropout, encoders, decoders)


MODELS: dict[str, Callable[..., keras.Model]] = {
    "tfformer": ours,
    "keras-hub": keras_hub_model,
    "tutorial": tutorial_model,
}

if __name__ == "__main__":
    process.run(build)
