"""Addresses, placeholders, numbers and emoji come out as they went in."""

import random
import re

import pytest
from support.kept_words import ORDINARY, WHOLE
from support.limits import at_most

from tfformer.text import TextTranslator, translate_text
from tfformer.text.kept_words import kept_pattern

KEPT = [
    "https://example.com/a_b?x=1&y=2#z",
    "anna.b+c@mail.example.org",
    "{user_name}",
    "{{x}}",
    "%(count)s",
    "${HOME}",
    "report_2.pdf",
    "/usr/share/doc",
    "3.50",
    "20 %",
    "12:30",
    "5 km",
    "30 km/h",
    "12 m²",
    "€4",
    "[^1]",
    "😀👍🏽",
    "https://en.wikipedia.org/wiki/Animal_(disambiguation)",
    "http://localhost:8080/x?y=[1]",
    "http://[::1]:80/x",
    "report-final.v2.docx",
    "a_b.tar.gz",
    "src/main.py",
    r"C:\Users\x\file.txt",
    "~/a.py",
    "./run.sh",
    "-3 °C",
    "±0.5",
    "10x10 cm",
    "1920 × 1080",
    "v1.2.3",
    "%1$s",
    "%-10.2f",
    "%@",
    "#{x}",
    "%{name}",
    "{{ x|y }}",
    "{% x %}",
    "Foo Bar Inc",
]


def forgetful(sentences):
    """A model that knows no word but one."""
    return ["blah blah blah." for _ in sentences]


@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("format", ["text", "html", "markdown", "srt"])
def test_what_survives_comes_out_once(kept, format):
    written = kept.replace("&", "&amp;") if format == "html" else kept
    result = translate_text(f"I saw {written} there.", forgetful, format, keep=["Foo Bar Inc"])
    assert result.count(written) == 1
    assert "blah" in result


@pytest.mark.parametrize("word", WHOLE)
def test_a_word_is_whole_to_the_model_and_behind_it(word):
    """A stop within it ends no sentence."""
    sentence = f"The dog is {word} tired."
    assert kept_pattern().findall(sentence) == [word]
    heard, said = heard_and_said(sentence, "Der Hund ist ⟦1⟧ müde.")
    assert heard == ["The dog is ⟦1⟧ tired."]
    assert said == f"Der Hund ist {word} müde."


@pytest.mark.parametrize(("sentence", "kept"), ORDINARY)
def test_of_ordinary_sentences_the_model_gets_the_words(sentence, kept):
    assert kept_pattern().findall(sentence) == kept


def test_a_model_that_copies_is_left_alone():
    text = "At 12:30 see https://x.org/a, b@x.org and {name}."
    assert translate_text(text, lambda sentences: sentences) == text


def test_a_line_of_a_corpus_is_all_the_model_s():
    assert translate_text("See https://x.org now", forgetful, "lines") == "blah blah blah."


@pytest.mark.parametrize(
    "text",
    [
        "I have 2 cats and 2 dogs.",
        "In 2012 they had 12 children, from 5 to 5 and 5.",
        "On 1/2 we had 1-2 of 2, for $3 or $3.50, i.e. 3 or 3.50.",
        "See https://x.org or https://x.org/a or https://x.org, 😀 day 😀.",
        "我有2只猫和2只狗。",
        "Copy 12 %(name)s, 12 %s and 12 % of 12%.",
        "The file v2{x} and item{n}: {n} of{m}, %s%s and foo%s1%s.",
    ],
)
def test_words_that_stay_twice_come_back_in_their_places(text):
    assert translate_text(text, lambda sentences: sentences) == text


def glued(sentences):
    """A model that writes no spaces."""
    return ["".join(sentence.split()) for sentence in sentences]


def backwards(sentences):
    return [" ".join(reversed(sentence.split())) for sentence in sentences]


APART = ["https://a.org/b?c=1", "a@b.org", "{x}", "12:30", "38 %", "a_1.pdf", "$5", "😀", "Foo Inc"]


