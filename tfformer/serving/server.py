"""A server for translation models, with three well-known APIs and a web page.

It is meant for trying models and for serving on one machine. To serve exports on many machines, use
TensorFlow Serving: see export/serving.
"""

import errno
import re
import signal
import socket
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path

import uvicorn

from tfformer.runtime.devices import device_line, unused_gpu
from tfformer.serving.application import application
from tfformer.serving.errors import MAX_NAME
from tfformer.serving.security import read_keys
from tfformer.serving.served_models import ServedModel, ServedModels

NAME = "[^/:]+"
MAX_CONNECTIONS = 512  # half of the 1,024 files that a process may usually open
IDLE_SECONDS = 30  # idle timeout of a connection
DRAIN_SECONDS = 20  # timeout for running requests; Kubernetes kills a process after 30


def serve(
    artifacts: Sequence[str | Path],
    host: str,
    port: int,
    allowed_hosts: Collection[str] = (),
    api_keys: str | Path | None = None,
) -> None:
    """Serve run directories or exports until SIGTERM or Ctrl-C, then finish the running requests.

    The arguments are those of `tfformer serve`; port 0 selects a free port. ValueError: an argument
    is wrong, or an artifact is damaged. OSError: the port is taken.
    """
    paths = _named(artifacts)
    keys = read_keys(api_keys)
    with _bound(host, port) as listener:
        models = ServedModels(ServedModel(name, path) for name, path in paths.items())
        address = f"[{host}]" if ":" in host else host
        url = f"http://{address}:{listener.getsockname()[1]}/"
        app = application(models, allowed_hosts, keys, host)
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_keep_alive=IDLE_SECONDS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again when it ends
            signal.signal(number, lambda *_: None)
        listener.listen()
        if warning := unused_gpu():
            warnings.warn(warning, stacklevel=2)
        names = ", ".join(models.names)
        print(f"serving {names} on {device_line()} at {url}", flush=True)
        uvicorn.Server(config).run([listener])


def _named(addresses: Sequence[str | Path]) -> dict[str, Path]:
    """Return the paths by the models' names, which default to the names of the folders."""
    paths: dict[str, Path] = {}
    for address in addresses:
        given, path = split_name(str(address))
        folder = path.resolve()
        name = given or (folder.parent.name if folder.name.isdecimal() else folder.name)
        if not re.fullmatch(NAME, name) or len(name) > MAX_NAME:
            raise ValueError(
                f"the model name {name[:MAX_NAME]!r} must have 1 to {MAX_NAME} characters, without "
                "slashes and colons"
            )
        if name in paths:
            raise ValueError(
                f"two models have the name {name!r}; rename one of them, for example other={path}"
            )
        paths[name] = path
    return paths


def split_name(argument: str) -> tuple[str, Path]:
    """Return the name and the path in NAME=PATH; the name is empty if there is only a path.

    Example:
        >>> split_name("en-de=runs/mine")
        ('en-de', PosixPath('runs/mine'))
    """
    name, sign, path = argument.partition("=")
    if not sign or Path(argument).exists():
        return "", Path(argument)
    return name, Path(path)


def _bound(host: str, port: int) -> socket.socket:
    """Return a bound socket, which starts listening only when the models are loaded.

    A TCP probe would consider a listening server ready. asyncio sets TCP_NODELAY only if the
    protocol is named; without it the body of each answer waits 40 ms for the client's next ACK.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        listener.bind((host, port))
        return listener
    except (OSError, OverflowError) as error:
        listener.close()
        reason = (getattr(error, "strerror", None) or str(error)).partition(" (")[0]
        is_unknown = isinstance(error, socket.gaierror)
        is_foreign = getattr(error, "errno", None) == errno.EADDRNOTAVAIL
        wrong = "host" if is_unknown or is_foreign else "port"
        raise OSError(f"--port {port} on {host}: {reason}; choose another {wrong}") from None
