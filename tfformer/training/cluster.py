"""The processes that TF_CONFIG names, and how they connect before training."""

import json
import os
import re
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from reprlib import repr as shown
from typing import Any

from tfformer.storage.whole_files import parse_json

Facts = Mapping[str, Any]  # name -> value that must be equal in all workers

VARIABLE = "TF_CONFIG"  # environment variable
ADDRESS = re.compile(r"(?P<host>[^\s:]+|\[[0-9a-fA-F:.]+\]):(?P<port>\d{1,5})")
EXAMPLE = (
    '{"cluster": {"worker": ["host1:2222", "host2:2222"]}, "task": {"type": "worker", "index": 0}}'
)
MESSAGE_BYTES = 2**20  # largest message with a worker's facts
ANSWER_SECONDS = 5.0  # timeout for a line on an open connection
RETRY_SECONDS = 0.2


class WorkerLostError(ConnectionError):
    """Another worker cannot be reached."""


@dataclass(frozen=True)
class Cluster:
    """The workers of a training and the number of this one."""

    addresses: tuple[str, ...]  # host:port of each; the first is the chief's
    number: int

    @classmethod
    def from_environment(cls) -> "Cluster":
        """Read TF_CONFIG, as TensorFlow, Ray and Kubernetes' operators write it.

        The job `chief`, if there is one, is worker 0; the job `worker` follows. A TF_CONFIG that is
        missing or does not name this process raises ValueError.
        """
        text = os.environ.get(VARIABLE)
        if not text:
            raise _refused(f"is not set; set it in each process, for example to {EXAMPLE}")
        try:
            values = parse_json(text)
        except ValueError as error:
            raise _refused(f"is not JSON ({error}); it must look like {EXAMPLE}") from None
        match values:
            case {"cluster": dict(jobs), "task": {"type": str(job), "index": int(index)}}:
                return cls._of(jobs, job, index)
        raise _refused(f"is {shown(values)}; it must look like {EXAMPLE}")

    @classmethod
    def _of(cls, jobs: dict[str, Any], job: str, index: int) -> "Cluster":
        for name, addresses in jobs.items():
            if name not in ("chief", "worker"):
                raise _refused(f"names the job {shown(name)}; only chief and worker can train")
            if not isinstance(addresses, list) or not all(map(_is_address, addresses)):
                raise _refused(f"has {shown(addresses)} as its {name}; use a list of host:port")
        chiefs, workers = jobs.get("chief", []), jobs.get("worker", [])
        if len(chiefs) > 1:
            raise _refused(f"has {len(chiefs)} chiefs; use at most one")
        if len({*chiefs, *workers}) < len(chiefs) + len(workers):
            raise _refused("names an address twice; use a different address for each worker")
        if not 0 <= index < len(jobs.get(job, [])):
            raise _refused(
                f"says that this process is {shown(job)} {index}, which is not in its cluster"
            )
        number = index + (len(chiefs) if job == "worker" else 0)
        return cls((*chiefs, *workers), number)

    def named(self, number: int) -> str:
        """Return a worker's name for messages."""
        return f"worker {number} ({self.addresses[number]})"

    def gathered(self, facts: Facts, minutes: float) -> list[Facts]:
        """Wait until all workers have connected, and return the facts of all.

        The first worker listens at its address, before TensorFlow does; the others connect to it.
        Facts are plain JSON values.

        Raises:
            WorkerLostError: A worker did not connect within `minutes`.
            OSError: The first worker cannot listen at its address.
            ValueError: The first worker expects a different number of workers.
        """
        deadline = time.monotonic() + 60 * minutes
        if self.number == 0:
            return self._receive(facts, deadline, f"within {minutes:g} minutes")
        return self._send(facts, deadline, f"within {minutes:g} minutes")

    def _receive(self, facts: Facts, deadline: float, limit: str) -> list[Facts]:
        """As the first worker, receive all workers' facts and send the full list to each worker."""
        received: dict[int, Facts] = {0: facts}
        lines: dict[int, socket.socket] = {}
        with self._listening() as server, ExitStack() as opened:
            while len(received) < len(self.addresses):
                server.settimeout(max(deadline - time.monotonic(), 1e-3))
                try:
                    line, _ = server.accept()
                except TimeoutError:
                    missing = set(range(len(self.addresses))) - set(received)
                    names = ", ".join(map(self.named, sorted(missing)))
                    raise _absent(names, f"did not connect {limit}") from None
                opened.enter_context(line)
                match _read(line, ANSWER_SECONDS):
                    case {"worker": int(number), "facts": dict(others), **rest}:
                        if rest.get("workers", len(self.addresses)) != len(self.addresses):
                            with suppress(OSError):  # the worker expects a different number
                                _write(line, [{}] * len(self.addresses))
                        elif 0 < number < len(self.addresses):
                            received[number] = others
                            lines[number] = line
            everyone = [received[number] for number in range(len(self.addresses))]
            for number, line in lines.items():
                try:
                    _write(line, everyone)
                except OSError:
                    raise WorkerLostError(
                        f"{self.named(number)} disconnected before training began; restart every "
                        "worker"
                    ) from None
        return everyone

    def _listening(self) -> socket.socket:
        _, port = _host_and_port(self.addresses[0])
        try:
            if socket.has_dualstack_ipv6():
                return socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True)
            return socket.create_server(("", port))
        except OSError as error:
            raise OSError(
                f"{self.named(0)} cannot listen on its port ({error.strerror}); stop the process "
                f"that uses the port, or choose another port in {VARIABLE}"
            ) from None

    def _send(self, facts: Facts, deadline: float, limit: str) -> list[Facts]:
        """Call the first worker until it answers with all workers' facts."""
        count = len(self.addresses)
        while (left := deadline - time.monotonic()) > 0:
            try:
                address = _host_and_port(self.addresses[0])
                with socket.create_connection(address, timeout=min(left, ANSWER_SECONDS)) as line:
                    _write(line, {"worker": self.number, "workers": count, "facts": facts})
                    answer = _read(line, left, MESSAGE_BYTES * count)
            except OSError:
                answer = None
            if isinstance(answer, list):
                break
            time.sleep(RETRY_SECONDS)
        else:
            raise _absent(self.named(0), f"did not answer {limit}")
        if len(answer) != count:
            raise _refused(
                f"names {count} workers for {self.named(self.number)}, but {len(answer)} for "
                f"{self.named(0)}; use the same cluster for all workers"
            )
        return answer

    def check_alike(self, everyone: Sequence[Facts]) -> None:
        """Raise ValueError unless all workers have the same facts as the first."""
        for number, facts in enumerate(everyone):
            for name in sorted({*everyone[0], *facts}):
                theirs, first = facts.get(name), everyone[0].get(name)
                if theirs != first:
                    raise ValueError(
                        f"{self.named(number)} has {name} {shown(theirs)}, but {self.named(0)} has "
                        f"{shown(first)}; start every worker with the same recipe, text and "
                        "versions"
                    )

    def closed(self) -> list[int]:
        """Return the numbers of the other workers whose address refuses connections."""
        return [
            number
            for number, address in enumerate(self.addresses)
            if number != self.number and not _listens(address)
        ]


