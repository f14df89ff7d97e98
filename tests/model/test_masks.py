"""Compare masks with arrays written by hand, and the masks that Keras propagates with NumPy."""

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
from tfformer.model.masks import look_ahead_mask, padding_mask


def test_padding_mask_is_true_on_every_id_but_zero():
    ids = tf.constant([[5, 1, 3, 0], [2, 0, 0, 0], [9, 0, 7, 3]])
    mask = padding_mask(ids)
    assert mask.dtype == tf.bool
    np.testing.assert_array_equal(
        mask, np.array([[[[1, 1, 1, 0]]], [[[1, 0, 0, 0]]], [[[1, 0, 1, 1]]]], bool)
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"queries": 1}, [[1]]),
        ({"queries": 4}, [[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]),
        ({"queries": 2, "keys": 4}, [[1, 0, 0, 0], [1, 1, 0, 0]]),
        ({"queries": 3, "keys": 2}, [[1, 0], [1, 1], [1, 1]]),
        ({"queries": 1, "keys": 5, "position": 0}, [[1, 0, 0, 0, 0]]),
        ({"queries": 1, "keys": 5, "position": 3}, [[1, 1, 1, 1, 0]]),
        ({"queries": 2, "keys": 5, "position": 2}, [[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]),
        ({"queries": 1, "keys": 3, "position": 7}, [[1, 1, 1]]),
    ],
)
def test_look_ahead_mask_hides_every_later_position(arguments, expected):
    mask = look_ahead_mask(**arguments)
    assert mask.dtype == tf.bool
    np.testing.assert_array_equal(mask, np.array([[expected]], bool))


def test_masks_are_the_same_in_a_graph_of_unknown_sizes():
    sizes = [tf.TensorSpec([], tf.int32)] * 3
    in_graph = tf.function(look_ahead_mask, input_signature=sizes)
    np.testing.assert_array_equal(
        in_graph(2, 4, 1), np.array([[[[1, 1, 0, 0], [1, 1, 1, 0]]]], bool)
    )
    in_graph = tf.function(padding_mask, input_signature=[tf.TensorSpec([None, None], tf.int32)])
    np.testing.assert_array_equal(
        in_graph([[4, 0], [0, 4]]), np.array([[[[1, 0]]], [[[0, 1]]]], bool)
    )


@pytest.mark.parametrize("settings", [{"keys": 5}, {"position": 3}])
def test_ids_have_no_other_keys_and_no_position(settings):
    with pytest.raises(ValueError, match="keys and position cannot be combined with token ids"):
        look_ahead_mask([[7, 5]], **settings)


def test_a_mask_of_rank_2_is_over_keys_and_with_a_new_axis_over_queries_and_keys():
    attention, mask = MultiHeadAttention(8, 2), np.tri(3, dtype=bool)
    x = np.random.default_rng(0).normal(size=(3, 3, 8)).astype("float32")  # B = T = S
    _, over_keys = attention(x, x, attention_mask=mask, return_weights=True)
    _, over_both = attention(x, x, attention_mask=mask[None], return_weights=True)
    shape = (3, 2, 3, 3)  # (B, H, T, S)
    np.testing.assert_array_equal(over_keys > 0, np.broadcast_to(mask[:, None, None], shape))
    np.testing.assert_array_equal(over_both > 0, np.broadcast_to(mask, shape))


D, HEADS, D_FF = 12, 3, 20
IDS = np.array([[4, 7, 9, 3, 0], [4, 3, 0, 0, 0], [5, 6, 3, 0, 0]], np.int32)
SIZES = {"as_many_rows_as_positions": 5, "fewer_rows_than_positions": 3}
each_size = pytest.mark.parametrize("rows", SIZES.values(), ids=SIZES)


def ids_of(rows: int) -> np.ndarray:
    return np.concatenate([IDS, IDS[::-1]])[:rows]


def embedded(ids: np.ndarray, mask_zero: bool = True, seed: int = 3) -> tf.Tensor:
    """Return vectors (B, S, D) that carry a mask, as from Keras' embedding."""
    embedding = keras.layers.Embedding(12, D, mask_zero=mask_zero)
    embedding.build(None)
    return randomized(embedding, seed)(ids)


def numpy_mask(ids: np.ndarray) -> np.ndarray:
    return (ids != 0)[:, np.newaxis, np.newaxis]


def close(output: tf.Tensor, expected: np.ndarray) -> None:
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


@each_size
def test_an_explicit_mask_and_that_of_keras_both_count(rows):
    ids = ids_of(rows)
    layer, x = randomized(tfformer.EncoderLayer(D, HEADS, D_FF)), embedded(ids)
    both = numpy_mask(ids) & np.tril(np.ones((5, 5), bool))
    expected = numpy_encoder_layer(layer, np.asarray(x), both)
    close(layer(x, attention_mask=look_ahead_mask(5)), expected)
    close(layer(x, mask=look_ahead_mask(5)), expected)


