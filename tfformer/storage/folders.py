"""Local folders, and folders in object stores with a local copy.

A program works in `path`, where it reads and writes whole files. For a folder in an object store
(`s3://`, `gs://`), `path` is the local copy: `pull` updates the copy from the store, and `push`
updates the store from the copy. Objects are replaced atomically, and a program pushes after each
change. The store is therefore always in a state that a local folder could have had.
"""

from __future__ import annotations

import atexit
import functools
import re
import secrets
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from tfformer.storage.whole_files import LOCK, locked, temporary_folder

T = TypeVar("T")
Version = tuple[int, int]  # a local file's modification time in ns and its size

ADDRESS = re.compile(r"(?P<protocol>[a-z][a-z0-9+.-]*)://.+")
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gs", "gcs": "gs"}  # protocol -> extra
SECONDS_TO_ANSWER = 120
SECONDS_A_FILE = 1800
FETCHES = 4  # attempts for a file that is replaced meanwhile


class Folder:
    """A local folder, which may be missing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __str__(self) -> str:
        return str(self.path)

    def absolute(self) -> str:
        """Return a path or an address that is the same in any working directory."""
        return str(self.path.absolute())

    def names(self) -> set[str]:
        """Return the folder's names; empty if it is missing, its own name if it is a file."""
        if self.path.is_dir():
            return {entry.name for entry in self.path.iterdir()}
        return {self.path.name} if self.path.exists() else set()

    def has_file(self, name: str) -> bool:
        """Return whether there is a file of this name directly in it."""
        return (self.path / name).is_file()

    def pull(self, but: Collection[str] = ()) -> None:
        """Update `path` from the folder, except the files named in `but`."""

    def push(self) -> None:
        """Update the folder from `path`."""

    @contextmanager
    def held(self, refusal: str) -> Iterator[None]:
        """Lock the folder for the block, as `locked` does; `refusal` is the error's message."""
        with locked(self.path / LOCK, refusal):
            yield


class RemoteFolder(Folder):
    """A folder of an object store, such as "s3://bucket/runs/mine", with a local copy.

    Only files directly in the folder are pulled; files in folders below it are only pushed.
    """

    def __init__(self, address: str) -> None:
        self.address = address
        self._store, root = _store_at(address)
        self._root = PurePosixPath(root)
        self._token: bytes | None = None  # lock token, if this process holds the lock
        self._refusal = ""
        self._pulled: dict[str, object] = {}  # the version of each file in the store
        self._pushed: dict[str, Version] = {}  # file -> local version when pushed
        working = ExitStack()
        local = working.enter_context(temporary_folder(Path(tempfile.gettempdir())))
        atexit.register(working.close)
        super().__init__(local / address.replace("://", ":/"))  # messages contain this path
        self.path.mkdir(parents=True)

    def __str__(self) -> str:
        return self.address

    def absolute(self) -> str:
        """Return the address."""
        return self.address

    def names(self) -> set[str]:
        """Return the names in the folder; an empty set if it is missing."""
        return set(self._kinds())

    def has_file(self, name: str) -> bool:
        """Return whether there is a file of this name directly in it."""
        return self._kinds().get(name) == "file"

    def _kinds(self) -> dict[str, str]:
        """Return "file" or "directory" for each name in the folder."""
        try:
            entries = self._ask(self._store.ls, str(self._root), detail=True)
        except FileNotFoundError:
            return {}
        kinds = {}
        for entry in entries:
            path = PurePosixPath(entry["name"])
            if path.parent == self._root and path.name != "..":
                kinds[path.name] = entry["type"]
        return kinds

    def pull(self, but: Collection[str] = ()) -> None:
        """Fetch the files that have changed, except those in `but`.

        While this process holds the folder, its copy is the newest version, so nothing is fetched.
        """
        if self._token is None:
            self._pull(but)

    def _pull(self, but: Collection[str]) -> None:
        wanted = {name for name, kind in self._kinds().items() if kind == "file"} - {LOCK, *but}
        for name in _files(self.path) - wanted:
            (self.path / name).unlink()
        for name in sorted(wanted):
            try:
                self._fetch(name)
            except FileNotFoundError:  # the file has been removed meanwhile
                (self.path / name).unlink(missing_ok=True)
        self._pushed = {name: _version(self.path / name) for name in _files(self.path)}

    def _fetch(self, name: str) -> None:
        """Fetch one file, unless the copy is up to date."""
        source, target = self._key(name), self.path / name
        for _ in range(FETCHES):
            version = self._ask(self._store.ukey, source)
            if target.is_file() and self._pulled.get(name) == version:
                return
            self._transfer(self._store.get_file, source, str(target))
            self._pulled[name] = version
        raise OSError(f"{self.address}/{name} was replaced during every download; try again")

    def push(self) -> None:
        """Delete files that the copy no longer has from the store, and upload changed files.

        Raises:
            BlockingIOError: Another process has taken the folder, or was killed while it held it.
            OSError: The store does not answer or refuses the request. Every file in it is still
                complete.
        """
        self._check_held()
        files = _files(self.path)
        for name in self._pushed.keys() - files:
            self._ask(self._store.rm_file, self._key(name))
            del self._pushed[name]
        for name in sorted(files):
            version = _version(self.path / name)
            if self._pushed.get(name) != version:
                self._transfer(self._store.put_file, str(self.path / name), self._key(name))
                self._pushed[name] = version

    @contextmanager
    def held(self, refusal: str) -> Iterator[None]:
        """Pull all files and hold the folder for the block, taking it from any earlier holder.

        An object store has no lock that is released when a process dies. The last process to ask
        therefore holds the folder; for an earlier process, the next `push` raises an error with the
        message `refusal`.
        """
        self._token = secrets.token_hex(16).encode()
        self._refusal = refusal
        try:
            self._ask(self._store.pipe_file, self._key(LOCK), self._token)
            self._pull(but=())
            yield
        finally:
            with suppress(OSError):  # a leftover lock refuses other writers until --resume
                self._check_held()
                self._ask(self._store.rm_file, self._key(LOCK))
            self._token = None

    def _check_held(self) -> None:
        try:
            holder = self._ask(self._store.cat_file, self._key(LOCK))
        except FileNotFoundError:
            holder = None
        if holder != self._token:
            raise BlockingIOError(
                self._refusal
                if self._token
                else f"{self.address} is locked: a training run is writing to it, or was killed; "
                "continue it with --resume"
            )

    def _key(self, name: str) -> str:
        return str(self._root / name)

    def _ask(self, operation: Callable[..., T], *arguments: Any, **options: Any) -> T:
        return self._limited(SECONDS_TO_ANSWER, functools.partial(operation, *arguments, **options))

    def _transfer(self, operation: Callable[..., T], *arguments: Any) -> T:
        return self._limited(SECONDS_A_FILE, functools.partial(operation, *arguments))

    def _limited(self, seconds: float, operation: Callable[[], T]) -> T:
        def explained() -> T:
            try:
                return operation()
            except FileNotFoundError as error:
                raise FileNotFoundError(f"{self.address}: {_reason(error)}") from None
            except Exception as error:
                raise OSError(
                    f"{self.address} cannot be read or written ({_reason(error)}); check the "
                    "network, the store and your permissions"
                ) from None

        refusal = (
            f"{self.address} has not answered for {seconds} seconds; check the network and the "
            "address of the store"
        )
        return within(seconds, explained, refusal)


