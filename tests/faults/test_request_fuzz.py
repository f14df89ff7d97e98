"""Requests drawn at random: both protocols agree, a canary is answered right."""

import random

import numpy as np
import pytest
import tensorflow as tf
from support.faults import record, size
from support.hostile_requests import Client, damaged_body, damaged_bytes, drawn_request, text
from tensorflow_serving.apis import predict_pb2

REFUSED = {"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 404}  # as in REST
NO_MESSAGE = "the message is no PredictRequest"


@pytest.fixture
def client(server):
    client = Client(server, "echo")
    yield client
    client.close()


def check_canary(client: Client, draw: random.Random) -> None:
    """The scripted model answers with its version and the text."""
    texts = ["canary", text(draw), "Ж"]
    ask = draw.choice((client.translations_by_rest, client.translations_by_grpc))
    assert ask(texts) == [f"v10: {one}" for one in texts]


def check_same_answers(client: Client, asked: dict) -> str:
    """Both protocols answer alike, or refuse for like reasons: gRPC's code."""
    status, answer = client.rest(client.path(asked), client.body(asked))
    code, content = client.grpc(client.message(asked).SerializeToString())
    if code != "OK":
        assert code in REFUSED, (asked, code, content)
        assert status == REFUSED[code], (asked, code, answer)
        return code
    assert status == 200, (asked, answer)
    outputs = predict_pb2.PredictResponse.FromString(content).outputs
    found = {name: tf.make_ndarray(tensor) for name, tensor in outputs.items()}
    columns = answer["outputs"] if len(found) > 1 else dict.fromkeys(found, answer["outputs"])
    assert columns.keys() == found.keys()
    for name, values in found.items():
        if values.dtype == object:
            values = np.vectorize(bytes.decode, otypes=[object])(values)
        np.testing.assert_array_equal(np.array(columns[name], values.dtype), values)
    return code


@pytest.mark.slow
def test_no_request_harms_another_and_both_protocols_agree(client):
    """In turn: a request over both, a damaged body, a damaged message, the canary."""
    draw, requests, answered = random.Random(25), 0, 0
    wanted = size("requests", 600)
    while requests < wanted:
        asked = drawn_request(draw)
        answered += check_same_answers(client, asked) == "OK"
        status, answer = client.rest(client.path(asked), damaged_body(client.body(asked), draw))
        assert status in (200, 400, 404), answer
        message = damaged_bytes(client.message(asked).SerializeToString(), draw)
        code, reason = client.grpc(message)
        assert code in {"OK", *REFUSED} or (code == "INTERNAL" and NO_MESSAGE in reason), reason
        check_canary(client, draw)
        requests += 5
    assert requests / 20 < answered < requests / 6  # neither all refused nor all answered
    record("canary failures", f"0 of {requests // 5:,}, among {requests:,} requests")
