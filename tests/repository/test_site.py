"""The site of docs/ builds offline and without warnings; its links also work in the repository."""

import json
import os
import re
import runpy
import subprocess
import sys

import pytest
from support.documentation import ROOT

pytest.importorskip("mkdocs", reason="pip install -e '.[docs]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build = ["-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [sys.executable, *build], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.nightly
def test_every_page_is_built_and_asks_no_other_server(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 15
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]+\.(?:js|css|woff2?)"', text), page


@pytest.mark.nightly
def test_a_page_of_the_repository_leads_from_page_to_page(site):
    text = (site / "serving" / "index.html").read_text(encoding="utf-8")
    assert 'href="../exports/' in text
    assert "README.md" not in re.findall(r'href="([^"]*)"', text)


@pytest.mark.nightly
def test_pictures_side_by_side_are_wide_enough_on_a_phone(site, browser):
    phone = {"width": 360, "height": 640, "deviceScaleFactor": 2, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **phone)
    browser.open((site / "index.html").as_uri())
    widths = "[...document.querySelectorAll('td img')].map(image => image.clientWidth)"
    assert min(browser.evaluate(widths)) >= 320
    assert browser.evaluate("document.documentElement.scrollWidth") == 360  # the table alone moves


def test_a_notebooks_cells_become_text_code_and_output():
    cells = [
        {"cell_type": "markdown", "source": ["# Title\n", "text"]},
        {"cell_type": "code", "source": ["print(1)"], "outputs": [{"text": ["1\n"]}]},
        {"cell_type": "code", "source": ["pass"], "outputs": []},
    ]
    notebook_page = runpy.run_path(str(ROOT / "scripts" / "docs_pages.py"))["notebook_page"]
    page = notebook_page(json.loads(json.dumps({"cells": cells})))
    expected = (
        "# Title\ntext\n\n```python\nprint(1)\n```\n\n```text\n1\n```\n\n```python\npass\n```"
    )
    assert page == expected
