"""Compare attention maps and their words with NumPy and hand-made examples."""

import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import numpy_attention, numpy_embedding, numpy_normalization, randomized

from tfformer.data.tokenizers import Tokenizer
from tfformer.explain.attention_maps import (
    AttentionMaps,
    attention,
    decoder_weights,
    encoder_weights,
)
from tfformer.inference.translator import Translator
from tfformer.model.masks import padding_mask
from tfformer.model.transformer import Transformer

SENTENCES = [
    "The cat saw the dog because it was big.",
    "The dog saw the cat.",
    "Der Hund sah die Katze, weil sie alt war.",
]
SOURCE = np.array([[5, 9, 4, 7, 3], [8, 3, 0, 0, 0]], np.int32)
TARGET = np.array([[2, 7, 12, 5, 5, 9], [2, 4, 0, 0, 0, 0]], np.int32)
SIZES = {"num_layers": 2, "d_model": 16, "num_heads": 2, "d_ff": 24}


def small_model(vocab_size=13, **changes) -> Transformer:
    """A model with random weights, so that no bias is zero and no scale is one."""
    return randomized(Transformer(vocab_size, vocab_size, **(SIZES | changes)), scale=0.4)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(SENTENCES, 60, "bpe")


@pytest.fixture(scope="module")
def translator(tokenizer) -> Translator:
    model = small_model(tokenizer.vocab_size, tie_embeddings="all")
    return Translator(model, tokenizer, beam_size=2, max_length=40)


# --- The walk through the model -------------------------------------------------------------------


def test_encoder_weights_equal_numpy():
    model = small_model()
    _, weights = encoder_weights(model, tf.constant(SOURCE[:1]))
    x = numpy_embedding(model.source_embedding, SOURCE[:1])
    _, expected = numpy_attention(model.encoder.layers[0].self_attention, x, x)
    np.testing.assert_allclose(weights[:, 0], expected, atol=1e-5)


def test_decoder_weights_equal_numpy():
    model, memory = small_model(), np.random.default_rng(3).normal(size=(1, 5, 16))
    _, self_weights, cross_weights = decoder_weights(
        model,
        tf.constant(TARGET[:1]),
        tf.constant(memory, tf.float32),
        padding_mask(tf.constant(SOURCE[:1])),
    )
    layer, x = model.decoder.layers[0], numpy_embedding(model.target_embedding, TARGET[:1])
    attended, expected = numpy_attention(layer.self_attention, x, x, np.tri(6, dtype=bool))
    np.testing.assert_allclose(self_weights[:, 0], expected, atol=1e-5)
    x = numpy_normalization(layer.self_attention_residual.normalization, x + attended)
    _, expected = numpy_attention(layer.cross_attention, x, memory)
    np.testing.assert_allclose(cross_weights[:, 0], expected, atol=1e-5)


@pytest.mark.parametrize("norm", ["post", "pre", "marian"])
def test_the_walk_ends_where_the_model_ends(norm):
    model, source, target = small_model(norm=norm), tf.constant(SOURCE), tf.constant(TARGET)
    expected_memory, mask = model.encode(source)
    memory, _ = encoder_weights(model, source)
    np.testing.assert_allclose(memory, expected_memory, atol=1e-5)
    output, _, _ = decoder_weights(model, target, memory, mask)
    logits = model.decode(target, expected_memory, mask)
    np.testing.assert_allclose(model.output_embedding.logits(output), logits, atol=1e-4)


def test_rows_sum_to_one_and_nothing_looks_at_padding_or_ahead():
    model, source, target = small_model(), tf.constant(SOURCE), tf.constant(TARGET)
    memory, encoder = encoder_weights(model, source)
    _, decoder, cross = decoder_weights(model, target, memory, padding_mask(source))
    assert encoder.shape == (2, 2, 2, 5, 5)
    assert decoder.shape == (2, 2, 2, 6, 6)
    assert cross.shape == (2, 2, 2, 6, 5)
    for weights in (encoder, decoder, cross):
        np.testing.assert_allclose(
            tf.reduce_sum(weights, axis=-1), np.ones(weights.shape[:-1]), atol=1e-5
        )
    assert not encoder[1, ..., 2:].numpy().any()
    assert not cross[1, ..., 2:].numpy().any()
    assert not (decoder.numpy() * (1 - np.tri(6))).any()


