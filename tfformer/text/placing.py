"""Place the markup of a sentence in its translation.

A protected word counts as one word. The following rules connect each word of the sentence to words
of the translation, and then place tags, images and line breaks beside the connected words. The
first rule that applies decides:

   >>> from tfformer.text import translate_text
   >>> def place(source, translation, links=()):
   ...     return translate_text(
   ...         source, lambda _: [translation], "html", align=lambda *_: [links]
   ...     )

1. If the translation equals the sentence, it is written as in the document. If it differs only in
case, every tag keeps its position.

   >>> place("un<b>believ</b>able", "UNBELIEVABLE")
   'UN<b>BELIEV</b>ABLE'

2. A protected word is found in the translation regardless of case. If the translation lacks it, it
is inserted behind the translation of the word before it. At the end of a sentence, it is inserted
before the final punctuation.

   >>> place("See <code>ls</code> now.", "Jetzt ls ansehen.")
   'Jetzt <code>ls</code> ansehen.'
   >>> place("See <code>ls</code>", "Jetzt ansehen.")
   'Jetzt ansehen <code>ls</code>.'

3. A word is connected to the words that the model's alignment links it to.

   >>> place("say <b>go</b> now", "jetzt sag geh", [(0, 1), (1, 2), (2, 0)])
   'jetzt sag <b>geh</b>'

4. A word that has no link is connected to the same word in the translation. A word that occurs
several times must occur as often in the translation; the first is then connected to the first, the
second to the second. Signs follow the same rule. 12,500 and 12.500 are the same word.

   >>> place("Is <b>Anna</b> here?", "Ist die Anna da?")
   'Ist die <b>Anna</b> da?'

5. Any other word is connected to the words at the same relative position between the words that
rules 2 to 4 have connected.

   >>> place("The <b>dog</b> sleeps.", "Der Hund schläft.")
   'Der <b>Hund</b> schläft.'

6. An element surrounds the words that its words are connected to. No two elements share a word.
Each element that contains words in the sentence gets at least one word, if there are enough.

   >>> place("<i>I</i> <b>love</b><u>you</u> all", "Ich liebe euch")
   '<i>Ich</i> <b>liebe</b> <u>euch</u>'

7. An image, a comment or a footnote follows the word that it touches, or else the word before it.

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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import NamedTuple

from tfformer.text.marked_sentence import EMPHASIS, MarkedSentence, Role, raw_text
from tfformer.text.protected_words import BEGIN, END, NO_SPACES, UNSPACED
from tfformer.text.protected_words import LETTER as SPACED_LETTER
from tfformer.text.segmentation import Span

MAX_DEPTH = 100  # nested tags that are kept as pairs; deeper tags are points
MARKS = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
LETTER = rf"(?:[^\W{NO_SPACES}][{MARKS}]*)"
# A word, a character of a script without spaces, or a sign. "Don't", "E-Mail", "3.50" are words.
TOKEN = re.compile(
    rf"{LETTER}+(?:(?:['’\u2010\u2011-]|(?<=\d)[.,:/](?=\d))(?={LETTER}){LETTER}+)*"
    rf"|\S[{MARKS}]*(?:(?<=[\u1039\u17d2])\S[{MARKS}]*)*"  # stacked consonants of Burmese and Khmer
)
SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")  # in numbers; languages use different separators
CLAUSE = 4  # a longer "word" between spaces is a clause of a script without spaces
GLUE = re.compile(rf"(?![{UNSPACED}])[\w'’/\u2010\u2011-]")  # attaches a word to the copy beside it
FINAL = " .!?…。！？"  # signs at the end of a sentence
CLOSING = tuple(".,;:!?)]}…»”’%、。，；：！？）」』】")
CLOSING_WORD = re.compile(rf"[{re.escape(''.join(CLOSING))}]+(?!\w)")  # as in French: Quoi ?
# These begin a block of Markdown or another speaker's line, so no line may begin with them.
BLOCK_START = re.compile(r"[-+*>#=|:~–—]|\d+[.)]")
SPACES = " \x1f"
INSERTED = SPACES[1]  # a space that is not in the translation, so links do not count it
PRIVATE = range(0xF0000, 0x10FFFE)  # characters that represent protected words

Links = Sequence[tuple[int, int]]  # (source word, target word), numbers of the words between spaces


@dataclass
class Mark:
    """Markup of a sentence: a node of a tree. A mark without an end tag is a point."""

    raw: str  # for an element, the start tag
    role: Role
    name: str
    number: int  # of its first piece in the sentence
    start: int
    end: int  # for a point, equal to `start`
    closing: str | None = None  # the end tag
    inside: list[Mark] = field(default_factory=list)
    before: str = ""  # the character before a point; empty if another point is there
    behind: str = ""
    target: Span = (0, 0)  # in the translation


class Copy(NamedTuple):
    """A protected word."""

    raw: str
    text: str  # what the model receives
    start: int  # in the sentence that the model receives
    end: int


@dataclass
class Token:
    """A word or a sign, or the part of a word in which an element begins or ends."""

    start: int
    end: int
    text: str  # case-folded, and for a number only the digits
    word: int  # the number of the word between spaces; -1 for a protected word
    is_word: bool
    spans: Sequence[Span] = ()  # in the translation, by rules 2 to 4

    @property
    def is_plain(self) -> bool:
        """Whether it is a word that is not protected."""
        return self.is_word and self.word >= 0


def with_marks(sentence: MarkedSentence, translation: str, links: Links | None = None) -> str:
    """Return a translation that contains each tag of its sentence once, properly nested.

    `links` are the pairs of source words and target words, if they are known.
    """
    if translation == sentence.text:
        return raw_text(sentence.pieces)
    if sentence.is_text:
        return "".join(sentence.written(translation))
    source = _Source(sentence, translation)
    text = _with_copies(translation, source)
    lost = source.copies.keys() - set(text)
    if lost:
        text = _with_lost_copies(text, _Pairs(source, text, links or (), lost), lost)
    text = _with_spaces(text, source)
    if source.text.casefold() == text.casefold():
        places = _same_places(source.text, text)
        for mark in (*_all([source.whole]), *source.breaks):
            mark.target = places[mark.start], places[mark.end]
    else:
        _Placing(source, _Pairs(source, text, links or (), lost)).place()
    for mark in source.breaks:
        _level(source.whole, mark.target[0]).append(mark)
    written = sentence.written(text.replace(INSERTED, " "))
    for name, copy in source.copies.items():
        # A lone "<" may get a neighbour.
        written[text.index(name)] = sentence.escapes.get(copy.raw, copy.raw)
    return "".join(_written(source.whole, written, (0, len(text))))


# --- The sentence -------------------------------------------------------------------------------


class _Source:
    """A sentence as a tree of marks and a text in which each protected word is one character."""

    def __init__(self, sentence: MarkedSentence, translation: str) -> None:
        self.heard = sentence.text
        self.text = ""
        self.copies: dict[str, Copy] = {}  # by their characters in the text
        self.breaks: list[Mark] = []  # the ends of lines and cues, which are in no other mark
        self.whole = Mark("", Role.OPEN, "", -1, 0, 0)  # contains all other marks
        self._pieces = list(sentence.shown())
        self._open = [self.whole]  # outermost first
        self._read(name for name in map(chr, PRIVATE) if name not in self.heard + translation)
        while len(self._open) > 1:
            self._leave_unclosed()
        self._set_neighbours()
        self.whole.end = len(self.text)

    def _read(self, names: Iterator[str]) -> None:
        heard = 0
        for number, (piece, text) in enumerate(self._pieces):
            if piece.role is Role.COPY and text.strip():
                name = next(names)
                self.copies[name] = Copy(piece.raw, text, heard, heard + len(text))
                self.text += name
            else:
                start = len(self.text)
                self.text += text
                if piece.role is not Role.TEXT:
                    self._add(
                        Mark(piece.raw, piece.role, piece.name, number, start, len(self.text))
                    )
            heard += len(text)

    def _add(self, mark: Mark) -> None:
        """Add a mark to the tree. A tag without its counterpart is a point."""
        if mark.role in (Role.LINE, Role.CUE):
            self.breaks.append(mark)
        elif mark.role is Role.CLOSE and any(one.name == mark.name for one in self._open[1:]):
            while self._open[-1].name != mark.name:
                self._leave_unclosed()
            self._close(mark)
        else:
            self._open[-1].inside.append(mark)
            if mark.role is Role.OPEN and len(self._open) <= MAX_DEPTH:
                self._open.append(mark)

    def _close(self, end: Mark) -> None:
        """Complete the last element; an element without characters is a point."""
        mark = self._open.pop()
        pieces = [piece for piece, _ in self._pieces[mark.number : end.number + 1]]
        if mark.start == end.start:
            mark.raw, mark.role, mark.inside = raw_text(pieces), Role.POINT, []
        else:
            mark.end, mark.closing = end.start, pieces[-1].reworded or end.raw

    def _leave_unclosed(self) -> None:
        """Make the contents of a tag without an end tag belong to the mark around it."""
        mark = self._open.pop()
        self._open[-1].inside += mark.inside
        mark.inside = []

    def _set_neighbours(self) -> None:
        """Tell each point which characters are beside it."""
        points = {mark.number: mark for mark in _all(self.whole.inside) if mark.closing is None}
        before = behind = ""
        for number, (_, text) in enumerate(self._pieces):
            if number in points:
                points[number].before, before = before, ""
            before = text[-1:] or before
        for number, (piece, _) in reversed(list(enumerate(self._pieces))):
            if number in points and piece.role is not Role.CLOSE:
                points[number].behind, behind = behind, ""
            behind = piece.text[:1] or behind


def _all(marks: Iterable[Mark]) -> Iterator[Mark]:
    for mark in marks:
        yield mark
        yield from _all(mark.inside)


# --- Protected words ----------------------------------------------------------------------------


def _with_copies(translation: str, source: _Source) -> str:
    """Return a translation in which each protected word that it contains is one character.

    If the translation contains a word as often as the sentence, occurrences are paired in order,
    otherwise by distance.
    """
    names: dict[Span, str] = {}
    here, there = (_occurrences(source, text) for text in (source.heard, translation))
    scale = len(translation) / max(1, len(source.heard))
    is_same = (
        len(translation) == len(source.heard) and translation.casefold() == source.heard.casefold()
    )
    for name, copy in source.copies.items():
        span = copy.start, copy.end
        spans, others = here[_key(copy.text)], there[_key(copy.text)]
        free = [span for span in others if span not in names]
        if is_same:  # rule 1
            names[span] = name
        elif len(spans) == len(others) and span in spans:
            names[others[spans.index(span)]] = name
        elif free:
            names[min(free, key=lambda span: abs(span[0] - copy.start * scale))] = name
    parts = []
    done = 0
    for start, end in sorted(names):
        parts += [translation[done:start], names[start, end]]
        done = end
    return "".join([*parts, translation[done:]])


def _occurrences(source: _Source, text: str) -> defaultdict[str, list[Span]]:
    """The positions of each protected word of a sentence in a text."""
    copies = sorted(source.copies.values(), key=lambda copy: len(copy.text), reverse=True)
    patterns = dict.fromkeys(_pattern(copy, source.heard) for copy in copies)
    spans = defaultdict(list)
    for match in re.finditer("|".join(patterns), text):
        spans[_key(match[0])].append(match.span())
    return spans


def _pattern(copy: Copy, heard: str) -> str:
    """Match a protected word, but glued to a letter only if the sentence has that letter there.

    Python takes long to compile large sets of characters that ignore case, so only words do.
    """
    spellings = (copy.text.split(), copy.text.casefold().split())  # ß is SS in capitals
    pattern = "|".join(r"\s+".join(map(re.escape, words)) for words in spellings)
    space = r"\s?" if copy.text != copy.text.strip() else ""
    before, behind = (re.escape(f" {heard} "[n]) for n in (copy.start, copy.end + 1))
    begin = rf"(?:(?!{SPACED_LETTER})|{BEGIN}|(?<=(?i:{before})))"
    end = rf"(?:(?<!{SPACED_LETTER})|{END}|(?=(?i:{behind})))"
    return f"{begin}{space}(?i:{pattern}){space}{end}"


def _key(text: str) -> str:
    return " ".join(text.casefold().split())


def _with_lost_copies(target: str, pairs: _Pairs, lost: Set[str]) -> str:
    """Insert each protected word that the translation lacks behind a word."""
    inserted: defaultdict[int, str] = defaultdict(str)
    for offset, name in enumerate(pairs.source):
        if name in lost:
            is_last = not set(pairs.source[offset:]) - lost - set(FINAL)
            end = len(target.rstrip(FINAL)) if is_last else pairs.after(offset)
            inserted[end] += name
    return "".join(inserted[end] + target[end : end + 1] for end in range(len(target) + 1))


def _with_spaces(text: str, source: _Source) -> str:
    """Separate words from protected words where the sentence does."""
    parts = [text[:1]]
    for left, right in itertools.pairwise(text):
        if _lacks_space(left, right, source):
            parts.append(INSERTED)
        parts.append(right)
    return "".join(parts)


def _lacks_space(left: str, right: str, source: _Source) -> bool:
    """Whether a protected word touches a word that it does not touch in the sentence."""
    copies = source.copies
    if left not in copies and right not in copies:
        return False
    if not all(one in copies or one.isalnum() for one in (left, right)):
        return False
    last = copies[left].text[-1] if left in copies else left
    first = copies[right].text[0] if right in copies else right
    if re.search(rf"[\s{UNSPACED}]", last + first):
        return False
    around = f" {source.text} "
    is_before = right not in copies
    neighbour = around[around.index(left) + 1 if is_before else around.index(right) - 1]
    is_glued = GLUE.match(neighbour) and not {left, right} <= copies.keys()
    return neighbour not in (left, right) and not is_glued


# --- Words --------------------------------------------------------------------------------------


class _Pairs:
    """The words of a sentence, connected to spans of the translation."""

    def __init__(self, source: _Source, target: str, links: Links, lost: Set[str]) -> None:
        self.source = source.text
        self.target = target
        self.there = list(_tokens(target, source.copies, lost))
        self._words = [token for token in self.there if token.is_word]
        self.here = list(self._connected(source, links))
        bounds = sorted({offset for token in self.here for span in token.spans for offset in span})
        self.words = [part for token in self._words for part in _cut(token, bounds)]
        self._knots = [(0, 0)]  # offsets in the sentence and in the translation
        for token in self.here:
            for span in token.spans[:1]:
                self._knots.append((token.start, span[0]))
            for span in token.spans[-1:]:
                self._knots.append((token.end, span[1]))
        self._knots.append((len(self.source), len(self.target)))

    def _connected(self, source: _Source, links: Links) -> Iterator[Token]:
        """Yield the words of the sentence; paired words are cut where marks begin or end."""
        marks = list(_all([source.whole]))
        cuts = sorted({offset for mark in marks for offset in (mark.start, mark.end)})
        here = list(_tokens(source.text, source.copies))
        linked = _linked(here, self.there, links)
        others = _by_text(self.there)
        partners: dict[int, Token] = {}
        for text, tokens in _by_text(here).items():
            if len(tokens) == len(others[text]):
                partners |= zip((token.start for token in tokens), others[text], strict=True)
        for token in here:
            words = linked[token.word]
            other = partners.get(token.start)
            if other and (other.word in words or not words):
                spelling = self.target[other.start : other.end]
                places = _same_places(self.source[token.start : token.end], spelling)
                for start, end in _cut(token, cuts):
                    left, right = (other.start + places[one - token.start] for one in (start, end))
                    yield replace(token, start=start, end=end, spans=[(left, right)])
            else:
                token.spans = [
                    (one.start, one.end)
                    for one in (self.there if words else ())
                    if one.word in words
                    and (one.is_word if token.is_word else one.text == token.text)
                ]
                yield token

    def tokens_of(self, start: int, end: int) -> list[Token]:
        """The words and signs of the sentence that a span contains fully or partly."""
        first = bisect_right(self.here, start, key=_end)
        return self.here[first : bisect_left(self.here, end, key=_start)]

    def stretch(self, start: int, end: int) -> Span:
        """The span of the translation that corresponds to a span of the sentence."""
        tokens = self.tokens_of(start, end)
        if not tokens or not self.there:
            offset = self.after(start)
            return offset, offset
        words = [token for token in tokens if token.is_plain]
        spans = [span for token in tokens for span in token.spans]
        if not spans or (words and not any(token.spans for token in words)):
            for token in words or tokens:
                spans += self._at_share(token)
        return self._densest(sorted(spans), len(tokens))

    def _at_share(self, token: Token) -> list[Span]:
        """The target tokens at the same relative position between the known tokens: rule 5."""
        left, right = self._share(token.start), self._share(token.end)
        tokens = (token.is_word and self._words) or self.there
        first = bisect_left(tokens, left, key=_centre)
        last = bisect_left(tokens, right, key=_centre)
        if first < last:
            return [(one.start, one.end) for one in tokens[first:last]]
        nearest = tokens[max(0, first - 1) : first + 1]
        one = min(nearest, key=lambda one: abs(_centre(one) - (left + right) / 2))
        return [(one.start, one.end)]

    def _share(self, offset: int) -> float:
        """The position in the translation at the same relative position between known tokens."""
        number = max(1, bisect_left(self._knots, offset, key=itemgetter(0)))
        left, right = self._knots[number - 1 : number + 1]
        if left[1] >= right[1]:
            left, right = self._knots[0], self._knots[-1]
        return left[1] + (offset - left[0]) * (right[1] - left[1]) / max(1, right[0] - left[0])

    def _densest(self, spans: Sequence[Span], width: int) -> Span:
        """The longest run of spans in which neighbours begin at most `width` + 1 tokens apart."""
        numbers = [bisect_right(self.there, start, key=_start) for start, _ in spans]
        runs = [[spans[0]]]
        for (before, number), span in zip(itertools.pairwise(numbers), spans[1:], strict=True):
            if number - before > width + 1:
                runs.append([])
            runs[-1].append(span)
        longest = max(runs, key=len)
        return longest[0][0], max(end for _, end in longest)

    def after(self, offset: int) -> int:
        """The end of what the last word before a position, or a sign there, is connected to."""
        for token in reversed(self.tokens_of(0, offset)):
            is_known = token.spans and (token.is_word or token.end >= offset)
            if self.there and (token.is_plain or is_known):
                return self.stretch(token.start, min(token.end, offset))[1]
        return 0


_start = attrgetter("start")
_end = attrgetter("end")


def _centre(token: Token) -> float:
    return (token.start + token.end) / 2


def _tokens(text: str, copies: Mapping[str, Copy], lost: Set[str] = frozenset()) -> Iterator[Token]:
    """Yield the words and signs of a text. Links do not count what was inserted."""
    word = done = 0
    for match in TOKEN.finditer(text):
        word += done > 0 and text[done : match.start()] not in ("", INSERTED)
        done = match.end()
        first = match[0][0]
        if first in copies:
            yield Token(*match.span(), match[0], -1, is_word=True)
            word += len(copies[first].text.split()) - 1 if first not in lost else 0
        else:
            folded = SEPARATOR.sub("", match[0].casefold())
            yield Token(*match.span(), folded, word, first.isalnum() or first == "_")


def _linked(here: Sequence[Token], there: Sequence[Token], links: Links) -> dict[int, set[int]]:
    """The target words that each source word is linked to, except clauses."""
    sizes = [Counter(token.word for token in tokens if token.is_word) for tokens in (here, there)]
    linked = defaultdict(set)
    for word, other in links:
        if sizes[0][word] <= CLAUSE and sizes[1][other] <= CLAUSE:
            linked[word].add(other)
    return linked


def _by_text(tokens: Iterable[Token]) -> defaultdict[str, list[Token]]:
    groups = defaultdict(list)
    for token in tokens:
        groups[token.text].append(token)
    return groups


def _cut(token: Token, cuts: Sequence[int]) -> Iterator[Span]:
    """Yield the parts of a token between sorted positions."""
    inside = cuts[bisect_right(cuts, token.start) : bisect_left(cuts, token.end)]
    return itertools.pairwise([token.start, *inside, token.end])


def _same_places(source: str, target: str) -> list[int]:
    """The position of each source character, and of the end, in a text that differs in case."""
    lengths, others = ([len(one.casefold()) for one in text] for text in (source, target))
    done = list(itertools.accumulate(others, initial=0))
    ends = itertools.accumulate(lengths, initial=0)
    return [min(bisect_left(done, end), len(target)) for end in ends]


# --- Marks --------------------------------------------------------------------------------------


class _Placing:
    """Gives each mark of a sentence its position in the translation."""

    def __init__(self, source: _Source, pairs: _Pairs) -> None:
        self._source = source
        self._pairs = pairs
        self._target = pairs.target
        self._starts = {token.start for token in pairs.there}

    def place(self) -> None:
        """Give each mark its `target`."""
        self._place_breaks()
        self._place(self._source.whole, (0, len(self._target)))

    def _place(self, around: Mark, area: Span) -> None:
        """Place the marks in an element within an area of the translation."""
        elements = [mark for mark in around.inside if mark.closing is not None]
        self._share_out(elements, [self._wanted(one, around, area) for one in elements], area)
        for mark in around.inside:
            if mark.closing is None:
                offset = _within(self._point(mark, around, area), area)
                mark.target = offset, offset
            self._place(mark, mark.target)

    def _wanted(self, mark: Mark, around: Mark, area: Span) -> Span:
        """The span of the translation that an element would cover if it were alone."""
        low, high = area
        start, end = around.start, around.end
        for cue in self._source.breaks:
            if cue.role is Role.CUE and cue.end <= mark.start:
                low, start = max(low, cue.target[1]), max(start, cue.end)
            elif cue.role is Role.CUE and cue.start >= mark.end:
                high, end = min(high, cue.target[0]), min(end, cue.start)
        high = max(low, high)
        text = self._pairs.source
        if not (text[start : mark.start] + text[mark.end : end]).strip():
            return low, high
        left, right = self._pairs.stretch(mark.start, mark.end)
        return _within(left, (low, high)), _within(right, (low, high))

    def _share_out(self, elements: Sequence[Mark], wanted: Sequence[Span], area: Span) -> None:
        """Assign each element its words, and no word to two elements: rule 6."""
        order = sorted(zip(wanted, elements, strict=True), key=lambda one: (one[0], one[1].number))
        needs = [self._need(mark) for _, mark in order]
        done = area[0]
        for number, ((left, right), mark) in enumerate(order):
            limit = self._leaving(sum(needs[number + 1 :]), area)
            left = max(done, min(left, self._leaving(needs[number], (area[0], limit))))
            if needs[number]:
                left = area[1] - len(self._target[left : area[1]].lstrip())
            enough = self._holding(needs[number], left, area[1])
            right = max(left, enough, len(self._target[: min(right, limit)].rstrip()))
            mark.target = left, right
            done = right

    def _need(self, mark: Mark) -> int:
        """The number of words that an element needs so that each element in it gets a word."""
        if mark.closing is None:
            return 0  # a point within a word needs no word
        tokens = self._pairs.tokens_of(mark.start, mark.end)
        return max(any(token.is_word for token in tokens), sum(map(self._need, mark.inside)))

    def _leaving(self, count: int, area: Span) -> int:
        """The last position in an area with `count` words after it, or the beginning."""
        words = self._pairs.words
        number = bisect_right(words, area[1], key=itemgetter(1)) - count
        if count == 0:
            return area[1]
        return max(area[0], words[max(0, number)][0])

    def _holding(self, count: int, start: int, end: int) -> int:
        """The first position with `count` words between it and `start`, or the last word's end."""
        words = self._pairs.words
        first = bisect_left(words, start, key=itemgetter(0))
        last = min(first + count, bisect_right(words, end, key=itemgetter(1)))
        return words[last - 1][1] if first < last else start

    def _point(self, mark: Mark, around: Mark, area: Span) -> int:
        """The position of an image, a comment or a footnote: rule 7."""
        pairs = self._pairs
        offset = mark.start
        if not pairs.source[around.start : offset].strip():
            return area[0]
        if not pairs.source[offset : around.end].strip() and not mark.before.isalnum():
            return area[1]
        is_apart = not pairs.source[offset - 1].strip() or mark.role is Role.OPEN
        if is_apart and pairs.source[offset : offset + 1].strip():
            return pairs.stretch(offset, offset + 1)[0]
        return pairs.after(offset)

    def _place_breaks(self) -> None:
        """Break the translation at about the same relative positions: rule 8.

        In a translation with few words, line ends are dropped, but no cues.
        """
        ends = [end for _, end in self._pairs.words]
        fixed = [mark for mark in self._source.breaks if mark.name in ("cue", "br")]
        lines = [mark for mark in self._source.breaks if mark not in fixed]
        lines = lines[: max(0, len(ends) - 1 - len(fixed))]
        breaks = sorted([*fixed, *lines], key=lambda mark: mark.number)
        places = [offset for offset in range(1, len(self._target)) if self._may_break(offset)]
        scale = len(self._target) / max(1, len(self._pairs.source))
        self._source.breaks = []
        done = 0
        for number, mark in enumerate(breaks):
            first = bisect_right(ends, done)
            needed = max(1, min(len(breaks) - number, len(ends) - first - 1))  # words behind it
            free = [
                offset
                for offset in places
                if offset > done and first < bisect_right(ends, offset) <= len(ends) - needed
            ]
            if not free and mark in fixed:
                free = [len(self._target)]
            if free:
                done = min(free, key=lambda offset: abs(offset - mark.start * scale))
                behind = len(self._target) - len(self._target[done:].lstrip(SPACES))
                mark.target = done, behind
                self._source.breaks.append(mark)

    def _may_break(self, offset: int) -> bool:
        """Whether a line may end at a position of the translation."""
        before, behind = self._target[offset - 1], self._target[offset : offset + 10]
        if behind[0] in SPACES:
            words = behind.lstrip()
            return not (BLOCK_START.match(words) or CLOSING_WORD.match(words))
        if before in SPACES or behind.startswith(CLOSING):
            return False
        return offset in self._starts and bool(re.search(f"[{NO_SPACES}]", before + behind[0]))


