"""Where the marked stretches of a sentence are in its translation.

The rules, from the first that applies; a link joins a word of the sentence with one of the
translation.

   >>> from tfformer.text import translate_text
   >>> def place(source, translation, links=()):
   ...     return translate_text(
   ...         source, lambda _: [translation], "html", align=lambda *_: [links]
   ...     )

1. Where the translation is the sentence, but for capitals, everything keeps its place.

   >>> place("un<b>believ</b>able", "UNBELIEVABLE")
   'UN<b>BELIEV</b>ABLE'

2. A protected word is where the translation has it, in any case. One that the translation has lost
   is put between two words, at about its share of the sentence.

   >>> place("See <code>ls</code> now.", "Jetzt ls ansehen.")
   'Jetzt <code>ls</code> ansehen.'
   >>> place("See <code>ls</code> now.", "Jetzt ansehen.")
   'Jetzt <code>ls</code> ansehen.'

3. An element is around the words that are linked with its words.

   >>> place("say <b>go</b> now", "jetzt sag geh", [(0, 1), (1, 2), (2, 0)])
   'jetzt sag <b>geh</b>'

4. A word without a link is the same word of the translation, if both have it as often; the signs
   beside it go with it.

   >>> place("Is <b>Anna</b> here?", "Ist die Anna da?")
   'Ist die <b>Anna</b> da?'

5. Any other word is at the same share of the words between those that are known.

   >>> place("The <b>dog</b> sleeps.", "Der Hund schläft.")
   'Der <b>Hund</b> schläft.'

6. Elements beside one another share the words: each that had words has one, if there are enough.

   >>> place("<i>I</i> <b>love</b><u>you</u> all", "Ich liebe euch")
   '<i>Ich</i> <b>liebe</b> <u>euch</u>'

7. An image, a comment or a footnote stays beside the word that it touches.

   >>> place("The dog<sup>1</sup> sleeps.", "Es schläft der Hund.", [(0, 2), (1, 3), (2, 1)])
   'Es schläft der Hund<sup>1</sup>.'

8. Lines and cues of subtitles are broken between words, not before a comma, and each has words if
   there are enough. An element around a whole cue stays around it.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tfformer.text.marked_sentence import SPACES, MarkedSentence, Piece, Role, raw_text
from tfformer.text.protected_words import BEGIN, END, NO_SPACES, UNSPACED
from tfformer.text.protected_words import LETTER as SPACED_LETTER
from tfformer.text.segmentation import Span

MAX_DEPTH = 100  # tags within tags that are kept as pairs; deeper ones are points
MARKS = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
LETTER = rf"(?:[^\W{NO_SPACES}][{MARKS}]*)"
# A word, of a script without spaces a character, or a sign. "Don't", "E-Mail" and "3.50" are one.
TOKEN = re.compile(
    rf"{LETTER}+(?:(?:['’\u2010\u2011-]|(?<=\d)[.,:/](?=\d))(?={LETTER}){LETTER}+)*|\S[{MARKS}]*"
)
GLUE = re.compile(rf"(?![{UNSPACED}])[\w'’/\u2010\u2011-]")  # it ties a word to the copy beside it
SPACED = re.compile(SPACED_LETTER)
CLOSING = tuple(".,;:!?)]}…»”’%、。，；：！？）」』】")
OPENING = tuple("([{«„“‘（「『【")
# What begins a block of Markdown, or another speaker's line, does not begin a line.
BLOCK_START = re.compile(r"[-+*>#=|:~–—]|\d+[.)]")
UNCLOSED = "unclosed"  # the name of a start tag whose element ends in another sentence
COPY_MARK = "\0"  # in the place of a neighbour's character

Links = Sequence[tuple[int, int]]  # (source word, target word), of the words between spaces


@dataclass
class Mark:
    """A stretch or a place of a sentence that has markup: a node of a tree.

    Attributes:
        piece: The piece that it begins with.
        number: The number of the piece in the sentence.
        last: The number of its last piece.
        start: Where it begins in the sentence without its protected words.
        end: Where it ends there.
        word: The number of the word in which it begins.
        before: The character before it that a reader sees.
        behind: The character behind it.
        closing: The end tag.
        inside: The marks in it.
        target: Its place in the translation; None if it is not known, or is left out.
    """

    piece: Piece
    number: int
    last: int
    start: int
    end: int
    word: int = 0
    before: str = ""
    behind: str = ""
    closing: str = ""
    inside: list[Mark] = field(default_factory=list)
    target: Span | None = None

    @property
    def has_copies(self) -> bool:
        """Whether there is a protected word in it."""
        return any(mark.role is Role.COPY for mark in self.all())

    @property
    def role(self) -> Role:
        """The role of its piece."""
        return self.piece.role

    def all(self) -> Iterator[Mark]:
        """Yield the mark and those in it."""
        yield self
        for mark in self.inside:
            yield from mark.all()


class Token(NamedTuple):
    """A word or a sign of a text without its protected words.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        text: Its characters, whatever their case.
        word: The number of the word between spaces that it belongs to.
        is_word: Whether it is no sign.
    """

    start: int
    end: int
    text: str
    word: int
    is_word: bool


def with_marks(sentence: MarkedSentence, translation: str, links: Links | None = None) -> str:
    """Put a translation in the place of a sentence.

    Args:
        sentence: The sentence.
        translation: The translation of its text.
        links: Which source word and target word belong together; None if that is not known.

    Returns:
        The translation with every tag of the sentence, once, and well nested.
    """
    spelling = sentence.spelling()
    if sentence.is_text:
        return _spelled(translation, spelling)
    source = _Source(sentence)
    target, words = _without_copies(source, translation)
    _Placing(source, target, words, links or ()).place()
    return "".join(_with_spaces(_written(source.marks, target, (0, len(target)), spelling)))


def _spelled(text: str, spelling: Mapping[str, str]) -> str:
    return "".join(spelling.get(character, character) for character in text)


# --- The sentence -------------------------------------------------------------------------------


class _Source:
    """A sentence as text without its protected words, and a tree of marks.

    Attributes:
        text: The text, in which spaces are collapsed as the model gets them.
        words: For each of its characters the number of its word, with protected words counted.
        heard: The text with the protected words.
        marks: The marks that are in no other.
        copies: The protected words, each with its place in `heard`.
        lines: The ends of lines, which are in no other mark.
    """

    def __init__(self, sentence: MarkedSentence) -> None:
        self.text = ""
        self.words: list[int] = []
        self.heard = sentence.text
        self.copies: list[tuple[Mark, Span]] = []
        self.lines: list[Mark] = []
        self._pieces = sentence.pieces
        self._levels: list[list[Mark]] = [[]]
        self._open: list[Mark] = []
        self._read(sentence)
        while self._open:
            self._close(None)
        self.marks = self._levels[0]

    def _read(self, sentence: MarkedSentence) -> None:
        spans = sentence.copies()
        parts: list[str] = []
        length = 0
        word = -1
        before = ""  # the last character that a reader sees
        beside = ""  # the same, or nothing behind a point
        waiting: list[Mark] = []  # for the character behind them
        for number, piece in enumerate(sentence.pieces):
            shown = piece.text if sentence.keeps_spaces else SPACES.sub(" ", piece.text)
            if shown:
                for mark in waiting:
                    mark.behind = COPY_MARK if piece.role is Role.COPY else shown[0]
                waiting = []
            mark = Mark(piece, number, number, length, length, word, beside)
            if piece.role is Role.COPY:
                word += not before.strip()
                mark.word = word
                self.copies.append((mark, next(spans)))
                before = COPY_MARK
            else:
                if before == " " and not sentence.keeps_spaces:
                    shown = shown.removeprefix(" ")
                for character in shown:
                    word += not before.strip() and not character.isspace()
                    self.words.append(word)
                    before = character
                parts.append(shown)
                length += len(shown)
                mark.end = length
            if piece.role is Role.POINT:
                waiting = []
                beside = ""
            elif shown or piece.role is Role.COPY:
                beside = before
            if piece.role is not Role.TEXT:
                waiting.append(self._add(mark))
        self.text = "".join(parts)

    def _add(self, mark: Mark) -> Mark:
        """Add a mark to the tree. A tag without its other half is a point."""
        name = mark.piece.name
        if mark.role is Role.LINE:
            self.lines.append(mark)
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
        """Close the last mark. Without an end tag what it holds belongs to the mark around it."""
        mark = self._open.pop()
        inside = self._levels.pop()
        self._levels[-1].append(mark)
        if end is None:
            _unclosed(mark)
            if inside and inside[0].role is Role.POINT and inside[0].number == mark.number + 1:
                inside[0].before = ""
            self._levels[-1] += inside
        else:
            mark.end, mark.last, mark.closing = end.start, end.number, end.piece.raw
            mark.inside = inside
            if mark.start == mark.end and not mark.has_copies:
                pieces = self._pieces[mark.number : mark.last + 1]
                mark.piece = Piece(raw_text(pieces), "", Role.POINT)
                mark.inside = []
        return mark


def _unclosed(mark: Mark) -> Mark:
    """Make a point of a start tag without an end tag."""
    mark.piece = mark.piece._replace(role=Role.POINT, name=UNCLOSED)
    return mark


# --- The translation ----------------------------------------------------------------------------


def _without_copies(source: _Source, translation: str) -> tuple[str, list[int]]:
    """Find the protected words in a translation, and take them out.

    Returns:
        The translation without them, and for each of its characters the number of its word.
    """
    alike: defaultdict[str, list[tuple[Mark, Span]]] = defaultdict(list)
    for mark, span in source.copies:
        alike[" ".join(mark.piece.text.casefold().split())].append((mark, span))
    taken: dict[int, tuple[int, Mark]] = {}  # a start -> the end
    is_taken = [False] * len(translation)
    for text in sorted(alike, key=len, reverse=True):
        for mark, (start, end) in _found_copies(text, alike[text], source.heard, translation):
            begins, ends = mark.piece.text[0].isspace(), mark.piece.text[-1].isspace()
            if begins and not mark.before.isspace() and translation[start - 1 : start].isspace():
                start -= 1
            if ends and not mark.behind.isspace() and translation[end : end + 1].isspace():
                end += 1
            if not any(is_taken[start:end]):
                is_taken[start:end] = [True] * (end - start)
                taken[start] = end, mark
    parts, words = [], []
    length = 0
    word = -1
    before = " "
    for place, character in enumerate(translation):
        word += before.isspace() and not character.isspace()
        before = character
        if place in taken:
            taken[place][1].target = (length, length)
        if not is_taken[place]:
            parts.append(character)
            words.append(word)
            length += 1
    return "".join(parts), words


def _found_copies(
    text: str, copies: Sequence[tuple[Mark, Span]], source: str, target: str
) -> Iterator[tuple[Mark, Span]]:
    """Yield like protected words with their places in the translation.

    Where it has the word as often as the source, each is at its place among them; otherwise it is
    the nearest.
    """
    written = r"\s+".join(map(re.escape, copies[0][0].piece.text.split()))
    letters = r"\s+".join(map(re.escape, text.split()))  # in capitals ß is SS
    letters = f"(?:{written}|{letters})"
    whole = f"{BEGIN if SPACED.match(text) else ''}{letters}{END if SPACED.match(text[-1]) else ''}"
    copies = [(mark, (end - len(source[start:end].lstrip()), end)) for mark, (start, end) in copies]
    here = [match.start() for match in re.finditer(whole, source, re.IGNORECASE)]
    free = [match.span() for match in re.finditer(whole, target, re.IGNORECASE)]
    is_whole = all(start in here for _, (start, _) in copies)
    if not is_whole or (not free and (len(text) > 3 or not text.isalnum())):
        here = [match.start() for match in re.finditer(letters, source, re.IGNORECASE)]
        free = [match.span() for match in re.finditer(letters, target, re.IGNORECASE)]
    if len(here) == len(free):
        for mark, (start, _) in copies:
            if start in here:
                yield mark, free[here.index(start)]
        return
    scale = len(target) / max(1, len(source))
    for mark, (start, _) in copies:
        if free:
            place = min(free, key=lambda span: abs(span[0] - start * scale))
            free.remove(place)
            yield mark, place


def _tokens(text: str, words: Sequence[int], copies: Sequence[int]) -> list[Token]:
    """The words and signs of a text, none of them on both sides of a protected word."""
    found = []
    for start, end in itertools.pairwise([0, *sorted(copies), len(text)]):
        for match in TOKEN.finditer(text, start, end):
            is_word = match[0][0].isalnum() or match[0][0] == "_"
            found.append(Token(*match.span(), match[0].casefold(), words[match.start()], is_word))
    return found


class _Placing:
    """Gives each mark of a sentence its place in the translation."""

    def __init__(self, source: _Source, target: str, words: Sequence[int], links: Links) -> None:
        self.source = source
        self.target = target
        self.here = _tokens(source.text, source.words, [one.start for one, _ in source.copies])
        self.there = _tokens(target, words, self._copy_places())
        self._starts = [token.start for token in self.here]
        self._ends = [token.end for token in self.here]
        self._there_starts = [token.start for token in self.there]
        self._linked: defaultdict[int, set[int]] = defaultdict(set)
        for here, there in links:
            self._linked[here].add(there)
        self._of_word: defaultdict[int, list[int]] = defaultdict(list)  # target tokens
        for number, token in enumerate(self.there):
            self._of_word[token.word].append(number)
        self._mine: defaultdict[int, list[int]] = defaultdict(list)  # source tokens that are words
        for number, token in enumerate(self.here):
            if token.is_word:
                self._mine[token.word].append(number)
        self._same = _same_places(source.text, target)
        self._partner = {} if self._same else self._partners()
        self._known = [self._of_token(n, *token[:2]) for n, token in enumerate(self.here)]
        self._cues: list[Mark] = []
        self._cells: list[Span] = []  # the words of the translation, or parts of them

    def place(self) -> None:
        """Give each mark of the sentence its `target`."""
        marks = [mark for one in self.source.marks for mark in one.all()]
        self._cells = self._words_in_parts(marks)
        self._cues = [mark for mark in marks if mark.role is Role.CUE]
        self._place_breaks(sorted(self._cues + self.source.lines, key=lambda mark: mark.number))
        self._place(self.source.marks, (0, len(self.source.text)), (0, len(self.target)))
        for line in self.source.lines:
            if line.target:
                _level(self.source.marks, line.target[0]).append(line)

    # Words

    def _partners(self) -> dict[int, int]:
        """The same words and signs of both sides: source token -> target token."""
        partner: dict[int, int] = {}
        self._pair_those_as_often(partner, are_words=True)
        taken = set(partner.values())
        for step in (1, -1):
            for number in sorted(partner, reverse=step < 0):
                here, there = number + step, partner[number] + step
                while self._are_the_same(here, there) and not (here in partner or there in taken):
                    partner[here] = there
                    taken.add(there)
                    here, there = here + step, there + step
        self._pair_those_as_often(partner, are_words=False)
        return partner

    def _pair_those_as_often(self, partner: dict[int, int], are_words: bool) -> None:
        """Pair the tokens without a partner that both sides have as often."""
        sides: list[defaultdict[str, list[int]]] = []
        for tokens, taken in ((self.here, set(partner)), (self.there, set(partner.values()))):
            side = defaultdict(list)
            for number, token in enumerate(tokens):
                if token.is_word is are_words and number not in taken:
                    side[token.text].append(number)
            sides.append(side)
        for text, here in sides[0].items():
            there = sides[1].get(text, [])
            if len(here) == len(there):
                for one, other in zip(here, there, strict=True):
                    linked = self._linked.get(self.here[one].word)
                    if not linked or self.there[other].word in linked:
                        partner[one] = other

    def _are_the_same(self, here: int, there: int) -> bool:
        if not (0 <= here < len(self.here) and 0 <= there < len(self.there)):
            return False
        return self.here[here].text == self.there[there].text

    def _of_token(self, number: int, start: int, end: int) -> list[Span]:
        """The stretches of the translation that say a token, or its part from start to end."""
        token = self.here[number]
        if number in self._partner:
            other = self.there[self._partner[number]]
            left = min(other.start + start - token.start, other.end)
            return [(left, max(left, other.end - (token.end - end)))]
        linked = sorted(self._linked.get(token.word, ()))
        there = [n for word in linked for n in self._of_word.get(word, ())]
        if not token.is_word:
            there = [n for n in there if self.there[n].text == token.text]
        else:
            there = [n for n in there if self.there[n].is_word]
            mine = self._mine[token.word]
            if len(there) == len(mine):
                there = [there[mine.index(number)]]
            elif len(there) > 4 and re.match(f"[{NO_SPACES}]", self.there[there[0]].text):
                there = [there[number * len(there) // len(self.here)]]
        return [self.there[n][:2] for n in there]

    def _tokens_of(self, start: int, end: int) -> range:
        """The numbers of the source tokens of which a stretch has a part."""
        return range(bisect_right(self._ends, start), bisect_left(self._starts, end))

    def _known_stretch(self, start: int, end: int) -> Span | None:
        """The stretch of the translation that says a stretch of the source, by rules 3 and 4."""
        found: list[Span] = []
        tokens = self._tokens_of(start, end)
        for number in tokens:
            token = self.here[number]
            if start <= token.start and token.end <= end:
                found += self._known[number]
            else:
                found += self._of_token(number, max(start, token.start), min(end, token.end))
        return self._densest(sorted(found), len(tokens)) if found else None

    def _densest(self, spans: Sequence[Span], width: int) -> Span:
        """The longest run of stretches with at most `width` + 1 tokens between two of them."""
        runs = [[spans[0]]]
        for span in spans[1:]:
            between = bisect_left(self._there_starts, span[0]) - bisect_left(
                self._there_starts, runs[-1][-1][0]
            )
            if between > width + 1:
                runs.append([])
            runs[-1].append(span)
        longest = max(runs, key=len)
        return longest[0][0], max(end for _, end in longest)

    def _share(self, start: int, end: int, area: Span) -> Span:
        """The tokens at the same share of the words between those that are known: rule 5."""
        tokens = self._tokens_of(start, end)
        left, right = (0, area[0]), (len(self.source.text), area[1])
        for number in range(tokens.start - 1, -1, -1):
            if self._known[number]:
                left = self.here[number].end, self._known[number][-1][1]
                break
        for number in range(tokens.stop, len(self.here)):
            if self._known[number]:
                right = self.here[number].start, self._known[number][0][0]
                break
        if not area[0] <= left[1] < right[1] <= area[1]:
            left, right = (0, area[0]), (len(self.source.text), area[1])
        scale = (right[1] - left[1]) / max(1, right[0] - left[0])
        first, last = (left[1] + (place - left[0]) * scale for place in (start, end))
        needs_word = any(self.here[number].is_word for number in tokens)
        free = [
            token
            for token in self.there
            if area[0] <= token.start and token.end <= area[1] and token.is_word >= needs_word
        ]
        inside = [token for token in free if first <= (token.start + token.end) / 2 < last]
        if not inside and tokens and free:
            middle = (first + last) / 2
            inside = [min(free, key=lambda token: abs((token.start + token.end) / 2 - middle))]
        if not inside:
            place = round(min(max(first, area[0]), area[1]))
            return self._word_end(place, area), self._word_end(place, area)
        return inside[0].start, inside[-1].end

    def _word_end(self, place: float, area: Span) -> int:
        """The end of a word that is nearest to a place."""
        ends = [token.end for token in self.there if token.is_word]
        ends = [end for end in ends if area[0] <= end <= area[1]]
        return min(ends, key=lambda end: abs(end - place), default=area[0])

    # Elements

    def _words_in_parts(self, marks: Sequence[Mark]) -> list[Span]:
        """The words of the translation, cut where an element begins or ends within one."""
        cuts: defaultdict[int, set[int]] = defaultdict(set)
        for mark in marks:
            for place in (mark.start, mark.end):
                for number in self._tokens_of(place - 1, place + 1):
                    token = self.here[number]
                    if token.start < place < token.end and number in self._partner:
                        cuts[self._partner[number]].add(
                            self._of_token(number, place, token.end)[0][0]
                        )
        cells = []
        for number, token in enumerate(self.there):
            if token.is_word:
                places = [token.start, *sorted(cuts[number] - {token.start, token.end}), token.end]
                cells += list(itertools.pairwise(places))
        return cells

    def _place(self, marks: Sequence[Mark], inside: Span, area: Span) -> None:
        """Place marks that are side by side, and those in them.

        Args:
            marks: The marks.
            inside: The stretch of the source that they are in.
            area: The stretch of the translation that they are in.
        """
        elements = [mark for mark in marks if mark.role is Role.OPEN and mark.start < mark.end]
        if self._same:
            for mark in elements:
                mark.target = self._same[mark.start], self._same[mark.end]
        else:
            wanted = [self._wanted(mark, marks, inside, area) for mark in elements]
            self._share_out(elements, wanted, area)
            for mark in elements:
                self._leave_out(mark, marks)
        for mark in marks:
            if mark.role is Role.OPEN and mark.start == mark.end:
                copies = [one.target for one in mark.all() if one.role is Role.COPY and one.target]
                mark.target = copies[0] if copies else None
            if mark.target is None and mark.role is not Role.CUE:
                place = self._point(mark, inside, area)
                mark.target = place, place
            if mark.target is not None:
                left, right = (min(max(place, area[0]), area[1]) for place in mark.target)
                mark.target = left, right
            if mark.inside and mark.target:
                self._place(mark.inside, (mark.start, mark.end), mark.target)

    def _wanted(self, mark: Mark, marks: Sequence[Mark], inside: Span, area: Span) -> Span:
        """The stretch of the translation that an element would have by itself."""
        low, high = area
        start, end = inside
        for cue in self._cues:
            if cue.target and cue.end <= mark.start and cue.number < mark.number:
                low, start = max(low, cue.target[1]), max(start, cue.end)
            elif cue.target and cue.number > mark.last:
                high, end = min(high, cue.target[0]), min(end, cue.start)
        text = self.source.text
        others = [one for one in marks if one.role is Role.COPY and start <= one.start <= end]
        if not others and not (text[start : mark.start] + text[mark.end : end]).strip():
            return low, max(low, high)
        copies = [one.target for one in mark.all() if one.role is Role.COPY and one.target]
        found = self._known_stretch(mark.start, mark.end)
        spans = [*copies, *([found] if found else [])]
        if not spans:
            spans = [self._share(mark.start, mark.end, (low, max(low, high)))]
        left = min(max(min(span[0] for span in spans), low), high)
        return left, max(left, min(max(span[1] for span in spans), high))

    def _share_out(self, elements: Sequence[Mark], wanted: Sequence[Span], area: Span) -> None:
        """Give each element its words, and none to two of them: rule 6."""
        order = sorted(zip(wanted, elements, strict=True), key=lambda one: (one[0], one[1].number))
        needs = [self._need(mark) for _, mark in order]
        done = area[0]
        for number, ((left, right), mark) in enumerate(order):
            limit = self._leaving(sum(needs[number + 1 :]), area)
            left = max(done, min(left, self._leaving(needs[number], (area[0], limit))))
            if needs[number]:
                left += len(self.target[left : area[1]]) - len(self.target[left : area[1]].lstrip())
            enough = self._holding(needs[number], left, area[1])
            right = max(left, enough, min(right, limit))
            following = order[number + 1][0][0] if number + 1 < len(order) else right
            if left < following < right:
                right = max(enough, len(self.target[:following].rstrip()))
            mark.target = left, right
            done = right

    def _need(self, mark: Mark) -> int:
        """The number of words that an element must have for each in it to have one."""
        own = any(self.here[number].is_word for number in self._tokens_of(mark.start, mark.end))
        return max(int(own), sum(self._need(one) for one in mark.inside if one.role is Role.OPEN))

    def _leaving(self, count: int, area: Span) -> int:
        """The last place in an area with `count` words behind it, or its beginning."""
        cells = [cell for cell in self._cells if area[0] <= cell[0] and cell[1] <= area[1]]
        if count == 0:
            return area[1]
        return cells[-count][0] if count <= len(cells) else area[0]

    def _holding(self, count: int, start: int, end: int) -> int:
        """The first place with `count` words between it and `start`, or the last word's end."""
        cells = [cell for cell in self._cells if start <= cell[0] and cell[1] <= end]
        return cells[min(count, len(cells)) - 1][1] if count and cells else start

    def _leave_out(self, mark: Mark, marks: Sequence[Mark]) -> None:
        """Take out of an element's stretch the protected words beside it."""
        left, right = mark.target or (0, 0)
        for other in marks:
            if other.role is Role.COPY and other.target and left < other.target[0] < right:
                place = other.target[0]
                before = len(self.target[:place].rstrip())
                behind = len(self.target) - len(self.target[place:].lstrip())
                if self._holding(1, left, before) > left:
                    right = max(left, before)
                else:
                    left = min(behind, right)
        mark.target = left, right

    # Places without words

    def _point(self, mark: Mark, inside: Span, area: Span) -> int:
        """The place of an image, a comment, or a protected word that the translation lost."""
        if self._same:
            return self._same[mark.start]
        text = self.source.text
        place = mark.start
        if not text[inside[0] : place].strip() and mark.before != COPY_MARK:
            return area[0]
        is_beside = mark.role is Role.POINT and mark.before[-1:].isalnum()
        if not text[place : inside[1]].strip() and mark.behind != COPY_MARK and not is_beside:
            return area[1]
        if mark.role is Role.COPY:
            there = [n for word in self._linked[mark.word] for n in self._of_word[word]]
            words = sorted(self.there[n][:2] for n in there if self.there[n].is_word)
            if words:
                return self._densest(words, 1)[1]
        elif text[place - 1 : place].strip() and mark.piece.name != UNCLOSED:
            if found := self._known_stretch(place - 1, place):
                within = self._tokens_of(place - 1, place + 1)
                number = self._tokens_of(place - 1, place)[0]
                is_within = len(within) == 1 and self.here[number].end > place
                if not is_within or number in self._partner:
                    return found[1]
                return self._known[number][-1][1] if self._known[number] else found[1]
        elif text[place : place + 1].strip() and (found := self._known_stretch(place, place + 1)):
            token = self.here[self._tokens_of(place, place + 1)[0]]
            whole = self._known_stretch(token.start, token.end) or found
            return whole[0]
        return self._word_end(self._share(place, place, area)[0], area)

    # Lines and cues

    def _place_breaks(self, breaks: Sequence[Mark]) -> None:
        """Break the translation where about the same share is read: rule 8."""
        if self._same:
            for mark in breaks:
                mark.target = self._same[mark.start], self._same[mark.end]
            return
        ends = sorted([*(end for _, end in self._cells), *self._copy_places()])
        places = [place for place in range(1, len(self.target)) if self._may_break(place)]
        scale = len(self.target) / max(1, len(self.source.text))
        done = 0
        for number, mark in enumerate(breaks):
            left = len(breaks) - number  # parts behind it
            first = bisect_right(ends, done)
            free = [
                place
                for place in places
                if place > done
                and bisect_right(ends, place) > first
                and len(ends) - bisect_right(ends, place) >= min(left, len(ends) - first - 1)
                and bisect_right(ends, place) < len(ends)
            ]
            share = mark.start * scale
            place = min(free, key=lambda place: abs(place - share), default=None)
            if place is None and mark.piece.name == "cue":
                place = len(self.target)
            if place is not None:
                behind = len(self.target) - len(self.target[place:].lstrip(" "))
                mark.target = place, behind
                done = place

    def _copy_places(self) -> list[int]:
        return [mark.target[0] for mark, _ in self.source.copies if mark.target]

    def _may_break(self, place: int) -> bool:
        """Whether a line may end at a place of the translation."""
        before, behind = self.target[:place], self.target[place:]
        if behind[0] == " ":
            return not BLOCK_START.match(behind.lstrip())
        if before[-1] == " " or behind.startswith(CLOSING) or before.endswith(OPENING):
            return False
        is_end = place in self._there_starts
        return is_end and re.search(f"[{NO_SPACES}]", before[-1] + behind[0]) is not None


