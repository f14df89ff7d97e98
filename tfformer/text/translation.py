"""Whole texts translated by a function that takes sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tfformer.text import plain
from tfformer.text.passages import Passage
from tfformer.text.segmentation import CountTokens, divided

PORTION = 512  # parts of a text that are held, translated and given out at a time

Translate = Callable[[list[str]], list[str]]
Align = Callable[[list[str], list[str]], Sequence[Sequence[tuple[int, int]]]]
Part = str | Passage  # of a text: one that stays, or one to translate

FORMATS: dict[str, Callable[[str, str], Iterator[Part]]] = {
    "lines": plain.read_lines,
    "text": plain.read_text,
}


@dataclass(frozen=True)
class TextTranslator:
    r"""Translates whole texts, by functions that know nothing of texts.

    Args:
        translate_sentences: Sentences in, as many translations out.
        align: Sentences and their translations in; out, of each pair, the links between source
            words and target words, counted from 0, where words are what stands between spaces.
            Without it markup is placed by the length of the words before it.
        count_tokens: Texts in, the number of the model's tokens of each out.
        max_tokens: Tokens that the model takes; a longer sentence is divided into clauses. None
            takes any length.
        language: The code of the source language, such as "en".

    Example:
        >>> shout = TextTranslator(lambda sentences: [text.upper() for text in sentences])
        >>> shout.translate("One. Two?\n\n  Three!\n")
        'ONE. TWO?\n\n  THREE!\n'
    """

    translate_sentences: Translate
    align: Align | None = None
    count_tokens: CountTokens | None = None
    max_tokens: int | None = None
    language: str = "en"

    def translate(self, text: str, format: str = "text") -> str:
        """Translate a text.

        Args:
            text: The text.
            format: "text" (paragraphs) or "lines" (one sentence a line).

        Returns:
            The translation. All that is not a sentence comes back as it is: blank lines,
            indentation, spaces at a line's end, line ends.

        Raises:
            ValueError: There is no such format, or the text holds no Unicode character.
        """
        return "".join(self.stream(text, format))

    def stream(self, text: str, format: str = "text") -> Iterator[str]:
        """Yield the translation in pieces, in order; otherwise as `translate`.

        A few hundred sentences are in work at a time, so the memory does not grow with the
        translation.
        """
        check_format(format)
        parts = FORMATS[format](text, self.language)
        while portion := list(itertools.islice(parts, PORTION)):
            yield from self._translated(portion)

    def _translated(self, parts: Sequence[Part]) -> Iterator[str]:
        """Translate the passages of a portion together."""
        clauses = [clause for part in parts for clause in self._clauses(part)]
        sentences = [clause.text for clause in clauses if isinstance(clause, Passage)]
        translations = iter(self.translate_sentences(sentences) if sentences else [])
        for clause in clauses:
            yield next(translations) if isinstance(clause, Passage) else clause

    def _clauses(self, part: Part) -> Iterable[Part]:
        """Divide a passage that is too long for the model."""
        if isinstance(part, str) or self.count_tokens is None or self.max_tokens is None:
            return [part]
        clauses: list[Part] = []
        for clause in divided(part.text, self.count_tokens, self.max_tokens):
            words = clause.lstrip()
            clauses += [clause[: len(clause) - len(words)], Passage(words)]
        return clauses


def translate_text(
    text: str,
    translate: Translate,
    format: str = "text",
    *,
    align: Align | None = None,
    count_tokens: CountTokens | None = None,
    max_tokens: int | None = None,
    language: str = "en",
) -> str:
    """Translate a whole text by a function that takes sentences.

    The arguments are those of `TextTranslator`, which gives the translation in pieces too.

    Example:
        >>> translate_text("One. Two?", lambda sentences: [text.upper() for text in sentences])
        'ONE. TWO?'
    """
    translator = TextTranslator(translate, align, count_tokens, max_tokens, language)
    return translator.translate(text, format)


def check_format(format: str) -> None:
    """Raise ValueError if there is no such format."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(FORMATS)}")
