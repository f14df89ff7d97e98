"""The models of a server, each with its newest versions."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tfformer.engines import Engine, Signature, open_engine
from tfformer.engines.artifact import SAVED_MODEL
from tfformer.serving.errors import RequestError, check_name
from tfformer.storage.artifact_folders import MANIFEST, is_run

NEWEST = 2  # number of versions to serve: the current version and its successor
WATCH_SECONDS = 2  # between checks for new versions


class ServedModel:
    """The newest versions of a run or an export, under one name.

    The label `stable` denotes the oldest version served, `canary` the newest. `path` is a run
    directory, an exported version, or a folder of versions; ValueError if it contains no model, or
    none that can be opened.

    Attributes:
        versions: The opened versions by their numbers.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.versions: Mapping[int, Engine] = {}
        self._path = path
        self._complaints: list[str] = []
        self.load()

    def load(self) -> bool:
        """Open the newest versions that can be opened, and return whether they have changed.

        Each error is printed once. If no version can be opened, the newest version's error is
        raised, and the versions remain as they are.
        """
        opened: dict[int, Engine] = {}
        errors: list[Exception] = []
        oldest = min(self.versions, default=0)
        for folder in reversed(find_versions(self._path)):
            number = _number(folder)
            if len(opened) == NEWEST or (opened and number < oldest):  # tried before
                break
            try:
                opened[number] = self._open(folder)
            except Exception as error:  # a runtime may raise any exception
                errors.append(error)
                if number in self.versions:  # its manifest is being copied
                    opened[number] = self.versions[number]
        if not opened:
            raise errors[0]
        self._complain(errors)
        if opened == self.versions:
            return False
        self.versions = dict(sorted(opened.items()))
        return True

    def reload(self) -> None:
        """Load new versions; if no version can be opened, keep serving the present ones."""
        try:
            if self.load():
                numbers = ", ".join(map(str, self.versions))
                print(f"{self.name}: serving versions {numbers}", flush=True)
        except Exception as error:  # a runtime may raise any exception
            self._complain([error])

    def _open(self, folder: Path) -> Engine:
        """Return a version's engine; open it again if its manifest has arrived since."""
        engine = self.versions.get(_number(folder))
        if engine is None or (not engine.manifest and (folder / MANIFEST).is_file()):
            return open_engine(folder)
        return engine

    def _complain(self, errors: Sequence[Exception]) -> None:
        complaints = list(map(str, errors))
        for complaint in complaints:
            if complaint not in self._complaints:
                print(f"{self.name}: {complaint}", file=sys.stderr, flush=True)
        self._complaints = complaints

    def version(self, number: int | None = None, label: str | None = None) -> tuple[int, Engine]:
        """Return the number and the engine of the version that a request asks for.

        It is the newest by default.
        """
        versions = self.versions  # another thread may replace them
        if label is not None:
            check_name("label's", label)
            labels = {"stable": min(versions), "canary": max(versions)}
            if label not in labels:
                known = ", ".join(labels)
                raise RequestError(f"there is no label {label!r}; choose one of {known}")
            number = labels[label]
        elif number is None:
            number = max(versions)
        elif number not in versions:
            known = ", ".join(map(str, sorted(versions)))
            raise RequestError(
                f"model {self.name!r} has no version {number}; choose one of {known}", 404
            )
        return number, versions[number]

    @property
    def newest(self) -> Engine:
        """The version that answers a request without a version."""
        versions = self.versions  # another thread may replace them
        return versions[max(versions)]


class ServedModels:
    """All models of a server, by name."""

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._models = {model.name: model for model in models}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    @property
    def names(self) -> list[str]:
        """The models' names."""
        return list(self._models)

    def model(self, name: str) -> ServedModel:
        """Return the model of this name; RequestError if it does not exist."""
        check_name("model's", name)
        if name not in self._models:
            known = ", ".join(map(repr, self._models))
            raise RequestError(f"there is no model {name!r}; this server has {known}", 404)
        return self._models[name]

    async def watch(self) -> None:
        """Load new versions as they appear, until cancelled."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            for model in self:
                await asyncio.to_thread(model.reload)


def signature_of(version: Engine, name: str) -> Signature:
    """Return a signature of a version; RequestError if it does not exist."""
    check_name("signature's", name)
    if name not in version.signatures:
        known = ", ".join(sorted(version.signatures))
        raise RequestError(f"there is no signature {name!r}; choose one of {known}")
    return version.signatures[name]


def find_versions(path: Path) -> list[Path]:
    """Return the folders of all versions, oldest first.

    `path` is a run directory, one exported version, or a folder of versions. If it contains none
    of these, ValueError is raised.
    """
    if is_run(path) or _is_version(path):
        return [path]
    numbered = [folder for folder in path.glob("*") if folder.name.isdecimal()]
    versions = [folder for folder in numbered if _is_version(folder)]
    if not versions:
        raise ValueError(f"{path} is neither a run directory nor an export; pass one of them")
    return sorted(versions, key=_number)


def _is_version(folder: Path) -> bool:
    return (folder / SAVED_MODEL).is_file() or (folder / MANIFEST).is_file()


def _number(folder: Path) -> int:
    return int(folder.name) if folder.name.isdecimal() else 1
