"""Compare the server with the translator and scripted models.

The tests cover REST, hostile requests, the command and the page.
"""

import asyncio
import itertools
import json
import math
import signal
import socket
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf
import uvicorn
from support.served_texts import Scripted, backwards, client_of, in_thread, scripted
from support.servers import answer_to, ask

from tfformer.cli.main import main
from tfformer.data.sources import read_pairs
from tfformer.engines import Signature, TensorSpec
from tfformer.serving import request_queue as batching
from tfformer.serving import server as serving
from tfformer.serving.apis import fields, tf_serving
from tfformer.serving.application import application
from tfformer.serving.errors import RequestError
from tfformer.serving.served_models import ServedModel, ServedModels

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:valid"), 37)]
SENTENCES += ["", "The Ж 😀 dog.", "The dog."]
JSON = {"Content-Type": "application/json"}


def predictions(server, sentences: list[str], with_beam: bool) -> list[tuple[str, float]]:
    """Return the best translation of each sentence and its score, by TensorFlow Serving's API."""
    rows = []
    for start in range(0, len(sentences), 7):
        body = {"instances": sentences[start : start + 7]}
        if with_beam:
            body["signature_name"] = "translate_beam"
        status, answer = ask(server, "echo:predict", body)
        assert status == 200, answer
        rows += answer["predictions"]
    if with_beam:
        return [(row["translations"][0], row["scores"][0]) for row in rows]
    return [(row["translation"], row["score"]) for row in rows]


@pytest.fixture
def served_by_the_verb(tiny_run, verbs_share_models, monkeypatch) -> ServedModel:
    """The model that `tfformer serve` has loaded when its server would begin to answer."""
    applications = []
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(
        uvicorn.Server, "run", lambda server, _: applications.append(server.config.app)
    )
    assert main(["serve", f"echo={tiny_run}", "--port", "0"]) == 0
    return applications[0].state.serving.models.model("echo")


@pytest.mark.slow
def test_a_served_run_gives_the_translators_own(served_by_the_verb, translator):
    with in_thread(served_by_the_verb) as server:
        for beam in (1, translator.decoding.beam_size):
            expected = [best for best, *_ in translator.n_best(SENTENCES, beam)]
            rows = predictions(server, SENTENCES, with_beam=beam > 1)
            assert [text for text, _ in rows] == [best.text for best in expected]
            scores = [score for _, score in rows]
            assert scores == pytest.approx([best.score for best in expected], abs=1e-3)
        pair = {"q": SENTENCES[0], "translation": expected[0].text, "model": "echo"}
        [aligned] = translator.aligned([pair["q"]], [pair["translation"]])
        answer = answer_to(server, "POST", "/align", json.dumps(pair), JSON)
        assert json.loads(answer.text) == {
            "links": [list(link) for link in aligned.nearest_targets()],
            "confidence": pytest.approx(aligned.confidence, rel=1e-3),
            "word_confidences": pytest.approx(aligned.word_confidences(), rel=1e-3),
        }
        begun = {"q": SENTENCES[0], "prefix": "Die", "count": 3, "model": "echo"}
        answer = answer_to(server, "POST", "/continue", json.dumps(begun), JSON)
        [row] = translator.continuations([SENTENCES[0]], ["Die"], count=3)
        assert json.loads(answer.text) == [
            {"translation": text, "probability": pytest.approx(math.exp(score), abs=1e-4)}
            for text, score in row
        ]
        for wrong, reason in (
            ({"prefix": "Die Ж"}, "the vocabulary lacks a character of the prefix 'Die Ж'; use"),
            ({"prefix": "Hund" * 60}, "tokens, and a translation has at most 39; shorten it"),
            ({"q": "The dog " * 60}, "tokens, and the model reads at most 39; send a shorter sen"),
            ({"count": 6}, "count"),
        ):
            answer = answer_to(server, "POST", "/continue", json.dumps(begun | wrong), JSON)
            assert answer.status == 400
            assert reason in json.loads(answer.text)["error"]
        hostile = [{"b64": "VGhlIP8gZG9nIMM="}, "The \x00 dog.", "x" * 1_000_000, "漢" * 200_000]
        for sentence in hostile:
            status, answer = ask(server, "echo:predict", {"instances": [sentence]})
            assert status == 200
            assert isinstance(answer["predictions"][0]["translation"], str)
        assert ask(server, "echo:predict", {"instances": [SENTENCES[0]]})[0] == 200


