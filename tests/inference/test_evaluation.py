"""BLEU with the tokenizer of the target language."""

from urllib.error import URLError

import pytest
import sacrebleu

from tfformer.config import Config
from tfformer.inference.evaluation import bleu_tokenizer, check_bleu, scores

CHINESE = ["我喜欢喝绿茶。", "他昨天去了北京。", "猫睡在桌子下面。"]
THAI = ["ฉันชอบดื่มชา", "เขาไปกรุงเทพเมื่อวาน"]


def recipe(languages: list[str] | None, **training: str) -> Config:
    return Config.from_dict({"data": {"languages": languages}, "training": training})


@pytest.mark.parametrize(
    ("languages", "expected"),
    [
        (None, "13a"),
        (["en", "de"], "13a"),
        (["zh", "en"], "13a"),
        (["en", "zh"], "zh"),
        (["en", "zh_cn"], "zh"),
        (["eng", "ZHO-Hant"], "zh"),
        (["en", "th"], "char"),
        (["en", "km"], "char"),
    ],
)
def test_the_target_language_chooses_the_tokenizer(languages, expected):
    assert bleu_tokenizer(recipe(languages)) == expected


@pytest.mark.parametrize("language", ["ja", "ko"])
def test_japanese_and_korean_are_scored_by_words_where_a_library_splits_them(language, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda module: object())
    assert bleu_tokenizer(recipe(["en", language])) == f"{language}-mecab"
    monkeypatch.setattr("importlib.util.find_spec", lambda module: None)
    assert bleu_tokenizer(recipe(["en", language])) == "char"


def test_a_recipe_may_choose_another_one():
    assert bleu_tokenizer(recipe(["en", "zh"], bleu_tokenizer="char")) == "char"


@pytest.mark.parametrize(("texts", "language"), [(CHINESE, "zh"), (THAI, "th")])
def test_a_perfect_translation_without_spaces_has_bleu_100(texts, language):
    tokenize = bleu_tokenizer(recipe(["en", language]))
    assert scores(texts, texts)["bleu"] == 0.0  # by 13a: each sentence is a word
    assert scores(texts, texts, tokenize=tokenize)["bleu"] == pytest.approx(100)
    assert f"tok:{tokenize}" in str(scores(texts, texts, tokenize=tokenize)["signature"])


def test_scores_are_sacrebleus():
    hypotheses, references = ["the cat sat", "a dog ran away"], ["the cat sat down", "a dog ran"]
    computed = scores(hypotheses, references)
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert computed["bleu"] == pytest.approx(expected)
    assert computed["chrf"] == pytest.approx(sacrebleu.corpus_chrf(hypotheses, [references]).score)


def test_a_model_that_cannot_be_fetched_is_named_before_any_work(monkeypatch):
    def without_network(**_):
        raise URLError("no network")

    monkeypatch.setattr(sacrebleu, "BLEU", without_network)
    with pytest.raises(ValueError, match="flores200 needs a model, which sacreBLEU"):
        check_bleu(recipe(["en", "de"], bleu_tokenizer="flores200"))


def test_as_many_references_as_translations_are_needed():
    with pytest.raises(ValueError, match="2 translations cannot be scored against 1 references"):
        scores(["a", "b"], ["a"])
