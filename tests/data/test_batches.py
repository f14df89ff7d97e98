"""Compare batches with brute force over whole epochs."""

import itertools
import random
import tracemalloc

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given
from hypothesis import strategies as st
from support.word_ids import WordIds, encode_pairs, unlike_pairs

from tfformer.data import batches as data
from tfformer.data import encoding
from tfformer.data.batches import Batches
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID, START_ID


def test_text_with_one_side_is_encoded_and_batched_without_a_source():
    text = encoding.encode_text([("5 6",), ("",), ("1 2 3",), ("9",)], [WordIds()], max_length=3)
    assert (
        text.report()
        == "2 sentences kept (5 tokens), 1 dropped as empty, 1 as longer than 3 tokens"
    )
    batches = Batches(text, 8)
    target, labels, weights = batches.batch(0)
    assert sorted(labels.tolist()) == [[5, 6, END_ID], [9, END_ID, PAD_ID]]
    assert sorted(target.tolist()) == [[START_ID, 5, 6], [START_ID, 9, PAD_ID]]
    assert weights.tolist() == (labels != PAD_ID).tolist()
    assert batches.padding_share == pytest.approx(1 / 6)
    for array, expected in zip(
        next(iter(batches.dataset())), (target, labels, weights), strict=True
    ):
        np.testing.assert_array_equal(array, expected)


@pytest.fixture(scope="module")
def pairs():
    """700 pairs with sides of 2 to 40 ids."""
    return encode_pairs(unlike_pairs(longest=40, mean=10), max_length=40)


def rows_of(batch):
    """Return the (source, target) ids of a batch without padding."""
    inputs, labels, _ = batch
    return list(
        zip(map(without_padding, inputs["source"]), map(without_padding, labels), strict=True)
    )


def without_padding(row):
    return row[row != PAD_ID].tolist()


def epoch_of(batches, epoch=0):
    return [
        batches.batch(epoch * batches.steps_per_epoch + step)
        for step in range(batches.steps_per_epoch)
    ]


@pytest.mark.parametrize("batch_tokens", [40, 97, 512, 1_000_000])
def test_an_epoch_holds_every_pair_exactly_once_within_the_budget(pairs, batch_tokens):
    expected = sorted(
        (source.tolist(), target.tolist())
        for source, target in zip(pairs.source, pairs.target, strict=True)
    )
    batches = Batches(pairs, batch_tokens)
    for epoch in (0, 1, 5):
        epoch_batches = epoch_of(batches, epoch)
        assert sorted(itertools.chain.from_iterable(map(rows_of, epoch_batches))) == expected
        for inputs, labels, _ in epoch_batches:
            assert max(inputs["source"].size, labels.size) <= batch_tokens


def test_a_batch_holds_what_teacher_forcing_needs():
    ((inputs, labels, weights),) = epoch_of(
        Batches(encode_pairs([("5", "9"), ("4", "7 8 9"), ("5 6", "7 8 9")]), 12)
    )
    assert inputs["source"].tolist() == [[5, 6, END_ID], [4, END_ID, PAD_ID], [5, END_ID, PAD_ID]]
    assert inputs["target"].tolist() == [
        [START_ID, 7, 8, 9],
        [START_ID, 7, 8, 9],
        [START_ID, 9, PAD_ID, PAD_ID],
    ]
    assert labels.tolist() == [[7, 8, 9, END_ID], [7, 8, 9, END_ID], [9, END_ID, PAD_ID, PAD_ID]]
    assert weights.tolist() == [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 0]]
    assert inputs["source"].dtype == inputs["target"].dtype == labels.dtype == np.int32
    assert weights.dtype == np.float32


def test_pairs_of_like_lengths_are_neighbours():
    source, target = np.array([4, 3, 2, 1, 4, 3, 1, 3]), np.array([4, 3, 4, 3, 2, 1, 1, 3])
    ordered = data.snake_order(source, target, ties=np.array([0, 1, 0, 0, 0, 0, 0, 0]))
    lengths = list(zip(source[ordered].tolist(), target[ordered].tolist(), strict=True))
    assert lengths == [(4, 2), (4, 4), (2, 4), (1, 3), (3, 3), (3, 3), (3, 1), (1, 1)]
    assert ordered.tolist().index(7) < ordered.tolist().index(1)