def _level(marks: list[Mark], place: int) -> list[Mark]:
    """The marks side by side among which a place of the translation is."""
    for mark in marks:
        if mark.role is Role.OPEN and mark.target and mark.target[0] < place < mark.target[1]:
            return _level(mark.inside, place)
    return marks


def _same_places(source: str, target: str) -> list[int]:
    """The place in a translation of each of its sentence; none if more than case differs."""
    folded = "".join(map(str.casefold, source))
    if folded != "".join(map(str.casefold, target)):
        return []
    places: list[int] = []
    for number, character in enumerate(target):
        places += [number] * len(character.casefold())
    places.append(len(target))
    found = []
    done = 0
    for character in source:
        found.append(places[done])
        done += len(character.casefold())
    return [*found, len(target)]


# --- Writing ------------------------------------------------------------------------------------


class _Written(NamedTuple):
    """A part of a translation with its markup.

    Attributes:
        raw: The characters of the document.
        role: The part that it plays.
        text: The characters that a reader sees.
        mark: Of anything but text, its mark.
    """

    raw: str
    role: Role = Role.TEXT
    text: str = ""
    mark: Mark | None = None


def _written(
    marks: Sequence[Mark], target: str, area: Span, spelling: Mapping[str, str]
) -> Iterator[_Written]:
    """Yield a stretch of the translation with its marks."""
    placed = [(mark.target, mark) for mark in marks if mark.target]
    placed.sort(key=lambda one: (one[0][0], not _is_behind_word(one[1]), one[1].number))
    done, end = area
    for (left, right), mark in placed:
        left = min(max(left, done), end)
        right = min(max(right, left), end)
        if text := target[done:left]:
            yield _Written(_spelled(text, spelling), Role.TEXT, text)
        yield _Written(mark.piece.raw, mark.role, mark.piece.text, mark)
        if mark.role is Role.OPEN:
            yield from _written(mark.inside, target, (left, right), spelling)
            yield _Written(mark.closing, Role.CLOSE)
        done = right
    if text := target[done:end]:
        yield _Written(_spelled(text, spelling), Role.TEXT, text)


