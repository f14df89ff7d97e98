"""Batches of few shapes against brute force, and against the same rows without the padding."""

import itertools
import random

import keras
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.word_ids import WordIds, encode_pairs, unlike_pairs

import tfformer
from tfformer.config import Config
from tfformer.data import encoding
from tfformer.data.batch_shapes import (
    TRAINING_SHAPES,
    VALIDATION_SHAPES,
    BatchShapes,
    best_widths,
)
from tfformer.data.batches import Batches, training_dataset
from tfformer.special_ids import PAD_ID
from tfformer.training.start import Start
from tfformer.training.training_data import TrainingData

MOST = 16


def fewest_positions(counts, most):
    """The least that the rows take, of all choices of at most `most` widths."""
    *shorter, longest = np.flatnonzero(counts).tolist()
    choices = itertools.chain.from_iterable(
        itertools.combinations(shorter, size) for size in range(min(most, len(shorter) + 1))
    )
    return min(positions(counts, [*choice, longest]) for choice in choices)


def positions(counts, widths):
    return sum(
        rows * least_that_holds(length, widths)
        for length, rows in enumerate(counts.tolist())
        if rows
    )


def least_that_holds(length, widths):
    return min(width for width in widths if width >= length)


@given(inner=st.lists(st.integers(0, 5), max_size=8), most=st.integers(1, 4))
def test_no_other_widths_need_less_padding(inner, most):
    counts = np.array([0, *inner, 1])
    widths = best_widths(counts, most)
    assert len(widths) <= most
    assert positions(counts, widths.tolist()) == fewest_positions(counts, most)


@pytest.fixture(scope="module")
def texts():
    """700 pairs with sides of 2 to 80 ids, the end included."""
    return unlike_pairs(longest=80, mean=20)


def epochs_of(batches, epochs):
    return [batches.batch(step) for step in range(epochs * batches.steps_per_epoch)]


def rows_of(batch):
    """The rows that have tokens, as (source, target) without padding."""
    inputs, labels, _ = batch
    return [
        (without_padding(source), without_padding(target))
        for source, target in zip(inputs["source"], labels, strict=True)
        if target.any()
    ]


def without_padding(row):
    return tuple(row[row != PAD_ID])


def shapes_of(batches, epochs):
    return {labels.shape for _, labels, _ in epochs_of(batches, epochs)}


def widths_of(batches, epochs):
    return {width for _, width in shapes_of(batches, epochs)}


