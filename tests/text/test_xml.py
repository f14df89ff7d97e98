"""XML documents and fragments, by the rules of XML."""

import random
import re
from collections.abc import Iterator
from contextlib import suppress
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.limits import at_most
from support.whole_texts import heard, translate_text

from tfformer.text import XmlError


def shout(sentences: list[str]) -> list[str]:
    return [re.sub(" +", " ", sentence.upper()) for sentence in sentences]


@pytest.mark.parametrize(
    ("text", "sentences", "expected"),
    [
        # Names that HTML has for code, text without tags and elements without an end.
        (
            "<book><title>The dog is <em>tired</em>.</title><p>He sleeps.</p></book>",
            ["The dog is tired.", "He sleeps."],
            "<book><title>THE DOG IS <em>TIRED</em>.</title><p>HE SLEEPS.</p></book>",
        ),
        (
            "<doc><title/><p>The dog is <b>tired</b>.</p></doc>",
            ["The dog is tired."],
            "<doc><title/><p>THE DOG IS <b>TIRED</b>.</p></doc>",
        ),
        ("<p>One.</p><code/><p>Two.</p>", ["One.", "Two."], "<p>ONE.</p><code/><p>TWO.</p>"),
        ("<code>Go</code> <img>now</img>.", ["Go now."], "<code>GO</code> <img>NOW</img>."),
        ("See <link>it</link> now.", ["See it now."], "SEE <link>IT</link> NOW."),
        ("<style>Go &amp; see</style>", ["Go & see"], "<style>GO &amp; SEE</style>"),
        (
            "<row><a1>Go</a1><b1>Stay</b1></row>",
            ["Go", "Stay"],
            "<row><a1>GO</a1><b1>STAY</b1></row>",
        ),
        # Elements that stay.
        (
            '<seg>Press <ph id="1" translate="no"/> now.</seg><seg>Go.</seg>',
            ["Press now.", "Go."],
            '<seg>PRESS <ph id="1" translate="no"/> NOW.</seg><seg>GO.</seg>',
        ),
        (
            '<li translate="no">a<li>b</li>c</li><li>d</li>',
            ["d"],
            '<li translate="no">a<li>b</li>c</li><li>D</li>',
        ),
        ("<x class='notranslate'>a</x> b", ["a b"], "<x class='notranslate'>a</x> B"),
        ("<d>See<![CDATA[<b>& ]]>now</d>", ["See<b>& now"], "<d>SEE<![CDATA[<b>& ]]>NOW</d>"),
        ("<d><![CDATA[See <b>it]]></d>", [], "<d><![CDATA[See <b>it]]></d>"),
        # References; those that neither XML nor HTML knows belong to a document's own entities.
        (
            "<a>Go&nbsp;to &lt; &#169; &own; &notice; now</a>",
            ["Go\xa0to < © &own; &notice; now"],
            "<a>GO&nbsp;TO &lt; &#169; &own; &notice; NOW</a>",
        ),
        (
            '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]>\r\n<a>Go<!-- x --> <?y?>on</a>',
            ["Go on"],
            '<?xml version="1.0"?>\n<!DOCTYPE a [<!ENTITY b "c">]>\r\n<a>GO<!-- x --> <?y?>ON</a>',
        ),
        ("Go <x>to</x> bed", ["Go to bed"], "GO <x>TO</x> BED"),
        ("", [], ""),
    ],
)
def test_words_are_translated_and_all_the_rest_stays(text, sentences, expected):
    assert heard(text, "xml") == sentences
    assert translate_text(text, shout, "xml") == expected


NAMES = ["doc", "p", "li", "td", "title", "code", "style", "textarea", "svg", "br", "img", "script"]


def document(draw: random.Random, depth: int = 0) -> Iterator[str]:
    """Yield the parts of a document in which elements contain either words or elements."""
    name = draw.choice(NAMES)
    attributes = draw.choice(["", "", "", ' translate="no"', " a='>'"])
    if depth > 5 or draw.random() < 0.1:
        yield f"<{name}{attributes}/>"
        return
    yield f"<{name}{attributes}>"
    if depth and draw.random() < 0.5:
        yield draw.choice(["ein ü.", "&amp;wort", "a<b>e</b>c", "\r\n wort ", "x<!-- y -->z"])
    else:
        for _ in range(draw.randrange(1, 4)):
            yield from document(draw, depth + 1)
    yield f"</{name}>"


def shouted(element: ElementTree.Element) -> None:
    """Write a tree's words in capitals, except elements that are not translated."""
    if element.get("translate") != "no":
        element.text = (element.text or "").upper()
        for child in element:
            shouted(child)
            child.tail = (child.tail or "").upper()


@given(draw=st.randoms(use_true_random=False))
def test_an_xml_parser_finds_the_same_tree_with_other_words(draw):
    text = "".join(document(draw))
    tree = ElementTree.fromstring(text)
    shouted(tree)
    found = ElementTree.fromstring(translate_text(text, shout, "xml"))
    assert [element.tag for element in found.iter()] == [element.tag for element in tree.iter()]
    for one, other in zip(found.iter(), tree.iter(), strict=True):
        assert one.attrib == other.attrib
    assert " ".join("".join(found.itertext()).split()) == " ".join("".join(tree.itertext()).split())