@pytest.mark.parametrize("block", [7, 1 << 16])
def test_ordering_length_by_length_is_ordering_at_once(pairs, block, monkeypatch):
    monkeypatch.setattr(data, "BLOCK", block)
    rows = np.random.default_rng(1).integers(pairs.kept, size=2 * pairs.kept)
    for chosen in (range(pairs.kept), rows):
        source, target = (side.lengths[list(chosen)] for side in (pairs.source, pairs.target))
        ties = np.random.default_rng(2).random(len(chosen))
        at_once = np.asarray(chosen)[data.snake_order(source, target, ties)]
        ordered = data.order_by_length(pairs, chosen, np.random.default_rng(2))
        np.testing.assert_array_equal(ordered, at_once)
        assert ordered.dtype == np.int32
        counts = data.length_counts(pairs, chosen)
        np.testing.assert_array_equal(counts, np.bincount(np.maximum(source, target)))


@pytest.mark.slow
@pytest.mark.parametrize("shares", [None, [0.01, 0.99]])
def test_an_epoch_and_the_next_need_less_than_24_bytes_a_row(shares, monkeypatch):
    """Ids and offsets are not counted, because they can be mapped from files."""
    for module in (data, encoding):
        monkeypatch.setattr(module, "BLOCK", 1 << 10)
    rows = 50_000
    sides = []
    for seed in range(2):
        lengths = np.random.default_rng(seed).poisson(np.linspace(5, 60, rows)) + 1
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        sides.append(encoding.IdRows(np.ones(offsets[-1], np.uint8), offsets))
    text = encoding.EncodedText(tuple(sides), 128, 0, 0, (rows // 4, rows - rows // 4))
    tracemalloc.start()
    batches = Batches(text, 4096, shares=shares)
    batches.report()
    for step in range(3):
        batches.batch(step * batches.steps_per_epoch)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 24 * rows


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=30))
def test_sentences_to_translate_are_batched_in_order_as_many_as_fit(lengths):
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batches = list(data.token_batches(order, lengths, 24))
    assert list(itertools.chain(*batches)) == order
    for batch, following in itertools.pairwise(batches):
        assert len(batch) == 1 or len(batch) * lengths[batch[-1]] <= 24
        assert (len(batch) + 1) * lengths[following[0]] > 24


def test_batches_are_cut_at_the_budget_and_the_last_two_share():
    assert data.plan_batches(np.array([5, 5, 4, 4, 3, 2]), 10) == [(0, 2), (2, 4), (4, 6)]
    assert data.plan_batches(np.array([5, 2, 2, 2, 2, 2, 1]), 8) == [(0, 1), (1, 4), (4, 7)]
    assert data.plan_batches(np.array([3, 3, 3, 3, 3]), 12) == [(0, 2), (2, 5)]
    assert data.plan_batches(np.array([3, 1, 1]), 3) == [(0, 1), (1, 3)]
    assert data.plan_batches(np.array([3]), 100) == [(0, 1)]


LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=200)


@given(lengths=LENGTHS, more=st.integers(0, 300))
def test_any_plan_covers_all_pairs_within_the_budget(lengths, more):
    longer = np.array(sorted(lengths, reverse=True))
    budget = int(longer[0]) + more
    plan = data.plan_batches(longer, budget)
    assert [row for start, stop in plan for row in range(start, stop)] == list(range(len(longer)))
    assert all(start < stop and (stop - start) * longer[start] <= budget for start, stop in plan)


@given(lengths=LENGTHS, more=st.integers(0, 100), drawn=st.data())
def test_a_plan_of_so_many_steps_has_them_with_no_larger_batches_than_that_takes(
    lengths, more, drawn
):
    longer = np.array(sorted(lengths, reverse=True))
    budget = int(longer[0]) + more
    steps = drawn.draw(st.integers(1, len(longer)))
    plan = data.plan_steps(longer, budget, steps)
    assert [row for start, stop in plan for row in range(start, stop)] == list(range(len(longer)))
    assert len(plan) == steps
    assert all(start < stop for start, stop in plan)
    least = next(
        tokens
        for tokens in itertools.count(budget)
        if len(data.plan_batches(longer, tokens)) <= steps
    )
    assert all((stop - start) * longer[start] <= least for start, stop in plan)


