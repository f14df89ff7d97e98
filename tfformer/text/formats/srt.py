"""SubRip's subtitles: sentences over several cues, times and tags as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tfformer.text.marked_sentence import Part, Piece, Reading, Role, sentences

TIME = r"(?:\d+:)?\d\d:\d\d[,.]\d+"
NUMBER = r"[^\S\n]*\d+[^\S\n]*\r?\n"  # of a cue; some files have none
CUE = rf"(?:{NUMBER})?[^\S\n]*{TIME}[^\S\n]*-->[^\S\n]*{TIME}[^\n]*(?:\n|\Z)"
TOKEN = re.compile(
    rf"(?P<cue>(?:\A\ufeff?|[^\S\n]*+\n)\s*+{CUE})"
    r"|(?P<open><(?P<opened>[bius]|font)\b[^<>\n]*>)"
    r"|(?P<close></(?P<closed>[bius]|font)>)"
    r"|(?P<point>\{\\[^{}\n]*\})"
    r"|(?P<line>[^\S\n]*+\n\s*+)"
    r"|(?P<text>(?:[^<{\s]|[^\S\n]++(?!\n))+|.|\s)",
    re.IGNORECASE,
)


def read_subtitles(text: Iterable[str], reading: Reading) -> Iterator[Part]:
    """Yield the sentences of a SubRip file, and the rest as it is.

    A sentence may run over lines and cues; its translation is broken at about the same places. It
    ends at a cue without words, and where a dash at the beginning of a line is another speaker.

    Args:
        text: The file's text, in parts; it is read as a whole.
        reading: How it is read.

    Yields:
        A passage for each sentence, and the rest as it is.
    """
    whole = "".join(text)
    pieces: list[Piece] = []
    is_empty = False  # the cue so far
    for match in TOKEN.finditer(whole):
        is_speaker = whole[match.end() : match.end() + 1] in ("-", "–", "—")
        is_end = is_speaker or (is_empty and match["cue"] is not None)
        pieces.append(_piece(match, "\n" if is_end else " "))
        is_empty = match["cue"] is not None or (is_empty and match["text"] is None)
    yield from sentences(pieces, reading)


def _piece(match: re.Match[str], space: str) -> Piece:
    raw = match[0]
    if match["cue"] or match["line"]:
        return Piece(raw, space, Role.CUE)
    if match["open"]:
        return Piece(raw, "", Role.OPEN, match["opened"].lower())
    if match["close"]:
        return Piece(raw, "", Role.CLOSE, match["closed"].lower())
    return Piece(raw, "", Role.POINT) if match["point"] else Piece(raw, raw)
