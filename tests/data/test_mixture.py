"""Compare the shares of several corpora with proportions computed in NumPy."""

import itertools

import numpy as np
import pytest
from support.word_ids import WordIds

from tfformer.data import batches as module
from tfformer.data import mixture
from tfformer.data.batches import Batches
from tfformer.data.encoding import encode_corpora

SIZES = [400, 90, 10]


@pytest.mark.parametrize("temperature", [1, 2, 5, 1000])
def test_a_temperature_flattens_the_sizes(temperature):
    shares = mixture.shares_by_temperature(SIZES, temperature)
    expected = np.power(SIZES, 1 / temperature)
    np.testing.assert_allclose(shares, expected / expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("shares", [(0.5, 0.3, 0.2), (0.001, 0.9, 0.099), (0.8, 0.18, 0.02)])
def test_every_epoch_has_the_shares_and_repeats_a_small_corpus_evenly(shares):
    of_corpus = np.repeat(range(3), SIZES)
    for epoch in range(3):
        rows = mixture.rows_by_shares(SIZES, shares, seed=1, epoch=epoch)
        assert len(rows) == sum(SIZES)
        np.testing.assert_allclose(
            np.bincount(of_corpus[rows], minlength=3), np.multiply(shares, 500), atol=1
        )
        times = np.bincount(rows, minlength=500)
        for corpus in range(3):
            assert np.ptp(times[of_corpus == corpus]) <= 1


def test_seed_and_epoch_decide_which_part_of_a_large_corpus_comes():
    def drawn(seed, epoch):
        return mixture.rows_by_shares(SIZES, (0.2, 0.4, 0.4), seed, epoch).tolist()

    draws = [drawn(seed, epoch) for seed, epoch in itertools.product(range(3), range(3))]
    assert all(draw != later_draw for draw, later_draw in itertools.combinations(draws, 2))
    assert drawn(2, 2) == draws[-1]
    seen = set(itertools.chain.from_iterable(drawn(0, epoch) for epoch in range(60)))
    assert seen == set(range(500))


def test_a_corpus_without_rows_is_refused():
    with pytest.raises(ValueError, match=r"^corpus 2 of data.train has no row within"):
        mixture.rows_by_shares([5, 0], [0.5, 0.5], seed=0, epoch=0)


def corpus_of(size, number):
    """Pairs whose sources are the numbers from 100 * number + 10 to 100 * number + 99."""
    return [(f"{100 * number + row % 90 + 10}", "5 " * (row % 7 + 1)) for row in range(size)]


def test_batches_have_the_shares_and_go_on_from_any_step():
    corpora = [corpus_of(size, number) for number, size in enumerate(SIZES, start=1)]
    text = encode_corpora(corpora, (WordIds(), WordIds()), max_length=9)
    assert text.corpora == tuple(SIZES)
    batches = Batches(text, 200, seed=3, shares=[0.5, 0.25, 0.25])
    for epoch in range(2):
        steps = range(epoch * batches.steps_per_epoch, (epoch + 1) * batches.steps_per_epoch)
        sources = np.concatenate([batches.batch(step)[0]["source"][:, 0] for step in steps])
        np.testing.assert_array_equal(np.bincount(sources // 100)[1:], [250, 125, 125])
    last = batches.steps_per_epoch + 2
    again = Batches(text, 200, seed=3, shares=[0.5, 0.25, 0.25]).batch(last)
    np.testing.assert_array_equal(again[0]["source"], batches.batch(last)[0]["source"])
    np.testing.assert_array_equal(again[1], batches.batch(last)[1])


@pytest.mark.parametrize(("packed", "draws"), [(False, 20), (True, 20), (True, 1)])
def test_no_batch_of_any_epoch_passes_batch_tokens(packed, draws, monkeypatch):
    """Each epoch draws other rows, some of which are longer than in the first epoch.

    After a single draw, the rows of some epochs do not fit into the packed batches.
    """
    monkeypatch.setattr(module, "MOST_DRAWS", draws)
    monkeypatch.setattr(module, "FIRST_DRAWS", min(draws, module.FIRST_DRAWS))
    lengths = np.random.default_rng(0).geometric(0.1, size=200).clip(1, 60)
    corpora = [[(f"{100 + n} " + "5 " * length, "5") for n, length in enumerate(lengths)]] * 2
    text = encode_corpora(corpora, (WordIds(), WordIds()), max_length=64)
    batches = Batches(text, 256, seed=1, shares=[0.85, 0.15], packed=packed)
    sources = [batches.batch(step)[0]["source"] for step in range(60 * batches.steps_per_epoch)]
    assert max(source.size for source in sources) <= 256
