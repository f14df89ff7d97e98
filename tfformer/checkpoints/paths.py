"""Checks the two paths of an import, before anything is read."""

from pathlib import Path

WEIGHTS = (".npz", ".bin", ".safetensors")  # some are zips themselves


def check_paths(path: Path, run_dir: Path) -> None:
    """Check the place of a checkpoint and that of its run.

    Args:
        path: A folder, or a file that should be a zip.
        run_dir: A folder that is absent or empty, and no link.

    Raises:
        FileExistsError: Something is at `run_dir`.
        ValueError: Nothing is at `path`, or one file of a checkpoint.
    """
    if run_dir.is_symlink():
        raise FileExistsError(f"{run_dir} is a link; give the folder itself as --run-dir")
    if run_dir.exists() and not (run_dir.is_dir() and not any(run_dir.iterdir())):
        raise FileExistsError(
            f"{run_dir} exists and is not an empty folder; choose another --run-dir"
        )
    if not path.exists():
        raise ValueError(
            f"{path} is neither a folder nor a zip; nothing is downloaded, so fetch the checkpoint "
            "first"
        )
    if path.is_file() and path.suffix in WEIGHTS:
        raise ValueError(f"{path} is one file of a checkpoint; give its folder, {path.parent}")
