"""SubRip subtitles: sentences may span cues; times and tags do not change."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

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
DASHES = "\\-\u2010-\u2015\u2212"
NOTES = "♩♪♫♬"
BEGINNING = re.compile(rf"^[^\S\n]*[{DASHES}{NOTES}]", re.MULTILINE)  # a speaker, a song
DASH = re.compile(rf"[{DASHES}](?=[^\W\d_])")
# A line without words, or a sound or song, which may span lines.
ASIDE = re.compile(
    rf"^(?:[^\w\n]|_)*$|^[^\S\n]*(?:[{DASHES}][^\S\n]*)?(?:"
    r"(?:(?:\[[^\[\]]{1,300}\]|\([^()]{1,300}\)|（[^（）]{1,300}）|【[^【】]{1,300}】)[^\S\n]*+)+"
    rf"|[{NOTES}].*[{NOTES}]|[{NOTES}][^{NOTES}]{{1,300}}[{NOTES}]|\#.*\#|\*.*\*)[^\S\n]*$",
    re.MULTILINE,
)


def read_subtitles(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of a SubRip file, which is read as a whole, and the text between them.

    A sentence may span lines and cues; its translation breaks at about the same positions. A
    sentence ends at a line without words, before a speaker's dash or a note, and before and after
    lines that are a sound in brackets or a song between notes.
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
    text = "".join("\n" if piece.role is Role.CUE else piece.text for piece in pieces)
    asides = [match.span() for match in ASIDE.finditer(text)]
    ends = {end for _, end in asides}
    begins = {start for start, _ in asides} | {match.start() for match in BEGINNING.finditer(text)}
    offset = 0
    for index, piece in enumerate(pieces):
        is_end = offset in ends or offset + 1 in begins
        offset += len(piece.text)
        if piece.role is Role.CUE and is_end:
            pieces[index] = piece._replace(text="\n")
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
