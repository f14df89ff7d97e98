"""The file of the attention page, and its behaviour in a real browser with a real mouse."""

import base64
import json
import re
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np
from support.browser import Browser
from support.made_up_attention import EXAMPLE, made_up, made_up_attention
from tinyhtml5.parser import HTMLParser

from tfformer.explain.attention_maps import AttentionMaps
from tfformer.explain.pictures import draw_attention as draw


def parsed(path: Path) -> Element:
    """Read a page in which every element is closed; a browser would repair any other."""
    parser = HTMLParser(namespace_html_elements=False)
    root = parser.parse(path.read_text(encoding="utf-8"))
    assert parser.errors == []
    return root


def decoded(view: dict, kind: dict) -> np.ndarray:
    shape = kind["layers"], kind["heads"], len(view["rows"]), len(view["columns"])
    return np.frombuffer(base64.b64decode(view["weights"]), np.uint8).reshape(shape) / 255


def test_the_page_holds_every_weight_by_words_and_by_pieces(tmp_path):
    draw(EXAMPLE, tmp_path / "page.html", "cross", "es")
    page = parsed(tmp_path / "page.html")
    data = json.loads(page.find(".//script[@id='data'][@type='application/json']").text)
    assert data["start"] == {"kind": "cross", "layer": 2, "head": "mean", "row": 2}
    assert data["languages"] == []
    for maps in EXAMPLE:
        kind = data["kinds"][maps.kind]
        for name, view in {"pieces": maps, "words": maps.words()}.items():
            assert (tuple(kind[name]["rows"]), tuple(kind[name]["columns"])) == (
                view.rows,
                view.columns,
            )
            np.testing.assert_allclose(decoded(kind[name], kind), view.weights, atol=0.002)


def test_the_page_needs_nothing_else(tmp_path):
    draw(EXAMPLE, tmp_path / "page.html")
    elements = list(parsed(tmp_path / "page.html").iter())
    assert not {element.tag for element in elements} & {"link", "img", "iframe", "object"}
    assert not [element for element in elements if {"src", "href"} & set(element.attrib)]
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|//[a-z]|@import|url\(|fetch\(|import\(", text)


