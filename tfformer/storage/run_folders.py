"""Tell run directories and exports apart by the names of their files.

This module does not import TensorFlow, so the command line checks folders before loading it.
"""

from pathlib import Path

from tfformer.storage.folders import LOCK, Folder, folder_at
from tfformer.storage.whole_files import TEMPORARY

RUN_CONFIG = "config.json"  # the file that makes a folder a run directory
MANIFEST = "manifest.json"  # the file that marks an exported version
# Files that a training run killed early may have written before config.json.
BEFORE_CONFIG = {
    "tokenizer.model",
    "tokenizer.pieces.json",
    "source.model",
    "source.pieces.json",
    "target.model",
    "target.pieces.json",
    "resume.npz",
    "metrics.jsonl",
    "imported.json",
    LOCK,
}


def is_run(path: str | Path) -> bool:
    """Whether a folder is a run directory; CTranslate2 exports also contain a config.json."""
    folder = folder_at(path)
    return folder.has_file(RUN_CONFIG) and not folder.has_file(MANIFEST)


def exported_version(path: str | Path) -> Path | None:
    """Return the exported version at `path` or the newest version in it; None without either."""
    folder = Path(path)
    if (folder / MANIFEST).is_file():
        return folder
    versions = [file.parent for file in folder.glob(f"*/{MANIFEST}")]
    numbered = [version for version in versions if version.name.isdecimal()]
    return max(numbered, key=lambda version: int(version.name), default=None)


def run_folder(run: str | Path) -> Folder:
    """Return the folder of a run.

    Raises:
        FileNotFoundError: It has no config.json, or is an exported version.
    """
    folder = folder_at(run)
    if is_run(run):
        return folder
    if exported_version(folder.path):
        raise FileNotFoundError(
            f"{run} is an export, not a run directory; pass the run that was exported"
        )
    raise FileNotFoundError(
        f"{run} is not a run directory: it has no {RUN_CONFIG}; pass the --run-dir of a "
        "training run"
    )


def check_free(path: str | Path) -> None:
    """Raise FileExistsError unless a new run may begin at `path`.

    The folder may be absent, empty, or left by a training run that was killed at its start.
    """
    names = folder_at(path).names()
    if RUN_CONFIG in names:
        raise FileExistsError(
            f"{path} already contains a run; add --resume (in Python resume=True) to continue it, "
            "or choose another folder"
        )
    strange = {name for name in names - BEFORE_CONFIG if not TEMPORARY.fullmatch(name)}
    if strange or (names and LOCK not in names):
        raise FileExistsError(f"{path} exists and is not an empty folder; choose another --run-dir")
