"""Compare the layers with NumPy, arithmetic, and layers of Keras and keras-hub."""

import itertools
from statistics import NormalDist

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import (
    numpy_attention,
    numpy_decoder_layer,
    numpy_encoder_layer,
    numpy_positions,
    randomized,
)

import tfformer
from tfformer.model.attention import MultiHeadAttention
from tfformer.model.cache import KeysValues
from tfformer.model.embedding import TokenEmbedding
from tfformer.model.feed_forward import FeedForward
from tfformer.model.layers import DecoderLayer, EncoderLayer
from tfformer.model.marian_layers import MarianDecoderLayer, ZeroStartEmbedding
from tfformer.model.masks import look_ahead_mask, padding_mask
from tfformer.model.positions import PositionalEncoding
from tfformer.special_ids import START_ID

D, HEADS, D_FF = 12, 3, 20
EPSILON = 0.1  # large enough to be seen
RNG = np.random.default_rng(0)
TARGET = RNG.normal(size=(2, 4, D)).astype(np.float32)
MEMORY = RNG.normal(size=(2, 5, D)).astype(np.float32)
MEMORY_IDS = np.array([[4, 7, 9, 3, 0], [4, 3, 0, 0, 0]])
MEMORY_MASK = padding_mask(tf.constant(MEMORY_IDS))
HALVES = ["mixed_bfloat16", "mixed_float16"]


@pytest.fixture(autouse=True)
def same_weights_and_dropout_in_every_run():
    keras.utils.set_random_seed(0)


# Positions


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
@pytest.mark.parametrize(("first", "tolerance"), [(0, 1e-6), (37, 1e-5), (4000, 1e-3)])
def test_positions_are_the_papers_sines_and_cosines(layout, first, tolerance):
    layer = PositionalEncoding(16, layout)
    encoding = layer(tf.zeros([1, 60, 16]), position=first)[0]
    np.testing.assert_allclose(
        encoding, numpy_positions(range(first, first + 60), 16, layout), atol=tolerance
    )


def test_positions_equal_keras_hubs():
    keras_hub = pytest.importorskip("keras_hub")
    x = tf.zeros([1, 50, 16])
    expected = keras_hub.layers.SinePositionEncoding()(x, start_index=3)
    np.testing.assert_allclose(PositionalEncoding(16)(x, position=3), expected, atol=1e-5)


@pytest.mark.parametrize("policy", ["bfloat16", "float16", *HALVES])
def test_half_precision_keeps_neighbouring_positions_above_256_apart(policy):
    layer = PositionalEncoding(16, dtype=policy)
    encoding = layer(tf.zeros([1, 300, 16], layer.compute_dtype), position=256)[0]
    assert encoding.dtype == layer.compute_dtype
    encoding = np.asarray(encoding, np.float32)
    np.testing.assert_allclose(encoding, numpy_positions(range(256, 556), 16), atol=2**-8)
    assert (np.abs(np.diff(encoding, axis=0)).max(axis=1) > 0.1).all()


# Embedding


def test_embedding_is_scaled_by_the_root_of_d_model_and_logits_are_its_unscaled_transpose():
    layer = randomized(TokenEmbedding(7, 16))
    matrix = layer.get_weights()[0]
    np.testing.assert_allclose(
        layer(tf.constant([[0, 6], [3, 3]])), 4 * matrix[[[0, 6], [3, 3]]], rtol=1e-6
    )
    x = RNG.normal(size=(2, 3, 16)).astype(np.float32)
    np.testing.assert_allclose(layer.logits(x), x @ matrix.T, rtol=1e-4, atol=1e-5)


