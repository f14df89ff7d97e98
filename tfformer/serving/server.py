"""A server with TensorFlow Serving's REST API and a page to type into.

For trying and developing on a machine without Docker. Production is TensorFlow Serving itself: see
export/serving.
"""

import asyncio
import json
import logging
import re
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tfformer.export import formats
from tfformer.export.steps import Steps
from tfformer.serving import rest_format
from tfformer.serving.errors import MAX_NAME, RequestError
from tfformer.serving.model import ServedModel, find_versions
from tfformer.serving.request_queue import RequestQueue

try:
    from aiohttp import web
except ImportError:
    raise ValueError(
        "serving needs aiohttp; install it with: pip install 'tfformer[serve]'"
    ) from None

from tfformer.serving.browser_guard import HostGuard, add_headers, content_security_policy
from tfformer.serving.connections import IDLE_SECONDS, Connections

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

MODEL = web.AppKey("model", ServedModel)
QUEUE = web.AppKey("queue", RequestQueue)
GUARD = web.AppKey("guard", HostGuard)
BUSY: web.AppKey[set[asyncio.BaseProtocol]] = web.AppKey("busy", set)  # with a request under way
MAX_BYTES = 2 * 2**20  # in the body of a request
BODY_SECONDS = 30  # for the body of a request to arrive
SHUTDOWN_SECONDS = 5  # for the requests that are under way
PAGE = Path(__file__).with_name("serve.html")
PAGE_SIGNATURE = "translate_beam"
DATA_PLACE = "{data}"
NAME = "[^/:]+"
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "NOT_FOUND": 404,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}


def serve(
    path: str | Path,
    host: str,
    port: int,
    grpc_port: int | None = None,
    name: str | None = None,
    allowed_hosts: Collection[str] = (),
) -> None:
    """Serve a run directory or an export until interrupted.

    Args:
        path: a run directory, which is exported for the while; or an export, or one version of it.
        host: the address to listen on; `127.0.0.1` is this machine alone.
        port: the port of REST and the page; 0 is any that is free.
        grpc_port: the port of gRPC; none if left out.
        name: the model's name in requests; the folder's if left out.
        allowed_hosts: further names by which browsers may call this server, such as a proxy's.

    Raises:
        ValueError: an argument is wrong, or the export is damaged.
        OSError: a port is taken.
    """
    name = _name(Path(path)) if name is None else name
    if not re.fullmatch(NAME, name) or len(name) > MAX_NAME:
        raise ValueError(
            f"--name {name[:MAX_NAME]!r} must have 1 to {MAX_NAME} characters, "
            "and hold neither a slash nor a colon"
        )
    if grpc_port is not None:
        _check_grpc(host, grpc_port)
    with _listen(host, port, "--port") as listener, _versions(Path(path)) as folders:
        with Steps(sys.stderr)(f"loading {', '.join(map(str, folders))}"):
            model = ServedModel(name, folders)
        app = application(model, [host, *allowed_hosts])
        asyncio.run(_run(app, listener, host, grpc_port))


def application(model: ServedModel, hosts: Collection[str] = ()) -> web.Application:
    """Return the whole server but the listening.

    Args:
        model: the versions that answer.
        hosts: names, beside addresses and localhost, by which browsers may call this server.
    """
    middlewares = [_mark_busy, _answer_errors, _check_sender]
    app = web.Application(client_max_size=MAX_BYTES, middlewares=middlewares)
    app[MODEL] = model
    app[QUEUE] = RequestQueue()
    app[GUARD] = HostGuard(hosts)
    app[BUSY] = set()
    app.on_response_prepare.append(add_headers)
    app.cleanup_ctx.append(_run_queue)
    app.router.add_get("/", _page)
    for version in ("", "/versions/{version:[0-9]{1,18}}", f"/labels/{{label:{NAME}}}"):
        path = f"/v1/models/{{name:{NAME}}}{version}"
        app.router.add_get(path, _status)
        app.router.add_get(f"{path}/metadata", _metadata)
        app.router.add_post(f"{path}:predict", _predict)
    return app


# --- Listening ------------------------------------------------------------------------------------


def _name(path: Path) -> str:
    """A model's name by default: its folder's, without the version's."""
    path = path.resolve()
    return path.parent.name if path.name.isdecimal() else path.name


def _check_grpc(host: str, port: int) -> None:
    """Say at once, and not after an export, why there can be no gRPC server."""
    if find_spec("tensorflow_serving") is None:
        raise ValueError(
            "gRPC needs tensorflow-serving-api; install it with: pip install 'tfformer[serve]'"
        )
    _listen(host, port, "--grpc-port").close()


def _listen(host: str, port: int, option: str) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"{option} {port} must be a number from 0 to 65535")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        reason = (error.strerror or str(error)).partition(" (")[0]
        raise OSError(f"{option} {port} on {host}: {reason}; choose another") from None


