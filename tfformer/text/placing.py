"""Place the markup of a sentence in its translation.

A protected word counts as one word. The first rule that applies decides. Rules 2 to 4 connect each
word of the sentence to words of the translation, rules 5 to 7 place the markup beside them:

   >>> from tfformer.text import TextTranslator
   >>> def place(source, translation, links=()):
   ...     translator = TextTranslator(lambda _: [translation], align=lambda *_: [links])
   ...     return translator.translate(source, "html")

1. If the translation equals the sentence, it is written as in the document. If it differs only in
case, every tag keeps its position.

   >>> place("un<b>believ</b>able", "UNBELIEVABLE")
   'UN<b>BELIEV</b>ABLE'

2. A word is connected to the words that the model's alignment links it to.

   >>> place("say <b>go</b> now", "jetzt sag geh", [(0, 1), (1, 2), (2, 0)])
   'jetzt sag <b>geh</b>'

3. A word that has no link is connected to the same word in the translation, regardless of case. A
word that occurs several times must occur as often in the translation; the first is then connected
to the first, the second to the second. Signs follow the same rule, but quotation marks only if
both texts contain the same sequence of them. 12,500 and 12.500 are the same word. A protected word
is always connected to the same word, if the translation contains it. Otherwise it is inserted
behind the translation of the word before it, but not inside a word or a file name. It is separated
from the words beside it, unless the sentence joins them.

   >>> place("Is <b>Anna</b> here?", "Ist die Anna da?")
   'Ist die <b>Anna</b> da?'
   >>> place("See <code>ls</code>/<code>man</code> now.", "Jetzt ansehen.", [(0, 1), (2, 0)])
   'Jetzt ansehen <code>ls</code> <code>man</code>.'

4. The remaining words between two connected words are connected to the remaining words between the
same two words of the translation, at the same relative position. If there are none, they are
connected to the remaining words of the whole translation in the same way.

   >>> place("The <b>dog</b> sleeps.", "Der Hund schläft.")
   'Der <b>Hund</b> schläft.'

5. An element surrounds the longest run of the words that its words are connected to. Two elements
share a word only if one contains the other. Each element that contains a letter or a digit in the
sentence, or a sign that the translation lacks, gets at least one word with a letter or a digit, if
there are enough. An element that begins in an earlier sentence, or ends in a later one, remains
properly nested.

   >>> place("<i>I</i> <b>love</b><u>you</u> all", "Ich liebe euch")
   '<i>Ich</i> <b>liebe</b> <u>euch</u>'

6. An image, a comment or a footnote follows the word before it. An image between spaces precedes
the word behind it.

   >>> place("The dog<sup>1</sup> sleeps.", "Es schläft der Hund.", [(0, 2), (1, 3), (2, 1)])
   'Es schläft der Hund<sup>1</sup>.'

7. Lines and cues break between words, at the same relative position, and not before a comma. Each
line and cue gets at least one word, and each element in a cue, if there are enough. An element
around a whole cue remains around it.
"""

from __future__ import annotations

import html
import itertools
import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

from tfformer.text.marked_sentence import EMPHASIS, MarkedSentence, Piece, Role, raw_text
from tfformer.text.protected_words import LETTER, NO_SPACES, UNSPACED
from tfformer.text.segmentation import NO_BEGINNING, Span, apart

MAX_DEPTH = 100  # nested tags that are kept as pairs; deeper tags are points
MARKS = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
WITH_MARKS = rf"(?:[^\W{NO_SPACES}][{MARKS}]*)"  # a letter with its accents
# A word, a character of a script without spaces, or a sign. "Don't", "E-Mail", "3.50" are words.
TOKEN = re.compile(
    rf"{WITH_MARKS}+(?:(?:['’\u2010\u2011-]|(?<=\d)[.,:/](?=\d)){WITH_MARKS}+)*"
    rf"|\S[{MARKS}]*(?:(?<=[\u1039\u17d2])\S[{MARKS}]*)*"  # stacked consonants of Burmese and Khmer
)
EDGE = re.compile(rf"(?<!{LETTER})|(?!{LETTER})")  # of a word, or between signs
# In numbers; languages use different separators.
THOUSANDS, DECIMAL = re.compile(r"(?<=\d)[.,](?=\d{3}(?!\d))"), re.compile(r"(?<=\d),(?=\d)")
QUOTES = "\"'“”„‟‘’‚«»‹›"  # one opens or closes, depending on the language
CLAUSE = 6  # a longer "word" between spaces is a clause of a script without spaces
CLOSING = ".,;:!?…)]}»«”“’\"'、。，；：！？）」』】"  # signs that follow a word, and no part of it
APART = re.compile(rf"[\s,;:.!?()…{UNSPACED}]")  # separates a word from the copy beside it
# No line begins with a closing sign, nor as a block of Markdown or another speaker's line does.
NO_LINE = re.compile(rf"{NO_BEGINNING.pattern}|[-+*>#=|~–—…\]}}»%]|\.(?!\w)|\d+[.)]")