def test_a_page_of_the_base_model_is_small(tmp_path):
    words = " ".join(f"▁word{n}" for n in range(31))
    draw(made_up_attention(words, words, layers=6, heads=8), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 500_000


# --- In the browser -------------------------------------------------------------------------------


def shown(browser: Browser) -> tuple[list[str], list[int]]:
    """Return the words that are attended to, and the percentages below them."""
    tokens = browser.evaluate(
        "[...document.querySelectorAll('#to span')].map((span) => span.firstChild.textContent)"
    )
    shares = browser.evaluate(
        "[...document.querySelectorAll('#to small')].map((small) => small.textContent)"
    )
    return tokens, [int(share.removesuffix("%")) for share in shares]


def assert_shown(browser: Browser, maps: AttentionMaps, layer: int, head: int, row: int) -> None:
    tokens, shares = shown(browser)
    assert tuple(tokens) == maps.columns
    np.testing.assert_allclose(
        shares, 100 * maps.weights[layer - 1, head - 1, row], atol=1
    )  # they travel as bytes


def test_pointing_at_a_word_shows_what_it_looks_at(browser, tmp_path):
    draw(EXAMPLE, tmp_path / "page.html", "encoder", "The")
    browser.open((tmp_path / "page.html").as_uri())
    browser.click("#heads button[data-layer='1'][data-head='1']")
    words = EXAMPLE.encoder.words()
    for row in (2, 0, 3):
        browser.hover(f"#from button:nth-child({row + 1})")
        assert_shown(browser, words, 1, 1, row)
        assert f"what “{words.rows[row]}” looks at" in browser.evaluate(
            "document.querySelector('#to-title').textContent"
        )


def test_layer_head_kind_and_pieces_are_switched(browser, tmp_path):
    draw(EXAMPLE, tmp_path / "page.html", "encoder", "The")
    browser.open((tmp_path / "page.html").as_uri())
    browser.click("#heads button[data-layer='2'][data-head='2']")
    assert_shown(browser, EXAMPLE.encoder.words(), 2, 2, 0)
    browser.click("#kinds input[value=cross]")
    browser.hover("#from button:nth-child(2)")
    assert_shown(browser, EXAMPLE.cross.words(), 2, 2, 1)
    browser.click("#views input[value=pieces]")
    browser.hover("#from button:nth-child(3)")
    assert_shown(browser, EXAMPLE.cross, 2, 2, 2)
    pressed = browser.evaluate(
        "[...document.querySelectorAll('#heads [aria-pressed=true]')].map((b) => b.title)"
    )
    assert pressed == ["layer 2, head 2"]


def test_a_head_that_the_other_kind_lacks_becomes_its_last(browser, tmp_path):
    """The decoder has fewer heads than the encoder, and two layers."""
    decoder = made_up_attention("▁The ▁cat", "▁Die ▁Katze", heads=2)
    encoder = made_up("▁The ▁cat", "▁The ▁cat", layers=2, heads=4)
    draw(decoder._replace(encoder=encoder), tmp_path / "page.html", "encoder", "The")
    browser.open((tmp_path / "page.html").as_uri())
    browser.click("#heads button[data-layer='1'][data-head='4']")
    assert_shown(browser, encoder.words(), 1, 4, 0)
    browser.click("#kinds input[value=cross]")
    assert_shown(browser, decoder.cross.words(), 1, 2, 0)
    title = browser.evaluate("document.querySelector('#to-title').textContent")
    assert title.endswith("layer 1 of 2, head 2)")
    browser.click("#heads button:last-child")  # the mean
    browser.click("#kinds input[value=encoder]")
    title = browser.evaluate("document.querySelector('#to-title').textContent")
    assert title.endswith("layer 2 of 2, mean of the heads)")


def test_the_page_has_its_languages_and_sentences_and_opens_at_the_famous_word(browser, tmp_path):
    attention = made_up_attention("▁The ▁dog ▁barks , ▁as ▁it ▁is ▁tired .", "▁Der ▁Hund ▁bellt .")
    draw(attention, tmp_path / "page.html", languages=["en", "de"])
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.evaluate("document.title") == "Attention, English → German"
    text = "document.getElementById({!r}).textContent"
    assert browser.evaluate(text.format("source")) == "The dog barks, as it is tired."
    assert browser.evaluate(text.format("translation")) == "Der Hund bellt."
    chosen = "document.querySelector('#from [aria-pressed=true]').textContent"
    assert browser.evaluate(chosen) == "it"


def test_what_the_user_typed_is_text(browser, tmp_path):
    nasty = [
        "<img/src=x/onerror=document.title='broken'>",
        "</script><script>document.title='broken'</script>",
        "&lt;",
    ]
    attention = made_up_attention(" ".join(f"▁{word}" for word in nasty), "▁x")
    draw(attention, tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    assert shown(browser)[0] == nasty
    assert browser.evaluate("document.title") == "Attention"
    assert (
        browser.evaluate("document.querySelectorAll('img').length + document.scripts.length") == 2
    )


def left_edges(browser: Browser, row: str) -> list[float]:
    """The distance from the left at which each word of a side (`from` or `to`) begins."""
    return browser.evaluate(
        f"[...document.querySelectorAll('#{row} > *')].map((word) => "
        "word.getBoundingClientRect().left)"
    )


def test_text_from_right_to_left_is_laid_out_and_walked_from_the_right(browser, tmp_path):
    attention = made_up_attention("▁החיה ▁לא ▁עייפה", "▁it ▁is")
    draw(attention, tmp_path / "page.html", "cross", "it")
    browser.open((tmp_path / "page.html").as_uri())
    browser.click("#heads button[data-layer='1'][data-head='1']")
    it, is_ = left_edges(browser, "from")
    first, second, third = left_edges(browser, "to")
    assert it < is_
    assert first > second > third
    browser.click("#kinds input[value=encoder]")
    first, second, third = left_edges(browser, "from")
    assert first > second > third
    browser.click("#from button:nth-child(1)")
    browser.press("ArrowLeft", 37)
    assert_shown(browser, attention.encoder.words(), 1, 1, 1)
    browser.press("ArrowRight", 39)
    assert_shown(browser, attention.encoder.words(), 1, 1, 0)
