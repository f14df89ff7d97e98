"""An exported page, visited with a headless Chromium by its own test program."""

import json
import shutil
import subprocess
from pathlib import Path

from support.browser import CHROMIUM

from tfformer.export import web_page

PROGRAMS = {"chromium": CHROMIUM, "node": shutil.which("node"), "npm": shutil.which("npm")}
MISSING = [name for name, path in PROGRAMS.items() if path is None]


def browse(folder: Path, sentences: list[str]) -> dict:
    """What the page's state is, and its translations of the sentences."""
    command = ["node", str(web_page.SOURCES / "test" / "browser.mjs"), str(folder), CHROMIUM]
    done = subprocess.run(
        command, input=json.dumps(sentences), capture_output=True, encoding="utf-8", timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)
