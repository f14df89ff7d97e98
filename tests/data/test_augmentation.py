"""Compare altered copies of the training text with their definitions."""

import itertools
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfformer.config import AugmentConfig
from tfformer.data.augmentation import augmented

ROWS = [
    ("The animal isn't tired.", "Das Tier ist nicht müde."),
    ("We cross the street", "Wir überqueren die Straße"),
]


def copies(rows=ROWS, seed=1, **shares):
    """Return the text without its unaltered rows."""
    text = list(augmented(rows, AugmentConfig(**shares), seed))
    assert [row for row in text if row in rows] == rows
    return [row for row in text if row not in rows]


def test_without_shares_the_text_is_as_it_was():
    assert copies() == []


def test_capitals_change_both_sides():
    for kind, change in (("upper", str.upper), ("lower", str.lower)):
        assert copies(**{kind: 1}) == [(change(source), change(target)) for source, target in ROWS]
    assert copies(title=1) == [
        ("The Animal Isn't Tired.", "Das Tier Ist Nicht Müde."),
        ("We Cross The Street", "Wir Überqueren Die Straße"),
    ]


def test_a_copy_stands_behind_its_row():
    rows = [("a", "b"), ("c", "d")]
    text = list(augmented(rows, AugmentConfig(upper=1), seed=1))
    assert text == [("a", "b"), ("A", "B"), ("c", "d"), ("C", "D")]


def test_a_copy_that_does_not_differ_is_left_out():
    assert copies([("12.", "12.")], upper=1, title=1, lower=1, typos=1) == []


def distance(word, misspelt):
    """Return the minimum number of letters to insert, delete, replace or swap (Damerau)."""
    rows = [list(range(len(misspelt) + 1))]
    for i, a in enumerate(word, start=1):
        row = [i]
        for j, b in enumerate(misspelt, start=1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b)))
            if i > 1 and j > 1 and a == misspelt[j - 2] and word[i - 2] == b:
                row[-1] = min(row[-1], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def test_a_slip_changes_one_letter_of_a_longer_word_of_the_source():
    rows = [ROWS[0]] * 300
    altered = copies(rows, typos=1)
    assert {target for _, target in altered} == {ROWS[0][1]}
    assert len({source for source, _ in altered}) > 20
    for source, _ in altered:
        assert distance(ROWS[0][0], source) == 1
        assert [source.count(word) for word in ("The ", " isn't ")] == [1, 1]


PLACEHOLDERS = ["⟦1⟧", "⟦2⟧", "⟦3⟧"]


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (("He is in Paris.", "Er ist in Paris."), ("He is in #.", "Er ist in #.")),
        (
            ("She pays 3.50 € for (Anna) today", "Sie zahlt heute 3.50 € für (Anna)"),
            ("She pays # # for (#) today", "Sie zahlt heute # # für (#)"),
        ),
        (
            ("See {name}, a@b.org: 😀!", "Siehe {name}, a@b.org: 😀!"),
            ("See #, #: #!", "Siehe #, #: #!"),
        ),
        (("12 dogs", "12 Hunde"), ("# dogs", "# Hunde")),
        (("Okay, it was warm in Rome", "Okay, es war warm in Rom"), None),  # and none of these
        (("Parisian", "Paris"), None),
        (("", "Paris"), None),
    ],
)
def test_placeholders_stand_for_words_that_both_sides_have_alike(row, expected):
    text = list(augmented([row], AugmentConfig(placeholders=1), 1, PLACEHOLDERS))
    if expected is None:
        assert text == [row]
        return
    assert text[0] == row
    source, target = text[1]
    assert sorted(re.findall("⟦.⟧", source)) == sorted(re.findall("⟦.⟧", target))
    assert len(set(re.findall("⟦.⟧", source))) == len(re.findall("⟦.⟧", source))
    blank = re.sub("⟦.⟧", "#", source), re.sub("⟦.⟧", "#", target)
    assert blank == expected


@given(seed=st.integers(0, 2**31))
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        (
            ("In 2019 there was 1 dog", "Im Jahr 2019 gab es 1 Hund"),
            ("In # there was # dog", "Im Jahr # gab es # Hund"),
        ),
        (
            ("He met Anna and Anna-Lena", "Er traf Anna und Anna-Lena"),
            ("He met # and #", "Er traf # und #"),
        ),
        (
            ("He met Anna and Anna's dog", "Er traf Anna und Annas Hund"),
            ("He met # and Anna's dog", "Er traf # und Annas Hund"),
        ),
    ],
)
def test_a_placeholder_never_stands_within_another_word(row, expected, seed):
    [_, copy] = augmented([row], AugmentConfig(placeholders=1), seed, PLACEHOLDERS[:2])
    assert tuple(re.sub("⟦.⟧", "#", text) for text in copy) == expected
    for text in copy:
        symbols = re.findall("⟦.⟧", text)
        assert len(set(symbols)) == len(symbols)


