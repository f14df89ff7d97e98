"""The pages have the same design and need no network."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WEB = ROOT / "export" / "on_device" / "web" / "src"
STYLES = [ROOT / "tfformer" / "look.css", WEB / "page.css"]
PAGES = [*(ROOT / "tfformer").rglob("*.html"), WEB / "index.html"]
POLICY = re.compile(r'http-equiv="Content-Security-Policy"\s+content="([^"]*)"')


def test_the_pages_have_one_look():
    """The styles of the exported page are compared in tests/export/test_web_page.py."""
    for page in (ROOT / "tfformer").rglob("*.html"):
        assert "{look}" in page.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [*STYLES, *PAGES], ids=lambda path: path.name)
def test_no_page_names_another_server(path):
    assert not re.search(r"https?://|@import|url\(", path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path", [WEB / "index.html", *(ROOT / "tfformer" / "explain").glob("*.html")]
)
def test_a_page_without_headers_of_ours_has_its_policy_within(path):
    """The policy of a served page is a header, which tests/serving checks."""
    (policy,) = POLICY.findall(path.read_text(encoding="utf-8"))
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    assert not re.search(r"\*|https?:|unsafe-eval", policy)