def test_rows_and_columns_are_answered_in_kind(server):
    rows = [{"translation": "v10: a", "score": -0.33333334}, {"translation": "v10: ", "score": 0.0}]
    columns = {"translation": ["v10: a", "v10: "], "score": [-0.33333334, 0.0]}
    named = [{"text": "a"}, {"text": ""}]
    for instances in (
        ["a", ""],
        named,
        [{"b64": "YQ=="}, ""],
        [{"text": {"b64": "YQ=="}}, {"text": ""}],
    ):
        assert ask(server, "echo:predict", {"instances": instances}) == (200, {"predictions": rows})
    for inputs in ({"text": ["a", ""]}, ["a", ""], [{"b64": "YQ=="}, ""]):
        assert ask(server, "echo:predict", {"inputs": inputs}) == (200, {"outputs": columns})


def test_every_signature_is_answered(server):
    beam = {"translations": ["DER HUND", "so der hund"], "scores": [-1.5, -2.5]}
    request = {"signature_name": "translate_beam", "instances": ["Der Hund"]}
    assert ask(server, "echo:predict", request) == (200, {"predictions": [beam]})
    instances = [{"ids": [1, 2], "lengths": 2}, {"ids": [3, 4], "lengths": 1}]
    request = {"signature_name": "translate_ids", "instances": instances}
    ids = [{"ids": [2, 1], "lengths": 2, "score": 3.0}, {"ids": [4, 3], "lengths": 1, "score": 7.0}]
    assert ask(server, "echo:predict", request) == (200, {"predictions": ids})
    request = {"signature_name": "score", "inputs": {"source": ["abc", ""], "target": ["ab", "a"]}}
    outputs = {"log_prob": [-2.0, -1.0], "num_tokens": [3, 0]}
    assert ask(server, "echo:predict", request) == (200, {"outputs": outputs})


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("", "v10"),
        ("/versions/9", "v9"),
        ("/versions/10", "v10"),
        ("/labels/stable", "v9"),
        ("/labels/canary", "v10"),
    ],
)
def test_versions_and_labels_choose_who_answers(server, path, name):
    answer = ask(server, f"echo{path}:predict", {"instances": ["a"]})[1]
    assert answer["predictions"][0]["translation"] == f"{name}: a"
    assert ask(server, f"echo{path}/metadata")[1]["model_spec"]["version"] == name.removeprefix("v")


def test_a_version_answers_although_it_is_replaced_meanwhile():
    """The version that a request asks for is looked up once."""

    class Replaced(ServedModel):
        """A model whose newest version is another one each time."""

        def __init__(self):
            self.name = "echo"
            self._numbers = itertools.count(1)

        @property
        def versions(self):
            number = next(self._numbers)
            return {number: backwards(f"v{number}", []).newest}

    path = "/v1/models/echo"
    body = {"signature_name": "translate_beam", "instances": ["ab"]}

    async def scenario():
        async with client_of(application(ServedModels([Replaced()]))) as client:
            metadata = await (await client.get(f"{path}/metadata")).json()
            predicted = await (await client.post(f"{path}:predict", json=body)).json()
            return metadata["model_spec"]["version"], predicted["predictions"][0]["translations"]

    assert asyncio.run(scenario()) == ("1", ["ba", "ab", ""])


def test_status_and_metadata_have_tensorflow_servings_form(server):
    well = {"error_code": "OK", "error_message": ""}
    states = [{"version": number, "state": "AVAILABLE", "status": well} for number in ("10", "9")]
    assert ask(server, "echo") == (200, {"model_version_status": states})
    assert ask(server, "echo/versions/9") == (200, {"model_version_status": states[1:]})
    status, answer = ask(server, "echo/metadata")
    assert status == 200
    assert answer["model_spec"] == {"name": "echo", "signature_name": "", "version": "10"}
    signature = answer["metadata"]["signature_def"]["signature_def"]["translate_ids"]
    ids = signature["inputs"]["ids"]
    assert ids["dtype"] == "DT_INT32"
    assert [dim["size"] for dim in ids["tensor_shape"]["dim"]] == ["-1", "-1"]
    assert signature["method_name"] == "tensorflow/serving/predict"
    assert "score" in signature["outputs"]


# What nobody should send

