"""Files appear whole or not at all."""

import os
import signal
import subprocess
import sys

import pytest

from tfformer.files import whole_file, write_text


def test_a_file_is_replaced_when_the_block_ends_well(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")
    with whole_file(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")

    def stop_half_way() -> None:
        with whole_file(path) as temporary:
            temporary.write_text("ne")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        stop_half_way()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_a_hidden_file_of_almost_that_name_is_left_alone(tmp_path):
    (tmp_path / ".profile").write_text("mine")
    write_text(tmp_path / "profile", "text")
    assert (tmp_path / ".profile").read_text() == "mine"


def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")
    code = (
        "import os, pathlib, sys, tfformer.files as f\n"
        "with f.whole_file(pathlib.Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('ne'); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)])
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"there is no folder .*/missing to write f.txt into; make it first"
    ):
        write_text(tmp_path / "missing" / "f.txt", "text")


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "f.txt", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "f.txt").stat().st_mode & 0o777 == 0o640
