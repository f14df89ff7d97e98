"""The directories and public names in README and on the pages exist."""

import re

import pytest
from support.documentation import PAGES, ROOT, block_with

import tfformer


def test_the_tree_names_what_is_there():
    tree = block_with("docs/code.md", "", "the package").text
    package, repository = tree.split("\ndocs/")
    rooms = set(re.findall(r"^  (\w+(?:/|\.py))", package, re.MULTILINE))
    folders = {path.name for path in (ROOT / "tfformer").iterdir() if path.is_dir()}
    assert rooms == {f"{name}/" for name in folders - {"__pycache__"}}
    for name in re.findall(r"^(\w+/)", f"docs/{repository}", re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_readme_names_folders_that_are_there():
    tree = block_with("README.md", "", "the package").text
    for name in re.findall(r"^(\w+/)", tree, re.MULTILINE):
        assert (ROOT / name).is_dir(), name


def test_the_files_to_read_are_there_and_as_short_as_readme_says():
    page = (ROOT / "docs/code.md").read_text(encoding="utf-8")
    table = page.partition("## An afternoon's reading")[2].partition("\n\n`data/")[0]
    folder, lines = "", []
    for room, name in re.findall(r"`(\w+/)?(\w+\.py)`", table):
        folder = room or folder
        path = ROOT / "tfformer" / folder / name
        lines.append(len(path.read_text(encoding="utf-8").splitlines()))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(lines) == 11
    assert round(sum(lines), -2) <= 2_400
    assert "eleven files" in readme
    assert "2,400 lines" in readme


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_every_path_that_a_page_names_exists(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for path in re.findall(r"`((?:tfformer|tests|scripts|docs|export|examples)/[\w/.-]+)`", text):
        assert (ROOT / path).exists(), path


def test_the_api_page_has_every_public_name():
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    for name in tfformer.__all__:
        assert re.search(rf"^::: tfformer\.[\w.]*\b{name}$", page, re.MULTILINE), name
