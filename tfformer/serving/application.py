"""The web application: its routes, and what happens around every request."""

import asyncio
import logging
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tfformer import __version__
from tfformer.serving import pages
from tfformer.serving.apis import deepl, glossaries, libretranslate, stream, tf_serving
from tfformer.serving.apis.fields import MAX_BYTES, ServerState
from tfformer.serving.errors import MISTAKE, RequestError, add_error_answers, error_answer
from tfformer.serving.security import HEADERS, HostGuard
from tfformer.serving.served_models import ServedModels

DESCRIPTION = (
    "Translation by the models of this server. Clients of LibreTranslate, DeepL and TensorFlow "
    "Serving work unchanged. A text may have any number of sentences; whitespace and line ends "
    "are preserved."
)
HEALTH = {
    "/healthz": "is alive",
    "/readyz": "accepts requests",
    "/health": "is alive, under LibreTranslate's name",
}
TAGS = {
    "LibreTranslate": "Text in, text out; compatible with LibreTranslate.",
    "DeepL": "Text in, text out; compatible with version 2 of DeepL's API.",
    "Stream": "Translations sentence by sentence, with word alignments.",
    "TensorFlow Serving": "Single sentences and token ids, as in TensorFlow Serving's REST API.",
    "Monitoring": "For load balancers.",
}


def application(
    models: ServedModels,
    hosts: Collection[str] = (),
    keys: Collection[str] = (),
    listening_host: str = "localhost",
) -> FastAPI:
    """Return the application, without a socket.

    `hosts` are further host names under which browsers may reach this server, besides IP addresses,
    localhost and `listening_host`. With an empty collection of API keys, requests need no key.
    """
    state = ServerState(models, keys)
    app = FastAPI(
        title="tfformer serve",
        version=__version__,
        description=DESCRIPTION,
        openapi_tags=[{"name": name, "description": text} for name, text in TAGS.items()],
        docs_url=None,  # FastAPI's page loads scripts from a CDN; ours is in pages.py
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.serving = state
    for api in (libretranslate, deepl, glossaries, stream, tf_serving, pages):
        app.include_router(api.router)
    for path, question in HEALTH.items():
        app.get(path, summary=f"Tell whether the server {question}", tags=["Monitoring"])(_health)
        app.head(path, include_in_schema=False)(_health)
    add_error_answers(app)
    app.add_middleware(_AroundRequest, guard=HostGuard(hosts, listening_host))
    app.openapi = lambda: pages.description(app)  # type: ignore[method-assign]
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state: ServerState = app.state.serving
    tasks = [asyncio.create_task(state.queue.run()), asyncio.create_task(state.models.watch())]
    yield
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    state.translator.close()


class Health(BaseModel):
    """The state of the server."""

    status: str


async def _health() -> Health:
    """Answer "ok": the server only listens once its models are loaded."""
    return Health(status="ok")


class _AroundRequest:
    """Checks the sender, adds headers, and answers unexpected errors with 500.

    When the client disconnects, its work is cancelled.
    """

    def __init__(self, app: ASGIApp, guard: HostGuard) -> None:
        self._app = app
        self._guard = guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_with_headers(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._guard.check(scope["method"], Headers(scope=scope))
            await _while_connected(self._app, scope, receive, send_with_headers)
        except RequestError as error:
            answer = error_answer(scope["path"], error.status, str(error))
            await answer(scope, receive, send_with_headers)
        except ClientDisconnect:  # within the request's body
            pass
        except Exception:
            logging.getLogger(__name__).exception("%s %s", scope["method"], scope["path"])
            if not has_begun:
                answer = error_answer(scope["path"], 500, MISTAKE)
                await answer(scope, receive, send_with_headers)


async def _while_connected(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run the application; cancel it if the client disconnects before it has the answer.

    A body of more than `MAX_BYTES` is refused.
    """
    body_read = asyncio.Event()
    size = 0

    async def receive_body() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > MAX_BYTES:
            raise RequestError(
                f"the body has more than {MAX_BYTES} bytes; send less at a time", 413
            )
        if not message.get("more_body"):
            body_read.set()
        return message

    async def until_gone() -> None:
        await body_read.wait()
        while (await receive())["type"] != "http.disconnect":
            pass

    work = asyncio.ensure_future(app(scope, receive_body, send))
    gone = asyncio.create_task(until_gone())
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not work.done():
            work.cancel()
    with suppress(asyncio.CancelledError):
        await work
