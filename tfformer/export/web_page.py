"""Finds or builds the page that translates in the browser, and lays it out."""

import hashlib
import shutil
import subprocess
from pathlib import Path
from typing import TextIO

from tfformer.runtime.steps import Steps

SOURCES = Path(__file__).parents[2] / "export" / "on_device" / "web"
BUILD = ("npm ci", "npm run build")
SERVICE_WORKER = "service_worker.js"
VERSION = 'VERSION = "VERSION"'


def built(sources: Path = SOURCES, progress: TextIO | None = None) -> Path:
    """Return the folder of the built page.

    The page is built with npm if it is missing or old.

    Args:
        sources: The folder of the page's sources.
        progress: A stream for a line about each step of the build.

    Raises:
        ValueError: The sources or npm are missing, or the build fails.
    """
    page = sources / "dist"
    if _is_newest(page / SERVICE_WORKER, sources):
        return page
    if not (sources / "package.json").is_file():
        raise ValueError(
            f"the page's sources are not at {sources}; install tfformer from a checkout with pip "
            "install -e ."
        )
    if shutil.which("npm") is None:
        raise ValueError(
            f"the page in {sources} has to be built, and npm is not installed; install Node.js 20 "
            "or newer with npm"
        )
    step = Steps(progress)
    for command in BUILD:
        with step(f"{command} in {sources}"):
            _run(command, sources)
    return page


def _run(command: str, sources: Path) -> None:
    """Run a command of npm; ValueError with its first line if it fails."""
    done = subprocess.run(
        command.split(), cwd=sources, capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[0] if lines else f"exit code {done.returncode}"
        raise ValueError(f"`{command}` failed in {sources}: {reason}")


def _is_newest(built: Path, sources: Path) -> bool:
    """Whether the file that a build writes last is newer than all sources."""
    made_from = [
        sources / "build.mjs",
        sources / "package-lock.json",
        *(sources / "src").rglob("*"),
    ]
    newest = max((path.stat().st_mtime_ns for path in made_from if path.is_file()), default=0)
    return built.is_file() and built.stat().st_mtime_ns > newest


def write(page: Path, folder: Path) -> Path:
    """Copy the page into the empty `folder`; return the empty folder for its model."""
    shutil.copytree(page, folder, dirs_exist_ok=True)
    (folder / "model").mkdir()
    return folder / "model"


def set_version(folder: Path) -> None:
    """Write the digest of all files as the page's version.

    A browser that has kept the page takes the new files when the version has changed.

    Raises:
        ValueError: The page's service worker has no place for the version.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(
            f"{path.relative_to(folder)}\n".encode() + hashlib.sha256(path.read_bytes()).digest()
        )
    path = folder / SERVICE_WORKER
    text = path.read_text(encoding="utf-8")
    if VERSION not in text:
        raise ValueError(f"{path} has no line {VERSION}, which is to become the page's version")
    version = f'VERSION = "{digest.hexdigest()[:16]}"'
    path.write_text(text.replace(VERSION, version), encoding="utf-8")