def _is_address(text: object) -> bool:
    match = ADDRESS.fullmatch(text) if isinstance(text, str) else None
    return match is not None and 0 < int(match["port"]) < 2**16


def _host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _listens(address: str) -> bool:
    try:
        socket.create_connection(_host_and_port(address), timeout=1).close()
    except OSError:
        return False
    return True


def _write(line: socket.socket, value: object) -> None:
    line.settimeout(ANSWER_SECONDS)
    line.sendall(json.dumps(value).encode() + b"\n")


def _read(line: socket.socket, seconds: float, size: int = MESSAGE_BYTES) -> object:
    """Return the JSON value that a connection sends, or None for anything else.

    `seconds` and `size` limit the whole message.
    """
    deadline = time.monotonic() + seconds
    message = bytearray()
    try:
        while not message.endswith(b"\n") and len(message) < size:
            line.settimeout(max(deadline - time.monotonic(), 1e-3))
            chunk = line.recv(size - len(message))
            if not chunk or time.monotonic() > deadline:
                break
            message += chunk
        return parse_json(message.decode())
    except (OSError, ValueError):
        return None


def _refused(reason: str) -> ValueError:
    return ValueError(f"training.strategy=multi_worker: {VARIABLE} {reason}")


def _absent(workers: str, fault: str) -> WorkerLostError:
    return WorkerLostError(
        f"{workers} {fault} (training.wait_minutes); start a process for each address of {VARIABLE}"
    )
