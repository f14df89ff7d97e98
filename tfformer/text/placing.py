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

7. An image, a comment or a footnote follows the word that it touches. Between spaces, it precedes
the word behind it.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

from tfformer.text.marked_sentence import EMPHASIS, MarkedSentence, Piece, Role, raw_text
from tfformer.text.protected_words import LETTER, NO_SPACES, UNSPACED
from tfformer.text.segmentation import Span, apart

MAX_DEPTH = 100  # nested tags that are kept as pairs; deeper tags are points
MARKS = "".join(c for c in map(chr, range(0x300, 0x3100)) if unicodedata.category(c)[0] == "M")
WITH_MARKS = rf"(?:[^\W{NO_SPACES}][{MARKS}]*)"  # a letter with its accents
# A word, a character of a script without spaces, or a sign. "Don't", "E-Mail", "3.50" are words.
TOKEN = re.compile(
    rf"{WITH_MARKS}+(?:(?:['’\u2010\u2011-]|(?<=\d)[.,:/](?=\d)){WITH_MARKS}+)*"
    rf"|\S[{MARKS}]*(?:(?<=[\u1039\u17d2])\S[{MARKS}]*)*"  # stacked consonants of Burmese and Khmer
)
TWO_LETTERS = re.compile(f"{LETTER}{{2}}")
SEPARATOR = re.compile(r"(?<=\d)[.,](?=\d)")  # in numbers; languages use different separators
CLAUSE = 6  # a longer "word" between spaces is a clause of a script without spaces
GLUE = re.compile(rf"(?![{UNSPACED}])[\w'’/\u2010\u2011-]")  # attaches a word to the copy beside it
FINAL = ".!?…。！？"  # signs at the end of a sentence
CLOSING = ".,;:!?)]}…»”’%、。，；：！？）」』】"
# No line begins with a closing sign, nor as a block of Markdown or another speaker's line does.
NO_BEGINNING = re.compile(rf"[{re.escape(CLOSING)}]+(?!\w)|[-+*>#=|:~–—]|\d+[.)]")

Links = Sequence[tuple[int, int]]  # (source word, target word), numbers of the words between spaces


@dataclass(eq=False)
class Mark:
    """Markup of a sentence: a node of a tree. A mark without text is a point."""

    piece: Piece  # for an element, the start tag
    start: int  # in the sentence
    end: int
    end_tag: str = ""
    follows_space: bool = False  # for a point
    precedes_space: bool = False
    inside: list[Mark] = field(default_factory=list)
    target: Span = (0, 0)  # among the spaces and tokens of the translation

    @property
    def is_point(self) -> bool:
        """Whether it contains no text."""
        return self.start == self.end


@dataclass(eq=False)
class TextToken:
    """A word, a sign or a protected word, or the part of a word in which an element begins."""

    start: int
    end: int
    text: str  # case-folded, and for a number only the digits
    word: int  # the number of the word between spaces
    is_word: bool
    space: str  # before it
    copy: Piece | None = None  # for a protected word
    source: TextToken | None = None  # for a protected word in the translation
    targets: list[TextToken] = field(default_factory=list)  # in the translation, by rules 2 to 4
    number: int = 0  # its position among the tokens of the translation

    @property
    def is_plain(self) -> bool:
        """Whether it is a word that is not protected."""
        return self.is_word and self.copy is None

    @property
    def is_lost(self) -> bool:
        """Whether it is a protected word that the translation lacks."""
        return self.copy is not None and not self.targets


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
    root, breaks = _tree(sentence)
    copies = sentence.copies()
    same_words = sorted(apart([*copies, *_occurrences(text, copies, text)]))
    source = _tokens(text, same_words, copies)
    target = _tokens(translation, _occurrences(text, copies, translation), {})
    for token in target:
        token.space = "".join(characters[token.start - len(token.space) : token.start])
    same = _connect(source, target, links or ())
    _divide_words(source, target, same, sorted(_edges(root)))
    _insert_lost_copies(_Alignment(source, target))
    _separate_copies(target, text)
    placing = _Placing(_Alignment(source, target), text)
    placing.place_breaks(breaks, translation)
    placing.place(root, (0, len(target)))
    strings = []
    for token in target:
        raw = "".join(characters[token.start : token.end])
        if token.copy:  # a lone "<" may get a neighbour
            raw = sentence.escapes.get(token.copy.raw, token.copy.raw)
        strings += [token.space, raw]
    return "".join(_written(root, strings))


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


