"""Packed rows occur once, in one shape, with the same gradients as separate rows."""

import itertools
import random

import keras
import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from support.word_ids import WordIds, encode_pairs, unlike_pairs

import tfformer
from tfformer.config import Config
from tfformer.data import encoding
from tfformer.data.batches import Batches, training_dataset
from tfformer.data.encoding import IdRows
from tfformer.data.packing import count_bins, pack
from tfformer.special_ids import PAD_ID, START_ID
from tfformer.training.resume_or_initialise import Start
from tfformer.training.training_data import TrainingData

WIDTH = 12
SIZES = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0}
PAIRS = st.lists(st.tuples(st.integers(1, WIDTH), st.integers(1, WIDTH)), min_size=1, max_size=40)


@given(pairs=PAIRS, seed=st.integers(0, 9))
def test_each_row_is_in_one_bin_that_holds_it(pairs, seed):
    lengths = np.array(pairs)
    order, bounds = pack(lengths.T, WIDTH, np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(len(pairs)))
    bins = [order[start:stop] for start, stop in itertools.pairwise(bounds)]
    assert all(len(rows) and lengths[rows].sum(axis=0).max() <= WIDTH for rows in bins)
    assert len(bins) == count_bins(lengths.T, WIDTH)


@given(lengths=st.lists(st.integers(1, WIDTH), min_size=1, max_size=7))
def test_one_side_needs_few_more_bins_than_the_best_packing(lengths):
    """At most 11/9 of the minimum number of bins plus 6/9 (Dósa 2007)."""
    fewest = min(map(bins_of_next_fit, itertools.permutations(lengths)))
    assert count_bins([np.array(lengths)], WIDTH) <= (11 * fewest + 6) / 9


def bins_of_next_fit(lengths):
    """For some order of the rows, filling one bin after the other gives the best packing."""
    bins, room = 0, 0
    for length in lengths:
        if length > room:
            bins, room = bins + 1, WIDTH
        room -= length
    return bins


@pytest.fixture(scope="module")
def texts():
    """700 pairs with sides of 2 to 40 ids, the end included."""
    return unlike_pairs(longest=40, mean=10)


def epoch_of(batches, epoch=0):
    first = epoch * batches.steps_per_epoch
    return [batches.batch(first + step) for step in range(batches.steps_per_epoch)]


def pairs_of(batch):
    """Return the (source, target) rows of a packed batch; each begins with the start token."""
    inputs, labels, weights = batch
    np.testing.assert_array_equal(weights, labels != PAD_ID)
    pairs = []
    for row, source in enumerate(inputs["source"]):
        segments = inputs["source_segments"][row], inputs["target_segments"][row]
        for number in range(1, segments[0].max() + 1):
            given, previous, following = (
                ids[segment == number].tolist()
                for ids, segment in (
                    (source, segments[0]),
                    (inputs["target"][row], segments[1]),
                    (labels[row], segments[1]),
                )
            )
            assert previous == [START_ID, *following[:-1]]
            pairs.append((given, following))
    return pairs


def test_an_epoch_holds_every_pair_once_in_one_shape(texts):
    pairs = encode_pairs(texts, max_length=40)
    batches = Batches(pairs, 400, packed=True)
    expected = [
        (source.tolist(), target.tolist())
        for source, target in zip(pairs.source, pairs.target, strict=True)
    ]
    orders = []
    for epoch in range(3):
        epoch_batches = epoch_of(batches, epoch)
        rows = list(itertools.chain.from_iterable(map(pairs_of, epoch_batches)))
        assert sorted(rows) == sorted(expected)
        orders.append(rows)
        assert {labels.shape for _, labels, _ in epoch_batches} == {(10, 40)}
    assert orders[0] != orders[1] != orders[2]


@pytest.mark.parametrize("packed", [False, True])
def test_links_lead_to_the_same_tokens_in_every_batch(texts, packed):
    pairs = encode_pairs(texts, max_length=40)
    dice = np.random.default_rng(3)
    bounds = np.repeat(pairs.source.lengths, pairs.target.lengths)
    links = IdRows(dice.integers(0, bounds + 1).astype(np.int32), pairs.target.offsets)
    expected = []
    for source, target, row in zip(pairs.source, pairs.target, links, strict=True):
        expected += [(t, source[n - 1] if n else 0) for t, n in zip(target, row, strict=True)]
    found = []
    for inputs, labels, weights in epoch_of(Batches(pairs, 400, packed=packed, links=links)):
        sources = np.take_along_axis(inputs["source"], np.maximum(inputs["links"] - 1, 0), axis=1)
        linked = np.where(inputs["links"] > 0, sources, 0)
        found += zip(labels[weights > 0].tolist(), linked[weights > 0].tolist(), strict=True)
        assert not inputs["links"][weights == 0].any()
    assert sorted(found) == sorted(expected)


