"""Two processes that write the same names concurrently, and links at these names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.faults import check_without

from tfformer.cli.main import main
from tfformer.data import phrasebook

CORPUS = [sys.executable, "-m", "tfformer", "corpus", "phrasebook", "--output"]


@pytest.fixture(scope="module")
def phrasebook_files(tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    return {path.name: path.read_bytes() for path in phrasebook.write(folder)}


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.slow
def test_two_that_write_one_corpus_leave_a_whole_one(phrasebook_files, tmp_path):
    command = [*CORPUS, str(tmp_path / "corpus")]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        _, printed = process.communicate(timeout=300)
        assert process.returncode == 0 or "already" in printed, printed
    assert files_in(tmp_path / "corpus") == phrasebook_files


@pytest.mark.slow
def test_a_corpus_does_not_follow_links(phrasebook_files, tmp_path):
    folder, outside = tmp_path / "corpus", tmp_path / "outside"
    folder.mkdir()
    outside.mkdir()
    for name in phrasebook_files:
        (outside / name).write_text("mine")
        (folder / name).symlink_to(outside / name)
    assert main([*CORPUS[3:], str(folder)]) == 2
    left = {path.name: path.read_text() for path in outside.iterdir()}
    check_without("files outside touched", left == dict.fromkeys(phrasebook_files, "mine"), left)


def test_an_output_that_is_a_link_is_refused(tmp_path, tiny_run):
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "text").write_text("The animal is tired.\n")
    os.symlink(tmp_path / "outside", tmp_path / "output")
    arguments = ["translate", str(tiny_run), "--input", str(tmp_path / "text")]
    assert main([*arguments, "--output", str(tmp_path / "output")]) == 2
    left = (tmp_path / "outside").read_text()
    check_without("files outside touched", left == "mine", left)