PARTS = [
    "<a>",
    "</a>",
    "<b c='d'>",
    "</b>",
    "<e/>",
    "&",
    "&amp;",
    "<",
    ">",
    "]]>",
    "<![CDATA[",
    "f",
]


@given(parts=st.lists(st.sampled_from(PARTS), max_size=6))
def test_what_an_xml_parser_refuses_is_refused(parts):
    text = "".join(parts)
    try:
        tree = ElementTree.fromstring(f"<_>{text}</_>")
    except ElementTree.ParseError:
        with pytest.raises(XmlError, match=r"the XML cannot be read: .* in line 1, column \d"):
            translate_text(text, shout, "xml")
    else:
        found = ElementTree.fromstring(f"<_>{translate_text(text, shout, 'xml')}</_>")
        assert "".join(found.itertext()).lower() == "".join(tree.itertext()).lower()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("<a>ü\n ü & b</a>", "invalid token.* in line 2, column 5;"),
        ("<?xml version='1.0'?>\n\n<a></b>", "mismatched tag in line 3, column 6;"),
        ("</_><_>", "junk after document element"),
        ("a\x0b", "line 1, column 2"),
    ],
)
def test_an_error_names_its_place(text, place):
    with pytest.raises(XmlError, match=place):
        translate_text(text, shout, "xml")


def test_entities_are_not_expanded():
    """Ten levels of ten references would expand to ten thousand million words."""
    levels = "".join(f"<!ENTITY e{n} '{f'&e{n - 1};' * 10}'>" for n in range(1, 11))
    text = f"<!DOCTYPE a [<!ENTITY e0 'x'>{levels}]><a b='&e10;'>Go &e10;</a>"
    assert translate_text(text, shout, "xml") == text.replace("Go", "GO")


@pytest.mark.parametrize("part", ["<a>", "<a><b/>", "<!-- a -->", "<?a?>", "a ", "&lt;", "]", " >"])
def test_the_time_grows_with_the_length_alone(part):
    with at_most(seconds=60):
        for head in ("", "<!DOCTYPE a [", "<!DOCTYPE "):
            with suppress(XmlError):
                translate_text(head + part * 30_000, list, "xml")


@pytest.mark.parametrize(
    "head",
    [
        "<!DOCTYPE a [<!ENTITY b 'c'><!-- old ]> see note -->]>",
        "<!DOCTYPE a [<!ENTITY b '<![CDATA[x]]> see more'>]>",
        "<!DOCTYPE a [<?y ]> ?><!ELEMENT a ANY>]>",
        "<!DOCTYPE a SYSTEM 'x[1].dtd'>",
        "<!DOCTYPE a SYSTEM 'a>b.dtd' [<!ENTITY c \"]>\">]>",
    ],
)
def test_a_document_type_stays_whole(head):
    text = f"{head}<a>Go on</a>"
    ElementTree.fromstring(text)  # it is well-formed
    assert heard(text, "xml") == ["Go on"]
    assert translate_text(text, shout, "xml") == f"{head}<a>GO ON</a>"


def test_half_a_character_has_the_error_of_every_format():
    for format in ("xml", "html"):
        with pytest.raises(
            ValueError, match=r"the text contains '\\ud800', which is not a Unicode"
        ):
            translate_text("a\ud800b", shout, format)


WORDS = st.sampled_from(
    ["one ", "two ", " three", "four. ", "Five ", " six. ", "{x} ", "<x/>", " "]
)
CONTENT = st.recursive(
    WORDS,
    lambda content: st.builds(
        lambda name, inside: f"<{name}>{''.join(inside)}</{name}>",
        st.sampled_from("abcd"),
        st.lists(content, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(
    content=st.lists(CONTENT, max_size=8).map("".join),
    numbers=st.lists(st.integers(0, 5), max_size=8),
    answer=st.sampled_from([None, "", "Ja.", "Nein und ja, {x} und mehr."]),
)
def test_elements_that_a_sentence_boundary_divides_are_nested(content, numbers, answer):
    """In whatever order the words of each sentence are, and however they are linked."""

    def translate(batch):
        return [" ".join(reversed(one.split())) if answer is None else answer for one in batch]

    def align(sources, targets):
        pairs = list(zip(numbers, reversed(numbers), strict=True))
        sizes = [(len(a.split()), len(b.split())) for a, b in zip(sources, targets, strict=True)]
        return [[(i, j) for i, j in pairs if i < n and j < m] for n, m in sizes]

    text = f"<doc><p>Zero {content} ten. So</p></doc>"
    found = translate_text(text, translate, "xml", align=align)
    ElementTree.fromstring(found)
    assert sorted(re.findall("<[^<>]*>", found)) == sorted(re.findall("<[^<>]*>", text))