TAG = re.compile("<[^<>]*>")
BREAKS = (Role.LINE, Role.CUE)
Links = Sequence[tuple[int, int]]  # (source word, target word), numbers of the words between spaces


@dataclass(eq=False)
class TextToken:
    """A word, a sign or a protected word, or the part of a word in which an element begins."""

    start: int
    end: int
    text: str  # case-folded, and numbers as in 12500.5
    word: int  # the number of the word between spaces
    is_word: bool
    copy: Piece | None = None  # for a protected word
    source: TextToken | None = None  # for a protected word in the translation
    targets: Sequence[int] = ()  # numbers of tokens of the translation, in order

    @property
    def is_plain(self) -> bool:
        """Whether it is a word that is not protected."""
        return self.is_word and self.copy is None

    @property
    def is_inserted(self) -> bool:
        """Whether it is a protected word that the translation lacks."""
        return self.copy is not None and self.start == self.end

    def divided(self, lengths: Iterable[int]) -> list[TextToken]:
        """Divide a token at distances from its beginning."""
        inside = [min(self.start + length, self.end) for length in lengths]
        bounds = itertools.pairwise([self.start, *inside, self.end])
        return [replace(self, start=start, end=end) for start, end in bounds]


@dataclass(eq=False)
class Mark:
    """Markup of a sentence: a node of a tree. A mark around no token is a point."""

    piece: Piece  # for an element, the start tag
    start: int  # in the sentence
    tokens: Span = (0, 0)  # the source tokens that it contains
    inside: Sequence[Mark] = ()
    end_tag: str = ""
    begins: bool = True  # in this sentence; otherwise the start tag is empty
    ends: bool = True
    need: int = 0  # the number of words that it needs so that each element in it gets a word
    follows_space: bool = False  # for a point
    precedes_space: bool = False


def with_marks(sentence: MarkedSentence, translation: str, links: Links | None = None) -> str:
    """Return a translation that contains each tag of its sentence once, properly nested.

    `links` are the pairs of source words and target words, if they are known.
    """
    text = sentence.text
    if translation == text:
        return raw_text(sentence.pieces)
    characters = sentence.written(translation)
    if sentence.is_text:
        return "".join(characters)
    if translation.casefold() == text.casefold():
        return "".join(_in_capitals(sentence, translation, characters))
    source, target = _connected(sentence, translation, links or ())
    strings = list(_spaced(sentence, source, target, characters))
    placing = _Placing(sentence, source, target, strings=strings)
    return "".join(placing.written(translation))


def needs_links(sentence: MarkedSentence, translation: str) -> bool:
    """Whether `with_marks` needs links: not for text, nor for protected words that are all there.

    Example:
        >>> sentence = MarkedSentence((Piece("Ask ", "Ask "), Piece("Bo", "Bo", Role.COPY)))
        >>> needs_links(sentence, "Frag Bo"), needs_links(sentence, "Frag ihn")
        (False, True)
    """
    copies = sentence.copies()
    marks = sum(piece.role is not Role.TEXT for piece in sentence.pieces)
    if len(copies) < marks:
        return True
    wanted, found = (
        sorted(text[start:end].casefold() for start, end in spans)
        for text, spans in (
            (sentence.text, copies),
            (translation, _occurrences(sentence.text, copies, translation)),
        )
    )
    return wanted != found


