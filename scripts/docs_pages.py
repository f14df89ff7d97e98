"""Pages of the site whose files are outside docs/.

mkdocs calls `on_files` and `on_page_markdown` (`hooks` in mkdocs.yml). Pages link from file to file
of the repository, and the hook replaces these links with links from page to page. A link to a file
without a page becomes plain text. A link to a missing file is a warning: a strict build fails.
"""

import json
import logging
import posixpath
import re
from pathlib import Path
from typing import Any

import griffe
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
FILES = {  # page or picture of the site -> file of the repository
    "index.md": "README.md",
    "exports.md": "export/README.md",
    "serving.md": "export/serving/README.md",
    "on_device.md": "export/on_device/README.md",
    "benchmarks.md": "scripts/benchmarks/RESULTS.md",
    "multi30k.md": "scripts/multi30k/RESULTS.md",
    "curve.png": "scripts/multi30k/curve.png",
    "contributing.md": "CONTRIBUTING.md",
    "security.md": "SECURITY.md",
    "changelog.md": "CHANGELOG.md",
}
NOTEBOOK = "docs/tour.ipynb"

FENCED = re.compile(r"^(```.*?^```)$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(!?)\[([^\]\[]*)\]\(([^)\s]+)\)")

log = logging.getLogger("mkdocs.hooks.docs_pages")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages and pictures from outside docs/, and the notebook as a page."""
    for page, path in FILES.items():
        files.append(File.generated(config, page, abs_src_path=str(ROOT / path)))
    notebook = json.loads((ROOT / NOTEBOOK).read_text(encoding="utf-8"))
    files.append(File.generated(config, "tour.md", content=notebook_page(notebook)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the relative links outside code blocks by links between pages."""
    page_path = page.file.src_uri
    if page_path == "index.md":
        page.meta["hide"] = ["toc"]  # README's long lines need the width
    blocks = FENCED.split(markdown)
    blocks[::2] = [LINK.sub(lambda link: _on_site(link, page_path), text) for text in blocks[::2]]
    return "".join(blocks)


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown: text, code blocks and their outputs."""
    blocks = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            blocks.append(source)
            continue
        blocks.append(f"```python\n{source}\n```")
        printed = "".join("".join(output["text"]) for output in cell["outputs"])
        if printed:
            blocks.append(f"```text\n{printed.strip(chr(10))}\n```")
    return "\n\n".join(blocks)


def repository_path(page_path: str) -> str:
    """Return the file of the repository for a page, such as `serving.md`."""
    if page_path == "tour.md":
        return NOTEBOOK
    return FILES.get(page_path, f"docs/{page_path}")


def _on_site(link: re.Match[str], page_path: str) -> str:
    """Return one Markdown link, adapted to the site."""
    picture, text, address = link.groups()
    if re.match(r"\w+:|#", address):
        return link[0]
    path, _, anchor = address.partition("#")
    folder = posixpath.dirname(repository_path(page_path))
    target = posixpath.normpath(posixpath.join(folder, path))
    if not (ROOT / target).exists():
        log.warning("%s links to %s, which does not exist", repository_path(page_path), address)
        return link[0]
    pages = {file: page for page, file in FILES.items()} | {NOTEBOOK: "tour.md"}
    default = target.removeprefix("docs/") if target.startswith("docs/") else None
    on_site = pages.get(target, default)
    if on_site is None:
        return text
    relative = posixpath.relpath(on_site, posixpath.dirname(page_path) or ".")
    return f"{picture}[{text}]({relative}{'#' * bool(anchor)}{anchor})"


class Examples(griffe.Extension):
    """Treat the section `Example:` of a docstring as griffe's `Examples:`."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        """Rename the section of one object."""
        if obj.docstring:
            text = obj.docstring.value
            obj.docstring.value = re.sub("^Example:$", "Examples:", text, flags=re.MULTILINE)
