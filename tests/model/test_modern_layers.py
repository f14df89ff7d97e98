"""Rotary positions, RMSNorm and SwiGLU equal NumPy, and are decoded as they are trained."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import numpy_dense, randomized

import tfformer
from tfformer.checkpoints.hugging_face import writer as hugging_face
from tfformer.checkpoints.marian import writer as marian
from tfformer.export import ctranslate2
from tfformer.model.attention import MultiHeadAttention
from tfformer.model.feed_forward import FeedForward
from tfformer.model.layers import DecoderLayer, Residual
from tfformer.model.marian_layers import MarianDecoderLayer
from tfformer.model.positions import Rotation
from tfformer.training.optimizer import new_optimizer

D, HEADS = 24, 3
ROTARY = {"dialect": {"position_layout": "rotary"}}
VARIANTS = [ROTARY, {"norm": "rms"}, {"activation": "swiglu"}]
RNG = np.random.default_rng(0)
X = RNG.normal(1, size=(2, 5, D)).astype(np.float32)
SOURCE = np.array([[5, 7, 3, 0], [4, 9, 8, 3]])
TARGET = np.array([[2, 9, 8, 4, 5], [2, 5, 6, 7, 3], [2, 4, 4, 9, 3], [2, 7, 9, 5, 8]])

each_variant = pytest.mark.parametrize("variant", [*VARIANTS, ROTARY | {"norm": "marian"}], ids=str)


@pytest.fixture(autouse=True)
def same_weights_in_every_run():
    keras.utils.set_random_seed(0)


def small(**variant):
    sizes = {"num_layers": 2, "d_model": D, "num_heads": HEADS, "d_ff": 24, "norm": "pre"}
    return randomized(tfformer.Transformer(10, 10, **sizes | variant), scale=0.2)


# Rotary positions


def test_rotary_attention_equals_complex_numbers_turned_by_their_positions():
    attention = randomized(MultiHeadAttention(D, HEADS))
    pairs, positions = D // HEADS // 2, np.arange(3, 8)
    turn = np.exp(1j * positions[:, np.newaxis] / 10000 ** (np.arange(pairs) / pairs))

    def turned(x):
        heads = x.reshape(2, 5, HEADS, 2 * pairs).transpose(0, 2, 1, 3)
        return (heads[..., :pairs] + 1j * heads[..., pairs:]) * turn

    query = turned(numpy_dense(attention.query, X))
    key = turned(np.split(numpy_dense(attention.key_value, X), 2, axis=-1)[0])
    scores = np.einsum("bhti,bhsi->bhts", query, key.conj()).real / (2 * pairs) ** 0.5
    expected = np.exp(scores) / np.exp(scores).sum(axis=-1, keepdims=True)
    for first in (3, 90):  # only distances matter
        rotation = Rotation.of(first + tf.range(5), D // HEADS)
        memory = attention.project(tf.constant(X), rotation)
        _, weights = attention.attend(tf.constant(X), memory, rotation=rotation)
        np.testing.assert_allclose(weights, expected, rtol=1e-3, atol=1e-6)


def test_an_encoder_with_rotary_positions_reads_the_order_but_no_position():
    encoder = small(**ROTARY).encoder
    expected = encoder(X)
    mask = tf.constant([[False] * 3 + [True] * 5] * 2)
    padded = encoder(np.pad(X, ((0, 0), (3, 0), (0, 0))), mask)
    np.testing.assert_allclose(padded[:, 3:], expected, atol=1e-4)
    assert np.abs(encoder(X[:, ::-1])[:, ::-1] - expected).max() > 0.1


@pytest.mark.parametrize("layer_class", [DecoderLayer, MarianDecoderLayer])
def test_decoder_layers_read_distances_alone(layer_class):
    layer = randomized(layer_class(D, HEADS, 24, norm="marian"))
    near, far = (
        layer.attend_to_sequence(X, rotation=Rotation.of(first + tf.range(5), D // HEADS))[1]
        for first in (0, 40)
    )
    np.testing.assert_allclose(near, far, rtol=1e-3, atol=1e-6)


def test_rotary_positions_need_pairs_of_dimensions():
    with pytest.raises(ValueError, match="d_model=24 and num_heads=8 make heads of odd size"):
        small(num_heads=8, **ROTARY)


# Decoding


@each_variant
def test_steps_with_a_cache_equal_all_positions_at_once(variant):
    """In steps of 1, 3 and 1 positions."""
    model = small(**variant)
    memory, cache, logits = model.encode_and_project(SOURCE), model.decoder.empty_cache(2, 5), []
    for first, count in ((0, 1), (1, 3), (4, 1)):
        ids = tf.constant(TARGET[:2, first : first + count])
        step, cache = model.step(ids, first, cache, memory)
        logits.append(step)
    expected = model({"source": SOURCE, "target": TARGET[:2]})
    np.testing.assert_allclose(tf.concat(logits, axis=1), expected, atol=1e-4)


@each_variant
def test_steps_of_two_beams_equal_all_positions_at_once(variant):
    model = small(**variant)
    memory, cache = model.encode_and_project(SOURCE), model.decoder.empty_beam_cache(2, 2, 5)
    beams, hidden = tf.constant(TARGET.reshape(2, 2, 5)), []
    for position in range(5):
        step, cache = model.hidden_beam_step(beams[..., position], position, cache, memory)
        hidden.append(step)
    expected = model.hidden({"source": SOURCE.repeat(2, axis=0), "target": TARGET})
    np.testing.assert_allclose(tf.stack(hidden, 2), expected.numpy().reshape(2, 2, 5, D), atol=1e-4)


# RMSNorm and SwiGLU


def test_rms_norm_equals_numpy():
    residual = randomized(Residual(D, norm="rms", epsilon=0.1))
    (scale,) = residual.get_weights()
    expected = X / np.sqrt((X**2).mean(-1, keepdims=True) + 0.1) * scale
    np.testing.assert_allclose(residual.before(X), expected, rtol=1e-5)
    np.testing.assert_array_equal(residual.after(X, X), 2 * X)


def test_a_stack_with_rms_norm_ends_with_it():
    """Its vectors have length sqrt(d_model) and keep their mean."""
    output = np.array(tfformer.Encoder(1, D, HEADS, d_ff=24, norm="rms")(X))
    np.testing.assert_allclose((output**2).mean(-1), 1, rtol=1e-4)
    assert np.abs(output.mean(-1)).min() > 0.1


@pytest.mark.parametrize(("d_ff", "width"), [(5, 8), (24, 16), (256, 168)])
def test_swiglu_equals_numpy(d_ff, width):
    layer = randomized(FeedForward(D, d_ff, "swiglu"))
    inner, gate = numpy_dense(layer.inner, X), numpy_dense(layer.gate, X)
    assert inner.shape == gate.shape == (2, 5, width)
    expected = numpy_dense(layer.outer, inner / (1 + np.exp(-inner)) * gate)
    np.testing.assert_allclose(layer(X), expected, rtol=1e-4, atol=1e-4)


# Training


@pytest.mark.parametrize("name", ["adamw", "muon"])
def test_scales_do_not_decay_and_muon_turns_the_gates(name):
    """A step by Muon has nearly equal singular values, a step by Adam nearly equal values."""
    settings = {"optimizer": name, "schedule": "linear", "learning_rate": 0.01, "warmup_steps": 1}
    config = tfformer.Config.from_dict({"training": settings | {"weight_decay": 0.1}})
    model = small(norm="rms", activation="swiglu")
    weights = model.trainable_variables
    before = [weight.numpy() for weight in weights]
    new_optimizer(config, 100).apply([tf.zeros_like(weight) for weight in before], weights)
    for weight, old in zip(weights, before, strict=True):
        kept = 1 - 0.001 * (old.ndim == 2)
        np.testing.assert_allclose(weight, old * kept, rtol=1e-5, err_msg=weight.path)

    gate = model.encoder.layers[0].feed_forward.gate.kernel
    old = gate.numpy()
    gradients = [RNG.normal(size=weight.shape).astype(np.float32) for weight in weights]
    config = config.replace(training=settings)
    new_optimizer(config, 100).apply([tf.constant(gradient) for gradient in gradients], weights)
    singular = np.linalg.svd(gate.numpy() - old, compute_uv=False)
    assert (singular.max() < 2.5 * singular.min()) == (name == "muon")


# Other formats


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_formats_of_other_toolkits_refuse_what_they_would_compute_differently(variant, tmp_path):
    model = small(**variant)
    run = SimpleNamespace(
        path="runs/mine", config=tfformer.Config.from_dict({"model": {"preset": "tiny"} | variant})
    )
    for write in (
        lambda: ctranslate2.write(tmp_path, model, None, 10),
        lambda: marian.write(tmp_path, run, model),
        lambda: hugging_face.write(tmp_path, run, model),
    ):
        with pytest.raises(ValueError, match=r"the model has .*=(swiglu|rms|rotary), which"):
            write()
