"""An export as a server sees it: its versions, inputs and answers.

It knows no network.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of the signatures over text
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from tfformer.export.manifest import (
    MANIFEST,
    check_files,
    exported_tokenizers,
    read_manifest,
)
from tfformer.serving.errors import RequestError, check_name
from tfformer.text import Align

CountTokens = Callable[[Sequence[str]], list[int]]
Arrays = dict[str, np.ndarray]  # by the name of an input or output; the first axis is the batch

SAVED_MODEL = "saved_model.pb"
FINGERPRINT = "fingerprint.pb"
DEFAULT_SIGNATURE = "serving_default"
NEWEST = 2  # versions that are served: the one in use and its successor
TEXTS = ("translation", "translations", "generated_text")  # outputs that are texts
NO_MAXIMUM = 2**31  # tokens, of a model that does not say how many it takes
MAX_SENTENCES = 64  # in one request, and in requests that run together


class Version:
    """One exported version, loaded.

    Args:
        folder: The version's own folder, such as `models/mine/1`.

    Raises:
        ValueError: The folder holds no SavedModel, a damaged one, or other files than its manifest.
    """

    def __init__(self, folder: Path) -> None:
        self.manifest = _checked_manifest(folder)
        self.signatures = _signatures(folder / SAVED_MODEL)
        self._model = _load(folder)
        tokenizers = exported_tokenizers(folder, self.manifest)
        self.count_tokens = _token_counter(tokenizers.source.encode) if tokenizers else None
        self._count_written = _token_counter(tokenizers.target.encode) if tokenizers else None
        self.placeholders = tokenizers.placeholders if tokenizers else ()
        self.max_tokens = _max_tokens(self.manifest)

    def signature(self, name: str) -> meta_graph_pb2.SignatureDef:
        """Return the description of a signature; RequestError if the model lacks it."""
        check_name("signature's", name)
        if name not in self._model.signatures:
            known = ", ".join(sorted(self._model.signatures))
            raise RequestError(
                "FAILED_PRECONDITION", f"there is no signature {name!r}; choose one of {known}"
            )
        return self.signatures[name]

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Run a signature on checked inputs.

        All arrays, given and returned, have the batch first.

        Raises:
            RequestError: The graph refuses the inputs, or fails.
        """
        tensors = {name: tf.constant(values) for name, values in inputs.items()}
        try:
            outputs = self._model.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError("INVALID_ARGUMENT", _reason(error)) from None
        except tf.errors.OpError as error:
            raise RequestError("INTERNAL", _reason(error)) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def tokens_of(self, outputs: Arrays) -> int:
        """Return the number of tokens of all rows of an answer.

        They are those of the best translation, or of the text that was scored. Of texts it is 0
        where the export has no vocabularies.
        """
        for name in ("lengths", "num_tokens"):
            if name in outputs:
                return int(outputs[name].sum())
        rows = [outputs[name] for name in TEXTS if name in outputs]
        if not rows or self._count_written is None:
            return 0
        best = rows[0].reshape(len(rows[0]), -1)[:, 0]
        return sum(self._count_written([text.decode("utf-8", "replace") for text in best]))


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
        self.versions = {version_number(folder): Version(folder) for folder in folders}
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
        ValueError: There is no SavedModel in either.
    """
    if _is_version(export):
        return [export]
    numbered = [folder for folder in export.glob("*") if folder.name.isdecimal()]
    versions = [folder for folder in numbered if _is_version(folder)]
    if not versions and _is_litert(export):
        raise ValueError(
            f"{export} is a LiteRT export, which needs no TensorFlow; "
            f"serve it with: python export/on_device/serve.py {export}"
        )
    if not versions:
        raise ValueError(
            f"{export} is neither a run directory nor a SavedModel export; give one of the two"
        )
    return sorted(versions, key=version_number)[-NEWEST:]


def _is_version(folder: Path) -> bool:
    """Whether a SavedModel is there, or by its manifest should be."""
    if (folder / SAVED_MODEL).is_file():
        return True
    return (folder / MANIFEST).is_file() and read_manifest(folder).get("format") == "saved_model"


def _is_litert(export: Path) -> bool:
    """Whether an export is one of LiteRT files, by a manifest."""
    folders = [export, *export.glob("*")]
    manifests = [folder for folder in folders if (folder / MANIFEST).is_file()]
    return any(read_manifest(folder).get("format") == "tflite" for folder in manifests)


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


def _checked_manifest(folder: Path) -> dict[str, Any]:
    """The manifest, after each file was compared with it.

    It is empty for a foreign SavedModel.
    """
    if not (folder / MANIFEST).exists():
        return {}
    manifest = read_manifest(folder)
    check_files(folder, manifest)
    return manifest


def _signatures(path: Path) -> dict[str, meta_graph_pb2.SignatureDef]:
    try:
        graph = saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs[0]
    except (DecodeError, IndexError):
        raise ValueError(f"{path} is no SavedModel; export the run again") from None
    return dict(graph.signature_def)


def _load(folder: Path) -> Any:
    """The restored model.

    TensorFlow's loader raises errors of every kind on damaged files.
    """
    try:
        if (folder / FINGERPRINT).exists():  # the loader would print a traceback and go on
            tf.saved_model.experimental.read_fingerprint(str(folder))
        return tf.saved_model.load(str(folder))
    except Exception as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise ValueError(
            f"{folder} cannot be loaded ({lines[0]}); copy the whole exported folder again, "
            "or export the run again"
        ) from None


def _token_counter(encode: Callable[[Sequence[str]], list[list[int]]]) -> CountTokens:
    """A counter of a sentence's tokens, as the model reads them.

    The token of the language that a sentence may begin with counts too.
    """
    return lambda texts: [len(ids) for ids in encode(list(texts))]


def _max_tokens(manifest: Mapping[str, Any]) -> int:
    """Tokens of the longest sentence that the model takes whole.

    The end token does not count.
    """
    decoding = manifest.get("decoding")
    return decoding["max_length"] - 1 if isinstance(decoding, dict) else NO_MAXIMUM


def _reason(error: tf.errors.OpError) -> str:
    """The reason in a message that begins with the place in the graph."""
    lines = [
        line for line in error.message.splitlines() if line and not line.startswith(("\t", " "))
    ]
    return lines[-1] if lines else type(error).__name__
