"""TensorFlow Serving's REST API: from JSON requests to arrays, and from arrays to responses."""

import base64
import json
import reprlib
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Request, Response
from pydantic import BaseModel, Field

from tfformer.engines import Engine, Signature, TensorSpec
from tfformer.engines.engine import GREEDY, Arrays, as_text
from tfformer.serving.apis.fields import Served, read_object
from tfformer.serving.errors import Error, RequestError, check_name
from tfformer.serving.request_queue import MAX_SENTENCES
from tfformer.serving.served_models import ServedModel, signature_of

Read = Callable[[list[Any]], np.ndarray]  # the innermost lists of a request -> an array of rank 1

INT32 = range(-(2**31), 2**31)
MODEL = "/v1/models/{name}"
VERSIONS = ("/versions/{version}", "/labels/{label}")
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error} for status in (400, 403, 404, 413, 500, 503)
}

router = APIRouter(tags=["TensorFlow Serving"], responses=REFUSALS)


class Predict(BaseModel):
    """Rows or columns of the inputs of a signature: either `instances` or `inputs`."""

    signature_name: str = Field(
        GREEDY, description="serving_default is greedy, translate_beam is beam search."
    )
    instances: list[Any] = Field(
        description="The rows.", examples=[["The animal is tired."]], max_length=MAX_SENTENCES
    )


async def _asked(request: Request, state: Served, name: str) -> tuple[ServedModel, int, Engine]:
    """Return the model that the path names, and the version's number and engine."""
    model = state.models.model(name)
    number = request.path_params.get("version")
    if number is not None and not (number.isascii() and number.isdigit() and len(number) < 19):
        raise RequestError(f"Malformed request: {request.method} {request.url.path}")
    label = request.path_params.get("label")
    return model, *model.version(None if number is None else int(number), label)


Asked = Annotated[tuple[ServedModel, int, Engine], Depends(_asked)]


async def status(request: Request, asked: Asked) -> dict[str, Any]:
    """Return the named version, or all versions, newest first; each of them is available."""
    model, number, _ = asked
    names_one = request.path_params.keys() & {"version", "label"}
    numbers = [number] if names_one else sorted(model.versions, reverse=True)
    well = {"error_code": "OK", "error_message": ""}
    return {
        "model_version_status": [
            {"version": str(number), "state": "AVAILABLE", "status": well} for number in numbers
        ]
    }


async def metadata(asked: Asked) -> dict[str, Any]:
    """Return the signatures of a version, with the type and shape of each input and output."""
    model, number, version = asked
    signatures = {
        name: {
            "inputs": _infos(signature.inputs),
            "outputs": _infos(signature.outputs),
            "method_name": "tensorflow/serving/predict",
            "defaults": {},
        }
        for name, signature in version.signatures.items()
    }
    return {
        "model_spec": {"name": model.name, "signature_name": "", "version": str(number)},
        "metadata": {"signature_def": {"signature_def": signatures}},
    }


def _infos(tensors: Mapping[str, TensorSpec]) -> dict[str, Any]:
    infos = {}
    for name, tensor in tensors.items():
        dtype = {"float32": "FLOAT"}.get(tensor.dtype, tensor.dtype.upper())
        sizes = [-1 if size is None else size for size in tensor.shape]
        axes = [{"size": str(size), "name": ""} for size in sizes]
        shape = {"dim": axes, "unknown_rank": False}
        infos[name] = {"dtype": f"DT_{dtype}", "tensor_shape": shape, "name": name}
    return infos


async def predict(request: Request, asked: Asked, state: Served) -> Response:
    """Return `predictions` for `instances`, and `outputs` for `inputs`."""
    state.keys.check(request.headers)
    _, _, version = asked
    values = read_object(await request.body())
    name = signature_name(values)
    inputs = read_inputs(values, signature_of(version, name))
    outputs = await state.queue.submit(version, name, inputs)
    text = json.dumps(answer(values, outputs), ensure_ascii=False)
    return Response(text, media_type="application/json")


def _add_routes() -> None:
    """Add the routes of a model, of its versions and of its labels."""
    body = {"content": {"application/json": {"schema": Predict.model_json_schema()}}}
    for version in ("", *VERSIONS):
        path, described = f"{MODEL}{version}", not version
        add = router.add_api_route
        add(
            f"{path}:predict",
            predict,
            methods=["POST"],
            summary=f"Run a signature on up to {MAX_SENTENCES} rows",
            include_in_schema=described,
            openapi_extra={"requestBody": body | {"required": True}},
        )
        add(
            f"{path}/metadata",
            metadata,
            summary="Show the signatures of a model, with their inputs and outputs",
            include_in_schema=described,
        )
        add(
            path,
            status,
            summary="Show the versions of a model and their state",
            include_in_schema=described,
        )


_add_routes()


