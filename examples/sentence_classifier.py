"""`tfformer.Encoder` as a Keras layer: is an English sentence a question?

    python examples/sentence_classifier.py

The sentences have neither punctuation nor capitals. The text is the phrasebook's; the words of the
held-out sentences never occurred together in training.
"""

import keras
import numpy as np
import tensorflow as tf

import tfformer
from tfformer.data import phrasebook
from tfformer.data.encoding import pad


class SentenceClassifier(keras.Model):
    """Ids (B, S) -> the logit (B, 1) of a class.

    It is made of the mean of the encoder's memory over the real tokens.
    """

    def __init__(self, vocab_size: int, d_model: int = 32) -> None:
        super().__init__()
        self.embedding = tfformer.TokenEmbedding(vocab_size, d_model)
        self.encoder = tfformer.Encoder(
            num_layers=1, d_model=d_model, num_heads=2, d_ff=64, dropout=0.1
        )
        self.classify = keras.layers.Dense(1)

    def call(self, ids: tf.Tensor, training: bool | None = None) -> tf.Tensor:
        """Ids (B, S) int32, 0 for padding -> logits (B, 1)."""
        memory = self.encoder(self.embedding(ids), tfformer.padding_mask(ids), training=training)
        real = tf.cast(ids != 0, memory.dtype)[:, :, tf.newaxis]
        return self.classify(tf.reduce_sum(memory * real, axis=1) / tf.reduce_sum(real, axis=1))


def sentences(split: str, count: int) -> tuple[list[str], np.ndarray]:
    """Return sentences without punctuation and capitals, and their classes.

    A class (count, 1) is 1 for questions.
    """
    texts = [pair.source for pair in phrasebook.pairs(split)[:count]]
    plain = [text.lower().strip("?.! ") for text in texts]
    is_question = [[text.endswith("?")] for text in texts]
    return plain, np.array(is_question, "float32")


def main() -> float:
    """Train, and return the share of held-out sentences that are classified rightly."""
    keras.utils.set_random_seed(1)
    texts, labels = sentences("train", 3000)
    tokenizer = tfformer.Tokenizer.train(texts, vocab_size=400)

    def ids_of(texts: list[str]) -> np.ndarray:
        return pad(tokenizer.encode(texts))

    model = SentenceClassifier(tokenizer.vocab_size)
    model.compile(
        keras.optimizers.Adam(0.003),
        keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(ids_of(texts), labels, batch_size=64, epochs=4, verbose=2)
    held_out, expected = sentences("test", 500)
    right = (model.predict(ids_of(held_out), verbose=0) > 0) == (expected > 0)
    share = f"{right.mean():.1%} of {len(right)} held-out sentences right"
    print(f"{share}; {1 - expected.mean():.1%} are no questions")
    return float(right.mean())


if __name__ == "__main__":
    main()
