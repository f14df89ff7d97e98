"""The server and its clients against the translator, against scripted models and against what nobody should send."""

import ast
import asyncio
import gzip
import http.client
import http.server
import itertools
import json
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import aiohttp
import grpc
import numpy as np
import pytest
import tensorflow as tf
import yaml
from aiohttp.test_utils import TestClient, TestServer
from google.protobuf import text_format
from tensorflow.core.framework import tensor_pb2
from tensorflow.core.protobuf import meta_graph_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, predict_pb2, prediction_service_pb2_grpc
from tensorflow_serving.config import model_server_config_pb2

from tfformer import batching, served_model, serving, serving_grpc
from tfformer.batching import Batches
from tfformer.cli import main
from tfformer.reading import read_pairs
from tfformer.served_model import Refused
from tfformer.translator import Translator

SERVING = Path(__file__).parents[1] / "export" / "serving"
CLIENTS = {"rest": SERVING / "client_rest.py", "grpc": SERVING / "client_grpc.py"}
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 37)]
SENTENCES += ["", "The Ж 😀 dog.", "The dog."]


def start_server(*arguments, ports=(0, 0)) -> SimpleNamespace:
    """`tfformer serve` in a process of its own, when it is ready: the process, its REST and gRPC addresses."""
    command = [sys.executable, "-m", "tfformer", "serve", *arguments, "--port", ports[0], "--grpc-port", ports[1]]
    process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    printed = ""
    while not (found := re.search(r"serving \S+ at (http://127\.0\.0\.1:\d+)/\n", printed)):
        line = process.stdout.readline()
        assert line, printed
        printed += line
    return SimpleNamespace(process=process, rest=found[1], grpc=re.search(r"gRPC at (\S+)", printed)[1])


@contextmanager
def served(*arguments):
    """A server that must end well when it is told to."""
    server = start_server(*arguments)
    try:
        yield server
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0


