"""Words that no translation changes: addresses, numbers, placeholders, emoji."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from tfformer.special_ids import PLACEHOLDER as SYMBOL
from tfformer.text.passages import Passage, Piece, Role, cut, raw_text
from tfformer.text.segmentation import LETTER

SAID = re.compile(r"[^\W_]")  # a letter or a number


def with_copies(
    passage: Passage, pattern: re.Pattern[str], placeholders: Sequence[str] = ()
) -> Passage:
    """Make pieces of their own of the words that stay.

    Args:
        passage: A sentence.
        pattern: What stays.
        placeholders: Symbols that the model copies. They stand for code first, then for words that
            stay; one that the sentence itself has is left out.

    Returns:
        The same sentence; itself if nothing in it stays.
    """
    text = "".join(piece.text for piece in passage.pieces)
    free = iter([symbol for symbol in placeholders if symbol not in text])
    passage = passage._replace(pieces=tuple(_with_symbol(one, free) for one in passage.pieces))
    text = "".join(piece.text for piece in passage.pieces)
    ends = [end for match in pattern.finditer(text) for end in match.span()]
    if not ends:
        return passage
    bounds = [0, *ends, len(text)]
    groups = cut(passage.pieces, [end - start for start, end in itertools.pairwise(bounds)])
    pieces = [
        piece
        for number, group in enumerate(groups)
        for piece in (_with_copy(group, free) if number % 2 else group)
    ]
    return passage._replace(pieces=tuple(pieces))


def has_words(passage: Passage) -> bool:
    """Return whether there is a letter in a sentence beside what stays as it is."""
    return any(piece.role is Role.TEXT and LETTER.search(piece.text) for piece in passage.pieces)


def _with_symbol(piece: Piece, free: Iterator[str]) -> Piece:
    """Let a placeholder stand for code and the like, if there is one."""
    return piece._replace(text=next(free, piece.text)) if piece.role is Role.COPY else piece


def without_strays(translation: str, source: str) -> str:
    """Remove the placeholders of a translation that its source has not as often.

    Args:
        translation: The translation.
        source: Its source.

    Returns:
        The translation; each removed symbol takes the space before it along. The source itself if
        no word is left, or was there in the first place.

    Example:
        >>> without_strays("Um ⟦2⟧ in ⟦1⟧ ⟦1⟧.", "In ⟦1⟧.")
        'Um in ⟦1⟧.'
        >>> without_strays("⟦2⟧.", "Ah.")
        'Ah.'
    """
    symbols = Counter(SYMBOL.findall(translation)) - Counter(SYMBOL.findall(source))
    found = translation
    for symbol, surplus in symbols.items():
        for _ in range(surplus):
            before, _, after = found.rpartition(symbol)
            found = before.removesuffix(" ") + after
    return found if SAID.search(found) else source


def _with_copy(group: Sequence[Piece], free: Iterator[str]) -> list[Piece]:
    """Make one piece of the text in a group, unless markup stands within it.

    Its text is the next free placeholder, if there is one.
    """
    texts = [number for number, piece in enumerate(group) if piece.role is Role.TEXT]
    if not texts or texts[-1] - texts[0] >= len(texts):
        return list(group)
    words = group[texts[0] : texts[-1] + 1]
    text = "".join(piece.text for piece in words)
    copy = Piece(raw_text(words), next(free, text), Role.COPY)
    return [*group[: texts[0]], copy, *group[texts[-1] + 1 :]]
