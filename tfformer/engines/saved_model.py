"""The engine of a SavedModel: TensorFlow, with the operations of TensorFlow Text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from tfformer.engines.artifact import SAVED_MODEL, exported_tokenizers
from tfformer.engines.engine import BEAM, GREEDY, NO_TRANSLATION, PREFIX, Arrays, Engine, Signature
from tfformer.engines.engine import TensorSpec as Spec
from tfformer.inference import Translation
from tfformer.storage.artifact_folders import MANIFEST, checked_manifest

FINGERPRINT = "fingerprint.pb"


class SavedModelEngine(Engine):
    """An exported version, or a SavedModel from another program, read by `tf.saved_model.load`.

    `threads` has no effect: TensorFlow takes its number of threads from `TF_NUM_INTRAOP_THREADS`.
    """

    searches_with_any_beam_size = False

    def __init__(self, path: str, threads: int | None = None) -> None:
        folder = Path(path)
        is_foreign = not (folder / MANIFEST).exists()
        manifest = {} if is_foreign else checked_manifest(folder)
        super().__init__(manifest, exported_tokenizers(folder, manifest))
        self.signatures = read_signatures(folder / SAVED_MODEL)
        import_text_operations(folder / SAVED_MODEL)
        try:
            if (folder / FINGERPRINT).exists():  # the loader would print a traceback and continue
                tf.saved_model.experimental.read_fingerprint(path)
            self._model = tf.saved_model.load(path)
        except Exception as error:  # a damaged file makes TensorFlow raise errors of many classes
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(
                f"{folder} cannot be loaded ({lines[0]}); copy the whole exported folder again, "
                "or export the run again"
            ) from None

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> Arrays:
        """Run a signature; see `Engine.run`."""
        tensors = {name: tf.constant(values) for name, values in inputs.items()}
        try:
            outputs = self._model.signatures[signature](**tensors)
        except tf.errors.InvalidArgumentError as error:
            raise ValueError(_reason(error)) from None
        except tf.errors.OpError as error:
            raise RuntimeError(_reason(error)) from None
        return {name: tensor.numpy() for name, tensor in outputs.items()}

    def _search(
        self, sentences: Sequence[str], beam_size: int, count: int
    ) -> list[list[Translation]]:
        inputs = {"text": _utf8(sentences)}
        if beam_size == 1:
            outputs = self.run(GREEDY, inputs)
            pairs = zip(outputs["translation"], outputs["score"], strict=True)
            return [[_translation(text, score)] for text, score in pairs]
        outputs = self.run(BEAM, inputs)
        translations = []
        for texts, scores in zip(outputs["translations"], outputs["scores"], strict=True):
            pairs = zip(texts, scores, strict=True)
            used = [(text, score) for text, score in pairs if score > NO_TRANSLATION / 2]
            translations.append([_translation(text, score) for text, score in used])
        return translations

    def _continued(
        self, sentences: Sequence[str], prefixes: Sequence[str], count: int
    ) -> list[list[Translation]]:
        outputs = self.run(PREFIX, {"text": _utf8(sentences), "prefix": _utf8(prefixes)})
        rows = zip(outputs["translations"], outputs["probabilities"], strict=True)
        return [
            [_translation(text, np.log(p)) for text, p in zip(*row, strict=True) if p > 0]
            for row in rows
        ]


class Session:
    """A SavedModel in a TensorFlow 1 session, which restores it as TensorFlow Serving does.

    `tf.saved_model.load` shares kernels between functions and finds variables through Python
    objects, so each of the two loaders can fail where the other succeeds.
    """

    def __init__(self, folder: Path) -> None:
        self.signatures = read_signatures(folder / SAVED_MODEL)
        import_text_operations(folder / SAVED_MODEL)
        self._session = tf.compat.v1.Session(graph=tf.Graph())
        with self._session.graph.as_default():
            loaded = tf.compat.v1.saved_model.load(self._session, ["serve"], str(folder))
        self._tensors = loaded.signature_def

    def run(self, signature: str, inputs: Mapping[str, np.ndarray]) -> Arrays:
        """Run a signature; see `Engine.run`."""
        tensors = self._tensors[signature]
        feed = {tensors.inputs[name].name: values for name, values in inputs.items()}
        outputs = {name: tensor.name for name, tensor in tensors.outputs.items()}
        return self._session.run(outputs, feed)


def import_text_operations(path: Path) -> None:
    """Register the operations of TensorFlow Text if a `saved_model.pb` has any that TF lacks."""
    operations = _graph(path).meta_info_def.stripped_op_list.op
    if not all(hasattr(tf.raw_ops, operation.name) for operation in operations):
        import tensorflow_text  # noqa: F401


def read_signatures(path: Path) -> dict[str, Signature]:
    """Read the signatures in a `saved_model.pb`, except those without an input.

    A signature without an input is an operation that TensorFlow runs after loading.
    """
    return {
        name: Signature(_specs(signature.inputs), _specs(signature.outputs))
        for name, signature in sorted(_graph(path).signature_def.items())
        if signature.inputs
    }


def _graph(path: Path) -> meta_graph_pb2.MetaGraphDef:
    try:
        return saved_model_pb2.SavedModel.FromString(path.read_bytes()).meta_graphs[0]
    except (DecodeError, IndexError):
        raise ValueError(f"{path} is not a SavedModel; export the run again") from None


def _specs(tensors: Mapping[str, meta_graph_pb2.TensorInfo]) -> dict[str, Spec]:
    specs = {}
    for name, tensor in sorted(tensors.items()):
        sizes = [None if axis.size < 0 else axis.size for axis in tensor.tensor_shape.dim]
        specs[name] = Spec(tf.as_dtype(tensor.dtype).name, tuple(sizes))
    return specs


def _utf8(texts: Sequence[str]) -> np.ndarray:
    return np.array([text.encode() for text in texts], object)


def _translation(text: bytes, score: float) -> Translation:
    return Translation(text.decode("utf-8", "replace"), float(score))


def _reason(error: tf.errors.OpError) -> str:
    """Return the last line of a message, without the graph locations before it."""
    lines = [
        line for line in error.message.splitlines() if line and not line.startswith(("\t", " "))
    ]
    return lines[-1] if lines else type(error).__name__
