"""The key/value cache keeps its positions and grows when it is full; results do not change."""

import functools

import numpy as np
import pytest
import tensorflow as tf
from support.numpy_layers import randomized

from tfformer.model.cache import BeamCache, KeysValues, capacity_of, enlarged, with_capacity
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer

RNG = np.random.default_rng(0)
SIZES = {"d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}
SOURCE = np.array([[5, 9, 4, 7, 3], [8, 3, 0, 0, 0], [6, 6, 10, 3, 0]], np.int32)
TARGET = RNG.integers(1, 13, size=(3, 6)).astype(np.int32)


@functools.cache
def transformer(norm: str = "post", decoder_kind: str = "attention") -> Transformer:
    others = {"num_layers": 1, "num_decoder_layers": 2, "dialect": {"output_bias": True}}
    model = Transformer(13, 13, norm=norm, decoder_kind=decoder_kind, **others, **SIZES)
    return randomized(model, scale=0.25)


def key_value(positions: int) -> KeysValues:
    shape = (2, 3, positions, 4)
    return KeysValues(*(tf.constant(RNG.normal(size=shape), tf.float32) for _ in range(2)))


@pytest.mark.parametrize("in_graph", [False, True])
def test_a_cache_of_no_rows_is_written_to_without_an_error(in_graph):
    cache = KeysValues(*[tf.zeros((0, 3, 6, 4))] * 2)

    def written():
        return cache.write(KeysValues(*[tf.zeros((0, 3, 2, 4))] * 2), 1).values

    write = tf.function(written) if in_graph else written
    assert write().shape == (0, 3, 6, 4)


def test_in_a_graph_a_cache_of_static_shape_stays_and_a_dynamic_one_grows():
    @tf.function
    def grown(key, length):
        return with_capacity((KeysValues(key, key),), length)[0].keys

    static = grown.get_concrete_function(tf.TensorSpec((1, 1, 2, 4)), tf.TensorSpec((), tf.int32))
    dynamic = grown.get_concrete_function(
        tf.TensorSpec((1, 1, None, 4)), tf.TensorSpec((), tf.int32)
    )
    key, length = tf.ones((1, 1, 2, 4)), tf.constant(7)
    assert static(key, length).shape[2] == 2
    assert dynamic(key, length).shape[2] == 7


def decoded(model, capacity, chunks):
    """Decode TARGET through a cache in chunks. Returns its logits and the final capacity."""
    memory = model.encode_and_project(SOURCE)
    cache, position, logits = model.decoder.empty_cache(3, capacity), 0, []
    for count in chunks:
        ids = tf.constant(TARGET[:, position : position + count])
        step_logits, cache = model.step(ids, position, cache, memory)
        logits.append(step_logits)
        position += count
    return tf.concat(logits, axis=1), tf.shape(cache[0].keys)[2]


@pytest.mark.parametrize(
    ("norm", "capacity", "chunks", "expected", "in_graph"),
    [
        ("post", 1, [1] * 6, 8, False),
        ("pre", 8, [1, 2, 1], 8, False),
        ("marian", 8, [1, 2, 1], 8, False),
        ("pre", 2, [6], 6, False),
        ("post", 8, [2, 4], 8, False),
        pytest.param("post", 1, [2, 3], 5, True, marks=pytest.mark.slow),
    ],
)
def test_cached_decoding_equals_uncached(norm, capacity, chunks, expected, in_graph):
    """A cache that is too short grows."""
    model = transformer(norm)
    signature = [tf.TensorSpec((), tf.int32)]

    def run(capacity):
        return decoded(model, capacity, chunks)

    call = tf.function(run, input_signature=signature) if in_graph else run
    logits, grown = call(tf.constant(capacity))
    assert int(grown) == expected
    uncached = model({"source": SOURCE, "target": TARGET})[:, : sum(chunks)]
    np.testing.assert_allclose(logits, uncached, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("capacity", "norm", "decoder_kind", "is_enlarged_before"),
    [
        (1, "post", "attention", False),
        (1, "pre", "attention", True),
        (3, "marian", "attention", True),
        (1, "post", "ssru", False),
    ],
)
def test_beams_that_change_places_keep_their_own_past(
    capacity, norm, decoder_kind, is_enlarged_before
):
    """Each beam continues a random beam, and gets the result of recomputing its whole prefix."""
    model, beams, steps = transformer(norm, decoder_kind), 3, 5
    memory = model.encode_and_project(SOURCE)
    cache = model.decoder.empty_beam_cache(len(SOURCE), beams, capacity)
    prefixes = np.zeros((len(SOURCE) * beams, 0), np.int32)
    encoded = model.encode(SOURCE.repeat(beams, axis=0))
    for step in range(steps):
        ids = RNG.integers(1, 13, size=(len(SOURCE), beams)).astype(np.int32)
        prefixes = np.concatenate([prefixes, ids.reshape(-1, 1)], axis=1)
        if is_enlarged_before and capacity_of(cache) == step * beams:
            cache = enlarged(cache, 2)
        hidden, cache = model.hidden_beam_step(ids, step, cache, memory)
        uncached = model.decode(prefixes, *encoded)[:, -1]
        logits = tf.reshape(model.logits(hidden), (-1, 13))
        np.testing.assert_allclose(logits, uncached, rtol=1e-4, atol=1e-5)
        parents = RNG.integers(0, beams, size=(len(SOURCE), beams))
        rows = (np.arange(len(SOURCE))[:, np.newaxis] * beams + parents).reshape(-1)
        prefixes, cache = prefixes[rows], cache.reordered(rows)


@pytest.mark.parametrize("kept", [[0, 2], [2], [0, 1, 2], []])
def test_the_beams_of_the_kept_sentences_see_what_they_saw(kept):
    keys, visible = RNG.normal(size=(3, 2, 5, 4)), RNG.random((3, 2, 1, 5, 1)) < 0.5
    layer = KeysValues(tf.constant(keys), tf.constant(-keys))
    cache = BeamCache((layer,), tf.constant(visible.reshape(6, 1, 5, 1)))
    after = cache.kept(tf.constant(kept, tf.int32))
    np.testing.assert_array_equal(after.keys_values[0].keys, keys[kept])
    np.testing.assert_array_equal(after.keys_values[0].values, -keys[kept])
    np.testing.assert_array_equal(after.visible, visible[kept].reshape(-1, 1, 5, 1))
    nobody = after.kept(tf.zeros([0], tf.int32))
    assert nobody.kept(tf.zeros([0], tf.int32)).visible.shape == (0, 1, 5, 1)


def test_reordering_beams_moves_no_key_and_no_value():
    keys_values = (key_value(4),)
    visible = np.array([[True] * 4, [False] * 4] * 2).reshape(4, 1, 4, 1)
    cache = BeamCache(keys_values, tf.constant(visible))
    after = cache.reordered([1, 1, 2, 3])
    assert after.keys_values is keys_values
    np.testing.assert_array_equal(after.visible[:, 0, 0, 0], [False, False, True, False])


@pytest.mark.parametrize("capacity", [1, 30])
def test_a_prefix_longer_than_the_cache_is_read_whole(capacity):
    model = LanguageModel(13, num_layers=2, norm="pre", **SIZES)
    logits, cache = model.step(TARGET, 0, model.stack.empty_cache(3, capacity))
    np.testing.assert_allclose(logits, model(TARGET), rtol=1e-4, atol=1e-5)
    assert cache[0].keys.shape[2] == max(capacity, 6)
