"""Measure `tfformer serve` in sentences per second, with one client and with several clients.

Each client sends one sentence after the other and checks every answer.
"""

import argparse
import http.client
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle, islice
from typing import Any


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--run", required=True, help="a run directory")
    parser.add_argument("--source", required=True, help="a file with a sentence per line")
    parser.add_argument("--clients", type=int, default=16, help="number of concurrent clients")
    parser.add_argument("--seconds", type=float, default=60, help="duration of each measurement")


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the sentences per second with one client and with all clients, and their ratio."""
    from tfformer.data.sources import read_lines
    from tfformer.inference.translator import Translator

    sentences = list(islice(read_lines(options.source), 200))
    translations = Translator.load(options.run).translate(sentences, beam_size=1)
    expected = dict(zip(sentences, translations, strict=True))
    rates = []
    with server(options.run) as address:
        for clients in (1, options.clients):
            answered = load(address, expected, clients, options.seconds)
            rates.append(answered / options.seconds)
            work = f"{answered} sentences in {options.seconds:g} s"
            print(f"{clients:3} clients: {work}, every translation right")
    one_client, many_clients = rates
    return {
        "clients": options.clients,
        "one_per_second": one_client,
        "all_per_second": many_clients,
        "ratio": many_clients / one_client,
    }


@contextmanager
def server(run: str) -> Iterator[str]:
    """Run `tfformer serve` in a separate process and yield its HOST:PORT."""
    command = [sys.executable, "-m", "tfformer", "serve", f"model={run}", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            addresses = (re.search(r"at http://(\S+)/", line) for line in process.stdout or ())
            yield next(address[1] for address in addresses if address)
        finally:
            process.terminate()


def load(address: str, expected: dict[str, str], clients: int, duration: float) -> int:
    """Return how many translations the clients received.

    Raises:
        AssertionError: A translation is not the expected one.
    """
    end = time.perf_counter() + duration

    def client(number: int) -> int:
        connection = http.client.HTTPConnection(address)
        sentences = islice(cycle(expected), 7 * number, None)
        done = 0
        while time.perf_counter() < end:
            sentence = next(sentences)
            connection.request(
                "POST", "/v1/models/model:predict", json.dumps({"instances": [sentence]})
            )
            answer = json.loads(connection.getresponse().read())
            assert answer["predictions"][0]["translation"] == expected[sentence], (sentence, answer)
            done += 1
        return done

    with ThreadPoolExecutor(clients) as threads:
        return sum(threads.map(client, range(clients)))
