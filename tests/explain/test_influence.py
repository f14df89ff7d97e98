"""The influence of words on a decision, with log-probabilities computed by hand."""

from itertools import chain

import numpy as np
import pytest
from support.numpy_layers import log_softmax

from tfformer.data.tokenizers import Tokenizer
from tfformer.explain.influence import Decision, Hidden, Influences, influences, log_odds
from tfformer.explain.pictures import draw_influences
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.special_ids import END_ID, START_ID, UNKNOWN_ID

SOURCE = "the cat saw it"
TARGET = "die Katze sah sie nicht"
TEXTS = [SOURCE, TARGET, "er es"]
SIE = Decision(SOURCE, TARGET, word=3, alternatives=("er", "es"))


@pytest.fixture(scope="module")
def translator() -> Translator:
    """A model with random weights, whose pieces are words or parts of words."""
    tokenizer = Tokenizer.train(TEXTS, 36, "bpe")
    size = tokenizer.vocab_size
    model = Transformer(size, size, num_layers=1, d_model=8, num_heads=2, d_ff=8)
    rng = np.random.default_rng(1)
    model.set_weights([rng.normal(scale=0.6, size=w.shape) for w in model.get_weights()])
    return Translator(model, tokenizer, max_length=40)


def log_prob(
    translator: Translator, source: list[int], before: list[int], word: list[int]
) -> float:
    """Return the sum of log P over the pieces of a word, by one call of the model and NumPy."""
    ids = {
        "source": np.array([[*source, END_ID]]),
        "target": np.array([[START_ID, *before, *word]]),
    }
    log_probs = log_softmax(translator.model(ids)[0])
    return sum(log_probs[len(before) + n, piece] for n, piece in enumerate(word))


@pytest.fixture(scope="module")
def pieces(translator) -> dict[str, list[int]]:
    """Return the pieces of each word, encoded separately."""
    encode = translator.tokenizers.source.encode
    ids_of_words = {word: encode([word])[0] for text in TEXTS for word in text.split()}
    assert list(chain(*ids_of_words.values())) == list(chain(*encode(TEXTS)))
    assert max(map(len, ids_of_words.values())) > 1
    return ids_of_words


def by_hand(translator: Translator, pieces: dict, *hidden: str) -> float:
    """Return the log-odds of "sie" against "er" and "es", with some pieces hidden."""

    def row(words: str) -> list[int]:
        rows = [
            [UNKNOWN_ID] * len(pieces[word]) if word in hidden else pieces[word]
            for word in words.split()
        ]
        return list(chain(*rows))

    source, before = row(SOURCE), row("die Katze sah")
    sie, er, es = (
        log_prob(translator, source, before, pieces[word]) for word in ("sie", "er", "es")
    )
    return sie - np.log(np.exp(er) + np.exp(es))


def test_an_influence_is_the_fall_of_the_log_odds(translator, pieces):
    seen = by_hand(translator, pieces)
    measured = influences(translator, SIE)
    assert measured.decided == "sie"
    assert measured.source_words == ("the", "cat", "saw", "it")
    assert measured.target_words == ("die", "Katze", "sah")
    words = measured.source_words + measured.target_words
    for word, influence in zip(words, [*measured.source, *measured.target], strict=True):
        fall = seen - by_hand(translator, pieces, word)
        assert influence == pytest.approx(fall, abs=1e-4)


def test_words_of_both_languages_are_hidden_together(translator, pieces):
    both = log_odds(translator, [SIE, SIE], [Hidden((1, 3), (0, 1)), Hidden()])
    without = by_hand(translator, pieces, "cat", "it", "die", "Katze")
    np.testing.assert_allclose(both, [without, by_hand(translator, pieces)], atol=1e-4)


def test_a_tag_before_the_source_is_not_one_of_its_words():
    """The influences are those of a source that begins with the tag as its first word."""
    tokenizer = Tokenizer.train(TEXTS, 38, "bpe", symbols=["<de>"])
    size = tokenizer.vocab_size
    model = Transformer(size, size, num_layers=1, d_model=8, num_heads=2, d_ff=8)
    rng = np.random.default_rng(2)
    model.set_weights([rng.normal(scale=0.6, size=w.shape) for w in model.get_weights()])
    tagged = Translator(model, tokenizer.with_tag("<de>"), tokenizer, max_length=40)
    measured = influences(tagged, SIE)
    written = SIE._replace(source=f"<de> {SOURCE}")
    expected = influences(Translator(model, tokenizer, max_length=40), written)
    assert expected.source_words == ("<de>", *measured.source_words)
    np.testing.assert_allclose(measured.source, expected.source[1:], atol=1e-5)
    np.testing.assert_allclose(measured.target, expected.target, atol=1e-5)


@pytest.mark.parametrize(
    ("decision", "message"),
    [
        (SIE._replace(source="the cat " * 30), "has more than 39 tokens, the model's limit; short"),
        (
            SIE._replace(source="the\u200bcat saw it"),
            "into 4 words, and spaces into 3; an influence needs a SentencePiece voc",
        ),
        (SIE._replace(alternatives=("er", "es sah")), "the alternative 'es sah' is not one word"),
        (SIE._replace(alternatives=("er", "")), "the alternative '' is not one word"),
    ],
)
def test_a_sentence_whose_words_are_not_those_of_its_pieces_is_refused(
    translator, decision, message
):
    with pytest.raises(ValueError, match=message):
        influences(translator, decision)


def test_words_name_a_decision():
    assert Decision.of(SOURCE, TARGET, "sah/er/es") == SIE._replace(word=2)
    for words in ("", "sah", "sah/", "kam/er"):
        with pytest.raises(ValueError, match=r"must be a word of the translation .*er/sie"):
            Decision.of(SOURCE, TARGET, words)


def test_the_picture_has_every_word_and_the_numbers_that_matter(tmp_path):
    words = ("the", "$cat", "it")
    values = np.array([0.01, 2.0, -1.0])
    draw_influences(
        Influences("sie.", words, values, ("die",), np.array([0.5])), tmp_path / "a.svg"
    )
    text = (tmp_path / "a.svg").read_text()
    for written in ("contributes to “sie”", "the", "$cat", "it", "die", "2.0", "0.5"):
        assert f"<!-- {written}" in text or f"{written} -->" in text
    assert "<!-- 0.0 -->" not in text
    assert "<!-- -1.0 -->" not in text


@pytest.mark.parametrize("before", [(), ("die",)])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_picture_without_a_word_that_decides_has_no_number(tmp_path, before, value):
    source, target = np.array([value]), np.full(len(before), value)
    draw_influences(Influences("Sie.", ("it",), source, before, target), tmp_path / "a.svg")
    assert "<!-- it -->" in (tmp_path / "a.svg").read_text()
    assert f"<!-- {value} -->" not in (tmp_path / "a.svg").read_text()
