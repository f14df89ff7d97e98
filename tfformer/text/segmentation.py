"""Divide a text into blocks, sentences and whitespace, and long sentences into clauses.

Joining the parts gives the original text, character for character.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import sentencex

from tfformer.text.languages import base_language
from tfformer.text.protected_words import protected_words

GAP = r"\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"  # ends of lines, and of columns
# Zero-width characters for breaks, joins and directions, which may occur beside a space.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
EDGES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + INVISIBLE
LINE = re.compile(f"[^{GAP}]+|[{GAP}]+")
# The indentation of a line, and the markers of a list, a task or a quotation.
MARKER = re.compile(
    r"\s*(?:(?:[-*+•‣◦·\u2010-\u2015\u2212>#]+|\d{1,3}[.)]|\(?[a-z]\)|\[[ xX]\])\s+)*"
)
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"\s*\S{1,40}|\s+")  # long words are cut after 40 characters
STRONG_STOP = re.compile(r"[.!?;:…。！？；：।؟][\"'”’»)\]]*$|\s[-–—]+$|—$")
WEAK_STOP = re.compile(r"[,，、،)\]»”–]$")
STOP = re.compile(r"[.!?…‼⁉:;。！？।]")
# Sentence ends that sentencex does not find: before a digit, in Khmer and in Tibetan.
MORE_ENDS = re.compile(r"[。！？｡][\"'”’»」』）)]*(?=\d)|[\u17d4\u17d5\u0f0d\u0f0e]+[ \xa0]*(?=\S)")
# A sentence in brackets, at the beginning of a line or behind another sentence.
BRACKETED = re.compile(
    r"(^[^\w\n]*?|[.!?…][\"'”’»)\]]*\s+)[(\[](?=[^\s()\[\]]+\s)([^()\[\]\n]{1,500}[.!?…])[)\]]"
    r"(?=\s+[^\sa-z])",
    re.MULTILINE,
)
NO_BEGINNING = re.compile(r"[,;:、，；：。．！？）)」』”’]")  # UAX 29, SB8a
QUOTED = re.compile("[」』][とっ]")  # 「はい。」と言った。
# Abbreviations and ordinals whose full stop does not end a sentence, depending on what follows.
BEFORE_NUMBER = re.compile(
    r"(?:^|[\s(\[])(?:vols?|figs?|eqs?|nos?|nrs?|pp?|chap|ch|secs?|sect|arts?|tabs?|app|ed|paras?|pts?"
    r"|thm|lem|prop|def|cor|ex|eqns?|refs?|approx|max|ca|cf|bd|abb|kap|cap|pág|núm"
    r"|lat|long|ff|sp|st|v|pagg?|núms?|blz|afb|str|č|рис|табл|гл|стр|пп|ст)\.\s*$",
    re.IGNORECASE,
)
NUMBER = re.compile(r"\d|[IVXLC]{2,}\b")
# An ordinal or the end of an abbreviation, before a lower-case letter, as in "J.-C. est né".
BEFORE_SMALL = re.compile(r"(?:^|[\s.\u2010\u2011-])(?:\d{1,3}|[^\W\d_])\.\s+$")
WITHIN = {
    "fr": re.compile(r"(?:^|[\s(«\"'’])(?:MM?|Mmes?|Mlles?|Mgr|Dr|Pr|St|Ste|Me)\.\s+$"),
    "nl": re.compile(r"(?:^|[\s(„\"])(?:[Dd]hr|[Mm]evr|[Dd]rs|[Ii]r|[Dd]s)\.\s+$"),
    "de": re.compile(
        r"(?:^|[\s(„\"])(?:d(?:er|ie|as|em|en|es)|[ivz]m|[abv]om|am|beim|zum|zur|ein(?:e[mnrs]?)?"
        r"|[mdsk]ein(?:e[mnrs]?)?|ihr(?:e[mnrs]?)?|unse?re?[mnrs]?|eue?re?[mnrs]?"
        r"|(?:dies|jen|welch|jed)e[mnrs]?|als|wurden?|bis|ab|seit|vor|nach|und)"
        r" \d{1,3}\.\s+$|(?:^|[\s(„\"])(?:Fa|Hrn?|Frl?|St|Dipl|Hl)\.\s+$",
        re.IGNORECASE,
    ),
}
BLOCK = 2**16  # characters of a text that are held in memory
BLOCK_END = re.compile(r"[.!?…][\"'”’»)\]]*\s+|[。！？；]+")
SPACE = re.compile(r"\s+")
SENTENCEX_BLOCK = 5_000  # characters at a time: for some texts, sentencex takes quadratic time

Span = tuple[int, int]  # start and end in a text
CountTokens = Callable[[Sequence[str]], list[int]]


class Segment(NamedTuple):
    """A span of a text."""

    text: str  # its characters
    # Whether it is translated. Other segments are white space, markers of lists and text without a
    # letter
    is_sentence: bool


def segments(
    text: str, language: str = "en", protected: Sequence[Span] | None = None
) -> Iterator[Segment]:
    """Divide a text into sentences and the text between them.

    A sentence ends at a full stop or similar punctuation, and always at the end of a line or at a
    tab. Full stops of abbreviations, numbers and addresses do not end a sentence; `sentencex` has
    rules for about 300 languages.

    Args:
        text: Any text.
        language: The code of its language, such as "en", "de-AT" or "deu_Latn". A text in an
            unknown language is divided like English.
        protected: The spans, in order, of protected words, in which no sentence ends; by default
            the matches of `protected_words`.

    Yields:
        Segments whose concatenation is the text. A sentence has no whitespace and no zero-width
        characters at its ends.

    Raises:
        ValueError: The text contains half a surrogate pair, which is not a Unicode character.

    Example:
        >>> [segment.text for segment in segments("Mr. A is here.  He sleeps.", "en")]
        ['Mr. A is here.', '  ', 'He sleeps.']
        >>> [segment.is_sentence for segment in segments("- Yes.")]
        [False, True]
    """
    check_unicode(text)
    if protected is None:
        protected = [match.span() for match in protected_words().finditer(text)]
    masked = BRACKETED.sub(r"\1“\2”", _without_stops(text, protected))  # as sentencex knows quotes
    start = 0
    for line in LINE.findall(masked):
        marker = MARKER.match(line)
        first = marker.end() if marker else 0
        if first:
            yield Segment(text[start : start + first], is_sentence=False)
        begin = start + first
        for sentence in _sentences(line, first, base_language(language)):
            yield from _without_edges(text[begin : begin + len(sentence)])
            begin += len(sentence)
        start += len(line)


def _without_stops(text: str, protected: Sequence[Span]) -> str:
    """The text with each stop in a protected word replaced by a letter."""
    masked = []
    last = 0
    for start, end in protected:
        masked += [text[last:start], STOP.sub("x", text[start:end])]
        last = end
    return "".join([*masked, text[last:]])


def divided(
    sentence: str,
    count_tokens: CountTokens,
    max_tokens: int,
    protected: Iterable[tuple[int, int]] = (),
) -> list[str]:
    """Divide a sentence that is too long for a model into clauses that are short enough.

    A clause ends after a full stop, semicolon, colon or dash in the second half of the words that
    fit, otherwise after a comma there, otherwise between words. Only a word of more than 40
    characters is cut. The spans in `protected`, in order, are never cut, even if one is too long.
    Joining the clauses gives the sentence. The time is proportional to the length of the sentence.

    Example:
        >>> words = lambda texts: [len(text.split()) for text in texts]
        >>> divided("One two three, four five six seven.", words, max_tokens=4)
        ['One two three,', ' four five six seven.']
    """
    if count_tokens([sentence])[0] <= max_tokens:
        return [sentence]
    words = list(_words(sentence, protected))
    counts = count_tokens(words)
    clauses = []
    first = 0
    while first < len(words):
        last = first + 1  # at least one word
        total = counts[first]
        while last < len(words) and total + counts[last] <= max_tokens:
            total += counts[last]
            last += 1
        if last < len(words):
            last = _clause_end(words, first, last)
        clauses.append("".join(words[first:last]))
        first = last
    return clauses


def _words(sentence: str, protected: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield the words of a sentence, each with the whitespace before it."""
    last = 0
    for start, end in protected:
        words = WORD.findall(sentence[last:start])
        space = words.pop() if words and words[-1].isspace() else ""
        yield from words
        yield space + sentence[start:end]
        last = end
    yield from WORD.findall(sentence[last:])


