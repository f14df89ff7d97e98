"""The attention of a trained translator.

Attention maps contain the weights of the heads, with their tokens. They are computed by calling the
model's layers one by one and requesting the weights of each attention, so that the model itself
stores nothing. Shape letters: B batch, S source, T target, L layers, H heads, R rows (the positions
that attend), C columns (the positions attended to). Layers and heads are counted from 1, as in the
literature.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tfformer.data.encoding import Sentences, warn_of_truncation
from tfformer.inference.alignment import END, START, between_words, check_attention, word_texts
from tfformer.inference.translator import Translator
from tfformer.model.masks import look_ahead_mask, padding_mask
from tfformer.model.transformer import Transformer
from tfformer.special_ids import END_ID, START_ID


class AttentionMaps(NamedTuple):
    """The weights of every head of one kind of attention; each row sums to 1.

    Example:
        >>> weights = np.array([[[[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]]])
        >>> maps = AttentionMaps("cross", ("▁Ja", "</s>"), ("▁ye", "s", "</s>"), weights)
        >>> maps.words().columns, maps.words().weights.tolist()
        (('yes', '</s>'), [[[[0.75, 0.25], [0.5, 0.5]]]])
    """

    kind: str  # "encoder", "decoder" or "cross"
    rows: tuple[str, ...]  # the R tokens that attend
    columns: tuple[str, ...]  # the C tokens attended to
    weights: np.ndarray  # (L, H, R, C) float32

    def words(self) -> AttentionMaps:
        """Return the same maps between words, see `between_words`."""
        weights = between_words(self.weights, self.rows, self.columns).astype(np.float32)
        return AttentionMaps(self.kind, word_texts(self.rows), word_texts(self.columns), weights)


class Attention(NamedTuple):
    """All attention in the translation of one sentence, between pieces.

    The source ends with the end token. A decoder position reads one token and writes the next: The
    rows of `decoder` are labelled with the token read, from the start token on; the rows of `cross`
    with the token written, up to the end token. The weights of `decoder` are 0 in a decoder of
    recurrent units.
    """

    encoder: AttentionMaps  # source to source
    decoder: AttentionMaps  # target to the target before it
    cross: AttentionMaps  # target to source


def attention(translator: Translator, sentence: str, target: str | None = None) -> Attention:
    """Return the attention in the translation of one sentence.

    Args:
        translator: A trained run.
        sentence: The source sentence.
        target: Its translation; by default the model's own.

    Returns:
        The maps of encoder, decoder and cross-attention. A sentence that exceeds the model's limit
        is truncated, with a warning.

    Raises:
        ValueError: `sentence` or the given `target` is blank, or the model is made from keras-hub.

    Example:
        This model is untrained; `Translator.load("my_run")` returns a trained one.

        >>> import tfformer
        >>> tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
        >>> model = tfformer.Transformer(9, 9, num_layers=3, d_model=8, num_heads=2, d_ff=8)
        >>> translator = tfformer.Translator(model, tokenizer, max_length=8)
        >>> maps = tfformer.attention(translator, "a b", "c").cross.words()
        >>> maps.rows, maps.columns
        (('c', '</s>'), ('a', 'b', '</s>'))
        >>> maps.weights.shape  # layers, heads, rows, columns
        (3, 2, 2, 3)
    """
    check_attention(translator)
    sources = translator.encode([sentence])
    targets: Sentences
    if target is None:
        targets = translator.encode_targets(translator.translate(sources))
    else:
        targets = [target]
    written = translator.encode_targets(targets)
    warn_of_truncation([[sentence], targets], [sources, written], stacklevel=2)
    source_ids, target_ids = sources.ids[0], written.ids[0]
    if not source_ids or not (target_ids or target is None):
        raise ValueError(
            "a sentence is blank and therefore has no attention; pass sentences with words"
        )
    words = (*translator.tokenizers.source.pieces(source_ids), END)
    target_words = translator.tokenizers.target.pieces(target_ids)
    read, written_words = (START, *target_words), (*target_words, END)
    weights = attention_weights(
        translator.model,
        tf.constant([[*source_ids, END_ID]]),
        tf.constant([[START_ID, *target_ids]]),
    )
    encoder, decoder, cross = (tf.cast(tensor[0], tf.float32).numpy() for tensor in weights)
    return Attention(
        AttentionMaps("encoder", words, words, encoder),
        AttentionMaps("decoder", read, read, decoder),
        AttentionMaps("cross", written_words, words, cross),
    )


def attention_weights(
    model: Transformer, source: tf.Tensor, target: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Compute all weights of a batch of source ids (B, S) and target ids (B, T).

    They are those of the encoder (B, L, H, S, S), of the decoder (B, L, H, T, T) and of the
    cross-attention (B, L, H, T, S).
    """
    memory, encoder = encoder_weights(model, source)
    _, decoder, cross = decoder_weights(model, target, memory, padding_mask(source))
    return encoder, decoder, cross


def encoder_weights(model: Transformer, source: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the memory (B, S, D) of source ids (B, S), and the weights (B, L, H, S, S)."""
    mask = padding_mask(source)
    self_weights = []
    x = model.encoder.add_positions(model.source_embedding(source))
    for layer in model.encoder.layers:
        self_weights.append(layer.attend_to_sequence(x, mask)[1])
        x = layer(x, mask)
    return model.encoder.final_norm(x), tf.stack(self_weights, axis=1)


def decoder_weights(
    model: Transformer, target: tf.Tensor, memory: tf.Tensor, memory_mask: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Return the decoder's output (B, T, D) for target ids (B, T), and its weights.

    They are those of the self-attention (B, L, H, T, T) and of the cross-attention (B, L, H, T, S).
    """
    mask = look_ahead_mask(tf.shape(target)[1])
    self_weights = []
    cross_weights = []
    x = model.decoder.add_positions(model.target_embedding(target))
    for layer in model.decoder.layers:
        self_weights.append(layer.attend_to_sequence(x, mask)[1])
        x, weights = layer(x, memory, mask, memory_mask, return_weights=True)
        cross_weights.append(weights)
    return (
        model.decoder.final_norm(x),
        tf.stack(self_weights, axis=1),
        tf.stack(cross_weights, axis=1),
    )
