"""HTML elements that are not translated, with and without an end tag."""

import random
import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.limits import lines_run
from support.whole_texts import shout, translate_text
from tinyhtml5 import parse

# Of each element: what may stand in it, and whether its end tag is left out.
INSIDE = {
    "div": ["p", "ul", "dl", "table", "b", "select", "svg"],
    "ul": ["li"],
    "li": ["p", "ul", "b", "i"],
    "p": ["b", "i", "svg"],
    "dl": ["dt", "dd"],
    "dt": ["b"],
    "dd": ["p", "b", "ul"],
    "table": ["thead", "tbody"],
    "thead": ["tr"],
    "tbody": ["tr"],
    "tr": ["td", "th"],
    "th": ["b"],
    "td": ["p", "ul", "table"],
    "select": ["option", "optgroup"],
    "optgroup": ["option"],
}
NO_END = {"li", "p", "dt", "dd", "thead", "tbody", "tr", "th", "td", "option", "optgroup"}
NO_WORDS = {"ul", "dl", "table", "thead", "tbody", "tr", "select", "optgroup", "svg"}


def word(draw: random.Random) -> str:
    return f" {''.join(draw.choices('aeiou', k=12))} "


def page(draw: random.Random, name: str = "div", depth: int = 0) -> Iterator[str]:
    """Yield the parts of valid HTML, word by word, with few end tags."""
    stays = depth and draw.random() < 0.2
    if name == "svg":
        yield draw.choice(['<svg class="a"/>', "<svg><path/></svg>"])
        return
    yield f"<{name} translate=no>" if stays else f"<{name}>"
    if name not in NO_WORDS:
        yield word(draw)
    for _ in range(draw.randrange(1, 4) if depth < 6 else 0):
        if name in INSIDE:
            yield from page(draw, draw.choice(INSIDE[name]), depth + 1)
    if name not in NO_END or draw.random() < 0.2:
        yield f"</{name}>"
        if name in ("b", "i", "svg"):
            yield word(draw)


def translated(element: Element) -> Iterator[str]:
    """Yield the words of a browser's tree outside elements that are not translated."""
    if element.get("translate") != "no":
        yield from (element.text or "").split()
        for child in element:
            yield from translated(child)
            yield from (child.tail or "").split()


@given(draw=st.randoms(use_true_random=False))
def test_an_element_that_stays_ends_where_the_standards_tree_ends_it(draw):
    """Without a document type, a table would be part of a paragraph, as in old browsers."""
    text = f"<!doctype html>{''.join(page(draw))}"
    found = translate_text(text, shout, "html")
    tree = parse(text, namespace_html_elements=False)
    assert [one.lower() for one in re.findall("[AEIOU]{12}", found)] == list(translated(tree))
    assert "".join(found.lower().split()) == "".join(text.split())


@pytest.mark.parametrize(
    "text",
    [
        "<section><div translate=no>one</section><p>two</p>",
        "<p><span translate=no>one</p><p>two</p>",
        "<section><span translate=no>one</section>two",
        "<ul><li><section translate=no>one</ul><p>two</p>",
        "<p><em translate=no>one</p><p>two</p></em>three",
        "<div translate=no>one</p>two</div>three",
    ],
)
def test_an_element_whose_end_tag_was_forgotten_ends_where_the_standards_tree_ends_it(text):
    found = translate_text(text, shout, "html")
    tree = parse(text, namespace_html_elements=False)
    assert re.findall("ONE|TWO|THREE", found) == [word.upper() for word in translated(tree)]
    assert found.lower() == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<svg><g/><path d=a/></svg>b", "<svg><g/><path d=a/></svg>B"),
        ("<svg a=b/>x</svg>y", "<svg a=b/>x</svg>Y"),
        ("<code/>d</code>e", "<code/>d</code>E"),
        ("<code><br>a<b>b</code>c", "<code><br>a<b>b</code>C"),
        (
            "<p translate=no>a<button><div>b</div></button>c<p>d",
            "<p translate=no>a<button><div>b</div></button>c<p>D",
        ),
        ("<code>x<p>y", "<code>x<p>y"),
    ],
)
def test_other_elements_end_at_their_end_tags(text, expected):
    assert translate_text(text, shout, "html") == expected


@pytest.mark.parametrize("tags", ["<x>", "<x><div>", "<x><li>", "<a{}>", "<li><ul>"])
def test_the_work_grows_with_the_length_alone(tags):
    """Four times the length takes four times the work, not sixteen times."""

    def work(length: int) -> int:
        inside = "".join(tags.format(number) for number in range(length))
        text = f"<p translate=no><button>{inside}"
        return lines_run(lambda: translate_text(text, list, "html"))

    work(1)  # compiles the patterns
    assert work(800) < 6 * work(200)
