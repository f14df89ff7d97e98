"""TensorFlow Serving's JSON: requests as arrays, arrays as answers. Knows no network and runs no model."""

import base64
import json
import reprlib
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf import meta_graph_pb2

from tfformer.serving.model import (
    DEFAULT_SIGNATURE,
    Arrays,
    Refused,
    ServedModel,
    check_inputs,
    check_names,
)

INT32 = range(-(2**31), 2**31)


def read_request(body: bytes) -> dict[str, Any]:
    """The JSON object in the body of a request."""
    try:
        request = json.loads(body.decode("utf-8"))
    except RecursionError:
        raise Refused(
            "INVALID_ARGUMENT", "the body is nested too deeply; four levels are enough"
        ) from None
    except ValueError as error:
        raise Refused("INVALID_ARGUMENT", f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(request, dict):
        raise Refused(
            "INVALID_ARGUMENT", f"the body must be a JSON object; it is {reprlib.repr(request)}"
        )
    return request


def signature_name(request: dict[str, Any]) -> str:
    name = request.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise Refused(
            "INVALID_ARGUMENT", f"signature_name must be a string; it is {reprlib.repr(name)}"
        )
    return name or DEFAULT_SIGNATURE


def read_inputs(request: dict[str, Any], signature: meta_graph_pb2.SignatureDef) -> Arrays:
    """The arrays in a request, from `instances` (a row each) or `inputs` (a column each), checked."""
    if ("instances" in request) == ("inputs" in request):
        raise Refused("INVALID_ARGUMENT", "a request must have either instances or inputs")
    columns = (
        _from_rows(request["instances"], signature) if "instances" in request else request["inputs"]
    )
    if not _has_names(columns):
        columns = dict.fromkeys(_only_input(signature), columns)
    check_names(signature, columns)
    inputs = {name: _array(name, value, signature.inputs[name]) for name, value in columns.items()}
    check_inputs(signature, inputs)
    return inputs


def _from_rows(instances: Any, signature: meta_graph_pb2.SignatureDef) -> Any:
    """Rows, of which each may name its inputs -> columns."""
    if not isinstance(instances, list) or not instances:
        raise Refused("INVALID_ARGUMENT", "instances must be a list of one or more")
    if not any(map(_has_names, instances)):
        return instances
    for n, instance in enumerate(instances):
        if not _has_names(instance):
            raise Refused("INVALID_ARGUMENT", f"instance {n} must be an object, as others are")
        try:
            check_names(signature, instance)
        except Refused as refused:
            raise Refused(refused.code, f"instance {n}: {refused}") from None
    return {name: [instance[name] for instance in instances] for name in signature.inputs}


def _has_names(value: Any) -> bool:
    """An object with inputs, and not a string of bytes, which is an object too."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only_input(signature: meta_graph_pb2.SignatureDef) -> list[str]:
    names = sorted(signature.inputs)
    if len(names) > 1:
        raise Refused(
            "INVALID_ARGUMENT",
            f"values must be named, as there are several inputs: {', '.join(names)}",
        )
    return names


def _array(name: str, value: Any, info: meta_graph_pb2.TensorInfo) -> np.ndarray:
    try:
        return _nested(value, len(info.tensor_shape.dim), READERS[tf.as_dtype(info.dtype)])
    except ValueError as error:
        raise Refused("INVALID_ARGUMENT", f"input {name}: {error}") from None


def _nested(value: Any, rank: int, read) -> np.ndarray:
    """Lists in lists, `rank` deep -> an array; `read` takes the innermost."""
    if not isinstance(value, list):
        raise ValueError(f"{reprlib.repr(value)} must be a list")
    if rank <= 1:
        return read(value)
    rows = [_nested(row, rank - 1, read) for row in value]
    if len({row.shape for row in rows}) > 1:
        raise ValueError("all its rows must have the same length; pad them")
    return np.stack(rows) if rows else np.empty((0,) * rank, np.int32)


def _strings(values: list) -> np.ndarray:
    return np.array([_bytes(value) for value in values], object)


def _bytes(value: Any) -> bytes:
    """A string, or {"b64": its bytes in base64}."""
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        return base64.b64decode(value["b64"], validate=True)
    if not isinstance(value, str):
        raise ValueError(f"{reprlib.repr(value)} must be a string")
    return value.encode("utf-8")


def _int32s(values: list) -> np.ndarray:
    for value in values:
        if type(value) is not int or value not in INT32:
            raise ValueError(f"{reprlib.repr(value)} must be an int32")
    return np.array(values, np.int32)


READERS = {tf.string: _strings, tf.int32: _int32s}


def answer(request: dict[str, Any], outputs: Arrays) -> dict[str, Any]:
    """The arrays in the format of the request; one that is alone goes without its name."""
    columns = {name: _plain(values) for name, values in outputs.items()}
    only = next(iter(columns.values())) if len(columns) == 1 else None
    if "inputs" in request:
        return {"outputs": columns if only is None else only}
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"predictions": rows if only is None else only}


def _plain(values: np.ndarray) -> list:
    if values.dtype == np.float32:
        values = values.astype(str).astype(float)  # the shortest decimals that are this float32
    return _as_text(values.tolist())


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def status(numbers: list[int]) -> dict[str, Any]:
    """That these versions are there."""
    well = {"error_code": "OK", "error_message": ""}
    return {
        "model_version_status": [
            {"version": str(number), "state": "AVAILABLE", "status": well}
            for number in sorted(numbers, reverse=True)
        ]
    }


def metadata(model: ServedModel, number: int) -> dict[str, Any]:
    """What the signatures take and give."""
    signatures = {
        name: MessageToDict(
            signature, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        for name, signature in model.versions[number].signatures.items()
    }
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": str(number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }
