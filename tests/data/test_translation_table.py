"""IBM Model 1 against expectation maximisation in plain Python."""

from collections import defaultdict

import numpy as np
import pytest

from tfformer.data import translation_table
from tfformer.data.encoding import EncodedText, IdRows
from tfformer.data.tokenizers import Tokenizer, Tokenizers
from tfformer.data.translation_table import coverage, learn_table, translation_probabilities
from tfformer.special_ids import END_ID


def random_rows(random, count, size):
    """Rows of 1 to 6 ids from 4 on, each ending with the end token."""
    lengths = random.integers(1, 7, count)
    return [[*random.integers(4, size, length).tolist(), END_ID] for length in lengths]


def expectation_maximisation(pairs, rounds):
    """P(target | source), by the formulas of Brown et al. 1993, one pair of tokens at a time."""
    table = defaultdict(lambda: 1.0)
    for _ in range(rounds):
        counts, totals = defaultdict(float), defaultdict(float)
        for source, target in pairs:
            for t in target:
                total = sum(table[s, t] for s in source)
                for s in source:
                    counts[s, t] += table[s, t] / total
                    totals[s] += table[s, t] / total
        table = defaultdict(float, {pair: n / totals[pair[0]] for pair, n in counts.items()})
    return table


def test_the_probabilities_are_those_of_ibm_model_1(monkeypatch):
    monkeypatch.setattr(translation_table, "CHUNK", 7)  # several chunks, the last one shorter
    random = np.random.default_rng(1)
    sources, targets = random_rows(random, 40, 12), random_rows(random, 40, 15)
    expected = expectation_maximisation(list(zip(sources, targets, strict=True)), rounds=5)
    found = translation_probabilities(IdRows.of(sources), IdRows.of(targets), target_size=15)
    table = {(s, t): p for s, t, p in zip(*(x.tolist() for x in found), strict=True)}
    assert table == pytest.approx(dict(expected))


def encoded(pairs, tokenizer):
    sides = (
        IdRows.of([[*ids, END_ID] for ids in tokenizer.encode(side)])
        for side in zip(*pairs, strict=True)
    )
    return EncodedText(tuple(sides), 99, 0, 0)


def test_a_table_has_the_translations_the_piece_itself_and_the_frequent_pieces(monkeypatch):
    monkeypatch.setattr(translation_table, "FREQUENT", 2)
    monkeypatch.setattr(translation_table, "BEST", 1)
    letters = Tokenizer.train(["a b c d e f g h"] * 20, 13)
    pairs = [("abc", "eeef"), ("ab", "ee"), ("a", "e"), ("c", "f"), ("cd", "fgggg")]
    text = encoded(pairs, letters)
    a, d, e, g = (letters.encode([letter])[0][-1] for letter in "adeg")
    table = learn_table(text, Tokenizers(letters, letters))
    assert len(table) == 13
    assert set(table[a]) == {a, e}
    assert set(table[d]) == {d, g}
    counts = np.bincount(text.target.ids, minlength=13)
    assert set(table[END_ID]) == {END_ID, *np.argsort(-counts, kind="stable")[:2]}
    other = Tokenizer.train(["a b c d e f g h"] * 20, 14)
    assert set(learn_table(text, Tokenizers(letters, other))[a]) == {e}
    share, candidates = coverage(table, text)
    sets = [
        {0, 1, 2, 3, *table[END_ID]}.union(*(table[n] for n in row))
        for row in map(list, rows_of(text.source))
    ]
    hits = [n in own for own, row in zip(sets, rows_of(text.target), strict=True) for n in row]
    assert (share, candidates) == (np.mean(hits), np.mean([len(own) for own in sets]))


def rows_of(rows):
    return [rows[number] for number in range(len(rows))]
