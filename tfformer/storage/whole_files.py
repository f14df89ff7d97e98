"""Write files and folders atomically, and read small files, which may be damaged.

Each file is first written under a temporary name in the same folder. The name contains the machine,
the process and a random part: `.tfformer-MACHINE-PROCESS-RANDOM-NAME`. So two processes that write
the same file do not interfere, an attacker cannot plant a link at a predictable path, and leftovers
of a killed process can be distinguished from files that are still being written.
"""

import fcntl
import gzip
import hashlib
import io
import json
import os
import platform
import re
import secrets
import shutil
import stat
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, TextIO

MAX_BYTES = 65_536  # of a user's file to read, 45 times the largest built-in recipe
OWN_BYTES = 2**26  # of a file that tfformer wrote; lists of ids or of text files may be long
LOCK = ".lock"  # in a folder that a process is writing to
KEPT_OF_NAME = 40  # characters of the final name in the temporary name, whose length is limited
SEAL = re.compile(rb"\ntfformer (?P<note>[0-9a-f ]{0,256}) sha256 (?P<digest>[0-9a-f]{64})\n\Z")
SEAL_BYTES = 400  # the longest seal is shorter
TEMPORARY = re.compile(r"\.tfformer-(?P<machine>[0-9a-f]{8})-(?P<process>\d{1,10})-[0-9a-f]{16}-.*")


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield an empty temporary file, which replaces `path` if the block ends without an error.

    The replacement is atomic: after an error, `path` is unchanged; after a kill, it has its old or
    its new content. The next write into the folder removes temporary files that killed processes of
    this machine have left there. A link named `path` is replaced, not followed.
    """
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"cannot write {path.name}: the folder {path.parent} does not exist; create it first"
        )
    remove_leftovers(path.parent)
    temporary = path.with_name(_temporary_name(path.name))
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _sync(temporary)
        os.replace(temporary, path)
        _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def whole_text(path: Path) -> Iterator[TextIO]:
    """Yield a text file that becomes `path`, as in `whole_file`; `.gz` is compressed.

    The bytes depend on the text alone, unlike those of `gzip.open`, which has name and time.
    """
    with whole_file(path) as temporary, ExitStack() as stack:
        stream: Any = stack.enter_context(temporary.open("wb"))
        if path.suffix == ".gz":
            stream = stack.enter_context(gzip.GzipFile("", "wb", fileobj=stream, mtime=0))
        yield stack.enter_context(io.TextIOWrapper(stream, encoding="utf-8", newline="\n"))


class ErrorKeepingFile(io.BytesIO):
    """A file on disk that remembers its first write error, which `error_keeping` raises.

    HDF5 ignores some write errors, which leaves a hole in the file, and crashes after others; this
    file continues as if no error had occurred. Keras accepts only instances of `io.BytesIO` whose
    name has the suffix of a weights file, so this class is a subclass; its content is on disk, not
    in memory.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.error: OSError | None = None
        self._path = path
        self._file = path.open("r+b", buffering=0)
        self._position = 0
        self._end = self._file.seek(0, os.SEEK_END)

    def __str__(self) -> str:
        """Return the path, whose suffix tells Keras that this is a weights file."""
        return str(self._path)

    def write(self, content: Any, /) -> int:
        """Write `content` at the current position."""
        octets = memoryview(content).cast("B")
        self._keep(self._write_all, octets)
        self._position += len(octets)
        self._end = max(self._end, self._position)
        return len(octets)

    def readinto(self, buffer: Any, /) -> int:
        """Read from the current position into `buffer`."""
        self._file.seek(self._position)
        count = self._file.readinto(buffer) or 0
        self._position += count
        return count

    def truncate(self, size: int | None = None, /) -> int:
        """Make the file `size` bytes long."""
        self._end = self._position if size is None else size
        self._keep(self._file.truncate, self._end)
        return self._end

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Set the current position."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._end}
        self._position = start[whence] + offset
        return self._position

    def tell(self) -> int:
        """Return the current position."""
        return self._position

    def flush(self) -> None:
        """Do nothing: the file is unbuffered."""

    def close(self) -> None:
        """Close the file on the disk too."""
        self._file.close()
        super().close()

    def _write_all(self, octets: memoryview) -> None:
        self._file.seek(self._position)
        while octets:
            octets = octets[self._file.write(octets) :]

    def _keep(self, act: Callable[[Any], object], argument: object) -> None:
        if self.error is None:
            try:
                act(argument)
            except OSError as error:
                self.error = error