def _in_capitals(
    sentence: MarkedSentence, translation: str, characters: Sequence[str]
) -> Iterator[str]:
    """Yield the pieces of a sentence with the text of a translation that only differs in case."""
    ends = list(itertools.accumulate((len(one.casefold()) for one in translation), initial=0))
    end = 0
    for piece in sentence.pieces:
        start, end = end, end + len(piece.text.casefold())  # SS is the capital of one letter, ß
        if piece.role is Role.TEXT and piece.text.strip():
            yield from characters[bisect_left(ends, start) : bisect_left(ends, end)]
        else:
            yield piece.reworded or piece.raw


# --- Words --------------------------------------------------------------------------------------


def _tokens(text: str, protected: Mapping[Span, Piece | None]) -> list[TextToken]:
    """Return the words and signs of a text, in which each protected word is one word."""
    word_starts = [match.start() for match in re.finditer(r"\S+", text)]
    spans = []
    end = 0
    for span in protected:
        spans += [match.span() for match in TOKEN.finditer(text, end, span[0])]
        spans.append(span)
        end = span[1]
    spans += [match.span() for match in TOKEN.finditer(text, end)]
    tokens = []
    for start, end in spans:
        number = DECIMAL.sub(".", THOUSANDS.sub("", text[start:end].casefold()))
        folded = " ".join(number.split())
        word = bisect_right(word_starts, start) - 1
        copy = protected.get((start, end))
        is_word = text[start].isalnum() or text[start] == "_" or copy is not None
        tokens.append(TextToken(start, end, folded, word, is_word, copy))
    return tokens


def _occurrences(sentence: str, copies: Iterable[Span], text: str) -> list[Span]:
    """Find protected words, but beside a letter only if the sentence has that letter there."""
    around, around_text = f" {sentence} ", f" {text} "
    spellings = {(sentence[start:end], around[start], around[end + 1]) for start, end in copies}
    spans = []
    for word, before, behind in sorted(spellings, key=lambda one: len(one[0]), reverse=True):
        pattern = r"\s+".join(map(re.escape, word.split()))
        for match in re.finditer(pattern, text, re.IGNORECASE):
            start, end = match.span()
            begins = EDGE.match(text, start) or around_text[start].lower() == before.lower()
            ends = EDGE.match(text, end) or around_text[end + 1].lower() == behind.lower()
            if begins and ends:
                spans.append((start, end))
    return sorted(apart(spans))


def _connected(
    sentence: MarkedSentence, translation: str, links: Links
) -> tuple[list[TextToken], list[TextToken]]:
    """Connect the tokens of both texts by rules 2 to 4.

    A word in which a mark begins or ends is divided, and so is the same word of the translation.
    """
    copies = sentence.copies()
    occurrences = _occurrences(sentence.text, copies, translation)
    source = _tokens(sentence.text, copies)
    target = _tokens(translation, dict.fromkeys(occurrences))
    same = _same_tokens(source, target)
    edges = [0, *itertools.accumulate(len(piece.text) for piece in sentence.pieces)]
    parts = {}
    equal: dict[TextToken, TextToken] = {}
    for token, other in same.items():
        inside = edges[bisect_right(edges, token.start) : bisect_left(edges, token.end)]
        lengths = sorted({edge - token.start for edge in inside})
        parts[token], parts[other] = token.divided(lengths), other.divided(lengths)
        equal.update(zip(parts[token], parts[other], strict=True))
    source = [part for token in source for part in parts.get(token, [token])]
    target = [part for token in target for part in parts.get(token, [token])]
    numbers = {token: number for number, token in enumerate(target)}
    linked = _linked(source, target, links)
    for token in source:
        others = linked[token]
        if token in equal and (token.copy or not others or equal[token] in others):
            others = [equal[token]]
        token.targets = sorted(numbers[other] for other in others)
    _connect_between(source, target)
    _insert_lost(source, target)
    _spread(
        [token for token in source if token.is_plain and not token.targets], _free(source, target)
    )
    return source, target


