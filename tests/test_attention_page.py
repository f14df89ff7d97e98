"""The attention page in a real browser, with a real mouse."""

import numpy as np
from browser import Browser

from tfformer.attention_maps import Attention, AttentionMaps
from tfformer.attention_pictures import draw_page


def made_up(kind: str, rows: str, columns: str, layers: int, heads: int) -> AttentionMaps:
    rows, columns = tuple(rows.split()), tuple(columns.split())
    random = np.random.default_rng(5)
    return AttentionMaps(kind, rows, columns, random.dirichlet(np.ones(len(columns)), (layers, heads, len(rows))))


def made_up_attention(source: str, target: str, layers: int = 2, heads: int = 2) -> Attention:
    sides = {"encoder": (source, source), "decoder": (target, target), "cross": (target, source)}
    return Attention(*(made_up(kind, *side, layers, heads) for kind, side in sides.items()))


FOUND = made_up_attention("▁The ▁a nimal ▁is ▁tired . </s>", "▁Das ▁Ti er ▁ist ▁müde . </s>")


def shown(browser: Browser) -> tuple[list[str], list[int]]:
    """The words that are looked at, and the percentages below them."""
    tokens = browser.evaluate("[...document.querySelectorAll('#to span')].map((span) => span.firstChild.textContent)")
    shares = browser.evaluate("[...document.querySelectorAll('#to small')].map((small) => small.textContent)")
    return tokens, [int(share.removesuffix("%")) for share in shares]


def assert_shown(browser: Browser, maps: AttentionMaps, layer: int, head: int, row: int) -> None:
    tokens, shares = shown(browser)
    assert tuple(tokens) == maps.columns
    np.testing.assert_allclose(shares, 100 * maps.weights[layer - 1, head - 1, row], atol=1)  # they travel as bytes


def test_pointing_at_a_word_shows_what_it_looks_at(browser, tmp_path):
    draw_page(FOUND, tmp_path / "page.html", "encoder", "The", 1, 1)
    browser.open((tmp_path / "page.html").as_uri())
    words = FOUND.encoder.words()
    for row in (2, 0, 3):
        browser.hover(f"#from button:nth-child({row + 1})")
        assert_shown(browser, words, 1, 1, row)
        assert f"what “{words.rows[row]}” looks at" in browser.evaluate(
            "document.querySelector('#to-title').textContent"
        )


def test_layer_head_kind_and_pieces_are_switched(browser, tmp_path):
    draw_page(FOUND, tmp_path / "page.html", "encoder", "The", 1, 1)
    browser.open((tmp_path / "page.html").as_uri())
    browser.click("#heads button[data-layer='2'][data-head='2']")
    assert_shown(browser, FOUND.encoder.words(), 2, 2, 0)
    browser.click("#kinds input[value=cross]")
    browser.hover("#from button:nth-child(2)")
    assert_shown(browser, FOUND.cross.words(), 2, 2, 1)
    browser.click("#views input[value=pieces]")
    browser.hover("#from button:nth-child(3)")
    assert_shown(browser, FOUND.cross, 2, 2, 2)
    pressed = browser.evaluate("[...document.querySelectorAll('#heads [aria-pressed=true]')].map((b) => b.title)")
    assert pressed == ["layer 2, head 2"]


def test_what_the_user_typed_is_text(browser, tmp_path):
    nasty = ["<img/src=x/onerror=document.title='broken'>", "</script><script>document.title='broken'</script>", "&lt;"]
    attention = made_up_attention(" ".join(f"▁{word}" for word in nasty), "▁x")
    draw_page(attention, tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    assert shown(browser)[0] == nasty
    assert browser.evaluate("document.title") == "Attention"
    assert browser.evaluate("document.querySelectorAll('img').length + document.scripts.length") == 2


def test_thirty_tokens_of_a_base_model_are_quick_to_open(browser, tmp_path):
    """Six layers of eight heads: every head has its picture, and the page stays below 500 kB."""
    text = " ".join(f"▁word{n}" for n in range(30))
    draw_page(made_up_attention(text, text, layers=6, heads=8), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 500_000
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.evaluate("document.querySelectorAll('#heads canvas').length") == 6 * (8 + 1)
