"""Sentences with their markup, and the pieces (words, tags, protected words) they consist of."""

from __future__ import annotations

import enum
import itertools
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from tfformer.text.protected_words import LINE_BREAK, protected_words
from tfformer.text.segmentation import Span, apart, segments

SPACE = re.compile(r"[ \t\r\n\f]")
SPACES = re.compile(" +")
RUN = re.compile(" +|[^ ]+(?: [^ ]+)*")  # of spaces, or of words with single spaces
LETTER = re.compile(r"[^\W\d_]")
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
        """Return each character of a translation, spelled as in the sentence or the format.

        The sentence may write a character in several ways, as in `&amp; &#38;`. These spellings
        keep their order if both texts contain the character equally often. Otherwise, the last
        entity or backslash escape of the character is its only spelling.
        """
        spellings: defaultdict[str, list[str]] = defaultdict(list)  # in the order of the sentence
        escapes = dict(self.escapes)
        for piece in self.pieces:
            shown = piece.text or piece.raw[1:]  # a sign beside a word has no text
            is_escaped = piece.raw[:1] in ("&", "\\") and len(shown) == 1
            if is_escaped and not SPACE.match(shown):
                escapes[shown] = piece.raw
            for character in piece.text.replace(" ", ""):
                raw = piece.raw if is_escaped else self.escapes.get(character, character)
                spellings[character].append(raw)
        remaining = {}
        for character, count in Counter(translation).items():
            known = spellings[character]
            if len(known) != count:
                known = [escapes.get(character, character)] * count
            remaining[character] = iter(known)
        return [next(remaining[character]) for character in translation]


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
) -> Iterator[Part]:
    """Split the pieces of a paragraph into sentences to translate and strings to copy.

    A line end within the paragraph counts as a space, except in a LINE or CUE, or if the paragraph
    keeps its spaces; otherwise runs of spaces collapse into one. `escapes` are those of
    `MarkedSentence`.
    """
    if not keeps_spaces:
        pieces = [_one_line(piece) for piece in pieces]
    pieces = protected(pieces, protected_words(reading.keep))
    paragraph = MarkedSentence(tuple(pieces))
    divided = list(segments(paragraph.text, reading.language, list(paragraph.copies())))
    groups = cut(pieces, itertools.accumulate(len(segment.text) for segment in divided))
    are_sentences = [segment.is_sentence for segment in divided] or [False]
    for group, is_sentence in zip(groups, are_sentences, strict=True):
        shown = group if keeps_spaces else tuple(_collapsed(group))
        sentence = MarkedSentence(shown, escapes or {})
        if is_sentence and sentence.has_words:
            yield sentence
        else:
            for piece in group:
                yield from piece.parts


def _one_line(piece: Piece) -> Piece:
    """Return a piece in which all white space is spaces, except a LINE or CUE."""
    if piece.role in (Role.LINE, Role.CUE):
        return piece
    return piece._replace(text=SPACE.sub(" ", piece.text))


def _collapsed(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield pieces whose texts contain no space after another, as a browser shows them."""
    last = ""
    for piece in pieces:
        runs = [piece]
        if _is_divisible(piece):
            runs = [_slice(piece, *match.span()) for match in RUN.finditer(piece.text)]
        for run in runs:
            text = SPACES.sub(" ", run.text)
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
    spans = _protected_spans(pieces, pattern, text)
    groups = cut(pieces, [*itertools.chain(*spans), len(text)])
    protected_pieces: list[Piece] = []
    for number, group in enumerate(groups):
        protected_pieces += _copy(group) if number % 2 else group
    return protected_pieces


def _protected_spans(pieces: Sequence[Piece], pattern: re.Pattern[str], text: str) -> list[Span]:
    """Return the spans of copies and of protected words, including those that cross tags."""
    spans: list[Span] = []
    tags = [0]
    end = 0
    for piece in pieces:
        start, end = end, end + len(piece.text)
        if piece.role is Role.COPY:
            spans.append((start, end))
        if piece.role in (Role.OPEN, Role.CLOSE, Role.COPY):
            tags += [start, end]
    areas = list(pairwise([*tags, len(text)]))
    if len(areas) > 1:
        areas.append((0, len(text)))
    for start, end in areas:
        spans += [
            (start + match.start(), start + match.end())
            for match in pattern.finditer(text[start:end])
        ]
    return sorted(apart(spans))


def _copy(group: Sequence[Piece]) -> list[Piece]:
    """Merge a protected word into one piece, unless it contains only part of an element."""
    texts = [number for number, piece in enumerate(group) if piece.text]
    first, last = texts[0], texts[-1] + 1
    depth = lowest = 0
    for piece in group[first:last]:
        depth += {Role.OPEN: 1, Role.CLOSE: -1}.get(piece.role, 0)
        lowest = min(lowest, depth)
    while lowest < 0 and first and group[first - 1].role is Role.OPEN:
        first -= 1
        lowest += 1
        depth += 1
    while depth > 0 and last < len(group) and group[last].role is Role.CLOSE:
        last += 1
        depth -= 1
    words = group[first:last]
    text = "".join(piece.text for piece in words)
    has_breaks = any(piece.name == "cue" for piece in words)
    if has_breaks or depth or lowest or (len(words) == 1 and words[0].role is Role.COPY):
        return list(group)
    if LINE_BREAK.fullmatch(text):
        copy = Piece(raw_text(words), " ", Role.LINE, "br")
    else:
        within = tuple(part for piece in words for part in piece.parts)
        has_attributes = any(piece.within for piece in words)
        copy = Piece(raw_text(words), text, Role.COPY, within=within if has_attributes else ())
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
