"""A text as sentences and whitespace, and long sentences as clauses.

Whatever is cut here gives the text back, character for character, when it is joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import sentencex

from tfformer.text.kept_words import kept_pattern

GAP = r"\t\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029"  # ends of lines, and of columns
# Characters without width, which may stand beside a space: of breaks, joins and directions.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
EDGES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + INVISIBLE
LINE = re.compile(f"[^{GAP}]+|[{GAP}]+")
# Of a list, a list of tasks, a quotation.
MARKER = re.compile(r"(?:(?:[-*+•‣◦·–—>#]+|\d{1,3}[.)]|\(?[a-z]\)|\[[ xX]\])\s+)+")
LETTER = re.compile(r"[^\W\d_]")
WORD = re.compile(r"\s*\S{1,40}|\s+")  # of a word without a space, 40 characters at a time
STRONG_STOP = re.compile(r"[.!?;:…。！？；：।؟][\"'”’»)\]]*$|\s[-–—]+$|—$")
WEAK_STOP = re.compile(r"[,，、،)\]»”–]$")
STOPS_WITHIN = (".", "!", "?", "‼", "⁉")  # of addresses, names of files and emoji
REACH = 200  # characters on both sides of a stop that may belong to one word
BLOCK = 5_000  # characters for sentencex at a time: some texts take it time by their square

CountTokens = Callable[[Sequence[str]], list[int]]


class Segment(NamedTuple):
    """A stretch of a text.

    Attributes:
        text: Its characters.
        is_sentence: Whether it is to be translated; otherwise it is whitespace, a list's marker or
            something else without a letter, and stays as it is.
    """

    text: str
    is_sentence: bool


def segments(text: str, language: str = "en") -> Iterator[Segment]:
    """Divide a text into sentences and the rest.

    A sentence ends at a full stop or the like, and in any case at the end of a line or a tab. Full
    stops of abbreviations, numbers and addresses do not end one, as `sentencex` knows for about 300
    languages.

    Args:
        text: Any text.
        language: The code of its language, such as "en" or "de-AT". An unknown one is divided as
            English is.

    Yields:
        Segments that give the text when they are joined. A sentence has no whitespace at its
            ends, nor characters without width.

    Raises:
        ValueError: The text holds half a surrogate pair, which is no Unicode character.

    Example:
        >>> [segment.text for segment in segments("Mr. A is here.  He sleeps.", "en")]
        ['Mr. A is here.', '  ', 'He sleeps.']
        >>> [segment.is_sentence for segment in segments("- Yes.")]
        [False, True]
    """
    check_unicode(text)
    for line in LINE.findall(text):
        start = _marker_end(line)
        if start:
            yield Segment(line[:start], is_sentence=False)
        for sentence in _sentences(line, start, language):
            yield from _without_edges(sentence)


def divided(
    sentence: str,
    count_tokens: CountTokens,
    max_tokens: int,
    whole: Iterable[tuple[int, int]] = (),
) -> list[str]:
    """Divide a sentence that is too long for a model into clauses that are not.

    It is cut behind a semicolon, colon or dash if there is one in the second half of the model's
    length, else behind a comma there, else between words, and within a word only if it is longer
    than 40 characters.

    Args:
        sentence: A sentence of any length. The time grows in proportion to it.
        count_tokens: The number of tokens of each of several texts.
        max_tokens: Tokens that the model takes.
        whole: The start and the end, in order, of stretches that are never cut. One that is too
            long by itself is a clause that is too long.

    Returns:
        Clauses that give the sentence when they are joined; the sentence itself if it is short.

    Example:
        >>> words = lambda texts: [len(text.split()) for text in texts]
        >>> divided("One two three, four five six seven.", words, max_tokens=4)
        ['One two three,', ' four five six seven.']
    """
    if count_tokens([sentence])[0] <= max_tokens:
        return [sentence]
    words = list(_words(sentence, whole))
    counts = count_tokens(words)
    clauses = []
    first = 0
    while first < len(words):
        last = _fitting(counts, first, max_tokens)
        if last < len(words):
            last = _clause_end(words, first, last)
        clauses.append("".join(words[first:last]))
        first = last
    return clauses


def _words(sentence: str, whole: Iterable[tuple[int, int]]) -> Iterator[str]:
    """Yield the words of a sentence, each with the whitespace before it."""
    done = 0
    for start, end in whole:
        words = WORD.findall(sentence[done:start])
        space = words.pop() if words and words[-1].isspace() else ""
        yield from words
        yield space + sentence[start:end]
        done = end
    yield from WORD.findall(sentence[done:])


def _sentences(line: str, start: int, language: str) -> Iterator[str]:
    """Divide a line from `start` on, in blocks.

    The last sentence of one begins the next.
    """
    while start < len(line):
        found = list(sentencex.segment(language, line[start : start + BLOCK]))
        if start + BLOCK < len(line) and len(found) > 1:
            found.pop()
        yield from _with_whole_words(found)
        start += sum(map(len, found))


def _with_whole_words(sentences: list[str]) -> Iterator[str]:
    """Yield sentences, joined where a stop stands in a word that stays: A.PDF."""
    held = ""
    for sentence in sentences:
        if held and not _is_within_word(held, sentence):
            yield held
            held = ""
        held += sentence
    yield held


def _is_within_word(before: str, behind: str) -> bool:
    """Whether a word that stays begins in one text and ends in the next."""
    if not before.endswith(STOPS_WITHIN):
        return False
    beginning = before[-REACH:].rpartition(" ")[2]
    end = behind[:REACH].partition(" ")[0]
    words = kept_pattern().finditer(beginning + end)
    return any(word.start() < len(beginning) < word.end() for word in words)


def _marker_end(line: str) -> int:
    """The length of a line's indentation and list marker.

    The first sentence of the item begins there.
    """
    start = len(line) - len(line.lstrip())
    marker = MARKER.match(line, start)
    return marker.end() if marker else start


def _without_edges(sentence: str) -> Iterator[Segment]:
    """Yield what cannot be seen around a sentence as segments of their own."""
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


def _fitting(counts: Sequence[int], first: int, max_tokens: int) -> int:
    """The end of the words from `first` on that fit, at least one word."""
    last = first + 1
    total = counts[first]
    while last < len(counts) and total + counts[last] <= max_tokens:
        total += counts[last]
        last += 1
    return last


def _clause_end(words: Sequence[str], first: int, last: int) -> int:
    """The best end of a clause in the second half of the words from `first` to `last`."""
    middle = (first + last) // 2
    for stop in (STRONG_STOP, WEAK_STOP):
        for end in range(last, middle, -1):
            if stop.search(words[end - 1]):
                return end
    return last


def check_unicode(text: str) -> None:
    """Raise ValueError for a text with half of a character, such as a lone surrogate."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"the text holds {text[error.start]!a}, which is no Unicode character; read it as UTF-8"
        ) from None