def test_tokens_stand_where_the_decoder_reads_and_writes_them(translator, tokenizer):
    maps = attention(translator, SENTENCES[0], SENTENCES[1])
    source, target = (tuple(tokenizer.pieces(ids)) for ids in tokenizer.encode(SENTENCES[:2]))
    assert maps.cross.columns == (*source, "</s>") == maps.encoder.rows == maps.encoder.columns
    assert maps.decoder.rows == maps.decoder.columns == ("<s>", *target)
    assert maps.cross.rows == (*target, "</s>")
    assert maps.cross.weights.shape == (2, 2, len(target) + 1, len(source) + 1)
    assert maps.cross.weights.dtype == np.float32


def test_without_a_target_it_is_the_models_own_translation(translator, monkeypatch):
    monkeypatch.setattr(translator, "translate", lambda sentences: [SENTENCES[2]])
    untold, given = (
        attention(translator, SENTENCES[0]),
        attention(translator, SENTENCES[0], SENTENCES[2]),
    )
    assert untold.cross.rows == given.cross.rows
    np.testing.assert_array_equal(untold.cross.weights, given.cross.weights)


def test_an_empty_translation_has_attention_too(translator, monkeypatch):
    monkeypatch.setattr(translator, "translate", lambda sentences: [""])
    maps = attention(translator, SENTENCES[0])
    assert maps.decoder.words().rows == ("<s>",)
    assert maps.cross.words().rows == ("</s>",)
    assert maps.decoder.weights.shape == (2, 2, 1, 1)


def test_blank_sentences_are_refused(translator):
    with pytest.raises(ValueError, match="a sentence is blank and therefore has no attention"):
        attention(translator, " ")
    with pytest.raises(ValueError, match="a sentence is blank"):
        attention(translator, SENTENCES[0], "")


@pytest.mark.slow
def test_overlong_sentences_are_cut_with_one_warning(translator, tokenizer):
    long = " ".join(SENTENCES * 2)
    expected = tuple(tokenizer.pieces(tokenizer.encode([long])[0][:39]))
    with pytest.warns(UserWarning, match="1 of 1 sentences had more than 39 tokens") as caught:
        maps = attention(translator, long)
    assert len(caught) == 1
    assert maps.cross.columns == (*expected, "</s>")
    with pytest.warns(UserWarning, match="more than 39 tokens"):
        maps = attention(translator, SENTENCES[0], long)
    assert maps.cross.rows == (*expected, "</s>")


# --- Words ----------------------------------------------------------------------------------------


def test_words_sum_columns_and_average_rows():
    weights = [
        [0.1, 0.2, 0.3, 0.4],
        [0.5, 0.1, 0.3, 0.1],
        [0.0, 0.6, 0.0, 0.4],
        [1.0, 0.0, 0.0, 0.0],
    ]
    pieces = ("▁un", "der", "▁it", "</s>")
    words = AttentionMaps("encoder", pieces, pieces, np.array([[weights]], np.float32)).words()
    assert words.rows == words.columns == ("under", "it", "</s>")
    expected = [[0.45, 0.3, 0.25], [0.6, 0.0, 0.4], [1.0, 0.0, 0.0]]
    np.testing.assert_allclose(words.weights[0, 0], expected, atol=1e-6)


def test_words_are_what_stands_between_spaces(translator):
    attended = attention(translator, SENTENCES[0], SENTENCES[2])
    assert attended.encoder.words().rows == (*SENTENCES[0].split(), "</s>")
    assert attended.cross.words().rows == (*SENTENCES[2].split(), "</s>")
    assert attended.decoder.words().rows == ("<s>", *SENTENCES[2].split())
    for maps in attended:
        words = maps.words().weights
        np.testing.assert_allclose(words.sum(axis=-1), np.ones(words.shape[:-1]), atol=1e-5)


def test_unknown_characters_belong_to_their_word(translator):
    assert attention(translator, "The 漢 dog.", "漢").encoder.words().rows == (
        "The",
        "<unk>",
        "dog.",
        "</s>",
    )
