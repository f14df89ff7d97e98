"""Divides a text into sentences, and long sentences into clauses, with Python alone.

It knows the usual full stops and a few abbreviations; tfformer's own programs know those of many
languages.
"""

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO

STOP = (
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|\Z)|[。！？]++"  # the time grows with the length alone
)
LINE_ENDS = "\t\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"  # and ends of columns
SENTENCE = re.compile(f"[^{LINE_ENDS}]*?(?:{STOP})|[^{LINE_ENDS}]+")
# Characters without width, which may stand beside a space: of breaks, joins and directions.
INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e"
INVISIBLE += "\u2060\u2061\u2062\u2063\u2064\u2066\u2067\u2068\u2069\ufeff"
EDGES = "".join(filter(str.isspace, map(chr, range(0x3001)))) + INVISIBLE
# Of a list, a list of tasks, a quotation.
MARKER = re.compile(r" *(?:(?:[-*+•‣◦·–—>#]+|\d{1,3}[.)]|\(?[a-z]\)|\[[ xX]\]) +)+")
TITLES = "Mr|Mrs|Ms|Messrs|Dr|Drs|Prof|Rev|Capt|Col|Gen|Lt|Sgt|St|Mt"
OTHERS = "No|Nr|vs|etc|vol|fig|pp|lat|ca|bzw|usw"
ABBREVIATION = re.compile(rf"\b(?:\w|{TITLES}|{OTHERS})\.$")
SPEECH = re.compile(r"[?!][\"'”’»]$")  # which goes on where a small letter follows
LAST_WORD = 8  # characters that the longest abbreviation needs, with the one before it
CLAUSE_END = re.compile(r"[,;:)\]–—，；：、]\s*")
SPACE = re.compile(r"\s+")
WHOLE = re.compile("~*")
BLOCK = 2**16  # characters of a text that are held at a time
UTF_8 = codecs.getincrementaldecoder("utf-8")

Fits = Callable[[str], bool]  # whether a sentence is short enough for the model
Mask = Callable[[str], str]  # a text in, one as long out, with ~ in place of what stays whole
Translate = Callable[[list[str]], list[str]]


def split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of a text, and whether each is a sentence.

    Joined they are the text.

    Example:
        >>> list(split("Mr. A is here.  He sleeps."))
        [('Mr. A is here.', True), ('  ', False), ('He sleeps.', True)]
    """
    begin = end = 0  # of the sentence
    for found in SENTENCE.finditer(text):
        start = max(found.start(), end)
        if begin == end:
            yield from _stretch(text[end:start])
            begin = _behind_marker(text, start)
            if begin > start:
                yield text[start:begin], False
        end = max(found.end(), begin)
        last_word = found[0][-LAST_WORD:]
        space, behind = text[end : end + 1], text[end + 1 : end + 2]
        is_abbreviated = ABBREVIATION.search(last_word) and space == " "
        goes_on = SPEECH.search(last_word) and space not in LINE_ENDS and behind.islower()
        if not (is_abbreviated or goes_on):
            yield from _stretch(text[begin:end])
            begin = end
    yield from _stretch(text[begin:])


def _behind_marker(text: str, start: int) -> int:
    """The place where a line's own text begins, if it has a marker and `start` is its beginning."""
    marker = MARKER.match(text, start) if text[start - 1 : start] in LINE_ENDS else None
    return marker.end() if marker else start


def clauses(sentence: str, fits: Fits, mask: Mask = str) -> Iterator[tuple[str, bool]]:
    """Yield a sentence in stretches that fit, as `split` yields a text.

    One that is too long is halved at a comma or the like, else at a space, as often as needed.

    Args:
        sentence: A sentence.
        fits: Whether a stretch is short enough for the model.
        mask: A text in, one of the same length out, with ~ in place of what is never cut.

    Example:
        >>> list(clauses("One two, three four.", lambda part: len(part) < 15))
        [('One two,', True), (' ', False), ('three four.', True)]
    """
    if fits(sentence) or len(sentence) < 2:
        yield from _stretch(sentence)
        return
    middle = _middle(mask(sentence))
    for half in (sentence[:middle], sentence[middle:]):
        yield from clauses(half, fits, mask)


