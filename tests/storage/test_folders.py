"""Folders of object stores, as seen by another process."""

import itertools
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfformer.storage import folders
from tfformer.storage.folders import Folder, RemoteFolder, folder_at

numbers = itertools.count()


@pytest.fixture
def bucket(object_store):
    """The name of a new bucket, whose requests are not inspected."""
    name = f"bucket-{next(numbers)}"
    object_store.bucket(name)
    yield name
    object_store.look = lambda method, path: None


def written(folder: Folder, **files: str) -> None:
    for name, text in files.items():
        (folder.path / name).write_text(text)


def read(folder: Folder) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.path.iterdir() if path.is_file()}


def test_another_process_has_the_files_that_were_pushed(bucket):
    first, second = (RemoteFolder(f"s3://{bucket}/runs/a") for _ in range(2))
    with first.held("taken"):
        written(first, a="1", b="2")
        first.push()
        second.pull(but=["b"])
        assert read(second) == {"a": "1"}
        written(first, a="3")
        (first.path / "b").unlink()
        first.push()
    second.pull()
    assert read(second) == {"a": "3"}
    assert second.names() == {"a"}


def test_files_below_are_pushed_and_not_pulled(bucket, object_store):
    first, second = (RemoteFolder(f"s3://{bucket}/run") for _ in range(2))
    with first.held("taken"):
        (first.path / "events" / "train").mkdir(parents=True)
        (first.path / "events" / "train" / "1").write_text("loss")
        first.push()
    assert object_store.content(bucket) == {"run/events/train/1": b"loss"}
    second.pull()
    assert list(second.path.iterdir()) == []
    assert second.names() == {"events"}
    assert not second.has_file("events")


def test_only_changes_are_sent_and_fetched(bucket, object_store):
    first, second = (RemoteFolder(f"s3://{bucket}") for _ in range(2))
    seen = []
    with first.held("taken"):
        written(first, a="1", b="2")
        first.push()
        second.pull()
        written(first, b="3")
        object_store.look = lambda method, path: seen.append((method, path))
        first.push()
        second.pull()
    files = [r for r in seen if r[1][-2:] in ("/a", "/b") and r[0] in ("PUT", "GET")]
    assert files == [("PUT", f"/{bucket}/b"), ("GET", f"/{bucket}/b")]
    assert read(second) == {"a": "1", "b": "3"}


def test_the_last_to_come_holds_the_folder(bucket, object_store):
    first, second = (RemoteFolder(f"s3://{bucket}") for _ in range(2))
    with first.held("another training has taken it"):
        written(first, a="1")
        first.push()
        with second.held(""):
            assert read(second) == {"a": "1"}
            written(second, a="2")
            second.push()
            written(first, a="3")
            with pytest.raises(BlockingIOError, match="another training has taken it"):
                first.push()
    assert object_store.content(bucket) == {"a": b"2"}


def test_a_lock_that_a_killed_process_has_left_is_said(bucket, object_store):
    folder = RemoteFolder(object_store.bucket(f"{bucket}-killed", {".lock": b"token"}))
    (folder.path / "a").write_text("a")
    message = f"s3://{bucket}-killed is locked: a training run is writing to it, or was killed; "
    with pytest.raises(BlockingIOError, match=message + "continue it with --resume$"):
        folder.push()
    with folder.held("taken"):
        folder.push()
    (folder.path / "a").write_text("b")
    folder.push()
    assert object_store.content(f"{bucket}-killed") == {"a": b"b"}


def test_the_holder_is_not_pulled_into(bucket):
    folder = RemoteFolder(f"s3://{bucket}")
    with folder.held(""):
        written(folder, a="new")
        folder.pull()
        assert read(folder) == {"a": "new"}


def replace_when_read(object_store, bucket: str, name: str, contents: Iterator[bytes]) -> None:
    """Replace an object's content whenever a read of it begins."""

    def replace(method: str, path: str) -> None:
        if method == "GET" and path.endswith(f"/{name}") and (content := next(contents, None)):
            writer = threading.Thread(
                target=object_store.files.pipe_file, args=(f"{bucket}/{name}", content)
            )
            writer.start()
            writer.join()

    object_store.look = replace


