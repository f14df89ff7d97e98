"""`manifest.json`, an export's description of itself.

An export's files are checked against it.
"""

import hashlib
import json
import reprlib
from pathlib import Path, PurePosixPath
from typing import Any

from tfformer.data.piece_tokenizer import load_tokenizer
from tfformer.data.tokenizer_pair import Tokenizers as Tokenizers
from tfformer.storage.run_folders import MANIFEST
from tfformer.storage.whole_files import check_regular, file_digest, write_text

MANIFEST_DIGEST = "manifest_digest"  # SHA-256 of all other keys
MAX_BYTES = 2**20  # a manifest has a few kilobytes
SHORTEST = 2  # the least `max_length`: a token and the end token
KIND_NAMES = {dict: "table", list: "list", str: "text"}
KINDS = {  # of the keys that are read
    "decoding": dict,
    "files": dict,
    "format": str,
    "languages": list,
    "parity": dict,
    "signatures": dict,
    "tokenizers": dict,
    "versions": dict,
}


def write_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Write the manifest with its own digest into `folder`, and return it so."""
    complete = manifest | {MANIFEST_DIGEST: _digest_of(manifest)}
    write_text(folder / MANIFEST, json.dumps(complete, indent=2) + "\n")
    return complete


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in `folder`.

    Raises:
        ValueError: It cannot be read, or is not the manifest that the export wrote.
    """
    path = folder / MANIFEST
    check_regular(path)
    try:
        with path.open("rb") as file:
            manifest = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read ({error}); {_REMEDY}") from None
    if not isinstance(manifest, dict):
        raise ValueError(f"{path} must hold a JSON object; {_REMEDY}")
    digest = manifest.pop(MANIFEST_DIGEST, None)
    if digest != _digest_of(manifest):
        raise ValueError(
            f"{path} was changed after the export (its SHA-256 is not its own); {_REMEDY}"
        )
    _check_values(path, manifest)
    return manifest


def _check_values(path: Path, manifest: dict[str, Any]) -> None:
    """Refuse a value that no export writes; an older one lacks some."""
    for name, kind in KINDS.items():
        value = manifest.get(name)
        if value is not None and not isinstance(value, kind):
            raise ValueError(
                f"{path} has {reprlib.repr(value)} for {name!r}, which must be a "
                f"{KIND_NAMES[kind]}; {_REMEDY}"
            )
    longest = (manifest.get("decoding") or {"max_length": SHORTEST}).get("max_length")
    if type(longest) is not int or longest < SHORTEST:
        raise ValueError(
            f"{path} has {reprlib.repr(longest)} for 'max_length' of 'decoding', which must be a "
            f"whole number from {SHORTEST} on; {_REMEDY}"
        )


def check_files(folder: Path, manifest: dict[str, Any]) -> None:
    """Compare every file with its SHA-256 in the manifest.

    Raises:
        ValueError: A file is missing or another, or the manifest has no table of digests.
    """
    digests = manifest.get("digests")
    if not isinstance(digests, dict) or not digests:
        raise ValueError(f"{folder / MANIFEST} has no table `digests`; {_REMEDY}")
    for name, digest in digests.items():
        inside = PurePosixPath(name)
        if inside.is_absolute() or ".." in inside.parts:
            raise ValueError(f"{folder / MANIFEST} names {name!r}, outside its folder; {_REMEDY}")
        check_regular(folder / name)
        try:
            found = file_digest(folder / name)
        except OSError as error:
            raise ValueError(
                f"{folder / name} cannot be read ({error.strerror}); {_REMEDY}"
            ) from None
        if found != digest:
            raise ValueError(
                f"{folder / name} is not the file that was exported "
                f"(its SHA-256 differs from the manifest's); {_REMEDY}"
            )


def checked_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest in `folder`, after each file was compared with it.

    Raises:
        ValueError: The manifest or a file is not the one that was exported.
    """
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return manifest


def open_export(folder: Path) -> tuple[dict[str, Any], Tokenizers]:
    """Return the manifest and tokenizers of an export whose files are unchanged.

    Raises:
        ValueError: A file is not the one that was exported, or there is no tokenizer.
    """
    manifest = checked_manifest(folder)
    tokenizers = exported_tokenizers(folder, manifest)
    if tokenizers is None:
        raise ValueError(f"{folder} has no tokenizer beside the model; export the run again")
    return manifest, tokenizers


def exported_tokenizers(folder: Path, manifest: dict[str, Any]) -> Tokenizers | None:
    """Return the tokenizers of an export; None if it has none.

    Args:
        folder: The export, after `check_files`.
        manifest: Its manifest.

    Raises:
        ValueError: The manifest names a file that the export does not have, or that is no
            vocabulary.
    """
    names = sorted(manifest.get("tokenizers") or ())  # source before target, or one for both
    if not names:
        return None
    if unknown := [name for name in names if name not in manifest.get("digests", {})]:
        raise ValueError(
            f"{folder / MANIFEST} names the vocabulary {unknown[0]!r}, which is none of its files; "
            f"{_REMEDY}"
        )
    sides = [load_tokenizer(folder / name) for name in names]
    return Tokenizers(sides[0], sides[-1])


_REMEDY = "copy the whole exported folder again, or export the run again"


def _digest_of(manifest: dict[str, Any]) -> str:
    """Independent of the order of keys and of spaces."""
    return hashlib.sha256(json.dumps(manifest, sort_keys=True).encode()).hexdigest()
