"""A sentence with its markup, and where the markup goes in its translation."""

from __future__ import annotations

import enum
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tfformer.special_ids import PLACEHOLDER
from tfformer.text.segmentation import segments

WORD = re.compile(r"\S+")
PART = re.compile(r"\w+")  # of a word: "size(x=80)" has three
OUTER = re.compile(r"(\W*)(.*?)(\W*)", re.DOTALL)  # the punctuation around a word
SPACE = re.compile(r"[ \t\r\n\f]")
BLANKS = re.compile(r"\s*")
CLOSING = re.compile(r"\Z|[\s.,;:!?)\]…»”]")  # no space stands before it
MAX_DEPTH = 100  # tags within tags that are kept as pairs; deeper ones are points
# A copy stands by itself: not within a number, and not within a word of letters with spaces between
# words; Chinese or Japanese may stand on both sides of it.
WHOLE = (
    r"(?<![\w$€£¥])(?<!\d[.,:/-]){copy}(?!\w|[.,:/-]\d)",
    r"(?<![\dA-Za-zÀ-ɏ$€£¥])(?<!\d[.,:/-]){copy}(?![\dA-Za-zÀ-ɏ]|[.,:/-]\d)",
)
# Scripts that write words, or particles behind a word, without a space: those of South-East Asia,
# Chinese, Japanese, Korean.
ASIAN = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3040-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
UNSPACED = re.compile(f"[{ASIAN}]")
GLUE = re.compile(rf"(?![{ASIAN}])[\w'’/\u2010\u2011-]")  # it ties a word to the copy beside it

Links = Sequence[tuple[int, int]]  # (source word, target word)
Span = tuple[int, int]  # start and end in a text


class Role(enum.Enum):
    """The part that a piece of a document plays in a sentence."""

    TEXT = "text"  # words
    OPEN = "open"  # the beginning of a marked stretch
    CLOSE = "close"  # its end
    POINT = "point"  # an image or a comment: it stands between words
    COPY = "copy"  # a word that stays as it is, with its markup
    BREAK = "break"  # the end of a line, or of a subtitle, where a translation may break too


class Piece(NamedTuple):
    """A piece of a document.

    Attributes:
        raw: The characters of the document.
        text: The characters as a reader sees them; none of markup.
        role: The part that it plays.
        name: The name of a tag, by which an end finds its beginning.
    """

    raw: str
    text: str = ""
    role: Role = Role.TEXT
    name: str = ""


class Passage(NamedTuple):
    """A sentence to translate, with its markup.

    Attributes:
        pieces: The sentence's pieces.
        escapes: The spelling of characters that the format does not allow as they are.
        is_line: Whether it is a line of a corpus, which goes to the model as it is.
    """

    pieces: tuple[Piece, ...]
    escapes: Mapping[str, str] = {}
    is_line: bool = False

    @property
    def text(self) -> str:
        """The sentence as a reader sees it, without ends of lines."""
        return SPACE.sub(" ", "".join(piece.text for piece in self.pieces))

    @property
    def has_marks(self) -> bool:
        """Whether there is anything but text."""
        return any(piece.role is not Role.TEXT for piece in self.pieces)

    def copies(self) -> Iterator[Span]:
        """Yield the start and the end in `text` of each word that stays."""
        position = 0
        for piece in self.pieces:
            end = position + len(piece.text)
            if piece.role is Role.COPY:
                yield position, end
            position = end

    def spelling(self) -> dict[str, str]:
        """Return the spelling of characters: the format's, or that of the passage itself."""
        own = dict(self.escapes)
        for piece in self.pieces:
            character = piece.text or piece.raw[1:]
            is_written = piece.raw[:1] in ("&", "\\") and len(character) == 1
            if is_written and not SPACE.match(character):  # as an entity or a hard break is
                own[character] = piece.raw
        return own

    def filled(self, translation: str, links: Links | None) -> str:
        """Put a translation in the place of the sentence.

        Args:
            translation: The translation of `text`.
            links: Which source word and target word belong together; None if that is not known.

        Returns:
            The translation with every tag of the sentence, once, and well nested.
        """
        if not self.has_marks:
            return _spelled(translation, self.spelling())
        places = _Places(self.text, translation, links)
        return _Writer(self, translation, places).written()


