"""Files are written completely or not at all."""

import gzip
import os
import random
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tfformer.storage import whole_files
from tfformer.storage.whole_files import (
    LOCK,
    check_regular,
    error_keeping,
    locked,
    new_folder,
    publish,
    temporary_folder,
    whole_file,
    whole_text,
    write_text,
)

GONE = 2**22 + 1  # above the highest number that Linux gives a process


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


def test_an_existing_folder_receives_new_files_in_order(tmp_path, monkeypatch):
    moved = []
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda *paths: (moved.append(paths), rename(*paths)))
    with new_folder(tmp_path, last="b") as temporary:
        assert temporary.parent == tmp_path  # on the same file system
        for name in "abc":
            (temporary / name).write_text(name)
        (temporary / "d").mkdir()
    assert moved[-1][1] == tmp_path / "b"
    assert len(moved) == 4
    assert sorted(os.listdir(tmp_path)) == [*"abcd"]


def fill(folder, *names):
    """Write files of these names with `new_folder`, the last one named last."""
    with new_folder(folder, last=names[-1]) as temporary:
        for name in names:
            (temporary / name).write_text(name)


def test_a_folder_that_another_process_fills_is_refused(tmp_path, monkeypatch):
    message = re.escape(f"another process is writing to {tmp_path}; choose another folder")
    with locked(tmp_path / LOCK, ""), pytest.raises(BlockingIOError, match=message):
        fill(tmp_path, "a", "b")
    assert os.listdir(tmp_path) == []
    monkeypatch.setattr(whole_files, "_sync_all", lambda _: (tmp_path / "b").write_text("theirs"))
    message = re.escape(f"{tmp_path} is no longer an empty folder; choose another folder")
    with pytest.raises(FileExistsError, match=message):
        fill(tmp_path, "a", "b")
    assert os.listdir(tmp_path) == ["b"]
    assert (tmp_path / "b").read_text() == "theirs"


def test_after_an_error_a_folder_is_empty_again(tmp_path, monkeypatch):
    rename = Path.rename

    def failing(path, target):
        if target == tmp_path / "b":
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(OSError, match="No space left"):
        fill(tmp_path, "a", "b")
    assert os.listdir(tmp_path) == []
    (tmp_path / LOCK).touch()  # of a killed process, which does not matter
    monkeypatch.undo()
    fill(tmp_path, "a", "b")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


def test_a_compressed_text_does_not_depend_on_its_name_or_the_time(tmp_path):
    for name in ("a.gz", "b.gz", "c"):
        with whole_text(tmp_path / name) as file:
            file.write("ü\n")
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.gz").read_bytes()) == (tmp_path / "c").read_bytes()


def test_a_missing_folder_appears_at_once(tmp_path):
    folder = tmp_path / "parent" / "new"
    with pytest.raises(KeyError), new_folder(folder, last="b"):
        raise KeyError
    assert os.listdir(tmp_path) == []
    with new_folder(folder, last="b") as temporary:
        (temporary / "a").write_text("a")
        assert not folder.exists()
    assert os.listdir(folder) == ["a"]
    assert os.listdir(folder.parent) == ["new"]


def test_a_hidden_file_of_almost_that_name_is_left_alone(tmp_path):
    (tmp_path / ".profile").write_text("mine")
    write_text(tmp_path / "profile", "text")
    assert (tmp_path / ".profile").read_text() == "mine"


def test_a_kill_leaves_the_old_file(tmp_path):
    path = tmp_path / "f.txt"
    write_text(path, "old")
    code = (
        "import os, pathlib, sys, tfformer.storage.whole_files as f\n"
        "with f.whole_file(pathlib.Path(sys.argv[1])) as temporary:\n"
        "    temporary.write_text('ne'); os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(path)])
    assert killed.returncode == -signal.SIGKILL
    assert path.read_text() == "old"


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cannot write f.txt: the folder .*/missing does"):
        write_text(tmp_path / "missing" / "f.txt", "text")


def test_permissions_follow_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "f.txt", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "f.txt").stat().st_mode & 0o777 == 0o640


def leaving(folder: Path, name: str, process: int = GONE) -> Path:
    """Create a temporary file as left by a process with this number on this machine."""
    with suppress(InterruptedError), whole_file(folder / name) as temporary:
        mark = temporary.name
        raise InterruptedError
    return folder / mark.replace(f"-{os.getpid()}-", f"-{process}-")


def test_two_writers_of_one_name_do_not_mix(tmp_path):
    path = tmp_path / "f.txt"
    with whole_file(path) as first, whole_file(path) as second:
        first.write_text("first, and longer")
        second.write_text("second")
    assert path.read_text() == "first, and longer"
    assert os.listdir(tmp_path) == ["f.txt"]


def test_a_link_of_the_final_name_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "f.txt").symlink_to(tmp_path / "outside")
    write_text(tmp_path / "f.txt", "text")
    assert (tmp_path / "outside").read_text() == "mine"
    assert not (tmp_path / "f.txt").is_symlink()


def test_a_link_planted_at_the_temporary_name_is_refused(tmp_path, monkeypatch):
    (tmp_path / "outside").write_text("mine")
    (tmp_path / "planted").symlink_to(tmp_path / "outside")
    monkeypatch.setattr("tfformer.storage.whole_files._temporary_name", lambda name: "planted")
    with pytest.raises(FileExistsError):
        write_text(tmp_path / "f.txt", "text")
    assert (tmp_path / "outside").read_text() == "mine"


