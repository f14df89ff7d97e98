"""Words that no translation changes."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.limits import at_most
from support.whole_texts import heard_and_said, translate_text

from tfformer.text import TextTranslator
from tfformer.text.protected_words import RULES, protected_words

EXAMPLES = [(rule.name, example) for rule in RULES for example in rule.examples]
ORDINARY = [(rule.name, text) for rule in RULES for text in rule.not_in]
SYMBOLS = ("⟦1⟧", "⟦2⟧")


@pytest.mark.parametrize(("name", "word"), EXAMPLES)
def test_each_example_of_a_rule_is_one_word_that_comes_back_once(name, word):
    text = f"The dog is {word} tired."
    assert protected_words().findall(text) == [word]
    assert heard_and_said(text, "Der Hund.", placeholders=SYMBOLS)[1].count(word) == 1


@pytest.mark.parametrize(("name", "text"), ORDINARY)
def test_ordinary_words_do_not_stay(name, text):
    assert all(not word.isascii() for word in protected_words().findall(text))


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("See {a}, {b}.", "Siehe⟦1⟧⟦2⟧.", "Siehe {a} {b}."),
        ("See {a} (or {b}) now.", "Jetzt⟦1⟧oder(⟦2⟧).", "Jetzt {a} oder({b})."),
        ("See {a}{b} now.", "Jetzt ⟦1⟧⟦2⟧.", "Jetzt {a}{b}."),
        ("The word v{a}b is new.", "Das Wort v⟦1⟧b ist neu.", "Das Wort v{a}b ist neu."),
        ("See {a}'s dog.", "Siehe ⟦1⟧s Hund.", "Siehe {a}s Hund."),
        ("See {a} and {b} now.", "现在看⟦1⟧和⟦2⟧。", "现在看{a}和{b}。"),
        ("看{a}和{b}。", "Siehe⟦1⟧und⟦2⟧.", "Siehe {a} und {b}."),
    ],
)
def test_a_space_is_beside_a_protected_word_where_words_have_spaces(text, answer, expected):
    assert heard_and_said(text, answer, placeholders=SYMBOLS)[1] == expected


@pytest.mark.parametrize(
    ("format", "text", "answer", "expected"),
    [
        ("text", "Look (https://x.org/a) now.", "Schau jetzt.", "Schau https://x.org/a jetzt."),
        ("text", 'Open "report.pdf" now.', "Öffne es jetzt.", "Öffne report.pdf es jetzt."),
        ("text", "'%s' not found", "nicht gefunden", "%s nicht gefunden"),
        ("text", "Hi {a}, you have %d.", "%d hast du.", "{a} %d hast du."),
        ("text", "Version v1.2 (v1.3) is out.", "Neue Version.", "Neue Version v1.2 v1.3."),
        ("text", "Write me@x.org/you@x.org!", "Schreib!", "Schreib me@x.org you@x.org!"),
        ("text", "{n}px wide", "px breit", "{n}px breit"),
        ("text", "Run {a}{b} now.", "Jetzt.", "Jetzt {a}{b}."),
        ("text", "{a} opens", '"Bericht"', '{a} "Bericht"'),
        ("markdown", "Use `a`/`b` now.", "Jetzt.", "Jetzt `a` `b`."),
        ("markdown", "Open `a`, `b`, `c` and `d`.", "d, c öffnen.", "`a` `b` `d`, `c` öffnen."),
        ("text", "Open a.pdf now.", "Öffne Text.pdf jetzt.", "Öffne Text.pdf a.pdf jetzt."),
        ("text", "Open a.pdf now.", "„Text.pdf“ jetzt.", "„Text.pdf a.pdf“ jetzt."),
        ("text", "Open a.pdf now.", "看这里", "看a.pdf这里"),
    ],
)
def test_a_protected_word_that_the_translation_lacks_is_a_word(format, text, answer, expected):
    assert heard_and_said(text, answer, format)[1] == expected


LOST = ("a.pdf", "{x}", "https://x.org/a")


@given(
    text=st.lists(st.sampled_from(["dog", "house", "(", ")", "/", ", ", " ", " ", *LOST])),
    answer=st.lists(st.sampled_from(["Hund", "Haus", "Text.doc", "C#", "„", "“", ", ", " ", " "])),
)
def test_no_letter_touches_a_protected_word_that_the_translation_lacks(text, answer):
    """Except letters that touch it in the sentence, and "said" is one word between spaces."""
    sentence, said = "The " + "".join(text) + " now.", "Der " + "".join(answer) + " jetzt."
    found = heard_and_said(sentence, said)[1]
    words = "|".join(map(re.escape, LOST))
    for word in re.findall(rf"\w(?:{words})|(?:{words})(?:\w|{{)", found):
        assert re.search(rf"\w(?:{words})|(?:{words})(?:\w|{{)", sentence), word
    for kept in ("Text.doc", "C#"):
        assert found.count(kept) == said.count(kept)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("_https://x.org/a_ now", "https://x.org/a_"),
        ("сайтhttps://x.org/a now", "https://x.org/a"),
        ("{n, plural, one {One dog} other {# dogs}} sleep.", None),
    ],
)
def test_an_address_after_a_letter_and_a_plural_are_protected(text, word):
    assert protected_words().findall(text) == [word or text.removesuffix(" sleep.")]


@pytest.mark.parametrize(
    "text",
    [
        "<i><b>me</b>@x.org is mine.</i>",
        "<i><b>Mail</b> me@<b>x.org</b></i>",
        "<a>now <b>me</b>@<u>x.org</u></a>",
    ],
)
def test_a_protected_word_may_contain_elements(text):
    heard = heard_and_said(text, "", "html", placeholders=SYMBOLS)[0]
    assert heard == [re.sub("<[^<>]*>", "", text).replace("me@x.org", "⟦1⟧")]


@pytest.mark.parametrize(
    ("phrase", "format", "text", "heard"),
    [
        (".NET", "text", "Use .NET now.", "Use ⟦1⟧ now."),
        ("Wham! Band", "text", "We saw the Wham! Band today.", "We saw the ⟦1⟧ today."),
        ("What now? Really?", "text", "Say What now? Really? to him.", "Say ⟦1⟧ to him."),
        ("Acme Corp", "html", "The Acme\nCorp dog.", "The ⟦1⟧ dog."),
        ("Acme Corp", "html", "The Acme&nbsp;Corp dog.", "The ⟦1⟧ dog."),
        ("Acme Corp", "html", "The Acme <b>Corp</b> dog.", "The ⟦1⟧ dog."),
        ("Acme Corp", "markdown", "The Acme\nCorp dog.", "The ⟦1⟧ dog."),
        ("微信", "text", "我用微信聊天。", "我用⟦1⟧聊天。"),
        ("東京タワー", "text", "東京タワーに行く。", "⟦1⟧に行く。"),
        ("ไลน์", "text", "ผมใช้ไลน์ทุกวัน", "ผมใช้⟦1⟧ทุกวัน"),
        ("카카오톡", "text", "카카오톡을 쓴다.", "⟦1⟧을 쓴다."),
        ("C++", "text", "I use C++ daily.", "I use ⟦1⟧ daily."),
        ("Yahoo!", "text", "We use Yahoo! Mail.", "We use ⟦1⟧ Mail."),
        ("...and You", "text", "We saw ...and You live.", "We saw ⟦1⟧ live."),
        ("Acme", "text", "Acmes and Acme.", "Acmes and ⟦1⟧."),
        ("AT&T", "html", "Use AT&amp;T now.", "Use ⟦1⟧ now."),
        ("Wo? Da!", "html", "Say Wo?\nDa! now.", "Say ⟦1⟧ now."),
        ("Acme Corp", "markdown", "The **Acme** Corp dog.", "The ⟦1⟧ dog."),
        (
            "Acme Corp",
            "srt",
            "1\n00:00:01,000 --> 00:00:02,000\nThe Acme\nCorp dog.",
            "The ⟦1⟧ dog.",
        ),
        ("你好 世界", "text", "说你好 世界吧", "说⟦1⟧吧"),
    ],
)
def test_phrases_of_the_user_stay(phrase, format, text, heard):
    found = []
    translator = TextTranslator(
        lambda batch: found.extend(batch) or batch, keep=[phrase], placeholders=("⟦1⟧",)
    )
    assert translator.translate(text, format) == text
    assert found == [heard]


@pytest.mark.parametrize(
    "keep", [["C", "C++", "Acme", "Acme-Werke"], ["Acme-Werke", "Acme", "C++", "C"]]
)
def test_the_longest_phrase_of_the_user_stays(keep):
    text = "we use C++ at Acme-Werke today."
    assert protected_words(tuple(keep)).findall(text) == ["C++", "Acme-Werke"]


def test_code_gets_a_placeholder_first_and_words_too_many_go_to_the_model():
    heard = []
    translator = TextTranslator(lambda batch: heard.extend(batch) or batch, placeholders=SYMBOLS)
    text = "Run <code>f(x)</code> at {a} and {b} now."
    assert translator.translate(text, "html") == text
    assert heard == ["Run ⟦1⟧ at ⟦2⟧ and {b} now."]


@pytest.mark.parametrize("text", ["<code>f(x)</code>", "<p>https://x.org <kbd>a</kbd>", "b@x.org"])
def test_what_stays_as_a_whole_is_not_for_the_model(text):
    assert translate_text(text, lambda sentences: 1 / 0, "html") == text


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Um ⟦1⟧ Uhr ⟦1⟧ ⟦2⟧.", "Um {t} Uhr."),
        ("⟦2⟧⟦1⟧", "{t}"),
        ("Um ⟦1⟧ Uhr ⟦10⟧⟦7⟧.", "Um {t} Uhr."),
    ],
)
def test_placeholders_that_the_model_made_up_are_left_out(answer, expected):
    assert heard_and_said("At {t} sharp.", answer, placeholders=SYMBOLS)[1] == expected


REPEATED = (
    "a- a@ { a /a /. www. a.b {% ~ https://a( aa/ {a, a@b.c: .ab a.bc/ ab: a_ aB A-1 a:: <% 1."
)


@pytest.mark.slow
@pytest.mark.parametrize("word", REPEATED.split())
def test_the_time_grows_in_proportion_to_the_text(word):
    text = word * (2**18 // len(word))
    with at_most(seconds=20):
        assert sum(1 for _ in protected_words().finditer(text)) >= 0
