"""Health and shutdown of the server, with several models."""

import asyncio
import gc
import http.client
import json
import weakref
from contextlib import closing
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from support.served_texts import Scripted, client_of, scripted
from support.servers import ask, save_scripted_model, start_server, until

from tfformer.serving.application import application
from tfformer.serving.served_models import ServedModel, ServedModels


def test_the_server_says_that_it_is_well():
    async def scenario():
        answers = {}
        async with client_of(application(ServedModels([scripted("a", Scripted())]))) as client:
            for path in ("/healthz", "/readyz", "/health", "/metrics"):
                async with client.get(path) as answer:
                    answers[path] = answer.status, await answer.json()
                async with client.head(path) as answer:  # as some load balancers ask
                    heads.append(answer.status)
        return answers

    heads = []
    answers = asyncio.run(scenario())
    assert heads == [200, 200, 200, 404]
    assert answers.pop("/metrics")[0] == 404
    assert set(map(str, answers.values())) == {str((200, {"status": "ok"}))}


def listens(address: str) -> bool:
    try:
        with closing(http.client.HTTPConnection(address, timeout=5)) as connection:
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
    exports = [f"en-de={tmp_path / 'one'}", f"de-en={tmp_path / 'two'}"]
    server = start_server(*exports)
    for model, name in (("en-de", "one"), ("de-en", "two")):
        answer = ask(server, f"{model}:predict", {"instances": ["a"]})[1]
        assert answer["predictions"][0]["translation"] == f"{name}: a"
    status, answer = ask(server, "one:predict", {"instances": ["a"]})
    assert status == 404
    assert "no model 'one'; this server has 'en-de', 'de-en'" in answer["error"]
    assert json.loads(read(f"{server.rest}/readyz")) == {"status": "ok"}

    address = urlsplit(server.rest).netloc
    with closing(http.client.HTTPConnection(address, timeout=60)) as under_way:
        body = json.dumps({"instances": ["late"]}).encode()
        under_way.putrequest("POST", "/v1/models/en-de:predict")
        under_way.putheader("Content-Length", str(len(body)))
        under_way.putheader("Expect", "100-continue")  # the answer: the server reads the body
        under_way.endheaders()
        assert under_way.sock.recv(1_000).startswith(b"HTTP/1.1 100")
        under_way.send(body[:5])
        server.process.terminate()
        until(lambda: not listens(address))
        under_way.send(body[5:])
        answer = json.loads(under_way.getresponse().read())
        assert answer["predictions"][0]["translation"] == "one: late"
    assert server.process.wait(60) == 0


@pytest.mark.slow
def test_a_new_version_takes_over_without_a_lost_request(tmp_path, capsys):
    """The oldest version is released; a damaged version is ignored."""
    versions, ready = tmp_path / "en-de", tmp_path / "ready"
    save_scripted_model(versions / "1", "v1")
    for number in ("2", "3"):
        save_scripted_model(ready / number, f"v{number}")
    model = ServedModel("en-de", versions)
    first = weakref.ref(model.newest)
    served = []

    async def scenario():
        async with client_of(application(ServedModels([model]))) as client:

            async def ask_one():
                body = deepl(f"Sentence {len(served)}.")
                async with client.post("/v2/translate", json=body) as answer:
                    served.append((answer.status, (await answer.json())["translations"][0]["text"]))

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
    assert {status for status, _ in served} == {200}
    assert [text.partition(":")[0] for _, text in served][-1] == "v3"
    assert model.versions.keys() == {2, 3}
    assert "manifest.json" in capsys.readouterr().err
    gc.collect()
    assert first() is None


def deepl(text: str) -> dict:
    return {"text": [text], "target_lang": "DE", "model_type": "latency_optimized"}