@pytest.mark.parametrize("translate", [forgetful, glued, backwards])
@pytest.mark.parametrize("placeholders", [(), ("⟦1⟧", "⟦2⟧")])
@pytest.mark.parametrize("seed", range(40))
def test_copies_that_stand_apart_are_not_glued_to_anything(translate, placeholders, seed):
    """One to five of them, with commas between them or words, each as often as it was."""
    draw = random.Random(seed)
    items = draw.sample(APART, draw.randint(1, 5))
    text = "We need " + draw.choice([", ", " ", " and "]).join(items) + " today."
    translator = TextTranslator(translate, keep=["Foo Inc"], placeholders=placeholders)
    found = translator.translate(text)
    for item in items:
        alone = re.findall(rf"(?<![^\s,.]){re.escape(item)}(?![^\s,.])", found)
        assert len(alone) == 1, found


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("See {a}, {b}.", "Siehe⟦1⟧⟦2⟧.", "Siehe {a} {b}."),
        ("See {a} (or {b}) now.", "Jetzt⟦1⟧oder(⟦2⟧).", "Jetzt {a} oder({b})."),
        ("See {a}{b} now.", "Jetzt ⟦1⟧⟦2⟧.", "Jetzt {a}{b}."),
        ("The word v{a}b is new.", "Das Wort v⟦1⟧b ist neu.", "Das Wort v{a}b ist neu."),
        ("See {a}'s dog.", "Siehe ⟦1⟧s Hund.", "Siehe {a}s Hund."),
        ("See {a} and {b} now.", "现在看⟦1⟧和⟦2⟧。", "现在看{a}和{b}。"),
        ("See {a} now.", "⟦1⟧를 보세요.", "{a}를 보세요."),
        ("看{a}和{b}。", "Siehe⟦1⟧und⟦2⟧.", "Siehe {a} und {b}."),
    ],
)
def test_a_space_stands_beside_a_copy_where_words_have_spaces(text, answer, expected):
    """Not where the source has none, nor in scripts without them."""
    assert heard_and_said(text, answer)[1] == expected


@pytest.mark.parametrize(
    "text",
    ["See <i>{a}</i> now.", "<b>{a}</b> <i>{b}</i> now.", "See <b><i>{a}</i></b> <img> now."],
)
def test_the_space_beside_a_copy_stands_outside_of_its_tags(text):
    """A model that writes no spaces, beside alignments that know its words."""

    def spaced(sources, targets):
        return [[] for _ in sources]

    found = TextTranslator(glued, spaced, placeholders=SYMBOLS).translate(text, "html")
    assert re.sub("<[^>]*>", "", found).split() == re.sub("<[^>]*>", "", text).split()
    assert not re.search(r"<[bi]> | </", found)


@pytest.mark.parametrize("text", ["Use `a` and `a`.", "The cat has a `cat` file, a `cat`."])
def test_code_that_is_a_word_of_the_sentence_too_keeps_its_place(text):
    assert translate_text(text, lambda sentences: sentences, "markdown") == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("word", "is_kept"),
    [
        *(("a-", False), ("a@", False), ("+a", False), ("{", False), ("a", False)),
        *(
            ("1-", True),
            ("/a", True),
            ("/.", True),
            ("/a.", False),
            ("www.", True),
            ("😀\u200d", True),
            ("a.b", True),
        ),
        *(("a.B", False), ("{% ", False), ("~", False)),
        *(("https://a(", True), ("https://a[(", True), ("1 x ", True), ("aa/", True)),
        *(("{a, ", False), ("a'", False), ("o'", False), ("a@b.c:", True), ("1'000", True)),
        *((".ab", True), ("a.bc/", True), ("ab:", False), ("a+b:", False), ("½ kg ", True)),
        *(("1\ufe0f\u20e3", True), ("1e1 ", True), ("localhost:", False)),
    ],
)
def test_the_time_grows_in_proportion_to_the_text(word, is_kept):
    """Of a megabyte: a pattern that begins anew at each character would take hours."""
    text = word * (2**20 // len(word))
    with at_most(seconds=20):
        found = sum(len(found[0]) for found in kept_pattern().finditer(text))
    assert found == 0 if not is_kept else found > len(text) / 2


SYMBOLS = ("⟦1⟧", "⟦2⟧")


def heard_and_said(text, answer, **settings):
    """What the model gets, and what becomes of its answer."""
    heard = []

    def translate(sentences):
        heard.extend(sentences)
        return [answer]

    translator = TextTranslator(translate, placeholders=SYMBOLS, **settings)
    return heard, translator.translate(text)


def test_a_model_with_placeholders_gets_them_in_place_of_what_stays():
    text = "See https://x.org/a and b@x.org."
    assert heard_and_said(text, "b: ⟦2⟧, a: ⟦1⟧.") == (
        ["See ⟦1⟧ and ⟦2⟧."],
        "b: b@x.org, a: https://x.org/a.",
    )


def test_code_is_a_placeholder_to_the_model_too():
    heard = []
    translator = TextTranslator(lambda batch: heard.extend(batch) or batch, placeholders=SYMBOLS)
    text = 'Run <code>f(x)</code> at <b translate="no">Foo</b> 12 now, <code>f(x)</code>.'
    assert translator.translate(text, "html") == text
    assert heard == ["Run ⟦1⟧ at ⟦2⟧ 12 now, f(x)."]


@pytest.mark.parametrize("text", ["<code>f(x)</code>", "<p>https://x.org <kbd>a</kbd>", "b@x.org"])
def test_what_stays_as_a_whole_is_not_for_the_model(text):
    assert translate_text(text, lambda sentences: 1 / 0, "html") == text


def test_more_words_than_placeholders_stay_as_without():
    heard, said = heard_and_said("From 1 to 2 or 3 now.", "⟦1⟧ ⟦2⟧ 3")
    assert heard == ["From ⟦1⟧ to ⟦2⟧ or 3 now."]
    assert said == "1 2 3"


def test_a_placeholder_that_the_model_forgot_replaces_a_word():
    _, said = heard_and_said("I pay 3.50 now.", "Ich zahle etwas jetzt.")
    assert said.count("3.50") == 1


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Um ⟦1⟧ Uhr ⟦1⟧ ⟦2⟧.", "Um 12:30 Uhr."),
        ("⟦2⟧⟦1⟧", "12:30"),
        ("⟦2⟧ Uhr ⟦1⟧", " Uhr 12:30"),
        ("Um ⟦1⟧ Uhr ⟦10⟧⟦7⟧.", "Um 12:30 Uhr."),
    ],
)
def test_placeholders_that_the_model_made_up_are_left_out(answer, expected):
    assert heard_and_said("At 12:30 sharp.", answer)[1] == expected


