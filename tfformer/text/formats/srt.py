"""SubRip subtitles: sentences may span cues; times and tags do not change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from tfformer.text.marked_sentence import Part, Piece, Reading, Role, raw_text, sentences

END = r"(?:\r\n|\n|\r)"
SPACE = r"[^\S\r\n]*+"
TIME = r"(?:\d+:)?\d\d:\d\d[,.]\d+"
NUMBER = rf"{SPACE}\d+{SPACE}{END}"  # the number of a cue, optional
TOKEN = re.compile(
    rf"(?P<cue>(?:\A\ufeff?|{SPACE}{END})\s*+(?:{NUMBER})?{SPACE}{TIME}{SPACE}-->{SPACE}{TIME}"
    rf"[^\r\n]*(?:{END}|\Z))"
    r"|(?P<open><(?P<opened>[bius]|font)\b[^<>\r\n]*>)"
    r"|(?P<close></(?P<closed>[bius]|font)>)"
    r"|(?P<point>\{\\[^{}\r\n]*\})"
    rf"|(?P<line>{SPACE}{END}\s*+)"
    r"|(?P<text>(?:[^<{\s]|[^\S\r\n]++(?![\r\n]))+|.|\s)",
    re.IGNORECASE,
)
SPEAKER = re.compile(r"\s*[-\u2010-\u2015\u2212]")
DASH = re.compile(r"[-\u2010-\u2015\u2212](?=[^\W\d_])")
ASIDE = re.compile(
    r"\s*(?:[-\u2010-\u2015\u2212]\s*)?(?:\[.*\]|\(.*\)|（.*）|【.*】|[♪♫#].*[♪♫#])\s*", re.DOTALL
)  # a sound, a song


def read_subtitles(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of a SubRip file, which is read as a whole, and the text between them.

    A sentence may span lines and cues; its translation breaks at about the same positions. A
    sentence ends at a cue without words, before a speaker's dash, and before and after a line or
    cue that is a sound in brackets or a song between notes.
    """
    pieces = [_piece(match) for match in TOKEN.finditer("".join(text))]
    yield from sentences(list(_with_dashes(_with_ends(_joined(pieces)))), reading)


def _piece(match: re.Match[str]) -> Piece:
    raw = match[0]
    if match["cue"] or match["line"]:
        return Piece(raw, " ", Role.CUE, "cue" if match["cue"] else "line")
    if match["open"]:
        return Piece(raw, "", Role.OPEN, match["opened"].lower())
    if match["close"]:
        return Piece(raw, "", Role.CLOSE, match["closed"].lower())
    return Piece(raw, "", Role.POINT) if match["point"] else Piece(raw, raw)


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """Yield pieces, merging each break with the position tags and line breaks after it."""
    held: list[Piece] = []
    for piece in pieces:
        if held and (piece.role is Role.POINT or piece.name == "line"):
            held.append(piece)
            continue
        if held:
            yield held[0]._replace(raw=raw_text(held))
        held = []
        if piece.role is Role.CUE:
            held.append(piece)
        else:
            yield piece
    if held:
        yield held[0]._replace(raw=raw_text(held))


def _with_ends(joined: Iterable[Piece]) -> list[Piece]:
    """Make a break end a sentence if another sentence begins after it."""
    pieces = list(joined)
    breaks = [index for index, piece in enumerate(pieces) if piece.role is Role.CUE]
    lines = [_text(pieces[start + 1 : end]) for start, end in pairwise([*breaks, len(pieces)])]
    cues = [index for index in breaks if pieces[index].name == "cue"]
    texts = [_text(pieces[start + 1 : end]) for start, end in pairwise([*cues, len(pieces)])]
    asides = dict(zip(breaks, map(_is_aside, lines), strict=True))
    aside_cues = dict(zip(cues, map(_is_aside, texts), strict=True))
    is_aside = False  # whether the line before was an aside
    is_aside_cue = False  # whether the cue before was an aside
    for index, line in zip(breaks, lines, strict=True):
        ends = asides[index] or is_aside or SPEAKER.match(line) is not None
        is_aside = asides[index]
        if index in aside_cues:
            ends = ends or aside_cues[index] or is_aside_cue
            is_aside_cue = aside_cues[index]
        elif is_aside_cue:
            ends = False
        if ends:
            pieces[index] = pieces[index]._replace(text="\n")
    return pieces


def _with_dashes(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Turn a speaker's dash without a space after it into a point."""
    begins_line = True
    for piece in pieces:
        dash = DASH.match(piece.text) if begins_line else None
        if dash:
            yield Piece(dash[0], "", Role.POINT)
            piece = Piece(piece.text[dash.end() :], piece.text[dash.end() :])
        if piece.text:
            begins_line = piece.role is Role.CUE
        yield piece


def _text(pieces: Iterable[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def _is_aside(text: str) -> bool:
    """Whether a line or cue is a sound, a song, or without words."""
    return not any(map(str.isalnum, text)) or ASIDE.fullmatch(text) is not None