# --- Markup -------------------------------------------------------------------------------------


def _tree(sentence: MarkedSentence) -> tuple[Mark, list[Mark]]:
    """Return a mark that contains all other marks of a sentence, and the ends of lines and cues.

    A tag without its counterpart is a point.
    """
    text = sentence.text
    around = [Mark(Piece(""), 0, len(text))]  # outermost first
    breaks = []
    end = 0
    for piece, next_piece in zip(sentence.pieces, [*sentence.pieces[1:], Piece("")], strict=True):
        start, end = end, end + len(piece.text)
        mark = Mark(piece, start, start, follows_space=text[start - 1 : start] == " ")
        mark.precedes_space = next_piece.raw[:1].isspace()
        if piece.role in (Role.LINE, Role.CUE):
            breaks.append(mark)
        elif piece.role is Role.CLOSE and any(one.piece.name == piece.name for one in around[1:]):
            while around[-1].piece.name != piece.name:
                _leave_unclosed(around)
            element = around.pop()
            element.end, element.end_tag = start, piece.reworded or piece.raw
            element.precedes_space = mark.precedes_space
        elif piece.role is not Role.TEXT and not piece.text.strip():
            around[-1].inside.append(mark)
            if piece.role is Role.OPEN and len(around) <= MAX_DEPTH:
                around.append(mark)
    while len(around) > 1:
        _leave_unclosed(around)
    return around[0], breaks


def _leave_unclosed(around: list[Mark]) -> None:
    """Make the contents of a tag without an end tag belong to the mark around it."""
    mark = around.pop()
    around[-1].inside += mark.inside
    mark.inside = []


def _edges(mark: Mark) -> set[int]:
    """The positions in a sentence where marks begin or end."""
    return {mark.start, mark.end}.union(*map(_edges, mark.inside))


# --- Words and protected words ------------------------------------------------------------------


def _occurrences(sentence: str, copies: Iterable[Span], text: str) -> list[Span]:
    """Find protected words, but beside a letter only if the sentence has that letter there."""
    spellings = {(sentence[slice(*span)], _letters_beside(sentence, span)) for span in copies}
    spans = []
    for word, letters in sorted(spellings, key=lambda one: len(one[0]), reverse=True):
        pattern = r"\s+".join(map(re.escape, word.split()))
        for match in re.finditer(pattern, text, re.IGNORECASE):
            beside = _letters_beside(text, match.span())
            if all(one in ("", other) for one, other in zip(beside, letters, strict=True)):
                spans.append(match.span())
    return sorted(apart(spans))


def _letters_beside(text: str, span: Span) -> tuple[str, ...]:
    """The two letters at the beginning and at the end of a word, if it touches other letters."""
    pairs = [text[max(0, offset - 1) : offset + 1].lower() for offset in span]
    return tuple(pair if TWO_LETTERS.fullmatch(pair) else "" for pair in pairs)


def _tokens(text: str, protected: Iterable[Span], copies: Mapping[Span, Piece]) -> list[TextToken]:
    """Return the words and signs of a text, in which each protected word is one word."""
    spans = []
    end = 0
    for span in protected:
        spans += [match.span() for match in TOKEN.finditer(text, end, span[0])]
        spans.append(span)
        end = span[1]
    spans += [match.span() for match in TOKEN.finditer(text, end)]
    word_starts = [match.start() for match in re.finditer(r"\S+", text)]
    tokens = []
    last = 0
    for start, end in spans:
        folded = " ".join(SEPARATOR.sub("", text[start:end].casefold()).split())
        word = bisect_right(word_starts, start) - 1
        copy = copies.get((start, end))
        is_word = text[start].isalnum() or text[start] == "_" or copy is not None
        tokens.append(TextToken(start, end, folded, word, is_word, text[last:start], copy))
        last = end
    return tokens