def save_scripted_model(folder: Path, name: str) -> None:
    """A SavedModel with an export's signatures, which says who it is and knows 500 ids."""

    def greedy(text):
        length = tf.cast(tf.strings.length(text), tf.float32)
        return {"translation": tf.strings.join([name + ": ", text]), "score": -length / 3}

    def beam(text):
        scores = tf.fill((tf.size(text), 1), -1.5)
        texts = tf.stack([tf.strings.upper(text), tf.strings.lower(text)], axis=1)
        return {"translations": texts, "scores": tf.concat([scores, scores - 1], axis=1)}

    def ids(ids, lengths):
        found = tf.gather(tf.range(500), ids)
        return {"ids": found[:, ::-1], "lengths": lengths, "score": tf.cast(tf.reduce_sum(found, axis=1), tf.float32)}

    def score(source, target):
        return {"log_prob": -tf.cast(tf.strings.length(target), tf.float32), "num_tokens": tf.strings.length(source)}

    strings, lengths = tf.TensorSpec((None,), tf.string), tf.TensorSpec((None,), tf.int32)
    signatures = {
        "serving_default": tf.function(greedy, input_signature=[strings]),
        "translate_beam": tf.function(beam, input_signature=[strings]),
        "translate_ids": tf.function(ids, input_signature=[tf.TensorSpec((None, None), tf.int32), lengths]),
        "score": tf.function(score, input_signature=[strings, strings]),
    }
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server of three versions of a scripted model, of which it takes the newest two."""
    export = tmp_path_factory.mktemp("models") / "echo"
    for number in (8, 9, 10):
        save_scripted_model(export / str(number), f"v{number}")
    with served(export) as addresses:
        yield addresses


def ask(server, path: str, body: bytes | dict | None = None, headers: dict | None = None) -> tuple[int, dict]:
    """Status and JSON of the answer to a request for /v1/models/`path`."""
    connection = http.client.HTTPConnection(urlsplit(server.rest).netloc, timeout=60)
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    try:
        connection.request("GET" if body is None else "POST", f"/v1/models/{path}", content, headers or {})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def run_client(name: str, server: str, *arguments: str, text: str = "one\ntwo\n") -> subprocess.CompletedProcess:
    command = [sys.executable, str(CLIENTS[name]), server, "echo", *arguments]
    return subprocess.run(command, input=text.encode(), capture_output=True, timeout=120)


# Values


@pytest.mark.slow
def test_a_served_run_gives_the_translators_own_through_both_clients(tiny_run):
    translator = Translator.load(tiny_run)
    text = "".join(sentence + "\n" for sentence in SENTENCES)
    with served(tiny_run, "--name", "echo") as server:
        for beam, arguments in ((1, []), (translator.decoding.beam_size, ["--beam"])):
            expected = [best for best, *_ in translator.n_best(SENTENCES, beam)]
            for name in CLIENTS:
                done = run_client(name, getattr(server, name), "--scores", "--batch-size", "7", *arguments, text=text)
                assert done.returncode == 0, done.stderr.decode()
                lines = [line.split("\t") for line in done.stdout.decode().removesuffix("\n").split("\n")]
                assert [text for _, text in lines] == [best.text for best in expected]
                scores = [float(score) for score, _ in lines]
                assert scores == pytest.approx([best.score for best in expected], abs=1e-3)
        hostile = [{"b64": "VGhlIP8gZG9nIMM="}, "The \x00 dog.", "x" * 1_000_000, "漢" * 200_000]
        for sentence in hostile:
            status, answer = ask(server, "echo:predict", {"instances": [sentence]})
            assert status == 200 and isinstance(answer["predictions"][0]["translation"], str)
        status, answer = ask(server, "echo:predict", IDS | {"inputs": {"ids": [[10**9]], "lengths": [1]}})
        assert status == 400 and "1000000000" in answer["error"]
        nothing = {"ids": [[]], "lengths": [0], "score": [0.0]}
        empty = IDS | {"inputs": {"ids": [[]], "lengths": [0]}}
        assert ask(server, "echo:predict", empty) == (200, {"outputs": nothing})
        assert ask(server, "echo:predict", {"instances": [SENTENCES[0]]})[0] == 200


def test_rows_and_columns_are_answered_in_kind(server):
    rows = [{"translation": "v10: a", "score": -0.33333334}, {"translation": "v10: ", "score": 0.0}]
    columns = {"translation": ["v10: a", "v10: "], "score": [-0.33333334, 0.0]}
    named = [{"text": "a"}, {"text": ""}]
    for instances in (["a", ""], named, [{"b64": "YQ=="}, ""], [{"text": {"b64": "YQ=="}}, {"text": ""}]):
        assert ask(server, "echo:predict", {"instances": instances}) == (200, {"predictions": rows})
    for inputs in ({"text": ["a", ""]}, ["a", ""], [{"b64": "YQ=="}, ""]):
        assert ask(server, "echo:predict", {"inputs": inputs}) == (200, {"outputs": columns})


def test_every_signature_is_answered(server):
    beam = {"translations": ["DER HUND", "der hund"], "scores": [-1.5, -2.5]}
    request = {"signature_name": "translate_beam", "instances": ["Der Hund"]}
    assert ask(server, "echo:predict", request) == (200, {"predictions": [beam]})
    instances = [{"ids": [1, 2], "lengths": 2}, {"ids": [3, 4], "lengths": 1}]
    request = {"signature_name": "translate_ids", "instances": instances}
    ids = [{"ids": [2, 1], "lengths": 2, "score": 3.0}, {"ids": [4, 3], "lengths": 1, "score": 7.0}]
    assert ask(server, "echo:predict", request) == (200, {"predictions": ids})
    request = {"signature_name": "score", "inputs": {"source": ["abc", ""], "target": ["ab", "a"]}}
    outputs = {"log_prob": [-2.0, -1.0], "num_tokens": [3, 0]}
    assert ask(server, "echo:predict", request) == (200, {"outputs": outputs})


def test_text_passes_unchanged(server):
    for text in ("Ж 😀 e\u0301 \u2028", "a\x00b", '"\\', "x" * 1_000_000):
        status, answer = ask(server, "echo:predict", {"instances": [text]})
        assert (status, answer["predictions"][0]["translation"]) == (200, f"v10: {text}")


@pytest.mark.parametrize(
    ("place", "name"),
    [("", "v10"), ("/versions/9", "v9"), ("/versions/10", "v10"), ("/labels/stable", "v9"), ("/labels/canary", "v10")],
)
def test_versions_and_labels_choose_who_answers(server, place, name):
    answer = ask(server, f"echo{place}:predict", {"instances": ["a"]})[1]
    assert answer["predictions"][0]["translation"] == f"{name}: a"
    assert ask(server, f"echo{place}/metadata")[1]["model_spec"]["version"] == name.removeprefix("v")


def test_status_and_metadata_have_tensorflow_servings_form(server):
    well = {"error_code": "OK", "error_message": ""}
    states = [{"version": number, "state": "AVAILABLE", "status": well} for number in ("10", "9")]
    assert ask(server, "echo") == (200, {"model_version_status": states})
    assert ask(server, "echo/versions/9") == (200, {"model_version_status": states[1:]})
    status, answer = ask(server, "echo/metadata")
    assert status == 200 and answer["model_spec"] == {"name": "echo", "signature_name": "", "version": "10"}
    signature = answer["metadata"]["signature_def"]["signature_def"]["translate_ids"]
    ids = signature["inputs"]["ids"]
    assert ids["dtype"] == "DT_INT32" and [dim["size"] for dim in ids["tensor_shape"]["dim"]] == ["-1", "-1"]
    assert signature["method_name"] == "tensorflow/serving/predict" and "score" in signature["outputs"]


# What nobody should send

IDS = {"signature_name": "translate_ids"}
BAD = {
    "no JSON": (b"text", 400, "not JSON"),
    "nothing": (b"", 400, "not JSON"),
    "half": (b'{"instances": ["a"', 400, "not JSON"),
    "no UTF-8": (b'{"instances": ["\xff"]}', 400, "UTF-8"),
    "a raw NUL": (b'{"instances": ["a\x00"]}', 400, "control character"),
    "half a surrogate": (b'{"instances": ["\\ud800"]}', 400, "surrogates"),
    "a list": (b"[1]", 400, "must be a JSON object; it is [1]"),
    "nested": (b'{"instances": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "nested too deeply"),
    "a long number": (b'{"instances": [' + b"9" * 9_999 + b"]}", 400, "integer"),
    "an empty object": ({}, 400, "either instances or inputs"),
    "both": ({"instances": ["a"], "inputs": ["a"]}, 400, "either instances or inputs"),
    "no rows": ({"instances": []}, 400, "a list of one or more"),
    "no list": ({"instances": "a"}, 400, "a list of one or more"),
    "an empty column": ({"inputs": {"text": []}}, 400, "1 to 64 rows; this one has 0"),
    "10,000 sentences": ({"instances": ["a"] * 10_000}, 400, "1 to 64 rows; this one has 10000"),
    "a number": ({"instances": [7]}, 400, "input text: 7 must be a string"),
    "null": ({"instances": [None]}, 400, "None must be a string"),
    "a list for a string": ({"instances": [["a"]]}, 400, "['a'] must be a string"),
    "a string for a list": ({"inputs": {"text": "a"}}, 400, "'a' must be a list"),
    "no base64": ({"instances": [{"text": {"b64": "%"}}]}, 400, "input text: "),
    "a missing input": ({"inputs": {}}, 400, "input text is missing"),
    "a missing input in a row": ({"instances": [{"text": "a"}, {}]}, 400, "instance 1: input text is missing"),
    "an unknown input": ({"inputs": {"text": ["a"], "txt": ["a"]}}, 400, "no input txt; the inputs are text"),
    "mixed rows": ({"instances": [{"text": "a"}, "a"]}, 400, "instance 1 must be an object"),
    "an unknown signature": ({"signature_name": "none", "instances": ["a"]}, 400, "no signature 'none'; choose one of"),
    "a number for a signature": ({"signature_name": 7, "instances": ["a"]}, 400, "signature_name must be a string"),
    "unnamed inputs": (IDS | {"instances": [[1]]}, 400, "several inputs: ids, lengths"),
    "ragged ids": (IDS | {"inputs": {"ids": [[1], [1, 2]], "lengths": [1, 2]}}, 400, "the same length"),
    "flat ids": (IDS | {"inputs": {"ids": [1], "lengths": [1]}}, 400, "1 must be a list"),
    "rows that do not match": (IDS | {"inputs": {"ids": [[1]], "lengths": [1, 1]}}, 400, "same number of rows"),
    "strings for ids": (IDS | {"inputs": {"ids": [["1"]], "lengths": [1]}}, 400, "'1' must be an int32"),
    "fractions for ids": (IDS | {"inputs": {"ids": [[1.0]], "lengths": [1]}}, 400, "1.0 must be an int32"),
    "truth for ids": (IDS | {"inputs": {"ids": [[True]], "lengths": [1]}}, 400, "True must be an int32"),
    "large ids": (IDS | {"inputs": {"ids": [[2**31]], "lengths": [1]}}, 400, "2147483648 must be an int32"),
    "unknown ids": (IDS | {"inputs": {"ids": [[500]], "lengths": [1]}}, 400, "500 is not in [0, 500)"),
    "too much": (b" " * (serving.MAX_BYTES + 1), 413, "more than 2097152 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_answered_with_its_reason(server, name):
    body, status, message = BAD[name]
    found, answer = ask(server, "echo:predict", body)
    assert found == status and set(answer) == {"error"} and message in answer["error"], answer
    assert ask(server, "echo:predict", {"instances": ["a"]})[0] == 200


def test_a_compressed_body_is_read_and_has_the_same_limits(server):
    def ask_compressed(body: bytes) -> tuple[int, dict]:
        return ask(server, "echo:predict", body, headers={"Content-Encoding": "gzip"})

    assert ask_compressed(gzip.compress(b'{"instances": ["a"]}'))[1]["predictions"][0]["translation"] == "v10: a"
    status, answer = ask_compressed(gzip.compress(b" " * 100_000_000))
    assert status == 413 and "more than 2097152 bytes" in answer["error"]
    status, answer = ask_compressed(b"no gzip")
    assert status == 400 and "the body cannot be read" in answer["error"]


@pytest.mark.parametrize(
    ("path", "status", "message"),
    [
        ("none:predict", 404, "no model 'none'; this server has 'echo'"),
        ("echo/versions/8:predict", 404, "no version 8; choose one of 9, 10"),
        ("echo/labels/none:predict", 400, "no label 'none'; choose one of stable, canary"),
        ("echo:classify", 400, "Malformed request: POST /v1/models/echo:classify"),
        ("echo", 400, "Malformed request: POST"),
        ("echo/versions/x:predict", 400, "Malformed request"),
    ],
)
def test_a_bad_path_is_answered_with_its_reason(server, path, status, message):
    found, answer = ask(server, path, {"instances": ["a"]})
    assert found == status and message in answer["error"]


def test_good_requests_are_unharmed_by_many_others_and_by_bad_ones(server):
    bad = [body for body, _, _ in BAD.values()]
    plain = {f"sentence {n}": {"instances": [f"sentence {n}", "b"]} for n in range(40)}

    def check(text):
        predictions = ask(server, "echo:predict", plain[text])[1]["predictions"]
        return [row["translation"] for row in predictions] == [f"v10: {text}", "v10: b"]

    def check_ids(n):
        request = IDS | {"inputs": {"ids": [[n] * (1 + n % 3)], "lengths": [n]}}
        return ask(server, "echo:predict", request)[1]["outputs"]["lengths"] == [n]

    with ThreadPoolExecutor(24) as threads:
        refused = threads.map(lambda body: ask(server, "echo:predict", body)[0], bad)
        by_ids = threads.map(check_ids, range(40))
        assert all(threads.map(check, plain)) and all(by_ids)
        assert list(refused) == [status for _, status, _ in BAD.values()]


# The queue


def scripted(run) -> SimpleNamespace:
    return SimpleNamespace(run=run)


def strings(*values: str) -> dict[str, np.ndarray]:
    return {"text": np.array([value.encode() for value in values], object)}


async def gather(*requests) -> list:
    """Submit (version, signature, inputs) all at once; the outputs, or errors, of each."""
    batches = Batches()
    loop = asyncio.create_task(batches.run())
    try:
        return await asyncio.gather(*(batches.submit(*request) for request in requests), return_exceptions=True)
    finally:
        loop.cancel()


def test_requests_of_a_kind_run_together_up_to_the_cap_and_each_gets_its_own():
    sizes = []

    def run(signature, inputs):
        sizes.append((signature, len(inputs["text"])))
        return {"found": inputs["text"]}

    version = scripted(run)
    requests = [(version, "a", strings(*[str(n)] * 20)) for n in range(4)] + [(version, "b", strings("b", "c"))]
    answers = asyncio.run(gather(*requests))
    assert sizes == [("a", 60), ("a", 20), ("b", 2)]
    assert [list(answer["found"]) for answer in answers] == [list(inputs["text"]) for _, _, inputs in requests]


def test_ids_of_different_lengths_do_not_run_together():
    def run(signature, inputs):
        return {"shape": np.full(len(inputs["ids"]), inputs["ids"].shape[1])}

    version = scripted(run)
    requests = [(version, "a", {"ids": np.zeros((1, width), np.int32)}) for width in (3, 4, 3)]
    answers = asyncio.run(gather(*requests))
    assert [answer["shape"].tolist() for answer in answers] == [[3], [4], [3]]


def test_one_that_fails_takes_no_other_with_it():
    def run(signature, inputs):
        if b"bad" in inputs["text"]:
            raise Refused("INVALID_ARGUMENT", "bad text")
        return {"found": inputs["text"]}

    version = scripted(run)
    good, bad, other = asyncio.run(gather(*((version, "a", strings(text)) for text in ("good", "bad", "other"))))
    assert isinstance(bad, Refused) and good["found"][0] == b"good" and other["found"][0] == b"other"


def test_a_full_queue_refuses_and_recovers(monkeypatch):
    monkeypatch.setattr(batching, "MAX_WAITING", 2)
    started, go_on = threading.Event(), threading.Event()

    def run(signature, inputs):
        started.set()
        assert go_on.wait(30)
        return {"translation": inputs["text"]}

    text = meta_graph_pb2.TensorInfo(dtype=tf.string.as_datatype_enum, tensor_shape={"dim": [{"size": -1}]})
    signature = meta_graph_pb2.SignatureDef(inputs={"text": text})
    version = SimpleNamespace(run=run, signature=lambda name: signature)
    model = SimpleNamespace(name="slow", versions={1: version}, number=lambda *_: 1)

    async def scenario():
        async with TestClient(TestServer(serving.application(model))) as client:

            async def predict(*sentences):
                async with client.post("/v1/models/slow:predict", json={"instances": sentences}) as response:
                    return response.status, await response.json()

            running = asyncio.create_task(predict("a"))
            await asyncio.to_thread(started.wait, 30)
            waiting = [asyncio.create_task(predict(text)) for text in ("b", "c")]
            await asyncio.sleep(0.2)
            status, answer = await predict("d")
            assert status == 503 and "2 sentences are waiting; try again later" in answer["error"]
            go_on.set()
            answers = await asyncio.gather(running, *waiting)
            assert answers == [(200, {"predictions": [text]}) for text in "abc"]
            assert (await predict("d"))[0] == 200

    asyncio.run(scenario())


def test_a_mistake_of_the_server_is_answered_with_500_and_not_its_end(caplog):
    def fail(*_):
        raise KeyError("a mistake")

    model = SimpleNamespace(name="broken", versions={}, number=fail)

    async def scenario():
        async with TestClient(TestServer(serving.application(model))) as client:
            for _ in range(2):
                async with client.get("/v1/models/broken") as response:
                    assert response.status == 500 and "mistake" in (await response.json())["error"]

    asyncio.run(scenario())
    assert "a mistake" in caplog.text


# gRPC


def test_the_page_says_that_a_model_without_beam_search_is_not_for_it(tmp_path):
    module = tf.Module()
    double = tf.function(
        lambda text: {"twice": text + text}, input_signature=[tf.TensorSpec((None,), tf.string, "text")]
    )
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"serving_default": double})
    with served(tmp_path, "--name", "double") as server:
        with pytest.raises(urllib.error.HTTPError) as page:
            urllib.request.urlopen(f"{server.rest}/")
        assert page.value.code == 404
        assert json.loads(page.value.read())["error"].startswith("double has no translate_beam, which the page needs")
        assert ask(server, "double:predict", {"instances": ["a"]}) == (200, {"predictions": ["aa"]})


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
    np.testing.assert_allclose(tf.make_ndarray(response.outputs["score"]), [-1 / 3, -2 / 3], rtol=1e-6)
    assert response.model_spec.version.value == 10 and response.model_spec.signature_name == "serving_default"
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
    assert response.metadata["signature_def"].Unpack(signatures) and response.model_spec.version.value == 10
    assert signatures.signature_def["score"].inputs["source"].dtype == tf.string.as_datatype_enum
    del request.metadata_field[:]
    with pytest.raises(grpc.RpcError, match="metadata_field must be signature_def"):
        stub.GetModelMetadata(request)


def claimed(*sizes: int) -> tensor_pb2.TensorProto:
    """A tensor that says it is larger than its message."""
    dims = [{"size": size} for size in sizes]
    return tensor_pb2.TensorProto(dtype=tf.string.as_datatype_enum, tensor_shape={"dim": dims}, string_val=[b"a"])


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
        ({"text": tensor_pb2.TensorProto(dtype=tf.uint8.as_datatype_enum, int_val=[-7], tensor_shape=ONE)}, *NO_TENSOR),
        ({"text": claimed(0)}, *NO_TENSOR),
        ({"text": ["a" * 3 * 2**20]}, "RESOURCE_EXHAUSTED", "larger than max"),
    ],
)
def test_grpc_refuses_with_code_and_reason(stub, request_arguments, code, message):
    with pytest.raises(grpc.RpcError) as caught:
        stub.Predict(predict_request(**request_arguments))
    assert caught.value.code().name == code and message in caught.value.details()
    assert stub.Predict(predict_request(text=["a"])).outputs["translation"].string_val == [b"v10: a"]


def test_grpc_says_that_its_port_is_taken(server):
    host, _, port = server.grpc.rpartition(":")
    with pytest.raises(OSError, match=f"gRPC cannot listen on port {port} of 127.0.0.1; choose another --grpc-port"):
        asyncio.run(serving_grpc.start(None, None, host, int(port), 1))


@pytest.mark.parametrize(
    ("error", "code"),
    [(tf.errors.InvalidArgumentError, "INVALID_ARGUMENT"), (tf.errors.ResourceExhaustedError, "INTERNAL")],
)
def test_an_error_in_the_graph_is_answered_with_its_reason(error, code):
    def fail(**_):
        raise error(None, None, "Graph execution error:\n\n\tat node 7\nout of luck")

    version = object.__new__(served_model.Version)
    version._model = SimpleNamespace(signatures={"a": fail})
    with pytest.raises(Refused, match="out of luck") as caught:
        version.run("a", {})
    assert caught.value.code == code


# The clients


@contextmanager
def scripted_server(*answers):
    """A server with these answers (seconds to wait, status, body) in turn, the last for ever; what it was asked."""
    requests, turns = [], itertools.chain(answers, itertools.repeat(answers[-1]))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            seconds, status, body = next(turns)
            time.sleep(seconds)
            with suppress(BrokenPipeError):  # the client's deadline is over
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(body).encode())

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", requests
        server.shutdown()


GOOD = (0, 200, {"predictions": [{"translation": "eins", "score": -1.0}, {"translation": "zwei", "score": -2.0}]})


def test_the_client_tries_again_where_it_may():
    with scripted_server((0, 503, {"error": "full"}), (0, 429, {}), GOOD) as (address, requests):
        done = run_client("rest", address)
    assert done.stdout == b"eins\nzwei\n" and done.returncode == 0, done.stderr
    assert requests == [{"signature_name": "serving_default", "instances": [{"text": "one"}, {"text": "two"}]}] * 3


@pytest.mark.parametrize("status", [400, 404, 413, 500, 504])
def test_the_client_does_not_try_again_where_it_may_not(status):
    with scripted_server((0, status, {"error": "the reason"})) as (address, requests):
        done = run_client("rest", address)
    assert done.returncode == 1 and done.stdout == b"" and len(requests) == 1
    assert f"answered {status}: the reason".encode() in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(("answer", "tries"), [((20, 200, {}), 1), ((0, 503, {"error": "full"}), 2)])
def test_the_client_keeps_its_deadline(answer, tries):
    with scripted_server(answer) as (address, requests):
        start = time.monotonic()
        done = run_client("rest", address, "--deadline", "1")
        assert time.monotonic() - start < 10
    assert done.returncode == 1 and b"no answer within 1 seconds" in done.stderr and len(requests) >= tries


def test_the_client_names_what_it_cannot_send_or_reach():
    with scripted_server((0, 200, {"nothing": 1})) as (address, _):
        assert b"something else than translations" in run_client("rest", address).stderr
        command = [sys.executable, str(CLIENTS["rest"]), address, "echo"]
        done = subprocess.run(command, input=b"one\n\xff\n", capture_output=True)
        assert done.returncode == 1 and b"line 2 is not UTF-8" in done.stderr
        assert b"--batch-size 0 must be at least 1" in run_client("rest", address, "--batch-size", "0").stderr
    assert b"cannot be reached" in run_client("rest", address, "--deadline", "0.5").stderr
    assert b"give http://HOST:PORT" in run_client("rest", "127.0.0.1:1").stderr


def test_clients_choose_versions_and_labels(server):
    assert run_client("rest", server.rest, "--label", "stable").stdout == b"v9: one\nv9: two\n"
    assert run_client("rest", server.rest, "--version", "10", "--batch-size", "1").stdout == b"v10: one\nv10: two\n"
    assert run_client("rest", server.rest, "--beam", "--scores").stdout == b"-1.5000\tONE\n-1.5000\tTWO\n"
    assert run_client("grpc", server.grpc, "--label", "stable", "--beam").stdout == b"ONE\nTWO\n"
    refused = run_client("rest", server.rest, "--version", "8")
    assert refused.returncode == 1 and b"answered 404: model 'echo' has no version 8" in refused.stderr


def test_the_clients_say_in_one_line_what_cannot_be_sent(server):
    for name in CLIENTS:
        refused = run_client(name, getattr(server, name), "--batch-size", "1", text="one\n" + "x" * 3_000_000)
        assert refused.returncode == 1 and refused.stdout == b"v10: one\n"
        *imports, line = refused.stderr.splitlines()
        assert b"after 1 lines: " in line and not any(CLIENTS[name].name.encode() in other for other in imports)


@pytest.mark.slow
def test_the_grpc_client_tries_again_and_keeps_its_deadline():
    calls = []

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            calls.append(list(request.inputs["text"].string_val))
            if len(calls) != 3:
                context.abort(grpc.StatusCode.UNAVAILABLE, "not yet")
            response = predict_pb2.PredictResponse()
            response.outputs["translation"].CopyFrom(tf.make_tensor_proto(["eins", "zwei"]))
            response.outputs["score"].CopyFrom(tf.make_tensor_proto([-1.0, -2.0]))
            return response

    server = grpc.server(ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        assert run_client("grpc", address).stdout == b"eins\nzwei\n" and calls == [[b"one", b"two"]] * 3
        done = run_client("grpc", address, "--deadline", "1")
    finally:
        server.stop(0)
    assert done.returncode == 1 and b"no answer within 1 seconds" in done.stderr and b"not yet" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_outlives_a_server_that_is_killed_and_started_again(name, tmp_path):
    save_scripted_model(tmp_path / "echo" / "1", "v1")
    server = start_server(tmp_path / "echo")
    command = [sys.executable, str(CLIENTS[name]), getattr(server, name), "echo", "--batch-size", "1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:

        def send(line: bytes) -> None:
            client.stdin.write(line)
            client.stdin.flush()

        send(b"one\n")
        assert client.stdout.readline() == b"v1: one\n"
        server.process.kill()
        server.process.wait()
        send(b"two\n")
        ports = [urlsplit(server.rest).port, server.grpc.rpartition(":")[2]]
        server = start_server(tmp_path / "echo", ports=ports)
        assert client.stdout.readline() == b"v1: two\n"
        send(b"three\n")
        assert client.communicate()[0] == b"v1: three\n" and client.returncode == 0
    server.process.kill()
    server.process.wait()


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module.split(".")[0])
    return names


def test_the_clients_need_what_they_say():
    assert imported(CLIENTS["rest"]) <= sys.stdlib_module_names
    needed = imported(CLIENTS["grpc"]) - sys.stdlib_module_names
    assert needed == {"grpc", "tensorflow", "tensorflow_serving", "client_rest"}


# The files for TensorFlow Serving


def test_the_smoke_test_passes_here_and_fails_elsewhere(server):
    command = ["sh", str(SERVING / "smoke_test.sh"), server.rest]
    done = subprocess.run([*command, "echo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.endswith("all is well\n"), done.stderr
    failed = subprocess.run([*command, "none"], capture_output=True, text=True, timeout=120)
    assert failed.returncode == 1 and "FAILED: none gave 404" in failed.stderr


def test_the_configuration_is_what_tensorflow_serving_reads():
    text = (SERVING / "models.config").read_text(encoding="utf-8")
    model = text_format.Parse(text, model_server_config_pb2.ModelServerConfig()).model_config_list.config[0]
    versions = list(model.model_version_policy.specific.versions)
    assert versions == [1, 2] and dict(model.version_labels) == {"stable": 1, "canary": 2}
    service = yaml.safe_load((SERVING / "compose.yaml").read_text(encoding="utf-8"))["services"]["serving"]
    script = (SERVING / "run_server.sh").read_text(encoding="utf-8")
    assert all(argument in script for argument in [*service["command"], service["image"], *service["ports"]])
    assert service["volumes"][0].endswith(f":{model.base_path}:ro") and f":{model.base_path}:ro" in script
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    kserve = yaml.safe_load((SERVING / "inference_service.yaml").read_text(encoding="utf-8"))
    assert kserve["kind"] == "InferenceService" and kserve["metadata"]["name"] == model.name
    assert service["image"] == f"tensorflow/serving:{kserve['spec']['predictor']['model']['runtimeVersion']}"


def test_run_server_wants_two_versions(tmp_path):
    done = subprocess.run(["sh", str(SERVING / "run_server.sh"), str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 2 and "versions 1 and 2" in done.stderr


# The verb


def refused(capsys, *arguments) -> str:
    assert main(["serve", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_serve_refuses_what_it_cannot_serve(tmp_path, capsys, monkeypatch):
    assert "neither a run directory nor a SavedModel export" in refused(capsys, tmp_path, "--port", 0)
    assert "must not be empty nor hold a slash" in refused(capsys, tmp_path, "--name", "a/b")
    assert "--port 65536 must be a number from 0 to 65535" in refused(capsys, tmp_path, "--port", 65536)
    with scripted_server(GOOD) as (address, _):
        port = urlsplit(address).port
        for option in ("--port", "--grpc-port"):
            message = f"{option} {port} on 127.0.0.1: Address already in use; choose another"
            assert message in refused(capsys, tmp_path, option, port)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"\xff")
    assert "saved_model.pb is no SavedModel; export the run again" in refused(capsys, tmp_path, "--port", 0)
    monkeypatch.setattr(serving, "find_spec", lambda name: None)
    assert "pip install 'tfformer[serve]'" in refused(capsys, tmp_path, "--grpc-port", 0)
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    monkeypatch.delitem(sys.modules, "tfformer.serving")
    assert "serving needs aiohttp; install it with: pip install 'tfformer[serve]'" in refused(capsys, tmp_path)


# The page


class Browser:
    """A page in headless Chromium, through its DevTools protocol."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse):
        self._socket = socket
        self._numbers = itertools.count(1)

    async def command(self, method: str, **parameters) -> dict:
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        while True:
            answer = await self._socket.receive_json(timeout=30)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]

    async def value(self, expression: str):
        answer = await self.command("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer["result"].get("value")

    async def until(self, expression: str, value) -> None:
        end = time.monotonic() + 20
        while (found := await self.value(expression)) != value:
            assert time.monotonic() < end, (expression, found)
            await asyncio.sleep(0.05)

    async def press(self, key: str, code: int, modifiers: int = 0) -> None:
        for kind in ("rawKeyDown", "keyUp"):
            event = {"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": modifiers}
            await self.command("Input.dispatchKeyEvent", **event)


async def with_browser(address: str, profile: Path, scenario) -> None:
    arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]
    arguments += [f"--user-data-dir={profile}"]
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(CHROMIUM, *arguments, address, stdout=quiet, stderr=quiet)
    try:
        ports, end = profile / "DevToolsActivePort", time.monotonic() + 30
        while not (ports.is_file() and ports.read_text()):
            assert time.monotonic() < end
            await asyncio.sleep(0.05)
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{ports.read_text().split()[0]}/json/list") as response:
                pages = [page for page in await response.json(content_type=None) if page["url"] == address]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                await scenario(Browser(socket))
    finally:
        process.terminate()
        await process.wait()


