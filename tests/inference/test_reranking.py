"""Compare the order by mean chrF with sacreBLEU's own score of every pair."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tfformer.inference import Translation
from tfformer.inference.reranking import by_mean_chrf, sentence_chrf

WORDS = st.sampled_from(["", "a", "ab", "ein", "Hund", "Hunde", "rennt.", "straße", "的", "🙂"])
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), min_size=2, max_size=6)


@given(TEXTS)
def test_the_similarities_are_sacrebleus_scores_of_sentences(texts):
    metric = sacrebleu.CHRF()
    expected = [
        [metric.sentence_score(text, [reference]).score for reference in texts] for text in texts
    ]
    np.testing.assert_allclose(sentence_chrf(texts), expected, atol=1e-9)


@given(TEXTS.filter(lambda texts: all(map(str.strip, texts))))
def test_the_first_has_the_highest_mean_chrf_against_the_others(texts):
    """A text has chrF 100 against itself, so it makes no difference whether it is counted."""
    metric = sacrebleu.CHRF()
    means = [
        np.mean(
            [metric.sentence_score(text, [other]).score for other in texts[:n] + texts[n + 1 :]]
        )
        for n, text in enumerate(texts)
    ]
    translations = [Translation(text, -float(n)) for n, text in enumerate(texts)]
    ordered = by_mean_chrf(translations)
    assert sorted(ordered) == sorted(translations)
    ranks = [int(-translation.score) for translation in ordered]
    assert (np.diff([means[rank] for rank in ranks]) < 1e-8).all()


def test_equal_means_remain_in_the_order_of_the_beam():
    texts = ["abc def", "xyz uvw", "abc def", "xyz uvw"]
    ordered = by_mean_chrf([Translation(text, -float(n)) for n, text in enumerate(texts)])
    assert [-translation.score for translation in ordered] == [0, 1, 2, 3]


@pytest.mark.parametrize("texts", [[""], ["a"], ["", " "]])
def test_one_translation_and_blank_ones_remain(texts):
    translations = [Translation(text, -1.0) for text in texts]
    assert by_mean_chrf(translations) == translations
