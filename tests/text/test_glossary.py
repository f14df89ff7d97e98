"""Glossaries: which words match, and what the model reads and the reader gets."""

import random
import re

import pytest

from tfformer.text import Glossary, Term, TextTranslator

TERMS = [
    Term("engine", "Motor"),
    Term("search engine", "Suchmaschine"),
    Term("May", "Mai"),
    Term("R&D", "F&E"),
    Term("北京", "Peking"),
    Term("New York", "New York"),
    Term("cafe", "Kaffeehaus"),
    Term("कम", "wenig"),
]
SYMBOLS = ("⟦1⟧", "⟦2⟧")


def heard_and_said(text, format="text", translate=lambda text: text, symbols=(), tags=()):
    """Return the sentences that the model reads, and the translation."""
    heard = []

    def translated(sentences):
        heard.extend(sentences)
        return [translate(sentence) for sentence in sentences]

    texts = TextTranslator(translated, placeholders=symbols, tags=tags, glossary=Glossary(TERMS))
    return heard, texts.translate(text, format)


def brute_force(text, terms):
    """Replace terms at each position by regular expressions, the longest first."""
    out, at = "", 0
    while at < len(text):
        for term in sorted(terms, key=lambda term: -len(term.source.split())):
            flags = re.IGNORECASE if term.source.islower() else 0
            pattern = re.compile(rf"(?<![\w-]){term.source}(?![\w-])".replace(" ", r"\s+"), flags)
            if match := pattern.match(text, at):
                out, at = f"{out}<{term.target}>", match.end()
                break
        else:
            out, at = out + text[at], at + 1
    return out


def test_terms_match_as_a_search_at_every_position_does():
    draw = random.Random(5)
    words = ["a", "b", "A", "B", "ab", "a-b", "C", "c"]
    for _ in range(500):
        phrases = {" ".join(draw.choices(words, k=draw.randint(1, 3))) for _ in range(4)}
        terms = [Term(phrase, phrase.upper() + "!") for phrase in sorted(phrases)]
        text = "".join(word + draw.choice(" \n,") for word in draw.choices(words, k=9))
        found, end = "", 0
        for (start, stop), term in Glossary(terms).matches(text):
            found += f"{text[end:start]}<{term.target}>"
            end = stop
        # a phrase that is written exactly so precedes one in lower case
        exact = sorted(terms, key=lambda term: term.source.islower())
        assert found + text[end:] == brute_force(text, exact), (terms, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("An Engine, ENGINE: engine's", ["Motor", "Motor", "Motor"]),
        ("engines e-engine engine_id", []),
        ("May may MAY", ["Mai"]),
        ("我在北京。", ["Peking"]),
        ("New  York", ["New York"]),
        ("cafe, cafe\u0301", ["Kaffeehaus"]),  # the second with an accent of its own
        ("कमी कम कमल", ["wenig"]),
    ],
)
def test_a_term_is_a_whole_word(text, expected):
    assert [term.target for _, term in Glossary(TERMS).matches(text)] == expected


@pytest.mark.parametrize(
    ("symbols", "read"), [((), ["The Motor is old."]), (SYMBOLS, ["The ⟦1⟧ is old."])]
)
@pytest.mark.parametrize("format", ["text", "lines"])
def test_the_translation_of_a_term_is_a_protected_word(symbols, read, format):
    heard, said = heard_and_said("The engine is old.", format, str.upper, symbols)
    assert heard == read
    assert said == "THE Motor IS OLD."


def test_a_translation_that_the_model_loses_is_inserted():
    assert heard_and_said("The engine is old.", translate=lambda _: "Er ist alt.")[1] in (
        "Er Motor ist alt.",
        "Motor Er ist alt.",
    )


@pytest.mark.parametrize(("format", "expected"), [("lines", "A Motor B"), ("text", "A Motor\nB")])
def test_a_line_stays_a_line(format, expected):
    assert heard_and_said("The engine.", format, lambda _: "A Motor\nB")[1] == expected


def test_a_sentence_of_terms_needs_no_model():
    assert heard_and_said("Engine\nR&D", "lines") == ([], "Motor\nF&E")


def test_each_line_keeps_its_tag():
    """A term does not change a tag, which the model reads and nobody writes."""
    lines = "<May> May\n<de> engine on\noff, engine\n<de> May"
    tags = ("<de>", "<May>")
    heard, said = heard_and_said(
        lines, "lines", lambda line: line.removeprefix("<de> ").upper(), tags=tags
    )
    assert heard == ["<de> Motor on", "off, Motor"]
    assert said == "Mai\nMotor ON\nOFF, Motor\nMai"


def test_markup_addresses_and_entities_are_kept():
    page = "<p>The <b>search\nengine</b> of R&amp;D: https://engine.org/engine <i>e</i>engine</p>"
    heard, said = heard_and_said(page, "html")
    assert heard == ["The Suchmaschine of F&E: https://engine.org/engine eengine"]
    assert said == (
        "<p>The <b>Suchmaschine</b> of F&amp;E: https://engine.org/engine <i>e</i>engine</p>"
    )
    inside = "<p>The search <b>engine</b> is.</p>"  # no term contains markup
    assert heard_and_said(inside, "html") == (["The search engine is."], inside)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a\tb", ""], "line 2: '' must be a term, a tab and its translation"),
        (["a"], "line 1: 'a' must be a term"),
        (["a\tb\tc\td"], "must be a term, a tab"),
        (["a\tb", " \tb"], "line 2: a term and its translation must not be empty"),
        (["a\t\tnote"], "line 1: a term and its translation must not be empty"),
        (["a\tb", "c\td", "a\tb"], "line 3: 'a' = 'b' repeats line 1"),
        (["a  c\tb", "a c\td"], "line 2: 'a c' = 'd' contradicts line 1"),
        (["a " * 101 + "\tb"], "has 101 words and signs, but a term must have at most 100"),
    ],
)
def test_an_incorrect_row_is_named(lines, message):
    with pytest.raises(ValueError, match=f"^terms.tsv, .*{re.escape(message)}"):
        Glossary.read(lines, "terms.tsv")


def test_a_note_is_kept_and_no_row_is_no_error():
    assert Glossary.read(["a\tb\tc d\n"]).terms == [Term("a", "b", "c d")]
    assert list(Glossary([]).matches("a b")) == []
