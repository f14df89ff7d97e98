"""The body of a request, within limits of size and time."""

import asyncio

from aiohttp import web

MAX_BYTES = 2 * 2**20  # in the body of a request
BODY_SECONDS = 30  # for the body of a request to arrive


async def read_body(request: web.Request) -> bytes:
    """Return the body.

    Raises:
        web.HTTPRequestTimeout: It did not arrive within `BODY_SECONDS`.
        web.HTTPRequestEntityTooLarge: It has more than `MAX_BYTES`.
    """
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        raise web.HTTPRequestTimeout(
            text=f"the body did not arrive within {BODY_SECONDS} seconds"
        ) from None