IDS = {"signature_name": "translate_ids"}
BAD = {
    "no JSON": (b"text", "not JSON"),
    "nothing": (b"", "not JSON"),
    "half": (b'{"instances": ["a"', "not JSON"),
    "no UTF-8": (b'{"instances": ["\xff"]}', "UTF-8"),
    "a raw NUL": (b'{"instances": ["a\x00"]}', "control character"),
    "half a surrogate": (b'{"instances": ["\\ud800"]}', "hex escape"),
    "a list": (b"[1]", "must be a JSON object; it is a list"),
    "nested": (b'{"instances": ' + b"[" * 50_000 + b"]" * 50_000 + b"}", "recursion limit"),
    "a long number": (b'{"instances": [' + b"9" * 9_999 + b"]}", "out of range"),
    "an empty object": ({}, "either instances or inputs"),
    "both": ({"instances": ["a"], "inputs": ["a"]}, "either instances or inputs"),
    "no rows": ({"instances": []}, "a non-empty list"),
    "no list": ({"instances": "a"}, "a non-empty list"),
    "an empty column": ({"inputs": {"text": []}}, "1 to 64 rows; this one has 0"),
    "10,000 sentences": ({"instances": ["a"] * 10_000}, "1 to 64 rows; this one has 10000"),
    "a number": ({"instances": [7]}, "input text: 7 must be a string"),
    "null": ({"instances": [None]}, "None must be a string"),
    "a list for a string": ({"instances": [["a"]]}, "['a'] must be a string"),
    "a string for a list": ({"inputs": {"text": "a"}}, "'a' must be a list"),
    "no base64": ({"instances": [{"text": {"b64": "%"}}]}, "input text: "),
    "a missing input": ({"inputs": {}}, "input text is missing"),
    "a missing input in a row": (
        {"instances": [{"text": "a"}, {}]},
        "instance 1: input text is missing",
    ),
    "an unknown input": (
        {"inputs": {"text": ["a"], "txt": ["a"]}},
        "no input txt; the inputs are text",
    ),
    "mixed rows": ({"instances": [{"text": "a"}, "a"]}, "instance 1 must be an object"),
    "an unknown signature": (
        {"signature_name": "none", "instances": ["a"]},
        "no signature 'none'; choose one of",
    ),
    "a number for a signature": (
        {"signature_name": 7, "instances": ["a"]},
        "signature_name must be a string",
    ),
    "unnamed inputs": (IDS | {"instances": [[1]]}, "several inputs: ids, lengths"),
    "ragged ids": (IDS | {"inputs": {"ids": [[1], [1, 2]], "lengths": [1, 2]}}, "the same length"),
    "flat ids": (IDS | {"inputs": {"ids": [1], "lengths": [1]}}, "1 must be a list"),
    "rows that do not match": (
        IDS | {"inputs": {"ids": [[1]], "lengths": [1, 1]}},
        "same number of rows",
    ),
    "strings for ids": (IDS | {"inputs": {"ids": [["1"]], "lengths": [1]}}, "'1' must be an int32"),
    "fractions for ids": (
        IDS | {"inputs": {"ids": [[1.0]], "lengths": [1]}},
        "1.0 must be an int32",
    ),
    "truth for ids": (IDS | {"inputs": {"ids": [[True]], "lengths": [1]}}, "True must be an int32"),
    "large ids": (
        IDS | {"inputs": {"ids": [[2**31]], "lengths": [1]}},
        "2147483648 must be an int32",
    ),
    "unknown ids": (IDS | {"inputs": {"ids": [[500]], "lengths": [1]}}, "500 is not in [0, 500)"),
    "too much": (b" " * (fields.MAX_BYTES + 1), "more than 2097152 bytes"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_request_is_answered_with_its_reason(server, name):
    body, message = BAD[name]
    status, answer = ask(server, "echo:predict", body)
    assert status == (413 if name == "too much" else 400), answer
    assert set(answer) == {"error"}
    assert message in answer["error"]
    assert ask(server, "echo:predict", {"instances": ["a"]})[0] == 200


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
    answered_status, answer = ask(server, path, {"instances": ["a"]})
    assert answered_status == status
    assert message in answer["error"]


def float_signature(*names: str) -> Signature:
    return Signature(dict.fromkeys(names, TensorSpec("float32", (None,))), {})


def test_an_input_of_numbers_with_a_point_is_refused():
    with pytest.raises(RequestError, match="input x has the type float32; this server accepts"):
        tf_serving.read_inputs({"inputs": {"x": [1.0]}}, float_signature("x"))


def test_a_number_that_is_not_finite_is_tensorflow_servings():
    outputs = {"score": np.array([np.nan, np.inf, 0.1], np.float32)}
    body = json.dumps(tf_serving.answer({"inputs": []}, outputs))
    assert body == '{"outputs": [NaN, Infinity, 0.1]}'


def test_an_answer_does_not_wait_for_the_acknowledgement_of_its_headers():
    """Nagle's algorithm would delay the body by the 40 ms of a delayed acknowledgement."""

    async def scenario():
        no_delay = asyncio.get_running_loop().create_future()

        def accept(_, writer):
            accepted = writer.get_extra_info("socket")
            no_delay.set_result(accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        listener = serving._bound("127.0.0.1", 0)
        async with await asyncio.start_server(accept, sock=listener), asyncio.timeout(30):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await no_delay
            writer.close()

    asyncio.run(scenario())


def test_nobody_can_connect_before_the_models_are_there():
    with serving._bound("127.0.0.1", 0) as listener:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(listener.getsockname(), timeout=5)
        listener.listen()
        socket.create_connection(listener.getsockname(), timeout=5).close()


def test_a_full_queue_refuses_and_recovers(monkeypatch):
    monkeypatch.setattr(batching, "MAX_WAITING", 2)
    started, go_on = threading.Event(), threading.Event()

    def run(signature, inputs):
        started.set()
        assert go_on.wait(30)
        return {"translation": inputs["text"]}

    model = scripted("slow", Scripted(run=run))

    async def scenario():
        app = application(ServedModels([model]))
        async with client_of(app) as client, asyncio.timeout(30):

            async def predict(*sentences):
                async with client.post(
                    "/v1/models/slow:predict", json={"instances": sentences}
                ) as response:
                    return response.status, await response.json()

            running = asyncio.create_task(predict("a"))
            await asyncio.to_thread(started.wait, 30)
            waiting = [asyncio.create_task(predict(text)) for text in ("b", "c")]
            while app.state.serving.queue.sentences < 2:
                await asyncio.sleep(0.01)
            status, answer = await predict("d")
            assert status == 503
            assert "2 sentences are waiting; try again later" in answer["error"]
            go_on.set()
            answers = await asyncio.gather(running, *waiting)
            assert answers == [(200, {"predictions": [text]}) for text in "abc"]
            assert (await predict("d"))[0] == 200

    asyncio.run(scenario())


def test_a_client_that_leaves_within_its_request_is_no_error(caplog):
    begin = {"type": "http.request", "body": b'{"inp', "more_body": True}
    messages = itertools.chain([begin], itertools.repeat({"type": "http.disconnect"}))
    answers = []

    async def receive():
        return next(messages)

    async def send(message):
        answers.append(message)

    request = {"type": "http", "method": "POST", "path": "/v1/models/a:predict"}
    head = {"query_string": b"", "headers": [(b"host", b"localhost")]}
    app = application(ServedModels([scripted("a", Scripted())]))
    asyncio.run(app(request | head, receive, send))
    assert (answers, caplog.text) == ([], "")


def test_a_mistake_of_the_server_is_answered_with_500_and_not_its_end(caplog):
    def fail(*_):
        raise KeyError("a mistake")

    model = scripted("broken", Scripted())
    model.version = fail

    async def scenario():
        async with client_of(application(ServedModels([model]))) as client:
            for _ in range(2):
                async with client.get("/v1/models/broken") as response:
                    assert response.status == 500
                    assert "internal error" in (await response.json())["error"]

    asyncio.run(scenario())
    assert "a mistake" in caplog.text


# The verb


def refused(capsys, *arguments) -> str:
    assert main(["serve", *map(str, arguments)]) == 2
    return capsys.readouterr().err


def test_serve_refuses_what_it_cannot_serve(tmp_path, capsys, monkeypatch):
    assert "neither a run directory nor an export" in refused(capsys, tmp_path, "--port", 0)
    assert "must have 1 to 255 characters, without slashes" in refused(capsys, f"a:b={tmp_path}")
    same = [f"same={tmp_path}"] * 2
    assert "two models have the name 'same'; rename one of them" in refused(capsys, *same)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        message = f"--port {port} on 127.0.0.1: Address already in use; choose another"
        assert message in refused(capsys, tmp_path, "--port", port)
    for host in ("192.0.2.1", "no.invalid"):  # reserved (RFC 5737, RFC 6761)
        line = refused(capsys, tmp_path, "--port", 0, "--host", host)
        assert line.startswith(f"tfformer: --port 0 on {host}: ")
        assert line.endswith("; choose another host\n")
    with pytest.raises(OSError, match=r"--port 70000 on ::1: .*0-65535"):
        serving.serve([tmp_path], host="::1", port=70_000)
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"\xff")
    assert "saved_model.pb is not a SavedModel; export the run again" in refused(
        capsys, tmp_path, "--port", 0
    )
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    monkeypatch.delitem(sys.modules, "tfformer.serving.server")
    assert "this needs uvicorn, which is not installed: pip install -e '.[serve]'" in refused(
        capsys, tmp_path
    )


# The page


@pytest.mark.slow
def test_the_page_says_that_a_model_without_beam_search_is_not_for_it(tmp_path):
    module = tf.Module()
    double = tf.function(
        lambda text: {"twice": text + text},
        input_signature=[tf.TensorSpec((None,), tf.string, "text")],
    )
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"serving_default": double})
    models = ServedModels([ServedModel("double", tmp_path)])

    async def scenario():
        async with client_of(application(models)) as client:
            page = await client.get("/")
            assert page.status == 404
            error = (await page.json())["error"]
            assert error.startswith("double has no signature translate_beam, which the page needs")
            body = {"instances": ["a"]}
            answer = await client.post("/v1/models/double:predict", json=body)
            assert await answer.json() == {"predictions": ["aa"]}

    asyncio.run(scenario())


