"""Pages of Python's documentation are translated and read by Chromium."""

import json
import pydoc
import re

import pytest
from support.whole_texts import shout, translate_text

from tfformer.text.protected_words import protected_words

BY_DAY = "argparse calendar csv dataclasses fractions http.client inspect json shutil string"
BY_NIGHT = (
    "abc base64 bisect cmd code colorsys configparser contextlib copy difflib dis enum fileinput "
    "fnmatch functools gettext glob graphlib gzip heapq hmac html ipaddress itertools keyword "
    "linecache locale mimetypes netrc numbers operator optparse pprint queue random sched secrets "
    "shelve shlex statistics"
)
MODULES = [*BY_DAY.split(), *(pytest.param(m, marks=pytest.mark.nightly) for m in BY_NIGHT.split())]
# The elements of a page with their attributes, its words, and the words of its code.
READ = """(text => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const code = "code,kbd,samp,var,pre,script,style,textarea,svg,math,template,object";
  const nodes = page.createTreeWalker(page, NodeFilter.SHOW_TEXT), words = [], kept = [];
  while (nodes.nextNode()) {
    const node = nodes.currentNode;
    (node.parentElement.closest(code) ? kept : words).push(node.data);
  }
  const elements = [...page.querySelectorAll("*")].map(
    (one) => [one.tagName, ...[...one.attributes].map((each) => `${each.name}=${each.value}`)]);
  return {elements, words, kept};
})"""


def read_by(browser, page: str) -> dict:
    """Return the elements and texts of a page in the browser."""
    return browser.evaluate(f"{READ}({json.dumps(page)})")


def blank(match: re.Match[str]) -> str:
    return " " * len(match[0])


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_a_page_of_documentation_has_its_elements_and_every_word_translated(browser, module):
    page = pydoc.html.page(module, pydoc.html.document(pydoc.locate(module), module))
    before, after = (read_by(browser, one) for one in (page, translate_text(page, shout, "html")))
    assert len(before["elements"]) > 20
    assert after["elements"] == before["elements"]
    assert after["kept"] == before["kept"]
    assert "".join(after["words"]).upper().split() == "".join(before["words"]).upper().split()
    # A protected word may begin in one element and end in another.
    joined = "".join(after["words"])
    kept = {place for match in protected_words().finditer(joined) for place in range(*match.span())}
    start = 0
    for text in after["words"]:
        words = re.sub(r"^\s*[a-z]\)", blank, protected_words().sub(blank, text))  # a list's marker
        lower = {start + place for place, letter in enumerate(words) if letter.islower()}
        assert lower <= kept, text
        start += len(text)
