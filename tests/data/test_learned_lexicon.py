"""Compare the extracted translations of words with the phrasebook's alignments."""

import itertools
from collections import defaultdict

from tfformer.data import phrasebook
from tfformer.data.augmentation import (
    MAX_SHARE,
    MIN_DICE,
    MIN_ROWS,
    learned_lexicon,
    translated_words,
    words_of,
)


def rows_of_words(rows: list[tuple[str, str]], side: int) -> dict[str, set[int]]:
    """Return the numbers of the rows in which each word occurs."""
    rows_by_word = defaultdict(set)
    for number, row in enumerate(rows):
        for word in words_of(row[side]):
            rows_by_word[word].add(number)
    return rows_by_word


def test_the_coefficients_are_those_of_their_definition():
    rows = [(pair.source, pair.target) for pair in phrasebook.pairs("valid")]
    sources, targets = rows_of_words(rows, 0), rows_of_words(rows, 1)
    allowed = range(MIN_ROWS, int(MAX_SHARE * len(rows)) + 1)
    expected = {}
    for source, target in itertools.product(sources, targets):
        ours, theirs = sources[source], targets[target]
        if len(ours) in allowed and len(theirs) in allowed:
            dice = 2 * len(ours & theirs) / (len(ours) + len(theirs))
            if dice >= MIN_DICE:
                expected[source, target] = dice
    assert len(expected) > 100
    assert learned_lexicon(rows) == expected


def test_nearly_all_words_that_it_pairs_are_aligned():
    pairs = [pair for pair in phrasebook.pairs("train") if pair.alignment][::5]
    lexicon = learned_lexicon([(pair.source, pair.target) for pair in pairs])
    right = []
    for pair in pairs:
        source, target = words_of(pair.source), words_of(pair.target)
        for word, translation in translated_words(pair.source, pair.target, lexicon):
            right.append((source.index(word), target.index(translation)) in pair.alignment)
    assert len(right) > 2 * len(pairs)
    assert sum(right) > 0.95 * len(right)


def test_each_word_stands_once_and_has_no_better_partner():
    lexicon = {("a", "x"): 0.6, ("a", "y"): 0.8, ("b", "y"): 0.9, ("b", "z"): 0.5, ("c", "w"): 1.0}
    assert translated_words("a b", "x y", lexicon) == [("b", "y")]
    assert translated_words("a, b.", "x!", lexicon) == [("a", "x")]
    assert translated_words("a b c", "y w", lexicon) == [("b", "y"), ("c", "w")]
    assert translated_words("c b c", "w z w", lexicon) == [("b", "z")]
    assert translated_words("", "x", lexicon) == []


def test_rare_and_frequent_words_have_no_partner():
    rows = [("rare", "selten")] * (MIN_ROWS - 1) + [("known", "bekannt")] * MIN_ROWS
    rows += [(f"the {n}", f"das {n}") for n in range(80)]
    assert learned_lexicon(rows).keys() == {("known", "bekannt")}
