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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
CLAUSE = 4  # a longer "word" between spaces is a clause of a script without spaces
GLUE = re.compile(rf"(?![{UNSPACED}])[\w'’/\u2010\u2011-]")  # attaches a word to the copy beside it
FINAL = ".!?…。！？"  # signs at the end of a sentence
CLOSING = ".,;:!?)]}…»”’%、。，；：！？）」』】"
# No line begins with a closing sign, nor as a block of Markdown or another speaker's line does.
NO_BEGINNING = re.compile(rf"[{re.escape(CLOSING)}]+(?!\w)|[-+*>#=|:~–—]|\d+[.)]")

Links = Sequence[tuple[int, int]]  # (source word, target word), numbers of the words between spaces


@dataclass
class Mark:
    """Markup of a sentence: a node of a tree. A mark without text is a point."""

    piece: Piece  # for an element, the start tag
    number: int  # of the piece
    start: int  # in the sentence
    end: int
    end_tag: str = ""
    follows_space: bool = False
    precedes_space: bool = False
    inside: list[Mark] = field(default_factory=list)
    target: Span = (0, 0)  # in the list of the spaces and tokens of the translation


@dataclass(eq=False)
class TextToken:
    """A word, a sign or a protected word, or the part of a word in which an element begins."""

    start: int
    end: int
    text: str  # case-folded, and for a number only the digits
    word: int  # the number of the word between spaces
    is_word: bool
    space: str  # before it
    raw: str = ""  # how it is written in the translation
    copy: Piece | None = None  # for a protected word
    source: TextToken | None = None  # for a protected word in the translation
    targets: list[TextToken] = field(default_factory=list)  # in the translation, by rules 2 to 4
    number: int = 0  # in the translation

    @property
    def is_lost(self) -> bool:
        """Whether it is a protected word that the translation lacks."""
        return self.copy is not None and not self.targets

    @property
    def is_plain(self) -> bool:
        """Whether it is a word that is not protected."""
        return self.is_word and self.copy is None


def with_marks(sentence: MarkedSentence, translation: str, links: Links | None = None) -> str:
    """Return a translation that contains each tag of its sentence once, properly nested.

    `links` are the pairs of source words and target words, if they are known.
    """
    if translation == sentence.text:
        return raw_text(sentence.pieces)
    characters = sentence.written(translation)
    if sentence.is_text:
        return "".join(characters)
    if translation.casefold() == sentence.text.casefold():
        return "".join(_in_same_places(sentence, translation, characters))
    whole, breaks = _tree(sentence)
    source, target = _tokens_of_both(sentence, translation)
    same = _connect(source, target, links or ())
    offsets = sorted({offset for mark in _all([whole]) for offset in (mark.start, mark.end)})
    source, target = _cut_at_marks(source, target, same, offsets)
    target = _with_lost_copies(_Alignment(source, target))
    for token in target:
        token.raw = "".join(characters[token.start : token.end])
        if token.copy:  # a lone "<" may get a neighbour
            token.raw = sentence.escapes.get(token.copy.raw, token.copy.raw)
    _separate_copies(target, sentence.text)
    cues = _place_breaks(breaks, sentence.text, translation, target)
    _Placing(_Alignment(source, target), cues, sentence.text).place(whole, (0, len(target)))
    whole.target = 0, 2 * len(target)
    parts = [part for token in target for part in (token.space, token.raw)]
    return "".join(_written(whole, parts))


def _in_same_places(
    sentence: MarkedSentence, translation: str, characters: Sequence[str]
) -> Iterator[str]:
    """Yield the pieces of a sentence with the text of a translation that only differs in case."""
    lengths, others = (
        [len(one.casefold()) for one in text] for text in (sentence.text, translation)
    )
    ends = list(itertools.accumulate(others, initial=0))
    offsets = [bisect_left(ends, end) for end in itertools.accumulate(lengths, initial=0)]
    end = 0
    for piece in sentence.pieces:
        start, end = end, end + len(piece.text)
        if piece.role is Role.TEXT and piece.text.strip():
            yield from characters[offsets[start] : offsets[end]]
        else:
            yield piece.reworded or piece.raw