def _sentences(line: str, start: int, language: str) -> Iterator[str]:
    """Divide a line from `start` on, in blocks; a block's last sentence begins the next."""
    within = WITHIN.get(language)
    while start < len(line):
        pieces = list(sentencex.segment(language, line[start : start + SENTENCEX_BLOCK]))
        if start + SENTENCEX_BLOCK < len(line):
            ends = [
                number
                for number in range(1, len(pieces))
                if not _goes_on(pieces[number - 1], pieces[number], within)
            ]
            if ends:  # a block without an end is passed on whole
                del pieces[ends[-1] :]
        start += sum(map(len, pieces))
        held = ""
        for sentence in pieces:
            if held and not _goes_on(held, sentence, within):
                yield from _at_other_ends(held)
                held = ""
            held += sentence
        yield from _at_other_ends(held)


def _goes_on(before: str, behind: str, within: re.Pattern[str] | None) -> bool:
    """Whether two sentences of sentencex are parts of one sentence."""
    end = before[-40:]
    is_glued = end[-1] == "." and (behind[0].isalnum() or behind[0] == "-")
    if is_glued or NO_BEGINNING.match(behind) or QUOTED.match(end[-1] + behind[0]):
        return True
    if behind[0].islower() and BEFORE_SMALL.search(end):
        return True
    if NUMBER.match(behind) and BEFORE_NUMBER.search(end):
        return True
    return within is not None and within.search(end) is not None