TRANSLATED = "[...document.querySelectorAll('#translation .sentence')]"
TRANSLATION = f"{TRANSLATED}.map(one => one.textContent).join('|')"
CHOSEN = "[...document.querySelectorAll('.chosen')].map(one => one.textContent).join('|')"
STATE = "document.querySelector('#state').textContent"
WHOLE = "document.querySelector('#translation').textContent"


def test_the_page_translates_what_is_typed(server, browser):
    browser.open(server.rest + "/")
    browser.until("document.readyState + document.activeElement.id", "completesource")
    assert browser.evaluate("document.querySelector('#model').textContent") == "echo"
    assert browser.evaluate("document.title") == "English → German · echo"
    assert browser.evaluate("document.querySelector('h1').textContent") == "English → German"
    browser.click("#examples button:nth-child(2)")
    browser.until(TRANSLATION, "THE <b>CAT</b>.")  # a tag in a text is a word that stays
    browser.evaluate("document.querySelector('#source').select()")
    browser.type("Good <b>morning</b>.  Yes.\n\n\tThe dog.\n")
    browser.until(WHOLE, "GOOD <b>MORNING</b>.  YES.\n\n\tTHE DOG.\n")
    browser.until(STATE, "3 sentences.")

    browser.hover("#translation [data-number='2']")
    browser.until(CHOSEN, "Yes.|YES.")
    browser.hover("#mirror [data-number='0']")  # behind the text area, where its text is
    browser.until(CHOSEN, "Good <b>morning</b>.|GOOD <b>MORNING</b>.")
    browser.click("#translation [data-number='2']")
    browser.until("document.querySelector('#wordings').textContent", "so yes.")
    browser.click("#wordings button")
    browser.until(TRANSLATION, "GOOD <b>MORNING</b>.|so yes.|THE DOG.")

    browser.evaluate("document.querySelector('#source').select()")
    browser.type("Again.")
    browser.press("Enter", 13, modifiers=2)
    browser.until(TRANSLATION, "AGAIN.")
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.tagName") == "BUTTON"

    background = "getComputedStyle(document.body).backgroundColor"
    for scheme, colour in (("light", "rgb(244, 246, 248)"), ("dark", "rgb(20, 24, 29)")):
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        browser.call("Emulation.setEmulatedMedia", features=features)
        browser.until(background, colour)
    phone = {"width": 360, "height": 640, "deviceScaleFactor": 2, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **phone)
    browser.until("document.documentElement.scrollWidth", 360)
    assert browser.evaluate("document.querySelector('button').getBoundingClientRect().height") >= 44


