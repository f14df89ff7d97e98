"""A SavedModel as a version of a server."""

from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_text  # noqa: F401  the operations of the signatures over text
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from tfformer.engines.artifact import exported_tokenizers
from tfformer.serving.errors import RequestError
from tfformer.serving.version import Arrays, Version
from tfformer.storage.manifest import checked_manifest
from tfformer.storage.run_folders import MANIFEST

SAVED_MODEL = "saved_model.pb"
FINGERPRINT = "fingerprint.pb"


class SavedModelVersion(Version):
    """One exported version, run by TensorFlow.

    Args:
        folder: The version's own folder, such as `models/mine/1`.

    Raises:
        ValueError: The folder holds no SavedModel, a damaged one, or other files than its manifest.
    """

    def __init__(self, folder: Path) -> None:
        is_foreign = not (folder / MANIFEST).exists()
        manifest = {} if is_foreign else checked_manifest(folder)
        signatures = _signatures(folder / SAVED_MODEL)
        self._model = _load(folder)
        super().__init__(manifest, exported_tokenizers(folder, manifest), signatures)

    def run(self, signature: str, inputs: Arrays) -> Arrays:
        """Run a signature on checked inputs; see `Version.run`."""
        tensors = {name: tf.constant(values) for name, values in inputs.items()}
        try:
            outputs = self._model.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise RequestError("INVALID_ARGUMENT", _reason(error)) from None
        except tf.errors.OpError as error:
            raise RequestError("INTERNAL", _reason(error)) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}


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


def _reason(error: tf.errors.OpError) -> str:
    """The reason in a message that begins with the place in the graph."""
    lines = [
        line for line in error.message.splitlines() if line and not line.startswith(("\t", " "))
    ]
    return lines[-1] if lines else type(error).__name__
