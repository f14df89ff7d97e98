"""Glossaries: how certain words and phrases are to be translated."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from tfformer.text.marked_sentence import MarkedSentence, Piece, Role, cut
from tfformer.text.placing import MARKS
from tfformer.text.protected_words import LETTER
from tfformer.text.segmentation import Span

MAX_WORDS = 100  # in a term; a limit, because each length is tried at each word of a text
WITH_MARKS = rf"(?:{LETTER}[{MARKS}]*)"  # a letter with its accents
# A word, with its hyphens, or a sign. Each character of a script without spaces is a sign.
WORD = re.compile(rf"{WITH_MARKS}+(?:[-\u2010\u2011]{WITH_MARKS}+)*|\S[{MARKS}]*")


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
        ValueError: A row is empty, or repeats or contradicts an earlier row, or its term has more
            than 100 words and signs.

    Example:
        >>> glossary = Glossary([Term("engine", "Motor"), Term("search engine", "Suchmaschine")])
        >>> [term.target for _, term in glossary.matches("Engines? Search engine, ENGINE.")]
        ['Suchmaschine', 'Motor']
    """

    def __init__(self, terms: Iterable[Term], name: str = "glossary") -> None:
        self.terms = list(terms)
        self._rows: dict[str, int] = {}
        lengths: defaultdict[str, set[int]] = defaultdict(set)
        for number, term in enumerate(self.terms, start=1):
            words = WORD.findall(term.source)
            if not words or not term.target.strip():
                raise ValueError(
                    f"{name}, line {number}: a term and its translation must not be empty; "
                    "complete the line or delete it"
                )
            if len(words) > MAX_WORDS:
                raise ValueError(
                    f"{name}, line {number}: {term.source[:60]!r} has {len(words):,} words and "
                    f"signs, but a term must have at most {MAX_WORDS}; shorten it"
                )
            earlier = self._rows.setdefault(" ".join(words), number)
            if earlier != number:
                source, target = term.source[:60], term.target[:60]
                other = self.terms[earlier - 1].target
                verb = "repeats" if other == term.target else "contradicts"
                raise ValueError(
                    f"{name}, line {number}: {source!r} = {target!r} {verb} line {earlier}, "
                    f"{source!r} = {other[:60]!r}; delete one of the lines"
                )
            lengths[words[0].lower()].add(len(words))
        # The numbers of words in the terms that begin with a word, the largest first
        self._lengths = {word: sorted(counts, reverse=True) for word, counts in lengths.items()}

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
        lowered = list(map(str.lower, words))
        phrases, lowered_phrases = _phrases(words), _phrases(lowered)
        start = 0
        while start < len(words):
            for length in self._lengths.get(lowered[start], ()):
                end = start + length
                if end > len(words):
                    continue
                number = self._rows.get(phrases(start, end))
                number = number or self._rows.get(lowered_phrases(start, end))
                if number:
                    yield (found[start].start(), found[end - 1].end()), self.terms[number - 1]
                    start = end
                    break
            else:
                start += 1


def _phrases(words: Sequence[str]) -> Callable[[int, int], str]:
    """Return a function that joins `words[start:end]` by spaces, as slices of one string."""
    text = " ".join(words)
    starts = list(itertools.accumulate((len(word) + 1 for word in words), initial=0))
    return lambda start, end: text[starts[start] : starts[end] - 1]


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
