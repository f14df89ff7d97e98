"""TensorFlow Serving's gRPC PredictionService, without HTTP.

It has the calls Predict and GetModelMetadata.
"""

import logging
import math
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError, Message
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import model_pb2, predict_pb2
from tensorflow_serving.apis.get_model_metadata_pb2 import (
    GetModelMetadataRequest,
    GetModelMetadataResponse,
    SignatureDefMap,
)

from tfformer.serving.api_keys import ApiKeys
from tfformer.serving.errors import MISTAKE, RequestError, check_name
from tfformer.serving.lifecycle import Lifecycle
from tfformer.serving.model import DEFAULT_SIGNATURE, ServedModel, ServedModels, check_inputs
from tfformer.serving.request_queue import RequestQueue

SERVICE = "tensorflow.serving.PredictionService"
MAX_VALUES = 2**19  # in one input: a tensor may claim a shape far larger than its message
MAX_CONNECTIONS = 256
HANDSHAKE_SECONDS = 10
IDLE_SECONDS = 300  # a connection without a call is told to go; clients come back by themselves

Request = TypeVar("Request", bound=Message)


class PredictionService:
    """The calls for all models; any other call is answered with UNIMPLEMENTED.

    Args:
        models: The models that answer.
        queue: The queue in which requests wait for each other.
        lifecycle: Counts the calls, and refuses them once the server is to end.
        keys: The keys of which every call needs one, if there are any.
    """

    def __init__(
        self, models: ServedModels, queue: RequestQueue, lifecycle: Lifecycle, keys: ApiKeys
    ) -> None:
        self._models = models
        self._queue = queue
        self._lifecycle = lifecycle
        self._keys = keys

    def handlers(self) -> grpc.GenericRpcHandler:
        """Return the calls by their names, for a server of `grpc.aio`."""
        calls = {
            "Predict": self._handler(predict_pb2.PredictRequest, self.predict),
            "GetModelMetadata": self._handler(GetModelMetadataRequest, self.metadata),
        }
        return grpc.method_handlers_generic_handler(SERVICE, calls)

    async def predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        """Run a signature on the request's tensors (RequestError if it cannot be done)."""
        model, number = self._asked(request.model_spec)
        version = model.versions[number]
        name = request.model_spec.signature_name or DEFAULT_SIGNATURE
        signature = version.signature(name)
        inputs = {key: _array(key, tensor) for key, tensor in request.inputs.items()}
        check_inputs(signature, inputs)
        _check_outputs(signature, request.output_filter)
        outputs = await self._queue.submit(version, name, inputs)
        response = predict_pb2.PredictResponse(model_spec=_spec(model, number, name))
        for output in request.output_filter or outputs:
            response.outputs[output].CopyFrom(tf.make_tensor_proto(outputs[output]))
        return response

    async def metadata(self, request: GetModelMetadataRequest) -> GetModelMetadataResponse:
        """Return the signatures of a version (RequestError if anything else is asked)."""
        model, number = self._asked(request.model_spec)
        if set(request.metadata_field) != {"signature_def"}:
            raise RequestError("INVALID_ARGUMENT", "metadata_field must be signature_def")
        signatures = SignatureDefMap(signature_def=model.versions[number].signatures)
        response = GetModelMetadataResponse(model_spec=_spec(model, number, ""))
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _handler(
        self, kind: type[Request], answer: Callable[[Request], Awaitable[Message]]
    ) -> grpc.RpcMethodHandler:
        """A call that parses its request itself.

        A malformed request is INTERNAL, as gRPC in C++ has it.

        `grpc.aio` would answer UNKNOWN, which says that the server has made a mistake.
        """

        async def call(content: bytes, context: grpc.aio.ServicerContext) -> Message:
            try:
                self._keys.check(dict(context.invocation_metadata()))
                with self._lifecycle.request():
                    return await answer(kind.FromString(content))
            except DecodeError:
                await context.abort(grpc.StatusCode.INTERNAL, f"the message is no {kind.__name__}")
            except RequestError as error:
                await context.abort(grpc.StatusCode[error.code], str(error))
            except Exception:
                logging.getLogger(__name__).exception(kind.__name__)
                await context.abort(grpc.StatusCode.INTERNAL, MISTAKE)
            raise AssertionError("abort does not return")

        return grpc.unary_unary_rpc_method_handler(
            call, response_serializer=lambda response: response.SerializeToString()
        )

    def _asked(self, spec: model_pb2.ModelSpec) -> tuple[ServedModel, int]:
        model = self._models.model(spec.name)
        number = spec.version.value if spec.HasField("version") else None
        return model, model.number(number, spec.version_label or None)


async def start(
    service: PredictionService, host: str, port: int, max_bytes: int
) -> tuple[grpc.aio.Server, int]:
    """Start a server.

    Args:
        service: The calls.
        host: The address to listen on.
        port: The port; 0 is any that is free.
        max_bytes: The size of the largest request.

    Returns:
        The running server and its port.

    Raises:
        OSError: The port is taken.
    """
    options = {
        "grpc.max_receive_message_length": max_bytes,
        "grpc.so_reuseport": 0,
        "grpc.max_allowed_incoming_connections": MAX_CONNECTIONS,
        "grpc.server_handshake_timeout_ms": 1000 * HANDSHAKE_SECONDS,
        "grpc.max_connection_idle_ms": 1000 * IDLE_SECONDS,
    }
    server = grpc.aio.server(options=list(options.items()))
    server.add_generic_rpc_handlers((service.handlers(),))
    try:
        port = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError:
        raise OSError(
            f"gRPC cannot listen on port {port} of {host}; choose another --grpc-port"
        ) from None
    await server.start()
    return server, port


def _spec(model: ServedModel, number: int, signature: str) -> model_pb2.ModelSpec:
    return model_pb2.ModelSpec(name=model.name, version={"value": number}, signature_name=signature)


def _check_outputs(signature: meta_graph_pb2.SignatureDef, names: Iterable[str]) -> None:
    unknown = set(names) - signature.outputs.keys()
    for name in unknown:
        check_name("output's", name)
    if unknown:
        known = ", ".join(sorted(signature.outputs))
        raise RequestError(
            "INVALID_ARGUMENT",
            f"there is no output {', '.join(sorted(unknown))}; the outputs are {known}",
        )


def _array(name: str, tensor: tensor_pb2.TensorProto) -> np.ndarray:
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    is_whole = not tensor.tensor_shape.unknown_rank and min(sizes, default=0) >= 0
    if not is_whole or math.prod(sizes) > MAX_VALUES:
        raise RequestError(
            "INVALID_ARGUMENT",
            f"input {name!r} must have a whole shape of at most {MAX_VALUES} values",
        )
    try:
        return tf.make_ndarray(tensor)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise RequestError("INVALID_ARGUMENT", f"input {name!r} is not a tensor: {error}") from None
