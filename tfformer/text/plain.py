"""Plain text: paragraphs, or one sentence a line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tfformer.text.blocks import blocks
from tfformer.text.passages import Part, Passage, Piece
from tfformer.text.segmentation import segments

LINE = re.compile(r"\r?\n|(?:(?!\r?\n).)+", re.DOTALL)


def read_text(text: Iterable[str], language: str) -> Iterator[Part]:
    """Yield the sentences of a text, and the text between them.

    Args:
        text: Any text, in parts.
        language: The code of its language.

    Yields:
        A passage for each sentence, and the rest as it is.
    """
    for block in blocks(text):
        for segment in segments(block, language):
            yield _passage(segment.text) if segment.is_sentence else segment.text


def read_lines(text: Iterable[str], language: str) -> Iterator[Part]:
    r"""Yield each line of a text as one sentence; otherwise as `read_text`.

    Only \n and \r\n end a line, as in a corpus.
    """
    for block in blocks(text):
        for line in LINE.findall(block):
            yield _passage(line)._replace(is_line=True) if line.strip() else line


def _passage(sentence: str) -> Passage:
    return Passage((Piece(sentence, sentence),))
