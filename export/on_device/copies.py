"""Keeps words as they are, around any function that translates sentences, with Python alone.

A model that was trained with placeholders (⟦1⟧) copies them: it gets one in place of each word that
stays. Where one of them does not come back, it gets the sentence as it is, and a word that is then
missing is put at its share of the translation.
"""

import re
from collections.abc import Callable
from pathlib import Path

PLACEHOLDER = "⟦{}⟧"
Translate = Callable[[list[str]], list[str]]


def read_phrases(path: str) -> list[str]:
    """Return the words and phrases of a file, one a line; blank lines are none.

    Raises:
        ValueError: The file cannot be read, or is not UTF-8.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}); give a text file") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8; convert it first") from None
    return [line.strip() for line in lines if line.strip()]


def keeping(phrases: list[str], translate: Translate) -> Translate:
    """Return a function that translates and keeps phrases.

    Args:
        phrases: Words and phrases that come out as they went in.
        translate: Sentences in, as many translations out.

    Example:
        >>> shout = keeping(["Foo Inc"], lambda sentences: [one.upper() for one in sentences])
        >>> shout(["The dog of Foo Inc sleeps."])
        ['THE DOG OF Foo Inc SLEEPS.']
    """
    if not phrases:
        return translate
    longest_first = sorted(phrases, key=len, reverse=True)
    pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest_first))})(?!\w)")

    def translate_and_keep(sentences: list[str]) -> list[str]:
        marked = translate([_with_placeholders(pattern, sentence) for sentence in sentences])
        found = [
            _with_words(pattern.findall(sentence), translation)
            for sentence, translation in zip(sentences, marked, strict=True)
        ]
        lost = [sentence for sentence, whole in zip(sentences, found, strict=True) if whole is None]
        again = iter(translate(lost) if lost else [])
        return [
            _with_missing(pattern, sentence, next(again)) if whole is None else whole
            for sentence, whole in zip(sentences, found, strict=True)
        ]

    return translate_and_keep


def _with_placeholders(pattern: re.Pattern[str], sentence: str) -> str:
    numbers = iter(range(1, len(sentence) + 1))
    return pattern.sub(lambda _: PLACEHOLDER.format(next(numbers)), sentence)


def _with_words(words: list[str], translation: str) -> str | None:
    """The translation with words in place of their placeholders; None unless each is there once."""
    for number, word in enumerate(words, start=1):
        before, placeholder, after = translation.partition(PLACEHOLDER.format(number))
        if not placeholder or placeholder in after:
            return None
        translation = before + word + after
    return translation


def _with_missing(pattern: re.Pattern[str], sentence: str, translation: str) -> str:
    """The translation with the words that it lacks, each at its share of the sentence."""
    for found in pattern.finditer(sentence):
        word = found[0]
        wanted = len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", sentence[: found.end()]))
        if len(re.findall(rf"(?<!\w){re.escape(word)}(?!\w)", translation)) < wanted:
            words = translation.split(" ")
            place = round(found.start() / len(sentence) * len(words))
            translation = " ".join([*words[:place], word, *words[place:]])
    return translation
