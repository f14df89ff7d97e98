"""Place the markup of a sentence in its translation.

Each protected word is replaced by one character in both texts, and so treated as a single word. A
link connects a word of the sentence to a word of the translation. The first rule that applies
decides:

   >>> from tfformer.text import translate_text
   >>> def place(source, translation, links=()):
   ...     return translate_text(
   ...         source, lambda _: [translation], "html", align=lambda *_: [links]
   ...     )

1. If the translation equals the sentence, it is written as in the document. If it differs only in
case, every mark keeps its position.

   >>> place("un<b>believ</b>able", "UNBELIEVABLE")
   'UN<b>BELIEV</b>ABLE'

2. A protected word is found in the translation regardless of case. If the translation lacks the
word, it is inserted between two words, at the same relative position.

   >>> place("See <code>ls</code> now.", "Jetzt ls ansehen.")
   'Jetzt <code>ls</code> ansehen.'
   >>> place("See <code>ls</code> now.", "Jetzt ansehen.")
   'Jetzt <code>ls</code> ansehen.'

3. An element surrounds the words that are linked to its words.

   >>> place("say <b>go</b> now", "jetzt sag geh", [(0, 1), (1, 2), (2, 0)])
   'jetzt sag <b>geh</b>'

4. A word or sign without a link is paired with the same word or sign, if both texts contain it
equally often.
   12,500 and 12.500 count as the same word.

   >>> place("Is <b>Anna</b> here?", "Ist die Anna da?")
   'Ist die <b>Anna</b> da?'

5. Any other word is paired with the word at the same relative position between the nearest pairs.

   >>> place("The <b>dog</b> sleeps.", "Der Hund schläft.")
   'Der <b>Hund</b> schläft.'

6. No two elements share a word. Each element that contains words in the sentence gets at least one
word, if there are enough.

   >>> place("<i>I</i> <b>love</b><u>you</u> all", "Ich liebe euch")
   '<i>Ich</i> <b>liebe</b> <u>euch</u>'

7. An image, a comment or a footnote follows the word that it touches.

   >>> place("The dog<sup>1</sup> sleeps.", "Es schläft der Hund.", [(0, 2), (1, 3), (2, 1)])
   'Es schläft der Hund<sup>1</sup>.'

8. Lines and cues break between words, at the same relative position, and not before a comma. Each
line and cue gets at least one word, if there are enough. An element around a whole cue remains
around it.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from tfformer.text.marked_sentence import EMPHASIS, MarkedSentence, Piece, Role, raw_text
from tfformer.text.protected_words import BEGIN, END, NO_SPACES, UNSPACED
from tfformer.text.protected_words import LETTER as SPACED_LETTER
from tfformer.text.segmentation import Span, apart

MAX_DEPTH = 100  # nested tags that are kept as pairs; deeper tags are points
MARKS = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
LETTER = rf"(?:[^\W{NO_SPACES}][{MARKS}]*)"
# A word, a character of a script without spaces, or a sign. "Don't", "E-Mail", "3.50" are words.
TOKEN = re.compile(
    rf"{LETTER}+(?:(?:['’\u2010\u2011-]|(?<=\d)[.,:/](?=\d))(?={LETTER}){LETTER}+)*"
    rf"|\S[{MARKS}]*(?:(?<=[\u1039\u17d2])\S[{MARKS}]*)*"  # stacked consonants of Burmese and Khmer
)
SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")  # in numbers; languages use different separators
GLUE = re.compile(rf"(?![{UNSPACED}])[\w'’/\u2010\u2011-]")  # attaches a word to the copy beside it
CLOSING = tuple(".,;:!?)]}…»”’%、。，；：！？）」』】")
CLOSING_WORD = re.compile(rf"[{re.escape(''.join(CLOSING))}]+(?!\w)")  # as in French: Quoi ?
# These begin a block of Markdown or another speaker's line, so no line may begin with them.
BLOCK_START = re.compile(r"[-+*>#=|:~–—]|\d+[.)]")
UNCLOSED = "unclosed"  # the name of a start tag whose element ends in another sentence
PRIVATE = range(0xF0000, 0x10FFFE)  # characters that represent protected words

Links = Sequence[tuple[int, int]]  # (source word, target word), numbers of the words between spaces


@dataclass
class Mark:
    """Markup of a sentence: a node of a tree."""

    piece: Piece  # for an element, the start tag
    number: int  # its order in the sentence
    start: int
    end: int  # for a point, equal to `start`
    before: str = ""  # the character before the mark; empty after a point
    behind: str = ""
    closing: str = ""  # the end tag
    inside: list[Mark] = field(default_factory=list)
    target: Span | None = None  # in the translation

    @property
    def role(self) -> Role:
        """The role of the piece."""
        return self.piece.role


class Copy(NamedTuple):
    """A protected word."""

    piece: Piece
    text: str  # what the model receives
    start: int  # in the sentence that the model receives


class Character(NamedTuple):
    """A character of a text in which each protected word is one character, its name."""

    text: str
    word: int  # the number of the word between spaces; -1 for a name


class Token(NamedTuple):
    """A word or a sign."""

    start: int
    end: int
    text: str  # case-folded, and for a number only the digits
    word: int  # the number of the word between spaces
    is_word: bool


def with_marks(sentence: MarkedSentence, translation: str, links: Links | None = None) -> str:
    """Return a translation that contains each tag of its sentence once, properly nested.

    `links` are the pairs of source words and target words, if they are known.
    """
    if translation == sentence.text:
        return raw_text(sentence.pieces)
    if sentence.is_text:
        return "".join(sentence.written(translation))
    source = _Source(sentence, translation)
    target = _with_copies(translation, source)
    lost = source.copies.keys() - {character.text for character in target}
    if lost:
        target = _with_lost_copies(target, lost, _Pairs(source, target, links or ()))
    target = list(_with_spaces(target, source))
    text = _text(target)
    if same := _same_places(source.text, text):
        for mark in (*_all(source.marks), *source.breaks):
            mark.target = same[mark.start], same[mark.end]
    else:
        _Placing(source, _Pairs(source, target, links or ())).place()
    _add_breaks(source.breaks, source.marks)
    written = sentence.written(text)
    for offset, character in enumerate(text):
        if character in source.copies:
            raw = source.copies[character].piece.raw
            written[offset] = sentence.escapes.get(raw, raw)  # a lone "<" may get a neighbour
    return "".join(_written(source.marks, written, (0, len(text))))


# --- The sentence -------------------------------------------------------------------------------


class _Source:
    """A sentence as characters and a tree of marks."""

    def __init__(self, sentence: MarkedSentence, translation: str) -> None:
        self.heard = sentence.text
        self.copies: dict[str, Copy] = {}  # by name
        self.breaks: list[Mark] = []  # the ends of lines and cues, which are in no other mark
        self._pieces = sentence.pieces
        self._levels: list[list[Mark]] = [[]]
        self._open: list[Mark] = []
        names = (name for name in map(chr, PRIVATE) if name not in self.heard + translation)
        self._read(sentence, names)
        while self._open:
            self._close(None)
        self.marks = self._levels[0]
        self.names = {
            (copy.start, copy.start + len(copy.text)): name for name, copy in self.copies.items()
        }
        self.characters = _contracted(self.heard, self.names)
        self.text = _text(self.characters)

    def _read(self, sentence: MarkedSentence, names: Iterator[str]) -> None:
        heard = length = 0
        before = ""  # the last character; empty after a point
        waiting: list[Mark] = []  # for the character after them
        for number, (piece, shown) in enumerate(sentence.shown()):
            if piece.role is Role.COPY and not shown:  # a space of code beside another space
                piece = piece._replace(text="", role=Role.POINT)
            for mark in waiting if piece.text else ():
                mark.behind = piece.text[0]
            mark = Mark(piece, number, length, length, before)
            if piece.role is Role.COPY:
                self.copies[next(names)] = Copy(piece, shown, heard)
                length += 1
            else:
                length += len(shown)
                mark.end = length
            heard += len(shown)
            before = shown[-1:] or before
            if piece.text or piece.role is Role.POINT:
                waiting = []
            if piece.role not in (Role.TEXT, Role.COPY):
                mark = self._add(mark)
                waiting.append(mark)
                if mark.role is Role.POINT:  # an element without characters, too
                    before = ""

    def _add(self, mark: Mark) -> Mark:
        """Add a mark to the tree. A tag without its counterpart is a point."""
        name = mark.piece.name
        if mark.role in (Role.LINE, Role.CUE):
            self.breaks.append(mark)
        elif mark.role is Role.OPEN and len(self._open) < MAX_DEPTH:
            self._open.append(mark)
            self._levels.append([])
        elif mark.role is Role.CLOSE and any(one.piece.name == name for one in self._open):
            while self._open[-1].piece.name != name:
                self._close(None)
            return self._close(mark)
        else:
            self._levels[-1].append(_unclosed(mark) if mark.role is Role.OPEN else mark)
        return mark

    def _close(self, end: Mark | None) -> Mark:
        """Close the last mark. Without an end tag its contents belong to the mark around it."""
        mark = self._open.pop()
        inside = self._levels.pop()
        self._levels[-1].append(mark)
        if end is None:
            _unclosed(mark)
            if inside and inside[0].role is Role.POINT and inside[0].number == mark.number + 1:
                inside[0].before = ""
            self._levels[-1] += inside
        elif mark.start == end.start:
            pieces = self._pieces[mark.number : end.number + 1]
            mark.piece = Piece(raw_text(pieces), "", Role.POINT)
        else:
            closing = end.piece.reworded or end.piece.raw
            mark.end, mark.closing, mark.inside = end.start, closing, inside
        return mark


def _unclosed(mark: Mark) -> Mark:
    """Turn a start tag without an end tag into a point."""
    mark.piece = mark.piece._replace(role=Role.POINT, name=UNCLOSED)
    return mark


def _contracted(text: str, names: Mapping[Span, str]) -> list[Character]:
    """Return the characters of a text, with each protected word as one character."""
    characters = []
    ends = {start: end for start, end in names}
    word = -1
    before = " "
    done = 0
    for offset, character in enumerate(text):
        word += before.isspace() and not character.isspace()
        before = character
        if offset in ends:
            done = ends[offset]
            characters.append(Character(names[offset, done], -1))
        elif offset >= done:
            characters.append(Character(character, word))
    return characters


def _text(characters: Iterable[Character]) -> str:
    return "".join(character.text for character in characters)


# --- Protected words ----------------------------------------------------------------------------


def _with_copies(translation: str, source: _Source) -> list[Character]:
    """Return the characters of a translation with its protected words as names."""
    if len(translation) == len(source.heard) and translation.casefold() == source.heard.casefold():
        return _contracted(translation, source.names)  # rule 1
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for name, copy in source.copies.items():
        alike[" ".join(copy.text.casefold().split())].append(name)
    names: dict[Span, str] = {}
    for text in sorted(alike, key=len, reverse=True):
        copies = [source.copies[name] for name in alike[text]]
        spans = _found(copies, source.heard, translation)
        for name, copy, span in zip(alike[text], copies, spans, strict=True):
            if span is not None:
                start, end = span
                start -= copy.text[0].isspace() and translation[:start][-1:].isspace()
                end += copy.text[-1].isspace() and translation[end : end + 1].isspace()
                names.setdefault((start, end), name)
    return _contracted(translation, {span: names[span] for span in apart(names)})


def _found(copies: Sequence[Copy], source: str, target: str) -> Iterator[Span | None]:
    """Yield the position of each of several equal protected words, None for a lost word.

    If the translation contains the word as often as the sentence, occurrences are paired in order,
    otherwise by distance.
    """
    words = copies[0].text.split()
    starts = [copy.start + len(copy.text) - len(copy.text.lstrip()) for copy in copies]
    folded = [word.casefold() for word in words]  # ß is SS in capitals
    pattern = "|".join(r"\s+".join(map(re.escape, each)) for each in (words, folded))
    here, there = [], []
    for begin, end in ((BEGIN, END), ("", "")):
        begin = begin if re.match(SPACED_LETTER, words[0]) else ""
        end = end if re.match(SPACED_LETTER, words[-1][-1]) else ""
        as_words = re.compile(f"{begin}(?:{pattern}){end}", re.IGNORECASE)
        here = [match.start() for match in as_words.finditer(source)]
        there = [match.span() for match in as_words.finditer(target)]
        if set(starts) <= set(here) and (there or copies[0].text.isalnum()):
            break
    length = len(copies[0].text.strip())
    glued = [_glued_letters(source, (start, start + length)) for start in starts]
    there = [span for span in there if _are_glued_so(_glued_letters(target, span), glued)]
    scale = len(target) / max(1, len(source))
    in_order = dict(zip(here, there, strict=True)) if len(here) == len(there) else None
    for start in starts:
        if in_order is not None:
            yield in_order.get(start)
        elif there:
            nearest = min(there, key=lambda span: abs(span[0] - start * scale))
            there.remove(nearest)
            yield nearest
        else:
            yield None


def _glued_letters(text: str, span: Span) -> tuple[str, str]:
    """The letters before and behind a word that begins and ends with letters; else empty."""
    start, end = span
    before, behind = text[max(0, start - 1) : start], text[end : end + 1]
    begins, ends = (re.match(SPACED_LETTER, text[offset]) for offset in (start, end - 1))
    return (
        before.casefold() if begins and re.match(SPACED_LETTER, before) else "",
        behind.casefold() if ends and re.match(SPACED_LETTER, behind) else "",
    )


def _are_glued_so(glued: tuple[str, str], others: Iterable[tuple[str, str]]) -> bool:
    """Whether the letters beside a word are beside it in the sentence, too."""
    before, behind = glued
    return any(before in ("", left) and behind in ("", right) for left, right in others)


def _with_lost_copies(
    target: Sequence[Character], lost: Set[str], pairs: _Pairs
) -> list[Character]:
    """Insert each protected word that the translation lacks between two words."""
    ends = {len(pairs.source) - 1: len(target), 0: 0}  # if the word ends or begins the sentence
    inserted: defaultdict[int, list[Character]] = defaultdict(list)
    end = 0
    for offset, name in enumerate(pairs.source):
        if name in lost:
            if (
                pairs.source[max(0, offset - 1)] not in lost or offset == 0
            ):  # else they stay together
                end = ends[offset] if offset in ends else pairs.word_end(offset)
            inserted[end].append(Character(name, -1))
    pieces = []
    for offset in range(len(target) + 1):
        pieces += [*inserted[offset], *target[offset : offset + 1]]
    return pieces


def _with_spaces(target: Sequence[Character], source: _Source) -> Iterator[Character]:
    """Yield a translation, separating words from protected words where the sentence does."""
    before = ""
    for character in target:
        if before and _lacks_space(before, character.text, source):
            yield Character(" ", -1)
        yield character
        before = character.text


def _lacks_space(left: str, right: str, source: _Source) -> bool:
    copies = source.copies
    if left not in copies and right not in copies:
        return False
    neighbours = []  # in the sentence
    touching = [left, right]
    if left in copies:
        neighbours.append(source.text[source.text.index(left) + 1 :][:1])
        touching[0] = copies[left].text[-1]
    if right in copies:
        neighbours.append(source.text[: source.text.index(right)][-1:])
        touching[1] = copies[right].text[0]
    if not all(one in copies or one.isalnum() for one in (left, right)):
        return False
    if any(one.isspace() or re.match(f"[{UNSPACED}]", one) for one in touching):
        return False
    if left in copies and right in copies:
        return left + right not in source.text
    return any(one not in copies and not GLUE.match(one) for one in neighbours)


# --- Words --------------------------------------------------------------------------------------


class _Pairs:
    """The tokens of a sentence and the spans of the translation that correspond to them."""

    def __init__(self, source: _Source, target: Sequence[Character], links: Links) -> None:
        self.source = source.text
        self.target = _text(target)
        self.here = list(_tokens(self.source, source.characters, source.copies))
        self.there = list(_tokens(self.target, target, source.copies))
        self._words = [token for token in self.there if token.is_word]
        self._linked: defaultdict[int, set[int]] = defaultdict(set)
        for word, other in links:
            self._linked[word].add(other)
        self._of_word: defaultdict[int, list[Token]] = defaultdict(list)
        for token in self.there:
            self._of_word[token.word].append(token)
        self.partner = self._partners()
        self._spans = [self._known(number) for number in range(len(self.here))]
        self._anchors = [number for number, spans in enumerate(self._spans) if spans]
        for number, token in enumerate(self.here):
            if not self._spans[number] and self.there:
                self._spans[number] = self._at_share(token)

    def _partners(self) -> dict[int, int]:
        """Pair equal words and signs that occur equally often in both texts: rule 4."""
        partner: dict[int, int] = {}
        others = _numbers_of(self.there)
        for text, here in _numbers_of(self.here).items():
            if len(here) != len(others[text]):
                continue
            for number, other in zip(here, others[text], strict=True):
                linked = self._linked.get(self.here[number].word)
                if not linked or self.there[other].word in linked:
                    partner[number] = other
        return partner

    def _known(self, number: int) -> list[Span]:
        """The spans of the translation that a token is paired with or linked to."""
        token = self.here[number]
        if number in self.partner:
            return [self.there[self.partner[number]][:2]]
        there = [one for word in sorted(self._linked[token.word]) for one in self._of_word[word]]
        if not token.is_word:
            return [one[:2] for one in there if one.text == token.text]
        words = [one for one in there if one.is_word]
        if len(words) > 4 and re.match(f"[{NO_SPACES}]", words[0].text):  # a clause
            words = [words[number * len(words) // len(self.here)]]
        return [one[:2] for one in words]

    def _at_share(self, token: Token) -> list[Span]:
        """The target tokens at the same relative position between the known tokens: rule 5."""
        start, end = self._scaled(token.start), self._scaled(token.end)
        free = (token.is_word and self._words) or self.there
        first = bisect_left(free, start, key=_centre)
        last = bisect_left(free, end, key=_centre)
        if first < last:
            return [one[:2] for one in free[first:last]]
        middle = (start + end) / 2
        nearest = free[max(0, first - 1) : first + 1]
        return [min(nearest, key=lambda one: abs(_centre(one) - middle))[:2]]

    def _scaled(self, offset: int) -> float:
        """The position in the translation at the same relative position between known tokens."""
        left, right = (0, 0), (len(self.source), len(self.target))
        behind = bisect_left(self._anchors, bisect_left(self.here, offset, key=_start))
        before = bisect_left(self._anchors, bisect_right(self.here, offset, key=_end)) - 1
        if before >= 0:
            number = self._anchors[before]
            left = self.here[number].end, self._spans[number][-1][1]
        if behind < len(self._anchors):
            number = self._anchors[behind]
            right = self.here[number].start, self._spans[number][0][0]
        if left[1] >= right[1]:
            left, right = (0, 0), (len(self.source), len(self.target))
        return left[1] + (offset - left[0]) * (right[1] - left[1]) / max(1, right[0] - left[0])

    def tokens_of(self, start: int, end: int) -> range:
        """The numbers of the source tokens that a span contains fully or partly."""
        first = bisect_right(self.here, start, key=_end)
        return range(first, bisect_left(self.here, end, key=_start))

    def stretch(self, start: int, end: int) -> Span | None:
        """The span of the translation that corresponds to a span of the sentence."""
        tokens = self.tokens_of(start, end)
        first = bisect_left(self._anchors, tokens.start)
        chosen = self._anchors[first : bisect_left(self._anchors, tokens.stop)]
        if not any(self.here[number].word >= 0 and self.here[number].is_word for number in chosen):
            words = [number for number in tokens if self.here[number].is_word]
            chosen = words or chosen or list(tokens)
        spans = sorted(span for number in chosen for span in self.part(number, start, end))
        return self._densest(spans, len(tokens)) if spans else None

    def part(self, number: int, start: int, end: int) -> list[Span]:
        """The spans of the translation for the part of a token from `start` to `end`."""
        token = self.here[number]
        if number not in self.partner:
            return self._spans[number]
        other = self.there[self.partner[number]]
        left = min(other.start + max(0, start - token.start), other.end)
        return [(left, max(left, other.end - max(0, token.end - end)))]

    def _densest(self, spans: Sequence[Span], width: int) -> Span:
        """The longest run of spans in which neighbours begin at most `width` + 1 tokens apart."""
        numbers = [bisect_left(self.there, start, key=_start) for start, _ in spans]
        runs = [[spans[0]]]
        for (before, number), span in zip(itertools.pairwise(numbers), spans[1:], strict=True):
            if number - before > width + 1:
                runs.append([])
            runs[-1].append(span)
        longest = max(runs, key=len)
        return longest[0][0], max(end for _, end in longest)

    def word_end(self, offset: int, area: Span | None = None) -> int:
        """The end of the target word that is nearest to the relative position of `offset`."""
        low, high = area or (0, len(self.target))
        share = min(max(self._scaled(offset), low), high)
        ends = [word.end for word in self._words if low <= word.end <= high]
        return min(ends, key=lambda end: abs(end - share), default=low)


_start = attrgetter("start")
_end = attrgetter("end")


def _centre(token: Token) -> float:
    return (token.start + token.end) / 2


def _tokens(
    text: str, characters: Sequence[Character], copies: Mapping[str, Copy]
) -> Iterator[Token]:
    for match in TOKEN.finditer(text):
        first = match[0][0]
        is_word = first.isalnum() or first == "_" or first in copies
        text = SEPARATOR.sub("", match[0].casefold())
        yield Token(*match.span(), text, characters[match.start()].word, is_word)


def _numbers_of(tokens: Sequence[Token]) -> defaultdict[str, list[int]]:
    numbers = defaultdict(list)
    for number, token in enumerate(tokens):
        numbers[token.text].append(number)
    return numbers


def _same_places(source: str, target: str) -> list[int]:
    """The position of each source character in a translation; empty unless only case differs."""
    if source.casefold() != target.casefold():
        return []
    places: list[int] = []
    for number, character in enumerate(target):
        places += [number] * len(character.casefold())
    places.append(len(target))
    lengths = [len(character.casefold()) for character in source]
    return [places[done] for done in itertools.accumulate(lengths, initial=0)]


# --- Marks --------------------------------------------------------------------------------------


class _Placing:
    """Gives each mark of a sentence its position in the translation."""

    def __init__(self, source: _Source, pairs: _Pairs) -> None:
        self._marks = source.marks
        self._breaks = source.breaks
        self._pairs = pairs
        self._target = pairs.target
        self._cells = self._parts_of_words()

    def place(self) -> None:
        """Give each mark its `target`."""
        self._place_breaks()
        self._place(self._marks, (0, len(self._pairs.source)), (0, len(self._target)))

    def _parts_of_words(self) -> list[Span]:
        """The words of the translation, cut where an element begins or ends within a word."""
        cuts: defaultdict[int, set[int]] = defaultdict(set)
        for mark in _all(self._marks):
            for offset in (mark.start, mark.end):
                for number in self._pairs.tokens_of(offset - 1, offset + 1):
                    token = self._pairs.here[number]
                    if token.start < offset < token.end and number in self._pairs.partner:
                        [(cut, _)] = self._pairs.part(number, offset, token.end)
                        cuts[self._pairs.partner[number]].add(cut)
        cells = []
        for number, token in enumerate(self._pairs.there):
            if token.is_word:
                places = [token.start, *sorted(cuts[number] - {token.start, token.end}), token.end]
                cells += list(itertools.pairwise(places))
        return cells

    def _place(self, marks: Sequence[Mark], inside: Span, area: Span) -> None:
        """Place the marks in a span of the sentence within an area of the translation."""
        elements = [mark for mark in marks if mark.role is Role.OPEN]
        self._share_out(elements, [self._wanted(one, inside, area) for one in elements], area)
        for mark in marks:
            if mark.target is None:
                offset = self._point(mark, inside, area)
                mark.target = offset, offset
            left, right = (min(max(offset, area[0]), area[1]) for offset in mark.target)
            mark.target = left, right
            self._place(mark.inside, (mark.start, mark.end), mark.target)

    def _wanted(self, mark: Mark, inside: Span, area: Span) -> Span:
        """The span of the translation that an element would cover if it were alone."""
        low, high = area
        start, end = inside
        for cue in self._breaks:
            if cue.target and cue.role is Role.CUE and cue.end <= mark.start:
                low, start = max(low, cue.target[1]), max(start, cue.end)
            elif cue.target and cue.role is Role.CUE and cue.start >= mark.end:
                high, end = min(high, cue.target[0]), min(end, cue.start)
        high = max(low, high)
        text = self._pairs.source
        if not (text[start : mark.start] + text[mark.end : end]).strip():
            return low, high
        span = self._pairs.stretch(mark.start, mark.end)
        if span is None:
            offset = self._pairs.word_end(mark.start, (low, high))
            span = offset, offset
        left, right = (min(max(offset, low), high) for offset in span)
        return left, right

    def _share_out(self, elements: Sequence[Mark], wanted: Sequence[Span], area: Span) -> None:
        """Assign each element its words, and no word to two elements: rule 6."""
        order = sorted(zip(wanted, elements, strict=True), key=lambda one: (one[0], one[1].number))
        needs = [self._need(mark) for _, mark in order]
        done = area[0]
        for number, ((left, right), mark) in enumerate(order):
            limit = self._leaving(sum(needs[number + 1 :]), area)
            left = max(done, min(left, self._leaving(needs[number], (area[0], limit))))
            if needs[number]:
                left += len(self._target[left : area[1]]) - len(
                    self._target[left : area[1]].lstrip()
                )
            enough = self._holding(needs[number], left, area[1])
            right = max(left, enough, len(self._target[: min(right, limit)].rstrip()))
            mark.target = left, right
            done = right

    def _need(self, mark: Mark) -> int:
        """The number of words that an element needs so that each element in it gets a word."""
        tokens = self._pairs.tokens_of(mark.start, mark.end)
        has_word = any(self._pairs.here[number].is_word for number in tokens)
        return max(
            int(has_word), sum(self._need(one) for one in mark.inside if one.role is Role.OPEN)
        )

    def _leaving(self, count: int, area: Span) -> int:
        """The last position in an area with `count` words after it, or the beginning."""
        cells = [cell for cell in self._cells if area[0] <= cell[0] and cell[1] <= area[1]]
        if count == 0:
            return area[1]
        return cells[-count][0] if count <= len(cells) else area[0]

    def _holding(self, count: int, start: int, end: int) -> int:
        """The first position with `count` words between it and `start`, or the last word's end."""
        cells = [cell for cell in self._cells if start <= cell[0] and cell[1] <= end]
        return cells[min(count, len(cells)) - 1][1] if count and cells else start

    def _point(self, mark: Mark, inside: Span, area: Span) -> int:
        """The position of an image, a comment or a footnote: rule 7."""
        pairs = self._pairs
        offset = mark.start
        if not pairs.source[inside[0] : offset].strip():
            return area[0]
        if not pairs.source[offset : inside[1]].strip() and not mark.before.isalnum():
            return area[1]
        if pairs.source[offset - 1 : offset].strip() and mark.piece.name != UNCLOSED:
            span = pairs.stretch(offset - 1, offset)
            return span[1] if span else area[0]
        if pairs.source[offset : offset + 1].strip():
            span = pairs.stretch(offset, offset + 1)
            return span[0] if span else area[0]
        return pairs.word_end(offset, area)

    def _place_breaks(self) -> None:
        """Break the translation at about the same relative positions: rule 8."""
        ends = [end for _, end in self._cells]
        places = [offset for offset in range(1, len(self._target)) if self._may_break(offset)]
        scale = len(self._target) / max(1, len(self._pairs.source))
        breaks = self._breaks_for(len(ends))
        done = 0
        for number, mark in enumerate(breaks):
            parts = len(breaks) - number  # after the break
            first = bisect_right(ends, done)
            needed = max(1, min(parts, len(ends) - first - 1))
            free = [
                offset
                for offset in places
                if offset > done and first < bisect_right(ends, offset) <= len(ends) - needed
            ]
            share = mark.start * scale
            offset = min(free, key=lambda offset: abs(offset - share), default=None)
            if offset is None and mark.piece.name in ("cue", "br"):
                offset = len(self._target)
            if offset is not None:
                behind = len(self._target) - len(self._target[offset:].lstrip(" "))
                mark.target = offset, behind
                done = offset

    def _breaks_for(self, words: int) -> list[Mark]:
        """The breaks of a translation; if it has few words, line ends are dropped, but no cues."""
        cues = [mark for mark in self._breaks if mark.piece.name == "cue"]
        lines = [mark for mark in self._breaks if mark.piece.name != "cue"]
        if cues:
            lines = lines[: max(0, words - 1 - len(cues))]
        return sorted([*cues, *lines], key=lambda mark: mark.number)

    def _may_break(self, offset: int) -> bool:
        """Whether a line may end at a position of the translation."""
        before, behind = self._target[offset - 1], self._target[offset : offset + 10]
        if behind[0] == " ":
            words = behind.lstrip()
            return not (BLOCK_START.match(words) or CLOSING_WORD.match(words))
        if before == " " or behind.startswith(CLOSING):
            return False
        is_apart = re.search(f"[{NO_SPACES}]", before + behind[0]) is not None
        return is_apart and any(token.start == offset for token in self._pairs.there)