def _same_tokens(
    source: Sequence[TextToken], target: Sequence[TextToken]
) -> dict[TextToken, TextToken]:
    """Pair tokens with the same text: in order if both texts contain it equally often.

    Otherwise only protected words are paired, each with the nearest token.
    """
    same: dict[TextToken, TextToken] = {}
    scale = target[-1].end / source[-1].end if target else 1
    target_tokens = _grouped(target, "text")
    quotes = (
        [token.text for token in tokens if token.text in QUOTES] for tokens in (source, target)
    )
    unpaired = "" if next(quotes) == next(quotes) else QUOTES
    paired = (token for token in source if token.text not in unpaired)
    for text, tokens in _grouped(paired, "text").items():
        free = target_tokens[text]
        if len(tokens) == len(free):
            same.update(zip(tokens, free, strict=True))
            continue
        for token in tokens:
            if token.copy and free:
                same[token] = min(free, key=lambda one: abs(one.start - token.start * scale))
                free.remove(same[token])
    for token, other in same.items():
        if token.copy:
            other.copy, other.source, other.is_word = token.copy, token, True
    return same


def _grouped(
    tokens: Iterable[TextToken], attribute: str
) -> defaultdict[str | int, list[TextToken]]:
    groups = defaultdict(list)
    for token in tokens:
        groups[getattr(token, attribute)].append(token)
    return groups


def _linked(
    source: Sequence[TextToken], target: Sequence[TextToken], links: Links
) -> defaultdict[TextToken, list[TextToken]]:
    """The tokens that the model's alignment links, except signs that differ."""
    linked = defaultdict(list)
    source_words, target_words = _grouped(source, "word"), _grouped(target, "word")
    for source_word, target_word in links:
        tokens, others = source_words[source_word], target_words[target_word]
        if max(len(tokens), len(others)) <= CLAUSE:
            for token, other in itertools.product(tokens, others):
                is_pair = token.text == other.text or (token.is_word and other.is_plain)
                if is_pair and not token.copy:
                    linked[token].append(other)
    return linked


def _free(source: Sequence[TextToken], target: Sequence[TextToken]) -> list[int]:
    """Return the numbers of the words of the translation that no word is connected to."""
    taken = {number for token in source for number in token.targets}
    return [n for n, token in enumerate(target) if token.is_plain and n not in taken]


def _connect_between(source: Sequence[TextToken], target: Sequence[TextToken]) -> None:
    """Connect the remaining words between two connected words: rule 4."""
    words = _free(source, target)
    run: list[TextToken] = []
    ends = [0]  # of the words that connected tokens are connected to
    for token in [*source, None]:
        if token and not token.targets:
            run += [token] if token.is_plain else []
            continue
        high = token.targets[0] if token else len(target)
        low = next(end for end in reversed(ends) if end <= high)
        _spread(run, words[bisect_left(words, low) : bisect_left(words, high)])
        run = []
        ends.append(token.targets[-1] + 1 if token else 0)


def _spread(run: Sequence[TextToken], free: Sequence[int]) -> None:
    """Connect tokens to words of the translation at the same relative position."""
    scale = len(free) / max(1, len(run))
    for index, one in enumerate(run if free else []):
        first, last = math.ceil(index * scale - 0.5), math.ceil((index + 1) * scale - 0.5)
        first = min(first, len(free) - 1)
        one.targets = free[first : max(first + 1, last)]


def _insert_lost(source: Sequence[TextToken], target: list[TextToken]) -> None:
    """Insert the protected words that the translation lacks behind the word before: rule 3."""
    gaps = _gaps(target)
    lost = []
    gap = 0
    for token in source:
        if token.copy and not token.targets:
            lost.append((gap, token))
        elif token.is_word and token.targets:
            end = _densest(token.targets, 1)[1] // 2
            behind = gaps[bisect_left(gaps, end)]
            gap = behind if token.is_plain else max(gap, behind)  # lost words keep their order
    lost.sort(key=itemgetter(0))
    for token in source:
        token.targets = [n + bisect_right(lost, n, key=itemgetter(0)) for n in token.targets]
    for index, (gap, token) in enumerate(lost):
        token.targets = [gap + index]
        end = target[gap + index - 1].end if gap + index else 0
        target.insert(gap + index, replace(token, start=end, end=end, source=token))


