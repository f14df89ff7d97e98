"""Arrays that stay in their file until they are needed.

They leave the memory when they are dropped. A checkpoint may be as large as the memory. Each array
is a map of its own, so that its pages go with it.
"""

import errno
import lzma
import mmap
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

LOCAL_HEADER = 30  # bytes of a zip's header before a member, without its name
MAX_RATIO = 100  # no member of a checkpoint is compressed so well
SMALL = 1024 * 1024
DAMAGE = (  # what the readers of zips, arrays and pickles raise for content of another form
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, RuntimeError),
    *(LookupError, TypeError, AttributeError, SyntaxError, OverflowError, MemoryError),
    UnicodeDecodeError,
)
DAMAGE_NUMBERS = (None, errno.EINVAL)  # of an OSError: of bzip2, or of a place before the file


@contextmanager
def naming_damage(path: Path, remedy: str) -> Iterator[None]:
    """Raise ValueError for every error of the block that a damaged file causes.

    Errors of the system, such as a full disk or a missing right, pass as they are.

    Args:
        path: The file.
        remedy: The end of the message.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in DAMAGE_NUMBERS:
            raise
        raise ValueError(f"{path} is damaged (OSError); {remedy}") from None
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged ({type(error).__name__}); {remedy}") from None


def mapped(path: Path, dtype: str | np.dtype, offset: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return numbers that lie in a file, not yet read.

    Args:
        path: The file.
        dtype: The dtype of the numbers.
        offset: The first byte.
        shape: The shape of the array.

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
        array: An array; one that is not mapped stays as it is.
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