def _connect(
    source: Sequence[TextToken], target: Sequence[TextToken], links: Links
) -> dict[TextToken, TextToken]:
    """Connect tokens by rules 2 to 4, and return the connected tokens with the same text."""
    same = _same_tokens(source, target)
    source_words, target_words = _grouped(source, "word"), _grouped(target, "word")
    for source_word, target_word in links:
        tokens, others = source_words[source_word], target_words[target_word]
        if max(len(tokens), len(others)) <= CLAUSE:
            for token, other in itertools.product(tokens, others):
                is_same_sign = not token.is_word and other.text == token.text
                if is_same_sign or (token.is_plain and other.is_plain):
                    token.targets.append(other)
    for token in source:
        equal = same.get(token)
        if equal and (token.copy or not token.targets or equal in token.targets):
            token.targets = [equal]
        else:
            same.pop(token, None)
    return same


def _same_tokens(
    source: Sequence[TextToken], target: Sequence[TextToken]
) -> dict[TextToken, TextToken]:
    """Pair tokens with the same text: in order if both texts contain it equally often.

    Otherwise only protected words are paired, each with the nearest token.
    """
    same: dict[TextToken, TextToken] = {}
    scale = target[-1].end / source[-1].end if target else 1
    target_tokens = _grouped(target, "text")
    for text, tokens in _grouped(source, "text").items():
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


def _divide_words(
    source: list[TextToken],
    target: list[TextToken],
    same: Mapping[TextToken, TextToken],
    edges: Sequence[int],
) -> None:
    """Divide each word in which a mark begins or ends, and the same word of the translation."""
    for token, other in same.items():
        inside = edges[bisect_right(edges, token.start) : bisect_left(edges, token.end)]
        if inside:
            lengths = [edge - token.start for edge in inside]
            fragments = _divide(source, token, lengths)
            for fragment, equal in zip(fragments, _divide(target, other, lengths), strict=True):
                fragment.targets = [equal]


def _divide(tokens: list[TextToken], token: TextToken, lengths: Iterable[int]) -> list[TextToken]:
    """Divide one of the tokens at distances from its beginning."""
    fragments = [token]
    for length in lengths:
        last = fragments[-1]
        start = min(token.start + length, last.end)
        fragments.append(replace(last, start=start, space=""))
        last.end = start
    number = tokens.index(token)
    tokens[number : number + 1] = fragments
    return fragments


def _insert_lost_copies(alignment: _Alignment) -> None:
    """Insert the protected words that the translation lacks: rule 2."""
    source, target = alignment.source, alignment.target
    last = len(source)  # behind it only lost words and the end of the sentence
    while last and (source[last - 1].is_lost or source[last - 1].text in FINAL):
        last -= 1
    end = len(target)
    while end and target[end - 1].text in FINAL:
        end -= 1
    inserted = []
    for number, token in enumerate(source):
        if token.is_lost:
            position = alignment.after(number, not token.space) if number < last else end
            inserted.append((position, token))
    for position, token in reversed(sorted(inserted, key=itemgetter(0))):
        token.targets = [replace(token, space="", source=token)]
        target[position:position] = token.targets


def _separate_copies(target: Sequence[TextToken], sentence: str) -> None:
    """Separate words from protected words where the sentence does."""
    around = f" {sentence} "
    for left, right in itertools.pairwise(target):
        if left.source and right.source:
            is_glued = left.source.end == right.source.start
        elif left.source:
            is_glued = GLUE.match(around, left.source.end + 1) is not None
        elif right.source:
            is_glued = GLUE.match(around, right.source.start) is not None
        else:
            continue
        is_unspaced = re.search(f"[{UNSPACED}]", left.text[-1] + right.text[0])
        if left.is_word and right.is_word and not (right.space or is_glued or is_unspaced):
            right.space = " "