def test_adam_sees_the_summed_gradient_of_a_repeated_token():
    """Its second moment is a share of the square of the sum, not of the sum of squares."""
    layer, ids = randomized(TokenEmbedding(5, 4)), tf.constant([[1, 1, 3]])
    upstream = RNG.normal(size=(1, 3, 4)).astype(np.float32)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(layer(ids, training=True) * upstream)
    summed = np.zeros((5, 4), np.float32)
    np.add.at(summed, ids.numpy()[0], 2 * upstream[0])
    optimizer = keras.optimizers.Adam(1.0, beta_2=0.5)
    optimizer.apply([tape.gradient(loss, layer.embeddings.value)], [layer.embeddings])
    [second_moment] = [v for v in optimizer.variables if "velocity" in v.path]
    np.testing.assert_allclose(second_moment, 0.5 * summed**2, rtol=1e-5)


@pytest.mark.parametrize("training", [False, True])
def test_an_id_beyond_the_vocabulary_is_named_with_its_size(training):
    layer = TokenEmbedding(7, 4, name="source_embedding")
    message = "source_embedding has vocab_size=7, but the ids are 1 to 9; use ids"
    with pytest.raises(ValueError, match=message):
        layer(np.array([[1, 9]]), training=training)


def test_fresh_embeddings_and_their_logits_have_unit_variance():
    layer = TokenEmbedding(2000, 64)
    embedded = layer(tf.range(2000)[tf.newaxis])
    assert np.std(embedded) == pytest.approx(1, abs=0.02)
    x = np.random.default_rng(2).normal(size=(100, 64)).astype(np.float32)
    assert np.std(layer.logits(tf.constant(x))) == pytest.approx(1, abs=0.03)


WIDER_TYPES = ["int8", "int16", "int64", "uint8", "uint16", "uint32", "uint64", "float32"]


@pytest.mark.parametrize("layer_class", [TokenEmbedding, ZeroStartEmbedding])
def test_ids_of_any_type_are_looked_up(layer_class):
    layer = randomized(layer_class(7, 16))
    ids = np.array([[0, 6], [3, START_ID]])
    expected = 4 * layer.get_weights()[0][ids]
    if layer_class is ZeroStartEmbedding:
        expected[ids == START_ID] = 0
    for kind, training in itertools.product(WIDER_TYPES, (False, True)):
        found = layer(ids.astype(kind), training=training)
        np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=kind)


MATRIX = RNG.normal(size=(9, 16)).astype(np.float32)
PADDED = np.array([[3, 4, 0, 0], [5, 8, 7, 0]])
OF_KERAS = {  # arguments of Keras' own layer
    "none": {},
    "initializer": {"embeddings_initializer": "ones"},
    "regularizer": {"embeddings_regularizer": keras.regularizers.L2(0.1)},
    "constraint": {"embeddings_constraint": keras.constraints.MaxNorm(1.0)},
    "mask": {"mask_zero": True},
    "weights": {"weights": [MATRIX]},
    "bare_weights": {"weights": MATRIX},
    "lora": {"lora_rank": 2},
    "activity": {"activity_regularizer": keras.regularizers.L1(0.3)},
}


def pooled(embedding):
    layers = [embedding, keras.layers.GlobalAveragePooling1D()]
    model = keras.Sequential(layers)
    model(PADDED)
    return model


@pytest.mark.parametrize("arguments", OF_KERAS.values(), ids=OF_KERAS)
def test_arguments_of_keras_do_as_in_its_own_layer_before_and_after_a_file(arguments, tmp_path):
    model = pooled(TokenEmbedding(9, 16, scale=False, **arguments))
    reference = pooled(keras.layers.Embedding(9, 16, **arguments))
    given = arguments.keys() & {"weights", "embeddings_initializer"}
    if not given:
        reference.set_weights(model.get_weights())
    for each in (model, reference):
        optimizer, loss = keras.optimizers.SGD(2.0), keras.losses.MeanSquaredError()
        each.compile(optimizer, loss, run_eagerly=True)
    expected = [float(reference.train_on_batch(PADDED, np.ones((2, 16)))) for _ in range(2)]
    losses = [float(model.train_on_batch(PADDED, np.ones((2, 16)))) for _ in range(2)]
    assert losses == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(model(PADDED), reference(PADDED), rtol=1e-5, atol=1e-6)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.layers[0].get_config() == model.layers[0].get_config()
    np.testing.assert_allclose(loaded(PADDED), reference(PADDED), rtol=1e-5, atol=1e-6)
    after = float(reference.evaluate(PADDED, np.ones((2, 16)), verbose=0))
    assert loaded.evaluate(PADDED, np.ones((2, 16)), verbose=0) == pytest.approx(after, rel=1e-5)


