"""The way of a server to its end.

It refuses new requests and answers those under way.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tfformer.serving.errors import RequestError

DRAIN_SECONDS = 20  # for the requests under way; Kubernetes kills a process after 30


class Lifecycle:
    """Counts the requests under way, and refuses new ones once the server is to end.

    Example:
        >>> lifecycle = Lifecycle()
        >>> with lifecycle.request():
        ...     lifecycle.under_way
        1
        >>> asyncio.run(lifecycle.drain())
        >>> lifecycle.is_draining
        True
    """

    def __init__(self) -> None:
        self.under_way = 0
        self.is_draining = False
        self._idle = asyncio.Event()
        self._idle.set()

    @contextmanager
    def request(self) -> Iterator[None]:
        """Count a request for as long as it is under way.

        Raises:
            RequestError: The server is about to end.
        """
        if self.is_draining:
            raise RequestError("UNAVAILABLE", "the server is about to end; ask another, or later")
        self.under_way += 1
        self._idle.clear()
        try:
            yield
        finally:
            self.under_way -= 1
            if not self.under_way:
                self._idle.set()

    async def drain(self) -> None:
        """Refuse new requests, and wait up to `DRAIN_SECONDS` for those under way."""
        self.is_draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), DRAIN_SECONDS)
