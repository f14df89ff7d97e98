"""Simple recurrent units: the scan and decoding step by step equal the loop of the paper."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from support.numpy_layers import (
    numpy_attention,
    numpy_dense,
    numpy_feed_forward,
    numpy_residual,
    randomized,
)
from support.untrained_models import letters_tokenizer, untrained_transformer

import tfformer
from tfformer.model.masks import look_ahead_mask, segment_mask
from tfformer.model.recurrence import RecurrentDecoderLayer, linear_recurrence

RNG = np.random.default_rng(0)
D = 8
SOURCE = np.array([[5, 9, 4, 7, 3], [8, 3, 0, 0, 0], [6, 6, 10, 3, 0]], np.int32)
TARGET = RNG.integers(1, 13, size=(3, 6)).astype(np.int32)


@functools.cache
def unit() -> tfformer.SimpleRecurrentUnit:
    return randomized(tfformer.SimpleRecurrentUnit(D))


@functools.cache
def transformer(norm: str = "post") -> tfformer.Transformer:
    return untrained_transformer(decoder_kind="ssru", num_decoder_layers=2, norm=norm)


def numpy_unit(layer, x):
    """Kim et al. 2019, section 3.1, token by token."""
    forget = 1 / (1 + np.exp(-numpy_dense(layer.forget, x)))
    candidate = numpy_dense(layer.candidate, x)
    state, states = np.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = forget[:, t] * state + (1 - forget[:, t]) * candidate[:, t]
        states.append(state)
    return np.maximum(0, np.stack(states, axis=1))


@settings(deadline=None, max_examples=20)
@given(st.integers(1, 70), st.integers(0, 99))
def test_the_unit_is_the_loop_of_the_paper(length, seed):
    x = np.random.default_rng(seed).normal(size=(2, length, D), scale=3)
    np.testing.assert_allclose(unit()(x), numpy_unit(unit(), x), atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 7])
def test_gradients_are_those_of_the_loop(length):
    decay, added, upstream = (tf.constant(RNG.random((2, length, 3)), tf.float32) for _ in "123")

    def loop(decay, added):
        state, states = tf.zeros_like(added[:, 0]), []
        for t in range(length):
            state = decay[:, t] * state + added[:, t]
            states.append(state)
        return tf.stack(states, axis=1)

    gradients = []
    for recurrence in (linear_recurrence, loop):
        with tf.GradientTape() as tape:
            tape.watch((decay, added))
            total = tf.reduce_sum(recurrence(decay, added) * upstream)
        gradients.append(tape.gradient(total, (decay, added)))
    for gradient, wanted in zip(*gradients, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-5)


@pytest.mark.parametrize("jit_compile", [False, pytest.param(True, marks=pytest.mark.nightly)])
def test_the_scan_is_the_same_in_a_graph_of_any_length(jit_compile):
    signature = [tf.TensorSpec((None, None, D))]
    call = tf.function(unit().__call__, input_signature=signature, jit_compile=jit_compile)
    x = RNG.normal(size=(2, 11, D)).astype(np.float32)
    np.testing.assert_allclose(call(x), unit()(x), atol=1e-5)


def test_a_position_that_is_not_read_changes_nothing():
    x = RNG.normal(size=(1, 6, D)).astype(np.float32)
    is_read = np.array([[False, True, True, False, True, False]])
    output = unit()(x, attention_mask=is_read)
    np.testing.assert_allclose(output[is_read], unit()(x[is_read][np.newaxis])[0], atol=1e-6)


def test_no_state_crosses_the_border_of_a_sentence_in_a_packed_row():
    x = RNG.normal(size=(1, 9, D)).astype(np.float32)
    segments = tf.constant([[1, 1, 1, 2, 3, 3, 3, 0, 0]])
    allowed = segment_mask(segments, segments) & look_ahead_mask(9)
    output = unit()(x, attention_mask=allowed)
    for sentence in (slice(0, 3), slice(3, 4), slice(4, 7)):
        np.testing.assert_allclose(output[:, sentence], unit()(x[:, sentence]), atol=1e-6)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_the_decoder_layer_has_the_sublayers_of_the_paper(norm):
    layer = randomized(RecurrentDecoderLayer(D, num_heads=2, d_ff=12, norm=norm))
    x, memory = RNG.normal(size=(2, 5, D)), RNG.normal(size=(2, 4, D))
    y = numpy_residual(layer.recurrence_residual, x, lambda h: numpy_unit(layer.recurrence, h))
    y = numpy_residual(
        layer.cross_attention_residual,
        y,
        lambda h: numpy_attention(layer.cross_attention, h, memory)[0],
    )
    y = numpy_residual(
        layer.feed_forward_residual, y, lambda h: numpy_feed_forward(layer.feed_forward, h)
    )
    np.testing.assert_allclose(layer(x, memory), y, atol=2e-5)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoding_step_by_step_is_decoding_at_once(norm):
    model = transformer(norm)
    memory = model.encode_and_project(SOURCE)
    cache, position, cached = model.decoder.empty_cache(3, 1), 0, []
    for count in (1, 1, 3, 1):
        logits, cache = model.step(TARGET[:, position : position + count], position, cache, memory)
        cached.append(logits)
        position += count
    uncached = model({"source": SOURCE, "target": TARGET})
    np.testing.assert_allclose(tf.concat(cached, axis=1), uncached, rtol=1e-4, atol=1e-5)
    alone = model({"source": SOURCE[1:2, :2], "target": TARGET[1:2, :4]})
    np.testing.assert_allclose(alone[0], uncached[1, :4], rtol=1e-4, atol=1e-5)


def test_a_packed_row_is_its_sentences():
    model = transformer()
    source = SOURCE[::2, :3]
    target = TARGET[::2]
    inputs = {
        "source": source,
        "target": target,
        "source_segments": tf.constant([[1, 1, 2]] * 2),
        "target_segments": tf.constant([[1, 1, 1, 2, 2, 0]] * 2),
    }
    packed = model.hidden(inputs)
    first = model.hidden({"source": source[:, :2], "target": target[:, :3]})
    second = model.hidden({"source": source[:, 2:], "target": target[:, 3:5]})
    np.testing.assert_allclose(packed[:, :3], first, atol=1e-4)
    np.testing.assert_allclose(packed[:, 3:5], second, atol=1e-4)


def test_translations_are_the_same_alone_and_in_a_batch():
    translator = tfformer.Translator(transformer(), letters_tokenizer(), max_length=12)
    texts = ["a b c", "h", "d e f", "b"]
    together = translator.translate(texts, beam_size=3)
    assert together == [translator.translate([text], beam_size=3)[0] for text in texts]
