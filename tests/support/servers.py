"""Servers for the tests of serving in separate processes, and requests to them."""

import hashlib
import http.client
import http.server
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import tensorflow as tf

from tfformer.storage.artifact_folders import write_manifest

SERVING = Path(__file__).parents[2] / "export" / "serving"


def start_server(*arguments, port=0) -> SimpleNamespace:
    """Start `tfformer serve` in a process; return it and its address when it is ready."""
    command = [sys.executable, "-m", "tfformer", "serve", *arguments, "--port", port]
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    printed = ""
    while not (ready := re.search(r"serving .+ at (http://127\.0\.0\.1:\d+)/\n", printed)):
        line = process.stdout.readline()
        assert line, printed
        printed += line
    return SimpleNamespace(process=process, rest=ready[1])


@contextmanager
def served(*arguments):
    """Run a server, and check that it shuts down cleanly."""
    server = start_server(*arguments)
    try:
        yield server
    finally:
        server.process.terminate()
        assert server.process.wait(30) == 0


def save_scripted_model(folder: Path, name: str) -> None:
    """Write a SavedModel with an export's signatures. It outputs its own name and has 500 ids."""

    def greedy(text):
        length = tf.cast(tf.strings.length(text), tf.float32)
        return {"translation": tf.strings.join([name + ": ", text]), "score": -length / 3}

    def beam(text):
        scores = tf.fill((tf.size(text), 1), -1.5)
        second = tf.strings.join(["so ", tf.strings.lower(text)])
        texts = tf.stack([tf.strings.upper(text), second], axis=1)
        return {"translations": texts, "scores": tf.concat([scores, scores - 1], axis=1)}

    def continuations(text, prefix):
        ends = tf.constant([" one", " two", " three", " four", " five"])
        texts = prefix[:, tf.newaxis] + ends
        return {"translations": texts, "probabilities": tf.fill(tf.shape(texts), 0.2)}

    def ids(ids, lengths):
        tokens = tf.gather(tf.range(500), ids)
        return {
            "ids": tokens[:, ::-1],
            "lengths": lengths,
            "score": tf.cast(tf.reduce_sum(tokens, axis=1), tf.float32),
        }

    def score(source, target):
        return {
            "log_prob": -tf.cast(tf.strings.length(target), tf.float32),
            "num_tokens": tf.strings.length(source),
        }

    strings, lengths = tf.TensorSpec((None,), tf.string), tf.TensorSpec((None,), tf.int32)
    signatures = {
        "serving_default": tf.function(greedy, input_signature=[strings]),
        "translate_beam": tf.function(beam, input_signature=[strings]),
        "translate_prefix": tf.function(continuations, input_signature=[strings, strings]),
        "translate_ids": tf.function(
            ids, input_signature=[tf.TensorSpec((None, None), tf.int32), lengths]
        ),
        "score": tf.function(score, input_signature=[strings, strings]),
    }
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)


def write_manifest_of(folder: Path, **values) -> None:
    """Write an export's manifest, with the files' digests and `values`."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    digests = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    manifest = {"format": "saved_model", "digests": digests} | values
    write_manifest(folder, manifest)


def answer_to(
    server, method: str, path: str, body: bytes | None = None, headers: dict | None = None
) -> SimpleNamespace:
    """Send a request; return the response's status, headers and text."""
    address = urlsplit(server.rest).netloc
    with closing(http.client.HTTPConnection(address, timeout=60)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        text = response.read().decode()
    return SimpleNamespace(status=response.status, headers=response.headers, text=text)


def ask(server, path: str, body: bytes | dict | None = None) -> tuple[int, dict]:
    """Request /v1/models/`path`; return the response's status and JSON."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    method = "GET" if body is None else "POST"
    answer = answer_to(server, method, f"/v1/models/{path}", content)
    return answer.status, json.loads(answer.text)


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for a condition; fail after the time limit."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"the condition was not met within {seconds} s"
        time.sleep(0.05)
