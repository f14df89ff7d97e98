"""TensorFlow Serving's JSON: requests as arrays, arrays as answers.

It knows no network.
"""

import base64
import json
import reprlib
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict
from tensorflow.core.protobuf import meta_graph_pb2

from tfformer.serving.errors import RequestError
from tfformer.serving.model import (
    DEFAULT_SIGNATURE,
    MAX_SENTENCES,
    ServedModel,
    check_inputs,
    check_names,
)
from tfformer.serving.version import Arrays

Read = Callable[[list[Any]], np.ndarray]  # the innermost lists of a request -> an array of rank 1

INT32 = range(-(2**31), 2**31)


def read_request(body: bytes) -> dict[str, Any]:
    """Return the JSON object in the body of a request (UTF-8).

    Raises:
        RequestError: The body is no JSON object, or nested too deeply.
    """
    try:
        request = json.loads(body.decode("utf-8"))
    except RecursionError:
        raise RequestError(
            "INVALID_ARGUMENT", "the body is nested too deeply; four levels are enough"
        ) from None
    except ValueError as error:
        raise RequestError("INVALID_ARGUMENT", f"the body is not JSON in UTF-8: {error}") from None
    if not isinstance(request, dict):
        raise RequestError(
            "INVALID_ARGUMENT", f"the body must be a JSON object; it is {reprlib.repr(request)}"
        )
    return request


def signature_name(request: dict[str, Any]) -> str:
    """Return the signature that a request asks for; RequestError if it is no string."""
    name = request.get("signature_name", DEFAULT_SIGNATURE)
    if not isinstance(name, str):
        raise RequestError(
            "INVALID_ARGUMENT", f"signature_name must be a string; it is {reprlib.repr(name)}"
        )
    return name or DEFAULT_SIGNATURE


