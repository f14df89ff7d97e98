"""Health, figures and end of the server, and several models behind it."""

import asyncio
import http.client
import json
import threading
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
import tensorflow as tf
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client.parser import text_string_to_metric_families
from support.servers import ask, run_client, save_scripted_model, start_server, until
from tensorflow.core.protobuf import meta_graph_pb2

from tfformer.cli.verbs import main
from tfformer.serving import lifecycle
from tfformer.serving.application import application
from tfformer.serving.application_keys import LIFECYCLE
from tfformer.serving.model import ServedModels

UNNAMED = SimpleNamespace(manifest={})  # a version that names no languages

STRINGS = {"dim": [{"size": -1}]}


def letters_of(outputs) -> int:
    return sum(map(len, outputs["translation"]))


def scripted(name: str, run) -> SimpleNamespace:
    """A served model whose one signature takes texts."""
    text = meta_graph_pb2.TensorInfo(dtype=tf.string.as_datatype_enum, tensor_shape=STRINGS)
    signature = meta_graph_pb2.SignatureDef(inputs={"text": text})
    version = SimpleNamespace(run=run, signature=lambda _: signature, tokens_of=letters_of)
    return SimpleNamespace(name=name, versions={1: version}, number=lambda *_: 1, newest=UNNAMED)


def repeat(signature, inputs):
    return {"translation": np.array([text * 2 for text in inputs["text"]], object)}


def labels_of(sample) -> list[str]:
    return [value for _, value in sorted(sample.labels.items())]


def figures(text: str) -> dict[tuple, float]:
    """Every sample of a page of figures.

    It is (name, labels in the order of their names) -> value.
    """
    return {
        (sample.name, *labels_of(sample)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_the_figures_are_those_of_the_requests():
    async def scenario():
        models = ServedModels([scripted("a", repeat), scripted("b", repeat)])
        async with TestClient(TestServer(application(models))) as client:
            for name, rows in (("a", 3), ("a", 2), ("b", 7), ("none", 1)):
                body = {"instances": ["x"] * rows}
                await client.post(f"/v1/models/{name}:predict", json=body)
            for path in ("/nowhere", "/elsewhere"):
                await client.get(path)
            answer = await client.get("/metrics")
            return answer.headers["Content-Type"], figures(await answer.text())

    content_type, found = asyncio.run(scenario())
    assert content_type.startswith("text/plain; version=")
    route = "/v1/models/{name}:predict"
    assert found["tfformer_requests_total", "POST", route, "200"] == 3
    assert found["tfformer_requests_total", "POST", route, "404"] == 1
    assert found["tfformer_requests_total", "unknown", "unknown", "404"] == 2
    assert found["tfformer_request_duration_seconds_count", route] == 4
    assert found["tfformer_request_duration_seconds_bucket", "+Inf", route] == 4
    assert found["tfformer_sentences_total", "a"] == 5
    assert found["tfformer_sentences_total", "b"] == 7
    assert found["tfformer_tokens_total", "a"] == 5 * len("xx")
    assert found["tfformer_queue_sentences",] == 0
    assert found["process_resident_memory_bytes",] > 1e6


def test_a_server_that_drains_answers_what_is_under_way_and_refuses_the_rest():
    started, go_on = threading.Event(), threading.Event()

    def run(signature, inputs):
        started.set()
        assert go_on.wait(30)
        return repeat(signature, inputs)

    async def scenario():
        app = application(ServedModels([scripted("slow", run)]))
        async with TestClient(TestServer(app)) as client:

            async def status_of(path: str, body: dict | None = None) -> tuple[int, dict]:
                method = "GET" if body is None else "POST"
                async with client.request(method, path, json=body) as response:
                    return response.status, await response.json()

            assert await status_of("/readyz") == (200, {"status": "ok"})
            predict = "/v1/models/slow:predict", {"instances": ["a"]}
            under_way = asyncio.create_task(status_of(*predict))
            await asyncio.to_thread(started.wait, 30)
            draining = asyncio.create_task(app[LIFECYCLE].drain())
            await asyncio.sleep(0)
            assert await status_of("/healthz") == (200, {"status": "ok"})
            assert await status_of("/health") == (200, {"status": "ok"})
            assert await status_of("/readyz") == (503, {"status": "draining"})
            refused, answer = await status_of(*predict)
            assert not draining.done()
            go_on.set()
            assert await under_way == (200, {"predictions": ["aa"]})
            await asyncio.wait_for(draining, 5)
            return refused, answer

    status, answer = asyncio.run(scenario())
    assert status == 503
    assert "about to end" in answer["error"]


def test_draining_has_an_end(monkeypatch):
    monkeypatch.setattr(lifecycle, "DRAIN_SECONDS", 0.05)

    async def scenario():
        life = lifecycle.Lifecycle()
        with life.request():
            await asyncio.wait_for(life.drain(), 5)
            return life.under_way

    assert asyncio.run(scenario()) == 1


def read(address: str) -> str:
    with urlopen(address, timeout=60) as answer:
        return answer.read().decode()


@pytest.mark.slow
def test_two_models_answer_until_the_last_request_is_done(tmp_path):
    for name in ("one", "two"):
        save_scripted_model(tmp_path / name / "1", name)
    places = [f"en-de={tmp_path / 'one'}", f"de-en={tmp_path / 'two'}"]
    server = start_server(*places)
    for model, name in (("en-de", "one"), ("de-en", "two")):
        answer = ask(server, f"{model}:predict", {"instances": ["a"]})[1]
        assert answer["predictions"][0]["translation"] == f"{name}: a"
    status, answer = ask(server, "one:predict", {"instances": ["a"]})
    assert status == 404
    assert "no model 'one'; this server has 'en-de', 'de-en'" in answer["error"]
    assert b"there is no model 'echo'" in run_client("grpc", server.grpc).stderr
    assert json.loads(read(f"{server.rest}/readyz")) == {"status": "ok"}

    place = urlsplit(server.rest).netloc
    with closing(http.client.HTTPConnection(place, timeout=60)) as under_way:
        body = json.dumps({"instances": ["late"]}).encode()
        under_way.putrequest("POST", "/v1/models/en-de:predict")
        under_way.putheader("Content-Length", str(len(body)))
        under_way.endheaders(body[:5])
        until(lambda: "tfformer_requests_under_way 1.0" in read(f"{server.rest}/metrics"))
        server.process.terminate()
        until(lambda: ask(server, "en-de")[0] != 200)
        status, answer = ask(server, "de-en:predict", {"instances": ["a"]})
        assert status == 503
        assert "about to end" in answer["error"]
        under_way.send(body[5:])
        answer = json.loads(under_way.getresponse().read())
        assert answer["predictions"][0]["translation"] == "one: late"
    assert server.process.wait(60) == 0


def test_names_that_cannot_be_served_are_refused(tmp_path, capsys):
    (tmp_path / "same").mkdir()
    (tmp_path / "other" / "same").mkdir(parents=True)
    same, other = tmp_path / "same", tmp_path / "other" / "same"

    def refused(*arguments) -> str:
        assert main(["serve", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    assert "two models have the name 'same'; name one of them otherwise" in refused(same, other)
    assert "--name is for one model" in refused(same, other, "--name", "a")
    assert "hold neither a slash nor a colon" in refused(f"a:b={same}")
    assert "nowhere is neither a run directory" in refused(f"en-de={tmp_path / 'nowhere'}")
