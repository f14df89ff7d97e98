"""The files of export/serving against a server.

They are the clients, the smoke test and the configuration of TensorFlow Serving.
"""

import ast
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import numpy as np
import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format
from support.servers import (
    CLIENTS,
    SERVING,
    run_client,
    save_scripted_model,
    scripted_server,
    start_server,
)
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tensorflow_serving.config import model_server_config_pb2

GOOD = (
    0,
    200,
    {
        "predictions": [
            {"translation": "eins", "score": -1.0},
            {"translation": "zwei", "score": -2.0},
        ]
    },
)


def test_the_client_tries_again_where_it_may():
    with scripted_server((0, 503, {"error": "full"}), (0, 429, {}), GOOD) as (address, requests):
        done = run_client("rest", address)
    assert done.returncode == 0, done.stderr
    assert done.stdout == b"eins\nzwei\n"
    assert (
        requests
        == [{"signature_name": "serving_default", "instances": [{"text": "one"}, {"text": "two"}]}]
        * 3
    )


def test_the_client_keeps_the_paragraphs_of_a_text():
    with scripted_server(GOOD) as (address, requests):
        command = [sys.executable, str(CLIENTS["rest"]), address, "echo", "--format", "text"]
        done = subprocess.run(command, input=b"\tOne.\r\n\n Mr. B is two.", capture_output=True)
    assert done.stdout == b"\teins\r\n\n zwei"
    sentences = [instance["text"] for instance in requests[0]["instances"]]
    assert sentences == ["One.", "Mr. B is two."]


def test_the_client_keeps_the_words_of_a_file(server, tmp_path):
    """The model of the server gives a sentence in capitals, which placeholders survive."""
    (tmp_path / "keep").write_text("Foo Inc\n\nBar\n", encoding="utf-8")
    arguments = ("--format", "text", "--keep", str(tmp_path / "keep"), "--beam")
    text = "See Foo Inc.\n\n\tBarter is no Bar!  "
    done = run_client("rest", server.rest, *arguments, text=text)
    assert done.stdout.decode() == "SEE Foo Inc.\n\n\tBARTER IS NO Bar!  ", done.stderr


def test_the_client_keeps_addresses_and_the_like(server):
    text = "See https://a.de/x?b=1 (5 kg {n}).\n- 12.50 €\n"
    done = run_client("rest", server.rest, "--format", "text", "--beam", text=text)
    assert done.stdout.decode() == "SEE https://a.de/x?b=1 (5 kg {n}).\n- 12.50 €\n", done.stderr


@pytest.mark.parametrize("form", ["lines", "text"])
def test_the_client_gives_no_placeholder_that_the_source_has_not(form):
    rows = [{"translation": "⟦2⟧", "score": -1.0}, {"translation": "⟦1⟧ b ⟦3⟧", "score": -1.0}]
    with scripted_server((0, 200, {"predictions": rows})) as (address, requests):
        done = run_client("rest", address, "--format", form, text="x\n⟦1⟧ a b\n")
    assert done.stdout.decode() == "x\n⟦1⟧ b\n"
    assert requests[0]["instances"][1] == {"text": "⟦1⟧ a b" if form == "lines" else "⟦2⟧ a b"}


@pytest.mark.parametrize("name", CLIENTS)
def test_a_wrong_argument_is_one_line(name):
    refused = run_client(name, "127.0.0.1:1", "--format", "zz")
    (line,) = [one for one in refused.stderr.decode().splitlines() if one.startswith("client_")]
    assert line.startswith(f"client_{name}.py: argument --format: invalid choice: 'zz'")
    assert line.endswith(f"; see client_{name}.py --help")
    assert (refused.returncode, refused.stdout, b"usage" in refused.stderr) == (2, b"", False)