def test_a_file_that_is_replaced_on_the_way_is_fetched_again(bucket, object_store):
    """Otherwise the first chunks of a file could be old and the last ones new."""
    folder = RemoteFolder(object_store.bucket(f"{bucket}-of-a", {"a": b"old"}))
    contents = iter([b"new"])
    replace_when_read(object_store, f"{bucket}-of-a", "a", contents)
    folder.pull()
    assert list(contents) == []
    assert read(folder) == {"a": "new"}


def test_a_file_that_is_replaced_all_the_time_is_an_error(bucket, object_store):
    folder = RemoteFolder(object_store.bucket(f"{bucket}-of-a", {"a": b"old"}))
    contents = (b"%d" % n for n in itertools.count())
    replace_when_read(object_store, f"{bucket}-of-a", "a", contents)
    with pytest.raises(OSError, match="/a was replaced during every download; try again"):
        folder.pull()


def test_a_file_that_is_removed_on_the_way_is_left_out(bucket, object_store):
    folder = RemoteFolder(object_store.bucket(f"{bucket}-of-a", {"a": b"1", "b": b"2"}))

    def remove(method: str, path: str) -> None:
        if method == "HEAD" and path.endswith("/b"):
            object_store.look = lambda method, path: None
            object_store.files.rm_file(f"{bucket}-of-a/b")

    object_store.look = remove
    folder.pull()
    assert read(folder) == {"a": "1"}


def test_a_store_that_does_not_answer_is_left(bucket, object_store, monkeypatch):
    folder = RemoteFolder(f"s3://{bucket}/run")
    monkeypatch.setattr(folders, "SECONDS_TO_ANSWER", 0.2)
    object_store.look = lambda method, path: time.sleep(1)
    with pytest.raises(TimeoutError, match=r"s3://\S+/run has not answered for 0.2 seconds"):
        folder.names()


def test_a_place_that_cannot_be_written_is_named(object_store):
    folder = RemoteFolder("s3://no-such-bucket/run")
    assert folder.names() == set()
    with (
        pytest.raises(FileNotFoundError, match=r"s3://no-such-bucket/run: .*does not exist"),
        folder.held(""),
    ):
        pass


def test_an_address_has_one_copy_within_a_process(bucket):
    assert folder_at(f"s3://{bucket}/a/") is folder_at(f"s3://{bucket}/a")
    assert folder_at(f"s3://{bucket}/a").path != RemoteFolder(f"s3://{bucket}/a").path


def test_a_path_is_itself(tmp_path):
    for path in (tmp_path, str(tmp_path), f"file://{tmp_path}", f"file://localhost{tmp_path}"):
        assert folder_at(path).path == tmp_path
    assert folder_at("file:///with%20a%20blank").path == Path("/with a blank")
    assert folder_at(tmp_path / "none").names() == set()


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("file://runs/mine", "must have three slashes: file:///absolute/path"),
        ("nowhere://runs/mine", "nowhere://runs/mine: Protocol not known: nowhere"),
    ],
)
def test_a_wrong_address_is_refused(address, message):
    pytest.importorskip("fsspec")
    with pytest.raises(ValueError, match=message):
        folder_at(address)


@pytest.mark.parametrize(
    ("address", "missing", "remedy"),
    [
        ("s3://bucket/run", "s3fs", "pip install -e '\\.\\[s3\\]'"),
        ("gs://bucket/run", "gcsfs", "pip install -e '\\.\\[gs\\]'"),
        ("s3://bucket/run", "fsspec", "pip install -e '\\.\\[s3\\]'"),
        ("memory://run", "fsspec", "pip install 'fsspec'"),
    ],
)
def test_a_missing_package_is_named(monkeypatch, address, missing, remedy):
    pytest.importorskip("fsspec")
    loaded = sys.modules["fsspec.registry"]._registry
    monkeypatch.delitem(loaded, address.partition(":")[0], raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ValueError, match=remedy):
        RemoteFolder(address)
