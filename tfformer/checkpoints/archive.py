"""The zips that OPUS distributes, unpacked into a folder of their own.

They may hold anything. A stranger's zip may name paths outside of the folder, links, or files of
terabytes. Only plain files of a bounded size without a folder in their name are written.
"""

import shutil
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfformer.checkpoints.tensors.stored_arrays import check_members, naming_damage

MAX_BYTES = 32 * 1024**3  # of all files together; the largest models of OPUS have 4 GB
MAX_FILES = 1_000


def is_archive(path: Path) -> bool:
    """Tell whether a path is a zip file by its first bytes.

    Args:
        path: A file, a folder or nothing at all.
    """
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"PK\3\4"


def unpack(path: Path, folder: Path) -> None:
    """Write the files of a zip.

    Args:
        path: The zip.
        folder: A new folder.

    Raises:
        ValueError: The zip is damaged, too large, or has a member that is no plain file beside the
            others.
        OSError: A file cannot be written.
    """
    with naming_damage(path, "fetch it again"), zipfile.ZipFile(path) as archive:
        try:
            _check(archive)
            check_members(archive)
        except ValueError as error:
            raise ValueError(f"{path}: {error}; give the zip as it was published") from None
        folder.mkdir()
        for entry in archive.infolist():
            with archive.open(entry) as member, (folder / entry.filename).open("xb") as file:
                shutil.copyfileobj(member, file)


@contextmanager
def naming_archive(path: Path, folder: Path) -> Iterator[None]:
    """Let errors name the files of a zip where the user has them.

    Args:
        path: The zip.
        folder: The folder that it was unpacked to.

    Raises:
        ValueError: That of the block, with the zip in place of the folder.
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(str(error).replace(str(folder), str(path))) from error


def _check(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for more than a model, and for members that are no plain files."""
    entries = archive.infolist()
    if len(entries) > MAX_FILES:
        raise ValueError(f"it holds {len(entries):,} files, but a model has at most {MAX_FILES:,}")
    size = sum(entry.file_size for entry in entries)
    if size > MAX_BYTES:
        raise ValueError(f"it unpacks to {size:,} bytes, but a model has at most {MAX_BYTES:,}")
    for entry in entries:
        name = entry.filename
        if Path(name).name != name or "\\" in name or name in ("", ".", ".."):
            raise ValueError(f"{name[:80]!r} is no plain name of a file")
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise ValueError(f"{name[:80]!r} is a link or a device, not a file")
