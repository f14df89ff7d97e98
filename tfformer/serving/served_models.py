"""The models of a server, each with its newest versions."""

import asyncio
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tfformer.engines import Engine, Signature, open_engine
from tfformer.engines.artifact import SAVED_MODEL
from tfformer.serving.errors import RequestError, check_name
from tfformer.storage.artifact_folders import MANIFEST, is_run

NEWEST = 2  # number of versions to serve: the current version and its successor
WATCH_SECONDS = 2  # between checks for new versions


class ServedModel:
    """The newest versions of a run or an export, under one name.

    The label `stable` denotes the oldest version, `canary` the newest. `path` is a run directory,
    an exported version, or a folder of versions; ValueError if it contains no model, or it is
    damaged.

    Attributes:
        versions: The opened versions by their numbers.
    """

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self.versions: Mapping[int, Engine] = {}
        self._path = path
        self._complaint = ""
        self.load()

    def load(self) -> bool:
        """Open new versions and drop old ones; return whether the versions changed."""
        versions = {_number(folder): folder for folder in find_versions(self._path)}
        if versions.keys() == self.versions.keys():
            return False
        known = self.versions
        self.versions = {
            number: known[number] if number in known else open_engine(folder)
            for number, folder in versions.items()
        }
        return True

    def reload(self) -> None:
        """Load new versions; if one cannot be loaded, report it once and keep serving."""
        try:
            if self.load():
                numbers = ", ".join(map(str, self.versions))
                print(f"{self.name}: serving versions {numbers}", flush=True)
            self._complaint = ""
        except Exception as error:  # a runtime may raise any exception
            if str(error) != self._complaint:
                print(f"{self.name}: {error}", file=sys.stderr, flush=True)
            self._complaint = str(error)

    def number(self, number: int | None = None, label: str | None = None) -> int:
        """Return the number of the version that a request asks for, by default the newest."""
        versions = self.versions  # another thread may replace them
        if label is not None:
            check_name("label's", label)
            labels = {"stable": min(versions), "canary": max(versions)}
            if label not in labels:
                known = ", ".join(labels)
                raise RequestError(f"there is no label {label!r}; choose one of {known}")
            return labels[label]
        if number is None:
            return max(versions)
        if number not in versions:
            known = ", ".join(map(str, sorted(versions)))
            raise RequestError(
                f"model {self.name!r} has no version {number}; choose one of {known}", 404
            )
        return number

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
    """Return the folders to serve, oldest first.

    `path` is a run directory, one exported version, or a folder of versions, whose newest two are
    served. If it contains none of these, ValueError is raised.
    """
    if is_run(path) or _is_version(path):
        return [path]
    numbered = [folder for folder in path.glob("*") if folder.name.isdecimal()]
    versions = [folder for folder in numbered if _is_version(folder)]
    if not versions:
        raise ValueError(f"{path} is neither a run directory nor an export; pass one of them")
    return sorted(versions, key=_number)[-NEWEST:]


def _is_version(folder: Path) -> bool:
    return (folder / SAVED_MODEL).is_file() or (folder / MANIFEST).is_file()


def _number(folder: Path) -> int:
    return int(folder.name) if folder.name.isdecimal() else 1