def _tree(sentence: MarkedSentence) -> tuple[Mark, list[Mark]]:
    """Return a mark that contains all other marks of a sentence, and the ends of lines and cues.

    A tag without its counterpart is a point.
    """
    text = sentence.text
    whole = Mark(Piece(""), -1, 0, len(text))
    around = [whole]  # outermost first
    breaks = []
    end = 0
    following = [*(piece.raw[:1] for piece in sentence.pieces[1:]), ""]
    for number, piece in enumerate(sentence.pieces):
        start, end = end, end + len(piece.text)
        mark = Mark(piece, number, start, start)
        mark.follows_space = text[start - 1 : start] == " "
        mark.precedes_space = following[number].isspace()
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
    return whole, breaks


def _leave_unclosed(around: list[Mark]) -> None:
    """Make the contents of a tag without an end tag belong to the mark around it."""
    mark = around.pop()
    around[-1].inside += mark.inside
    mark.inside = []


def _all(marks: Iterable[Mark]) -> Iterator[Mark]:
    for mark in marks:
        yield mark
        yield from _all(mark.inside)


# --- Words and protected words ------------------------------------------------------------------


def _tokens_of_both(
    sentence: MarkedSentence, translation: str
) -> tuple[list[TextToken], list[TextToken]]:
    """Return the tokens of a sentence and of its translation."""
    copies = {}
    pieces = [piece for piece in sentence.pieces if piece.role is Role.COPY]
    for piece, (start, _) in zip(pieces, sentence.copies(), strict=True):
        words = piece.text.strip()
        start += piece.text.index(words)
        if words:
            copies[start, start + len(words)] = piece
    same, others = (
        _occurrences(sentence.text, copies, one) for one in (sentence.text, translation)
    )
    source = list(_tokens(sentence.text, sorted(apart([*copies, *same]))))
    for token in source:
        token.copy = copies.get((token.start, token.end))
        token.is_word = token.is_word or token.copy is not None
    return source, list(_tokens(translation, others))


def _occurrences(sentence: str, copies: Iterable[Span], text: str) -> list[Span]:
    """Find protected words, but beside a letter only if the sentence has that letter there."""
    beside = defaultdict(set)
    for start, end in copies:
        beside[_folded(sentence[start:end])].add(_letters_beside(sentence, start, end))
    spans = []
    for word in sorted({sentence[start:end] for start, end in copies}, key=len, reverse=True):
        pattern = r"\s+".join(map(re.escape, word.split()))
        for match in re.finditer(pattern, text, re.IGNORECASE):
            before, behind = _letters_beside(text, *match.span())
            if any(
                before in ("", one) and behind in ("", two) for one, two in beside[_folded(word)]
            ):
                spans.append(match.span())
    return sorted(apart(spans))


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _letters_beside(text: str, start: int, end: int) -> tuple[str, str]:
    """The letters directly before and behind a word; empty beside a sign or a space."""
    before, behind = text[max(0, start - 1) : start + 1], text[end - 1 : end + 1]
    before = before[0] if TWO_LETTERS.fullmatch(before) else ""
    behind = behind[1] if TWO_LETTERS.fullmatch(behind) else ""
    return before.casefold(), behind.casefold()


def _tokens(text: str, copies: Sequence[Span]) -> Iterator[TextToken]:
    """Yield the words and signs of a text, in which each of `copies` is one word."""
    word_starts = [match.start() for match in re.finditer(r"\S+", text)]
    spans = []
    done = 0
    for start, end in [*copies, (len(text), len(text))]:
        spans += [match.span() for match in TOKEN.finditer(text, done, start)]
        spans.append((start, end))
        done = end
    done = 0
    for start, end in spans[:-1]:
        folded = _folded(SEPARATOR.sub("", text[start:end]))
        word = bisect_right(word_starts, start) - 1
        is_word = text[start].isalnum() or text[start] == "_"
        yield TextToken(start, end, folded, word, is_word, text[done:start])
        done = end


