#!/usr/bin/env python
"""Checks on real files that whole texts come back if each translation is its sentence.

Usage: scripts/texts.py FOLDER... [--most N]

Reads the HTML and Markdown files of the folders, at most N of each (default 500), spread evenly.
Prints each file whose rendering changes, the first difference, and the counts. A rendering is the
sequence of visible characters, each with the elements around it, as html5lib reads the page.
Several spaces count as one, as in a browser. cmark-gfm renders Markdown.
"""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree.ElementTree import Element

import cmarkgfm
import html5lib

from tfformer.text import translate_text
from tfformer.text.encodings import declared_encoding
from tfformer.text.formats.markdown import HEAD

ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown")}
LARGEST = 300_000  # bytes of a file
RAW = {"pre", "textarea", "xmp", "listing", "script", "style"}  # their white space counts

Rendering = list[tuple[str, str]]  # (character, the elements around it)


def main() -> int:
    """Compare each file; return 1 if a rendering changes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=500, metavar="N")
    arguments = parser.parse_args()
    different = 0
    for format, endings in ENDINGS.items():
        files = [file for folder in arguments.folders for file in files_of(folder, endings)]
        files = files[:: max(1, len(files) // arguments.most)][: arguments.most]
        changed = sum(is_changed(file, format) for file in files)
        print(f"{format}: {len(files)} files, {changed} rendered differently", flush=True)
        different += changed
    return min(different, 1)


def files_of(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Return the files of a folder, of moderate size, without links."""
    return sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in endings
        and file.is_file()
        and not file.is_symlink()
        and file.stat().st_size <= LARGEST
    )


def is_changed(file: Path, format: str) -> bool:
    """Translate a file by the identity, and print the first difference of the renderings."""
    content = file.read_bytes()
    try:
        text = content.decode(declared_encoding(content[:1024], format).read)
    except UnicodeDecodeError:
        return False  # `tfformer translate` refuses such a file
    before, after = (render(one, format) for one in (text, translate_text(text, list, format)))
    if before == after:
        return False
    pairs = zip(before, after, strict=False)
    place = next((n for n, (one, other) in enumerate(pairs) if one != other), len(before))
    print(file)
    for rendering in (before, after):
        part = rendering[max(0, place - 60) : place + 60]
        print("   ", "".join(character for character, _ in part), rendering[place : place + 1])
    return True


def render(text: str, format: str) -> Rendering:
    """Return the visible characters of a page, each with the elements around it.

    A space comes with the character behind it, since it may be on either side of a tag.
    """
    if format == "markdown":
        text = cmarkgfm.github_flavored_markdown_to_html(HEAD.sub("", text), 1 << 17)  # with HTML
    found = []
    space = ""
    for character, path in characters(html5lib.parse(text, namespaceHTMLElements=False), ""):
        if character in " \t\r\n\f" and not RAW & set(path.split("/")):
            space = " "
        elif len(character) > 1:
            found.append((character, path))
        else:
            found.append((space + character, path))
            space = ""
    return found


def characters(element: Element, around: str) -> Iterator[tuple[str, str]]:
    """Yield the attributes of an element, and the characters in it."""
    if not isinstance(element.tag, str):  # a comment
        return
    path = f"{around}/{element.tag}"
    yield f"[{sorted(element.attrib.items())}]", path
    for character in element.text or "":
        yield character, path
    for child in element:
        yield from characters(child, path)
        for character in child.tail or "":
            yield character, path


if __name__ == "__main__":
    sys.exit(main())
