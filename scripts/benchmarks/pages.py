"""Pages of sentences per second from `tfformer serve`, the LiteRT server and CTranslate2.

One client sends a page after the other, and then several clients do so at once. Every line of an
answer is compared with the translation of that sentence when it was sent alone; those that differ
are counted. (In int8, a sentence may have near ties that its neighbours decide.)
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

ON_DEVICE = Path(__file__).parents[2] / "export" / "on_device" / "serve.py"
CTRANSLATE2 = Path(__file__).parent / "engines" / "ctranslate2_server.py"

Ask = Callable[[http.client.HTTPConnection, Sequence[str]], list[str]]


class Engine(NamedTuple):
    """A server, and the way to ask it for the translations of sentences."""

    command: list[str]
    ask: Ask


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--saved-model", required=True, help="an export of the run")
    parser.add_argument("--litert", help="its LiteRT export, for export/on_device/serve.py")
    parser.add_argument("--ctranslate2", help="its CTranslate2 export")
    parser.add_argument("--source", required=True, help="sentences, one a line")
    parser.add_argument("--page", type=int, default=30, metavar="N", help="sentences in a request")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)


def measure(options: argparse.Namespace) -> dict:
    """Return, of each engine, start-up, memory, and the figures of one client and of all."""
    from tfformer.data.sources import read_lines

    sentences = list(islice(dict.fromkeys(read_lines(options.source)), 300))
    return {name: _figures(name, one, sentences, options) for name, one in _engines(options)}


def _engines(options: argparse.Namespace) -> Iterator[tuple[str, Engine]]:
    """Yield the engines whose exports are given."""
    serve = ["-m", "tfformer", "serve", f"model={options.saved_model}", "--port", "0"]
    yield "tensorflow", Engine(serve, _ask_tensorflow)
    if options.litert:
        yield "litert", Engine([str(ON_DEVICE), options.litert, "--port", "8519"], _ask_text)
    if options.ctranslate2:
        command = [str(CTRANSLATE2), options.ctranslate2, "8519"]
        yield "ctranslate2", Engine(command, _ask_text)


def _figures(
    name: str, engine: Engine, sentences: Sequence[str], options: argparse.Namespace
) -> dict:
    with _server(engine.command) as (address, process, startup):
        connection = http.client.HTTPConnection(address)
        expected = {one: engine.ask(connection, [one])[0] for one in sentences}
        figures: dict = {"startup_seconds": startup}
        for clients in (1, options.clients):
            loaded = _load(address, engine.ask, expected, clients, options)
            figures[f"clients_{clients}"] = loaded
            print(f"{name}, {clients} clients: {loaded}")
        figures |= {"memory_mb": _memory(process.pid)}
        print(f"{name}: started in {startup} s, memory {figures['memory_mb']}", flush=True)
    return figures


@contextmanager
def _server(command: Sequence[str]) -> Iterator[tuple[str, subprocess.Popen, float]]:
    """Run a server and yield its HOST:PORT, its process and the seconds until it was ready."""
    begin = time.perf_counter()
    whole = [sys.executable, "-u", *command]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            addresses = (re.search(r"http://([\w.:]+)", line) for line in process.stdout)
            address = next(found[1] for found in addresses if found)
            yield address, process, round(time.perf_counter() - begin, 1)
        finally:
            process.terminate()


def _load(
    address: str, ask: Ask, expected: dict[str, str], clients: int, options: argparse.Namespace
) -> dict:
    """Return rate and latency of pages, and the lines that are not their sentence's translation.

    Raises:
        ValueError: An answer lacks a line.
    """
    sentences = list(expected)
    size, seconds = options.page, options.seconds
    end = time.perf_counter() + seconds

    def client(number: int) -> tuple[list[float], int]:
        connection = http.client.HTTPConnection(address, timeout=600)
        times, differ = [], 0
        place = 17 * number
        while (begin := time.perf_counter()) < end:
            page = [sentences[(place + line) % len(sentences)] for line in range(size)]
            answer = ask(connection, page)
            times.append(time.perf_counter() - begin)
            pairs = zip(page, answer, strict=True)
            differ += sum(line != expected[one] for one, line in pairs)
            place += size
        return times, differ

    with ThreadPoolExecutor(clients) as threads:
        found = list(threads.map(client, range(clients)))
    times = [one for of_client, _ in found for one in of_client]
    half, most = np.percentile(times, [50, 95])
    return {
        "sentences_per_second": round(size * len(times) / seconds, 1),
        "p50_seconds": round(float(half), 3),
        "p95_seconds": round(float(most), 3),
        "pages": len(times),
        "lines_that_differ": sum(differ for _, differ in found),
    }


def _ask_tensorflow(connection: http.client.HTTPConnection, sentences: Sequence[str]) -> list[str]:
    """By TensorFlow Serving's request, which the cache of translations does not answer."""
    predictions = _post(connection, "/v1/models/model:predict", {"instances": list(sentences)})
    return [row["translation"] for row in predictions["predictions"]]


def _ask_text(connection: http.client.HTTPConnection, sentences: Sequence[str]) -> list[str]:
    return _post(connection, "/translate", {"q": list(sentences)})["translatedText"]


def _post(connection: http.client.HTTPConnection, path: str, content: dict) -> dict:
    headers = {"Content-Type": "application/json"}
    connection.request("POST", path, json.dumps(content), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    assert response.status == 200, answer
    return answer


def _memory(process: int) -> dict[str, float]:
    """The memory of a process in MB: now, and at most so far."""
    status = Path(f"/proc/{process}/status").read_text()
    found = dict(re.findall(r"(VmRSS|VmHWM):\s+(\d+)", status))
    return {"now": round(int(found["VmRSS"]) / 1000), "peak": round(int(found["VmHWM"]) / 1000)}
