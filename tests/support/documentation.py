"""The code blocks in the documentation, and the commands in them."""

import re
import shlex
import string
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page.relative_to(ROOT)
    for pattern in ("*.md", "docs/*.md", "export/**/README.md", "scripts/*/RESULTS.md")
    for page in ROOT.glob(pattern)
    if "node_modules" not in page.parts
)
FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ASSIGNMENT = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, and the number of its first line."""

    page: str
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    """Return the fenced blocks of a page in their order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    all_blocks = []
    for match in FENCED.finditer(text):
        line = text.count("\n", 0, match.start()) + 2
        all_blocks.append(Block(str(page), line, match[1], match[2]))
    return all_blocks


ALL_BLOCKS = [block for page in PAGES for block in blocks(page)]


def block_with(page: str, language: str, text: str) -> Block:
    """Return the only block on a page that contains `text`."""
    matching = [
        block
        for block in ALL_BLOCKS
        if (block.page, block.language) == (page, language) and text in block.text
    ]
    assert len(matching) == 1, f"{len(matching)} {language} blocks in {page} contain {text!r}"
    return matching[0]


def commands(block: Block) -> list[str]:
    """Return a shell block's commands, with continued lines joined and variables substituted."""
    variables, all_commands = {}, []
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words:
            continue
        if assignment := ASSIGNMENT.fullmatch(line):
            variables[assignment[1]] = assignment[2]
            continue
        command = re.sub(r"\s+# .*$", "", line).strip()
        all_commands.append(string.Template(command).safe_substitute(variables))
    return all_commands