def test_the_page_runs_no_markup_of_a_text(server, browser):
    """In a source or a translation; the policy would also block the script."""
    browser.open(server.rest + "/?")
    browser.until("document.readyState + document.activeElement.id", "completesource")
    tag = "<img src=x onerror='document.title=1'>"
    browser.type(f"{tag}<script>document.title=2</script> One.")
    browser.until(WHOLE, f"{tag}<script>DOCUMENT.TITLE=2</script> ONE.")
    assert browser.evaluate("document.querySelectorAll('main img, main script').length") == 0
    assert browser.evaluate("document.title") == "English → German · echo"


def test_the_description_of_the_api_is_a_page_too(server, browser):
    browser.open(server.rest + "/docs")
    browser.until("document.querySelectorAll('section').length", 5)
    example = "document.querySelector('details pre').textContent"
    assert browser.evaluate(example).startswith(f"curl {server.rest}/translate ")


def test_the_description_of_the_api_fits_a_narrow_window(server, browser):
    """No field is wider than the window, and no field name is broken within a word."""
    window = {"width": 390, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.call("Emulation.setDeviceMetricsOverride", **window)
    browser.open(server.rest + "/docs?")
    browser.until("document.querySelectorAll('section').length", 5)
    browser.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth")
    rows = "[...document.querySelectorAll('td code')].map((one) => one.getClientRects().length)"
    assert set(browser.evaluate(rows)) == {1}