def _connect(
    source: Sequence[TextToken], target: Sequence[TextToken], links: Links
) -> dict[TextToken, TextToken]:
    """Connect tokens by rules 2 to 4, and return the connected tokens with the same text."""
    same = _same_tokens(source, target)
    linked = _linked(source, target, links)
    tokens_of_word = defaultdict(list)
    for token in target:
        tokens_of_word[token.word].append(token)
    for token in source:
        words = sorted(linked[token.word])
        if token in same and (token.copy or not words or same[token].word in words):
            token.targets = [same[token]]
        elif token.copy is None:
            same.pop(token, None)
            for other in itertools.chain.from_iterable(tokens_of_word[word] for word in words):
                if other.is_plain if token.is_word else other.text == token.text:
                    token.targets.append(other)
    return same


def _same_tokens(
    source: Sequence[TextToken], target: Sequence[TextToken]
) -> dict[TextToken, TextToken]:
    """Pair tokens with the same text: in order if both texts contain it equally often.

    Otherwise only protected words are paired, each with the nearest token.
    """
    same: dict[TextToken, TextToken] = {}
    scale = target[-1].end / source[-1].end if target else 1
    others = _by_text(target)
    for text, tokens in _by_text(source).items():
        free = others[text]
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


def _by_text(tokens: Iterable[TextToken]) -> defaultdict[str, list[TextToken]]:
    groups = defaultdict(list)
    for token in tokens:
        groups[token.text].append(token)
    return groups


def _linked(
    source: Sequence[TextToken], target: Sequence[TextToken], links: Links
) -> defaultdict[int, set[int]]:
    """The target words that each source word is linked to, except clauses."""
    source_sizes, target_sizes = (
        Counter(token.word for token in tokens if token.is_word) for tokens in (source, target)
    )
    linked = defaultdict(set)
    for word, other in links:
        if source_sizes[word] <= CLAUSE and target_sizes[other] <= CLAUSE:
            linked[word].add(other)
    return linked


def _cut_at_marks(
    source: Sequence[TextToken],
    target: Sequence[TextToken],
    same: Mapping[TextToken, TextToken],
    offsets: Sequence[int],
) -> tuple[list[TextToken], list[TextToken]]:
    """Divide each word in which a mark begins or ends, and the same word of the translation."""
    parts = {}
    for token, other in same.items():
        inside = offsets[bisect_right(offsets, token.start) : bisect_left(offsets, token.end)]
        lengths = [offset - token.start for offset in inside]
        parts[token], parts[other] = _parts(token, lengths), _parts(other, lengths)
        for part, other_part in zip(parts[token], parts[other], strict=True):
            part.targets = [other_part]
    source_parts, target_parts = (
        [part for token in tokens for part in parts.get(token, [token])]
        for tokens in (source, target)
    )
    return source_parts, target_parts


def _parts(token: TextToken, lengths: Iterable[int]) -> list[TextToken]:
    """Divide a token at distances from its beginning."""
    parts = [token]
    for length in lengths:
        offset = min(token.start + length, token.end)
        parts.append(replace(token, start=offset, space=""))
    for part, following in itertools.pairwise(parts):
        part.end = following.start
    return parts


def _with_lost_copies(alignment: _Alignment) -> list[TextToken]:
    """Return the tokens of the translation, with the protected words that it lacks: rule 2."""
    source, target = alignment.source, alignment.target
    last = len(source)  # behind it only lost words and the end of the sentence
    while last and (source[last - 1].is_lost or source[last - 1].text in FINAL):
        last -= 1
    end = len(target)
    while end and target[end - 1].text in FINAL:
        end -= 1
    inserted = defaultdict(list)
    for number, token in enumerate(source):
        if token.is_lost:
            position = alignment.after(number, not token.space) if number < last else end
            inserted[position].append(replace(token, space="", source=token, targets=[]))
    tokens = []
    for number in range(len(target) + 1):
        tokens += [*inserted[number], *target[number : number + 1]]
    for token in tokens:
        if token.source:
            token.source.targets = [token]
    return tokens