def _at_other_ends(sentence: str) -> Iterator[str]:
    start = 0
    for match in MORE_ENDS.finditer(sentence):
        yield sentence[start : match.end()]
        start = match.end()
    if sentence[start:]:
        yield sentence[start:]


def _without_edges(sentence: str) -> Iterator[Segment]:
    """Yield a sentence, and the invisible characters around it as other segments."""
    words = sentence.strip(EDGES)
    begin = sentence.find(words)
    end = begin + len(words)
    if not LETTER.search(words):
        yield Segment(sentence, is_sentence=False)
        return
    stretches = ((sentence[:begin], False), (words, True), (sentence[end:], False))
    for text, is_sentence in stretches:
        if text:
            yield Segment(text, is_sentence)


def _clause_end(words: Sequence[str], first: int, last: int) -> int:
    """The best end of a clause in the second half of the words from `first` to `last`."""
    middle = (first + last) // 2
    for stop in (STRONG_STOP, WEAK_STOP):
        for end in range(last, middle, -1):
            if stop.search(words[end - 1]):
                return end
    return last


def apart(spans: Iterable[Span]) -> list[Span]:
    """Return the spans that do not overlap an earlier span of the result."""
    taken: set[int] = set()
    free = []
    for start, end in spans:
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            free.append((start, end))
    return free


def check_unicode(text: str) -> None:
    """Raise ValueError for a text that contains half a character, such as a lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text contains {text[error.start]!a}, which is not a Unicode character; read it "
            "as UTF-8"
        ) from None


def blocks(parts: Iterable[str]) -> Iterator[str]:
    """Yield a text in blocks of at most twice `BLOCK` characters that end at a line end.

    Within a line that is longer than a block, a block ends after a sentence, otherwise between
    words.
    """
    held = ""
    for part in parts:
        for start in range(0, len(part), BLOCK):
            held += part[start : start + BLOCK]
            if len(held) >= BLOCK:
                end = block_end(held)
                yield held[:end]
                held = held[end:]
    if held:
        yield held


def block_end(text: str) -> int:
    """Return the best position for the end of a block in a long text."""
    line_end = text.rfind("\n") + 1
    if line_end:
        return line_end
    for pattern in (BLOCK_END, SPACE):
        ends = [match.end() for match in pattern.finditer(text, len(text) // 2)]
        if ends:
            return ends[-1]
    return len(text)
