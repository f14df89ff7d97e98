"""Addresses, placeholders, numbers and emoji come out as they went in."""

import pytest

from tfformer.text import translate_text
from tfformer.text.copies import kept_pattern

KEPT = [
    "https://example.com/a_b?x=1&y=2#z",
    "anna.b+c@mail.example.org",
    "{user_name}",
    "{{x}}",
    "%(count)s",
    "${HOME}",
    "report_2.pdf",
    "/usr/share/doc",
    "3.50",
    "20 %",
    "12:30",
    "5 km",
    "€4",
    "😀👍🏽",
    "Foo Bar Inc",
]


def forgetful(sentences):
    """A model that knows no word but one."""
    return ["blah blah blah." for _ in sentences]


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("format", ["text", "html", "markdown", "srt"])
def test_what_survives_comes_out_once(kept, format):
    written = kept.replace("&", "&amp;") if format == "html" else kept
    result = translate_text(f"I saw {written} there.", forgetful, format, keep=["Foo Bar Inc"])
    assert result.count(written) == 1
    assert "blah" in result


def test_a_model_that_copies_is_left_alone():
    text = "At 12:30 see https://x.org/a, b@x.org and {name}."
    assert translate_text(text, lambda sentences: sentences) == text


def test_a_line_of_a_corpus_is_all_the_model_s():
    assert translate_text("See https://x.org now", forgetful, "lines") == "blah blah blah."


@pytest.mark.parametrize(
    "text",
    [
        "I have 2 cats and 2 dogs.",
        "In 2012 they had 12 children, from 5 to 5 and 5.",
        "On 1/2 we had 1-2 of 2, for $3 or $3.50, i.e. 3 or 3.50.",
        "See https://x.org or https://x.org/a or https://x.org, 😀 day 😀.",
        "我有2只猫和2只狗。",
    ],
)
def test_words_that_stay_twice_come_back_in_their_places(text):
    assert translate_text(text, lambda sentences: sentences) == text


@pytest.mark.parametrize("text", ["Use `a` and `a`.", "The cat has a `cat` file, a `cat`."])
def test_code_that_is_a_word_of_the_sentence_too_keeps_its_place(text):
    assert translate_text(text, lambda sentences: sentences, "markdown") == text


@pytest.mark.parametrize(
    "word", ["a-", "a.b", "1-", "a@", "/a", "www.", "+a", "{", "😀\u200d", "a"]
)
def test_the_time_grows_in_proportion_to_the_text(word):
    """Of a megabyte: a pattern that begins anew at each character would take hours."""
    text = word * (2**20 // len(word))
    assert sum(len(found[0]) for found in kept_pattern().finditer(text)) <= len(text)