@contextmanager
def error_keeping(path: Path) -> Iterator[ErrorKeepingFile]:
    """Yield the existing file at `path` for HDF5, and raise OSError if a write has failed."""
    with ErrorKeepingFile(path) as file:
        try:
            yield file
        finally:
            if file.error is not None:
                raise file.error


def write_bytes(path: Path, content: bytes) -> None:
    """Write `content` to `path`, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, content: str) -> None:
    """Write `content` to `path` as UTF-8, whole or not at all."""
    write_bytes(path, content.encode("utf-8"))


@contextmanager
def temporary_folder(output: Path) -> Iterator[Path]:
    """Yield a new hidden folder within `output`, and remove it unless it was published.

    `output` and its parents are created if missing, and removed again if nothing is published.
    """
    missing = [folder for folder in (output, *output.parents) if not folder.exists()]
    if not missing:
        remove_leftovers(output)
    temporary = output / _temporary_name("folder")
    try:
        temporary.mkdir(parents=True)
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for folder in missing:
            with suppress(OSError):  # not empty: something has been published into it
                folder.rmdir()


def workplace_of(folder: Path) -> Path:
    """Return where to prepare the files of a new folder: in it, if it exists, or beside it.

    A folder that exists may be a mount point, so only its inside is on the same file system.
    """
    return folder if folder.is_dir() else folder.absolute().parent


@contextmanager
def new_folder(folder: Path, last: str) -> Iterator[Path]:
    """Yield a temporary folder, whose files are moved to `folder` if the block ends well.

    A missing folder appears with all files at once. A folder that exists, which may be a mount
    point or the working directory, receives the files one by one, and the file `last` at the end.

    Raises:
        BlockingIOError: Another process is filling the folder.
        FileExistsError: The folder is no longer empty.
    """
    exists = folder.is_dir()
    with temporary_folder(workplace_of(folder)) as temporary:
        yield temporary
        _sync_all(temporary)
        if exists:
            _fill(folder, sorted(temporary.iterdir(), key=lambda path: path.name == last))
        else:
            temporary.rename(folder)
            _sync(folder.absolute().parent)


def _fill(folder: Path, files: Sequence[Path]) -> None:
    """Move files to an empty folder, all or none."""
    with locked(folder / LOCK, f"another process is writing to {folder}; choose another folder"):
        names = {path.name for path in folder.iterdir()} - {LOCK}
        if not all(map(TEMPORARY.fullmatch, names)):
            raise FileExistsError(f"{folder} is no longer an empty folder; choose another folder")
        moved: list[Path] = []
        try:
            for file in files:
                file.rename(folder / file.name)
                moved.append(file)
            _sync(folder)
        except BaseException:
            for file in moved:
                (folder / file.name).rename(file)
            raise


def publish(folder: Path, output: Path) -> Path:
    """Rename the finished folder, atomically, to the next free number in `output`; return its path.

    Two processes that publish at the same time get different numbers.
    """
    _sync_all(folder)
    while True:
        numbers = [int(path.name) for path in output.iterdir() if path.name.isdecimal()]
        version = output / str(max(numbers, default=0) + 1)
        try:
            folder.rename(version)
        except OSError:
            if version.exists():  # another process was faster
                continue
            raise
        _sync(output)
        return version


def publish_as(folder: Path, target: Path) -> None:
    """Move the finished folder to `target`, atomically, unless another process was faster."""
    _sync_all(folder)
    try:
        folder.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    _sync(target.parent)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files that killed processes of this machine and user left in `folder`.

    Files of other machines that share the file system remain. A removed folder causes a warning, as
    it may be large.
    """
    with os.scandir(folder) as entries:
        leftovers = [
            (entry, match) for entry in entries if (match := TEMPORARY.fullmatch(entry.name))
        ]
    for entry, match in leftovers:
        if match["machine"] != _machine() or _is_alive(int(match["process"])):
            continue
        with suppress(OSError):  # another process may remove it at the same time
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
                warnings.warn(
                    f"removed {entry.path}, which a killed process had left unfinished",
                    stacklevel=3,
                )
            else:
                os.unlink(entry.path)


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Lock the file `path` for the block.

    If another process has locked it, BlockingIOError with the message `refusal` is raised.

    The system releases the lock when the process ends for any reason. The lock works on one
    machine, and on network file systems that pass `flock` to their server (NFS since Linux 2.6.12,
    Lustre mounted with `-o flock`, CephFS). Where locks are local to a machine (`local_lock=flock`,
    Lustre's `localflock`, many FUSE file systems), machines do not see each other's locks. The lock
    file is removed when the block ends, but remains if the process is killed.
    """
    handle = _lock(path, refusal)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path, refusal: str) -> int:
    """Open and lock the file at `path`, which its last holder may be about to remove."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if path.exists() and os.path.samestat(os.fstat(handle), path.lstat()):
                return handle
        except BlockingIOError:
            os.close(handle)
            raise BlockingIOError(refusal) from None
        except FileNotFoundError:
            pass  # removed between the two checks
        os.close(handle)


def seal(path: Path, note: str) -> None:
    """Append a line with a note and the SHA-256 of everything before it.

    An earlier seal is replaced. Formats that store their own length, such as HDF5, ignore the line.
    The note is at most 256 hexadecimal digits and spaces.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "a")
        ...     _ = path.write_text("content")
        ...     seal(path, "b5")
        ...     read_seal(path)
        'b5'
    """
    with path.open("r+b") as file:
        start, _ = _find_seal(file)
        file.truncate(start)
        file.seek(start)
        file.write(f"\ntfformer {note} sha256 ".encode())
        file.seek(0)
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        file.write(f"{digest}\n".encode())


def read_seal(path: Path) -> str:
    """Return the note of a sealed file; raise ValueError for a missing seal or a wrong digest."""
    with path.open("rb") as file:
        start, seal = _find_seal(file)
        if seal is None:
            raise ValueError("its digest is missing")
        file.seek(0)
        digest = hashlib.sha256()
        left = start + seal.start("digest") - seal.start()
        while left and (chunk := file.read(min(left, 2**20))):
            digest.update(chunk)
            left -= len(chunk)
    if digest.hexdigest().encode() != seal["digest"]:
        raise ValueError("its digest does not match its content")
    return seal["note"].decode()


def _find_seal(file: BinaryIO) -> tuple[int, re.Match[bytes] | None]:
    """Return the offset at which the content ends, and the match of the seal after it, if any."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - SEAL_BYTES))
    match = SEAL.search(file.read())
    return (size - len(match[0]) if match else size), match


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_regular(path: Path) -> None:
    """Raise ValueError if `path` is a device, which may never end, or a pipe."""
    with suppress(FileNotFoundError):
        mode = path.stat().st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
            raise ValueError(f"{path} is a device or a pipe; use a regular file")


def _temporary_name(name: str) -> str:
    random = secrets.token_hex(8)
    return f".tfformer-{_machine()}-{os.getpid()}-{random}-{name[-KEPT_OF_NAME:]}"


def _machine() -> str:
    """Return an id of the host name. By default, each container has a host name of its own."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):  # another user's process, or not a valid process id
        return True
    return True


def _sync_all(folder: Path) -> None:
    for path in (*folder.rglob("*"), folder):
        _sync(path)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    """Read a UTF-8 file without its byte order mark.

    A file that is not regular, or has more than `limit` bytes, raises ValueError.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise ValueError(f"{path} is not a regular file; use a regular file")
    with path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"{path} has more than {limit:,} bytes; check that it is the right file")
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not UTF-8 at byte {error.start + 1}; save it as UTF-8 text"
        ) from None


def parse_json(text: str) -> object:
    """Parse JSON; raise ValueError for any text that is not JSON."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("its objects and arrays are nested too deeply") from None


def digest_of_values(values: object) -> str:
    """Return the SHA-256 of plain JSON values, independent of the order of keys."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
