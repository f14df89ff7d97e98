"""The server's gRPC: what it answers, and what it refuses."""

import asyncio

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2, prediction_service_pb2_grpc

from tfformer.serving import grpc_service as serving_grpc
from tfformer.serving.api_keys import ApiKeys
from tfformer.serving.application import application
from tfformer.serving.lifecycle import Lifecycle
from tfformer.serving.model import ServedModels
from tfformer.serving.request_queue import RequestQueue
from tfformer.serving.server import _grpc


@pytest.fixture(scope="module")
def stub(server):
    with grpc.insecure_channel(server.grpc) as channel:
        yield prediction_service_pb2_grpc.PredictionServiceStub(channel)


def predict_request(
    signature="", name="echo", version=None, label="", outputs=(), **inputs
) -> predict_pb2.PredictRequest:
    spec = {"name": name, "signature_name": signature}
    request = predict_pb2.PredictRequest(model_spec=spec, output_filter=outputs)
    if version is not None:
        request.model_spec.version.value = version
    if label:
        request.model_spec.version_label = label
    for key, value in inputs.items():
        proto = value if isinstance(value, tensor_pb2.TensorProto) else tf.make_tensor_proto(value)
        request.inputs[key].CopyFrom(proto)
    return request


def test_grpc_answers_what_rest_does(stub):
    response = stub.Predict(predict_request(text=["a", "Ж"]))
    assert list(tf.make_ndarray(response.outputs["translation"])) == [b"v10: a", "v10: Ж".encode()]
    np.testing.assert_allclose(
        tf.make_ndarray(response.outputs["score"]), [-1 / 3, -2 / 3], rtol=1e-6
    )
    assert response.model_spec.version.value == 10
    assert response.model_spec.signature_name == "serving_default"
    for chosen in ({"version": 9}, {"label": "stable"}):
        response = stub.Predict(predict_request(text=["a"], **chosen))
        assert tf.make_ndarray(response.outputs["translation"])[0] == b"v9: a"
    ids = {"ids": np.array([[1, 2]], np.int32), "lengths": np.array([2], np.int32)}
    response = stub.Predict(predict_request("translate_ids", **ids))
    assert tf.make_ndarray(response.outputs["ids"]).tolist() == [[2, 1]]
    assert list(stub.Predict(predict_request(text=["a"], outputs=["score"])).outputs) == ["score"]


def test_grpc_metadata_holds_the_signatures(stub):
    fields = {"model_spec": {"name": "echo"}, "metadata_field": ["signature_def"]}
    request = get_model_metadata_pb2.GetModelMetadataRequest(**fields)
    response = stub.GetModelMetadata(request)
    signatures = get_model_metadata_pb2.SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert response.model_spec.version.value == 10
    assert signatures.signature_def["score"].inputs["source"].dtype == tf.string.as_datatype_enum
    del request.metadata_field[:]
    with pytest.raises(grpc.RpcError, match="metadata_field must be signature_def"):
        stub.GetModelMetadata(request)


def claimed(*sizes: int) -> tensor_pb2.TensorProto:
    """A tensor that says it is larger than its message."""
    dims = [{"size": size} for size in sizes]
    return tensor_pb2.TensorProto(
        dtype=tf.string.as_datatype_enum, tensor_shape={"dim": dims}, string_val=[b"a"]
    )


ONE = {"dim": [{"size": 1}]}
NO_TENSOR = ("INVALID_ARGUMENT", "is not a tensor")


