"""The connection to a Ray cluster, without a cluster: its head answers or does not answer."""

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tfformer.runtime import ray_cluster as connection
from tfformer.runtime.ray_cluster import Head


def connection_to(address: str, is_client: bool = False) -> SimpleNamespace:
    client = SimpleNamespace(ray=SimpleNamespace(is_connected=lambda: is_client))
    return SimpleNamespace(
        util=SimpleNamespace(client=client),
        get_runtime_context=lambda: SimpleNamespace(gcs_address=address),
    )


def test_an_address_that_is_of_no_cluster_is_left_after_the_limit(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS_TO_JOIN", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor() as threads:
        answer = threading.Event()
        monkeypatch.setattr(connection.ray, "init", lambda *_, **__: answer.wait(60))
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        joining = threads.submit(connection.connect, address, log_to_driver=False)
        with pytest.raises(
            ConnectionError,
            match=rf"Ray cluster at {address} \(it has not answered for 0.1 seconds\); start",
        ):
            joining.result(30)
        answer.set()


def test_a_head_that_is_gone_is_an_error_after_some_time(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        monkeypatch.setattr(connection, "ray", connection_to(address))
        head = Head()
        monkeypatch.setattr(connection, "SECONDS_WITHOUT_HEAD", -1)
        head.check()
    with pytest.raises(ConnectionError, match=rf"head of the Ray cluster \({address}\) has not"):
        head.check()
    monkeypatch.setattr(connection, "SECONDS_WITHOUT_HEAD", 60)
    head.check()


def test_a_client_outside_of_the_cluster_does_not_look(monkeypatch):
    monkeypatch.setattr(connection, "SECONDS_WITHOUT_HEAD", -1)
    monkeypatch.setattr(connection, "ray", connection_to("192.0.2.1:1", is_client=True))
    Head().check()
