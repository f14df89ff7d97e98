"""Compare masks with arrays written by hand; 1 = may be attended to."""

import numpy as np
import pytest
import tensorflow as tf

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
