"""Sentences with their markup, and the pieces (words, tags, protected words) they consist of."""

from __future__ import annotations

import enum
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tfformer.text.protected_words import LINE_BREAK, protected_words
from tfformer.text.segmentation import LETTER, Span, apart, segments

SPACES = re.compile(r"[ \t\r\n\f]+")
RUN = re.compile(r"[ \t\r\n\f]+|[^ \t\r\n\f]+(?: [^ \t\r\n\f]+)*")  # of spaces, or of words
LINE_END = re.compile(r"[\r\n][ \t>]*\Z")  # and the marks of a quotation
EMPHASIS = "emphasis "  # begins the name of markup that is dropped if it is empty, as in **go**


class Role(enum.Enum):
    """The role of a piece of a document in a sentence."""

    TEXT = "text"  # words
    OPEN = "open"  # the beginning of an element
    CLOSE = "close"  # its end
    POINT = "point"  # an image or a comment between words
    COPY = "copy"  # a protected word, with its markup
    LINE = "line"  # a line break, which is copied to the translation
    CUE = "cue"  # the end of a line or cue of subtitles


class Piece(NamedTuple):
    """A piece of a document."""

    raw: str  # the characters of the document
    text: str = ""  # the visible characters; empty for markup
    role: Role = Role.TEXT  # its role
    name: str = ""  # the name of a tag, which an end tag shares with its start tag
    # For a tag with translatable attributes, the parts that together make up `raw`
    within: tuple[Part, ...] = ()
    # For an end tag whose address is the text before it, as in the Markdown link `[go]`, how to
    # write it after a different text
    reworded: str = ""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts of the document that the piece consists of."""
        return self.within or (self.raw,)


class MarkedSentence(NamedTuple):
    """A sentence to translate, with its markup."""

    pieces: tuple[Piece, ...]  # the sentence's pieces
    # How to write each character that the format reserves, such as `&amp;` for `&`
    escapes: Mapping[str, str] = {}
    # Whether it is a line of a corpus, which is passed to the model unchanged
    is_line: bool = False
    # In the first sentence of a line: matches the marker of a list or a heading, such as `3.`,
    # whose last character must be escaped
    marker: re.Pattern[str] | None = None

    @property
    def text(self) -> str:
        """The sentence as a reader sees it."""
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_text(self) -> bool:
        """Whether all pieces are text."""
        return all(piece.role is Role.TEXT for piece in self.pieces)

    @property
    def has_words(self) -> bool:
        """Whether the sentence contains a letter outside its protected words."""
        return any(piece.role is Role.TEXT and LETTER.search(piece.text) for piece in self.pieces)

    def copies(self) -> dict[Span, Piece]:
        """Return the protected words by their positions in `text`, without spaces at the edges."""
        copies = {}
        end = 0
        for piece in self.pieces:
            start, end = end, end + len(piece.text)
            words = piece.text.strip()
            if piece.role is Role.COPY and words:
                start += piece.text.index(words)
                copies[start, start + len(words)] = piece
        return copies

    def written(self, translation: str) -> list[str]:
        """Return each character of a translation, spelled as in the format or the sentence.

        A character that the sentence writes as an entity, or with a backslash, is written so.
        """
        escapes = dict(self.escapes)
        for piece in self.pieces:
            shown = piece.text or piece.raw[1:]  # a sign beside a word has no text
            if piece.raw[:1] in ("&", "\\") and len(shown) == 1 and not SPACES.match(shown):
                escapes[shown] = piece.raw
        characters = [escapes.get(character, character) for character in translation]
        match = self.marker.match(translation) if self.marker else None
        if self.marker and match and not self.marker.match(self.text):
            characters[match.end() - 1] = "\\" + match[0][-1]
        return characters


TAGS = (Role.OPEN, Role.CLOSE, Role.COPY)  # a protected word contains them whole, or ends there
Part = str | MarkedSentence  # text to copy, or a sentence to translate


class Reading(NamedTuple):
    """How a document is read."""

    language: str = "en"  # the code of its language
    # The code of the language that it is translated into, if that is known
    target_language: str | None = None
    keep: tuple[str, ...] = ()  # words and phrases to copy instead of translating
    attributes: bool = True  # whether attributes that a reader sees or hears are translated


# Takes a document as a sequence of strings, and yields its sentences and the text between them.
Reader = Callable[[Iterable[str], Reading], Iterator[Part]]


def sentences(
    pieces: Sequence[Piece],
    reading: Reading,
    escapes: Mapping[str, str] | None = None,
    keeps_spaces: bool = False,
    marker: re.Pattern[str] | None = None,
) -> Iterator[Part]:
    """Split the pieces of a paragraph into sentences to translate and strings to copy.

    A line end within the paragraph counts as a space, except in a LINE or CUE, or if the paragraph
    keeps its spaces; otherwise runs of spaces collapse into one. `escapes` and `marker` are those
    of `MarkedSentence`.
    """
    shown = pieces if keeps_spaces else list(_collapsed(pieces))
    parts = protected(shown, protected_words(reading.keep))
    paragraph = MarkedSentence(tuple(parts), escapes or {})
    divided = list(segments(paragraph.text, reading.language, list(paragraph.copies())))
    groups = cut(parts, itertools.accumulate(len(segment.text) for segment in divided))
    are_sentences = [segment.is_sentence for segment in divided] or [False]
    begins_line = True
    for group, is_sentence in zip(groups, are_sentences, strict=True):
        sentence = paragraph._replace(pieces=group, marker=marker if begins_line else None)
        begins_line = LINE_END.search(raw_text(group)) is not None
        if is_sentence and sentence.has_words:
            yield sentence
        else:
            for piece in group:
                yield from piece.parts


def _collapsed(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces without line ends, and with no space after another, as a browser shows them."""
    last = ""
    for piece in pieces:
        runs = [piece]
        if _is_divisible(piece):
            runs = [_slice(piece, *match.span()) for match in RUN.finditer(piece.text)]
        for run in runs:
            text = run.text if run.role in (Role.LINE, Role.CUE) else SPACES.sub(" ", run.text)
            if last == " ":
                text = text.removeprefix(" ")
            yield run._replace(text=text)
            last = text[-1:] or last


