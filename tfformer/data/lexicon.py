"""Words that are translations of each other, by the pairs that they share."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Sequence

from tfformer.data.sources import Row

PUNCTUATION = ".,;:!?\"'()»«„“”‘’…"  # around a word
MIN_ROWS = 5  # of a word: what is rarer may stand together by chance
MAX_SHARE = 0.1  # of the rows: what is more frequent is grammar, such as "the"
MIN_DICE = 0.5

Lexicon = dict[tuple[str, str], float]  # (source word, target word) -> Dice coefficient


def learned_lexicon(rows: Sequence[Row]) -> Lexicon:
    """Return the Dice coefficient of each pair of words that reaches MIN_DICE.

    The coefficient (Smadja et al. 1996) is the share of rows that contain both words among the rows
    that contain either: 1 if the two words always occur together.

    Example:
        >>> rows = [("a dog", "ein Hund"), ("a cow", "eine Kuh"), ("my dog", "mein Hund")] * 5
        >>> rows += [(f"{n}", f"{n}") for n in range(500)]
        >>> learned_lexicon(rows)["dog", "Hund"]
        1.0
    """
    pairs = [(set(words_of(source)), set(words_of(target))) for source, target in rows]
    sources = _counts(source for source, _ in pairs)
    targets = _counts(target for _, target in pairs)
    both = Counter(
        pair
        for source, target in pairs
        for pair in itertools.product(source & sources.keys(), target & targets.keys())
    )
    dice = {(s, t): 2 * rows / (sources[s] + targets[t]) for (s, t), rows in both.items()}
    return {pair: value for pair, value in dice.items() if value >= MIN_DICE}


def translated_words(source: str, target: str, lexicon: Lexicon) -> list[tuple[str, str]]:
    """Return the pairs of words that are each other's best translation.

    Only words that occur once on their side are considered.

    Example:
        >>> translated_words("The dog barks.", "Der Hund bellt.", {("dog", "Hund"): 1.0})
        [('dog', 'Hund')]
    """
    sources, targets = (Counter(words_of(text)) for text in (source, target))
    found = [
        (lexicon[pair], pair)
        for pair in itertools.product(sources, targets)
        if pair in lexicon and sources[pair[0]] == targets[pair[1]] == 1
    ]
    best_of_source = {pair[0]: pair for _, pair in sorted(found)}
    best_of_target = {pair[1]: pair for _, pair in sorted(found)}
    return [pair for pair in best_of_source.values() if best_of_target[pair[1]] == pair]


def words_of(text: str) -> list[str]:
    """Return the words of a text without the punctuation around them."""
    return [word for part in text.split() if (word := part.strip(PUNCTUATION))]


def _counts(rows: Iterable[set[str]]) -> dict[str, int]:
    """Count the rows of each word that is neither too rare nor too frequent."""
    rows = list(rows)
    counts = Counter(itertools.chain.from_iterable(rows))
    most = MAX_SHARE * len(rows)
    return {word: count for word, count in counts.items() if MIN_ROWS <= count <= most}