def test_more_steps_than_rows_are_refused():
    with pytest.raises(ValueError, match=r"^3 rows are too few for 4 batches; use more text or"):
        data.plan_steps(np.array([3, 2, 1]), 10, 4)


def test_padding_is_what_counting_it_says_and_less_than_in_a_plain_sort(pairs):
    batches = Batches(pairs, 512)
    padding = positions = 0
    for inputs, labels, weights in epoch_of(batches):
        padding += (inputs["source"] == PAD_ID).sum() + (weights == 0).sum()
        positions += inputs["source"].size + labels.size
    assert batches.padding_share == pytest.approx(padding / positions, abs=1e-12)
    plain = np.lexsort((pairs.source.lengths, pairs.target.lengths))[::-1]
    longer = np.maximum.accumulate(
        np.maximum(pairs.source.lengths, pairs.target.lengths)[plain][::-1]
    )[::-1]
    plain_positions = sum(
        (stop - start) * side.lengths[plain[start:stop]].max()
        for start, stop in data.plan_batches(longer, 512)
        for side in (pairs.source, pairs.target)
    )
    assert positions < 0.97 * plain_positions
    assert (
        batches.report()
        == f"{batches.steps_per_epoch} batches per epoch, {100 * padding / positions:.1f}% padding"
    )


def as_lists(batches):
    return [rows_of(batch) for batch in batches]


def test_the_seed_and_the_step_decide_a_batch(pairs):
    batches, again, other_seed = (
        Batches(pairs, 512, seed=4),
        Batches(pairs, 512, seed=4),
        Batches(pairs, 512, seed=5),
    )
    last = 3 * batches.steps_per_epoch + 2
    assert rows_of(again.batch(last)) == rows_of(batches.batch(last))
    assert as_lists(epoch_of(again)) == as_lists(epoch_of(batches))
    assert as_lists(epoch_of(other_seed)) != as_lists(epoch_of(batches))


@pytest.mark.parametrize("packed", [False, True])
def test_cuts_spare_starts_and_ends_and_leave_the_batches_as_they_are(pairs, packed):
    plain = Batches(pairs, 512, seed=4, packed=packed)
    batches, again = (Batches(pairs, 512, seed=4, packed=packed, cutoff=0.2) for _ in range(2))
    draws = []
    for step in range(plain.steps_per_epoch + 3):
        inputs, labels, weights = batches.batch(step)
        kept = {side: inputs.pop(f"{side}_kept") for side in ("source", "target")}
        for found, expected in zip((inputs, labels, weights), plain.batch(step), strict=True):
            np.testing.assert_equal(found, expected)
        for side, values in kept.items():
            np.testing.assert_array_equal(again.batch(step)[0][f"{side}_kept"], values)
            always = (inputs[side] == START_ID) | (inputs[side] == END_ID)
            assert always.any()
            assert values[always].all()
            draws.append(values[~always])
    assert all(len(one) != len(two) or (one != two).any() for one, two in itertools.pairwise(draws))
    drawn = np.concatenate(draws)
    assert set(drawn) == {0, 1}
    spread = np.sqrt(0.2 * 0.8 / len(drawn))
    assert drawn.mean() == pytest.approx(0.8, abs=5 * spread)


def companies(epoch):
    """Return the set of rows in each batch."""
    return {frozenset(map(str, rows)) for rows in as_lists(epoch)}


def shapes(epoch):
    return [(inputs["source"].shape, labels.shape) for inputs, labels, _ in epoch]


def test_epochs_differ_in_order_and_company_but_not_in_shapes(pairs):
    batches = Batches(pairs, 512)
    first, second = epoch_of(batches, 0), epoch_of(batches, 1)
    assert as_lists(first) != as_lists(second)
    assert companies(first) != companies(second)
    assert shapes(first) != shapes(second)
    assert sorted(shapes(first)) == sorted(shapes(second))


