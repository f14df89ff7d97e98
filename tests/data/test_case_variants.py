"""Vocabularies with case variants segment a text in the same way whatever its capitals are."""

import random

import pytest
import tensorflow as tf

from tfformer.data.case_variants import CAPITAL, CAPITALS, FORMS, INITIAL, LOWER, case_families
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import UNKNOWN_ID

DICE = random.Random(3)
WORDS = ["der", "Hund", "sieht", "die", "Straße", "über", "Katze", "dog", "sees", "a", "street"]
WORDS += ["".join(DICE.choices(["ka", "tze", "un", "re", "ö", "st"], k=3)) for _ in range(60)]
SENTENCES = [" ".join(DICE.choices(WORDS, k=DICE.randint(2, 9))) + "." for _ in range(500)]
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]


def title(text):
    return " ".join(word[:1].upper() + word[1:] for word in text.split())


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(SENTENCES, 70, case_variants=True, symbols=["⟦1⟧"])


def test_a_text_is_cut_alike_in_each_case(tokenizer):
    for sentence in SENTENCES[:100]:
        lower, *cased = (
            tokenizer.pieces(tokenizer.encode([text])[0])
            for text in (sentence.lower(), sentence, title(sentence), sentence.upper())
        )
        lower = [piece.replace("ß", "ss") for piece in lower]
        for pieces in cased:
            assert [piece.lower().replace("ß", "ss") for piece in pieces] == lower


def test_every_case_comes_back(tokenizer):
    for change in (str, str.lower, title, str.upper):
        texts = [change(sentence) for sentence in SENTENCES[:50]]
        ids = tokenizer.encode(texts)
        assert not any(UNKNOWN_ID in row for row in ids)
        assert tokenizer.decode(ids) == texts


@pytest.mark.usefixtures("tensorflow_text")
def test_the_graph_gives_the_ids_of_python(tokenizer):
    texts = [change(text) for text in SENTENCES[:100] for change in (str, title, str.upper)]
    assert tokenizer.is_cut_by_fast_operation
    assert tokenizer.tokenize(tf.constant(texts)).to_list() == tokenizer.encode(texts)


def test_the_size_counts_pieces_in_lower_case(tokenizer):
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    assert len([piece for piece in pieces if piece == piece.lower()]) == 70
    assert 150 < tokenizer.vocab_size < 210
    assert len(set(pieces)) == len(pieces)


def test_a_family_has_each_case_once_and_nothing_but_case_differs(tokenizer):
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    families = case_families(pieces, [0] * len(pieces))
    members = list(zip(families.family.tolist(), families.case.tolist(), strict=True))
    assert len(set(members)) == len(members)
    assert {number for number, _ in members} == set(range(families.families))
    usual = [number for number, case in members if case < FORMS]
    assert sorted(usual) == list(range(families.families))
    for piece, number in zip(pieces, families.family, strict=True):
        base = pieces[families.family.tolist().index(number)]
        assert piece.casefold() == base.casefold()


def test_the_cases_and_families_of_pieces():
    pieces = ["▁maße", "▁masse", "▁Maße", "▁MASSE", "▁mAsse", "▁A", "▁a", "x", "X", ".", "▁", "12"]
    families = case_families([*SPECIAL, *pieces], [0] * (len(SPECIAL) + len(pieces)))
    assert (families.case[4:] % FORMS).tolist() == [
        *(LOWER, LOWER, INITIAL, CAPITALS, LOWER),
        *(CAPITAL, LOWER, LOWER, CAPITAL, LOWER, LOWER, LOWER),
    ]
    named = dict(zip(pieces, families.family[4:].tolist(), strict=True))
    assert named["▁maße"] == named["▁Maße"] == named["▁MASSE"]  # the first of two like letters
    assert named["▁A"] == named["▁a"]
    assert named["x"] == named["X"]
    alone = [named[piece] for piece in ("▁masse", "▁mAsse", ".", "▁", "12", "x", "▁a", "▁maße")]
    assert len(set(alone)) == len(alone)


def test_the_usual_form_is_the_most_frequent_one_and_the_first_of_equals():
    pieces = ["▁hund", "▁Hund", "▁HUND", "▁rot", "▁Rot", "▁ROT", "▁i", "▁I", "x", "X", "."]
    counts = [3, 9, 1, 9, 3, 1, 0, 2, 4, 4, 0]
    case = case_families([*SPECIAL, *pieces], [0] * len(SPECIAL) + counts).case
    usual = [piece for piece, number in zip(pieces, case[4:], strict=True) if number < FORMS]
    assert usual == ["▁Hund", "▁rot", "▁I", "x", "."]
    assert (case[:4] == LOWER).all()


def test_special_pieces_have_no_family():
    assert case_families([*SPECIAL, "</S>", "<S>"], [0] * 6).family.tolist()[:4] == [0, 1, 2, 3]
    assert case_families([*SPECIAL, "</S>"], [0] * 5).families == 5
