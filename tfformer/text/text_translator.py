"""Translate whole documents with any function that translates sentences."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tfformer.special_ids import PLACEHOLDER
from tfformer.text.formats.html import read_html
from tfformer.text.formats.markdown import read_markdown
from tfformer.text.formats.plain import read_lines, read_text
from tfformer.text.formats.srt import read_subtitles
from tfformer.text.formats.xml import read_xml
from tfformer.text.glossary import Glossary, with_terms
from tfformer.text.marked_sentence import (
    MarkedSentence,
    Part,
    Piece,
    Reader,
    Reading,
    Role,
    cut,
    raw_text,
)
from tfformer.text.placing import Links, needs_links, with_marks
from tfformer.text.segmentation import BLOCK, CountTokens, divided

MAX_CHARACTERS = 5_000  # sentence limit for a model whose tokens are not known
MARK = "\ufeff"  # byte order mark: some files begin with it
SAID = re.compile(r"[^\W_]")  # a letter or a number
PORTION = 512  # parts of a text that are held, translated and yielded at a time

T = TypeVar("T")
Translate = Callable[[list[str]], list[str]]
Align = Callable[[list[str], list[str]], Sequence[Links]]

FORMATS: dict[str, Reader] = {
    "lines": read_lines,
    "text": read_text,
    "html": read_html,
    "xml": read_xml,
    "markdown": read_markdown,
    "srt": read_subtitles,
}


@dataclass(frozen=True)
class TextTranslator:
    r"""Translates whole documents with a function that translates sentences.

    Args:
        translate_sentences: A function that returns the translation of each sentence in a list.
        align: A function of sentences and their translations that returns, for each pair, the links
            between source words and target words. Words are separated by spaces and counted from 0.
            Without links, markup is placed at equal words, and otherwise at the same relative
            position.
        count_tokens: A function that returns the number of the model's tokens in each text of a
            list.
        max_tokens: The model's limit; a longer sentence is divided into clauses. Without a limit,
            a sentence of more than 5,000 characters is divided.
        language: The code of the source language, such as "en".
        keep: Words and phrases to protect, in addition to addresses, file names, placeholders,
            identifiers and emoji.
        placeholders: Symbols that the model has learned to copy, such as "⟦1⟧". They replace
            protected words in its input.
        tags: Symbols that choose how the model translates, such as "<de>". A text that begins with
            a tag and a space is translated with the tag before each sentence. In the format
            "lines", a tag applies to its line only.
        target_language: The code of the target language, for the attribute `lang` of a page.
        attributes: Whether `alt`, `title`, `placeholder`, `aria-label` and a page's description are
            translated, as well as the text of images and the titles of images and links in
            Markdown.
        glossary: The translations of terms, which are inserted as protected words, so their form
            does not change.

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
    target_language: str | None = None
    attributes: bool = True
    glossary: Glossary | None = None
    tags: Sequence[str] = ()

    def translate(self, text: str, format: str = "text") -> str:
        """Translate a text.

        Args:
            text: The text.
            format: "text" (paragraphs), "lines" (one sentence per line), "html", "xml", "markdown"
                or "srt" (SubRip's subtitles).

        Returns:
            The translation. Blank lines, indentation, spaces at the end of a line, line ends,
            markup and code do not change.

        Raises:
            ValueError: The format is unknown, or the text contains half a surrogate pair or is not
                well-formed XML.
        """
        return "".join(self.stream(text, format))

    def stream(self, text: str | Iterable[str], format: str = "text") -> Iterator[str]:
        """Yield the translation in pieces, in order; otherwise like `translate`.

        The formats "text", "lines" and "html" are read in parts, a few hundred sentences at a time.
        The other formats are read as a whole.
        """
        if format not in FORMATS:
            raise ValueError(f"format={format!r} must be one of {', '.join(FORMATS)}")
        text_parts = iter([text] if isinstance(text, str) else text)
        first = next(filter(None, text_parts), "")
        if first.startswith(MARK):
            yield MARK
        first = first.removeprefix(MARK)
        for tag in self.tags:
            if first.startswith(f"{tag} ") and format != "lines":
                first = first.removeprefix(f"{tag} ")
                remaining = itertools.chain([first], text_parts)
                yield from self.with_tag(tag).stream(remaining, format)
                return
        remaining = itertools.chain([first], text_parts)
        reading = Reading(self.language, self.target_language, tuple(self.keep), self.attributes)
        parts = FORMATS[format](remaining, reading)
        for portion in portions(parts, _size, PORTION, BLOCK):
            yield from self._translated(portion)

    def with_tag(self, tag: str) -> TextTranslator:
        """Return a translator that puts a tag before each sentence."""

        def tagged(texts: Sequence[str]) -> list[str]:
            return [f"{tag} {text}" for text in texts]

        def align(sources: list[str], targets: list[str]) -> list[Links]:
            assert self.align is not None
            pairs = self.align(tagged(sources), targets)  # the tag is word 0
            return [[(word - 1, target) for word, target in links if word] for links in pairs]

        count_tokens = self.count_tokens
        return replace(
            self,
            translate_sentences=lambda texts: self.translate_sentences(tagged(texts)),
            align=align if self.align else None,
            count_tokens=(lambda texts: count_tokens(tagged(texts))) if count_tokens else None,
            tags=(),
        )

    def _translated(self, parts: Sequence[Part]) -> Iterator[str]:
        """Translate the sentences of attributes in a portion, then the other sentences."""
        attributes = [
            one
            for part in parts
            if isinstance(part, MarkedSentence)
            for piece in part.pieces
            for one in piece.within
        ]
        within = iter(self._filled(attributes))
        yield from self._filled([_with_attributes(part, within) for part in parts])

    def _filled(self, parts: Sequence[Part]) -> list[str]:
        """Return parts of a document with their sentences translated."""
        divided_parts = [list(self._clauses(part)) for part in parts]
        flat = itertools.chain.from_iterable(divided_parts)
        clauses = [clause for clause in flat if isinstance(clause, MarkedSentence)]
        texts = [clause.text for clause in clauses]
        translated = self.translate_sentences(texts) if texts else []
        translations = [
            translation.replace("\n", " ") if clause.is_line else translation
            for clause, translation in zip(
                clauses, map(without_strays, translated, texts), strict=True
            )
        ]
        links: dict[int, Links] = {}
        marked: list[int] = []
        if self.align is not None:
            both = enumerate(zip(clauses, translations, strict=True))
            marked = [number for number, pair in both if needs_links(*pair)]
        if self.align is not None and marked:
            sources = [texts[number] for number in marked]
            targets = [translations[number] for number in marked]
            links = dict(zip(marked, self.align(sources, targets), strict=True))
        results = map(with_marks, clauses, translations, map(links.get, range(len(clauses))))
        return [
            "".join(clause if isinstance(clause, str) else next(results) for clause in part)
            for part in divided_parts
        ]

    def _clauses(self, part: Part) -> Iterable[Part]:
        """Divide a sentence that is too long for the model, unless it is a line of a corpus."""
        if isinstance(part, str):
            return [part]
        if self.glossary is not None:
            part = with_terms(_with_tag_apart(part, self.tags), self.glossary)
            if part.copies() and not part.has_words:
                return [raw_text(part.pieces)]
        sentence = with_symbols(part, self.placeholders)
        if sentence.is_line:
            return [sentence]
        count_tokens, max_tokens = self.count_tokens, self.max_tokens
        if count_tokens is None or max_tokens is None:
            count_tokens, max_tokens = (lambda texts: list(map(len, texts))), MAX_CHARACTERS
        clauses = divided(sentence.text, count_tokens, max_tokens, sentence.copies())
        if len(clauses) == 1:
            return [sentence]
        ends = []
        for clause, end in zip(clauses, itertools.accumulate(map(len, clauses)), strict=True):
            ends += [end - len(clause.lstrip()), end]
        groups = cut(sentence.pieces, ends)
        parts = [sentence._replace(pieces=group) for group in groups]
        return [
            one if number % 2 and one.has_words else raw_text(one.pieces)
            for number, one in enumerate(parts)
        ]


