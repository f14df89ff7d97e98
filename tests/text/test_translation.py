"""Translate whole texts with a function that translates sentences."""

import random

import pytest
from support.limits import at_most
from support.whole_texts import shout, translate_text

from tfformer.text import FORMATS, TextTranslator
from tfformer.text.marked_sentence import MarkedSentence, Piece, Role
from tfformer.text.placing import with_marks

TEXT = "\ufeff one. two!  three?\r\n\r\n\t- four, five \n\n\n  six"


def test_everything_but_the_sentences_comes_back():
    assert translate_text(TEXT, shout) == TEXT.upper()


def test_a_line_is_one_sentence_to_the_format_of_lines():
    heard = []

    def listen(sentences):
        heard.extend(sentences)
        return sentences

    assert translate_text("a. b.\r\n\r\n c\x0bd\n", listen, "lines") == "a. b.\r\n\r\n c\x0bd\n"
    assert heard == ["a. b.", " c\x0bd"]


@pytest.mark.parametrize("format", FORMATS)
def test_a_byte_order_mark_comes_back(format):
    """It hides no heading, and is not part of a sentence."""
    heard = []
    translator = TextTranslator(lambda batch: heard.extend(batch) or shout(batch))
    text = "# one" if format == "markdown" else "one"
    assert translator.translate(f"\ufeff{text}\n", format) == f"\ufeff{text.upper()}\n"
    assert next(translator.stream(["", "\ufeff", text], format)) == "\ufeff"
    assert set(heard) == {"one"}


@pytest.mark.parametrize("said", ["", " ", ".", "⟦2⟧"])
@pytest.mark.parametrize("text", ["😀word", "v2{x} or 3.", "Yes."])
def test_where_a_model_says_nothing_a_sentence_stays(said, text):
    translator = TextTranslator(lambda sentences: [said] * len(sentences))
    assert translator.translate(text) == text


def test_a_protected_word_has_a_place_in_a_translation_without_words():
    """For example a fragment of a document that is joined by hand."""
    sentence = MarkedSentence((Piece("😀", "😀", Role.COPY), Piece("word", "word")))
    assert with_marks(sentence, "") == "😀"


def test_a_long_sentence_goes_to_the_model_in_clauses():
    def at_most_three_words(sentences):
        assert all(len(sentence.split()) <= 3 for sentence in sentences)
        return shout(sentences)

    translator = TextTranslator(
        at_most_three_words,
        count_tokens=lambda texts: [len(text.split()) for text in texts],
        max_tokens=3,
    )
    assert translator.translate("one two, three  four five. six") == (
        "ONE TWO, THREE  FOUR FIVE. SIX"
    )


@pytest.mark.parametrize(
    "half",
    [{"max_tokens": 3}, {"count_tokens": lambda texts: [len(text) for text in texts]}],
    ids=["limit", "count"],
)
def test_a_limit_of_tokens_has_no_effect_without_a_count_nor_a_count_without_a_limit(half):
    heard = []
    translator = TextTranslator(lambda batch: heard.extend(batch) or batch, **half)
    translator.translate("one two three four")
    assert heard == ["one two three four"]


GLUED = ["https://a.org/b?c=1", "a@b.org", "{x}", "5 km", "€4.50", "38 %", "😀", "/usr/share"]
GLUED += [",", "!", ". ", "(", ")", "-", "…", '"', " ", "word", "animal"]


@pytest.mark.parametrize("placeholders", [(), ("⟦1⟧", "⟦2⟧")])
def test_no_clause_of_copies_glued_together_is_too_long(placeholders):
    """Copies are never divided, so a clause ends beside one."""
    heard = []
    translator = TextTranslator(
        lambda batch: heard.extend(batch) or batch,
        count_tokens=lambda texts: [len(text) for text in texts],
        max_tokens=30,
        placeholders=placeholders,
    )
    for seed in range(300):
        draw = random.Random(seed)
        text = "".join(draw.choice(GLUED) for _ in range(draw.randrange(60)))
        assert "".join(translator.translate(text).split()) == "".join(text.split())
    assert len(heard) > 300
    assert max(map(len, heard)) <= 40  # a word without a space is cut there


def test_a_long_word_is_cut_in_time_that_grows_in_proportion():
    """Two million letters, the maximum length of a request."""
    text = "o" * 2 * 10**6
    translator = TextTranslator(
        lambda sentences: sentences,
        count_tokens=lambda texts: [len(text) for text in texts],
        max_tokens=40,
    )
    with at_most(seconds=30):
        assert translator.translate(text) == text


def test_a_long_text_is_translated_in_portions():
    sizes = []

    def translate(sentences):
        sizes.append(len(sentences))
        return sentences

    text = "Yes. No.\n" * 2_000
    assert translate_text(text, translate) == text
    assert max(sizes) < 600
    assert sum(sizes) == 4_000


def test_an_unknown_format_is_refused_by_name():
    with pytest.raises(ValueError, match="format='pdf' must be one of lines, text"):
        translate_text("", shout, "pdf")