@pytest.mark.parametrize("format", ["lines", "text", "html", "markdown", "srt"])
def test_a_sentence_of_which_nothing_is_left_stays(format):
    translator = TextTranslator(lambda sentences: ["⟦2⟧ ." for _ in sentences])
    assert translator.translate("x.", format) == "x."


def test_a_placeholder_in_the_text_itself_is_the_texts():
    heard, said = heard_and_said("Put ⟦1⟧ beside 12.", "12 neben ⟦2⟧.")
    assert heard == ["Put ⟦2⟧ beside 12."]
    assert said == "12 neben ⟦1⟧."


def test_without_placeholders_the_model_gets_the_words():
    heard = []
    translate_text("At 12:30 sharp.", lambda sentences: heard.extend(sentences) or sentences)
    assert heard == ["At 12:30 sharp."]


def test_a_path_ends_before_the_full_stop_of_its_sentence():
    assert kept_pattern().findall(
        "See ~/.cargo/config.toml. Or /usr/share/doc... or ../../a.b/c."
    ) == (["~/.cargo/config.toml", "/usr/share/doc", "../../a.b/c"])


def test_a_unit_is_whole_or_no_part_of_what_stays():
    assert kept_pattern().findall("3 km/h, 3 km/day, 5 m/s, 2 kWh, 9 Whales, 7 ‰") == (
        ["3 km/h", "3", "5 m/s", "2 kWh", "9", "7 ‰"]
    )


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("(see https://a.de/x)", ["https://a.de/x"]),
        ("(https://a.de/x_(y)).", ["https://a.de/x_(y)"]),
        ("[it](https://a.de/x), www.a.de/(b).", ["https://a.de/x", "www.a.de/(b)"]),
        ("https://a.de/x(y. It", ["https://a.de/x(y"]),
        ("https://a.de/f(), https://b.de.", ["https://a.de/f()", "https://b.de"]),
    ],
)
def test_an_address_ends_in_a_bracket_that_begins_in_it(text, kept):
    assert kept_pattern().findall(text) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("It is -3 or (-4) or +5.", ["-3", "-4", "+5"]),
        ("Take 5 -3 and 5-3 and 5 - 3.", ["5", "-3", "5-3", "5", "3"]),
        ("Then – 3 or –3, word-3 and --3.", ["3", "3", "3", "3"]),
    ],
)
def test_a_dash_is_a_sign_where_nothing_stands_before_it(text, kept):
    assert kept_pattern().findall(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        "He said (and meant it) that it's the end. The man is tired and/or old, e.g. in A.I.",
        "Mr. Smith lives at home: a well-known house [so they say]; it is his/hers 100 per cent.",
        "Das ist z.B. ein Haus, d.h. i.d.R. ein altes; der/die Mieter u.a. sagen: {so ist es}!",
        "Vega, versions, v. Bismarck, x-rays, the 10th and 3D, 50 and % or %s-like.",
    ],
)
def test_ordinary_words_do_not_stay(text):
    kept = kept_pattern().findall(text)
    assert not any(character.isalpha() for word in kept for character in word if word != "%s")


def test_a_placeholder_behind_a_number_is_no_per_cent():
    found = kept_pattern().findall("12 %(name)s 12 %s 12 % of 12% 7 %d")
    assert found == ["12", "%(name)s", "12", "%s", "12 %", "12%", "7", "%d"]