@pytest.mark.parametrize(
    ("request_arguments", "code", "message"),
    [
        ({"name": "none", "text": ["a"]}, "NOT_FOUND", "no model 'none'"),
        ({"version": 8, "text": ["a"]}, "NOT_FOUND", "no version 8"),
        ({"label": "none", "text": ["a"]}, "INVALID_ARGUMENT", "no label 'none'"),
        ({"signature": "none", "text": ["a"]}, "FAILED_PRECONDITION", "no signature 'none'"),
        ({}, "INVALID_ARGUMENT", "input text is missing"),
        ({"text": ["a"], "txt": ["a"]}, "INVALID_ARGUMENT", "no input txt"),
        (
            {"text": ["a"], "outputs": ["none"]},
            "INVALID_ARGUMENT",
            "no output none; the outputs are score",
        ),
        ({"text": [1.0]}, "INVALID_ARGUMENT", "must be string of rank 1; it is float32 of rank 1"),
        ({"text": "a"}, "INVALID_ARGUMENT", "must be string of rank 1; it is string of rank 0"),
        ({"text": np.array([], object)}, "INVALID_ARGUMENT", "1 to 64 rows; this one has 0"),
        ({"text": ["a"] * 65}, "INVALID_ARGUMENT", "1 to 64 rows; this one has 65"),
        ({"text": claimed(10**12)}, "INVALID_ARGUMENT", "at most 524288 values"),
        ({"text": claimed(-1)}, "INVALID_ARGUMENT", "must have a whole shape"),
        (
            {
                "text": tensor_pb2.TensorProto(
                    dtype=tf.uint8.as_datatype_enum, int_val=[-7], tensor_shape=ONE
                )
            },
            *NO_TENSOR,
        ),
        ({"text": claimed(0)}, *NO_TENSOR),
        ({"text": ["a" * 3 * 2**20]}, "RESOURCE_EXHAUSTED", "larger than max"),
    ],
)
def test_grpc_refuses_with_code_and_reason(stub, request_arguments, code, message):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict_request(**request_arguments))
    assert caught.value.code().name == code
    assert message in caught.value.details()
    assert stub.Predict(predict_request(text=["a"])).outputs["translation"].string_val == [
        b"v10: a"
    ]


@pytest.mark.parametrize("method", ["Predict", "GetModelMetadata"])
@pytest.mark.parametrize("content", [b"\xff", b"\x0a\x05a", b"\x08" + b"\xff" * 20])
def test_a_malformed_message_is_internal_as_grpc_in_cpp_has_it(server, method, content):
    """A field of type 7, one longer than the message, varints without end."""
    with grpc.insecure_channel(server.grpc) as channel:
        call = channel.unary_unary(f"/tensorflow.serving.PredictionService/{method}")
        with pytest.raises(grpc.RpcError) as caught:
            call(content)
    assert caught.value.code().name == "INTERNAL"
    assert "the message is no " in caught.value.details()


LONG = "n" * 20_000


@pytest.mark.parametrize(
    ("request_arguments", "kind"),
    [
        ({"name": LONG, "text": ["a"]}, "model's"),
        ({"label": LONG, "text": ["a"]}, "label's"),
        ({"signature": LONG, "text": ["a"]}, "signature's"),
        ({"text": ["a"], LONG: ["a"]}, "input's"),
        ({"text": ["a"], "outputs": [LONG]}, "output's"),
    ],
)
def test_a_long_name_is_refused_in_a_short_message(stub, request_arguments, kind):
    """gRPC sends the message in a header.

    With the name in it, it would not arrive at all.
    """
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict_request(**request_arguments))
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert f"the {kind} name 'nnn" in caught.value.details()
    assert "has 20000 characters; a name may have up to 255" in caught.value.details()


def test_many_unknown_names_are_refused_in_a_short_message(stub):
    names = {f"{n:03}" * 80: ["a"] for n in range(100)}
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict_request(text=["a"], **names))
    assert caught.value.code().name == "INVALID_ARGUMENT"
    assert len(caught.value.details()) == 1_000


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        ([], "PERMISSION_DENIED"),
        ([("authorization", "Bearer guess")], "PERMISSION_DENIED"),
        ([("authorization", "second")], "PERMISSION_DENIED"),
        ([("authorization", "Bearer second")], "NOT_FOUND"),
        ([("authorization", "DeepL-Auth-Key first")], "NOT_FOUND"),
    ],
)
def test_grpc_asks_for_a_key_where_there_are_some(capsys, authorization, code):
    """Who has one hears that this server has no models."""

    async def scenario():
        app = application(ServedModels([]), keys=["first", "second"])
        async with _grpc(app, "127.0.0.1", 0):
            place = capsys.readouterr().out.split()[-1]
            async with grpc.aio.insecure_channel(place) as channel:
                stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
                with pytest.raises(grpc.RpcError) as caught:
                    await stub.Predict(predict_request(text=["a"]), metadata=authorization)
        return caught.value.code().name

    assert asyncio.run(scenario()) == code


NOTHING = serving_grpc.PredictionService(ServedModels([]), RequestQueue(), Lifecycle(), ApiKeys(()))


def test_grpc_says_that_its_port_is_taken(server):
    host, _, port = server.grpc.rpartition(":")
    with pytest.raises(
        OSError, match=f"gRPC cannot listen on port {port} of 127.0.0.1; choose another --grpc-port"
    ):
        asyncio.run(serving_grpc.start(NOTHING, host, int(port), 1))
