"""The files of export/serving: a sample, the smoke test and TensorFlow Serving's configuration."""

import os
import re
import runpy
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
import tensorflow as tf
import yaml
from google.protobuf import text_format
from support.servers import SERVING
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
from tensorflow_serving.config import model_server_config_pb2

MODEL = "echo"
SAMPLE = runpy.run_path(str(SERVING / "sample.py"))


def test_the_sample_asks_by_rest(server):
    translated = SAMPLE["translate_by_rest"](server.rest, MODEL, ["one", "Ж"])
    assert translated == ["v10: one", "v10: Ж"]


def test_the_sample_asks_by_grpc():
    requests = []

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):
            requests.append(request)
            response = predict_pb2.PredictResponse()
            response.outputs["translation"].CopyFrom(tf.make_tensor_proto(["eins", "Ж"]))
            response.outputs["score"].CopyFrom(tf.make_tensor_proto([-1.0, -2.0]))
            return response

    server = grpc.server(ThreadPoolExecutor(2))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    server.start()
    try:
        translated = SAMPLE["translate_by_grpc"](address, MODEL, ["one", "two"])
    finally:
        server.stop(0)
    assert translated == ["eins", "Ж"]
    (request,) = requests
    assert request.model_spec.name == MODEL
    assert request.model_spec.signature_name == "serving_default"
    assert list(request.inputs["text"].string_val) == [b"one", b"two"]


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
    """One version is enough, and a variable sets the model's name."""
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
    """TensorFlow Serving's rule for labels and versions, see `ServerCore::ReloadConfig`.

    The labels are updated first; then versions are loaded and unloaded. A label must name a loaded
    version. With --allow_version_labels_for_unavailable_models, this does not apply to a label that
    is new or unchanged. A refused file changes nothing.
    """

    def __init__(self):
        self.loaded, self.labels = set(), {}

    def reload(self, text: str) -> bool:
        """Read a file; return whether it was accepted."""
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
    """Return the arguments of `set_labels.py` in the README's rollout, in order."""
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