@each_size
@pytest.mark.parametrize("name", ["attention_mask", "mask"])
def test_an_explicit_mask_may_be_over_keys_or_over_queries_and_keys(rows, name):
    ids = ids_of(rows)
    layer = randomized(tfformer.EncoderLayer(D, HEADS, D_FF))
    x = embedded(ids, mask_zero=False)
    over_key = numpy_encoder_layer(layer, np.asarray(x), numpy_mask(ids))
    close(layer(x, **{name: ids != 0}), over_key)
    queries = (ids != 0)[:, np.newaxis] & np.tril(np.ones((5, 5), bool))
    expected = numpy_encoder_layer(layer, np.asarray(x), queries[:, np.newaxis])
    close(layer(x, **{name: queries}), expected)


@each_size
def test_attention_honours_the_mask_of_its_memory(rows):
    ids = ids_of(rows)
    layer = randomized(tfformer.MultiHeadAttention(D, HEADS))
    query, memory = embedded(ids[:, :4], mask_zero=False), embedded(ids)
    arrays = np.asarray(query), np.asarray(memory)
    expected, expected_weights = numpy_attention(layer, *arrays, numpy_mask(ids))
    output, weights = layer(query, memory, return_weights=True)
    close(output, expected)
    close(weights, expected_weights)


def test_an_explicit_memory_mask_and_that_of_keras_both_count():
    layer = randomized(tfformer.DecoderLayer(D, HEADS, D_FF))
    x, memory = embedded(IDS[:, :4], mask_zero=False), embedded(IDS, seed=4)
    first_two = np.arange(5) < 2
    both = numpy_mask(IDS) & first_two
    arrays = np.asarray(x), np.asarray(memory)
    memory_mask = np.tile(first_two, (3, 1))
    for is_causal, over_target in ((True, np.tri(4, dtype=bool)), (False, np.ones((4, 4), bool))):
        expected = numpy_decoder_layer(layer, *arrays, over_target, both)
        close(layer(x, memory, memory_mask=memory_mask, use_causal_mask=is_causal), expected)


@each_size
def test_encoder_and_decoder_honour_and_hand_on_the_masks(rows):
    source, target = ids_of(rows), ids_of(rows)[:, :4]
    encoder = randomized(tfformer.Encoder(1, D, HEADS, d_ff=D_FF))
    decoder = randomized(tfformer.Decoder(1, D, HEADS, d_ff=D_FF))
    x, y = embedded(source), embedded(target, seed=4)
    memory = encoder(x)
    entered = np.asarray(x) + numpy_positions(range(5), D)
    expected = numpy_encoder_layer(encoder.layers[0], entered, numpy_mask(source))
    close(memory, expected)
    causal = numpy_mask(target) & np.tril(np.ones((4, 4), bool))
    entered = np.asarray(y) + numpy_positions(range(4), D)
    expected = numpy_decoder_layer(decoder.layers[0], entered, expected, causal, numpy_mask(source))
    close(decoder(y, memory), expected)


def test_a_functional_model_honours_the_mask_and_loads_again(tmp_path):
    source = keras.Input((None,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(12, D, mask_zero=True)(source)
    memory = tfformer.Encoder(1, D, HEADS, d_ff=D_FF)(x)
    y = tfformer.TokenEmbedding(12, D)(target)
    allowed = tfformer.look_ahead_mask(target) & tfformer.padding_mask(target)
    y = tfformer.Decoder(1, D, HEADS, d_ff=D_FF)(y, memory, attention_mask=allowed)
    model = keras.Model([source, target], y)
    ids = [IDS, IDS[:, :4]]
    expected = model(ids)
    padded = [np.pad(IDS, ((0, 0), (0, 3))), np.pad(IDS[:, :4], ((0, 0), (0, 3)))]
    close(model(padded)[:, :4], expected)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(ids), expected)


def test_a_sequence_layer_gets_the_mask_in_fit(tmp_path):
    """Padding at the end does not change a prediction, in the graph that `predict` runs."""
    model = keras.Sequential(
        [
            keras.layers.Embedding(12, D, mask_zero=True),
            tfformer.EncoderLayer(D, HEADS, D_FF),
            keras.layers.GlobalAveragePooling1D(),
        ]
    )
    expected = model.predict(IDS, verbose=0)
    padded = np.pad(IDS, ((0, 0), (0, 3)))
    close(model.predict(padded, verbose=0), expected)


def test_masks_of_symbolic_ids_are_those_of_real_ids():
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, [tfformer.padding_mask(ids), tfformer.look_ahead_mask(ids)])
    padding, look_ahead = model(IDS)
    np.testing.assert_array_equal(padding, numpy_mask(IDS))
    np.testing.assert_array_equal(look_ahead, np.tile(np.tril(np.ones((5, 5), bool)), (3, 1, 1, 1)))
    np.testing.assert_array_equal(look_ahead_mask(IDS), look_ahead)