def test_every_placeholder_is_drawn_and_more_words_than_those_stay():
    rows = [("x A B C D", "A B C D x")] * 50
    text = list(augmented(rows, AugmentConfig(placeholders=1), 1, PLACEHOLDERS))[1::2]
    assert {source.split()[1] for source, _ in text} == set(PLACEHOLDERS)
    assert {source.split()[4] for source, _ in text} == {"D"}


WORDS = [("dog", "Hund"), ("cow", "Kuh"), ("bear", "Bär"), ("house", "Haus"), ("red", "rot")]
SENTENCES = [
    (f"The {first[0]}, {second[0]}: {n}x!", f"Das {n}y {second[1]} ({first[1]})")
    for n, (first, second) in enumerate(list(itertools.permutations(WORDS, 2)) * 10)
]


def readings(row, symbols):
    """Yield the rows that a copy with placeholders may come from, and how it uses each symbol."""
    if not symbols:
        yield row, ()
        return
    symbol, *later_symbols = symbols
    for source_word, target_word in WORDS:
        for blank, use in ((symbol, "in place of"), (f"{symbol} {source_word}", "before")):
            end = blank.removeprefix(symbol).replace(source_word, target_word)
            if blank in row[0] and symbol + end in row[1]:
                back = row[0].replace(blank, source_word), row[1].replace(symbol + end, target_word)
                for restored, uses in readings(back, later_symbols):
                    yield restored, (use, *uses)


def test_placeholders_stand_for_words_that_are_translations_or_before_them():
    rows = [*SENTENCES, *[(f"The {n}!", f"Das {n}") for n in range(2000)]]
    text = list(augmented(rows, AugmentConfig(placeholders=1), 1, PLACEHOLDERS))
    copies = [pair for pair in itertools.pairwise(text[: 2 * len(SENTENCES)]) if "⟦" in pair[1][0]]
    assert len(copies) == len(SENTENCES)
    seen = set()
    for row, copy in copies:
        symbols = re.findall("⟦.⟧", copy[0])
        assert sorted(symbols) == sorted(set(re.findall("⟦.⟧", copy[1])))
        uses = {use for restored, use in readings(copy, symbols) if restored == row}
        assert uses
        seen |= uses
    assert {("before",), ("in place of",), ("before", "in place of")} <= seen


def test_copies_keep_the_links_of_their_words():
    """A placeholder before a word moves the words after it, so such a copy has no links."""
    rows = [("Bob sees Anna.", "Bob sieht Anna.", "0-0 1-1 2-2"), *[("a", "b", "0-0")] * 3]
    shares = AugmentConfig(upper=1, title=1, lower=1, typos=1)
    assert [links for *_, links in augmented(rows[:1], shares, 1)] == ["0-0 1-1 2-2"] * 5
    linked = [(*row, "0-0") for row in SENTENCES]
    filler = [(f"The {n}!", f"Das {n}", "0-0") for n in range(2000)]
    lengths = dict((row[0], len(row[0].split())) for row in linked)
    seen = set()
    for row, copy in itertools.pairwise(
        augmented([*linked, *filler], AugmentConfig(placeholders=1), 1, PLACEHOLDERS)
    ):
        if row in linked and copy not in linked:
            is_longer = len(copy[0].split()) > lengths[row[0]]
            assert copy[2] == ("" if is_longer else "0-0")
            seen.add(is_longer)
    assert seen == {False, True}


def test_shares_are_those_of_the_rows():
    rows = [(f"sentence {n}", f"Satz {n}") for n in range(4000)]
    altered = copies(rows, upper=0.1, lower=0.25)
    assert sum(source.isupper() for source, _ in altered) == pytest.approx(400, abs=60)
    assert sum(target.islower() for _, target in altered) == pytest.approx(1000, abs=90)


def test_one_kind_of_copies_does_not_move_the_other():
    rows = [(f"sentence {n}", f"Satz {n}") for n in range(300)]
    alone = copies(rows, typos=0.2)
    assert [row for row in copies(rows, upper=0.5, typos=0.2) if row[0].islower()] == alone


def test_the_seed_and_the_row_decide_in_every_process():
    rows = [(f"sentence {n}", f"Satz {n}") for n in range(50)]
    first = copies(rows, typos=0.5)
    random.seed(3)
    assert copies(rows, typos=0.5) == first
    assert copies(rows, seed=2, typos=0.5) != first
    program = (
        "from tfformer.config import AugmentConfig as A\n"
        "from tfformer.data.augmentation import augmented\n"
        f"print(list(augmented({rows!r}, A(typos=0.5), 1)))"
    )
    printed = subprocess.check_output([sys.executable, "-c", program], text=True)
    assert [row for row in eval(printed) if row not in rows] == first


def test_text_with_one_side_is_altered_too():
    assert copies([("a dog",)], upper=1, title=1) == [("A DOG",), ("A Dog",)]
