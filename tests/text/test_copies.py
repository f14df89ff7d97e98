"""Addresses, placeholders, numbers and emoji come out as they went in."""

import pytest

from tfformer.text import translate_text

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
