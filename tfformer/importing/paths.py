"""Checks the two paths of an import, before anything is read."""

from pathlib import Path


def check_paths(path: Path, run_dir: Path) -> None:
    """Check the place of a checkpoint and that of its run.

    Args:
        path: A folder, or a file that should be a zip.
        run_dir: A folder that is absent or empty.

    Raises:
        FileExistsError: Something is at `run_dir`.
        ValueError: Nothing is at `path`.
    """
    if run_dir.exists() and not (run_dir.is_dir() and not any(run_dir.iterdir())):
        raise FileExistsError(
            f"{run_dir} exists and is not an empty folder; choose another --run-dir"
        )
    if not path.exists():
        raise ValueError(f"{path} is neither a folder nor a zip; give that of a Marian checkpoint")