def test_the_padding_is_counted_and_small(texts):
    batches = Batches(encode_pairs(texts, max_length=40), 400, packed=True)
    arrays = [ids for inputs, labels, _ in epoch_of(batches) for ids in (inputs["source"], labels)]
    padding = sum((ids == PAD_ID).sum() for ids in arrays) / sum(ids.size for ids in arrays)
    assert batches.padding_share == pytest.approx(padding, abs=1e-12)
    assert padding < 0.12


def test_a_small_text_gets_no_more_rows_than_it_needs():
    pairs = encode_pairs([("5 6", "7"), ("5", "7")], max_length=8)
    ((inputs, labels, _),) = epoch_of(Batches(pairs, 4096, packed=True))
    assert inputs["source"].shape == labels.shape == (1, 8)


def test_a_mixture_packs_rows_that_its_first_epoch_lacks():
    short, long = [("5 6", "7")] * 42, [("8 9", "7")] * 41 + [("5 " * 30, "7")]
    text = encoding.encode_corpora([short, long], (WordIds(), WordIds()), max_length=40)
    batches = Batches(text, 80, seed=1, shares=[0.95, 0.05], packed=True)
    longest = [
        max(len(source) for batch in epoch_of(batches, epoch) for source, _ in pairs_of(batch))
        for epoch in range(30)
    ]
    assert longest[0] == 3
    assert max(longest) == 31


def test_no_batch_is_padding_alone_if_a_draw_needs_fewer_bins():
    short, long = [("5 6", "7")] * 42, [("5 " * 30, "7")] * 42
    text = encoding.encode_corpora([short, long], (WordIds(), WordIds()), max_length=40)
    batches = Batches(text, 40, seed=1, shares=[0.5, 0.5], packed=True)
    for epoch in range(20):
        assert all(labels.any() for _, labels, _ in epoch_of(batches, epoch))


def gradients(model, batch):
    """Return the loss of a batch, and the gradients of all weights."""
    inputs, labels, weights = batch
    with tf.GradientTape() as tape:
        loss = tfformer.SmoothedCrossEntropy(0.1)(labels, model(inputs, training=True), weights)
    computed = tape.gradient(loss, [weight.value for weight in model.trainable_variables])
    return float(loss), [gradient.numpy() for gradient in computed]


@pytest.mark.parametrize(
    ("sides", "settings"),
    [
        (2, {"norm": "post"}),
        (2, {"norm": "pre", "dialect": "m2m100"}),
        (2, {"norm": "marian", "dialect": "marian"}),
        (1, {"norm": "pre"}),
    ],
)
def test_loss_and_gradients_are_those_of_rows_alone(texts, sides, settings):
    tokenizers = [WordIds()] * sides
    text = encoding.encode_text([pair[:sides] for pair in texts[:60]], tokenizers, 40)
    model_class = tfformer.Transformer if sides == 2 else tfformer.LanguageModel
    keras.utils.set_random_seed(1)
    model = model_class(*[3000] * sides, **SIZES, **settings)
    (plain,) = epoch_of(Batches(text, 60 * 40))
    (packed,) = epoch_of(Batches(text, 60 * 40, packed=True))
    assert len(packed[1]) < len(plain[1]) / 2
    loss, packed_gradients = gradients(model, packed)
    expected_loss, expected = gradients(model, plain)
    assert loss == pytest.approx(expected_loss, rel=1e-6)
    for gradient, wanted in zip(packed_gradients, expected, strict=True):
        np.testing.assert_allclose(gradient, wanted, atol=1e-5)


def test_training_dataset_gives_one_shape(letters):
    dice = random.Random(6)
    pairs = [("".join(dice.choices("abcd", k=dice.randint(1, 60))), "ab") for _ in range(900)]
    dataset = training_dataset(pairs, letters, batch_tokens=128, packed=True)
    shapes = {inputs["source_segments"].shape for inputs, *_ in dataset.as_numpy_iterator()}
    assert len(shapes) == 1


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_recipe_with_jit_compile_has_one_shape(jit_compile, tmp_path):
    for name, word in (("en", "a"), ("de", "b")):
        lines = (" ".join([word] * (1 + number % 40)) for number in range(400))
        (tmp_path / f"text.{name}").write_text("\n".join(lines))
    text = [str(tmp_path / "text.en"), str(tmp_path / "text.de")]
    config = Config.from_dict(
        {
            "tokenizer": {"vocab_size": 9},
            "data": {"train": text, "valid": text, "max_length": 60, "batch_tokens": 256},
            "training": {"jit_compile": jit_compile},
        }
    )
    data = TrainingData.read(config, Start(), print)
    for batches in (data.train, data.valid):
        shapes = {labels.shape for _, labels, _ in epoch_of(batches)}
        assert (len(shapes) == 1) == jit_compile
