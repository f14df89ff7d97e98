"""The origin of an imported run: its record, its licence, and the digests of a download."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from tfformer.checkpoints.foreign_files import read_object
from tfformer.storage.whole_files import digest_of_values, file_digest, write_text

if TYPE_CHECKING:
    from tfformer.run_directory import Run

DIGEST = "digest"  # SHA-256 of all other keys
NOT_STATED = "not stated; ask the publisher of the model"
CARD_HEAD = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*$", re.DOTALL | re.MULTILINE)
LONGEST_CARD = 100_000  # maximum characters to read
DOWNLOADS = Path(".cache", "huggingface", "download")
NOTE = ".metadata"  # suffix of a file with commit, digest and time, one per line
STATED = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")  # Git's SHA-1 of a file, or SHA-256


def write_record(run: Run, values: Mapping[str, Any]) -> None:
    """Write the record of a run's import with the digest of its values."""
    record = json.loads(json.dumps(values))
    complete = record | {DIGEST: digest_of_values(record)}
    write_text(run.origin, json.dumps(complete, indent=1) + "\n")


def read_record(run: Run) -> dict[str, Any]:
    """Return the record of a run's import; an empty one for a run that was trained here.

    ValueError: the record is damaged.
    """
    if not run.origin.is_file():
        return {}
    record = read_object(run.origin)
    if record.pop(DIGEST, None) != digest_of_values(record):
        raise ValueError(
            f"{run.origin} is damaged (its digest does not match its content); restore "
            "it, or import the model again"
        )
    return record


def imported_from(run: Run) -> dict[str, dict[str, str]]:
    """Return {"imported": {"family", "origin", "licence"}} for a manifest.

    The dictionary is empty for a run that was trained here.
    """
    record = read_record(run)
    if not record:
        return {}
    return {"imported": {key: str(record.get(key)) for key in ("family", "origin", "licence")}}


def origin_of(folder: Path, origin: Path) -> dict[str, Any]:
    """Return the name, the licence and the digests of a checkpoint.

    `origin` is the path that the user gave: the folder, or its zip.
    """
    origin = origin.resolve()
    name = origin.name
    # huggingface_hub's cache: models--Helsinki-NLP--opus-mt-en-de/snapshots/COMMIT
    if origin.parent.name == "snapshots" and origin.parents[1].name.startswith("models--"):
        model = origin.parents[1].name.removeprefix("models--").replace("--", "/")
        name = f"{model}@{origin.name}"
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "origin": name,
        "licence": licence(folder),
        "files": {path.name: file_digest(path) for path in files},
    }


def licence(folder: Path) -> str:
    """Return the licence of a model.

    README.md may begin with YAML that names a `license`, as on the Hugging Face hub. Otherwise the
    first line of a file such as LICENSE is returned.
    """
    card = folder / "README.md"
    if card.is_file() and (stated := _licence_of_card(_beginning(card))):
        return stated
    for name in ("LICENSE", "LICENSE.txt", "LICENCE", "COPYING"):
        if (folder / name).is_file():
            lines = _beginning(folder / name).splitlines()
            return next((line.strip() for line in lines if line.strip()), NOT_STATED)
    return NOT_STATED


def _licence_of_card(text: str) -> str:
    """Return the licence in the head of a model card; an empty string without one."""
    head = CARD_HEAD.match(text)
    try:
        values = yaml.load(head[1], yaml.CBaseLoader) if head else None
    except yaml.YAMLError:
        return ""
    if not isinstance(values, dict):
        return ""
    stated = values.get("license", values.get("licence"))
    if stated == "other":  # not in the hub's list; license_name states it
        stated = values.get("license_name", stated)
    names = stated if isinstance(stated, list) else [stated]
    return ", ".join(name.strip() for name in names if isinstance(name, str))


def _beginning(path: Path) -> str:
    with path.open(encoding="utf-8-sig", errors="replace") as file:
        return file.read(LONGEST_CARD)


def check_stated_digests(folder: Path) -> None:
    """Raise ValueError if a file does not match the digest that came with it.

    Digests come from the notes that `huggingface_hub` leaves in a folder, and from its cache,
    where a file is a link to blobs/DIGEST.
    """
    for path in sorted(folder.iterdir()):
        blob = path.resolve()
        if path.is_symlink() and blob.is_file() and blob.parent.name == "blobs":
            remedy = f"delete {blob} to download it again, or put a file in place of the link"
            _check_digest(path, blob.name, remedy)
    for note in sorted((folder / DOWNLOADS).glob(f"*{NOTE}")):
        file = folder / note.name.removesuffix(NOTE)
        lines = note.read_text(encoding="utf-8", errors="replace").splitlines()
        if file.is_file() and len(lines) > 1:
            _check_digest(file, lines[1], f"download it again, or remove {note}")


def _check_digest(file: Path, digest: str, remedy: str) -> None:
    """Compare a file with its SHA-256, or with 40 digits Git's SHA-1, of the file behind a head."""
    if not STATED.fullmatch(digest):
        return
    if len(digest) == 64:
        actual = file_digest(file)
    else:
        content = file.read_bytes()
        head = b"blob %d\0" % len(content)
        actual = hashlib.sha1(head + content, usedforsecurity=False).hexdigest()
    if actual != digest:
        raise ValueError(
            f"{file} is damaged or changed: its digest is not {digest[:12]}..., which came with "
            f"it; {remedy}"
        )
