"""Sentences, the whitespace between them, and clauses."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.limits import at_most

from tfformer.text.segmentation import divided, segments

ALPHABET = "aB.!? \n\r\t,;-1)>\u2028\u200b\xad\x0b\u3000é😀\"'"

# A text with a bar at each end of a sentence, and its language.
CASES = [
    ("en", "Dr. Smith met Mrs. Jones at 5 p.m.|They talked."),
    ("en", "Use e.g. a hammer, i.e. a tool.|Then stop."),
    ("en", "Download it at https://example.com/a.html?x=1.|Version 2.0.1 is out.|Thanks!"),
    ("en", "See Fig. 3 on p. 12.|It costs $3.50.|Is that so?!|Yes."),
    ("de", "Das ist z. B. ein Hund.|Am 3. Oktober ist Feiertag.|Wir feiern."),
    ("de", "Ca. 20 Leute kamen bzw. gingen.|Gut."),
    ("deu_Latn", "Im 19. Jahrhundert war Dr. Hl. Meier z. B. da.|Gut."),
    ("nl_NL", "Dhr. Jansen is er.|Goed."),
    ("es", "El Sr. García llegó.|¿Estás bien?|¡Sí!"),
    ("hi", "यह एक किताब है।|वह क्या है?"),
]


def sentences(text, language="en"):
    return [segment.text for segment in segments(text, language) if segment.is_sentence]


def words(texts):
    return [len(text.split()) for text in texts]


@pytest.mark.parametrize(("language", "marked"), CASES)
def test_a_sentence_ends_where_a_reader_ends_it(language, marked):
    expected = marked.split("|")
    assert sentences(" ".join(expected), language) == expected


@given(text=st.text(ALPHABET, max_size=60))
def test_segments_and_clauses_give_the_text_back(text):
    assert "".join(segment.text for segment in segments(text)) == text
    assert "".join(divided(text, lambda texts: [len(text) for text in texts], 5)) == text
    assert all(sentence == sentence.strip() for sentence in sentences(text))


def test_a_line_ends_a_sentence_and_markers_stay():
    text = "A title\r\n\r\n  - Yes. No.\n> 2. Perhaps\n***\n- [ ] Do it.\n- [x] Done.\n"
    assert sentences(text) == ["A title", "Yes.", "No.", "Perhaps", "Do it.", "Done."]


INVISIBLE = ["\u200b", "\u2060", "\u00ad", "\ufeff", "\u200e", "\u200b\u200f"]


@pytest.mark.parametrize("invisible", INVISIBLE)
def test_invisible_characters_stand_between_sentences(invisible):
    for gap in (f"{invisible} ", f" {invisible}", f"{invisible}  {invisible}"):
        text = f"The animal is tired.{gap}The girl is tired.{gap}"
        assert sentences(text) == ["The animal is tired.", "The girl is tired."]
        assert "".join(segment.text for segment in segments(text)) == text


def test_what_has_no_letter_is_no_sentence():
    assert sentences("---\n12.50\n😀 !\n\t") == []


def test_clauses_fit_and_end_at_the_strongest_stop():
    sentence = "one two, three; four five, six seven eight nine ten eleven"
    clauses = divided(sentence, words, max_tokens=4)
    assert clauses == ["one two, three;", " four five, six seven", " eight nine ten eleven"]


def test_a_sentence_that_fits_stays_whole():
    assert divided("one, two", words, max_tokens=2) == ["one, two"]


def test_a_stretch_that_is_whole_is_never_cut():
    def letters(texts):
        return [len("".join(text.split())) for text in texts]

    assert divided("aa bbb ccc-dd ee", letters, 5, [(3, 10)]) == ["aa", " bbb ccc", "-dd ee"]
    assert divided("aabbbb cccc", letters, 4, [(2, 6), (7, 11)]) == ["aa", "bbbb", " cccc"]


@pytest.mark.parametrize("word", ["a ", "a", "word, ", " "])
def test_a_megabyte_without_a_stop_is_divided_into_clauses_that_fit(word):
    sentence = word * (10**6 // len(word)) + "z"
    clauses = divided(sentence, lambda texts: [len(text) // 4 + 1 for text in texts], 64)
    assert "".join(clauses) == sentence
    assert word == " " or max(map(len, clauses)) <= 64 * 4


@pytest.mark.slow
@pytest.mark.parametrize("sentence", ["中文。", "“", ".)"])
def test_a_long_line_of_many_sentences_takes_time_in_proportion(sentence):
    """400,000 characters, for which sentencex alone would take minutes."""
    text = sentence * (400_000 // len(sentence))
    with at_most(seconds=20):
        found = list(segments(text, "zh"))
    assert "".join(segment.text for segment in found) == text
    assert sentence != "中文。" or {segment.text for segment in found} == {sentence}


def test_a_long_line_has_the_sentences_of_its_parts():
    draw = random.Random(1)
    expected = [f"Dr. {'a' * draw.randint(1, 60)} is here at 5 p.m. now." for _ in range(1_000)]
    assert sentences(" ".join(expected)) == expected


def test_half_a_surrogate_pair_is_refused_by_name():
    with pytest.raises(ValueError, match=r"the text contains '\\ud800', which is not a Unicode"):
        sentences("a \ud800")
