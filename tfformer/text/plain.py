"""Plain text: paragraphs, or one sentence a line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tfformer.text.passages import Part, Passage, Piece
from tfformer.text.segmentation import segments

LINE = re.compile(r"\r?\n|(?:(?!\r?\n).)+", re.DOTALL)


def read_text(text: str, language: str) -> Iterator[Part]:
    """Yield the sentences of a text, and the text between them.

    Args:
        text: Any text.
        language: The code of its language.

    Yields:
        A passage for each sentence, and the rest as it is.
    """
    for segment in segments(text, language):
        yield _passage(segment.text) if segment.is_sentence else segment.text


def read_lines(text: str, language: str) -> Iterator[Part]:
    r"""Yield each line of a text as one sentence; otherwise as `read_text`.

    Only \n and \r\n end a line, as in a corpus.
    """
    for line in LINE.findall(text):
        yield _passage(line)._replace(is_line=True) if line.strip() else line


def _passage(sentence: str) -> Passage:
    return Passage((Piece(sentence, sentence),))
