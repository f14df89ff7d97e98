"""A long text is translated while it is read, with only a few blocks in memory."""

import itertools
import random
from collections.abc import Iterator

import pytest

from tfformer.text import TextTranslator
from tfformer.text.segmentation import BLOCK, blocks

SENTENCES = ("The dog sleeps.", "Mr. Smith sees <b>two</b> cats!", "Where is the station?", "Yes")
SIZE = 400_000  # characters
MOST_HELD = 4 * BLOCK  # characters: a block, the half of another, a portion of sentences
SPACES = (" ", "  ", "\n", "\r\n", "\n\n\t", " \n<p>", "<br>\n")


def same(sentences: list[str]) -> list[str]:
    return sentences


def long_text(spaces: tuple[str, ...], characters: int, seed: int = 1) -> Iterator[str]:
    """Yield a text sentence by sentence, each with the following space."""
    draw, size = random.Random(seed), 0
    while size < characters:
        part = draw.choice(SENTENCES) + draw.choice(spaces)
        size += len(part)
        yield part


@pytest.mark.slow
@pytest.mark.parametrize("format", ["lines", "text", "html"])
@pytest.mark.parametrize("spaces", [SPACES, (" ",)], ids=["lines", "one line"])
def test_no_more_than_a_few_blocks_of_a_long_text_are_held(format, spaces):
    given = returned = most_held = 0

    def counted() -> Iterator[str]:
        nonlocal given
        for part in long_text(spaces, SIZE):
            given += len(part)
            yield part

    result = []
    for piece in TextTranslator(same).stream(counted(), format):
        result.append(piece)
        returned += len(piece)
        most_held = max(most_held, given - returned)
    text, found = "".join(long_text(spaces, SIZE)), "".join(result)
    if format == "text":
        assert found == text
    else:  # whose sentences come back with a single space for a tab, and in HTML for a line's end
        assert found.split() == text.split()
    assert most_held < MOST_HELD


@pytest.mark.parametrize("format", ["text", "html"])
def test_a_megabyte_without_a_stop_goes_to_the_model_in_clauses(format):
    longest = 0

    def translate(sentences: list[str]) -> list[str]:
        nonlocal longest
        longest = max(longest, *(len(sentence.split()) for sentence in sentences))
        return [sentence.upper() for sentence in sentences]

    translator = TextTranslator(
        translate, count_tokens=lambda texts: [len(text.split()) for text in texts], max_tokens=20
    )
    text = "word, " * 170_000
    assert translator.translate(text, format) == text.upper()
    assert 10 <= longest <= 20


@pytest.mark.parametrize("format", ["lines", "text", "html", "markdown", "srt"])
def test_the_parts_of_a_text_do_not_matter(format):
    text = "".join(long_text(SPACES, 2_000, seed=1))
    translator = TextTranslator(lambda batch: [sentence.upper() for sentence in batch])
    draw = random.Random(1)
    cuts = sorted(draw.sample(range(len(text)), 40))
    parts = [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]
    assert "".join(translator.stream(parts, format)) == translator.translate(text, format)
    assert "".join(translator.stream(text.splitlines(keepends=True), format)) == "".join(
        translator.stream(text, format)
    )


@pytest.mark.parametrize(
    ("line", "end"),
    [
        ("A sentence of a text.\n", "\n"),
        ("A sentence of a text. ", ". "),
        ("人は本を読む。", "。"),
        ("words ", " "),
    ],
)
def test_a_block_ends_with_a_line_or_a_sentence_or_a_word(line, end):
    text = line * (4 * BLOCK // len(line))
    found = list(blocks([text]))
    assert "".join(found) == text
    assert len(found) > 3
    assert all(block.endswith(end) and len(block) <= 2 * BLOCK for block in found)


def test_a_text_without_spaces_is_cut_somewhere():
    assert [len(block) for block in blocks(["a" * 3 * BLOCK])] == [BLOCK] * 3
