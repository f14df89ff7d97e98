"""A server with TensorFlow Serving's REST API and a page to type into. Knows no search and no training.

For trying and developing on a machine without Docker. Production is TensorFlow Serving itself: see export/serving.
"""

import asyncio
import html
import json
import logging
import re
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from tfformer.export import formats as export
from tfformer.serving import rest_format as serving_json
from tfformer.serving.model import Refused, ServedModel, find_versions
from tfformer.serving.request_queue import Batches

try:
    from aiohttp import web
except ImportError:
    raise ValueError(
        "serving needs aiohttp; install it with: pip install 'tfformer[serve]'"
    ) from None

MODEL = web.AppKey("model", ServedModel)
BATCHES = web.AppKey("batches", Batches)
MAX_BYTES = 2 * 2**20  # in the body of a request
SHUTDOWN_SECONDS = 5  # for the requests that are under way
PAGE = Path(__file__).with_name("serve.html")
PAGE_SIGNATURE = "translate_beam"
NAME_PLACE = "{name}"
NAME = "[^/:]+"
HTTP_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "NOT_FOUND": 404,
    "UNAVAILABLE": 503,
    "INTERNAL": 500,
}


def serve(
    path: str | Path, host: str, port: int, grpc_port: int | None = None, name: str | None = None
) -> None:
    """Serve a run directory or an export until interrupted. Port 0 is any that is free."""
    name = _name(Path(path)) if name is None else name
    if not re.fullmatch(NAME, name):
        raise ValueError(f"--name {name!r} must not be empty nor hold a slash or a colon")
    if grpc_port is not None:
        _check_grpc(host, grpc_port)
    with _listen(host, port, "--port") as listener, _versions(Path(path)) as folders:
        app = application(ServedModel(name, folders))
        place = f"[{host}]" if ":" in host else host
        app.on_startup.append(_announce(f"http://{place}:{listener.getsockname()[1]}/", name))
        if grpc_port is not None:
            app.cleanup_ctx.append(_grpc(place, grpc_port))
        options = {"handler_cancellation": True, "shutdown_timeout": SHUTDOWN_SECONDS}
        web.run_app(app, sock=listener, print=None, access_log=None, **options)


def _name(path: Path) -> str:
    """What a model is called by default: its folder's name, without the version's."""
    path = path.resolve()
    return path.parent.name if path.name.isdecimal() else path.name


def _check_grpc(host: str, port: int) -> None:
    """Say at once, and not after an export, what stands in the way of a gRPC server."""
    if find_spec("tensorflow_serving") is None:
        raise ValueError(
            "gRPC needs tensorflow-serving-api; install it with: pip install 'tfformer[serve]'"
        )
    _listen(host, port, "--grpc-port").close()


def _listen(host: str, port: int, option: str) -> socket.socket:
    if not 0 <= port < 2**16:
        raise ValueError(f"{option} {port} must be a number from 0 to 65535")
    try:
        return socket.create_server(
            (host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET
        )
    except OSError as error:
        reason = error.strerror.partition(" (")[0]
        raise OSError(f"{option} {port} on {host}: {reason}; choose another") from None


@contextmanager
def _versions(path: Path) -> Iterator[list[Path]]:
    """The folders to serve; a run is exported for the while, so that what is tried is what will be shipped."""
    if not (path / "config.json").is_file():
        yield find_versions(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        print(f"exporting {path}", flush=True)
        yield [export.saved_model(path, folder)]


def application(model: ServedModel) -> web.Application:
    """Everything but the listening."""
    app = web.Application(client_max_size=MAX_BYTES, middlewares=[_answer_errors])
    app[MODEL], app[BATCHES] = model, Batches()
    app.cleanup_ctx.append(_run_batches)
    app.router.add_get("/", _page)
    for version in ("", "/versions/{version:[0-9]{1,18}}", f"/labels/{{label:{NAME}}}"):
        path = f"/v1/models/{{name:{NAME}}}{version}"
        app.router.add_get(path, _status)
        app.router.add_get(f"{path}/metadata", _metadata)
        app.router.add_post(f"{path}:predict", _predict)
    return app


@web.middleware
async def _answer_errors(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Every error as {"error": message}, and none of them the end of the server."""
    try:
        return await handler(request)
    except Refused as refused:
        return _error(HTTP_STATUS[refused.code], str(refused))
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


def _error(code: int, message: str) -> web.Response:
    return web.json_response({"error": message}, status=code)


async def _page(request: web.Request) -> web.Response:
    model = request.app[MODEL]
    if PAGE_SIGNATURE not in model.versions[model.number(model.name)].signatures:
        raise Refused(
            "NOT_FOUND",
            f"{model.name} has no {PAGE_SIGNATURE}, which the page needs; use REST requests",
        )
    page = PAGE.read_text(encoding="utf-8").replace(
        NAME_PLACE, html.escape(request.app[MODEL].name)
    )
    return web.Response(text=page, content_type="text/html")


async def _status(request: web.Request) -> web.Response:
    number = _number(request)
    one = "version" in request.match_info or "label" in request.match_info
    return web.json_response(
        serving_json.status([number] if one else list(request.app[MODEL].versions))
    )


async def _metadata(request: web.Request) -> web.Response:
    return web.json_response(serving_json.metadata(request.app[MODEL], _number(request)))


async def _predict(request: web.Request) -> web.Response:
    version = request.app[MODEL].versions[_number(request)]
    asked = serving_json.read_request(await request.read())
    name = serving_json.signature_name(asked)
    inputs = serving_json.read_inputs(asked, version.signature(name))
    outputs = await request.app[BATCHES].submit(version, name, inputs)
    answer = json.dumps(serving_json.answer(asked, outputs), ensure_ascii=False)
    return web.Response(text=answer, content_type="application/json")


def _number(request: web.Request) -> int:
    """Which version the path means."""
    number = request.match_info.get("version")
    return request.app[MODEL].number(
        request.match_info["name"],
        None if number is None else int(number),
        request.match_info.get("label"),
    )


async def _run_batches(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(app[BATCHES].run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _grpc(place: str, port: int) -> Callable[[web.Application], AsyncIterator[None]]:
    """What starts and stops the gRPC server with the application."""

    async def run(app: web.Application) -> AsyncIterator[None]:
        from tfformer.serving import grpc_service as serving_grpc

        server, bound = await serving_grpc.start(app[MODEL], app[BATCHES], place, port, MAX_BYTES)
        print(f"gRPC at {place}:{bound}", flush=True)
        yield
        await server.stop(SHUTDOWN_SECONDS)

    return run


def _announce(address: str, name: str) -> Callable[[web.Application], Awaitable[None]]:
    """What prints the address when everything is ready."""

    async def announce(app: web.Application) -> None:
        print(f"serving {name} at {address}", flush=True)

    return announce