def test_the_client_refuses_what_a_text_cannot_have():
    refused = run_client("rest", "http://127.0.0.1:1", "--format", "text", "--scores")
    assert refused.returncode == 1
    assert b"--scores are of sentences" in refused.stderr
    command = [sys.executable, str(CLIENTS["rest"]), "http://127.0.0.1:1", "echo"]
    done = subprocess.run([*command, "--format=text"], input=b"a\xff", capture_output=True)
    assert b"the text is not UTF-8 at byte 2" in done.stderr


@pytest.mark.parametrize("name", ["sentences.py", "copies.py"])
def test_both_folders_have_the_same_file(name):
    """Each of the two folders is copied without the other, so each has the file."""
    folders = (SERVING, SERVING.parent / "on_device")
    assert len({(folder / name).read_bytes() for folder in folders}) == 1


@pytest.mark.parametrize("status", [400, 404, 413, 500, 504])
def test_the_client_does_not_try_again_where_it_may_not(status):
    with scripted_server((0, status, {"error": "the reason"})) as (address, requests):
        done = run_client("rest", address)
    assert done.returncode == 1
    assert done.stdout == b""
    assert len(requests) == 1
    assert f"answered {status}: the reason".encode() in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "tries"), [((20, 200, {}), 1), ((0, 503, {"error": "full"}), 2)]
)
def test_the_client_keeps_its_deadline(answer, tries):
    with scripted_server(answer) as (address, requests):
        start = time.monotonic()
        done = run_client("rest", address, "--deadline", "1")
        assert time.monotonic() - start < 10
    assert done.returncode == 1
    assert b"no answer within 1 seconds" in done.stderr
    assert len(requests) >= tries


def test_the_client_names_what_it_cannot_send_or_reach():
    with scripted_server((0, 200, {"nothing": 1})) as (address, _):
        assert b"something else than translations" in run_client("rest", address).stderr
        command = [sys.executable, str(CLIENTS["rest"]), address, "echo"]
        done = subprocess.run(command, input=b"one\n\xff\n", capture_output=True)
        assert done.returncode == 1
        assert b"line 2 is not UTF-8" in done.stderr
        assert (
            b"--batch-size 0 must be at least 1"
            in run_client("rest", address, "--batch-size", "0").stderr
        )
        refused = run_client("rest", address, "--batch-size", "-1", "--format", "text")
        assert b"--batch-size -1 must be at least 1" in refused.stderr
    assert b"cannot be reached" in run_client("rest", address, "--deadline", "0.5").stderr
    assert b"give http://HOST:PORT" in run_client("rest", "127.0.0.1:1").stderr


def test_clients_choose_versions_and_labels(server):
    assert run_client("rest", server.rest, "--label", "stable").stdout == b"v9: one\nv9: two\n"
    assert (
        run_client("rest", server.rest, "--version", "10", "--batch-size", "1").stdout
        == b"v10: one\nv10: two\n"
    )
    assert (
        run_client("rest", server.rest, "--beam", "--scores").stdout
        == b"-1.5000\tONE\n-1.5000\tTWO\n"
    )
    refused = run_client("rest", server.rest, "--version", "8")
    assert refused.returncode == 1
    assert b"answered 404: model 'echo' has no version 8" in refused.stderr


def test_the_clients_say_in_one_line_what_cannot_be_sent(server):
    text = "one\n" + "x" * 3_000_000
    refused = run_client("rest", server.rest, "--batch-size", "1", text=text)
    assert refused.returncode == 1
    assert refused.stdout == b"v10: one\n"
    (line,) = refused.stderr.splitlines()
    assert b"after 1 lines: " in line


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
        assert run_client("grpc", address).stdout == b"eins\nzwei\n"
        assert calls == [[b"one", b"two"]] * 3
        done = run_client("grpc", address, "--deadline", "1")
    finally:
        server.stop(0)
    assert done.returncode == 1
    assert b"no answer within 1 seconds" in done.stderr
    assert b"not yet" in done.stderr


