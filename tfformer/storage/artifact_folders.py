"""Tell run directories and exports apart, and check the files of an export by its manifest.

This module does not import TensorFlow, so the command line checks folders before loading it.
"""

import json
from pathlib import Path, PurePosixPath
from typing import Any

from tfformer.storage.folders import Folder, folder_at, local_path
from tfformer.storage.whole_files import (
    LOCK,
    OWN_BYTES,
    TEMPORARY,
    check_regular,
    digest_of_values,
    file_digest,
    parse_json,
    read_text,
    write_text,
)

RUN_CONFIG = "config.json"  # the file that makes a folder a run directory
MANIFEST = "manifest.json"  # the file that marks an exported version
PAIRS = "pairs"  # the folder of a teacher's translations, which are made before the run
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
    names = folder_at(path).names() - {PAIRS}
    if RUN_CONFIG in names:
        raise FileExistsError(
            f"{path} already contains a run; add --resume (in Python resume=True) to continue it, "
            "or choose another folder"
        )
    strange = {name for name in names - BEFORE_CONFIG if not TEMPORARY.fullmatch(name)}
    if strange or (names and LOCK not in names):
        raise FileExistsError(f"{path} exists and is not an empty folder; choose another --run-dir")


def empty_folder(path: str | Path) -> Path:
    """Return the path of a new folder on this machine, which is missing or empty.

    Raises:
        FileExistsError: It is a link, or exists and is not an empty folder.
        ValueError: `path` is an address in an object store.
    """
    folder = local_path(path)
    if folder.is_symlink():
        raise FileExistsError(f"{folder} is a link; pass the folder itself")
    is_free = not folder.exists() or (
        folder.is_dir() and all(TEMPORARY.fullmatch(entry.name) for entry in folder.iterdir())
    )
    if not is_free:
        raise FileExistsError(f"{folder} exists and is not an empty folder; choose another folder")
    return folder


MANIFEST_DIGEST = "manifest_digest"  # SHA-256 of all other keys
REMEDY = "copy the whole exported folder again, or export the run again"


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Add the digest of the manifest, write it into `folder` and return it."""
    complete = manifest | {MANIFEST_DIGEST: digest_of_values(manifest)}
    write_text(folder / MANIFEST, json.dumps(complete, indent=2) + "\n")
    return complete


def files_in(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the sizes (`files`) and the SHA-256 (`digests`) of all files in a folder by name."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    return {
        "files": {name: path.stat().st_size for name, path in names.items()},
        "digests": {name: file_digest(path) for name, path in names.items()},
    }


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an export; raise ValueError if it is damaged."""
    path = folder / MANIFEST
    check_regular(path)
    try:
        manifest = parse_json(read_text(path, OWN_BYTES))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {REMEDY}") from None
    if not isinstance(manifest, dict):
        raise ValueError(f"{path} must contain a JSON object; {REMEDY}")
    digest = manifest.pop(MANIFEST_DIGEST, None)
    if digest != digest_of_values(manifest):
        raise ValueError(
            f"{path} was changed after the export (its SHA-256 does not match); {REMEDY}"
        )
    return manifest


def check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Raise ValueError if the SHA-256 of a file is not the one in the manifest."""
    digests = manifest.get("digests")
    if not isinstance(digests, dict) or not digests:
        raise ValueError(f"{folder / MANIFEST} has no object `digests`; {REMEDY}")
    for name, digest in digests.items():
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            raise ValueError(f"{folder / MANIFEST} names {name!r}, outside its folder; {REMEDY}")
        check_regular(folder / name)
        try:
            actual = file_digest(folder / name)
        except OSError as error:
            raise ValueError(
                f"{folder / name} cannot be read ({error.strerror}); {REMEDY}"
            ) from None
        if actual != digest:
            raise ValueError(
                f"{folder / name} is not the file that was exported "
                f"(its SHA-256 differs from the manifest's); {REMEDY}"
            )


def checked_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an export after comparing each file with it."""
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return manifest