def test_a_lora_from_the_constructor_has_its_alpha_and_learns_on_after_a_file(tmp_path):
    model = pooled(TokenEmbedding(9, 16, lora_rank=2, lora_alpha=6))
    embedding = model.layers[0]
    a, b = (RNG.normal(size=shape).astype(np.float32) for shape in ((9, 2), (2, 16)))
    embedding.lora_embeddings_a.assign(a)
    embedding.lora_embeddings_b.assign(b)
    expected = 4 * (embedding._embeddings.numpy() + 6 / 2 * a @ b)[PADDED]
    np.testing.assert_allclose(embedding(PADDED), expected, rtol=1e-4, atol=1e-5)

    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    embedding = loaded.layers[0]
    assert (embedding.lora_rank, embedding.lora_alpha) == (2, 6)
    np.testing.assert_allclose(embedding(PADDED), expected, rtol=1e-4, atol=1e-5)
    loaded.compile(keras.optimizers.SGD(0.003), "mse", jit_compile=False)
    merged = embedding._embeddings.numpy()
    losses = [float(loaded.train_on_batch(PADDED, np.zeros((2, 16)))) for _ in range(20)]
    assert losses[-1] < 0.9 * losses[0]
    np.testing.assert_array_equal(embedding._embeddings.numpy(), merged)


# Attention


