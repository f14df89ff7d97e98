"""Whole texts translated by a function that takes sentences."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tfformer.text import hypertext, markdown, plain, subtitles, xml_markup
from tfformer.text.blocks import BLOCK
from tfformer.text.copies import has_words, with_copies, without_strays
from tfformer.text.kept_words import kept_pattern
from tfformer.text.passages import Links, Part, Passage, Reader, cut, raw_text
from tfformer.text.segmentation import CountTokens, divided

MAX_CHARACTERS = 5_000  # of a sentence for a model whose tokens are not known
MARK = "\ufeff"  # of the order of bytes: it begins some files, and is no text
PORTION = 512  # parts of a text that are held, translated and given out at a time

Translate = Callable[[list[str]], list[str]]
Align = Callable[[list[str], list[str]], Sequence[Links]]

FORMATS: dict[str, Reader] = {
    "lines": plain.read_lines,
    "text": plain.read_text,
    "html": hypertext.read_html,
    "xml": xml_markup.read_xml,
    "markdown": markdown.read_markdown,
    "srt": subtitles.read_subtitles,
}


@dataclass(frozen=True)
class TextTranslator:
    r"""Translates whole texts, by functions that know nothing of texts.

    Args:
        translate_sentences: Sentences in, as many translations out.
        align: Sentences and their translations in; out, of each pair, the links between source
            words and target words, counted from 0, where words are the parts between spaces.
            Without it markup is placed by the length of the words before it.
        count_tokens: Texts in, the number of the model's tokens of each out.
        max_tokens: Tokens that the model takes; a longer sentence is divided into clauses. Without
            it one of more than 5,000 characters is.
        language: The code of the source language, such as "en".
        keep: Words and phrases that come out as they went in, besides addresses, placeholders,
            file names, numbers and emoji.
        placeholders: Symbols that the model has learned to copy, such as "⟦1⟧"; it gets them in
            place of what comes out as it went in.

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
    keep: Sequence[str] = ()
    placeholders: Sequence[str] = ()

    def translate(self, text: str, format: str = "text") -> str:
        """Translate a text.

        Args:
            text: The text.
            format: "text" (paragraphs), "lines" (one sentence a line), "html", "xml", "markdown" or
                "srt" (SubRip's subtitles).

        Returns:
            The translation. All that is not a sentence comes back as it is: blank lines,
            indentation, spaces at a line's end, line ends, markup, code.

        Raises:
            ValueError: There is no such format, the text holds no Unicode character, or it is not
                well-formed XML.
        """
        return "".join(self.stream(text, format))

    def stream(self, text: str | Iterable[str], format: str = "text") -> Iterator[str]:
        """Yield the translation in pieces, in order; otherwise as `translate`.

        A few hundred sentences are in work at a time. Where the text comes in parts, such as the
        lines of a file, no more of "text", "lines" and "html" is held; the others are read as a
        whole.

        Args:
            text: The text, or its parts.
            format: As in `translate`.

        Yields:
            Pieces that give the translation when they are joined.
        """
        check_format(format)
        text_parts = iter([text] if isinstance(text, str) else text)
        first = next(filter(None, text_parts), "")
        if first.startswith(MARK):
            yield MARK
        rest = itertools.chain([first.removeprefix(MARK)], text_parts)
        parts = FORMATS[format](rest, self.language)
        for portion in _portions(parts):
            yield from self._translated(portion)

    def _translated(self, parts: Sequence[Part]) -> Iterator[str]:
        """Translate the passages of a portion together."""
        clauses = [clause for part in parts for clause in self._clauses(self._kept(part))]
        passages = [clause for clause in clauses if isinstance(clause, Passage)]
        filled = iter(self._filled(passages))
        for clause in clauses:
            yield next(filled) if isinstance(clause, Passage) else clause

    def _filled(self, passages: Sequence[Passage]) -> list[str]:
        """Translate passages, with their markup."""
        texts = [passage.text for passage in passages]
        translations = self._of_model(texts) if texts else []
        marked = [number for number, passage in enumerate(passages) if passage.has_marks]
        links: dict[int, Links] = {}
        if self.align is not None and marked:
            pairs = [(texts[number], translations[number]) for number in marked]
            sources, targets = (list(side) for side in zip(*pairs, strict=True))
            links = dict(zip(marked, self.align(sources, targets), strict=True))
        return [
            passage.filled(translation, links.get(number))
            for number, (passage, translation) in enumerate(
                zip(passages, translations, strict=True)
            )
        ]

    def _of_model(self, texts: list[str]) -> list[str]:
        """Translate sentences, without placeholders that the model made up."""
        return [
            without_strays(translation, text)
            for text, translation in zip(texts, self.translate_sentences(texts), strict=True)
        ]

    def _kept(self, part: Part) -> Part:
        """Mark the words of a passage that stay; a line of a corpus is all the model's.

        A passage of nothing else comes back as it is.
        """
        if isinstance(part, str) or part.is_line:
            return part
        passage = with_copies(part, kept_pattern(tuple(self.keep)), self.placeholders)
        return passage if has_words(passage) else raw_text(part.pieces)

    def _clauses(self, part: Part) -> Iterable[Part]:
        """Divide a passage that is too long for the model."""
        if isinstance(part, str):
            return [part]
        count_tokens, max_tokens = self.count_tokens, self.max_tokens
        if count_tokens is None or max_tokens is None:
            count_tokens, max_tokens = _characters, MAX_CHARACTERS
        clauses = divided(part.text, count_tokens, max_tokens, part.copies())
        if len(clauses) == 1:
            return [part]
        lengths = []
        for clause in clauses:
            words = clause.lstrip()
            lengths += [len(clause) - len(words), len(words)]
        return [
            _clause(Passage(group, part.escapes)) if number % 2 else raw_text(group)
            for number, group in enumerate(cut(part.pieces, lengths))
        ]


