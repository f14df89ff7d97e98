"""Whole texts around a function that takes sentences."""

import pytest
from support.limits import at_most

from tfformer.text import TextTranslator, translate_text


def shout(sentences):
    return [sentence.upper() for sentence in sentences]


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


def test_a_long_word_is_cut_in_time_that_grows_in_proportion():
    """Of two million letters, the longest word of a request."""
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
