"""The folder of versions: what an export adds to it, clears from it and leaves alone."""

import io
import os
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import pytest

from tfformer.export.pipeline import export_model

pytestmark = pytest.mark.slow  # an export is read back in another process

pytest.importorskip("ctranslate2")


class NextVersion(NamedTuple):
    """An export into a folder in which another process was killed."""

    path: Path
    before: dict[Path, bytes | None]  # what the folder contained before both
    left: Path  # of the killed one
    warnings: list[str]
    lines: list[str]  # of a person's terminal


@pytest.fixture(scope="module")
def next_version(tiny_run, tmp_path_factory):
    output = tmp_path_factory.mktemp("used")
    for name in ("1", "7", "notes", ".hidden"):
        (output / name).mkdir()
        (output / name / "file").write_text(name)
    before, names = contents(output), set(output.iterdir())
    program = (
        "import os, pathlib, sys\n"
        "from tfformer.storage.whole_files import temporary_folder\n"
        "with temporary_folder(pathlib.Path(sys.argv[1])) as folder:\n"
        "    (folder / 'saved_model.pb').touch(); os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, output]).returncode == -9
    (left,) = set(output.iterdir()) - names
    assert (left / "saved_model.pb").is_file()
    lines = io.StringIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        version = export_model(tiny_run, output, "ctranslate2", progress=lines)
    messages = [str(warning.message) for warning in caught]
    return NextVersion(version, before, left, messages, lines.getvalue().splitlines())


def contents(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.mark.parametrize("format", ["ctranslate2", "marian"])
def test_an_address_is_no_folder_of_versions(format, tiny_run):
    with pytest.raises(ValueError, match="s3://bucket/m is an address, not a path; write"):
        export_model(tiny_run, "s3://bucket/m", format)


def test_each_step_is_a_line_with_its_seconds(next_version, tiny_run):
    """The lines of a person's terminal; a caller that gives no stream gets none."""
    expected = [
        f"loading {tiny_run}",
        "writing the CTranslate2 model",
        "computing the run's own answers to 32 samples",
        "reading it back in another process",
    ]
    steps = [re.fullmatch(r"(.*) \.\.\. \d+\.\d s", line) for line in next_version.lines]
    assert [match[1] for match in steps] == expected


def test_the_leavings_of_a_killed_export_are_cleared_by_the_next(next_version):
    """The export was killed while it read back.

    The folder it wrote stayed, and the next start removes it and says so.
    """
    removed = f"removed {next_version.left}, which a killed process had left"
    assert sum(removed in message for message in next_version.warnings) == 1
    assert not next_version.left.exists()


def test_versions_count_up_and_are_never_touched(next_version):
    version = next_version.path
    assert version.name == "8"
    files = contents(version.parent)
    assert {
        path: text for path, text in files.items() if version not in (path, *path.parents)
    } == next_version.before
    assert (
        version.stat().st_mode & 0o055 == 0o055 & ~current_umask()
    )  # the server may be another user


def current_umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
