"""Glossaries: how certain words and phrases are to be translated."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tfformer.text.marked_sentence import MarkedSentence, Piece, Role, cut
from tfformer.text.protected_words import LETTER
from tfformer.text.segmentation import Span

# A word, with its hyphens, or a sign. Each character of a script without spaces is a sign.
WORD = re.compile(rf"{LETTER}+(?:[-\u2010\u2011]{LETTER}+)*|\S")


class Term(NamedTuple):
    """A row of a glossary."""

    source: str
    target: str
    note: str = ""  # for people


class Glossary:
    """Translations of terms, which are words or phrases.

    A term in lower case also matches Capitalised and IN CAPITALS; other terms match as they are
    written. A term does not match inside a longer word. Where several terms match, the longest
    is used.

    Args:
        terms: The rows.
        name: What errors call the glossary, such as its file name.

    Raises:
        ValueError: A row is empty, or repeats or contradicts an earlier row.

    Example:
        >>> glossary = Glossary([Term("engine", "Motor"), Term("search engine", "Suchmaschine")])
        >>> [term.target for _, term in glossary.matches("Engines? Search engine, ENGINE.")]
        ['Suchmaschine', 'Motor']
    """

    def __init__(self, terms: Iterable[Term], name: str = "glossary") -> None:
        self.terms = list(terms)
        self._rows: dict[tuple[str, ...], int] = {}
        for number, term in enumerate(self.terms, start=1):
            words = tuple(WORD.findall(term.source))
            if not words or not term.target.strip():
                raise ValueError(
                    f"{name}, line {number}: a term and its translation must not be empty; "
                    "complete the line or delete it"
                )
            earlier = self._rows.setdefault(words, number)
            if earlier != number:
                other = self.terms[earlier - 1].target
                verb = "repeats" if other == term.target else "contradicts"
                raise ValueError(
                    f"{name}, line {number}: {term.source!r} = {term.target!r} {verb} line "
                    f"{earlier}, {term.source!r} = {other!r}; delete one of the lines"
                )
        self._longest = max(map(len, self._rows), default=0)

    @classmethod
    def read(cls, lines: Iterable[str], name: str = "glossary") -> Glossary:
        r"""Read lines of source, tab, target, and optionally a tab and a note.

        Example:
            >>> Glossary.read(["engine\tMotor\ttechnical\n"]).terms
            [Term(source='engine', target='Motor', note='technical')]
        """
        terms = []
        for number, line in enumerate(lines, start=1):
            columns = [column.strip() for column in line.split("\t")]
            if len(columns) not in (2, 3):
                raise ValueError(
                    f"{name}, line {number}: {line.strip()[:60]!r} must be a term, a tab and its "
                    "translation, optionally with a tab and a note; correct the line"
                )
            terms.append(Term(*columns))
        return cls(terms, name)

    def matches(self, text: str) -> Iterator[tuple[Span, Term]]:
        """Yield the terms in a text with their positions, in order."""
        found = list(WORD.finditer(text))
        words = [match[0] for match in found]
        start = 0
        while start < len(words):
            for end in range(min(start + self._longest, len(words)), start, -1):
                phrase = tuple(words[start:end])
                number = self._rows.get(phrase) or self._rows.get(tuple(map(str.lower, phrase)))
                if number:
                    yield (found[start].start(), found[end - 1].end()), self.terms[number - 1]
                    start = end
                    break
            else:
                start += 1


def with_terms(sentence: MarkedSentence, glossary: Glossary) -> MarkedSentence:
    """Return a sentence whose terms are protected words, which are written as their translations.

    A term that contains markup or a protected word is not replaced.
    """
    text = sentence.text
    matches = list(glossary.matches(text))
    if not matches:
        return sentence
    ends = [*itertools.chain(*(span for span, _ in matches)), len(text)]
    groups = cut(sentence.pieces, ends)
    pieces: list[Piece] = []
    for number, group in enumerate(groups):
        shown = [index for index, piece in enumerate(group) if piece.text]
        words = group[shown[0] : shown[-1] + 1] if shown else ()
        is_plain = all(piece.role is Role.TEXT for piece in words)
        if number % 2 == 0 or not words or not is_plain:
            pieces += group
            continue
        _, term = matches[number // 2]
        raw = "".join(sentence.escapes.get(character, character) for character in term.target)
        translated = Piece(raw, term.target, Role.COPY)
        pieces += [*group[: shown[0]], translated, *group[shown[-1] + 1 :]]
    return sentence._replace(pieces=tuple(pieces))
