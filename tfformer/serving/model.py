"""An export as a server sees it: its versions, inputs and answers.

It knows no network.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.core.protobuf import meta_graph_pb2

from tfformer.serving.errors import RequestError, check_name
from tfformer.serving.litert_version import LitertVersion
from tfformer.serving.saved_model_version import SAVED_MODEL, SavedModelVersion
from tfformer.serving.version import Version
from tfformer.storage.manifest import read_manifest
from tfformer.storage.run_folders import MANIFEST
from tfformer.text import Align

DEFAULT_SIGNATURE = "serving_default"
NEWEST = 2  # versions that are served: the one in use and its successor
MAX_SENTENCES = 64  # in one request, and in requests that run together
KINDS: dict[str, Callable[[Path], Version]] = {  # by the format of a manifest
    "saved_model": SavedModelVersion,
    "litert": LitertVersion,
}


class ServedModel:
    """The newest versions of an export under one name.

    Its labels are stable and canary; the newest version is canary.

    Args:
        name: The model's name in requests.
        folders: The folders of the versions.
        align: Finds the words that belong together; an export has no such function.
    """

    def __init__(self, name: str, folders: Sequence[Path], align: Align | None = None) -> None:
        self.name = name
        self.align = align
        self.versions = {version_number(folder): _loaded(folder) for folder in folders}
        numbers = sorted(self.versions)
        self._labels = {"stable": numbers[0], "canary": numbers[-1]}

    def number(self, number: int | None = None, label: str | None = None) -> int:
        """Return the number of the version that a request asks for: the newest by default.

        Raises:
            RequestError: There is no such label or version.
        """
        if number is None:
            number = self._labelled(label)
        if number not in self.versions:
            known = ", ".join(map(str, sorted(self.versions)))
            raise RequestError(
                "NOT_FOUND", f"model {self.name!r} has no version {number}; choose one of {known}"
            )
        return number

    @property
    def newest(self) -> Version:
        """The version that answers where a request names none."""
        return self.versions[self.number()]

    def _labelled(self, label: str | None) -> int:
        if label is None:
            return self._labels["canary"]
        check_name("label's", label)
        if label not in self._labels:
            known = ", ".join(self._labels)
            raise RequestError(
                "INVALID_ARGUMENT", f"there is no label {label!r}; choose one of {known}"
            )
        return self._labels[label]


class ServedModels:
    """All models of a server, by name, in the order in which they were given.

    Args:
        models: One or more, no two of one name.
    """

    def __init__(self, models: Iterable[ServedModel]) -> None:
        self._models = {model.name: model for model in models}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    @property
    def names(self) -> list[str]:
        """The models' names."""
        return list(self._models)

    def model(self, name: str) -> ServedModel:
        """Return the model of this name; RequestError if there is none."""
        check_name("model's", name)
        if name not in self._models:
            known = ", ".join(map(repr, self._models))
            raise RequestError("NOT_FOUND", f"there is no model {name!r}; this server has {known}")
        return self._models[name]

    def name_of(self, version: object) -> str:
        """Return the name of the model that a version belongs to."""
        return next(model.name for model in self if version in model.versions.values())


def find_versions(export: Path) -> list[Path]:
    """Return the folders to serve, oldest first.

    Args:
        export: The folder of one version, or a folder of versions, of which the newest two count.

    Raises:
        ValueError: There is no version in either.
    """
    if _is_version(export):
        return [export]
    numbered = [folder for folder in export.glob("*") if folder.name.isdecimal()]
    versions = [folder for folder in numbered if _is_version(folder)]
    if not versions:
        raise ValueError(f"{export} {_other_kind([export, *numbered])}")
    return sorted(versions, key=version_number)[-NEWEST:]


def _other_kind(folders: Sequence[Path]) -> str:
    """What is wrong with folders without a version that is served."""
    formats = {format for folder in folders if isinstance(format := _format(folder), str)}
    if not formats:
        return "is neither a run directory nor a SavedModel or LiteRT export; give one of them"
    return (
        f"is an export for {' and '.join(sorted(formats))}; a server takes a run directory or an "
        "export for saved_model or litert"
    )


def _is_version(folder: Path) -> bool:
    """Whether an export is there, or by its manifest should be."""
    return (folder / SAVED_MODEL).is_file() or _format(folder) in KINDS


def _format(folder: Path) -> str | None:
    """The format of an export, by its manifest; a foreign SavedModel has none."""
    return read_manifest(folder).get("format") if (folder / MANIFEST).is_file() else None


def _loaded(folder: Path) -> Version:
    return KINDS.get(_format(folder) or "", SavedModelVersion)(folder)


def version_number(folder: Path) -> int:
    """Return the number that a version's folder is called by.

    It is 1 if the folder's name is no number.
    """
    return int(folder.name) if folder.name.isdecimal() else 1


def check_inputs(signature: meta_graph_pb2.SignatureDef, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that the signature does not take, or too many rows at once.

    Raises:
        RequestError: A name, dtype, rank or number of rows is not the signature's.
    """
    check_names(signature, inputs)
    for name, values in inputs.items():
        dtype = tf.as_dtype(signature.inputs[name].dtype)
        rank = len(signature.inputs[name].tensor_shape.dim)
        if values.dtype != dtype.as_numpy_dtype or values.ndim != rank:
            has = f"{tf.as_dtype(values.dtype).name} of rank {values.ndim}"
            raise RequestError(
                "INVALID_ARGUMENT",
                f"input {name!r} must be {dtype.name} of rank {rank}; it is {has}",
            )
    sizes = {name: len(values) for name, values in inputs.items()}
    if len(set(sizes.values())) > 1:
        raise RequestError(
            "INVALID_ARGUMENT", f"all inputs must have the same number of rows; they have {sizes}"
        )
    size = next(iter(sizes.values()))
    if not 1 <= size <= MAX_SENTENCES:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"a request must have 1 to {MAX_SENTENCES} rows; this one has {size}",
        )


def check_names(signature: meta_graph_pb2.SignatureDef, names: Collection[str]) -> None:
    """Refuse names that are not exactly the signature's inputs (RequestError)."""
    missing = signature.inputs.keys() - set(names)
    unknown = set(names) - signature.inputs.keys()
    for name in unknown:
        check_name("input's", name)
    if missing:
        raise RequestError("INVALID_ARGUMENT", f"input {', '.join(sorted(missing))} is missing")
    if unknown:
        known = ", ".join(sorted(signature.inputs))
        raise RequestError(
            "INVALID_ARGUMENT",
            f"there is no input {', '.join(sorted(unknown))}; the inputs are {known}",
        )