def test_all_epochs_together_have_at_most_the_wanted_shapes(texts):
    pairs = encode_pairs(texts, max_length=80)
    plain, few = Batches(pairs, 256), Batches(pairs, 256, most_shapes=MOST)
    shapes = shapes_of(few, 5)
    assert len(shapes) <= MOST < len(shapes_of(plain, 5))
    assert all(rows == 256 // width for rows, width in shapes)
    for inputs, labels, _ in epochs_of(few, 1):
        assert inputs["source"].shape == inputs["target"].shape == labels.shape


def test_an_epoch_of_few_shapes_holds_every_pair_once(texts):
    pairs = encode_pairs(texts, max_length=80)
    given = itertools.chain.from_iterable(map(rows_of, epochs_of(Batches(pairs, 1024), 1)))
    few = epochs_of(Batches(pairs, 1024, most_shapes=MOST), 1)
    assert sorted(itertools.chain.from_iterable(map(rows_of, few))) == sorted(given)


def test_the_padding_of_few_shapes_is_counted(texts):
    batches = Batches(encode_pairs(texts, max_length=80), 1024, most_shapes=MOST)
    sides = [
        side for inputs, labels, _ in epochs_of(batches, 1) for side in (inputs["source"], labels)
    ]
    padding = sum((side == PAD_ID).sum() for side in sides) / sum(side.size for side in sides)
    assert batches.padding_share == pytest.approx(padding, abs=1e-12)


def test_text_with_one_side_has_few_shapes_too(texts):
    text = encoding.encode_text([(source,) for source, _ in texts], [WordIds()], 80)
    plain, few = (Batches(text, 256, most_shapes=most) for most in (None, MOST))
    assert len(shapes_of(few, 3)) <= MOST < len(shapes_of(plain, 3))


def test_a_small_text_gets_no_more_rows_than_it_has():
    pairs = encode_pairs([("5 6", "7"), ("5", "7")], max_length=8)
    ((inputs, labels, _),) = epochs_of(Batches(pairs, 4096, most_shapes=MOST), 1)
    assert inputs["source"].shape == labels.shape == (2, 3)


def test_epochs_of_other_segmentations_add_few_shapes():
    """Each row has up to three tokens more, so some batches hold more than the budget."""
    dice = random.Random(5)
    lengths = [dice.randint(1, 20) for _ in range(300)]

    def text_of(epoch):
        more = [" 5" * dice.randint(0, 3 * (epoch > 0)) for _ in lengths]
        rows = [
            ("5" + " 5" * size + longer, "6") for size, longer in zip(lengths, more, strict=True)
        ]
        return encode_pairs(rows, max_length=30)

    batches = Batches(text_of(0), 200, text_of_epoch=text_of, most_shapes=MOST)
    shapes = shapes_of(batches, 8)
    added = {(rows, width) for rows, width in shapes if rows != 200 // width}
    assert added
    assert all(rows % 8 == 0 for rows, _ in added)
    assert len(shapes) <= 2 * MOST


def test_rows_that_the_first_epoch_of_a_mixture_lacks_have_a_width():
    short, long = [("5 6", "7")] * 40, [("8 9", "7")] * 39 + [("5 " * 30, "7")]
    text = encoding.encode_corpora([short, long], (WordIds(), WordIds()), max_length=40)
    batches = Batches(text, 80, seed=1, shares=[0.95, 0.05], most_shapes=MOST)
    assert widths_of(batches, 1) == {3}
    assert widths_of(batches, 30) == {3, 31}


def test_a_row_that_is_longer_than_the_counted_ones_has_a_width_of_its_own():
    shapes = BatchShapes(50, np.bincount([3, 5, 5]), most=2)
    assert shapes.widths(np.array([2, 4, 5, 6, 17, 49, 50])).tolist() == [3, 5, 5, 8, 24, 50, 50]


@pytest.mark.slow
def test_the_added_padding_changes_no_update(texts):
    """Losses and weights beside the same rows, padded no further than their longest."""
    batches = Batches(encode_pairs(texts, max_length=80), 256, most_shapes=MOST)
    models = []
    for _ in range(2):
        keras.utils.set_random_seed(1)
        sizes = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 32, "dropout": 0.0}
        model = tfformer.Transformer(3000, 3000, **sizes)
        loss = tfformer.SmoothedCrossEntropy(0.1)
        model.compile(keras.optimizers.SGD(0.5), loss, jit_compile=False)
        models.append(model)
    padded, plain = models
    smaller = 0
    for batch in epochs_of(batches, 1)[-6:]:
        cut = without_added_padding(batch)
        smaller += cut[1].size < batch[1].size
        losses = [
            float(model.train_on_batch(*given)) for model, given in ((padded, batch), (plain, cut))
        ]
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert smaller >= 3
    for one, other in zip(padded.get_weights(), plain.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def without_added_padding(batch):
    inputs, labels, weights = batch
    rows = labels.any(axis=1)

    def cut(ids):
        return ids[rows][:, ids.any(axis=0)]

    width = cut(labels).shape[1]
    shortened = {"source": cut(inputs["source"]), "target": inputs["target"][rows, :width]}
    return shortened, cut(labels), weights[rows, :width]


def test_training_dataset_gives_few_shapes(letters):
    dice = random.Random(6)
    pairs = [("".join(dice.choices("abcd", k=dice.randint(1, 60))), "ab") for _ in range(900)]
    counts = []
    for few_shapes in (False, True):
        dataset = training_dataset(pairs, letters, batch_tokens=64, few_shapes=few_shapes)
        sources = (inputs["source"] for inputs, *_ in dataset.as_numpy_iterator())
        counts.append(len({source.shape for source in sources}))
    assert counts[1] <= TRAINING_SHAPES < counts[0]


@pytest.mark.parametrize("jit_compile", [False, True])
def test_a_recipe_with_jit_compile_has_few_shapes(jit_compile, tmp_path):
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
    for batches, most in ((data.train, TRAINING_SHAPES), (data.valid, VALIDATION_SHAPES)):
        shapes = {labels.shape for _, labels, _ in epochs_of(batches, 1)}
        assert (len(shapes) <= most) == jit_compile
