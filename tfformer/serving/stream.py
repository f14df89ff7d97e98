"""The route that gives a translation sentence by sentence, as server-sent events."""

import json

from aiohttp import web

from tfformer.serving.application_keys import MODELS, TRANSLATIONS
from tfformer.serving.errors import RequestError
from tfformer.serving.languages import Direction, Directions
from tfformer.serving.libretranslate import find_direction, read_allowed_fields
from tfformer.serving.request_fields import Fields

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

    The last event is `end` or `error`.
    """
    fields = await read_allowed_fields(request)
    text = fields.text("q")
    direction = await _direction(request, fields, text)
    response = web.StreamResponse(headers=HEADERS)
    try:
        async for piece in request.app[TRANSLATIONS].pieces(direction, text):
            await response.prepare(request)
            await response.write(_event("piece", piece._asdict()))
    except RequestError as error:
        if not response.prepared:
            raise
        await response.write(_event("error", {"error": str(error)}))
        return response
    await response.prepare(request)
    await response.write(_event("end", {}))
    return response


async def _direction(request: web.Request, fields: Fields, text: str) -> Direction:
    """The direction of the model that the request names, or else of its languages."""
    if "model" in fields:
        return Directions.of(request.app[MODELS].model(fields.text("model")))
    return (await find_direction(request, fields, text))[0]


def _event(name: str, content: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
