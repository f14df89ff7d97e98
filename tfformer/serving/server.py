"""A server of translation models: known APIs, and a page to type into.

For trying models, and for serving on one machine. TensorFlow Serving serves exports on many
machines: see export/serving.
"""

import re
import signal
import socket
import warnings
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from tfformer.runtime.devices import device_line, unused_gpu
from tfformer.serving.application import application
from tfformer.serving.errors import MAX_NAME
from tfformer.serving.security import read_keys
from tfformer.serving.served_models import ServedModel, ServedModels
from tfformer.storage.run_folders import is_run
from tfformer.text import Align

NAME = "[^/:]+"
MAX_CONNECTIONS = 512  # half of the 1,024 files that a process may usually open
IDLE_SECONDS = 30  # after which a connection without a request is closed
DRAIN_SECONDS = 20  # timeout for running requests; Kubernetes kills a process after 30

OpenAligner = Callable[[Any], Align | None]  # from a run's engine; None without alignments


def serve(
    places: Sequence[str | Path],
    host: str,
    port: int,
    allowed_hosts: Collection[str] = (),
    api_keys: str | Path | None = None,
    open_aligner: OpenAligner = lambda _: None,
) -> None:
    """Serve run directories or exports until SIGTERM or Ctrl-C; answer requests under way first.

    Args:
        places: Run directories, exports, or single versions of exports. `en-de=runs/mine` serves
            under another name than the folder's.
        host: The address to listen on; `127.0.0.1` is this machine alone.
        port: The port; 0 is any free port.
        allowed_hosts: Further host names by which browsers may call this server, such as a proxy's.
        api_keys: A file of keys, one per line; each request for a translation needs one. Without
            the file, requests need no key.
        open_aligner: Opens the alignments of a run directory, given its engine. Alignments place
            markup and show on the page the words that belong together. Exports have none.

    Raises:
        ValueError: An argument is wrong, or an artifact is damaged.
        OSError: The port is taken.
    """
    paths = _named(places)
    keys = read_keys(api_keys)
    with _bound(host, port) as listener:
        models = ServedModels(_loaded(name, path, open_aligner) for name, path in paths.items())
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
        for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again at its end
            signal.signal(number, lambda *_: None)
        listener.listen()
        if warning := unused_gpu():
            warnings.warn(warning, stacklevel=2)
        names = ", ".join(models.names)
        print(f"serving {names} on {device_line()} at {url}", flush=True)
        uvicorn.Server(config).run([listener])


def _named(places: Sequence[str | Path]) -> dict[str, Path]:
    """Return the paths by the models' names."""
    paths: dict[str, Path] = {}
    for place in places:
        given, path = split_name(str(place))
        name = _checked(given or _folder_name(path))
        if name in paths:
            raise ValueError(
                f"two models have the name {name!r}; name one of them otherwise, as other={path}"
            )
        paths[name] = path
    return paths


def split_name(argument: str) -> tuple[str, Path]:
    """Return the name and the path of NAME=PATH; the name is empty for a path alone.

    Example:
        >>> split_name("en-de=runs/mine")
        ('en-de', PosixPath('runs/mine'))
    """
    name, sign, path = argument.partition("=")
    if not sign or Path(argument).exists():
        return "", Path(argument)
    return name, Path(path)


def _checked(name: str) -> str:
    if re.fullmatch(NAME, name) and len(name) <= MAX_NAME:
        return name
    raise ValueError(
        f"a model's name, such as {name[:MAX_NAME]!r}, must have 1 to {MAX_NAME} characters, "
        "and hold neither a slash nor a colon"
    )


def _folder_name(path: Path) -> str:
    """Return the name of the folder, or of the folder of versions."""
    path = path.resolve()
    return path.parent.name if path.name.isdecimal() else path.name


def _loaded(name: str, path: Path, open_aligner: OpenAligner) -> ServedModel:
    model = ServedModel(name, path)
    if is_run(path):
        model.align = open_aligner(model.newest)
    return model


def _bound(host: str, port: int) -> socket.socket:
    """Return a socket with its port, which listens only once the models are loaded.

    A probe of the port would take a listening server for ready.
    """
    if not 0 <= port < 2**16:
        raise ValueError(f"--port {port} must be a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    try:
        listener.bind((host, port))
        return listener
    except OSError as error:
        listener.close()
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise OSError(f"--port {port} on {host}: {reason}; choose another") from None