def stretches(text: str, fits: Fits, mask: Mask = str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of a text as `split` does, with long sentences in clauses.

    Args:
        text: A text.
        fits: Whether a sentence is short enough for the model.
        mask: A text in, one of the same length out, with ~ in place of what is never cut.
    """
    end = 0
    for stretch, is_sentence in split(mask(text)):
        start, end = end, end + len(stretch)
        if is_sentence:
            yield from clauses(text[start:end], fits, mask)
        else:
            yield text[start:end], False


def translated(
    text: Iterable[str], translate: Translate, fits: Fits, size: int = 32, mask: Mask = str
) -> Iterator[str]:
    r"""Yield a text with its sentences translated; all else stays as it is.

    Args:
        text: A text in parts that end between sentences, as `blocks` yields them.
        translate: Sentences in, as many translations out.
        fits: Whether a sentence is short enough for the model.
        size: The most sentences that are translated together.
        mask: As in `stretches`.

    Example:
        >>> shout = lambda sentences: [sentence.upper() for sentence in sentences]
        >>> "".join(translated(["It is late.\n\n Go!"], shout, lambda sentence: True))
        'IT IS LATE.\n\n GO!'
    """
    held: list[tuple[str, bool]] = []
    for part in text:
        for stretch in stretches(part, fits, mask):
            held.append(stretch)
            if len(held) == size:
                yield from _filled(held, translate)
                held = []
    yield from _filled(held, translate)


def blocks(stream: BinaryIO) -> Iterator[str]:
    """Yield a stream of UTF-8 in blocks that end with a line; in a long line with a sentence.

    Raises:
        ValueError: A byte is not UTF-8.
    """
    decoder, held, done = UTF_8(), "", 0
    is_open = True
    while is_open:
        content = stream.read(BLOCK)
        is_open = bool(content)
        try:
            held += decoder.decode(content, final=not is_open)
        except UnicodeDecodeError as error:
            place = done + len(content) - len(error.object) + error.start + 1
            raise ValueError(f"the text is not UTF-8 at byte {place}; convert it first") from None
        done += len(content)
        end = _block_end(held) if is_open else len(held)
        if end:
            yield held[:end]
            held = held[end:]


def _block_end(text: str) -> int:
    """The place where a block ends best: 0 if the text is short and has no whole line."""
    line_end = text.rfind("\n") + 1
    if line_end or len(text) < BLOCK:
        return line_end
    *whole, _ = split(text)
    return sum(len(stretch) for stretch, _ in whole) or _middle(text)


def _middle(sentence: str) -> int:
    """The best place to cut a sentence in two, near its middle."""
    half = len(sentence) // 2
    for end in (CLAUSE_END, SPACE):
        places = [found.end() for found in end.finditer(sentence, half // 2, 3 * half // 2)]
        if places:
            return min(places, key=lambda place: abs(place - half))
    end = WHOLE.match(sentence, half).end()  # type: ignore[union-attr]
    start = len(sentence[:half].rstrip("~"))
    return end if end < len(sentence) else start or half


def _filled(held: list[tuple[str, bool]], translate: Translate) -> Iterator[str]:
    """Translate the sentences of some stretches together."""
    sentences = [stretch for stretch, is_sentence in held if is_sentence]
    translations = iter(translate(sentences) if sentences else [])
    for stretch, is_sentence in held:
        yield next(translations) if is_sentence else stretch


def _stretch(text: str) -> Iterator[tuple[str, bool]]:
    """A sentence without what cannot be seen around it, which comes by itself.

    What has no letter, such as a rule or a number, is none.
    """
    words = text.strip(EDGES)
    if not any(map(str.isalpha, words)):
        if text:
            yield text, False
        return
    start = text.find(words)
    end = start + len(words)
    for part, is_sentence in ((text[:start], False), (words, True), (text[end:], False)):
        if part:
            yield part, is_sentence
