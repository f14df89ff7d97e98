"""The attention page in a real browser, with a real mouse: headless Chromium, driven through its debugging pipe."""

import json
import os
import shutil
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from tfformer.attention_maps import Attention, AttentionMaps
from tfformer.attention_pictures import draw_page

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium here; apt-get install chromium")


class Browser:
    """One page of a headless Chromium: the DevTools protocol, JSON messages that end in NUL, over two pipes."""

    def __init__(self, profile: Path):
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        settings = ("--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run")
        self._process = subprocess.Popen(
            [
                "bash",
                "-c",
                f'exec "$0" "$@" 3<&{commands} 4>&{answers}',
                CHROMIUM,
                *settings,
                f"--user-data-dir={profile}",
            ],
            pass_fds=(commands, answers),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(commands)
        os.close(answers)
        self._number, self._unread, self._session = 0, b"", {}
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = {"sessionId": self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        self._call("Emulation.setDeviceMetricsOverride", width=1200, height=1600, deviceScaleFactor=1, mobile=False)

    def open(self, page: Path) -> None:
        self._call("Page.navigate", url=page.as_uri())
        while not self.evaluate(f"location.href === {page.as_uri()!r} && document.readyState === 'complete'"):
            time.sleep(0.05)

    def evaluate(self, expression: str):
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def hover(self, selector: str) -> None:
        self._mouse("mouseMoved", selector)

    def click(self, selector: str) -> None:
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self._mouse(kind, selector)

    def close(self) -> None:
        self._call("Browser.close")
        self._process.wait(20)
        os.close(self._commands)
        os.close(self._answers)

    def _mouse(self, kind: str, selector: str) -> None:
        box = self.evaluate(f"JSON.stringify(document.querySelector({selector!r}).getBoundingClientRect())")
        x, y, width, height = (json.loads(box)[side] for side in ("x", "y", "width", "height"))
        button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
        self._call("Input.dispatchMouseEvent", type=kind, x=x + width / 2, y=y + height / 2, **button)

    def _call(self, method: str, **parameters) -> dict:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters} | self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = json.loads(self._read())
            if answer.get("id") == self._number:
                return answer["result"]

    def _read(self) -> bytes:
        while b"\0" not in self._unread:
            part = os.read(self._answers, 1 << 16)
            assert part, "Chromium has ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return message


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    opened = Browser(tmp_path_factory.mktemp("profile"))
    yield opened
    opened.close()


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
    browser.open(tmp_path / "page.html")
    words = FOUND.encoder.words()
    for row in (2, 0, 3):
        browser.hover(f"#from button:nth-child({row + 1})")
        assert_shown(browser, words, 1, 1, row)
        assert f"what “{words.rows[row]}” looks at" in browser.evaluate(
            "document.querySelector('#to-title').textContent"
        )


def test_layer_head_kind_and_pieces_are_switched(browser, tmp_path):
    draw_page(FOUND, tmp_path / "page.html", "encoder", "The", 1, 1)
    browser.open(tmp_path / "page.html")
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
    browser.open(tmp_path / "page.html")
    assert shown(browser)[0] == nasty
    assert browser.evaluate("document.title") == "Attention"
    assert browser.evaluate("document.querySelectorAll('img').length + document.scripts.length") == 2


def test_thirty_tokens_of_a_base_model_are_quick_to_open(browser, tmp_path):
    """Six layers of eight heads: every head has its picture, and the page stays below 500 kB."""
    text = " ".join(f"▁word{n}" for n in range(30))
    draw_page(made_up_attention(text, text, layers=6, heads=8), tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 500_000
    browser.open(tmp_path / "page.html")
    assert browser.evaluate("document.querySelectorAll('#heads canvas').length") == 6 * (8 + 1)