@pytest.mark.slow
def test_the_client_outlives_a_server_that_is_killed_and_started_again(tmp_path):
    save_scripted_model(tmp_path / "echo" / "1", "v1")
    server = start_server(tmp_path / "echo")
    command = [sys.executable, str(CLIENTS["rest"]), server.rest, "echo", "--batch-size", "1"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as client:

        def translated(line: bytes) -> bytes:
            client.stdin.write(line)
            client.stdin.flush()
            return client.stdout.readline()

        assert translated(b"one\n") == b"v1: one\n"
        server.process.kill()
        server.process.wait()
        server = start_server(tmp_path / "echo", port=urlsplit(server.rest).port)
        assert translated(b"two\n") == b"v1: two\n"
        client.stdin.close()
        assert client.wait(60) == 0
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
    assert imported(CLIENTS["rest"]) - sys.stdlib_module_names == {"copies", "sentences"}
    for beside in ("copies.py", "sentences.py"):
        assert imported(SERVING / beside) <= sys.stdlib_module_names
    needed = imported(CLIENTS["grpc"]) - sys.stdlib_module_names
    assert needed == {"grpc", "client_rest", "messages"}
    assert imported(SERVING / "messages.py") - sys.stdlib_module_names == {"google"}


@pytest.fixture(scope="module")
def messages():
    """The client's own messages."""
    spec = importlib.util.spec_from_file_location("messages", SERVING / "messages.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("version", "label"), [(None, None), (7, None), (None, "stable")])
def test_the_clients_request_is_tensorflow_servings(messages, version, label):
    """Read by the messages of TensorFlow Serving's own package."""
    ours = messages.text_request("mine", "serving_default", ["a", "Ж", ""], version, label)
    expected = predict_pb2.PredictRequest(
        model_spec={"name": "mine", "signature_name": "serving_default", "version_label": label}
    )
    if version is not None:
        expected.model_spec.version.value = version
    expected.inputs["text"].CopyFrom(tf.make_tensor_proto(["a", "Ж", ""]))
    assert predict_pb2.PredictRequest.FromString(ours.SerializeToString()) == expected


@pytest.mark.parametrize("as_content", [False, True])
@pytest.mark.parametrize("width", [None, 1, 3])
def test_the_client_reads_tensorflow_servings_response(messages, width, as_content):
    """Of (B,) all, of (B, N) the first column.

    Servers may send numbers as a list or as bytes.
    """
    shape = (2,) if width is None else (2, width)
    scores = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) / 3
    texts = scores.astype(str).astype(object)
    response = predict_pb2.PredictResponse(model_spec={"name": "mine"})
    response.outputs["texts"].CopyFrom(tf.make_tensor_proto(texts, tf.string))
    sent = response.outputs["scores"]
    sent.CopyFrom(tf.make_tensor_proto(scores))  # NumPy's float32 go as bytes
    if not as_content:
        sent.tensor_content = b""
        sent.float_val.extend(scores.reshape(-1).tolist())
    found = messages.PredictResponse.FromString(response.SerializeToString())
    first = (slice(None),) if width is None else (slice(None), 0)
    assert messages.first_column(found, "scores") == scores[first].tolist()
    assert messages.first_column(found, "texts") == [text.encode() for text in texts[first]]


def test_the_client_refuses_a_response_of_another_form(messages):
    response = messages.PredictResponse()
    with pytest.raises(KeyError, match="score"):
        messages.first_column(response, "score")
    tensor = response.outputs.add(key="score").value
    tensor.dtype = 3
    with pytest.raises(ValueError, match="dtype 3 is neither string nor float32"):
        messages.first_column(response, "score")
    tensor.dtype = messages.DT_FLOAT
    tensor.tensor_shape.dim.add(size=2)
    tensor.float_val.append(1.0)
    with pytest.raises(ValueError, match=r"output score has 1 values for the shape \[2\]"):
        messages.first_column(response, "score")


# The files for TensorFlow Serving


def test_the_smoke_test_passes_here_and_fails_elsewhere(server):
    command = ["sh", str(SERVING / "smoke_test.sh"), server.rest]
    done = subprocess.run([*command, "echo"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("all is well\n")
    failed = subprocess.run([*command, "none"], capture_output=True, text=True, timeout=120)
    assert failed.returncode == 1
    assert "FAILED: none gave 404" in failed.stderr


def test_compose_and_run_server_start_the_same():
    """One version is enough, and the model's name is a variable."""
    compose = yaml.safe_load((SERVING / "compose.yaml").read_text(encoding="utf-8"))
    labelled = yaml.safe_load((SERVING / "compose.labels.yaml").read_text(encoding="utf-8"))
    service = compose["services"]["serving"]
    script = (SERVING / "run_server.sh").read_text(encoding="utf-8").replace("$model", "${MODEL}")
    arguments = [*service["command"], *labelled["services"]["serving"]["command"]]
    for argument in [*arguments, service["image"], *service["ports"]]:
        assert argument.replace("=/models/${MODEL}/models.config", '="/models/${MODEL}') in script
    assert labelled["services"]["serving"]["command"][3:] == service["command"]
    assert service["environment"]["MODEL_NAME"].startswith("${MODEL:?")
    assert service["volumes"][0].endswith(":/models/${MODEL}:ro")
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    kserve = yaml.safe_load((SERVING / "inference_service.yaml").read_text(encoding="utf-8"))
    assert kserve["kind"] == "InferenceService"
    version = kserve["spec"]["predictor"]["model"]["runtimeVersion"]
    assert service["image"] == f"tensorflow/serving:{version}"


@pytest.mark.parametrize(("model", "code"), [("echo", 0), ("none", 1)])
def test_the_healthcheck_asks_for_the_models_state(server, model, code):
    compose = yaml.safe_load((SERVING / "compose.yaml").read_text(encoding="utf-8"))
    kind, *command = compose["services"]["serving"]["healthcheck"]["test"]
    assert kind == "CMD"
    port = str(urlsplit(server.rest).port)
    command[-1] = command[-1].replace("8501", port).replace("$$", "$")
    done = subprocess.run(command, env={"MODEL_NAME": model, "PATH": "/usr/bin:/bin"}, timeout=60)
    assert done.returncode == code


@pytest.fixture
def export(tmp_path):
    """An export with three versions."""
    for number in (1, 2, 3):
        (tmp_path / "mine" / str(number)).mkdir(parents=True)
        (tmp_path / "mine" / str(number) / "saved_model.pb").touch()
    return tmp_path / "mine"


def run_server(tmp_path, *arguments) -> subprocess.CompletedProcess:
    """`run_server.sh` with a docker that prints its arguments."""
    docker = tmp_path / "docker"
    docker.write_text('#!/bin/sh\nfor argument; do echo "$argument"; done\n')
    docker.chmod(0o755)
    command = ["sh", SERVING / "run_server.sh", *arguments]
    path = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    return subprocess.run(command, env=path, capture_output=True, text=True)


def test_run_server_serves_the_newest_version_or_the_labelled_ones(export, tmp_path):
    plain = run_server(tmp_path, export).stdout.splitlines()
    assert f"{export}:/models/mine:ro" in plain
    assert "MODEL_NAME=mine" in plain
    assert not any("model_config_file" in argument for argument in plain)
    assert set_labels(export, "stable=1").returncode == 0
    labelled = run_server(tmp_path, export, "other").stdout.splitlines()
    assert f"{export}:/models/other:ro" in labelled
    assert "--model_config_file=/models/other/models.config" in labelled


def test_run_server_wants_a_version(tmp_path):
    done = run_server(tmp_path, tmp_path)
    assert done.returncode == 2
    assert "a folder that holds versions 1, 2, ..." in done.stderr


# A rollout


def set_labels(export: Path, *arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(SERVING / "set_labels.py"), str(export), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


class LabelRule:
    """TensorFlow Serving's rule of labels and versions.

    It is that of `ServerCore::ReloadConfig`. It updates the labels first, and only then loads and
    unloads versions. A label must point to a version that is loaded by then; with
    --allow_version_labels_for_unavailable_models a label that is new, or stays at its version, need
    not. What is refused leaves everything as it was.
    """

    def __init__(self):
        self.loaded, self.labels = set(), {}

    def reload(self, text: str) -> bool:
        """Read a file; whether it was accepted."""
        read = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
        (model,) = read.model_config_list.config
        assert (model.name, model.base_path) == ("mine", "/models/mine")
        for label, version in model.version_labels.items():
            moves = self.labels.get(label, version) != version
            if moves and version not in self.loaded:
                return False
        self.labels = dict(model.version_labels)
        self.loaded = set(model.model_version_policy.specific.versions)
        return True


def steps_of_the_readme() -> list[list[str]]:
    """The arguments of `set_labels.py` in the README's rollout, in order."""
    text = (SERVING / "README.md").read_text(encoding="utf-8")
    return [line.split() for line in re.findall(r"set_labels\.py models/phrasebook (.*)", text)]


def test_every_step_of_the_readmes_rollout_is_accepted(export):
    server, states = LabelRule(), []
    for arguments in steps_of_the_readme():
        assert set_labels(export, *arguments).returncode == 0
        assert server.reload((export / "models.config").read_text())
        assert set(server.labels.values()) <= server.loaded  # no label without its version
        states.append((server.labels, sorted(server.loaded)))
    assert states == [
        ({"stable": 1, "canary": 2}, [1, 2]),
        ({"stable": 2, "canary": 2}, [2, 3]),
        ({"stable": 2, "canary": 3}, [2, 3]),
    ]


def test_a_rollout_in_one_step_is_refused_by_the_server_and_so_not_written(export):
    server = LabelRule()
    assert set_labels(export, "stable=1", "canary=2").returncode == 0
    path = export / "models.config"
    before = path.read_text()
    assert server.reload(before)
    path.unlink()
    assert (
        set_labels(export, "stable=2", "canary=3").returncode == 0
    )  # as if it were the first file
    in_one_step = path.read_text()
    assert [server.reload(in_one_step) for _ in range(3)] == [False] * 3  # at every reading
    assert server.loaded == {1, 2}
    path.write_text(before)
    refused = set_labels(export, "stable=2", "canary=3")
    assert refused.returncode == 2
    assert "the label canary cannot move to version 3, which the server has not" in refused.stderr
    assert path.read_text() == before


def test_a_link_that_was_planted_for_the_labels_is_not_followed(export, tmp_path, monkeypatch):
    (tmp_path / "outside").write_text("mine")
    for name in (os.getpid(), "tmp", "new"):
        (export / f".models.config.{name}").symlink_to(tmp_path / "outside")
    monkeypatch.setattr(sys, "argv", ["set_labels.py", str(export), "stable=1"])
    runpy.run_path(str(SERVING / "set_labels.py"), run_name="__main__")
    assert (tmp_path / "outside").read_text() == "mine"
    written = [path for path in export.iterdir() if not path.is_symlink() and path.is_file()]
    assert [path.name for path in written] == ["models.config"]
    assert written[0].stat().st_mode & 0o777 == 0o644


def test_labels_are_checked(export):
    assert "no version 4; export it first" in set_labels(export, "stable=4").stderr
    twice = set_labels(export, "stable=1", "stable=2")
    assert "names a label twice" in twice.stderr
    quoted = set_labels(export, "stable=1", "--model", 'a"b')
    assert "the model's name 'a\"b' may have letters" in quoted.stderr
    assert "'stable' is not of the form LABEL=VERSION" in set_labels(export, "stable").stderr
    assert set_labels(export, "stable=1", "--model", "mine").returncode == 0
