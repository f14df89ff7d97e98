"""Health, figures and end of the server, and several models behind it."""

import asyncio
import gc
import http.client
import json
import weakref
from contextlib import closing
from types import SimpleNamespace
from urllib.parse import urlsplit
from urllib.request import urlopen

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.served_texts import Scripted, client_of, scripted
from support.servers import ask, save_scripted_model, start_server, until

from tfformer.cli.main import main
from tfformer.serving.application import application
from tfformer.serving.served_models import ServedModel, ServedModels


def repeat(signature, inputs):
    return {"translation": np.array([text * 2 for text in inputs["text"]], object)}


def repeating(name: str) -> SimpleNamespace:
    """A served model that says each text twice; a letter is a token."""
    tokenizers = SimpleNamespace(target=SimpleNamespace(encode=lambda texts: texts))
    return scripted(name, Scripted(run=repeat, tokenizers=tokenizers))


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
        models = ServedModels([repeating("a"), repeating("b")])
        async with client_of(application(models)) as client:
            for name, rows in (("a", 3), ("a", 2), ("b", 7), ("none", 1)):
                body = {"instances": ["x"] * rows}
                async with client.post(f"/v1/models/{name}:predict", json=body) as answer:
                    await answer.read()
            for path in ("/nowhere", "/elsewhere"):
                async with client.get(path) as answer:
                    await answer.read()
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


def listens(place: str) -> bool:
    try:
        with closing(http.client.HTTPConnection(place, timeout=5)) as connection:
            connection.connect()
    except ConnectionRefusedError:
        return False
    return True


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
    assert json.loads(read(f"{server.rest}/readyz")) == {"status": "ok"}

    place = urlsplit(server.rest).netloc
    with closing(http.client.HTTPConnection(place, timeout=60)) as under_way:
        body = json.dumps({"instances": ["late"]}).encode()
        under_way.putrequest("POST", "/v1/models/en-de:predict")
        under_way.putheader("Content-Length", str(len(body)))
        under_way.endheaders(body[:5])
        two = "tfformer_requests_under_way 2.0"  # it, and the question for the metrics
        until(lambda: two in read(f"{server.rest}/metrics"))
        server.process.terminate()
        until(lambda: not listens(place))
        under_way.send(body[5:])
        answer = json.loads(under_way.getresponse().read())
        assert answer["predictions"][0]["translation"] == "one: late"
    assert server.process.wait(60) == 0


@pytest.mark.slow
def test_a_new_version_takes_over_without_a_lost_request(tmp_path, capsys):
    """The oldest is released, and a damaged one changes nothing."""
    versions, ready = tmp_path / "en-de", tmp_path / "ready"
    save_scripted_model(versions / "1", "v1")
    for number in ("2", "3"):
        save_scripted_model(ready / number, f"v{number}")
    model = ServedModel("en-de", versions)
    first = weakref.ref(model.newest)
    found = []

    async def scenario():
        async with client_of(application(ServedModels([model]))) as client:

            async def ask_one():
                body = deepl(f"Sentence {len(found)}.")
                async with client.post("/v2/translate", json=body) as answer:
                    found.append((answer.status, (await answer.json())["translations"][0]["text"]))

            async def ask_until(changed):
                while not changed.done():
                    await ask_one()
                await ask_one()

            for number in ("2", "3"):
                (ready / number).rename(versions / number)
                await ask_until(asyncio.create_task(asyncio.to_thread(model.reload)))
            (versions / "4").mkdir()
            (versions / "4" / "manifest.json").write_text("{")
            await ask_until(asyncio.create_task(asyncio.to_thread(model.reload)))

    asyncio.run(scenario())
    assert {status for status, _ in found} == {200}
    assert [text.partition(":")[0] for _, text in found][-1] == "v3"
    assert model.versions.keys() == {2, 3}
    assert "manifest.json" in capsys.readouterr().err
    gc.collect()
    assert first() is None


def deepl(text: str) -> dict:
    return {"text": [text], "target_lang": "DE", "model_type": "latency_optimized"}


def test_names_that_cannot_be_served_are_refused(tmp_path, capsys):
    (tmp_path / "same").mkdir()
    (tmp_path / "other" / "same").mkdir(parents=True)
    same, other = tmp_path / "same", tmp_path / "other" / "same"

    def refused(*arguments) -> str:
        assert main(["serve", *map(str, arguments)]) == 2
        return capsys.readouterr().err

    assert "two models have the name 'same'; name one of them otherwise" in refused(same, other)
    assert "hold neither a slash nor a colon" in refused(f"a:b={same}")
    assert "nowhere is neither a run directory" in refused(f"en-de={tmp_path / 'nowhere'}")