def _separate_copies(target: Sequence[TextToken], sentence: str) -> None:
    """Separate words from protected words where the sentence does."""
    for left, right in itertools.pairwise(target):
        if not right.space and _lacks_space(left, right, f" {sentence} "):
            right.space = " "


def _lacks_space(left: TextToken, right: TextToken, around: str) -> bool:
    """Whether a protected word touches a word that it does not touch in the sentence."""
    if not (left.is_word and right.is_word):
        return False
    if re.search(f"[{UNSPACED}]", left.text[-1] + right.text[0]):
        return False
    if left.source and right.source:
        return left.source.end != right.source.start
    if left.source:
        return not GLUE.match(around, left.source.end + 1)
    return right.source is not None and not GLUE.match(around, right.source.start)


class _Alignment:
    """The tokens of a sentence, connected to tokens of its translation."""

    def __init__(self, source: Sequence[TextToken], target: Sequence[TextToken]) -> None:
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
                self._knots.append((number, token.targets[0].number))
                self._knots.append((number + 1, token.targets[-1].number + 1))
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
        has_words = any(token.is_word for token in self.source[first:last])
        numbers = (has_words and self._words) or range(len(self.target))
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


# --- Marks --------------------------------------------------------------------------------------


def _place_breaks(
    breaks: Sequence[Mark], sentence: str, translation: str, target: list[TextToken]
) -> list[tuple[int, int]]:
    """Break the translation at about the same relative positions: rule 8.

    In a translation with few words, line ends are dropped, but no cues. The result contains, for
    each cue, its end in the sentence and the number of the target token behind it.
    """
    words_before = list(itertools.accumulate((one.is_word for one in target), initial=0))
    words = words_before[-1]
    fixed = [mark for mark in breaks if mark.piece.name in ("cue", "br")]
    lines = [mark for mark in breaks if mark not in fixed][: max(0, words - 1 - len(fixed))]
    breaks = sorted([*fixed, *lines], key=lambda mark: mark.number)
    possible = [
        number
        for number in range(1, len(target))
        if _may_break(target[number - 1], target[number], translation)
    ]
    scale = len(translation) / len(sentence)
    cues = []
    done = 0
    for number, mark in enumerate(breaks):
        before = words_before[done]
        needed = max(1, min(len(breaks) - number, words - before - 1))  # words behind it
        free = [
            one for one in possible if one > done and before < words_before[one] <= words - needed
        ]
        if free:
            done = min(free, key=lambda one: abs(target[one - 1].end - mark.start * scale))
            target[done].space = mark.piece.raw
        elif mark in fixed:
            done = len(target)
            target.append(TextToken(0, 0, "", -1, is_word=False, space=mark.piece.raw))
        else:
            continue
        if mark.piece.role is Role.CUE:
            cues.append((mark.start, done))
    return cues


def _may_break(left: TextToken, right: TextToken, translation: str) -> bool:
    """Whether a line may end between two tokens of the translation."""
    if right.copy:
        return right.space != ""
    if right.space:
        return not NO_BEGINNING.match(translation, right.start)
    is_unspaced = re.search(f"[{NO_SPACES}]", left.text[-1] + right.text[0])
    return right.text[0] not in CLOSING and is_unspaced is not None


