"""Train OpenNMT-tf's Transformer (TensorFlow 2.12)."""

import tempfile
from pathlib import Path

import opennmt
import process
import tensorflow as tf

tf.config.threading.set_intra_op_parallelism_threads(process.THREADS)
tf.config.threading.set_inter_op_parallelism_threads(process.THREADS)


def build(shape: dict) -> tuple[process.Step, process.Count]:
    """Return the training step, and a function that counts the parameters."""
    model = opennmt.models.Transformer(
        source_inputter=opennmt.inputters.WordEmbedder(embedding_size=shape["d_model"]),
        target_inputter=opennmt.inputters.WordEmbedder(embedding_size=shape["d_model"]),
        num_layers=shape["num_layers"],
        num_units=shape["d_model"],
        num_heads=shape["num_heads"],
        ffn_inner_dim=shape["d_ff"],
        dropout=shape["dropout"],
        attention_dropout=0.0,
        ffn_dropout=0.0,
        share_embeddings=opennmt.models.EmbeddingsSharingLevel.ALL,
        pre_norm=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        vocabulary = Path(folder, "vocabulary")
        count = shape["vocab_size"] - 1  # OpenNMT-tf adds the unknown token
        words = ["<blank>", "<unk>", "<s>", "</s>", *(f"w{n}" for n in range(4, count))]
        vocabulary.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
        files = {"source_vocabulary": str(vocabulary), "target_vocabulary": str(vocabulary)}
        model.initialize(
            files,
            params={"label_smoothing": shape["label_smoothing"], "average_loss_in_time": True},
        )
        optimizer = tf.keras.optimizers.legacy.Adam(1e-3, beta_1=0.9, beta_2=0.98, epsilon=1e-9)
        ids = tf.TensorSpec((None, None), tf.int32)

        @tf.function(input_signature=[ids, ids, ids])
        def train(source: tf.Tensor, target: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
            lengths = {"length": tf.math.count_nonzero(labels, 1, dtype=tf.int32)}
            features = {"ids": source, "length": tf.math.count_nonzero(source, 1, dtype=tf.int32)}
            with tf.GradientTape() as tape:
                outputs, _ = model(
                    features, {"ids": target, "ids_out": labels} | lengths, training=True
                )
                loss, tokens = model.compute_loss(
                    outputs, {"ids_out": labels} | lengths, training=True
                )[:2]
                loss /= tf.cast(tokens, loss.dtype)
            weights = model.trainable_weights
            gradients = tape.gradient(loss, weights)
            optimizer.apply_gradients(zip(gradients, weights))  # noqa: B905  not in AutoGraph's zip
            return loss

        model.create_variables(optimizer=optimizer)
    return lambda batch: float(train(*batch)), lambda: sum(
        int(tf.size(w)) for w in model.trainable_weights
    )


if __name__ == "__main__":
    process.run(build)