def _gaps(target: Sequence[TextToken]) -> list[int]:
    """Return the numbers of the tokens that a protected word can be inserted before.

    It must not divide what stands between two spaces, such as a file name, unless only closing
    signs follow.
    """
    last_words = {token.word: number for number, token in enumerate(target) if token.is_word}
    gaps = [0]
    for number, (left, right) in enumerate(itertools.pairwise(target), start=1):
        is_at_end = number > last_words.get(left.word, number)
        is_closing = is_at_end and right.text in CLOSING
        if left.word != right.word or is_closing or _are_unspaced(left, right, NO_SPACES):
            gaps.append(number)
    return [*gaps, len(target)]


def _are_unspaced(left: TextToken, right: TextToken, scripts: str) -> bool:
    """Whether no space is written between two tokens because of their scripts."""
    return re.search(f"[{scripts}]", left.text[-1] + right.text[0]) is not None


# --- Placing ------------------------------------------------------------------------------------


def _spaced(
    sentence: MarkedSentence,
    source: Sequence[TextToken],
    target: Sequence[TextToken],
    characters: Sequence[str],
) -> Iterator[str]:
    """Yield the space before each token and the token, as the document writes them.

    A word and a protected word are separated if they are in the sentence. An inserted word is
    separated unless the sentence writes both words without anything between them.
    """
    around = f" {sentence.text} "
    joined = {
        number
        for one, other in itertools.pairwise(source)
        for number in other.targets[:1]
        if one.end == other.start and number - 1 in one.targets
    }
    left = TextToken(0, 0, " ", -1, is_word=False)
    for number, right in enumerate(target):
        space = "".join(characters[left.end : right.start])
        if number and (left.is_inserted or right.is_inserted):
            is_apart = number not in joined and (right.is_word or left.end == 0)
            is_apart = is_apart and not _are_unspaced(left, right, NO_SPACES)
        else:
            beside = around[left.source.end + 1] if left.source else ""
            beside += around[right.source.start] if right.source else ""
            is_apart = left.is_word and right.is_word and APART.search(beside) is not None
            is_apart = is_apart and not _are_unspaced(left, right, UNSPACED)
        if is_apart:
            space = space or " "
        yield space
        raw = "".join(characters[right.start : right.end])
        if right.copy:  # a lone "<" may get a neighbour
            raw = sentence.escapes.get(right.copy.raw, right.copy.raw)
        yield raw
        left = right