@pytest.mark.parametrize("use_bias", [True, False])
@pytest.mark.parametrize(
    "mask", [None, MEMORY_MASK, look_ahead_mask(4, 5), MEMORY_MASK & look_ahead_mask(4, 5)]
)
def test_attention_equals_numpy(use_bias, mask):
    layer = randomized(MultiHeadAttention(D, HEADS, use_bias))
    assert len(layer.weights) == (6 if use_bias else 3)
    output, weights = layer(tf.constant(TARGET), tf.constant(MEMORY), mask, return_weights=True)
    expected_output, expected_weights = numpy_attention(layer, TARGET, MEMORY, mask)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(output, expected_output, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("policy", ["float32", *HALVES])
def test_attention_weights_are_exactly_zero_on_padding_and_sum_to_one(policy):
    layer = randomized(MultiHeadAttention(D, HEADS, dtype=policy))
    mask = MEMORY_MASK & look_ahead_mask(4, 5)
    query, memory = (
        tf.cast(5 * TARGET, layer.compute_dtype),
        tf.cast(5 * MEMORY, layer.compute_dtype),
    )
    _, weights = layer(query, memory, mask, return_weights=True)
    weights = np.asarray(weights, np.float32)
    allowed = np.broadcast_to(mask, weights.shape)
    assert (weights[~allowed] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-6 if policy == "float32" else 1e-2)


def with_identity_projections(policy: str) -> MultiHeadAttention:
    layer = MultiHeadAttention(8, 2, use_bias=False, dtype=policy)
    layer.build()
    layer.query.set_weights([np.eye(8)])
    layer.key_value.set_weights([np.concatenate([np.eye(8), np.eye(8)], axis=1)])
    return layer


def test_scores_are_scaled_by_the_root_of_a_heads_depth():
    """One query and two orthogonal keys with identity projections.

    The odds are exp(x.x / sqrt(d_k)) with d_k = 4.
    """
    layer = with_identity_projections("float32")
    keys = np.zeros((1, 2, 8), np.float32)
    keys[0, 0, 0] = keys[0, 1, 1] = keys[0, 0, 4] = 2
    _, weights = layer(tf.constant(keys[:, :1]), tf.constant(keys), return_weights=True)
    odds = np.exp(2 * 2 / 2)
    np.testing.assert_allclose(
        weights[0, :, 0], [[odds / (odds + 1), 1 / (odds + 1)]] * 2, rtol=1e-6
    )


def to_keras_attention(layer, reference):
    """Copy our weights to a built `keras.layers.MultiHeadAttention`.

    That layer has an axis for the heads.
    """
    split, depth = (D, HEADS, D // HEADS), (HEADS, D // HEADS)
    key_kernel, value_kernel = np.split(np.asarray(layer.key_value.kernel), 2, axis=1)
    key_bias, value_bias = np.split(np.asarray(layer.key_value.bias), 2)
    for dense, kernel, bias in (
        (reference.query_dense, np.asarray(layer.query.kernel), np.asarray(layer.query.bias)),
        (reference.key_dense, key_kernel, key_bias),
        (reference.value_dense, value_kernel, value_bias),
    ):
        dense.set_weights([kernel.reshape(split), bias.reshape(depth)])
    kernel, bias = layer.output_projection.get_weights()
    reference.output_dense.set_weights([kernel.reshape(HEADS, D // HEADS, D), bias])


def test_attention_equals_kerass_with_the_same_weights():
    layer = randomized(MultiHeadAttention(D, HEADS))
    reference = keras.layers.MultiHeadAttention(HEADS, D // HEADS)
    reference.build(TARGET.shape, MEMORY.shape)
    to_keras_attention(layer, reference)
    mask = MEMORY_MASK & look_ahead_mask(4, 5)
    expected, expected_weights = reference(
        TARGET,
        MEMORY,
        attention_mask=mask[:, 0],
        return_attention_scores=True,
        use_causal_mask=False,
    )
    output, weights = layer(tf.constant(TARGET), tf.constant(MEMORY), mask, return_weights=True)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights, expected_weights, rtol=1e-4, atol=1e-6)


# Feed-forward


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("relu", lambda x: np.maximum(x, 0)),
        ("swish", lambda x: x / (1 + np.exp(-x))),
        ("gelu", lambda x: x * np.vectorize(NormalDist().cdf)(x)),
    ],
)
def test_feed_forward_is_two_projections_around_the_activation(activation, function):
    layer = randomized(FeedForward(D, D_FF, activation))
    w1, b1, w2, b2 = layer.get_weights()
    assert (w1.shape, w2.shape) == ((D, D_FF), (D_FF, D))
    expected = function(TARGET @ w1 + b1) @ w2 + b2
    np.testing.assert_allclose(layer(tf.constant(TARGET)), expected, rtol=1e-4, atol=1e-5)


@keras.saving.register_keras_serializable("tests")
def squared_relu(x):
    return tf.square(tf.nn.relu(x))


@pytest.mark.parametrize("activation", [squared_relu, keras.activations.silu])
def test_an_activation_may_be_a_function_and_is_saved(activation, tmp_path):
    sizes = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 8}
    model = tfformer.LanguageModel(9, **sizes, activation=activation)
    sublayer = model.stack.layers[0].feed_forward
    x = tf.constant(RNG.normal(size=(1, 3, 8)), tf.float32)
    expected = sublayer.outer(activation(x @ sublayer.inner.kernel + sublayer.inner.bias))
    np.testing.assert_allclose(sublayer(x), expected, rtol=1e-5)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    ids = np.array([[2, 5, 7]])
    np.testing.assert_array_equal(loaded(ids), model(ids))
    assert keras.models.clone_model(loaded)(ids).shape == (1, 3, 9)


@keras.saving.register_keras_serializable("tests")
class Gated(keras.layers.Layer):
    """(swish(x A) * x B) C, as in Shazeer 2020."""

    def __init__(self, d_model, d_ff, activation, **options):
        super().__init__(**options)
        self.gate = keras.layers.Dense(d_ff, activation, dtype=self.dtype_policy)
        self.value = keras.layers.Dense(d_ff, dtype=self.dtype_policy)
        self.outer = keras.layers.Dense(d_model, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.gate.build(input_shape)
        self.value.build(input_shape)
        self.outer.build((*input_shape[:-1], self.gate.units))

    def call(self, x):
        return self.outer(self.gate(x) * self.value(x))


class GatedEncoderLayer(EncoderLayer):
    feed_forward_class = Gated


class GatedDecoderLayer(DecoderLayer):
    feed_forward_class = Gated


class GatedEncoder(tfformer.Encoder):
    layer_class = GatedEncoderLayer


class GatedDecoder(tfformer.Decoder):
    layer_class = GatedDecoderLayer


@keras.saving.register_keras_serializable("tests")
class GatedTransformer(tfformer.Transformer):
    encoder_class = GatedEncoder
    decoder_class = GatedDecoder


def test_a_feed_forward_of_ones_own_takes_the_place_of_the_papers(tmp_path):
    sizes = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 12, "activation": "swish"}
    model = GatedTransformer(9, 9, **sizes)
    plain = tfformer.Transformer(9, 9, **sizes)
    matrices = 2 * (8 * 12 + 12)  # one more in each of the two layers
    assert model.count_params() == plain.count_params() + matrices
    inputs = {"source": np.array([[5, 7, 3]]), "target": np.array([[2, 8, 4]])}
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded(inputs), model(inputs))
    cache, memory = model.decoder.empty_cache(1, 3), model.encode_and_project(inputs["source"])
    logits, _ = model.step(tf.constant(inputs["target"], tf.int32), 0, cache, memory)
    np.testing.assert_allclose(logits, model(inputs), atol=1e-5)


# Encoder and decoder layer


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("use_bias", [True, False])
def test_encoder_layer_equals_numpy(norm, use_bias):
    layer = randomized(
        EncoderLayer(D, HEADS, D_FF, dropout=0.4, norm=norm, use_bias=use_bias, epsilon=EPSILON)
    )
    expected = numpy_encoder_layer(layer, MEMORY, MEMORY_MASK)
    np.testing.assert_allclose(
        layer(tf.constant(MEMORY), MEMORY_MASK), expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("use_bias", [True, False])
def test_decoder_layer_equals_numpy(norm, use_bias):
    layer = randomized(
        DecoderLayer(D, HEADS, D_FF, dropout=0.4, norm=norm, use_bias=use_bias, epsilon=EPSILON)
    )
    expected = numpy_decoder_layer(layer, TARGET, MEMORY, look_ahead_mask(4), MEMORY_MASK)
    output = layer(tf.constant(TARGET), tf.constant(MEMORY), look_ahead_mask(4), MEMORY_MASK)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def to_keras_hub(layer, reference):
    to_keras_attention(layer.self_attention, reference._self_attention_layer)
    reference._self_attention_layer_norm.set_weights(
        layer.self_attention_residual.normalization.get_weights()
    )
    reference._feedforward_intermediate_dense.set_weights(layer.feed_forward.inner.get_weights())
    reference._feedforward_output_dense.set_weights(layer.feed_forward.outer.get_weights())
    reference._feedforward_layer_norm.set_weights(
        layer.feed_forward_residual.normalization.get_weights()
    )
    if isinstance(layer, DecoderLayer):
        to_keras_attention(layer.cross_attention, reference._cross_attention_layer)
        reference._cross_attention_layer_norm.set_weights(
            layer.cross_attention_residual.normalization.get_weights()
        )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_encoder_layer_equals_keras_hubs_with_the_same_weights(norm):
    keras_hub = pytest.importorskip("keras_hub")
    layer = randomized(EncoderLayer(D, HEADS, D_FF, norm=norm, epsilon=EPSILON))
    reference = keras_hub.layers.TransformerEncoder(
        D_FF, HEADS, layer_norm_epsilon=EPSILON, normalize_first=norm == "pre"
    )
    reference.build(MEMORY.shape)
    to_keras_hub(layer, reference)
    expected = reference(MEMORY, padding_mask=MEMORY_IDS != 0)
    np.testing.assert_allclose(
        layer(tf.constant(MEMORY), MEMORY_MASK), expected, rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_decoder_layer_equals_keras_hubs_with_the_same_weights(norm):
    keras_hub = pytest.importorskip("keras_hub")
    layer = randomized(DecoderLayer(D, HEADS, D_FF, norm=norm, epsilon=EPSILON))
    reference = keras_hub.layers.TransformerDecoder(
        D_FF, HEADS, layer_norm_epsilon=EPSILON, normalize_first=norm == "pre"
    )
    reference.build(TARGET.shape, MEMORY.shape)
    to_keras_hub(layer, reference)
    expected = reference(TARGET, MEMORY, encoder_padding_mask=MEMORY_IDS != 0, use_causal_mask=True)
    output = layer(tf.constant(TARGET), tf.constant(MEMORY), look_ahead_mask(4), MEMORY_MASK)
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_a_row_whose_keys_are_all_masked_weights_them_alike():
    layer = randomized(MultiHeadAttention(D, HEADS))
    mask = tf.zeros((1, 1, 1, MEMORY.shape[1]), bool)
    _, weights = layer(tf.constant(TARGET), tf.constant(MEMORY), mask, return_weights=True)
    np.testing.assert_allclose(weights, np.full(weights.shape, 1 / MEMORY.shape[1]), rtol=1e-6)


@pytest.mark.parametrize("policy", HALVES)
def test_such_a_row_stays_finite_in_half_precision(policy):
    """Every score is -50; adding the lowest number as a mask would overflow."""
    layer = with_identity_projections(policy)
    memory = tf.fill((1, 3, 8), tf.constant(5, layer.compute_dtype))
    _, weights = layer(-memory, memory, tf.zeros((1, 1, 1, 3), bool), return_weights=True)
    np.testing.assert_allclose(np.asarray(weights, np.float32), 1 / 3, rtol=1e-2)


each_decoder_layer = pytest.mark.parametrize(
    ("layer_class", "norm"),
    [(DecoderLayer, "post"), (DecoderLayer, "pre"), (MarianDecoderLayer, "marian")],
)


@each_decoder_layer
def test_a_decoder_layers_last_step_may_attend_to_all_without_a_mask(layer_class, norm):
    layer = randomized(layer_class(D, HEADS, D_FF, norm=norm))
    x, memory = tf.constant(TARGET), layer.cross_attention.project(tf.constant(MEMORY))
    expected = layer(x, tf.constant(MEMORY), look_ahead_mask(4), MEMORY_MASK)
    past, cache = layer.step(x[:, :3], look_ahead_mask(3), None, 0, memory, MEMORY_MASK)
    room = KeysValues(*[tf.pad(tensor, ((0, 0), (0, 0), (0, 1), (0, 0))) for tensor in cache])
    for mask in (None, tf.ones((1, 1, 1, 1), tf.bool)):
        last, _ = layer.step(x[:, 3:], mask, room, 3, memory, MEMORY_MASK)
        np.testing.assert_allclose(tf.concat([past, last], axis=1), expected, rtol=1e-4, atol=1e-5)


@each_decoder_layer
def test_decoder_layer_steps_with_a_cache_equal_all_positions_at_once(layer_class, norm):
    """In steps of 1, 2 and 1 positions."""
    layer = randomized(layer_class(D, HEADS, D_FF, norm=norm))
    expected = layer(tf.constant(TARGET), tf.constant(MEMORY), look_ahead_mask(4), MEMORY_MASK)
    memory = layer.cross_attention.project(tf.constant(MEMORY))
    cache = KeysValues(
        *[tf.fill([2, HEADS, 6, D // HEADS], 99.0)] * 2
    )  # unwritten places must never be looked at
    outputs = []
    for first, count in ((0, 1), (1, 2), (3, 1)):
        mask = look_ahead_mask(count, 6, first)
        x = tf.constant(TARGET[:, first : first + count])
        output, cache = layer.step(x, mask, cache, first, memory, MEMORY_MASK)
        outputs.append(output)
    np.testing.assert_allclose(tf.concat(outputs, axis=1), expected, rtol=1e-4, atol=1e-5)
