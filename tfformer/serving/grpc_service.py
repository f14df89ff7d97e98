"""TensorFlow Serving's gRPC PredictionService: Predict and GetModelMetadata. Knows no HTTP."""

import math
from collections.abc import Iterable

import grpc
import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    model_pb2,
    predict_pb2,
    prediction_service_pb2_grpc,
)

from tfformer.serving.model import DEFAULT_SIGNATURE, Refused, ServedModel, check_inputs
from tfformer.serving.request_queue import Batches

MAX_VALUES = 2**19  # in one input: a tensor may claim a shape far larger than its message


class PredictionService(prediction_service_pb2_grpc.PredictionServiceServicer):
    """Answers for one model; what it does not have is answered with UNIMPLEMENTED."""

    def __init__(self, model: ServedModel, batches: Batches):
        self._model = model
        self._batches = batches

    async def Predict(self, request, context) -> predict_pb2.PredictResponse:
        try:
            return await self._predict(request)
        except Refused as refused:
            await context.abort(grpc.StatusCode[refused.code], str(refused))

    async def GetModelMetadata(
        self, request, context
    ) -> get_model_metadata_pb2.GetModelMetadataResponse:
        try:
            return self._metadata(request)
        except Refused as refused:
            await context.abort(grpc.StatusCode[refused.code], str(refused))

    async def _predict(self, request: predict_pb2.PredictRequest) -> predict_pb2.PredictResponse:
        number = self._number(request.model_spec)
        version, name = (
            self._model.versions[number],
            request.model_spec.signature_name or DEFAULT_SIGNATURE,
        )
        signature = version.signature(name)
        inputs = {name: _array(name, tensor) for name, tensor in request.inputs.items()}
        check_inputs(signature, inputs)
        _check_outputs(signature, request.output_filter)
        outputs = await self._batches.submit(version, name, inputs)
        response = predict_pb2.PredictResponse(model_spec=self._spec(number, name))
        for output in request.output_filter or outputs:
            response.outputs[output].CopyFrom(tf.make_tensor_proto(outputs[output]))
        return response

    def _metadata(self, request) -> get_model_metadata_pb2.GetModelMetadataResponse:
        number = self._number(request.model_spec)
        if set(request.metadata_field) != {"signature_def"}:
            raise Refused("INVALID_ARGUMENT", "metadata_field must be signature_def")
        signatures = get_model_metadata_pb2.SignatureDefMap(
            signature_def=self._model.versions[number].signatures
        )
        response = get_model_metadata_pb2.GetModelMetadataResponse(
            model_spec=self._spec(number, "")
        )
        response.metadata["signature_def"].Pack(signatures)
        return response

    def _number(self, spec: model_pb2.ModelSpec) -> int:
        number = spec.version.value if spec.HasField("version") else None
        return self._model.number(spec.name, number, spec.version_label or None)

    def _spec(self, number: int, signature: str) -> model_pb2.ModelSpec:
        return model_pb2.ModelSpec(
            name=self._model.name, version={"value": number}, signature_name=signature
        )


async def start(
    model: ServedModel, batches: Batches, host: str, port: int, max_bytes: int
) -> tuple[grpc.aio.Server, int]:
    """The running server and the port that it has; OSError if the port is taken."""
    server = grpc.aio.server(
        options=[("grpc.max_receive_message_length", max_bytes), ("grpc.so_reuseport", 0)]
    )
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        PredictionService(model, batches), server
    )
    try:
        port = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError:
        raise OSError(
            f"gRPC cannot listen on port {port} of {host}; choose another --grpc-port"
        ) from None
    await server.start()
    return server, port


def _check_outputs(signature: meta_graph_pb2.SignatureDef, names: Iterable[str]) -> None:
    if unknown := set(names) - signature.outputs.keys():
        known = ", ".join(sorted(signature.outputs))
        raise Refused(
            "INVALID_ARGUMENT",
            f"there is no output {', '.join(sorted(unknown))}; the outputs are {known}",
        )


def _array(name: str, tensor: tensor_pb2.TensorProto) -> np.ndarray:
    sizes = [dim.size for dim in tensor.tensor_shape.dim]
    if (
        tensor.tensor_shape.unknown_rank
        or min(sizes, default=0) < 0
        or math.prod(sizes) > MAX_VALUES
    ):
        raise Refused(
            "INVALID_ARGUMENT",
            f"input {name!r} must have a whole shape of at most {MAX_VALUES} values",
        )
    try:
        return tf.make_ndarray(tensor)
    except (ValueError, TypeError, KeyError, OverflowError) as error:
        raise Refused("INVALID_ARGUMENT", f"input {name!r} is not a tensor: {error}") from None