class _Placing:
    """Places the marks of a sentence among the spaces and tokens of its translation.

    A position among them is even directly behind a token, and odd directly before a token.
    """

    def __init__(
        self,
        sentence: MarkedSentence,
        source: Sequence[TextToken],
        target: Sequence[TextToken],
        *,
        strings: list[str],
    ) -> None:
        self._text = sentence.text
        self._pieces = sentence.pieces
        lengths = (len(piece.text) for piece in sentence.pieces)
        self._offsets = list(itertools.accumulate(lengths, initial=0))
        self._end_tags = _end_tags(sentence.pieces)
        self._source = source
        self._starts = [token.start for token in source]
        self._ends = [token.end for token in source]
        self._target = target
        self._words = [n for n in range(1, len(strings), 2) if _has_letter(strings[n])]
        self._strings = strings

    def written(self, translation: str) -> Iterator[str]:
        """Yield the strings of the translation with the marks among them."""
        breaks = [number for number, one in enumerate(self._pieces) if one.role in BREAKS]
        starts = [0, *self._break_lines(breaks, translation), len(self._strings)]
        cues = [-1, *(n for n in breaks if self._pieces[n].name == "cue"), len(self._pieces)]
        end = 0
        for number, (before, behind) in enumerate(itertools.pairwise(cues)):
            tokens = self._numbers(self._offsets[before + 1], self._offsets[behind])
            cue = Mark(Piece(""), 0, tokens, self._marks(before + 1, behind))
            area = starts[number] + 1, max(starts[number : number + 2])
            yield from self._strings[end : area[0]]
            yield from self._written(cue, area)
            end = area[1]

    def _break_lines(self, breaks: Sequence[int], translation: str) -> list[int]:
        """Break the translation by rule 7, and return the positions where cues end.

        In a translation with few words, line ends are dropped, but no cues.
        """
        good: dict[int, int] = {}  # gaps, by the number of words before them
        every: dict[int, int] = {}
        for number in reversed(range(1, len(self._target))):
            left, right = self._target[number - 1 : number + 1]
            count = bisect_left(self._words, 2 * number)
            every.setdefault(count, number)
            is_divisible = self._strings[2 * number] or _are_unspaced(left, right, NO_SPACES)
            if is_divisible and not NO_LINE.match(translation, right.start):
                good[count] = number
        fixed = [number for number in breaks if self._pieces[number].name in ("cue", "br")]
        parts = itertools.pairwise([-1, *fixed, len(self._pieces)])
        needs = [
            max(1, sum(mark.need for mark in self._marks(before + 1, behind)))
            for before, behind in parts
        ]
        limit = len(self._words) - sum(needs[1:])  # of words before the next cue
        ends = list(itertools.accumulate(map(len, self._strings), initial=0))
        scale = ends[-1] / len(self._text)
        cue_ends = []
        begin = count = 0  # words before this cue, and before this line
        for index in breaks:
            low, high = count + 1, limit - 1
            if index in fixed:
                low = max(low, min(begin + needs.pop(0), limit))
                high = max(low, limit)
            numbers = [good[one] for one in range(low, high + 1) if one in good]
            if index in fixed and not numbers and low < len(self._words):
                numbers = [every[low]]
            if numbers:
                wanted = self._offsets[index] * scale
                number = min(numbers, key=lambda one: abs(ends[2 * one] - wanted))
                count = bisect_left(self._words, 2 * number)
                self._strings[2 * number] = self._pieces[index].raw
            elif index in fixed:
                number = len(self._strings) // 2
                count = len(self._words)
                self._strings += [self._pieces[index].raw, ""]
            if index in fixed:
                begin = count
                limit += needs[0]
            if self._pieces[index].name == "cue":
                cue_ends.append(2 * number)
        return cue_ends

    def _numbers(self, start: int, end: int) -> Span:
        """The numbers of the source tokens that a span contains fully or partly."""
        last = bisect_left(self._starts, end)
        return bisect_right(self._ends, start) if start < end else last, last

    def _marks(self, first: int, last: int) -> list[Mark]:
        """Return the elements and points among some of the pieces.

        An element without its start tag begins at the first piece, and an element without its end
        tag ends at the last piece.
        """
        marks: list[Mark] = []
        depth = 0  # of elements without their start tags
        behind = first
        while behind < last:
            index = behind
            piece = self._pieces[index]
            end = self._end_tags.get(index, index)
            behind = min(end + 1, last)
            mark = Mark(piece, self._offsets[index], begins=piece.role is not Role.CLOSE)
            mark.ends = end < last and (end > index or piece.role is not Role.OPEN)
            if not mark.begins and depth < MAX_DEPTH:
                mark.start = self._offsets[first]
            mark.tokens = self._numbers(mark.start, self._offsets[behind])
            has_tokens = mark.tokens[0] < mark.tokens[1]
            is_tag = piece.role in (Role.OPEN, Role.CLOSE)
            if piece.role is Role.TEXT or piece.role in BREAKS or (has_tokens and not is_tag):
                continue
            if has_tokens:
                shown = self._text[mark.start : self._offsets[behind]]
                is_lost = not all(token.targets for token in self._source[slice(*mark.tokens)])
                has_words = is_lost or any(map(str.isalnum, shown))
                mark.inside = self._marks(index + 1, min(end, last)) if mark.begins else marks
                mark.need = max(has_words, sum(one.need for one in mark.inside))
                if mark.ends:
                    mark.end_tag = self._pieces[end].reworded or self._pieces[end].raw
                if not mark.begins:
                    depth += 1
                    marks = []
                if not mark.begins or not mark.ends:
                    mark.piece = Piece(piece.raw if mark.begins else "")
            else:
                group = self._pieces[index:behind]
                raws = (one.text if one.role in BREAKS else one.raw for one in group)
                mark.piece = Piece("".join(raws))
                mark.follows_space = self._text[mark.start - 1 : mark.start] == " "
                mark.precedes_space = raw_text(self._pieces[behind : behind + 1])[:1].isspace()
            marks.append(mark)
        return marks

    def _written(self, around: Mark, area: Span) -> Iterator[str]:
        """Yield the strings of an area with the marks that an element contains: rule 5."""
        words = self._words[bisect_left(self._words, area[0]) : bisect_left(self._words, area[1])]
        starts = [*words, area[1]]
        ends = [*(word - 1 for word in words), area[1]]
        remaining = sum(mark.need for mark in around.inside)
        wanted = [self._wanted(mark, around, area) for mark in around.inside]
        spans = zip(wanted, around.inside, strict=True)
        begin = max((right for (_, right), mark in spans if not mark.begins), default=area[0])
        for number, mark in enumerate(around.inside):
            if not mark.ends:  # its start tag follows the end tags of elements that began earlier
                wanted[number] = max(wanted[number], (begin, begin))
        marks = sorted(zip(wanted, around.inside, strict=True), key=itemgetter(0))
        end = area[0]
        for (left, right), mark in marks:
            start = max(end, min(left, starts[max(0, len(words) - remaining)]))
            first = bisect_left(words, start)
            if mark.need and first < len(words) and not left == start < right:
                start = words[first]
            yield from self._strings[end:start]
            remaining -= mark.need
            needed = [word + 1 for word in words[first : first + mark.need]]
            end = max([start, min(right, ends[max(0, len(words) - remaining)]), *needed])
            inside = "".join(self._written(mark, (start, end)))
            if inside or not mark.piece.name.startswith(EMPHASIS):
                yield " " if mark.follows_space and start % 2 == 0 else ""
                yield mark.piece.raw + inside + mark.end_tag
                yield " " if mark.precedes_space and start % 2 == 1 else ""
        yield from self._strings[end : area[1]]

    def _wanted(self, mark: Mark, around: Mark, area: Span) -> Span:
        """The positions between which a mark would be if it were alone."""
        first, last = mark.tokens
        if first < last and mark.tokens == around.tokens:
            return area
        numbers = {n for token in self._source[first:last] for n in token.targets}
        inside = [number for number in sorted(numbers) if area[0] <= 2 * number + 1 < area[1]]
        if inside:
            return _densest(inside, last - first)
        position = self._beside(mark)
        if first == last and not (mark.begins and mark.ends):
            position = area[mark.begins]
        return position, position

    def _beside(self, mark: Mark) -> int:
        """The position of a mark without words in the translation: rule 6."""
        first, _ = mark.tokens
        if mark.follows_space and first < len(self._source) and self._source[first].targets:
            return _densest(self._source[first].targets, 1)[0]
        for number in reversed(range(first)):
            token = self._source[number]
            if token.targets and (token.is_word or token.end == mark.start):
                return _densest(token.targets, 1)[1]
        return 0