def signature_name(request: dict[str, Any]) -> str:
    """Return the signature that a request asks for; RequestError if it is not a string."""
    name = request.get("signature_name", GREEDY)
    if not isinstance(name, str):
        raise RequestError(f"signature_name must be a string; it is {reprlib.repr(name)}")
    return name or GREEDY


def read_inputs(request: dict[str, Any], signature: Signature) -> Arrays:
    """Return the arrays of a request by the names of the signature's inputs.

    A request has either `instances` (one row each) or `inputs` (one column each). RequestError is
    raised if a name, type, shape or number of rows does not match the signature.
    """
    if ("instances" in request) == ("inputs" in request):
        raise RequestError("a request must have either instances or inputs")
    columns = (
        _from_rows(request["instances"], signature) if "instances" in request else request["inputs"]
    )
    if not _has_names(columns):
        names = sorted(signature.inputs)
        if len(names) > 1:
            raise RequestError(
                "values must be named, because the signature has several inputs: "
                f"{', '.join(names)}"
            )
        columns = dict.fromkeys(names, columns)
    _check_names(signature, columns)
    inputs = {name: _array(name, value, signature.inputs[name]) for name, value in columns.items()}
    _check_rows(inputs)
    return inputs


def _from_rows(instances: Any, signature: Signature) -> Any:
    """Turn rows into columns; a row may name its inputs."""
    if not isinstance(instances, list) or not instances:
        raise RequestError("instances must be a non-empty list")
    if not any(map(_has_names, instances)):
        return instances
    for n, instance in enumerate(instances):
        if not _has_names(instance):
            raise RequestError(
                f"instance {n} must be an object, because other instances are objects"
            )
        try:
            _check_names(signature, instance)
        except RequestError as error:
            raise RequestError(f"instance {n}: {error}") from None

    def of_all(name: str) -> list[Any]:
        return [instance[name] for instance in instances]

    return {name: of_all(name) for name in signature.inputs}


def _has_names(value: Any) -> bool:
    """Whether a value is an object of inputs rather than a base64-encoded string."""
    return isinstance(value, dict) and value.keys() != {"b64"}


def _array(name: str, value: Any, spec: TensorSpec) -> np.ndarray:
    if spec.dtype not in READERS:
        raise RequestError(
            f"input {name} has the type {spec.dtype}; this server accepts only strings and int32"
        )
    try:
        return _nested(value, len(spec.shape), READERS[spec.dtype])
    except ValueError as error:
        raise RequestError(f"input {name}: {error}") from None


def _nested(value: Any, rank: int, read: Read) -> np.ndarray:
    """Turn lists nested `rank` deep into an array; `read` converts the innermost lists."""
    if not isinstance(value, list):
        raise ValueError(f"{reprlib.repr(value)} must be a list")
    if rank <= 1:
        return read(value)
    rows = [_nested(row, rank - 1, read) for row in value]
    if len({row.shape for row in rows}) > 1:
        raise ValueError("all its rows must have the same length; pad them")
    return np.stack(rows) if rows else np.empty((0,) * rank, np.int32)


def _bytes(value: Any) -> bytes:
    """Return the bytes of a string or of {"b64": bytes in base64}."""
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


READERS: dict[str, Read] = {
    "string": lambda values: np.array(list(map(_bytes, values)), object),
    "int32": _int32s,
}


def _check_rows(inputs: Arrays) -> None:
    """Refuse inputs with different numbers of rows, or too many rows."""
    sizes = {name: len(values) for name, values in inputs.items()}
    if len(set(sizes.values())) > 1:
        raise RequestError(f"all inputs must have the same number of rows; they have {sizes}")
    size = next(iter(sizes.values()))
    if not 1 <= size <= MAX_SENTENCES:
        raise RequestError(f"a request must have 1 to {MAX_SENTENCES} rows; this one has {size}")


def _check_names(signature: Signature, names: Collection[str]) -> None:
    """Raise RequestError unless the names are exactly the signature's inputs."""
    missing = signature.inputs.keys() - set(names)
    unknown = set(names) - signature.inputs.keys()
    for name in unknown:
        check_name("input's", name)
    if missing:
        raise RequestError(f"input {', '.join(sorted(missing))} is missing")
    if unknown:
        known = ", ".join(sorted(signature.inputs))
        raise RequestError(
            f"there is no input {', '.join(sorted(unknown))}; the inputs are {known}"
        )


def answer(request: dict[str, Any], outputs: Arrays) -> dict[str, Any]:
    """Return the outputs in the format of their request, `instances` or `inputs`.

    A single output is returned without its name. A number that is not finite becomes NaN or
    Infinity, as in TensorFlow Serving, although JSON has neither.
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
        values = values.astype(str).astype(float)  # shortest decimals that round to this float32
    return as_text(values.tolist())
