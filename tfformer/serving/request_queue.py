"""Requests that arrive together are run together, in one thread, and each gets its own rows. Knows no network."""

import asyncio
from collections.abc import Hashable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tfformer.serving.model import MAX_SENTENCES, Arrays, Refused, Version

WAIT = 0.005  # seconds for others to arrive
MAX_WAITING = 1024  # sentences in the queue


@dataclass(eq=False)
class _Request:
    version: Version
    signature: str
    inputs: Arrays
    answer: asyncio.Future

    @property
    def size(self) -> int:
        return len(next(iter(self.inputs.values())))

    @property
    def group(self) -> Hashable:
        """What requests must have in common to be put together."""
        return (
            self.version,
            self.signature,
            tuple(sorted((name, v.shape[1:]) for name, v in self.inputs.items())),
        )


class Batches:
    """A queue of requests and the loop that empties it."""

    def __init__(self):
        self._waiting: list[_Request] = []
        self._arrived = asyncio.Event()

    async def submit(self, version: Version, signature: str, inputs: Arrays) -> Arrays:
        """Checked inputs -> their outputs, when their turn has come."""
        request = _Request(version, signature, inputs, asyncio.get_running_loop().create_future())
        ahead = sum(other.size for other in self._waiting)
        if ahead + request.size > MAX_WAITING:
            raise Refused(
                "UNAVAILABLE", f"the queue is full: {ahead} sentences are waiting; try again later"
            )
        self._waiting.append(request)
        self._arrived.set()
        return await request.answer

    async def run(self) -> None:
        """Answer requests until cancelled."""
        with ThreadPoolExecutor(1) as worker:
            while True:
                await self._arrived.wait()
                await asyncio.sleep(WAIT)
                batch = self._take()
                answers = await asyncio.get_running_loop().run_in_executor(worker, _run, batch)
                for request, answer in zip(batch, answers, strict=True):
                    _give(request.answer, answer)

    def _take(self) -> list[_Request]:
        """Remove from the queue the first request and what fits in with it; none whose caller has gone."""
        waiting = [request for request in self._waiting if not request.answer.done()]
        batch, self._waiting, size = [], [], 0
        for request in waiting:
            if not batch or (
                request.group == batch[0].group and size + request.size <= MAX_SENTENCES
            ):
                batch.append(request)
                size += request.size
            else:
                self._waiting.append(request)
        if not self._waiting:
            self._arrived.clear()
        return batch


def _run(batch: list[_Request]) -> list[Arrays | Exception]:
    """An answer or an error for each request; where they fail together, each is run alone, as one may be to blame."""
    try:
        return _run_together(batch) if batch else []
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [answer for request in batch for answer in _run([request])]


def _run_together(batch: list[_Request]) -> list[Arrays]:
    first = batch[0]
    inputs = {
        name: np.concatenate([request.inputs[name] for request in batch]) for name in first.inputs
    }
    outputs = first.version.run(first.signature, inputs)
    ends = np.cumsum([request.size for request in batch])[:-1]
    rows = {name: np.split(values, ends) for name, values in outputs.items()}
    return [{name: parts[n] for name, parts in rows.items()} for n in range(len(batch))]


def _give(answer: asyncio.Future, value: Arrays | Exception) -> None:
    if answer.done():  # the caller has gone
        return
    if isinstance(value, Exception):
        answer.set_exception(value)
    else:
        answer.set_result(value)