@contextmanager
def _versions(path: Path) -> Iterator[list[Path]]:
    """The folders to serve.

    A run is exported for the while, so that a trial runs the artefact to be shipped.
    """
    if not (path / "config.json").is_file():
        yield find_versions(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        yield [formats.saved_model(path, folder, progress=sys.stderr)]


async def _run(
    app: web.Application, listener: socket.socket, host: str, grpc_port: int | None
) -> None:
    """Answer until the process is told to end."""
    place = f"[{host}]" if ":" in host else host
    runner = web.AppRunner(
        app,
        handler_cancellation=True,
        keepalive_timeout=IDLE_SECONDS,
        shutdown_timeout=SHUTDOWN_SECONDS,
        access_log=None,
    )
    async with AsyncExitStack() as stack:
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        if grpc_port is not None:
            await stack.enter_async_context(_grpc(app, place, grpc_port))
        assert runner.server is not None  # after setup
        busy = app[BUSY]
        connections = Connections(runner.server, busy)
        rest = await asyncio.get_running_loop().create_server(connections, sock=listener)
        stack.callback(rest.close)
        address = f"http://{place}:{listener.getsockname()[1]}/"
        print(f"serving {app[MODEL].name} at {address}", flush=True)
        await _told_to_end()


async def _told_to_end() -> None:
    """Wait for SIGINT (Ctrl-C) or SIGTERM."""
    told = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await told.wait()


@asynccontextmanager
async def _grpc(app: web.Application, place: str, port: int) -> AsyncIterator[None]:
    from tfformer.serving import grpc_service

    server, bound = await grpc_service.start(app[MODEL], app[QUEUE], place, port, MAX_BYTES)
    print(f"gRPC at {place}:{bound}", flush=True)
    try:
        yield
    finally:
        await server.stop(SHUTDOWN_SECONDS)


# --- Around every request -------------------------------------------------------------------------


@web.middleware
async def _mark_busy(request: web.Request, handler: Handler) -> web.StreamResponse:
    busy = request.app[BUSY]
    busy.add(request.protocol)
    try:
        return await handler(request)
    finally:
        busy.discard(request.protocol)


@web.middleware
async def _answer_errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Every error as {"error": message}, and none of them the end of the server."""
    try:
        return await handler(request)
    except RequestError as error:
        return _error(HTTP_STATUS[error.code], str(error))
    except web.HTTPRequestEntityTooLarge:
        return _error(413, f"the body has more than {MAX_BYTES} bytes; send less at a time")
    except (web.HTTPNotFound, web.HTTPMethodNotAllowed):
        status = 400 if request.path.startswith("/v1/") else 404
        return _error(status, f"Malformed request: {request.method} {request.path}")
    except web.RequestPayloadError as error:
        return _error(400, f"the body cannot be read: {error}")
    except web.HTTPException as error:
        return _error(error.status, error.text or error.reason)
    except Exception:
        logging.getLogger(__name__).exception("%s %s", request.method, request.path)
        return _error(500, "the server has made a mistake; its log says which")


@web.middleware
async def _check_sender(request: web.Request, handler: Handler) -> web.StreamResponse:
    request.app[GUARD].check(request)
    return await handler(request)


def _error(code: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=code)


async def _run_queue(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(app[QUEUE].run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


# --- Answers --------------------------------------------------------------------------------------


async def _page(request: web.Request) -> web.Response:
    model = request.app[MODEL]
    number = model.number(model.name)
    if PAGE_SIGNATURE not in model.versions[number].signatures:
        raise RequestError(
            "NOT_FOUND",
            f"{model.name} has no {PAGE_SIGNATURE}, which the page needs; use REST requests",
        )
    manifest = model.versions[number].manifest
    described = {
        "name": model.name,
        "languages": texts(manifest.get("languages")),
        "examples": texts(manifest.get("examples")),
    }
    data = json.dumps(described, ensure_ascii=False).replace("<", "\\u003c")  # ends no script
    page = PAGE.read_text(encoding="utf-8").replace(DATA_PLACE, data)
    headers = {"Content-Security-Policy": content_security_policy(page)}
    return web.Response(text=page, content_type="text/html", headers=headers)


def texts(value: object) -> list[str]:
    """Return a list of strings as it is, and an empty one in place of anything else."""
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return value
    return []


async def _status(request: web.Request) -> web.Response:
    number = _number(request)
    one = "version" in request.match_info or "label" in request.match_info
    numbers = [number] if one else list(request.app[MODEL].versions)
    return web.json_response(rest_format.status(numbers))


async def _metadata(request: web.Request) -> web.Response:
    return web.json_response(rest_format.metadata(request.app[MODEL], _number(request)))


async def _predict(request: web.Request) -> web.Response:
    version = request.app[MODEL].versions[_number(request)]
    asked = rest_format.read_request(await _body(request))
    name = rest_format.signature_name(asked)
    inputs = rest_format.read_inputs(asked, version.signature(name))
    outputs = await request.app[QUEUE].submit(version, name, inputs)
    answer = json.dumps(rest_format.answer(asked, outputs), ensure_ascii=False)
    return web.Response(text=answer, content_type="application/json")


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text=f"the body did not arrive within {BODY_SECONDS} seconds"
        ) from None


def _number(request: web.Request) -> int:
    """The version that the path asks for."""
    number = request.match_info.get("version")
    return request.app[MODEL].number(
        request.match_info["name"],
        None if number is None else int(number),
        request.match_info.get("label"),
    )
