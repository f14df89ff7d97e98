"""Connections: their limits, and the answer to a client that speaks no HTTP.

Idle ones make room for new ones, and a full server says so.
"""

import asyncio
import json
from collections.abc import Collection

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError, LineTooLong

from tfformer.serving.browser_guard import HEADERS

MAX_CONNECTIONS = 512  # half of the 1,024 files that a process may usually open
IDLE_SECONDS = 30  # without a whole request
FULL = f"{MAX_CONNECTIONS} connections are at work; try again later"


class Connections:
    """A factory of connections for `loop.create_server`, with a limit.

    Where the limit is reached, the connection that has been idle longest is closed for the new one.
    Where none is idle, the new one is answered with 503. So no number of silent clients stops the
    server.

    Args:
        server: Aiohttp's server, which makes the connections.
        busy: The connections that have a request under way.
    """

    def __init__(self, server: web.Server, busy: Collection[asyncio.BaseProtocol]) -> None:
        self._server = server
        self._busy = busy
        self._closing: set[asyncio.BaseProtocol] = set()

    def __call__(self) -> asyncio.Protocol:
        """Return a new connection."""
        self._closing &= set(self._server.connections)
        there = [one for one in self._server.connections if one not in self._closing]
        if len(there) >= MAX_CONNECTIONS:
            idle = next((one for one in there if one not in self._busy), None)  # oldest first
            if idle is None:
                return _FullServer()
            self._closing.add(idle)
            idle.force_close()
        loop = asyncio.get_running_loop()
        return _Connection(self._server, loop=loop, keepalive_timeout=IDLE_SECONDS)


class _Connection(web.RequestHandler):
    """A connection that answers broken HTTP with 400 and its reason.

    Aiohttp's own would write a traceback into the log, as of a mistake of the server.
    """

    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Return the answer to an error that came before the application, or behind it.

        Args:
            request: The request, as far as it was read.
            status: The status of an error of the server's own.
            exc: The error; one of HTTP is the client's.
            message: The text of an error of the server's own.
        """
        if not isinstance(exc, HttpProcessingError):
            return super().handle_error(request, status, exc, message)
        remedy = "; send long texts in the body" if isinstance(exc, LineTooLong) else ""
        reason = f"the request cannot be read: {' '.join(exc.message.split())}{remedy}"
        answer = web.json_response({"error": reason}, status=400, headers=HEADERS)
        answer.force_close()
        return answer


class _FullServer(asyncio.Protocol):
    """A connection that is answered with 503 and closed."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        body = json.dumps({"error": f"the server is full: {FULL}"})
        lines = (
            "HTTP/1.1 503 Service Unavailable",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Retry-After: 1",
            "Connection: close",
            "",
            body,
        )
        transport.write("\r\n".join(lines).encode())
        transport.write_eof()
        # A socket that is closed with a request unread would take the answer with it.
        asyncio.get_running_loop().call_later(1, transport.close)
