"""Plain text: paragraphs, or one sentence per line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tfformer.text.marked_sentence import MarkedSentence, Part, Piece, Reading, sentences
from tfformer.text.segmentation import blocks

LINE = re.compile(r"\r?\n|(?:(?!\r?\n).)+", re.DOTALL)


def read_text(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of a text, in parts, and the text between them."""
    for block in blocks(text):
        yield from sentences([Piece(block, block)], reading, keeps_spaces=True)


def read_lines(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    r"""Yield each line of a text as one sentence; otherwise as `read_text`.

    Only \n and \r\n end a line, as in a corpus.
    """
    for block in blocks(text):
        for line in LINE.findall(block):
            yield MarkedSentence((Piece(line, line),), is_line=True) if line.strip() else line