LINES = "[...document.querySelectorAll('#found > li')].map(li => li.querySelector('.best').innerText).join('|')"


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_the_page_translates_what_is_typed(server, tmp_path):
    async def scenario(browser: Browser):
        await browser.until("document.readyState + document.activeElement.id", "completesource")
        assert await browser.value("document.querySelector('#model').textContent") == "echo"
        await browser.command("Input.insertText", text="Good <b>morning</b>.\n\nThe dog.")
        await browser.until(LINES, "GOOD <B>MORNING</B>. -1.50|THE DOG. -1.50")
        others = await browser.value("document.querySelector('#found details').textContent")
        assert others == "1 moregood <b>morning</b>. -2.50"

        await browser.value("document.querySelector('#source').select()")
        await browser.command("Input.insertText", text="x\n" * 65)
        await browser.until("document.querySelector('#state').textContent.includes('1 to 64 rows')", True)
        await browser.value("document.querySelector('#source').select()")
        await browser.command("Input.insertText", text="Again")
        await browser.press("Enter", 13, modifiers=2)
        await browser.until(LINES, "AGAIN -1.50")
        assert await browser.value("document.querySelector('#state').textContent") == ""
        await browser.press("Tab", 9)
        assert await browser.value("document.activeElement.tagName") == "BUTTON"

        background = "getComputedStyle(document.body).backgroundColor"
        for scheme, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 24, 29)")):
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            await browser.command("Emulation.setEmulatedMedia", features=features)
            await browser.until(background, colour)
        phone = {"width": 360, "height": 640, "deviceScaleFactor": 2, "mobile": True}
        await browser.command("Emulation.setDeviceMetricsOverride", **phone)
        await browser.until("document.documentElement.scrollWidth", 360)
        assert await browser.value("document.querySelector('button').getBoundingClientRect().height") >= 44

    asyncio.run(with_browser(server.rest + "/", tmp_path / "profile", scenario))