def _all(marks: Iterable[Mark]) -> Iterator[Mark]:
    for mark in marks:
        yield mark
        yield from _all(mark.inside)


def _add_breaks(breaks: Sequence[Mark], marks: list[Mark]) -> None:
    """Add each break to the sibling marks among which it falls."""
    placed = [(mark, mark.target[0]) for mark in breaks if mark.target]
    levels = [_level(marks, offset) for _, offset in placed]
    for (mark, _), level in zip(placed, levels, strict=True):
        level.append(mark)


def _level(marks: list[Mark], offset: int) -> list[Mark]:
    """The sibling marks among which a position of the translation falls."""
    for mark in marks:
        if mark.role is Role.OPEN and mark.target and mark.target[0] < offset < mark.target[1]:
            return _level(mark.inside, offset)
    return marks


# --- Writing ------------------------------------------------------------------------------------


def _written(marks: Sequence[Mark], target: Sequence[str], area: Span) -> Iterator[str]:
    """Yield an area of the translation, whose characters are `target`, with its marks."""
    placed = [(mark.target, mark) for mark in marks if mark.target]
    placed.sort(key=lambda one: (one[0][0], not _is_behind_word(one[1]), one[1].number))
    done, end = area
    for number, ((left, right), mark) in enumerate(placed):
        left = min(max(left, done), end)
        right = min(max(right, left), end)
        yield from target[done:left]
        if mark.role is Role.OPEN:
            inside = "".join(_written(mark.inside, target, (left, right)))
            if inside or not mark.piece.name.startswith(EMPHASIS):
                yield mark.piece.raw + inside + mark.closing
        else:
            following = [
                one.piece.raw for span, one in placed[number + 1 : number + 2] if span[0] <= right
            ]
            behind = "".join([*following, *target[right : right + 1]])
            yield _with_spaces_around(mark, "".join(target[max(0, left - 1) : left]), behind)
        done = right
    yield from target[done:end]


def _is_behind_word(mark: Mark) -> bool:
    """Whether a mark without words belongs to the word that ends before it."""
    is_point = mark.role in (Role.POINT, Role.CLOSE)  # an end tag alone is a point
    return is_point and mark.before.strip() != "" and mark.piece.name != UNCLOSED


def _with_spaces_around(mark: Mark, before: str, behind: str) -> str:
    """A point with the spaces that surround it in the sentence."""
    if mark.role is not Role.POINT:
        return mark.piece.raw
    left = " " if mark.before.isspace() and before and not before[-1].isspace() else ""
    is_apart = behind and not behind[0].isspace() and not behind.startswith(CLOSING)
    right = " " if mark.behind.isspace() and is_apart else ""
    return left + mark.piece.raw + right
