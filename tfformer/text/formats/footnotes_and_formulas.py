"""Marks of footnotes and headings, and formulas: short elements attached to a word."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tfformer.text.marked_sentence import Piece, Role, raw_text

SCRIPTS = frozenset({"sub", "sup"})
MAX_PIECES = 40  # largest element that is examined
NEAR = 16  # pieces on each side of an element that are looked at
MAX_FORMULA = 500  # characters
NUMBER_MARK = re.compile(r"\[\d{1,3}\]|\(\d{1,3}\)|\d{1,3}")  # a footnote's number, in any element
MARK = re.compile(r"[\[(]?(?:\d{1,3}|[a-d]|[*†‡§¶#]{1,3})(?:[,;–-] ?\d{1,3})*[\])]?")
BETWEEN_MARKS = re.compile(r"[,;–-] ?")
# The sign of a note or of a required field, or an icon.
SIGN = re.compile("[*†‡§¶®™\u2190-\u2bff\ue000-\uf8ff\U0001f000-\U0001faff]{1,3}[\ufe0e\ufe0f]?")
SIGN_AT_EDGE = re.compile("[#*†‡§¶]{1,3}")  # a paragraph's sign, such as a heading's anchor
CLOSING = tuple(".,;:!?)]»”\"'")
INDEX = re.compile(r"[\w+−–-]{1,6}")
POWER = re.compile(r"[+−–-]?\d{1,3}[+−–-]?|[+−–n-]")
# The last word before an index or a power, if both form a formula: "CO", "x", "10", "5 km".
BEFORE_INDEX = re.compile(r"(?<!\w)[^\W_]{1,3}\Z")
BEFORE_POWER = re.compile(r"(?<![\w.,])(?:(?:\d[\d.,]*\s?)?(?:[^\W\d_]|[kcmdµ]m|mc)|\d[\d.,]*)\Z")
BEHIND = re.compile(r"[^\W_]{1,4}(?!\w)")  # the "O" of H₂O


def with_scripts(pieces: Sequence[Piece]) -> list[Piece]:
    """Turn the footnote marks of a paragraph into points, and its formulas into copies.

    A mark has no text, so it follows its word.

    Example:
        >>> h2o = [Piece("H", "H"), Piece("<sub>", "", Role.OPEN, "sub"), Piece("2", "2"),
        ...        Piece("</sub>", "", Role.CLOSE, "sub"), Piece("O!", "O!")]
        >>> [piece.raw for piece in with_scripts(h2o)]
        ['H<sub>2</sub>O', '!']
    """
    if all(piece.role is not Role.OPEN for piece in pieces):
        return list(pieces)
    remaining = list(reversed(pieces))
    preceding: list[Piece] = []
    while remaining:
        end = _element_length(remaining) if remaining[-1].role is Role.OPEN else 0
        element = remaining[: -end - 1 : -1] if end else []
        if element and _is_formula(element, preceding):
            del remaining[-end:]
            _add_formula(element, preceding, remaining)
        elif element and (
            mark := _mark(element, preceding[-NEAR:], remaining[-end - NEAR : -end][::-1])
        ):
            del remaining[-end:]
            is_between = bool(preceding) and BETWEEN_MARKS.fullmatch(preceding[-1].text)
            if is_between and any(map(_is_script, preceding[-2:-1])):
                preceding[-1] = preceding[-1]._replace(text="", role=Role.POINT)
            preceding.append(mark)
        else:
            preceding.append(remaining.pop())
    return preceding


def _element_length(remaining: Sequence[Piece]) -> int:
    """The number of pieces of the short element at the end of the reversed `remaining`, or 0."""
    depth = 0
    for length, piece in enumerate(remaining[: -MAX_PIECES - 1 : -1], start=1):
        if piece.role not in (Role.OPEN, Role.CLOSE, Role.TEXT):
            return 0
        depth += {Role.OPEN: 1, Role.CLOSE: -1}.get(piece.role, 0)
        if depth <= 0:
            return length if piece.role is Role.CLOSE and piece.name == remaining[-1].name else 0
    return 0


def _is_formula(element: Sequence[Piece], preceding: Sequence[Piece]) -> bool:
    """Whether an element is an index or a power of the text directly before it."""
    name = element[0].name
    text = _text(element)
    script = INDEX if name == "sub" else POWER
    if not preceding or name not in SCRIPTS or not script.fullmatch(text):
        return False
    last = preceding[-1]
    if _is_made(last):
        return True
    before = BEFORE_INDEX if name == "sub" else BEFORE_POWER
    return last.raw == last.text and before.search(last.text[-20:]) is not None


def _is_made(piece: Piece) -> bool:
    """Whether a piece is already a formula."""
    return piece.role is Role.COPY and piece.name in SCRIPTS and len(piece.raw) < MAX_FORMULA


def _add_formula(element: Sequence[Piece], preceding: list[Piece], remaining: list[Piece]) -> None:
    """Merge an element and the adjacent parts of words into one copy."""
    name = element[0].name
    before = preceding.pop()
    raw, text = before.raw, before.text
    if not _is_made(before):
        match = (BEFORE_INDEX if name == "sub" else BEFORE_POWER).search(text[-20:])
        length = len(match[0]) if match else 0
        if length < len(text):
            preceding.append(Piece(text[:-length], text[:-length]))
        raw = text = text[len(text) - length :]
    raw += raw_text(element)
    text += _text(element)
    behind = (
        BEHIND.match(remaining[-1].text)
        if remaining and remaining[-1].raw == remaining[-1].text
        else None
    )
    if behind:
        after = remaining.pop().text
        raw, text = raw + behind[0], text + behind[0]
        if after[behind.end() :]:
            remaining.append(Piece(after[behind.end() :], after[behind.end() :]))
    preceding.append(Piece(raw, text, Role.COPY, name))


def _mark(
    element: Sequence[Piece], preceding: Sequence[Piece], remaining: Sequence[Piece]
) -> Piece | None:
    """A point or line end that replaces an element that marks a word; None for other elements.

    A sign before or after all words of a paragraph is not part of a sentence.
    """
    sign, before, behind = _text(element).strip(), _text(preceding), _text(remaining)
    is_sign = SIGN.fullmatch(sign) is not None and _is_beside_word(before[-1:], behind[:1])
    is_at_edge = (before.strip() == "") != (behind.strip() == "")
    if is_at_edge and (is_sign or SIGN_AT_EDGE.fullmatch(sign)):
        return Piece(raw_text(element), "\n", Role.LINE)
    is_comma = BETWEEN_MARKS.fullmatch(sign) and any(map(_is_script, preceding[-1:]))
    is_mark = is_sign or is_comma or _is_note(element, before[-1:], behind[:1])
    return Piece(raw_text(element), "", Role.POINT, element[0].name) if is_mark else None


def _is_script(mark: Piece) -> bool:
    """Whether a piece is a raised or lowered mark of a footnote."""
    return mark.role is Role.POINT and mark.name in SCRIPTS


def _is_beside_word(before: str, behind: str) -> bool:
    """Whether exactly one of the two characters belongs to a word."""
    return (before.strip() != "") != (behind.strip() != "" and behind not in CLOSING)


def _is_note(element: Sequence[Piece], before: str, behind: str) -> bool:
    """Whether an element marks a footnote at the word before it."""
    text = _text(element)
    if behind.isalnum():
        return False
    if element[0].name in SCRIPTS:
        is_letter = text.isalpha() and (before.isdigit() or before.isupper() or before.isspace())
        return MARK.fullmatch(text) is not None and not is_letter
    is_glued = before.isalpha() or before in CLOSING
    return is_glued and NUMBER_MARK.fullmatch(text) is not None


def _text(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)
