"""IBM Model 1 against expectation maximisation in plain Python."""

from collections import defaultdict

import numpy as np
import pytest

from tfformer.data import translation_table, word_links
from tfformer.data.encoding import EncodedText, IdRows
from tfformer.data.tokenizers import Tokenizer, Tokenizers
from tfformer.data.translation_table import coverage, learn_table, translation_probabilities
from tfformer.data.word_links import learn_links
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
    learned = translation_probabilities(IdRows.of(sources), IdRows.of(targets), target_size=15)
    table = {(s, t): p for s, t, p in zip(*(x.tolist() for x in learned), strict=True)}
    assert table == pytest.approx(dict(expected))


def best_of_both(source, target, forward, backward):
    """The links of a pair of sentences, from the formula, one pair of tokens at a time."""
    count = {
        (i, j): np.exp(-2 * abs(i / len(source) - j / len(target)))
        for i in range(len(source))
        for j in range(len(target))
    }
    weights = {}
    for i, j in count:
        s, t = source[i], target[j]
        of_target = sum(forward[other, t] * count[n, j] for n, other in enumerate(source))
        of_source = sum(backward[other, s] * count[i, n] for n, other in enumerate(target))
        f, b = forward[s, t] * count[i, j] / of_target, backward[t, s] * count[i, j] / of_source
        weights[i, j] = f * b
    return [
        next(
            (
                i + 1
                for i in range(len(source) - 1)
                if weights[i, j] == max(weights[i, n] for n in range(len(target)))
                and weights[i, j] == max(weights[n, j] for n in range(len(source)))
            ),
            0,
        )
        for j in range(len(target) - 1)
    ] + [0]


def test_tokens_are_linked_if_each_is_the_best_of_the_other(monkeypatch):
    monkeypatch.setattr(translation_table, "CHUNK", 7)
    monkeypatch.setattr(word_links, "CHUNK", 6)
    random = np.random.default_rng(2)
    sources, targets = random_rows(random, 40, 30), random_rows(random, 40, 25)
    pairs = list(zip(sources, targets, strict=True))
    forward = expectation_maximisation(pairs, rounds=5)
    backward = expectation_maximisation([(t, s) for s, t in pairs], rounds=5)
    text = EncodedText((IdRows.of(sources), IdRows.of(targets)), 99, 0, 0)
    links = learn_links(text, 30, 25)
    assert [links[row].tolist() for row in range(40)] == [
        best_of_both(source, target, forward, backward) for source, target in pairs
    ]
    assert 0.2 < np.mean(links.ids > 0) < 0.9


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
    share, candidates = coverage(table, text)
    sets = [
        {0, 1, 2, 3, *table[END_ID]}.union(*(table[n] for n in row))
        for row in map(list, rows_of(text.source))
    ]
    hits = [n in ids for ids, row in zip(sets, rows_of(text.target), strict=True) for n in row]
    assert (share, candidates) == (np.mean(hits), np.mean([len(ids) for ids in sets]))


def test_separate_vocabularies_copy_pieces_of_the_same_text_and_bytes():
    source = Tokenizer.train(["a b c d e f g h"] * 20, 269, byte_fallback=True)
    target = Tokenizer.train(["h g f x y z"] * 20, 267, byte_fallback=True)
    text = EncodedText((IdRows.of([[4, END_ID]]), IdRows.of([[5, END_ID]])), 99, 0, 0)
    table = learn_table(text, Tokenizers(source, target))
    for sentence in ("fgh", "€"):  # the second has only pieces of bytes
        (source_ids,), (target_ids,) = source.encode([sentence]), target.encode([sentence])
        assert source_ids != target_ids or sentence == "€"
        candidates = {n for number in source_ids for n in table[number].tolist()}
        assert candidates >= set(target_ids)
    (number,) = source.encode(["b"])[0][-1:]
    assert table[number].tolist() == []  # the target has no such piece


def test_a_long_text_is_sampled_evenly(monkeypatch):
    monkeypatch.setattr(translation_table, "MAX_LINKS", 8)
    rows = IdRows.of([[4, END_ID], [5, END_ID], [6, END_ID], [7, END_ID]])
    letters = Tokenizer.train(["a b c d e f g h"] * 20, 13)
    text = EncodedText((rows, IdRows.of([[row[0] + 4, END_ID] for row in rows_of(rows)])), 9, 0, 0)
    table = learn_table(text, Tokenizers(letters, letters))  # 16 links: every second pair
    assert [set(table[n]) for n in (4, 5, 6, 7)] == [{4, 8, END_ID}, {5}, {6, 10, END_ID}, {7}]


def rows_of(rows):
    return [rows[number] for number in range(len(rows))]
