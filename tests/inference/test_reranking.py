"""Compare the order by expected chrF with sacreBLEU's own score of every pair."""

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tfformer.inference import Translation
from tfformer.inference.reranking import by_expected_chrf, sentence_chrf

WORDS = st.sampled_from(["", "a", "ab", "ein", "Hund", "Hunde", "rennt.", "straße", "的", "🙂"])
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), min_size=2, max_size=6)


@given(TEXTS)
def test_the_similarities_are_sacrebleus_scores_of_sentences(texts):
    metric = sacrebleu.CHRF()
    expected = [
        [metric.sentence_score(text, [reference]).score for reference in texts] for text in texts
    ]
    np.testing.assert_allclose(sentence_chrf(texts), expected, atol=1e-9)


@given(TEXTS, st.data())
def test_the_first_has_the_highest_expected_chrf(texts, data):
    metric = sacrebleu.CHRF()
    scores = [data.draw(st.floats(-9, 0)) for _ in texts]
    translations = [Translation(text, score) for text, score in zip(texts, scores, strict=True)]

    def expected(translation):
        similarities = [metric.sentence_score(translation.text, [text]).score for text in texts]
        return np.average(similarities, weights=np.exp(scores))

    ordered = by_expected_chrf(translations)
    assert sorted(ordered) == sorted(translations)
    assert (np.diff([expected(translation) for translation in ordered]) < 1e-8).all()


def test_equal_translations_remain_in_the_order_of_the_beam():
    translations = [
        Translation(text, -1.0) for text in ("abc def", "xyz uvw", "abc def", "xyz uvw")
    ]
    numbers = {id(translation): number for number, translation in enumerate(translations)}
    ordered = by_expected_chrf(translations)
    assert [numbers[id(translation)] for translation in ordered] == [0, 1, 2, 3]


@pytest.mark.parametrize("texts", [[""], ["a"], ["", " "]])
def test_one_translation_and_blank_ones_remain(texts):
    translations = [Translation(text, -1.0) for text in texts]
    assert by_expected_chrf(translations) == translations