def _clause(passage: Passage) -> Part:
    """A clause for the model; one of copies alone stays as it is."""
    return passage if has_words(passage) or not any(passage.copies()) else raw_text(passage.pieces)


def _portions(parts: Iterable[Part]) -> Iterator[list[Part]]:
    """Yield up to `PORTION` parts together, of about as many characters as a block."""
    portion: list[Part] = []
    size = 0
    for part in parts:
        portion.append(part)
        size += len(part if isinstance(part, str) else part.text)
        if len(portion) == PORTION or size >= BLOCK:
            yield portion
            portion = []
            size = 0
    if portion:
        yield portion


def _characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def translate_text(
    text: str,
    translate: Translate,
    format: str = "text",
    *,
    align: Align | None = None,
    count_tokens: CountTokens | None = None,
    max_tokens: int | None = None,
    language: str = "en",
    keep: Sequence[str] = (),
) -> str:
    """Translate a whole text by a function that takes sentences.

    `TextTranslator` gives the translation in pieces too.

    Args:
        text: The text.
        translate: Sentences in, as many translations out.
        format: As in `TextTranslator.translate`.
        align: As in `TextTranslator`, like the arguments after it.
        count_tokens: The number of the model's tokens of each of several texts.
        max_tokens: Tokens that the model takes.
        language: The code of the source language.
        keep: Words and phrases that come out as they went in.

    Returns:
        The translation.

    Raises:
        ValueError: There is no such format, the text holds no Unicode character, or it is not
            well-formed XML.

    Example:
        >>> translate_text("One. Two?", lambda sentences: [text.upper() for text in sentences])
        'ONE. TWO?'
    """
    translator = TextTranslator(translate, align, count_tokens, max_tokens, language, keep)
    return translator.translate(text, format)


def check_format(format: str) -> None:
    """Raise ValueError if there is no such format."""
    if format not in FORMATS:
        raise ValueError(f"format={format!r} must be one of {', '.join(FORMATS)}")
