"""Free ports of this machine, for processes that listen to each other."""

import json
import socket


def free_addresses(count: int) -> tuple[str, ...]:
    """Return free addresses on localhost."""
    sockets = [socket.create_server(("localhost", 0)) for _ in range(count)]
    addresses = tuple(f"localhost:{listening.getsockname()[1]}" for listening in sockets)
    for listening in sockets:
        listening.close()
    return addresses


def tf_config(addresses: tuple[str, ...], number: int) -> str:
    """Return the value of TF_CONFIG for a worker."""
    task = {"type": "worker", "index": number}
    return json.dumps({"cluster": {"worker": list(addresses)}, "task": task})