def _is_behind_word(mark: Mark) -> bool:
    """Whether a mark without words belongs to the word that ends before it."""
    is_beside = mark.before.strip() not in ("", COPY_MARK)
    is_point = mark.role in (Role.POINT, Role.CLOSE)  # an end tag alone is one
    return is_point and is_beside and mark.piece.name != UNCLOSED


def _with_spaces(written: Iterator[_Written]) -> Iterator[str]:
    """Yield what is written, with a space where the sentence has one and a copy or point needs it.

    It is behind the end tags and before the start tags between the two.
    """
    before: _Written | None = None
    between: list[_Written] = []
    for part in written:
        if part.role in (Role.OPEN, Role.CLOSE):
            between.append(part)
            continue
        ends = 0
        while ends < len(between) and between[ends].role is Role.CLOSE:
            ends += 1
        yield from (one.raw for one in between[:ends])
        if before is not None and _lacks_space(before, part):
            yield " "
        yield from (one.raw for one in between[ends:])
        yield part.raw
        before = part
        between = []
    yield from (one.raw for one in between)


def _lacks_space(left: _Written, right: _Written) -> bool:
    if left.text[-1:].isspace() or right.text[:1].isspace():
        return False
    if left.role in (Role.LINE, Role.CUE) or right.role in (Role.LINE, Role.CUE):
        return False
    if right.role is Role.POINT and right.mark and right.mark.before.isspace():
        return True
    if left.role is Role.POINT and left.mark and left.mark.behind.isspace():
        return not right.text.startswith(CLOSING)
    if not (_needs_space(left, -1) and _needs_space(right, 0)):
        return False
    is_apart_left = left.role is Role.COPY and left.mark and _is_apart(left.mark.behind)
    is_apart_right = right.role is Role.COPY and right.mark and _is_apart(right.mark.before)
    return bool(is_apart_left or is_apart_right)


def _needs_space(part: _Written, place: int) -> bool:
    """Whether words of this kind have spaces between them."""
    character = part.text[place] if part.text else ""
    if re.match(f"[{UNSPACED}]", character):
        return False
    return part.role is Role.COPY or character.isalnum()


def _is_apart(neighbour: str) -> bool:
    """Whether a protected word is glued to nothing, by the character beside it."""
    return neighbour != COPY_MARK and not GLUE.match(neighbour)
