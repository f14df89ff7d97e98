"""An export as a server sees it: its versions, what each one takes, what it answers. Knows no network."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of the signatures over text
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

Arrays = dict[str, np.ndarray]

SAVED_MODEL = "saved_model.pb"
DEFAULT_SIGNATURE = "serving_default"
NEWEST = 2  # versions that are served: the one in use and its successor
MAX_SENTENCES = 64  # in one request, and in what is run together


class Refused(Exception):
    """A request that gets an error for an answer. The code is the name of a gRPC status."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code = code


class Version:
    """One exported version, loaded. ValueError if there is no SavedModel in the folder."""

    def __init__(self, folder: Path):
        try:
            graph = saved_model_pb2.SavedModel.FromString(
                (folder / SAVED_MODEL).read_bytes()
            ).meta_graphs[0]
        except (DecodeError, IndexError):
            raise ValueError(
                f"{folder / SAVED_MODEL} is no SavedModel; export the run again"
            ) from None
        self.signatures = dict(graph.signature_def)
        self._model = tf.saved_model.load(str(folder))

    def signature(self, name: str) -> meta_graph_pb2.SignatureDef:
        if name not in self._model.signatures:
            known = ", ".join(sorted(self._model.signatures))
            raise Refused(
                "FAILED_PRECONDITION", f"there is no signature {name!r}; choose one of {known}"
            )
        return self.signatures[name]

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Checked inputs -> outputs, all with the batch first."""
        tensors = {name: tf.constant(values) for name, values in inputs.items()}
        try:
            outputs = self._model.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise Refused("INVALID_ARGUMENT", _reason(error)) from None
        except tf.errors.OpError as error:
            raise Refused("INTERNAL", _reason(error)) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}


class ServedModel:
    """The newest versions of an export, under one name; labelled stable and canary, which is the newest."""

    def __init__(self, name: str, folders: Sequence[Path]):
        self.name = name
        self.versions = {version_number(folder): Version(folder) for folder in folders}
        numbers = sorted(self.versions)
        self._labels = {"stable": numbers[0], "canary": numbers[-1]}

    def number(self, name: str, number: int | None = None, label: str | None = None) -> int:
        """Which version a request means: the newest unless it says another."""
        if name != self.name:
            raise Refused("NOT_FOUND", f"there is no model {name!r}; this server has {self.name!r}")
        if label is not None and label not in self._labels:
            raise Refused(
                "INVALID_ARGUMENT",
                f"there is no label {label!r}; choose one of {', '.join(self._labels)}",
            )
        number = self._labels["canary" if label is None else label] if number is None else number
        if number not in self.versions:
            known = ", ".join(map(str, sorted(self.versions)))
            raise Refused(
                "NOT_FOUND", f"model {name!r} has no version {number}; choose one of {known}"
            )
        return number


def find_versions(export: Path) -> list[Path]:
    """The folders to serve, oldest first: an export's newest, or the one version that is given. ValueError if none."""
    if (export / SAVED_MODEL).is_file():
        return [export]
    found = [
        path.parent for path in export.glob(f"*/{SAVED_MODEL}") if path.parent.name.isdecimal()
    ]
    if not found:
        raise ValueError(
            f"{export} is neither a run directory nor a SavedModel export; give one of the two"
        )
    return sorted(found, key=version_number)[-NEWEST:]


def version_number(folder: Path) -> int:
    return int(folder.name) if folder.name.isdecimal() else 1


def check_inputs(signature: meta_graph_pb2.SignatureDef, inputs: Mapping[str, np.ndarray]) -> None:
    """Refuse arrays that the signature does not take, or too many rows at once."""
    check_names(signature, inputs)
    for name, values in inputs.items():
        dtype, rank = (
            tf.as_dtype(signature.inputs[name].dtype),
            len(signature.inputs[name].tensor_shape.dim),
        )
        if values.dtype != dtype.as_numpy_dtype or values.ndim != rank:
            has = f"{tf.as_dtype(values.dtype).name} of rank {values.ndim}"
            raise Refused(
                "INVALID_ARGUMENT",
                f"input {name!r} must be {dtype.name} of rank {rank}; it is {has}",
            )
    sizes = {name: len(values) for name, values in inputs.items()}
    if len(set(sizes.values())) > 1:
        raise Refused(
            "INVALID_ARGUMENT", f"all inputs must have the same number of rows; they have {sizes}"
        )
    size = next(iter(sizes.values()))
    if not 1 <= size <= MAX_SENTENCES:
        raise Refused(
            "INVALID_ARGUMENT",
            f"a request must have 1 to {MAX_SENTENCES} rows; this one has {size}",
        )


def check_names(signature: meta_graph_pb2.SignatureDef, names: Mapping) -> None:
    missing, unknown = (
        signature.inputs.keys() - names.keys(),
        names.keys() - signature.inputs.keys(),
    )
    if missing:
        raise Refused("INVALID_ARGUMENT", f"input {', '.join(sorted(missing))} is missing")
    if unknown:
        known = ", ".join(sorted(signature.inputs))
        raise Refused(
            "INVALID_ARGUMENT",
            f"there is no input {', '.join(sorted(unknown))}; the inputs are {known}",
        )


def _reason(error: tf.errors.OpError) -> str:
    """What went wrong, out of a message that begins with where in the graph."""
    lines = [
        line for line in error.message.splitlines() if line and not line.startswith(("\t", " "))
    ]
    return lines[-1] if lines else type(error).__name__
