"""Translation sentence by sentence, continuations of prefixes, and word alignment."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Annotated, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.types import Receive, Scope, Send

from tfformer.engines.engine import CONTINUATIONS
from tfformer.serving.apis.fields import Served, ServerState, described, fields_of
from tfformer.serving.apis.libretranslate import REFUSALS, find_direction
from tfformer.serving.errors import MISTAKE, Error, RequestError
from tfformer.serving.languages import AUTO, UNKNOWN, Direction, Directions
from tfformer.serving.queued_translator import AlignedWords, TranslatedPiece

READ_SECONDS = 30  # timeout for a client to read an event

router = APIRouter(tags=["Stream"], responses=REFUSALS | {404: {"model": Error}})


class Model(BaseModel):
    """Selects the model that answers, by its name, by its languages, or by both."""

    source: str = Field(AUTO, description="The language of the text; auto detects it.")
    target: str = Field("", description="The language of the translation.", examples=["de"])
    model: str = Field(
        "", description="The name of a model; without a target, its first languages are used."
    )
    api_key: str = Field("", description="A key, if the server requires one.")


class Stream(Model):
    """A text to translate sentence by sentence."""

    q: str = Field(description="The text.", examples=["The animal is tired. Where is the station?"])
    format: Literal["text"] = Field("text", description="A stream accepts only plain text.")


class Continue(Model):
    """A sentence with the beginning of its translation."""

    q: str = Field(description="The sentence.", examples=["The animal is tired."])
    prefix: str = Field("", description="The beginning of its translation.", examples=["Das"])
    count: int = Field(CONTINUATIONS, ge=1, le=CONTINUATIONS, description="Maximum number.")


class Continuation(BaseModel):
    """A translation, with the probability of its first token after the prefix."""

    translation: str
    probability: float


class Align(Model):
    """A sentence with its translation."""

    q: str = Field(description="The sentence.", examples=["The animal is tired."])
    translation: str = Field(description="Its translation.", examples=["Das Tier ist müde."])


EVENT = {  # the schema of one event; `data` is JSON
    "type": "object",
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}


class Events(Response):
    """Server-sent events, which are sent as the iterator yields them."""

    media_type = "text/event-stream"

    def __init__(self, events: AsyncIterator[tuple[str, object]], status_code: int = 200) -> None:
        super().__init__(status_code=status_code)  # FastAPI reads the argument's default
        del self.headers["content-length"]
        self.headers["Cache-Control"] = "no-store"
        self.headers["X-Accel-Buffering"] = "no"  # for nginx: send each event at once
        self._events = events

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; disconnect a client that does not read for `READ_SECONDS`."""
        start = {
            "type": "http.response.start",
            "status": self.status_code,
            "headers": self.raw_headers,
        }
        await send(start)
        with suppress(TimeoutError):
            async for name, content in self._events:
                data = json.dumps(content)  # in ASCII: U+2028 would end a line for some clients
                event = f"event: {name}\ndata: {data}\n\n".encode()
                async with asyncio.timeout(READ_SECONDS):
                    await send({"type": "http.response.body", "body": event, "more_body": True})
            await send({"type": "http.response.body", "body": b""})


@router.post(
    "/translate/stream",
    summary="Translate a text and get each sentence as soon as it is ready",
    response_class=Events,
    responses={200: {"content": {Events.media_type: {"schema": EVENT}}}},
    openapi_extra=described(Stream),
)
async def stream(
    request: Request, fields: Annotated[Stream, fields_of(Stream)], state: Served
) -> Events:
    """Answer with one `piece` event for each part of the text.

    The parts, joined, are the text. The last event is `end` or `error`.
    """
    direction = await _direction(state, fields, fields.q)
    pieces = state.translator.pieces(direction, fields.q)
    first = await anext(pieces, None)  # an error up to here gets its HTTP status
    return Events(_events(request, first, pieces))


async def _direction(state: ServerState, fields: Model, text: str) -> Direction:
    directions = state.directions
    if fields.model:
        model = state.models.model(fields.model)
        directions = Directions([model])
        stated = list(directions)
        if not (stated and fields.target):
            return stated[0] if stated else Direction(UNKNOWN, UNKNOWN, model)
    elif not fields.target:
        raise RequestError("the field target is missing")
    return (await find_direction(directions, fields.source, fields.target, text))[0]


async def _events(
    request: Request, first: TranslatedPiece | None, pieces: AsyncIterator[TranslatedPiece]
) -> AsyncIterator[tuple[str, object]]:
    """Yield the names and contents of the events; an error also becomes an event."""
    try:
        if first is not None:
            yield "piece", first._asdict()
        async for piece in pieces:
            yield "piece", piece._asdict()
        yield "end", {}
    except RequestError as error:
        yield "error", {"error": str(error)}
    except Exception:
        logging.getLogger(__name__).exception("%s %s", request.method, request.url.path)
        yield "error", {"error": MISTAKE}


@router.post(
    "/continue",
    summary="Translate a sentence with a given beginning, in several ways",
    openapi_extra=described(Continue),
)
async def continue_prefix(
    fields: Annotated[Continue, fields_of(Continue)], state: Served
) -> list[Continuation]:
    """Return translations that begin with the prefix and differ in the token after it.

    The most probable comes first; it is the greedy translation with this prefix.
    """
    direction = await _direction(state, fields, fields.q)
    found = await state.translator.continuations(direction, fields.q, fields.prefix)
    return [
        Continuation(translation=text, probability=probability)
        for text, probability in found[: fields.count]
    ]


@router.post(
    "/align",
    summary="Align the words of a sentence with the words of its translation",
    openapi_extra=described(Align),
)
async def align(fields: Annotated[Align, fields_of(Align)], state: Served) -> AlignedWords:
    """Return the alignment, computed from the model's attention, and the words' probabilities.

    Both are empty for a CTranslate2 export, and for a sentence longer than the model's limit.
    """
    direction = await _direction(state, fields, fields.q)
    return await state.translator.aligned(direction, fields.q, fields.translation)