def _spelled(text: str, spelling: Mapping[str, str]) -> str:
    """Write each character as `spelling` says."""
    return "".join(spelling.get(character, character) for character in text)


Part = str | Passage  # of a document: one that stays, or one to translate


def sentences(
    pieces: Sequence[Piece], language: str, escapes: Mapping[str, str] | None = None
) -> Iterator[Part]:
    """Divide running text with markup into sentences.

    Args:
        pieces: The pieces of a paragraph. A line's end within it is a space like any other, unless
            a BREAK has it as its text.
        language: The code of its language.
        escapes: As in `Passage`.

    Yields:
        A passage for each sentence, and the rest as it is.
    """
    flat = [piece._replace(text=_one_line(piece)) for piece in pieces]
    stretches = list(segments("".join(piece.text for piece in flat), language))
    for inside, is_sentence in zip(
        cut(pieces, [len(segment.text) for segment in stretches]),
        [segment.is_sentence for segment in stretches] or [False],
        strict=True,
    ):
        if is_sentence:
            yield Passage(inside, escapes or {})
        else:
            yield raw_text(inside)


def raw_text(pieces: Sequence[Piece]) -> str:
    """Join pieces as they stand in the document."""
    return "".join(piece.raw for piece in pieces)


def cut(pieces: Sequence[Piece], lengths: Sequence[int]) -> list[tuple[Piece, ...]]:
    """Cut pieces into groups whose texts have the given lengths.

    An end tag between two groups goes to the first, all other markup to the second.

    Args:
        pieces: The pieces; words are cut within a piece, other pieces never are.
        lengths: Characters of the text of each group; together those of all pieces.

    Returns:
        As many groups, at least one, that have all the pieces.
    """
    groups: list[list[Piece]] = [[]]
    rooms = iter(lengths)
    room = next(rooms, 0)
    for piece in pieces:
        is_cut = piece.role is Role.TEXT and piece.raw == piece.text
        start = 0
        while True:
            if room <= 0 and piece.role is not Role.CLOSE:
                more = next(rooms, None)
                if more is not None:
                    groups.append([])
                    room += more
                    continue
            if not is_cut or len(piece.text) - start <= room:
                break
            groups[-1].append(_stretch(piece, start, start + room))
            start += room
            room = 0
        groups[-1].append(_stretch(piece, start, len(piece.text)) if start else piece)
        room -= len(piece.text) - start
    groups += [[] for _ in rooms]
    return [tuple(group) for group in groups]


def _stretch(piece: Piece, start: int, end: int) -> Piece:
    """A part of a piece of text.

    The piece is never copied whole, so that cutting is linear.
    """
    return Piece(piece.text[start:end], piece.text[start:end])


def _one_line(piece: Piece) -> str:
    """The piece's text, in which only a BREAK ends a line."""
    return piece.text if piece.role is Role.BREAK else SPACE.sub(" ", piece.text)


# --- Where a stretch of the source is in the translation ----------------------------------------


