"""A page that translates in the browser: a static LiteRT file and the built page."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from tfformer.export.litert import LiteRT
from tfformer.html_page import LOOK
from tfformer.runtime.progress_lines import Steps

if TYPE_CHECKING:
    from tfformer.run_directory import Run

SOURCES = Path(__file__).parents[2] / "export" / "on_device" / "web"
BUILD = ("npm ci", "npm run build")
SERVICE_WORKER = "service_worker.js"
VERSION = 'VERSION = "VERSION"'


@dataclass(frozen=True, kw_only=True)
class WebPage(LiteRT):
    """A page that translates in the browser, for any server of static files.

    It also accepts the options of `Format`.

    Args:
        quantize: "none", "int8" (dynamic range, a scale per row) or "float16".
    """

    quantize: str = "float16"
    static: bool = field(default=True, init=False)  # these options are fixed for a page
    beam_size: int = field(default=1, init=False)
    length_penalty: float | None = field(default=None, init=False)

    subfolder: ClassVar[str] = "model"
    aligns: ClassVar[bool] = False  # the page shows none, and a signature takes megabytes

    def prepare(self, run: Run, step: Steps) -> None:
        super().prepare(run, step)
        built(step)

    def finish(self, version: Path) -> None:
        lay_out(SOURCES / "dist", version)


def built(step: Steps, sources: Path = SOURCES) -> Path:
    """Build the page with npm if it is missing or out of date, and return its folder.

    It raises ValueError if the sources or npm are missing, or the build fails.
    """
    page = sources / "dist"
    written_last = page / SERVICE_WORKER
    made_from = [LOOK, sources / "build.mjs", sources / "package-lock.json"]
    made_from += sources.glob("src/**/*")
    newest = max((path.stat().st_mtime_ns for path in made_from if path.is_file()), default=0)
    if written_last.is_file() and written_last.stat().st_mtime_ns > newest:
        return page
    if not (sources / "package.json").is_file():
        raise ValueError(
            f"the page's sources are not at {sources}; install tfformer from a checkout with pip "
            "install -e ."
        )
    if shutil.which("npm") is None:
        raise ValueError(
            f"the page in {sources} must be built, but npm is not installed; install Node.js 20 or "
            "newer with npm"
        )
    for command in BUILD:
        with step(f"{command} in {sources}"):
            _run(command, sources)
    return page


def _run(command: str, sources: Path) -> None:
    """Run an npm command; if it fails, raise ValueError with the first line of its output."""
    done = subprocess.run(
        command.split(), cwd=sources, capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        reason = lines[0] if lines else f"exit code {done.returncode}"
        raise ValueError(f"`{command}` failed in {sources}: {reason}")


def lay_out(page: Path, version: Path) -> None:
    """Copy the page beside its model, and set its version to a digest of all files.

    A browser that has cached the page downloads it again when the version changes. `version` is the
    folder of the version, which contains the model.
    """
    shutil.copytree(page, version, dirs_exist_ok=True)
    digest = hashlib.sha256()
    for path in sorted(path for path in version.rglob("*") if path.is_file()):
        digest.update(
            f"{path.relative_to(version)}\n".encode() + hashlib.sha256(path.read_bytes()).digest()
        )
    path = version / SERVICE_WORKER
    text = path.read_text(encoding="utf-8")
    if VERSION not in text:
        raise ValueError(f"{path} has no line {VERSION} to replace with the page's version")
    numbered = f'VERSION = "{digest.hexdigest()[:16]}"'
    path.write_text(text.replace(VERSION, numbered), encoding="utf-8")
