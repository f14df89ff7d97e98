"""The route that gives a translation sentence by sentence, as server-sent events."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress

from aiohttp import web

from tfformer.serving.application_keys import TRANSLATIONS
from tfformer.serving.body import text_blocks
from tfformer.serving.errors import MISTAKE, RequestError
from tfformer.serving.languages import Direction
from tfformer.serving.libretranslate import allowed_query, named_direction, read_allowed_fields
from tfformer.serving.request_fields import Fields

PLAIN_TEXT = "text/plain"
READ_SECONDS = 30  # for a client to make room for an event
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",  # a proxy, such as nginx, must not collect the events
}


def add_routes(app: web.Application) -> None:
    """Add the stream."""
    app.router.add_post("/translate/stream", _stream)


async def _stream(request: web.Request) -> web.StreamResponse:
    """Answer with an event `piece` for each stretch of the text.

    The last event is `end` or `error`. The text is the field `q`; or the body, which may be of any
    length, as it is translated while it arrives.
    """
    if request.content_type == PLAIN_TEXT:
        fields = allowed_query(request)
        text = text_blocks(request)
    else:
        fields = await read_allowed_fields(request)
        text = _given(fields.text("q"))
    _check_format(fields)
    beginning = await anext(text)
    direction = await named_direction(request, fields, beginning)
    response = web.StreamResponse(headers=HEADERS)
    with suppress(ConnectionError):  # the client has gone
        async for name, content in _events(request, direction, _with(beginning, text)):
            await response.prepare(request)
            await _write(request, response, name, content)
    return response


def _check_format(fields: Fields) -> None:
    """Raise RequestError if the text is in another format than a stream divides."""
    if (format := fields.text("format", "text")) != "text":
        raise RequestError(
            "INVALID_ARGUMENT",
            f"the field format must be text in a stream; it is {format[:20]!r}. POST /translate "
            "takes html",
        )


async def _given(text: str) -> AsyncIterator[str]:
    yield text


async def _with(beginning: str, text: AsyncIterator[str]) -> AsyncIterator[str]:
    yield beginning
    async for block in text:
        yield block


async def _events(
    request: web.Request, direction: Direction, text: AsyncIterator[str]
) -> AsyncIterator[tuple[str, object]]:
    """Yield names and contents.

    An error is an event too, unless it is the first: HTTP's head, with its status, is sent before
    the first event and must not come twice.
    """
    has_begun = False
    try:
        async for block in text:
            async for piece in request.app[TRANSLATIONS].pieces(direction, block):
                has_begun = True
                yield "piece", piece._asdict()
    except Exception as error:
        if not has_begun:
            raise
        yield "error", {"error": _reason(request, error)}
        return
    yield "end", {}


async def _write(
    request: web.Request, response: web.StreamResponse, name: str, content: object
) -> None:
    """Write an event.

    Raises:
        ConnectionError: The client has gone, or has read nothing for `READ_SECONDS`.
    """
    try:
        async with asyncio.timeout(READ_SECONDS):
            await response.write(_event(name, content))
    except TimeoutError:
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionAbortedError("the client does not read") from None


def _reason(request: web.Request, error: Exception) -> str:
    """The reason of a refusal; of a mistake of the server only the log has it."""
    if isinstance(error, RequestError):
        return str(error)
    if isinstance(error, web.HTTPException):
        return error.text or error.reason
    logging.getLogger(__name__).error("%s %s", request.method, request.path, exc_info=error)
    return MISTAKE


def _event(name: str, content: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
