"""Files and folders that are written whole or not at all. Knows nothing of what is in them."""

import os
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path in the same folder; when the block ends well it takes the place of `path` in one step.

    After an error, or a kill at any moment, `path` is as it was before; the next write clears what a kill has left.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"there is no folder {path.parent} to write {path.name} into; make it first"
        )
    temporary = path.with_name(f".tfformer-writes-{path.name}")  # no name that a person gives
    try:
        temporary.write_bytes(b"")
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write `content` to `path` as UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def temporary_folder(output: Path) -> Iterator[Path]:
    """Yield a new folder within `output`, where no server looks for a version; what is still there afterwards goes."""
    missing = [folder for folder in (output, *output.parents) if not folder.exists()]
    temporary = output / f".{uuid.uuid4().hex}"
    try:
        temporary.mkdir(parents=True)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in missing:
            with suppress(OSError):  # not empty: the export is in it
                folder.rmdir()


def publish(folder: Path, output: Path) -> Path:
    """Move the whole folder to the next free number within `output`, in one step."""
    for path in (*folder.rglob("*"), folder):
        _sync(path)
    numbers = [int(path.name) for path in output.iterdir() if path.name.isdecimal()]
    version = output / str(max(numbers, default=0) + 1)
    folder.rename(version)
    _sync(output)
    return version


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
