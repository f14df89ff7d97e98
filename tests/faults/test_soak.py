"""Under 16 clients, some of them aborted, slow or hostile, a server neither grows nor fails."""

import json
import random
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support.faults import record, size
from support.hostile_requests import Client, damaged_body, drawn_request
from support.servers import save_scripted_model, served

SENTENCES = ["The dog is old.", "I see the red house.", "My sister sells two books."]
PAUSE = 0.25  # seconds between two requests of a client, so that the server is not always busy
PARTS = 60  # samples of memory and descriptors
GROWTH = 1.03  # of the median memory of the last quarter over that of the second


@pytest.fixture
def model(request, tmp_path) -> tuple[Path, Callable[[str], str]]:
    """A model to serve and its correct answers; a trained model in a long soak."""
    if size("soak_seconds", 0):
        from tfformer import Translator

        run = request.getfixturevalue("tiny_run")
        right = dict(zip(SENTENCES, Translator.load(run).translate(SENTENCES, 1), strict=True))
        return run, right.__getitem__
    save_scripted_model(tmp_path / "echo" / "1", "v1")
    return tmp_path / "echo", lambda text: f"v1: {text}"


def honest(client: Client, right: Callable[[str], str], draw: random.Random) -> str:
    texts = draw.choices(SENTENCES, k=draw.randint(1, 3))
    return "right" if client.translations(texts) == [right(text) for text in texts] else "wrong"


def aborted(client: Client, server, draw: random.Random) -> str:
    """Close the connection before the response, or before the request is complete."""
    request = raw_request(client, json.dumps({"inputs": SENTENCES * 8}).encode())
    with connected(server) as connection:
        connection.sendall(request[: draw.choice((10, 60, len(request) - 1, len(request)))])
        time.sleep(draw.random() * PAUSE)
    return "aborted"


def slow(client: Client, server, draw: random.Random) -> str:
    """Send a request in small chunks with pauses, and read the response as slowly."""
    request = raw_request(client, json.dumps({"inputs": SENTENCES}).encode())
    with connected(server) as connection:
        for start in range(0, len(request), 40):
            connection.sendall(request[start : start + 40])
            time.sleep(draw.random() * PAUSE)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(20)
            time.sleep(PAUSE / 100)
    return "right" if b" 200 " in answer else "wrong"


def hostile(client: Client, draw: random.Random) -> str:
    asked = drawn_request(draw)
    with suppress(OSError):
        client.rest(client.path(asked), damaged_body(client.body(asked), draw))
    return "hostile"


def connected(server) -> socket.socket:
    address = urlsplit(server.rest)
    return socket.create_connection((address.hostname, address.port), timeout=60)


def raw_request(client: Client, body: bytes) -> bytes:
    head = f"POST /v1/models/{client.name}:predict HTTP/1.1\r\nHost: localhost\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def resident(process: int) -> float:
    """Return the resident memory in MiB."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def descriptors(process: int) -> int:
    return len(list(Path(f"/proc/{process}/fd").iterdir()))


@pytest.mark.nightly
def test_memory_and_descriptors_stay_flat_and_the_canary_is_right(model, tmp_path):
    path, right = model
    seconds = size("soak_seconds", 0) or 8
    kinds, ended, outcomes, failures = [], threading.Event(), Counter(), []
    with served(f"soak={path}") as server, ExitStack() as stack:
        for number in range(16):
            client = Client(server, "soak")
            stack.callback(client.close)
            kind = ("honest", "honest", "honest", "honest", "aborted", "slow", "hostile", "hostile")
            kinds.append((kind[number % 8], client, random.Random(number)))

        def work(kind: str, client: Client, draw: random.Random) -> None:
            act = {
                "honest": lambda: honest(client, right, draw),
                "aborted": lambda: aborted(client, server, draw),
                "slow": lambda: slow(client, server, draw),
                "hostile": lambda: hostile(client, draw),
            }[kind]
            while not ended.is_set():
                try:
                    outcomes[act()] += 1
                except Exception as error:
                    failures.append((kind, repr(error)))
                time.sleep(PAUSE)

        threads = [threading.Thread(target=work, args=kind) for kind in kinds]
        for thread in threads:
            thread.start()
        memory, open_files = [], []
        for _ in range(PARTS):
            time.sleep(seconds / PARTS)
            memory.append(resident(server.process.pid))
            open_files.append(descriptors(server.process.pid))
        ended.set()
        for thread in threads:
            thread.join(90)
            assert not thread.is_alive()
        quarter = PARTS // 4
        second, last = memory[quarter : 2 * quarter], memory[-quarter:]
        before, after = statistics.median(second), statistics.median(last)
        files = max(open_files[:quarter]), max(open_files[-quarter:])
        wrong = outcomes["wrong"] + len(failures)
        canaries = outcomes["right"] + wrong
        record(f"soak of {seconds} s: canary failures", f"{wrong} of {canaries:,}")
        record("  answers", str(dict(outcomes)))
        record("  resident memory, second and last quarter", f"{before:.1f} and {after:.1f} MiB")
        record("  most descriptors, first and last quarter", f"{files[0]} and {files[1]}")
        assert not failures, failures[:5]
        assert outcomes["wrong"] == 0
        assert min(outcomes[name] for name in ("right", "aborted", "hostile")) > 0
        assert files[1] <= files[0] + 4
        assert seconds < 600 or after <= before * GROWTH