def _with_tag_apart(sentence: MarkedSentence, tags: Sequence[str]) -> MarkedSentence:
    """Make the tag before a line of a corpus a piece that the model reads and nobody writes."""
    piece = sentence.pieces[0]
    for tag in tags:
        if sentence.is_line and piece.raw.startswith(f"{tag} "):
            words = piece.raw.removeprefix(f"{tag} ")
            return sentence._replace(pieces=(Piece("", f"{tag} ", Role.POINT), Piece(words, words)))
    return sentence


def _with_attributes(part: Part, within: Iterator[str]) -> Part:
    """Put translated attributes into the tags of a sentence."""
    if isinstance(part, str):
        return part
    pieces = []
    for piece in part.pieces:
        if piece.within:
            piece = piece._replace(raw="".join(next(within) for _ in piece.within), within=())
        pieces.append(piece)
    return part._replace(pieces=tuple(pieces))


def with_symbols(sentence: MarkedSentence, placeholders: Sequence[str]) -> MarkedSentence:
    """Replace protected words, code first, by placeholders that the sentence does not contain."""
    text = "".join(piece.text for piece in sentence.pieces)
    free = iter([symbol for symbol in placeholders if symbol not in text])
    pieces = list(sentence.pieces)
    for is_code in (True, False):
        for number, piece in enumerate(pieces):
            if piece.role is Role.COPY and (piece.raw != piece.text) is is_code:
                pieces[number] = piece._replace(text=next(free, piece.text))
    return sentence._replace(pieces=tuple(pieces))


def without_strays(translation: str, source: str) -> str:
    """Remove placeholders that occur more often in the translation than in the source.

    The space before each of them is removed too. If no letter or digit remains, the source is
    returned.

    Example:
        >>> without_strays("Um ⟦2⟧ in ⟦1⟧ ⟦1⟧.", "In ⟦1⟧.")
        'Um in ⟦1⟧.'
        >>> without_strays("⟦2⟧.", "Ah.")
        'Ah.'
    """
    symbols = Counter(PLACEHOLDER.findall(translation)) - Counter(PLACEHOLDER.findall(source))
    cleaned = translation
    for symbol, surplus in symbols.items():
        for _ in range(surplus):
            before, _, after = cleaned.rpartition(symbol)
            cleaned = before.removesuffix(" ") + after
    return cleaned if SAID.search(cleaned) else source


def _size(part: Part) -> int:
    return len(part if isinstance(part, str) else part.text)


def portions(
    items: Iterable[T], size_of: Callable[[T], int], count: int, size: int
) -> Iterator[list[T]]:
    """Yield up to `count` items at a time; an item with which they reach `size` is the last.

    Example:
        >>> list(portions(["a", "bb", "c"], len, count=2, size=3))
        [['a', 'bb'], ['c']]
    """
    portion: list[T] = []
    total = 0
    for item in items:
        portion.append(item)
        total += size_of(item)
        if len(portion) == count or total >= size:
            yield portion
            portion = []
            total = 0
    if portion:
        yield portion