class _Places:
    """Finds the place in a translation of a stretch of its source."""

    def __init__(self, source: str, target: str, links: Links | None) -> None:
        self.source = source
        self.target = target
        self.source_words = [match.span() for match in WORD.finditer(source)]
        self.target_words = [match.span() for match in WORD.finditer(target)]
        self._starts = [start for start, _ in self.source_words]
        self._ends = [end for _, end in self.source_words]
        self._target_ends = [end for _, end in self.target_words]
        self._linked: defaultdict[int, set[int]] = defaultdict(set)  # target words of source words
        for i, j in links or ():
            if j < len(self.target_words):
                self._linked[i].add(j)
        self._free: dict[str, dict[Span, bool]] = {}  # of each copy the places not yet taken

    def of_stretch(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the translation that belongs to source characters start to end."""
        if not self.source[:start].strip() and not self.source[end:].strip():
            return 0, len(self.target)
        sources = self._words(start, end)
        if not sources or not self.target_words:
            place = self.of_point(start)
            return place, place
        if len(sources) > 1:
            return self._of_words(sources, (start, end))
        source, target = self._outer(sources)
        part = (start, end)
        return self._same_part(part, source, target) or self._inner(part, source, target)

    def _of_words(self, sources: range, part: Span) -> Span:
        """The stretch of several source words, of which the first and the last may be cut."""
        source, target = self._outer(sources)
        left, right = self._inner(part, source, target)
        first, last = self.source_words[sources[0]], self.source_words[sources[-1]]
        if part[0] > first[0] and self._outer(sources[:1])[1][0] == target[0]:
            left = max(left, self.of_stretch(part[0], first[1])[0])
        if part[1] < last[1] and self._outer(sources[-1:])[1][1] == target[1]:
            right = min(right, self.of_stretch(last[0], part[1])[1])
        return left, max(left, right)

    def _inner(self, part: Span, source: Span, target: Span) -> Span:
        """The target words, without punctuation that the source has outside of the part."""
        start, end = part
        inner_source = _without_punctuation(self.source, *source)
        inner_target = _without_punctuation(self.target, *target)
        left = inner_target[0] if start >= inner_source[0] > source[0] else target[0]
        right = inner_target[1] if end <= inner_source[1] else target[1]
        before, after = self.source[source[0] : start], self.source[end : source[1]]
        if start < inner_source[0] and self.target.startswith(before, target[0]):
            left = target[0] + len(before)  # the bracket of "(/usr/bin", not its slash
        if end > inner_source[1] and self.target.endswith(after, *target):
            right = target[1] - len(after)
        return left, max(left, right)

    def _outer(self, sources: range) -> tuple[Span, Span]:
        """The stretch of source words, and that of the target words that belong to them."""
        first, last = self._target_words(sources)
        source = self.source_words[sources[0]][0], self.source_words[sources[-1]][1]
        return source, (self.target_words[first][0], self.target_words[last][1])

    def _same_part(self, part: Span, source: Span, target: Span) -> Span | None:
        """The part of the target word that stands where a part of the source word does.

        Such as "size" of "size(x=80)", if the target word has as many parts; None otherwise.
        """
        theirs = _parts(self.source, source)
        ours = _parts(self.target, target)
        inside = [
            n for n, (left, right) in enumerate(theirs) if part[0] <= left and right <= part[1]
        ]
        is_cut = any(left < place < right for place in part for left, right in theirs)
        if is_cut or len(ours) != len(theirs) or len(inside) in (0, len(theirs)):
            return None
        first, last = inside[0], inside[-1]
        before = ours[first - 1][1] if first else target[0]
        after = ours[last + 1][0] if last + 1 < len(ours) else target[1]
        left = max(before, ours[first][0] - max(0, theirs[first][0] - part[0]))
        right = min(after, ours[last][1] + max(0, part[1] - theirs[last][1]))
        return left, right

    def _share(self, start: int, end: int) -> Span | None:
        """The same share of the target words as a part of a source word has of it.

        So "{x}" of "v2{x}" leaves the rest alone. None if the stretch is no part of a word.
        """
        sources = self._words(start, end)
        if not sources or not self.target_words:
            return None
        source, target = self._outer(sources)
        inner = _without_punctuation(self.source, *source)
        if start <= inner[0] and inner[1] <= end:
            return None
        scale = (target[1] - target[0]) / (source[1] - source[0])
        left, right = (round(scale * (place - source[0])) for place in (start, end))
        return target[0] + left, target[0] + right

    def of_copy(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the translation that says what stays as it is.

        It is the one nearest to the expected place, of those that no other copy has taken.
        """
        expected = self._share(start, end) or self.of_stretch(start, end)
        copy = self.source[start:end]
        if copy not in self._free:
            self._free[copy] = _places(copy, self.target)
        free = self._free[copy]
        fitting = [place for place, is_whole in free.items() if is_whole]
        if not _is_whole(copy, self.source, start):  # such as "{x}" of "v2{x}"
            fitting = [place for place, is_whole in free.items() if not is_whole] or fitting
        if not fitting and not (copy[:1].isalnum() or copy[-1:].isalnum()):
            fitting = list(free)  # no part of a longer number or word, whatever is glued to it
        if not fitting:
            return expected
        place = min(fitting, key=lambda span: abs(span[0] - expected[0]))
        del free[place]
        return place

    def _words(self, start: int, end: int) -> range:
        """The numbers of the source words that a stretch is part of."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def of_point(self, position: int) -> int:
        """The place in the translation of one in the source: in a word, or before one."""
        following = bisect_left(self._starts, position)
        if self._words(position - 1, position + 1) == range(following - 1, following):
            return self.of_stretch(self._starts[following - 1], position)[1]
        if following == len(self._starts) or not self.target_words:
            return len(self.target)
        if following == 0:
            return 0
        first, _ = self._target_words([following])
        return self.target_words[first][0]

    def of_break(self, position: int) -> int:
        """The end of a word at which the same share is read as of the source."""
        share = position / max(1, len(self.source)) * len(self.target)
        following = bisect_left(self._target_ends, share)
        ends = self._target_ends[max(0, following - 1) : following + 1]
        return min(ends, key=lambda end: abs(end - share), default=0)

    def _target_words(self, sources: Sequence[int]) -> tuple[int, int]:
        """The first and the last of the target words that belong to source words."""
        aligned = sorted({j for i in sources for j in self._linked.get(i, ())})
        if aligned:
            return _densest(aligned, len(sources))
        scale = len(self.target_words) / len(self.source_words)
        first = min(int(sources[0] * scale), len(self.target_words) - 1)
        last = min(max(first, round((sources[-1] + 1) * scale) - 1), len(self.target_words) - 1)
        return first, last


def _places(copy: str, text: str) -> dict[Span, bool]:
    """The places of a copy in a text -> whether it stands there by itself.

    Where one stands between spaces, those that only have Chinese or Japanese around them do not.
    """
    places = dict.fromkeys((match.span() for match in re.finditer(re.escape(copy), text)), False)
    for form in WHOLE:
        if whole := [match.span() for match in re.finditer(_whole(form, copy), text)]:
            return places | dict.fromkeys(whole, True)
    return places


def _is_whole(copy: str, text: str, start: int) -> bool:
    return any(re.compile(_whole(form, copy)).match(text, start) for form in WHOLE)


def _whole(form: str, copy: str) -> str:
    return form.replace("{copy}", re.escape(copy))


def _parts(text: str, word: Span) -> list[Span]:
    """The parts of a word between punctuation; none of several words."""
    is_one = WORD.fullmatch(text, *word) is not None
    return [match.span() for match in PART.finditer(text, *word)] if is_one else []


def _without_punctuation(text: str, start: int, end: int) -> tuple[int, int]:
    """The stretch without the punctuation at its ends, unless it has nothing else."""
    before, inner, after = OUTER.fullmatch(text, start, end).groups()  # type: ignore[union-attr]
    return (start + len(before), end - len(after)) if inner else (start, end)


def _densest(numbers: Sequence[int], width: int) -> tuple[int, int]:
    """The longest run of numbers that are at most `width` + 1 apart."""
    runs = [[numbers[0]]]
    for number in numbers[1:]:
        if number - runs[-1][-1] > width + 1:
            runs.append([])
        runs[-1].append(number)
    longest = max(runs, key=len)
    return longest[0], longest[-1]


# --- Writing ------------------------------------------------------------------------------------


@dataclass
class _Mark:
    """A stretch of the source that has markup: a node of a tree."""

    piece: Piece
    start: int
    end: int
    closing: str = ""
    inside: list[_Mark] = field(default_factory=list)
    _place: Span | None = None

    def place(self, places: _Places) -> Span:
        """The stretch of the translation that it belongs to."""
        if self._place is None:
            copies = list(_copies(self.inside)) if self._holds_copies_alone(places.source) else []
            found = [copy.place(places) for copy in copies] or [self._find(places)]
            self._place = min(start for start, _ in found), max(end for _, end in found)
        return self._place

    def _holds_copies_alone(self, source: str) -> bool:
        """Whether there are no words in it but those that stay."""
        copies = "".join(source[copy.start : copy.end] for copy in _copies(self.inside))
        return copies != "" and _unspaced(copies) == _unspaced(source[self.start : self.end])

    def _find(self, places: _Places) -> Span:
        if self.piece.role is Role.BREAK:
            place = places.of_break(self.start)
        elif self.piece.role is Role.CLOSE:
            return (places.of_stretch(max(0, self.start - 1), self.start)[1],) * 2
        elif self.piece.role is Role.COPY:
            return places.of_copy(self.start, self.end)
        elif self.start < self.end:
            return places.of_stretch(self.start, self.end)
        else:
            place = places.of_point(self.start)
        return place, place


class _Written(NamedTuple):
    """A part of a translation with its markup.

    Attributes:
        raw: The characters of the document.
        role: The part that it plays.
        shown: The characters that a reader sees; of a copy, any that begin and end as it does.
        mark: The copy that it is.
    """

    raw: str
    role: Role = Role.TEXT
    shown: str = ""
    mark: _Mark | None = None


class _Writer:
    """Writes a translation with the marks of its passage."""

    def __init__(self, passage: Passage, translation: str, places: _Places) -> None:
        self.passage = passage
        self.translation = translation
        self.places = places
        self.spelling = passage.spelling()
        self._written: list[_Written] = []
        self._marks = _tree(passage.pieces)
        copies = list(_copies(self._marks))
        symbols = {mark.piece.text for mark in copies if PLACEHOLDER.fullmatch(mark.piece.text)}
        self._symbols = re.compile("|".join(map(re.escape, symbols)) or "(?!)")
        self._copy_starts = {mark.start for mark in copies}
        self._copy_ends = {mark.end for mark in copies}

    def written(self) -> str:
        self._inside(self._marks, 0, len(self.translation))
        return "".join(self._spaced())

    def _inside(self, marks: Sequence[_Mark], start: int, end: int) -> None:
        """Write a stretch of the translation, with marks that do not overlap."""
        placed = _apart([(mark.place(self.places), mark) for mark in marks])
        placed.sort(key=lambda pair: pair[0])
        done = start
        for (left, right), mark in placed:
            left = min(max(left, done), end)
            right = min(max(right, left), end)
            self._text(done, left)
            self._mark(mark, left, right)
            done = right
            if mark.piece.role is Role.BREAK:
                done = BLANKS.match(self.translation, right, end).end()  # type: ignore[union-attr]
        self._text(done, end)

    def _text(self, start: int, end: int) -> None:
        text = self._symbols.sub("", self.translation[start:end])
        if text:
            self._written.append(_Written(_spelled(text, self.spelling), Role.TEXT, text))

    def _mark(self, mark: _Mark, start: int, end: int) -> None:
        raw, role = mark.piece.raw, mark.piece.role
        shown = {Role.COPY: raw, Role.BREAK: " "}.get(role, "")
        self._written.append(_Written(raw, role, shown, mark if role is Role.COPY else None))
        if role is Role.OPEN:
            self._inside(mark.inside, start, end)
            self._written.append(_Written(mark.closing, Role.CLOSE))
        is_empty = mark.start == mark.end and role in (Role.OPEN, Role.POINT)
        is_apart = is_empty and self.places.source[mark.start : mark.start + 1] == " "
        if is_apart and not CLOSING.match(self.translation, end):
            self._written.append(_Written(" ", Role.TEXT, " "))

    def _spaced(self) -> Iterator[str]:
        """Yield what is written, with a space beside each copy that needs one.

        It stands behind the end tags and before the beginnings of tags between the two.
        """
        before = _Written("")
        between: list[str] = []
        ends = 0  # of `between`, the end tags it begins with
        for part in self._written:
            if not part.shown:
                ends += part.role is Role.CLOSE and ends == len(between)
                between.append(part.raw)
                continue
            yield from between[:ends]
            if self._lacks_space(before, part):
                yield " "
            yield from between[ends:]
            yield part.raw
            before = part
            between = []
            ends = 0
        yield from between

    def _lacks_space(self, left: _Written, right: _Written) -> bool:
        """Whether a copy stands right beside a word or a copy, and does not in the source."""
        if not left.shown or not _is_spaced(left) or not _is_spaced(right, first=True):
            return False
        source = self.places.source
        is_apart = False
        if left.mark is not None:
            end = left.mark.end
            is_apart = end not in self._copy_starts and not GLUE.match(source, end)
        if right.mark is not None and not is_apart:
            start = right.mark.start
            is_glued = start in self._copy_ends or GLUE.match(source, max(0, start - 1), start)
            is_apart = not is_glued
        return is_apart


def _is_spaced(part: _Written, first: bool = False) -> bool:
    """Whether a space is written between words where a part ends, or begins."""
    character = part.shown[0 if first else -1]
    if UNSPACED.match(character):
        return False
    return part.role is Role.COPY or character.isalnum()


def _unspaced(text: str) -> str:
    """The text without its spaces."""
    return "".join(text.split())


def _copies(marks: Sequence[_Mark]) -> Iterator[_Mark]:
    """Yield the copies of a tree."""
    for mark in marks:
        if mark.piece.role is Role.COPY:
            yield mark
        yield from _copies(mark.inside)


def _apart(placed: Sequence[tuple[Span, _Mark]]) -> list[tuple[Span, _Mark]]:
    """Take out of each stretch the copies beside it, lest they be written twice."""
    copies = sorted(place for place, mark in placed if mark.piece.role is Role.COPY)
    starts = [start for start, _ in copies]
    found = []
    for (left, right), mark in placed:
        if mark.piece.role is Role.OPEN:
            for start, end in copies[bisect_left(starts, left) : bisect_left(starts, right)]:
                left, right = (end, right) if start == left else (left, min(right, start))
        found.append(((left, right), mark))
    return found


def _tree(pieces: Sequence[Piece]) -> list[_Mark]:
    """The marks of a passage as a tree. A tag without its other half is a point."""
    levels: list[list[_Mark]] = [[]]
    opened: list[_Mark] = []
    position = 0
    for piece in pieces:
        end = position + len(piece.text)
        if piece.role is Role.OPEN and len(opened) < MAX_DEPTH:
            opened.append(_Mark(piece, position, position))
            levels.append([])
        elif piece.role is Role.CLOSE and any(mark.piece.name == piece.name for mark in opened):
            while opened[-1].piece.name != piece.name:
                _close(levels, opened, None, position)
            _close(levels, opened, piece, position)
        elif piece.role is Role.OPEN:
            levels[-1].append(_Mark(piece._replace(role=Role.POINT), position, position))
        elif piece.role is not Role.TEXT:
            levels[-1].append(_Mark(piece, position, end))
        position = end
    while opened:
        _close(levels, opened, None, position)
    return levels[0]


def _close(
    levels: list[list[_Mark]], opened: list[_Mark], end: Piece | None, position: int
) -> None:
    """Close the last mark.

    Without an end tag what it holds belongs to the mark around it.
    """
    mark = opened.pop()
    inside = levels.pop()
    if end is None:
        levels[-1] += [_Mark(mark.piece._replace(role=Role.POINT), mark.start, mark.start), *inside]
    else:
        levels[-1].append(_Mark(mark.piece, mark.start, position, end.raw, inside))


# Of a format: a text in parts, as of a file, and its language -> sentences and the rest.
Reader = Callable[[Iterable[str], str], Iterator[Part]]
