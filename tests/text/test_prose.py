"""Long texts in the style of the nineteenth century, written for these tests.

Each line is a sentence: dialogue, abbreviations, prices, dates, initials. The model writes
capitals, except for units of numbers.
"""

import random
from collections import Counter
from pathlib import Path

import pytest

from tfformer.text import TextTranslator, segments
from tfformer.text.protected_words import protected_words

PROSE = sorted((Path(__file__).parents[1] / "support" / "prose").glob("*.txt"))
TEXTS = [file.read_text(encoding="utf-8") for file in PROSE]
SENTENCES = [line for text in TEXTS for line in text.splitlines() if line]
GAPS = (" ", "  ", "\n", "\r\n", "\n\n    ", "\t", " \n\n\n", "\u00a0", "\u2028")


def in_capitals(text: str) -> str:
    """Return the text in capitals, except for words that are not translated."""
    parts, done = [], 0
    for kept in protected_words().finditer(text):
        parts += [text[done : kept.start()].upper(), kept[0]]
        done = kept.end()
    return "".join([*parts, text[done:].upper()])


def test_a_thousand_glued_paragraphs_come_back_to_the_character():
    draw, glued, heard = random.Random(1), Counter(), Counter()

    def capitals(batch: list[str]) -> list[str]:
        heard.update(batch)
        return [sentence.upper() for sentence in batch]

    for _ in range(1_000):
        chosen = draw.sample(SENTENCES, draw.randint(2, 8))
        glued.update(chosen)
        text = "".join(sentence + draw.choice(GAPS) for sentence in chosen)
        assert TextTranslator(capitals).translate(text) == in_capitals(text)
    assert (glued & heard).total() > 0.95 * glued.total()


@pytest.mark.parametrize("format", ["text", "html", "markdown"])
@pytest.mark.parametrize("text", TEXTS, ids=[file.stem for file in PROSE])
def test_a_whole_text_keeps_every_word(text, format):
    found = TextTranslator(lambda batch: [sentence.upper() for sentence in batch])
    assert found.translate(text, format).split() == in_capitals(text).split()


@pytest.mark.parametrize("text", TEXTS, ids=[file.stem for file in PROSE])
def test_most_sentences_of_running_prose_are_found(text):
    """225 of the 233 sentences in all three texts.

    The other eight include "Sir Wm. Dacre" and "lat. 44° N.".
    """
    lines = [paragraph.splitlines() for paragraph in text.split("\n\n")]
    found = [
        segment.text
        for paragraph in lines
        for segment in segments(" ".join(paragraph))
        if segment.is_sentence
    ]
    sentences = Counter(line for paragraph in lines for line in paragraph)
    assert (sentences & Counter(found)).total() > 0.9 * sentences.total()
