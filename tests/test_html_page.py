"""A browser's parser reads a page's data unchanged, whatever the texts contain."""

import json

import pytest
import tinyhtml5

from tfformer.html_page import fill_page

PAGE = '<!doctype html><script type="application/json" id="data">{data}</script><p>The end</p>'


@pytest.mark.parametrize(
    "text",
    [
        "</script><p>Another</p>",
        "</SCRIPT >",
        "<!--<script>",  # within it a parser looks for a second </script>
        "]]>&lt;&amp;",
        "{data}",
        "\"'\\\u2028\n",
        "שלום",
    ],
)
def test_a_text_reaches_the_page_and_stays_within_its_element(text, tmp_path):
    template = tmp_path / "page.html"
    template.write_text(PAGE)
    data = {"key " + text: [text, None, 1.5]}
    page = tinyhtml5.parse(fill_page(template, data), namespace_html_elements=False)
    assert json.loads(page.find(".//script").text) == data
    assert [paragraph.text for paragraph in page.iter("p")] == ["The end"]