def read_inputs(request: dict[str, Any], signature: meta_graph_pb2.SignatureDef) -> Arrays:
    """Return the arrays of a request, checked, by the names of the signature's inputs.

    Args:
        request: It has either `instances` (a row each) or `inputs` (a column each).
        signature: The signature that is asked.

    Raises:
        RequestError: A name, type, shape or number of rows is not the signature's.
    """
    if ("instances" in request) == ("inputs" in request):
        raise RequestError("INVALID_ARGUMENT", "a request must have either instances or inputs")
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
    """Columns from rows, each of which may name its inputs."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("INVALID_ARGUMENT", "instances must be a list of one or more")
    if not any(map(_has_names, instances)):
        return instances
    for n, instance in enumerate(instances):
        if not _has_names(instance):
            raise RequestError("INVALID_ARGUMENT", f"instance {n} must be an object, as others are")
        try:
            check_names(signature, instance)
        except RequestError as error:
            raise RequestError(error.code, f"instance {n}: {error}") from None

    def of_all(name: str) -> list[Any]:
        return [instance[name] for instance in instances]

    return {name: of_all(name) for name in signature.inputs}


def _has_names(value: Any) -> bool:
    """Whether a value is an object with inputs.

    A string in base64 is an object too, but has none.
    """
    return isinstance(value, dict) and value.keys() != {"b64"}


def _only_input(signature: meta_graph_pb2.SignatureDef) -> list[str]:
    names = sorted(signature.inputs)
    if len(names) > 1:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"values must be named, as there are several inputs: {', '.join(names)}",
        )
    return names


def _array(name: str, value: Any, info: meta_graph_pb2.TensorInfo) -> np.ndarray:
    dtype = tf.as_dtype(info.dtype)
    if dtype not in READERS:
        raise RequestError(
            "FAILED_PRECONDITION",
            f"input {name} is of {dtype.name}, which REST requests cannot give here; use gRPC",
        )
    try:
        return _nested(value, len(info.tensor_shape.dim), READERS[dtype])
    except ValueError as error:
        raise RequestError("INVALID_ARGUMENT", f"input {name}: {error}") from None


def _nested(value: Any, rank: int, read: Read) -> np.ndarray:
    """An array from lists in lists, `rank` deep; `read` takes the innermost."""
    if not isinstance(value, list):
        raise ValueError(f"{reprlib.repr(value)} must be a list")
    if rank <= 1:
        return read(value)
    rows = [_nested(row, rank - 1, read) for row in value]
    if len({row.shape for row in rows}) > 1:
        raise ValueError("all its rows must have the same length; pad them")
    return np.stack(rows) if rows else np.empty((0,) * rank, np.int32)


def _strings(values: list[Any]) -> np.ndarray:
    return np.array([_bytes(value) for value in values], object)


def _bytes(value: Any) -> bytes:
    """A string, or {"b64": its bytes in base64}."""
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        return base64.b64decode(value["b64"], validate=True)
    if not isinstance(value, str):
        raise ValueError(f"{reprlib.repr(value)} must be a string")
    return value.encode("utf-8")


def _int32s(values: list[Any]) -> np.ndarray:
    for value in values:
        if type(value) is not int or value not in INT32:
            raise ValueError(f"{reprlib.repr(value)} must be an int32")
    return np.array(values, np.int32)


READERS = {tf.string: _strings, tf.int32: _int32s}
SCHEMAS: dict[tf.DType, dict[str, Any]] = {  # of a single value
    tf.string: {"type": "string"},
    tf.int32: {"type": "integer", "minimum": INT32.start, "maximum": INT32.stop - 1},
}


def request_schemas(name: str, signature: meta_graph_pb2.SignatureDef) -> list[dict[str, Any]]:
    """Describe the requests for a signature as JSON Schemas: by rows, and by columns.

    There is none where an input is of a type that REST requests cannot give, or where there is no
    input, as of the operation that TensorFlow runs after loading.

    Args:
        name: The signature's name, which may be left out if it is `DEFAULT_SIGNATURE`.
        signature: Its inputs.
    """
    dtypes = {tf.as_dtype(info.dtype) for info in signature.inputs.values()}
    if not dtypes or not dtypes <= SCHEMAS.keys():
        return []
    values = {input: _value_schema(info) for input, info in sorted(signature.inputs.items())}
    columns = {input: _rows_of(value) for input, value in values.items()}
    row = _object(values) if len(values) > 1 else next(iter(values.values()))
    asked = {"signature_name": {"type": "string", "enum": [name]}}
    needed = [] if name == DEFAULT_SIGNATURE else ["signature_name"]
    forms = ({"instances": _rows_of(row)}, {"inputs": _object(columns)})
    return [_object(asked | form) | {"required": [*needed, *form]} for form in forms]


def _value_schema(info: meta_graph_pb2.TensorInfo) -> dict[str, Any]:
    """One row of an input: a value, or lists in lists."""
    schema = SCHEMAS[tf.as_dtype(info.dtype)]
    for _ in info.tensor_shape.dim[1:]:
        schema = {"type": "array", "items": schema}
    return schema


def _rows_of(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema, "minItems": 1, "maxItems": MAX_SENTENCES}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "required": list(properties),
        "properties": properties,
        "additionalProperties": False,
    }


def answer(request: dict[str, Any], outputs: Arrays) -> dict[str, Any]:
    """Return the outputs in the format of their request.

    A single output goes without its name. A number that is not finite becomes NaN or Infinity, as
    of TensorFlow Serving, though JSON has neither.

    Args:
        request: The request, with `instances` or `inputs`.
        outputs: Arrays with the batch first.
    """
    columns = {name: _plain(values) for name, values in outputs.items()}
    by_columns = "inputs" in request
    key = "outputs" if by_columns else "predictions"
    if len(columns) == 1:
        return {key: next(iter(columns.values()))}
    if by_columns:
        return {key: columns}
    rows = zip(*columns.values(), strict=True)
    return {key: [dict(zip(columns, row, strict=True)) for row in rows]}


def _plain(values: np.ndarray) -> list[Any]:
    if values.dtype == np.float32:
        values = values.astype(str).astype(float)  # the shortest decimals that are this float32
    return _as_text(values.tolist())


def _as_text(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def status(numbers: list[int]) -> dict[str, Any]:
    """Return the state of versions, newest first: all are available."""
    well = {"error_code": "OK", "error_message": ""}
    return {
        "model_version_status": [
            {"version": str(number), "state": "AVAILABLE", "status": well}
            for number in sorted(numbers, reverse=True)
        ]
    }


def metadata(model: ServedModel, number: int) -> dict[str, Any]:
    """Return the signatures of one version.

    Each tensor has its dtype and shape.
    """
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