def folder_at(address: str | Path) -> Folder:
    """Return the folder at a path, a `file://` URL, or an address that `fsspec` knows.

    A process has one local copy per address and removes it at exit.

    Example:
        >>> folder_at("file:///runs/mine").path
        PosixPath('/runs/mine')
    """
    match = ADDRESS.fullmatch(address) if isinstance(address, str) else None
    if match is None:
        return Folder(Path(address))
    if match["protocol"] != "file":
        return _remote_folder(str(address).rstrip("/"))
    url = urlsplit(str(address))
    if url.netloc not in ("", "localhost"):
        raise ValueError(f"{address} must have three slashes: file:///absolute/path")
    return Folder(Path(unquote(url.path)))


def local_path(path: str | Path) -> Path:
    """Return the path of a file or folder to write on this machine.

    Raises:
        ValueError: `path` is an address, such as "s3://bucket/run" or "file:///runs/mine".
    """
    if isinstance(path, str) and ADDRESS.fullmatch(path):
        raise ValueError(
            f"{path} is an address, not a path; write to a path on this machine, and copy the "
            "result if it belongs elsewhere"
        )
    return Path(path)


_remote_folder = functools.cache(RemoteFolder)


def _store_at(address: str) -> tuple[Any, str]:
    """Return fsspec's file system and the folder's path in it."""
    protocol = address.partition(":")[0]
    extra = EXTRAS.get(protocol)
    try:
        import fsspec
    except ImportError:
        remedy = f"-e '.[{extra}]'" if extra else "'fsspec'"
        raise ValueError(f"{address} needs fsspec; pip install {remedy}") from None
    try:
        return fsspec.url_to_fs(address, use_listings_cache=False)
    except ImportError as error:
        remedy = f"pip install -e '.[{extra}]'" if extra else str(error)
        raise ValueError(f"{address} needs another package; {remedy}") from None
    except ValueError as error:
        raise ValueError(f"{address}: {error}") from None


def _files(folder: Path) -> set[str]:
    """Return the relative paths of all files in a copy."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def _version(file: Path) -> Version:
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def _reason(error: Exception) -> str:
    """Return an error's text in one line."""
    return " ".join(str(error).split()) or type(error).__name__


def within(seconds: float, operation: Callable[[], T], refusal: str) -> T:
    """Call `operation`, which may block forever, with a timeout.

    It runs in a thread, which is abandoned at the timeout and ends with the process. `refusal` is
    the message of the TimeoutError.

    Example:
        >>> within(5, lambda: 2 + 2, "2 + 2 has taken 5 seconds")
        4
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(operation())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    if not wait([outcome], seconds).done:
        raise TimeoutError(refusal)
    return outcome.result()
