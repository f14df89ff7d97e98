#!/usr/bin/env python
"""Checks on real files that documents do not change if each translation equals its sentence.

Usage: scripts/document_identity.py FOLDER... [--most N]

Translates each document twice: into its own sentences, and into its sentences in capitals, so that
all markup must be placed. Reads at most N HTML files and N Markdown files (default 500) of each
folder, spread evenly. Prints each file whose rendering changes, the first difference, and the
counts. A rendering is the sequence of visible characters, each with the elements around it, as
html5lib reads the page. Several spaces count as one, as in a browser. cmark-gfm renders Markdown.
"""

import argparse
import functools
import multiprocessing
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import cmarkgfm
import html5lib

from tfformer.text import TextTranslator
from tfformer.text.encodings import declared_encoding
from tfformer.text.formats.markdown import HEAD

ENDINGS = {"html": (".html", ".htm"), "markdown": (".md", ".markdown")}
LARGEST = 300_000  # bytes of a file
RAW = {"pre", "textarea", "xmp", "listing", "script", "style"}  # their white space is significant

Rendering = list[tuple[str, str]]  # (character, the elements around it)


def main() -> int:
    """Compare each file; return 1 if a rendering changes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--most", type=int, default=500, metavar="N", help="files per format")
    arguments = parser.parse_args()
    for folder in arguments.folders:
        if not any(files_of(folder, endings) for endings in ENDINGS.values()):
            parser.error(f"{folder} contains no HTML or Markdown; name another folder")
    different = 0
    with multiprocessing.Pool() as pool:
        for format, endings in ENDINGS.items():
            files = [
                file
                for folder in arguments.folders
                for file in spread(files_of(folder, endings), arguments.most)
            ]
            changed = 0
            changes = pool.imap(functools.partial(change, format=format), files)
            for number, difference in enumerate(changes, 1):
                if difference:
                    print(difference, flush=True)
                    changed += 1
                if number % 100 == 0:
                    print(f"{format}: {number} of {len(files)} files", flush=True)
            print(f"{format}: {len(files)} files, {changed} rendered differently", flush=True)
            different += changed
    return min(different, 1)


def spread(files: Sequence[Path], most: int) -> Sequence[Path]:
    """Return at most `most` of the files, spread evenly."""
    return [files[n * len(files) // most] for n in range(most)] if len(files) > most else files


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


def change(file: Path, format: str) -> str:
    """Translate a file into itself, and describe the first difference of the renderings."""
    content = file.read_bytes()
    try:
        text = content.decode(declared_encoding(content[:1024], format).read)
    except UnicodeDecodeError:
        return ""  # `tfformer translate` refuses such a file
    before = render(text, format)
    after = render(TextTranslator(list).translate(text, format), format)
    if before == after:
        before = folded(before)
        after = folded(render(TextTranslator(in_capitals).translate(text, format), format))
    if before == after:
        return ""
    pairs = zip(before, after, strict=False)
    index = next((n for n, (a, b) in enumerate(pairs) if a != b), len(before))
    lines = [str(file)]
    for rendering in (before, after):
        nearby = rendering[max(0, index - 60) : index + 60]
        words = "".join(character for character, _ in nearby)
        lines.append(f"    {words} {rendering[index : index + 1]}")
    return "\n".join(lines)


def in_capitals(sentences: list[str]) -> list[str]:
    """Return sentences in capitals, except letters whose capital is two letters, such as ß."""
    return ["".join(map(capital, sentence)) for sentence in sentences]


def capital(character: str) -> str:
    """Return a letter's capital if that is one letter without another lower-case form."""
    upper = character.upper()
    return upper if upper.casefold() == character.casefold() and len(upper) == 1 else character


def folded(rendering: Rendering) -> Rendering:
    """Return a rendering in lower case."""
    return [(character.casefold(), path) for character, path in rendering]


def render(text: str, format: str) -> Rendering:
    """Return the visible characters of a page, each with the elements around it.

    A space is joined to the character after it, since it may be on either side of a tag.
    """
    if format == "markdown":
        text = cmarkgfm.github_flavored_markdown_to_html(HEAD.sub("", text), 1 << 17)  # with HTML
    rendering = []
    space = ""
    for character, path in characters(html5lib.parse(text, namespaceHTMLElements=False), ""):
        if character in " \t\r\n\f" and not RAW & set(path.split("/")):
            space = " "
        elif len(character) > 1:
            rendering.append((character, path))
        else:
            rendering.append((space + character, path))
            space = ""
    return rendering


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
