"""Lock a run's folder during training, and first check that it is free."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tfformer.run_directory.run import Run
from tfformer.storage.folders import LOCK, Folder, folder_at
from tfformer.storage.run_folders import BEFORE_CONFIG, RUN_CONFIG, check_free, run_folder


@contextmanager
def locked_for_new_run(path: str | Path) -> Iterator[None]:
    """Lock a folder for a new training run.

    If the block ends without a config.json, the files that it wrote are removed.

    Raises:
        FileExistsError: The folder is not empty.
        BlockingIOError: Another training run has locked the folder.
    """
    check_free(path)
    folder = folder_at(path)
    missing = [parent for parent in (folder.path, *folder.path.parents) if not parent.exists()]
    folder.path.mkdir(parents=True, exist_ok=True)
    try:
        with _held(folder):
            check_free(path)
            try:
                yield
            finally:
                if not (folder.path / RUN_CONFIG).exists():
                    for name in BEFORE_CONFIG - {LOCK}:
                        (folder.path / name).unlink(missing_ok=True)
                    folder.push()
    finally:
        for parent in missing:
            with suppress(OSError):  # not empty: the run is in it
                parent.rmdir()


@contextmanager
def locked_for_resume(path: str | Path) -> Iterator[Run]:
    """Lock an existing run, so that no other process continues it.

    A link among TensorBoard's events is refused, because it would not be followed.
    """
    folder = run_folder(path)
    with _held(folder):
        run = Run.open(path)
        for entry in (run.tensorboard, *run.tensorboard.rglob("*")):
            if entry.is_symlink():
                raise ValueError(f"{entry} is a link, which is not followed; remove it")
        yield run


@contextmanager
def _held(folder: Folder) -> Iterator[None]:
    with folder.held(
        f"{folder} is being written by another training run; wait until it has ended, or stop it"
    ):
        yield
