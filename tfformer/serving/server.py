"""A server of translation models: known APIs, and a page to type into.

For trying, and for a machine of one's own. For many machines there is TensorFlow Serving itself:
see export/serving.
"""

import asyncio
import re
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from importlib.util import find_spec
from pathlib import Path

from tfformer.export import formats
from tfformer.runtime.steps import Steps
from tfformer.serving.errors import MAX_NAME
from tfformer.serving.model import ServedModel, ServedModels, find_versions
from tfformer.storage.run_folders import is_run
from tfformer.text import Align

try:
    from aiohttp import web

    from tfformer.serving.api_keys import read_keys
    from tfformer.serving.application import application
    from tfformer.serving.application_keys import API_KEYS, BUSY, LIFECYCLE, MODELS, QUEUE
    from tfformer.serving.body import MAX_BYTES
    from tfformer.serving.connections import Connections
    from tfformer.serving.tf_serving_api import NAME
except ModuleNotFoundError as error:
    raise ValueError(
        f"serving needs {error.name}; install it with: pip install 'tfformer[serve]'"
    ) from None

CLOSE_SECONDS = 1  # for connections that are still open after the draining

OpenAligner = Callable[[Path], Align | None]  # of a run directory; None if it has no alignments


def serve(
    places: Sequence[str | Path],
    host: str,
    port: int,
    grpc_port: int | None = None,
    name: str | None = None,
    allowed_hosts: Collection[str] = (),
    api_keys: str | Path | None = None,
    open_aligner: OpenAligner = lambda _: None,
) -> None:
    """Serve run directories or exports until interrupted.

    Requests under way are answered before the end.

    Args:
        places: A run directory each, which is exported for the while; or an export, or one version
            of it. `en-de=runs/mine` is a run directory by another name than its folder's.
        host: The address to listen on; `127.0.0.1` is this machine alone.
        port: The port of HTTP; 0 is any that is free.
        grpc_port: The port of gRPC; none if left out.
        name: The name of a single model in requests.
        allowed_hosts: Further names by which browsers may call this server, such as a proxy's.
        api_keys: A file of keys, one a line, of which a request for a translation, and every call
            of gRPC, needs one. Without the file everybody may ask.
        open_aligner: Opens the alignments of a run directory, which place markup and show on the
            page the words that belong together. Exports have none.

    Raises:
        ValueError: An argument is wrong, or an export is damaged.
        OSError: A port is taken.
    """
    paths = _named(places, name)
    keys = read_keys(api_keys)
    if grpc_port is not None:
        _check_grpc(host, grpc_port)
    with _bound(host, port, "--port") as listener, ExitStack() as exports:
        folders = {name: exports.enter_context(_versions(path)) for name, path in paths.items()}
        models = ServedModels(
            _load(name, versions, _aligner(paths[name], open_aligner))
            for name, versions in folders.items()
        )
        app = application(models, allowed_hosts, keys, host)
        asyncio.run(_run(app, listener, host, grpc_port))


# --- Models and their names -----------------------------------------------------------------------


def _named(places: Sequence[str | Path], name: str | None) -> dict[str, Path]:
    """The paths by the models' names."""
    if name is not None:
        if len(places) > 1:
            raise ValueError("--name is for one model; name several as NAME=RUN_OR_EXPORT")
        return {_checked(name): Path(places[0])}
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


def split_name(place: str) -> tuple[str, Path]:
    """Return the name and the path of NAME=PATH; the name is empty for a path alone.

    Example:
        >>> split_name("en-de=runs/mine")
        ('en-de', PosixPath('runs/mine'))
        >>> split_name("runs/mine")
        ('', PosixPath('runs/mine'))
    """
    name, sign, path = place.partition("=")
    if not sign or Path(place).exists():
        return "", Path(place)
    return name, Path(path)


def _checked(name: str) -> str:
    if re.fullmatch(NAME, name) and len(name) <= MAX_NAME:
        return name
    raise ValueError(
        f"a model's name, as --name {name[:MAX_NAME]!r}, must have 1 to {MAX_NAME} characters, "
        "and hold neither a slash nor a colon"
    )


def _folder_name(path: Path) -> str:
    """A model's name by default: its folder's, without the version's."""
    path = path.resolve()
    return path.parent.name if path.name.isdecimal() else path.name


@contextmanager
def _versions(path: Path) -> Iterator[list[Path]]:
    """The folders to serve.

    A run is exported for the while, so that a trial runs the artefact to be shipped.
    """
    if not is_run(path):
        yield find_versions(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield [formats.saved_model(path, folder, progress=sys.stderr)]


def _aligner(path: Path, open_aligner: OpenAligner) -> Align | None:
    return open_aligner(path) if is_run(path) else None


def _load(name: str, folders: Sequence[Path], align: Align | None) -> ServedModel:
    with Steps(sys.stderr)(f"loading {', '.join(map(str, folders))}"):
        return ServedModel(name, folders, align)


# --- Listening ------------------------------------------------------------------------------------


def _check_grpc(host: str, port: int) -> None:
    """Say at once, and not after an export, why there can be no gRPC server."""
    if find_spec("tensorflow_serving") is None:
        raise ValueError(
            "gRPC needs tensorflow-serving-api; install it with: pip install 'tfformer[serve]'"
        )
    _bound(host, port, "--grpc-port").close()


def _bound(host: str, port: int, option: str) -> socket.socket:
    """A socket that has its port and does not listen.

    Nobody connects before the models are there: a probe of the port would take the server for
    ready.
    """
    if not 0 <= port < 2**16:
        raise ValueError(f"{option} {port} must be a number from 0 to 65535")
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
        raise OSError(f"{option} {port} on {host}: {reason}; choose another") from None


async def _run(
    app: web.Application, listener: socket.socket, host: str, grpc_port: int | None
) -> None:
    """Answer until the process is told to end."""
    place = f"[{host}]" if ":" in host else host
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=CLOSE_SECONDS)
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        assert runner.server is not None  # after setup
        busy = app[BUSY]
        connections = Connections(runner.server, busy)
        rest = await asyncio.get_running_loop().create_server(connections, sock=listener)
        stack.callback(rest.close)
        if grpc_port is not None:
            await stack.enter_async_context(_grpc(app, place, grpc_port))
        address = f"http://{place}:{listener.getsockname()[1]}/"
        print(f"serving {', '.join(app[MODELS].names)} at {address}", flush=True)
        await _answer_until_told(app[LIFECYCLE].drain)


async def _answer_until_told(drain: Callable[[], Awaitable[None]]) -> None:
    """Wait for SIGINT (Ctrl-C) or SIGTERM and drain.

    A second signal ends the draining.
    """
    signals: asyncio.Queue[int] = asyncio.Queue()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signals.put_nowait, number)
    await signals.get()
    ends = [asyncio.ensure_future(drain()), asyncio.create_task(signals.get())]
    _, late = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()


@asynccontextmanager
async def _grpc(app: web.Application, place: str, port: int) -> AsyncIterator[None]:
    from tfformer.serving import grpc_service

    service = grpc_service.PredictionService(app[MODELS], app[QUEUE], app[LIFECYCLE], app[API_KEYS])
    server, bound = await grpc_service.start(service, place, port, MAX_BYTES)
    print(f"gRPC at {place}:{bound}", flush=True)
    try:
        yield
    finally:
        await server.stop(CLOSE_SECONDS)