class _Alignment:
    """The tokens of a sentence, connected to tokens of its translation."""

    def __init__(self, source: Sequence[TextToken], target: list[TextToken]) -> None:
        self.source = source
        self.target = target
        self._starts = [token.start for token in source]
        self._ends = [token.end for token in source]
        for number, token in enumerate(target):
            token.number = number
        self._words = [token.number for token in target if token.is_word]
        self._knots = [(0, 0)]  # numbers in the sentence and in the translation
        for number, token in enumerate(source):
            if token.targets:
                numbers = [other.number for other in token.targets]
                self._knots += [(number, min(numbers)), (number + 1, max(numbers) + 1)]
        self._knots.append((len(source), len(target)))

    def numbers(self, start: int, end: int) -> Span:
        """The numbers of the source tokens that a span contains fully or partly."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end)

    def span_in_target(self, first: int, last: int) -> Span:
        """The span of target tokens that corresponds to a span of source tokens."""
        tokens = self.source[first:last]
        words = [token for token in tokens if token.is_plain]
        numbers = {other.number for token in tokens for other in token.targets}
        if not numbers or (words and not any(token.targets for token in words)):
            numbers.update(self._at_same_position(first, last))
        return _densest(sorted(numbers), len(tokens))

    def _at_same_position(self, first: int, last: int) -> Sequence[int]:
        """The target words at the same relative position between connected tokens: rule 5."""
        left, right = self._relative(first) - 0.5, self._relative(last) - 0.5
        numbers = self._words or range(len(self.target))
        begin, end = bisect_left(numbers, left), bisect_left(numbers, right)
        if begin < end:
            return numbers[begin:end]
        nearest = numbers[max(0, begin - 1) : begin + 1]
        return [min(nearest, key=lambda number: abs(2 * number - left - right))]

    def _relative(self, number: int) -> float:
        """The position in the translation at the same relative position between knots."""
        behind = max(1, bisect_left(self._knots, (number, 0)))
        left, right = self._knots[behind - 1], self._knots[behind]
        if left[1] >= right[1]:
            left, right = self._knots[0], self._knots[-1]
        return left[1] + (number - left[0]) * (right[1] - left[1]) / max(1, right[0] - left[0])

    def after(self, number: int, is_glued: bool) -> int:
        """The end of what the word before a source token is connected to, or a sign glued to it."""
        for before in reversed(range(number)):
            token = self.source[before]
            is_beside = is_glued and before == number - 1
            is_known = token.targets and (token.is_word or is_beside)
            if self.target and (token.is_plain or is_known):
                return self.span_in_target(before, before + 1)[1]
        return 0


def _densest(numbers: Sequence[int], width: int) -> Span:
    """The longest run of numbers in which neighbours differ by at most `width` + 1."""
    runs = [[numbers[0]]]
    for before, number in itertools.pairwise(numbers):
        if number - before > width + 1:
            runs.append([])
        runs[-1].append(number)
    longest = max(runs, key=len)
    return longest[0], longest[-1] + 1


# --- Placing ------------------------------------------------------------------------------------


class _Placing:
    """Places the marks of a sentence among the tokens of its translation."""

    def __init__(self, alignment: _Alignment, sentence: str) -> None:
        self._alignment = alignment
        self._target = alignment.target
        self._sentence = sentence
        self._cues: list[tuple[int, int]] = []  # numbers of the first source and target token

    def place_breaks(self, breaks: Sequence[Mark], translation: str) -> None:
        """Break the translation at about the same relative positions: rule 8.

        In a translation with few words, line ends are dropped, but no cues.
        """
        target = self._target
        words_before = list(itertools.accumulate((token.is_word for token in target), initial=0))
        possible = [0]  # a word is between each two of them, and behind the last
        for number in range(1, len(target)):
            has_words = words_before[possible[-1]] < words_before[number] < words_before[-1]
            if has_words and _may_break(target[number - 1], target[number], translation):
                possible.append(number)
        del possible[0]
        fixed = [mark for mark in breaks if mark.piece.name in ("cue", "br")]
        lines = [mark for mark in breaks if mark not in fixed]
        dropped = lines[max(0, len(possible) - len(fixed)) :]
        kept = [mark for mark in breaks if mark not in dropped]
        scale = len(translation) / len(self._sentence)
        for index, mark in enumerate(kept):
            number = len(target)
            free = possible[: max(1, len(possible) - len(kept) + index + 1)]
            if free:
                number = min(free, key=lambda one: abs(target[one - 1].end - mark.start * scale))
                del possible[: free.index(number) + 1]
                target[number].space = mark.piece.raw
            else:
                target.append(TextToken(0, 0, "", -1, is_word=False, space=mark.piece.raw))
            if mark.piece.role is Role.CUE:
                self._cues.append((self._alignment.numbers(mark.start, mark.start)[0], number))

    def place(self, element: Mark, area: Span) -> None:
        """Place an element around target tokens, and the marks that it contains among them."""
        element.target = 2 * area[0] + 1, max(2 * area[0] + 1, 2 * area[1])
        elements = [mark for mark in element.inside if not mark.is_point]
        wanted = [self._wanted(mark, element, area) for mark in elements]
        for mark, tokens in self._shared_out(elements, wanted, area):
            self.place(mark, tokens)
        for mark in element.inside:
            if mark.is_point:
                position = self._point(mark, element, area)
                mark.target = position, position

    def _wanted(self, mark: Mark, around: Mark, area: Span) -> Span:
        """The target tokens that an element would surround if it were alone."""
        numbers = self._alignment.numbers(mark.start, mark.end)
        first, last = self._alignment.numbers(around.start, around.end)
        low, high = area
        for number, target_number in self._cues:
            if number <= numbers[0]:
                low, first = max(low, target_number), max(first, number)
            elif number >= numbers[1]:
                high, last = min(high, target_number), min(last, number)
        high = max(low, high)
        if numbers == (first, last):
            return low, high
        left, right = self._alignment.span_in_target(*numbers)
        return _within(left, (low, high)), _within(right, (low, high))

    def _shared_out(
        self, elements: Sequence[Mark], wanted: Sequence[Span], area: Span
    ) -> Iterator[tuple[Mark, Span]]:
        """Yield each element with its tokens, and no token with two elements: rule 6."""
        words = [number for number in range(*area) if self._target[number].is_word]
        starts = [*words, area[1]]
        remaining = sum(map(self._need, elements))
        end = area[0]
        for (left, right), mark in sorted(zip(wanted, elements, strict=True), key=itemgetter(0)):
            left = max(end, min(left, starts[max(0, len(words) - remaining)]))
            need = self._need(mark)
            remaining -= need
            limit = starts[max(0, len(words) - remaining)]
            first = bisect_left(words, left)
            needed = [number + 1 for number in words[first : first + need]]
            end = max([left, min(right, limit), *needed])
            yield mark, (left, end)

    def _need(self, mark: Mark) -> int:
        """The number of words that an element needs so that each element in it gets a word."""
        if mark.is_point:
            return 0  # a point within a word needs no word
        first, last = self._alignment.numbers(mark.start, mark.end)
        has_words = any(token.is_word for token in self._alignment.source[first:last])
        return max(has_words, sum(map(self._need, mark.inside)))

    def _point(self, mark: Mark, around: Mark, area: Span) -> int:
        """The position of an image, a comment or a footnote: rule 7."""
        alignment = self._alignment
        first, last = alignment.numbers(around.start, around.end)
        behind, before = alignment.numbers(mark.start, mark.start)  # differ within a word
        if before <= first:
            return 2 * area[0] + 1
        if behind >= last and not self._sentence[mark.start - 1].isalnum():
            return 2 * area[1]
        is_apart = mark.follows_space or mark.piece.role is Role.OPEN
        if is_apart and self._sentence[mark.start : mark.start + 1].strip():
            return 2 * alignment.span_in_target(behind, behind + 1)[0] + 1
        return 2 * alignment.after(before, not mark.follows_space)


def _may_break(left: TextToken, right: TextToken, translation: str) -> bool:
    """Whether a line may end between two tokens of the translation."""
    if right.space:
        return right.copy is not None or not NO_BEGINNING.match(translation, right.start)
    is_unspaced = re.search(f"[{NO_SPACES}]", left.text[-1] + right.text[0])
    return right.text[0] not in CLOSING and is_unspaced is not None


def _within(number: int, area: Span) -> int:
    return min(max(number, area[0]), area[1])


def _written(around: Mark, strings: Sequence[str]) -> Iterator[str]:
    """Yield the spaces and tokens of a mark with the marks among them.

    A mark at an even position is directly behind a token, at an odd position directly before it.
    """
    written, end = around.target
    for mark in sorted(around.inside, key=attrgetter("target")):
        left = _within(mark.target[0], (written, end))
        right = _within(mark.target[1], (left, end))
        mark.target = left, right
        inside = "".join(_written(mark, strings))
        yield from strings[written:left]
        if mark.is_point:
            yield " " if mark.follows_space and left % 2 == 0 else ""
            yield mark.piece.raw + inside + mark.end_tag
            yield " " if mark.precedes_space and left % 2 == 1 else ""
        elif inside or not mark.piece.name.startswith(EMPHASIS):
            yield mark.piece.raw + inside + mark.end_tag
        written = right
    yield from strings[written:end]