def test_the_next_write_clears_what_a_killed_process_left(tmp_path):
    stale = leaving(tmp_path, "f.txt")
    stale.write_text("half")
    write_text(tmp_path / "other.txt", "text")
    assert os.listdir(tmp_path) == ["other.txt"]


def test_the_work_of_a_living_process_is_not_cleared(tmp_path):
    living = leaving(tmp_path, "f.txt", os.getppid())
    living.write_text("half")
    write_text(tmp_path / "other.txt", "text")
    assert living.read_text() == "half"


def test_the_work_of_another_machine_is_not_cleared(tmp_path):
    ours = leaving(tmp_path, "f.txt")
    machine = ours.name.split("-")[1]
    foreign = ours.with_name(ours.name.replace(machine, "0" * 8))
    foreign.write_text("half")
    write_text(tmp_path / "other.txt", "text")
    assert foreign.read_text() == "half"


def test_a_link_of_a_temporary_name_is_removed_and_its_target_stays(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "notes").write_text("mine")
    leaving(tmp_path, "f.txt").symlink_to(tmp_path / "outside", target_is_directory=True)
    write_text(tmp_path / "other.txt", "text")
    assert sorted(os.listdir(tmp_path)) == ["other.txt", "outside"]
    assert (tmp_path / "outside" / "notes").read_text() == "mine"


def test_the_next_start_clears_a_killed_processes_folder_and_says_so(tmp_path):
    stale = leaving(tmp_path, "folder")
    stale.mkdir()
    (stale / "part").write_text("half")
    said = r"removed .*, which a killed process had left unfinished"
    with pytest.warns(UserWarning, match=said), temporary_folder(tmp_path):
        assert not stale.exists()
    assert os.listdir(tmp_path) == []


def test_two_that_publish_at_once_get_two_numbers(tmp_path, monkeypatch):
    """The other process takes number 1 after this one has chosen it."""
    rename = Path.rename

    def late(self, target):
        monkeypatch.setattr(Path, "rename", rename)
        (tmp_path / "1").mkdir()
        (tmp_path / "1" / "file").write_text("the other's")
        return rename(self, target)

    with temporary_folder(tmp_path) as folder:
        (folder / "file").write_text("own")
        monkeypatch.setattr(Path, "rename", late)
        assert publish(folder, tmp_path) == tmp_path / "2"
    assert (tmp_path / "1" / "file").read_text() == "the other's"
    assert (tmp_path / "2" / "file").read_text() == "own"


def test_a_lock_is_refused_to_the_second_and_free_again_at_the_end(tmp_path):
    lock = tmp_path / ".lock"
    second = locked(lock, "taken")
    with locked(lock, "taken"), pytest.raises(BlockingIOError, match="taken"), second:
        pass
    assert not lock.exists()
    with locked(lock, "taken"):
        assert lock.exists()


def test_the_system_releases_the_lock_of_a_killed_process(tmp_path):
    lock = tmp_path / ".lock"
    code = (
        "import os, pathlib, sys, tfformer.storage.whole_files as f\n"
        "with f.locked(pathlib.Path(sys.argv[1]), 'taken'): os.kill(os.getpid(), 9)\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(lock)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert lock.exists()
    with locked(lock, "taken"):
        pass


def test_a_link_in_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / ".lock").symlink_to(tmp_path / "outside")
    with pytest.raises(OSError, match="symbolic link"), locked(tmp_path / ".lock", "taken"):
        pass
    assert not (tmp_path / "outside").exists()


def test_a_device_is_no_regular_file(tmp_path):
    with pytest.raises(ValueError, match="/dev/zero is a device or a pipe; use a regular file"):
        check_regular(Path("/dev/zero"))
    check_regular(tmp_path / "missing")


# --- Files that keep their error ----------------------------------------------------------------


def test_a_file_that_keeps_errors_is_without_them_an_ordinary_one(tmp_path):
    """Every operation returns what Python's own file returns."""
    draw, path, ordinary = random.Random(25), tmp_path / "a", tmp_path / "b"
    path.touch()
    with error_keeping(path) as file, ordinary.open("w+b", buffering=0) as expected:
        for _ in range(1_000):
            content, size = draw.randbytes(draw.randrange(90)), draw.randrange(2_000)
            act = draw.choice(
                (
                    lambda f, content=content: f.write(content),
                    lambda f, size=size: f.seek(size),
                    lambda f: f.seek(0, os.SEEK_END),
                    lambda f, size=size: f.seek(size, os.SEEK_CUR),
                    lambda f, size=size: f.truncate(size),
                    lambda f: f.truncate(),
                    lambda f: (f.tell(), f.readinto(buffer := bytearray(50)), buffer),
                    lambda f: f.flush(),
                )
            )
            assert act(file) == act(expected)
    assert path.read_bytes() == ordinary.read_bytes()


def test_an_error_of_writing_is_raised_at_the_end_alone():
    def write(also: Exception | None) -> None:
        with error_keeping(Path("/dev/full")) as file:
            assert file.write(b"content") == 7
            assert file.seek(0, os.SEEK_END) == 7
            if also:
                raise also

    for also in (None, RuntimeError("of a library that has noticed something")):
        with pytest.raises(OSError, match="No space left on device"):
            write(also)
