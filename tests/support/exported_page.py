"""Opens an exported page in headless Chromium, with the page's own test program."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

from support.browser import CHROMIUM

from tfformer.export.web import SOURCES

PROGRAMS = {"chromium": CHROMIUM, "node": shutil.which("node"), "npm": shutil.which("npm")}
MISSING = [name for name, path in PROGRAMS.items() if path is None]


def browse(folder: Path, sentences: list[str]) -> dict:
    """Return the page's state and its translations of the sentences."""
    return _answer("browser.mjs", sentences, str(folder), CHROMIUM)


def cut(tokenizer: Path, sentences: list[str]) -> list[list[str]]:
    """Segment sentences with the page's SentencePiece, which its build has installed."""
    return _answer("pieces.mjs", sentences, str(tokenizer))


def _answer(program: str, sentences: list[str], *arguments: str) -> Any:
    done = subprocess.run(
        ["node", str(SOURCES / "test" / program), *arguments],
        input=json.dumps(sentences),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