class _Placing:
    """Places the marks of a sentence among the tokens of its translation."""

    def __init__(
        self, alignment: _Alignment, cues: Iterable[tuple[int, int]], sentence: str
    ) -> None:
        self._alignment = alignment
        self._sentence = sentence
        self._cues = [(alignment.numbers(end, end)[0], number) for end, number in cues]
        self._words = [number for number, one in enumerate(alignment.target) if one.is_word]
        self._words_before, self._source_words_before = (
            list(itertools.accumulate((one.is_word for one in tokens), initial=0))
            for tokens in (alignment.target, alignment.source)
        )

    def place(self, element: Mark, area: Span) -> None:
        """Place an element around target tokens, and the marks that it contains among them."""
        element.target = 2 * area[0] + 1, max(2 * area[0] + 1, 2 * area[1])
        elements = [mark for mark in element.inside if mark.start < mark.end]
        wanted = [self._wanted(mark, element, area) for mark in elements]
        for mark, tokens in self._shared_out(elements, wanted, area):
            self.place(mark, tokens)
        for mark in element.inside:
            if mark.start == mark.end:
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
        order = sorted(zip(wanted, elements, strict=True), key=lambda one: (one[0], one[1].number))
        remaining = sum(map(self._need, elements))
        done = area[0]
        for (left, right), mark in order:
            need = self._need(mark)
            remaining -= need
            limit = self._leaving(remaining, (done, area[1]))
            left = max(done, min(left, self._leaving(need, (done, limit))))
            right = max(self._holding(need, left, area[1]), min(right, limit))
            done = max(left, right)
            yield mark, (left, done)

    def _need(self, mark: Mark) -> int:
        """The number of words that an element needs so that each element in it gets a word."""
        if mark.start == mark.end:
            return 0  # a point within a word needs no word
        first, last = self._alignment.numbers(mark.start, mark.end)
        has_words = self._source_words_before[first] < self._source_words_before[last]
        return max(has_words, sum(map(self._need, mark.inside)))

    def _leaving(self, count: int, area: Span) -> int:
        """The last position in an area with `count` words after it, or the beginning."""
        number = self._words_before[area[1]] - count
        if count == 0:
            return area[1]
        return max(area[0], self._words[number]) if number >= 0 else area[0]

    def _holding(self, count: int, start: int, end: int) -> int:
        """The first position with `count` words between it and `start`, or the last word's end."""
        last = min(self._words_before[start] + count, self._words_before[end])
        return self._words[last - 1] + 1 if last > self._words_before[start] else start

    def _point(self, mark: Mark, around: Mark, area: Span) -> int:
        """The position of an image, a comment or a footnote: rule 7."""
        alignment = self._alignment
        first, last = alignment.numbers(around.start, around.end)
        behind, before = alignment.numbers(mark.start, mark.start)  # differ within a word
        if before <= first:
            return 2 * area[0] + 1
        neighbours = self._sentence[mark.start - 1 : mark.start + 1]
        if behind >= last and not neighbours[0].isalnum():
            return 2 * area[1]
        is_apart = neighbours[0] == " " or mark.piece.role is Role.OPEN
        if is_apart and neighbours[1:].strip():
            return 2 * alignment.span_in_target(behind, behind + 1)[0] + 1
        return 2 * alignment.after(before, neighbours[0] != " ")


def _within(number: int, area: Span) -> int:
    return min(max(number, area[0]), area[1])


def _written(around: Mark, parts: Sequence[str]) -> Iterator[str]:
    """Yield a mark's spaces and tokens with the marks among them."""
    done, end = around.target
    for mark in sorted(around.inside, key=lambda one: (one.target, one.number)):
        left = _within(mark.target[0], (done, end))
        right = _within(mark.target[1], (left, end))
        mark.target = left, right
        inside = "".join(_written(mark, parts))
        yield from parts[done:left]
        if inside or mark.start == mark.end or not mark.piece.name.startswith(EMPHASIS):
            is_point, is_before_word = mark.start == mark.end, left % 2 == 1
            if is_point and mark.follows_space and not is_before_word:
                yield " "
            yield mark.piece.raw + inside + mark.end_tag
            if is_point and mark.precedes_space and is_before_word:
                yield " "
        done = right
    yield from parts[done:end]
