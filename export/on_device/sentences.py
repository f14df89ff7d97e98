"""Divides a text into sentences, with Python alone.

It knows the usual full stops and a few abbreviations; tfformer's own programs know those of many
languages.
"""

import re
from collections.abc import Callable, Iterator

STOP = (
    r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+(?=\s|$)|[。！？]++"  # the time grows with the length alone
)
SENTENCE = re.compile(rf"[^\n]*?(?:{STOP})|[^\n]+", re.MULTILINE)
ABBREVIATION = re.compile(r"\b(?:\w|Mr|Mrs|Ms|Dr|Prof|St|No|Nr|vs|etc|ca|bzw|usw)\.$")
LONGEST_ABBREVIATION = 6  # characters, with the stop and the one before it


def split(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the stretches of a text, and whether each is a sentence.

    Joined they are the text.

    Example:
        >>> list(split("Mr. A is here.  He sleeps."))
        [('Mr. A is here.', True), ('  ', False), ('He sleeps.', True)]
    """
    begin = end = 0  # of the sentence
    for found in SENTENCE.finditer(text):
        if begin == end:
            yield from _stretch(text[end : found.start()])
            begin = found.start()
        end = found.end()
        last_word = found[0][-LONGEST_ABBREVIATION:]
        if not (ABBREVIATION.search(last_word) and text[end : end + 1] == " "):
            yield from _stretch(text[begin:end])
            begin = end
    yield from _stretch(text[begin:])


def translated(text: str, translate: Callable[[list[str]], list[str]]) -> str:
    r"""Return a text with its sentences translated; all else stays as it is.

    Example:
        >>> translated("It is late.\n\n Go!", lambda sentences: [s.upper() for s in sentences])
        'IT IS LATE.\n\n GO!'
    """
    stretches = list(split(text))
    sentences = [stretch for stretch, is_sentence in stretches if is_sentence]
    translations = iter(translate(sentences))
    return "".join(next(translations) if is_one else stretch for stretch, is_one in stretches)


def _stretch(text: str) -> Iterator[tuple[str, bool]]:
    """A sentence without the whitespace around it, which comes by itself.

    What has no letter, such as a rule or a number, is none.
    """
    words = text.strip()
    if not any(map(str.isalpha, words)):
        if text:
            yield text, False
        return
    start = len(text) - len(text.lstrip())
    end = start + len(words)
    for part, is_sentence in ((text[:start], False), (words, True), (text[end:], False)):
        if part:
            yield part, is_sentence
