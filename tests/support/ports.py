"""Free ports of this machine, for processes that listen to each other."""

import json
import socket


def free_addresses(count: int) -> tuple[str, ...]:
    """Addresses on localhost at which nobody listens."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = tuple(f"localhost:{listening.getsockname()[1]}" for listening in sockets)
    for listening in sockets:
        listening.close()
    return addresses


def tf_config(addresses: tuple[str, ...], number: int) -> str:
    """The environment's TF_CONFIG of a worker."""
    task = {"type": "worker", "index": number}
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": task})