def test_the_dataset_goes_on_from_any_step(pairs):
    batches = Batches(pairs, 512)
    steps = 2 * batches.steps_per_epoch + 3
    all_batches = [batches.batch(step) for step in range(steps)]
    for first_step in (0, 1, batches.steps_per_epoch - 1, batches.steps_per_epoch + 2):
        tail = Batches(pairs, 512).dataset(first_step).take(steps - first_step).as_numpy_iterator()
        for (inputs, labels, weights), expected in zip(tail, all_batches[first_step:], strict=True):
            np.testing.assert_array_equal(inputs["source"], expected[0]["source"])
            np.testing.assert_array_equal(inputs["target"], expected[0]["target"])
            np.testing.assert_array_equal(labels, expected[1])
            np.testing.assert_array_equal(weights, expected[2])


def test_two_iterators_over_one_dataset_do_not_disturb_each_other(pairs):
    batches = Batches(pairs, 512)
    early, late = (
        batches.dataset(first).as_numpy_iterator() for first in (0, 5 * batches.steps_per_epoch)
    )
    taken = [(next(early), next(late)) for _ in range(batches.steps_per_epoch)]
    assert as_lists(batch for batch, _ in taken) == as_lists(epoch_of(batches, 0))
    assert as_lists(batch for _, batch in taken) == as_lists(epoch_of(batches, 5))


def test_a_pair_that_fits_into_no_batch_is_refused():
    message = (
        "^batch_tokens is 7, but one sentence has 8 tokens and must fit; raise batch_tokens, "
        "or encode with max_length=7$"
    )
    with pytest.raises(ValueError, match=message):
        Batches(encode_pairs([("5", "7"), ("5", "7 7 7 7 7 7 7")]), 7)


def test_training_dataset_gives_each_pass_anew(letters):
    dice = random.Random(6)
    texts = [
        ("".join(dice.choices("abcd", k=4)), "".join(dice.choices("abcd", k=4))) for _ in range(60)
    ]
    dataset = data.training_dataset(texts, letters, batch_tokens=64, max_length=16)
    first, second = (list(dataset.as_numpy_iterator()) for _ in range(2))
    assert len(first) == len(second) == int(dataset.cardinality())
    assert as_lists(first) != as_lists(second)
    encoded = sorted(([*s, END_ID], [*t, END_ID]) for s, t in map(letters.encode, texts))
    for one_pass in (first, second):
        assert sorted(itertools.chain.from_iterable(as_lists(one_pass))) == encoded


def test_training_dataset_takes_a_data_set_of_string_pairs(letters):
    pairs = [("a b", "c"), ("d", "a b ü")] * 5
    source, target = (list(side) for side in zip(*pairs, strict=True))
    given = tf.data.Dataset.from_tensor_slices((source, target))
    expected = next(iter(data.training_dataset(pairs, letters)))
    batch = next(iter(data.training_dataset(given, letters)))
    tf.nest.map_structure(np.testing.assert_array_equal, batch, expected)
    with pytest.raises(ValueError, match="must have pairs of strings"):
        data.training_dataset(given.batch(2), letters)


def test_training_dataset_takes_a_tokenizer_for_each_side(letters):
    target_tokenizer = Tokenizer.train(["x yz"] * 20, 8)
    ((inputs, labels, _),) = data.training_dataset(
        [("ab", "xz")], letters, target_tokenizer
    ).as_numpy_iterator()
    assert inputs["source"].tolist() == [[*letters.encode(["ab"])[0], END_ID]]
    assert labels.tolist() == [[*target_tokenizer.encode(["xz"])[0], END_ID]]


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([("a", "b"), "c"], r"^pair 2 is 'c', but must be \(source, target\)$"),
        ([5], r"^pair 1 is 5, but must be \(source, target\)$"),
        ([("a", "b", "c")], r"^pair 1 is \('a', 'b', 'c'\), but must be \(source, target\)$"),
        ("train.tsv", "^pairs='train.tsv' is a path; pass pairs of texts"),
    ],
)
def test_training_dataset_refuses_what_is_no_pair(letters, pairs, message):
    with pytest.raises(ValueError, match=message):
        data.training_dataset(pairs, letters)


def test_training_dataset_says_what_it_drops(letters):
    with pytest.warns(UserWarning, match="^1 sentence pairs kept .* 1 dropped because a side is"):
        data.training_dataset(
            [("ab", "cd"), ("", "cd"), ("ab" * 100, "cd")], letters, max_length=16
        )
