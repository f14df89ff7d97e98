"""Writes a translator or a language model as a TensorFlow SavedModel."""

from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfformer.engines.artifact import SAVED_MODEL
from tfformer.engines.saved_model import read_signatures
from tfformer.export.saved_model.signatures import signatures_of
from tfformer.inference.text_model import TextModel
from tfformer.model.fast_layers import LayerNormalization, with_axes
from tfformer.model.token_model import TokenModel, ToLogits
from tfformer.run_directory import first_line
from tfformer.special_ids import END_ID

FIRST_TEXT = b"This is the first request."
WARMUP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"


def write(folder: Path, exported: TextModel, dtype: str, with_text: bool) -> None:
    """Write a translator or a language model into an empty folder.

    `dtype` is the type of weights and arithmetic. Without text signatures, the SavedModel uses only
    core TensorFlow operations. It raises OSError if the folder cannot be written to.
    """
    config = exported.model.get_config() | {"dtype": dtype}
    model = type(exported.model).from_config(config)
    model.set_weights(exported.model.get_weights())
    model.guided_alignment = exported.model.guided_alignment
    weights = {id(weight): weight.value for weight in model.weights}
    if dtype != "float32":
        weights |= _in_float32(model, exported.model)
    holder = tf.Module()
    holder.weights = list(weights.values())  # C++ loaders lack Keras' tracking
    to_logits = model.logits
    if exported.shortlist is None:  # with one, only `score` computes all logits
        to_logits = _fast_logits(model, holder)
    functions = signatures_of(exported.with_model(model), to_logits)
    chosen = functions.over_ids | (functions.over_text if with_text else {})
    try:
        tf.saved_model.save(holder, str(folder), signatures=chosen)
        _write_warmup(folder)
    except tf.errors.OpError as error:
        raise OSError(
            f"{folder.parent} cannot be written to ({first_line(error)}); free some space"
        ) from None


def _in_float32(model: keras.Model, exported: keras.Model) -> dict[int, tf.Variable]:
    """Give the normalisations of a model the weights of another in float32.

    Normalisations compute in float32, so no step has to convert these weights. They are returned by
    the `id` of the weight that each replaces; paths are not unique in models of keras-hub.
    """
    given = _normalizations(exported)
    weights = {}
    for layer, other in zip(_normalizations(model), given, strict=True):
        for name in ("gamma", "beta"):
            replaced = getattr(layer, name)
            value = tf.Variable(getattr(other, name), trainable=False, name=replaced.path)
            weights[id(replaced)] = value
            setattr(layer, name, value)
    return weights


def _normalizations(model: keras.Model) -> list[LayerNormalization]:
    # Keras has no public method for the layers within layers.
    return [layer for layer in model._flatten_layers() if isinstance(layer, LayerNormalization)]


def _fast_logits(model: TokenModel, holder: tf.Module) -> ToLogits:
    """Return `model.logits` by a second copy of its matrix, as (D, V), a layout that is faster."""
    holder.output_kernel = tf.Variable(model.output_kernel(), trainable=False)

    def to_logits(hidden: tf.Tensor) -> tf.Tensor:
        rows = tf.reshape(hidden, (-1, hidden.shape[-1]))
        # Directly after the product, so that TensorFlow fuses the bias into it.
        logits = model.add_output_bias(tf.matmul(rows, holder.output_kernel))  # (rows, V)
        return tf.reshape(logits, with_axes(hidden, -1, logits.shape[-1]))

    return to_logits


def signatures(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the inputs and outputs of each signature in a SavedModel; a dynamic axis is None."""
    described: dict[str, dict[str, Any]] = {}
    for name, signature in read_signatures(folder / SAVED_MODEL).items():
        described[name] = {}
        for direction, tensors in signature._asdict().items():
            described[name][direction] = {
                tensor: {"dtype": spec.dtype, "shape": list(spec.shape)}
                for tensor, spec in tensors.items()
            }
    return described


def _write_warmup(folder: Path) -> None:
    """Write a small request for each signature, which TensorFlow Serving sends to a new version.

    The first request is slow because it initialises the graph. A record is a PredictionLog of
    tensorflow-serving-api (apis/prediction_log.proto, predict.proto, model.proto); its few nested
    messages are encoded here by their field numbers, so that an export does not need that package.
    """
    ids = {"ids": np.array([[END_ID + 1]], np.int32), "lengths": np.array([1], np.int32)}
    ids |= {f"target_{name}": value for name, value in ids.items()}
    values = ids | dict.fromkeys(("text", "source", "target"), np.array([FIRST_TEXT], object))
    values["prefix"] = np.array([""], object)
    path = folder / WARMUP_FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as file:
        for signature, described in signatures(folder).items():
            # PredictRequest.model_spec, ModelSpec.signature_name
            request = _field(1, _field(3, signature.encode()))
            for name in described["inputs"]:
                tensor = tf.make_tensor_proto(values[name]).SerializeToString()
                # PredictRequest.inputs: a map's key, value
                request += _field(2, _field(1, name.encode()) + _field(2, tensor))
            # PredictionLog.predict_log, PredictLog.request
            file.write(_field(6, _field(1, request)))


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protocol buffer: number and type, length, content."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Encode seven bits per byte, lowest first; all but the last have the eighth bit set."""
    higher, lowest = divmod(number, 128)
    return bytes([lowest | 128]) + _varint(higher) if higher else bytes([lowest])
