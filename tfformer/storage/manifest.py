"""`manifest.json`, the description of an export.

It also contains the digests that the export's files are checked against.
"""

import json
from pathlib import Path, PurePosixPath
from typing import Any

from tfformer.storage.run_folders import MANIFEST
from tfformer.storage.whole_files import check_regular, digest_of_values, file_digest, write_text

MANIFEST_DIGEST = "manifest_digest"  # SHA-256 of all other keys
REMEDY = "copy the whole exported folder again, or export the run again"
MAX_BYTES = 2**20  # a manifest is a few kilobytes


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Add the digest of the manifest, write it into `folder` and return it."""
    complete = manifest | {MANIFEST_DIGEST: digest_of_values(manifest)}
    write_text(folder / MANIFEST, json.dumps(complete, indent=2) + "\n")
    return complete


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of an export; raise ValueError if it is damaged."""
    path = folder / MANIFEST
    check_regular(path)
    try:
        with path.open("rb") as file:
            manifest = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
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
