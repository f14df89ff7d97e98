"""Connects to a Ray cluster, or says in one line why it cannot."""

from __future__ import annotations

import functools
import os
import socket
import time
from typing import Any

import ray

from tfformer import __version__
from tfformer.storage.folders import within

SECONDS_TO_CONNECT = 20
SECONDS_TO_JOIN = 120  # a cluster
SECONDS_A_LOOK = 1  # between checks of the head
SECONDS_WITHOUT_HEAD = 30  # after 60, Ray itself would end the process with a message
HEAD = "node:__internal_head__"  # the resource by which Ray marks the head
CLIENT = "ray://"  # prefix of the address at which a cluster serves clients outside it
REMEDY = "start one with `ray start --head`, and pass its address"
ONE_THREAD = {"TF_NUM_INTRAOP_THREADS": "1", "TF_NUM_INTEROP_THREADS": "1"}


def connect(address: str, log_to_driver: bool) -> None:
    """Connect to a cluster, where TensorFlow will use one thread per worker.

    `address` is, for example, "10.0.0.1:6379" or "ray://10.0.0.1:10001". "auto" uses RAY_ADDRESS or
    the cluster that this machine belongs to; "local" starts a cluster on this machine. ValueError:
    the address is malformed. ConnectionError: there is no cluster.
    """
    if address == "auto":
        address = os.environ.get("RAY_ADDRESS") or address
    if address not in ("auto", "local"):
        host, _, port = address.removeprefix(CLIENT).rpartition(":")
        if not host or "/" in host or not port.isdecimal():
            raise ValueError(
                f"--ray {address} must be HOST:PORT, {CLIENT}HOST:PORT or local; {REMEDY}"
            )
        try:  # Ray itself would wait for minutes
            socket.create_connection((host, int(port)), SECONDS_TO_CONNECT).close()
        except (OSError, OverflowError) as error:
            raise ConnectionError(
                f"there is no Ray cluster at {address} ({error}; waited up to {SECONDS_TO_CONNECT} "
                f"seconds); {REMEDY}"
            ) from None
    environment = {"env_vars": ONE_THREAD}
    join = functools.partial(
        ray.init, address, log_to_driver=log_to_driver, runtime_env=environment
    )
    late = f"it has not answered for {SECONDS_TO_JOIN} seconds"
    try:
        if address == "local":  # Ray's processes would end with the thread that started them
            join()
        else:  # Ray itself tries it for 7 minutes
            within(SECONDS_TO_JOIN, join, late)
    except (OSError, ValueError, RuntimeError) as error:
        cause = reason(error.__cause__ or error)  # such as a missing token
        raise ConnectionError(
            f"cannot connect to a Ray cluster at {address} ({cause}); {REMEDY}"
        ) from None


def on_head(actor: type, **options: Any) -> Any:
    """Start an actor on the cluster's head, without reserving a CPU, and return its handle.

    The actor ends when the connection closes.
    """
    return ray.remote(num_cpus=0, resources={HEAD: 0.001}, **options)(actor).remote()


class Head:
    """The head of the cluster to which this process is connected."""

    def __init__(self) -> None:
        is_client = ray.util.client.ray.is_connected()  # the client detects a lost head itself
        self._address = None if is_client else ray.get_runtime_context().gcs_address
        self._answered = time.monotonic()

    def answer(self, reference: Any) -> Any:
        """Wait for the result of a call; raise ConnectionError if the head is lost meanwhile."""
        self.check()
        while not ray.wait([reference], timeout=SECONDS_A_LOOK)[0]:
            self.check()
        return ray.get(reference)

    def check(self) -> None:
        """Raise ConnectionError if the head has been unreachable for `SECONDS_WITHOUT_HEAD`."""
        now = time.monotonic()
        if self._address is None or _listens(self._address):
            self._answered = now
        elif now - self._answered > SECONDS_WITHOUT_HEAD:
            raise ConnectionError(
                f"the head of the Ray cluster ({self._address}) has not answered for "
                f"{SECONDS_WITHOUT_HEAD} seconds; finished files are kept: start a cluster and run "
                "the same command again, with --resume for a training run"
            )


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=1).close()
    except OSError:
        return False
    return True


def check_version(version: str) -> None:
    """Raise ValueError unless the worker has the same tfformer version as the job."""
    if version != __version__:
        raise ValueError(
            f"a worker has tfformer {__version__}, but the job was started with {version}; install "
            "the same version on all machines"
        )


def reason(error: BaseException) -> str:
    """Return the last line of an error's text, which names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