def _within(offset: int, area: Span) -> int:
    return min(max(offset, area[0]), area[1])


def _level(around: Mark, offset: int) -> list[Mark]:
    """The sibling marks among which a position of the translation falls."""
    for mark in around.inside:
        if mark.closing is not None and mark.target[0] < offset < mark.target[1]:
            return _level(mark, offset)
    return around.inside


# --- Writing ------------------------------------------------------------------------------------


def _written(around: Mark, target: Sequence[str], area: Span) -> Iterator[str]:
    """Yield an area of the translation, whose characters are `target`, with its marks."""
    marks = sorted(
        around.inside, key=lambda mark: (mark.target[0], not _follows_word(mark), mark.number)
    )
    done, end = area
    for mark, following in itertools.zip_longest(marks, marks[1:]):
        left = _within(mark.target[0], (done, end))
        right = _within(mark.target[1], (left, end))
        yield from target[done:left]
        if mark.closing is not None:
            inside = "".join(_written(mark, target, (left, right)))
            if inside or not mark.name.startswith(EMPHASIS):
                yield mark.raw + inside + mark.closing
        else:
            behind = "".join(target[right : right + 1])
            if following and following.target[0] <= right:
                behind = following.raw + behind
            yield _with_spaces_around(mark, "".join(target[max(0, left - 1) : left]), behind)
        done = right
    yield from target[done:end]


def _follows_word(mark: Mark) -> bool:
    """Whether a mark without words belongs to the word that ends before it."""
    return mark.role in (Role.POINT, Role.CLOSE) and mark.before.strip() != ""


def _with_spaces_around(mark: Mark, before: str, behind: str) -> str:
    """A point with the spaces that surround it in the sentence."""
    left = " " if mark.before.isspace() and before and not before[-1].isspace() else ""
    is_apart = behind and not behind[0].isspace() and not behind.startswith(CLOSING)
    right = " " if mark.behind.isspace() and is_apart else ""
    return left + mark.raw + right