def _has_letter(raw: str) -> bool:
    """Whether a reader sees a letter or a digit in part of a document."""
    return any(map(str.isalnum, html.unescape(TAG.sub("", raw))))


def _end_tags(pieces: Sequence[Piece]) -> dict[int, int]:
    """Return the number of each start tag with the number of its end tag.

    For a start tag without its end tag, this is the end tag of the element around it, or the
    number of pieces.
    """
    end_tags = {}
    opened: list[int] = []
    for number, piece in enumerate(pieces):
        if piece.role is Role.OPEN and len(opened) < MAX_DEPTH:
            opened.append(number)
        elif piece.role is Role.CLOSE:
            same = [n for n, start in enumerate(opened) if pieces[start].name == piece.name]
            if same:
                end_tags.update(dict.fromkeys(opened[same[-1] :], number))
                del opened[same[-1] :]
    return {**end_tags, **dict.fromkeys(opened, len(pieces))}


def _densest(numbers: Sequence[int], width: int) -> Span:
    """The positions around the longest run of tokens with gaps of at most `width` tokens."""
    runs = [[numbers[0]]]
    for before, number in itertools.pairwise(numbers):
        if number - before > width + 1:
            runs.append([])
        runs[-1].append(number)
    longest = max(runs, key=len)
    return 2 * longest[0] + 1, 2 * longest[-1] + 2
