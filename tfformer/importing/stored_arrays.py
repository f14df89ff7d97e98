"""Arrays that stay in their file until they are needed.

They leave the memory when they are dropped. A checkpoint may be as large as the memory. Each array
is a map of its own, so that its pages go with it.
"""

import mmap
import struct
import zipfile
from pathlib import Path

import numpy as np

LOCAL_HEADER = 30  # bytes of a zip's header before a member, without its name
MAX_RATIO = 100  # no member of a checkpoint is compressed so well
SMALL = 1024 * 1024


def mapped(path: Path, dtype: str | np.dtype, offset: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers that lie in a file, not yet read.

    Args:
        path: The file.
        dtype: Of the numbers.
        offset: The first byte.
        shape: Of the array.

    Returns:
        An array that cannot be written to.
    """
    if 0 in shape:
        return np.zeros(shape, dtype)
    return np.memmap(path, dtype, "r", offset=offset, shape=shape)


def release(array: np.ndarray) -> None:
    """Let the pages of a mapped array go.

    They come back from the file when they are needed.

    Args:
        array: Any; one that is not mapped stays as it is.
    """
    if isinstance(array.base, mmap.mmap):
        array.base.madvise(mmap.MADV_DONTNEED)


def member_offset(path: Path, entry: zipfile.ZipInfo) -> int | None:
    """Return the first byte of a zip's member; None if it is compressed.

    Args:
        path: The zip.
        entry: The member.

    Raises:
        ValueError: The zip has no header there.
    """
    if entry.compress_type != zipfile.ZIP_STORED:
        return None
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(LOCAL_HEADER)
    if len(header) < LOCAL_HEADER or header[:4] != b"PK\3\4":
        raise ValueError("a member of it has no header")
    name_length, extra_length = struct.unpack("<2H", header[26:])
    return entry.header_offset + LOCAL_HEADER + name_length + extra_length


def check_members(archive: zipfile.ZipFile) -> None:
    """Raise ValueError for a zip with a bad member.

    Such a member is damaged, doubled or far too well compressed.

    Args:
        archive: Opened for reading; every member is read, a part at a time.
    """
    names = archive.namelist()
    if len(set(names)) < len(names):
        raise ValueError("it names a member twice")
    for entry in archive.infolist():
        if entry.file_size > max(SMALL, MAX_RATIO * entry.compress_size):
            raise ValueError(f"{entry.filename[:80]} is compressed more than {MAX_RATIO} times")
    damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged[:80]} is damaged")
