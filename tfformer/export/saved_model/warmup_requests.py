"""Writes the requests with which TensorFlow Serving warms a model up.

Each record is a PredictionLog of tensorflow-serving-api. Its few nested messages
are put together here by their field numbers, so that an export does not need that package.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import tensorflow as tf

WARMUP_FILE = Path("assets.extra") / "tf_serving_warmup_requests"


def write(folder: Path, requests: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    """Write requests that the server runs once each before it answers anybody.

    Args:
        folder: The SavedModel's.
        requests: Signature -> input -> its values, with the batch first.
    """
    path = folder / WARMUP_FILE
    path.parent.mkdir()
    with tf.io.TFRecordWriter(str(path)) as file:
        for signature, inputs in requests.items():
            file.write(_prediction_log(signature, inputs))


def _prediction_log(signature: str, inputs: Mapping[str, np.ndarray]) -> bytes:
    """tensorflow_serving/apis: prediction_log.proto, predict.proto, model.proto."""
    request = _field(
        1, _field(3, signature.encode())
    )  # PredictRequest.model_spec, ModelSpec.signature_name
    for name, values in inputs.items():
        tensor = tf.make_tensor_proto(values).SerializeToString()
        request += _field(
            2, _field(1, name.encode()) + _field(2, tensor)
        )  # PredictRequest.inputs: a map's key, value
    return _field(6, _field(1, request))  # PredictionLog.predict_log, PredictLog.request


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of a protocol buffer: number and type, length, content."""
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; all but the last have the eighth bit set."""
    higher, lowest = divmod(number, 128)
    return bytes([lowest | 128]) + _varint(higher) if higher else bytes([lowest])
