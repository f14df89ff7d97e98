"""The body of a request, within limits of size and time."""

import asyncio
import codecs
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from tfformer.serving.errors import MAX_NAME, RequestError
from tfformer.text.blocks import BLOCK, block_end

MAX_BYTES = 2 * 2**20  # in the body of a request
BODY_SECONDS = 30  # for the body of a request, or a block of a text, to arrive
# Errors of aiohttp's reader of forms in parts: of boundaries, charsets, encodings, ends, headers.
MALFORMED = (ValueError, LookupError, RuntimeError, AssertionError, HttpProcessingError)
UTF_8 = codecs.getincrementaldecoder("utf-8")


async def read_body(request: web.Request) -> bytes:
    """Return the body.

    Raises:
        web.HTTPRequestTimeout: It did not arrive within `BODY_SECONDS`.
        web.HTTPRequestEntityTooLarge: It has more than `MAX_BYTES`.
    """
    async with _in_time():
        return await request.read()


async def read_form(request: web.Request) -> list[tuple[str, str]]:
    """Return the fields, in their order, of a form in parts (`multipart/form-data`).

    Raises:
        web.HTTPRequestTimeout: It did not arrive within `BODY_SECONDS`.
        web.HTTPRequestEntityTooLarge: It has more than `MAX_BYTES`.
        RequestError: It is no such form, or a field is a file.
    """
    try:
        async with _in_time():
            form = await request.post()
    except MALFORMED as error:
        reason = " ".join(str(error).split())
        raise RequestError("INVALID_ARGUMENT", f"the form cannot be read: {reason}") from None
    return [(name, _field_text(name, value)) for name, value in form.items()]


def _field_text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise RequestError(
            "INVALID_ARGUMENT", f"the field {name[:MAX_NAME]} is a file; send its text as the field"
        )
    return value


async def text_blocks(request: web.Request) -> AsyncIterator[str]:
    """Yield the body, a text in UTF-8 of any length, in blocks while it arrives.

    Raises:
        web.HTTPRequestTimeout: A block did not arrive within `BODY_SECONDS`.
        RequestError: The body is not in UTF-8.
    """
    decoder = UTF_8()
    held = ""
    while not request.content.at_eof():
        async with _in_time():
            while len(held) < BLOCK and (part := await request.content.readany()):
                held += _decoded(decoder, part)
        while len(held) >= BLOCK:
            end = block_end(held)
            yield held[:end]
            held = held[end:]
    yield held + _decoded(decoder, b"", final=True)


def _decoded(decoder: codecs.IncrementalDecoder, part: bytes, final: bool = False) -> str:
    try:
        return decoder.decode(part, final)
    except UnicodeDecodeError as error:
        raise RequestError(
            "INVALID_ARGUMENT", f"the text is not UTF-8 ({error.reason}); convert it first"
        ) from None


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            yield
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text=f"the body did not arrive within {BODY_SECONDS} seconds"
        ) from None
