"""Records the digests of a checkpoint's files as the tools that download checkpoints do."""

import hashlib
from pathlib import Path

from huggingface_hub._local_folder import write_download_metadata
from huggingface_hub.utils.sha import git_hash

COMMIT = "0" * 40


def hub_digest(path: Path) -> str:
    """Return the Hugging Face hub's digest of a file: SHA-256 for large files."""
    content = path.read_bytes()
    if path.suffix in (".safetensors", ".bin", ".spm", ".model"):
        return hashlib.sha256(content).hexdigest()
    return git_hash(content)


def state_by_downloads(folder: Path) -> None:
    """Write the metadata that `huggingface_hub.snapshot_download(..., local_dir=folder)` writes."""
    for path in [path for path in folder.iterdir() if path.is_file()]:
        write_download_metadata(folder, path.name, COMMIT, hub_digest(path))


def as_cache(folder: Path) -> Path:
    """Move the files into a cache of `huggingface_hub` beside the folder.

    Returns:
        The folder of the snapshot, of links to the files.
    """
    cache = folder.parent / f"models--{folder.name}"
    blobs, snapshot = cache / "blobs", cache / "snapshots" / COMMIT
    for new in (blobs, snapshot):
        new.mkdir(parents=True)
    for path in sorted(folder.iterdir()):
        digest = hub_digest(path)
        path.rename(blobs / digest)
        (snapshot / path.name).symlink_to(Path("../../blobs") / digest)
    folder.rmdir()
    return snapshot