def protected(pieces: Sequence[Piece], pattern: re.Pattern[str]) -> list[Piece]:
    """Turn each protected word into one COPY, and each <br> written as text into a LINE.

    A protected word may extend across tags only if it contains whole elements, as in
    <i>a</i>@b.org.
    """
    text = "".join(piece.text for piece in pieces)
    spans = pairwise([0, *itertools.accumulate(len(piece.text) for piece in pieces)])
    tags = [(piece, span) for piece, span in zip(pieces, spans, strict=True) if piece.role in TAGS]
    words = [span for piece, span in tags if piece.role is Role.COPY and piece.text]
    bounds = sorted({0, len(text)}.union(*(span for _, span in tags)))
    for start, end in dict.fromkeys([*pairwise(bounds), (0, len(text))]):
        matches = pattern.finditer(text[start:end])
        words += [(start + match.start(), start + match.end()) for match in matches]
    groups = cut(pieces, [*itertools.chain(*sorted(apart(words))), len(text)])
    protected_pieces: list[Piece] = []
    for number, group in enumerate(groups):
        protected_pieces += _copy(group) if number % 2 else group
    return protected_pieces


def _copy(group: Sequence[Piece]) -> list[Piece]:
    """Merge a protected word into one piece, unless it contains only part of an element."""
    texts = [number for number, piece in enumerate(group) if piece.text]
    first, last = texts[0], texts[-1] + 1
    steps = [{Role.OPEN: 1, Role.CLOSE: -1}.get(piece.role, 0) for piece in group]
    depths = list(itertools.accumulate(steps[first:last]))
    lowest, depth = min(0, *depths), depths[-1]
    while lowest < 0 and first and steps[first - 1] > 0:
        first, lowest, depth = first - 1, lowest + 1, depth + 1
    while depth > 0 and last < len(group) and steps[last] < 0:
        last, depth = last + 1, depth - 1
    words = group[first:last]
    if lowest or depth or any(piece.name == "cue" for piece in words):
        return list(group)
    text = "".join(piece.text for piece in words)
    copy = Piece(raw_text(words), text, Role.COPY)
    if any(piece.within for piece in words):
        copy = copy._replace(within=tuple(part for piece in words for part in piece.parts))
    if LINE_BREAK.fullmatch(text) and words[0].role is Role.TEXT:
        copy = Piece(copy.raw, " ", Role.LINE, "br")
    return [*group[:first], copy, *group[last:]]


def raw_text(pieces: Sequence[Piece]) -> str:
    """Return the characters of the document that pieces were read from."""
    return "".join(piece.raw for piece in pieces)


def cut(pieces: Sequence[Piece], ends: Iterable[int]) -> list[tuple[Piece, ...]]:
    """Cut pieces into groups whose texts end at the given positions, at least one group.

    Only text pieces are split. An end tag at a boundary goes into the group before it, all other
    markup into the group after it.
    """
    ends = list(ends) or [0]
    groups: list[list[Piece]] = [[] for _ in ends]
    number = end = 0
    for piece in pieces:
        start, end = end, end + len(piece.text)
        inside: list[int] = []
        if _is_divisible(piece):
            inside = ends[bisect_right(ends, start) : bisect_left(ends, end)]
        for left, right in pairwise([start, *inside, end]):
            if piece.role is not Role.CLOSE:
                number = min(bisect_right(ends, left), len(ends) - 1)
            groups[number].append(_slice(piece, left - start, right - start) if inside else piece)
    return [tuple(group) for group in groups]


def _is_divisible(piece: Piece) -> bool:
    """Whether each character of the document is one character of the text."""
    return piece.role is Role.TEXT and len(piece.raw) == len(piece.text)


def _slice(piece: Piece, start: int, end: int) -> Piece:
    """Return part of a text piece. The rest is not copied, so that cutting takes linear time."""
    return Piece(piece.raw[start:end], piece.text[start:end])
