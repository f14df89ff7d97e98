"""A long text in blocks of about equal size, so that it need not be held whole."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

BLOCK = 2**16  # characters
SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？；]+")
SPACE = re.compile(r"\s+")


def blocks(parts: Iterable[str]) -> Iterator[str]:
    r"""Yield a text in blocks that end where a line ends.

    Within a line that is longer than a block, one ends behind a sentence, else between words.

    Args:
        parts: A text in any parts, such as its lines.

    Yields:
        Blocks of at most twice `BLOCK` characters that give the text when they are joined.

    Example:
        >>> [len(block) for block in blocks(["One line.\n"] * 10_000)]
        [65540, 34460]
    """
    held = ""
    for part in parts:
        for start in range(0, len(part), BLOCK):
            held += part[start : start + BLOCK]
            if len(held) >= BLOCK:
                end = block_end(held)
                yield held[:end]
                held = held[end:]
    if held:
        yield held


def block_end(text: str) -> int:
    """Return the place where a block of a long text ends best."""
    line_end = text.rfind("\n") + 1
    if line_end:
        return line_end
    for end in (SENTENCE_END, SPACE):
        places = [match.end() for match in end.finditer(text, len(text) // 2)]
        if places:
            return places[-1]
    return len(text)
