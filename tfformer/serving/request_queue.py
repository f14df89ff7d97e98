"""Run requests that arrive together as one batch. This module has no code for the network.

A request has 1 to `MAX_SENTENCES` rows and receives only its own rows of the outputs.
"""

import asyncio
from collections.abc import Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from tfformer.engines import Engine
from tfformer.engines.engine import Arrays
from tfformer.serving.errors import RequestError

WAIT = 0.005  # seconds to wait for one more request
WAITS = 4  # maximum waits before a batch runs
MAX_SENTENCES = 64  # per request and per batch
MAX_WAITING = 1024  # sentences in the queue


@dataclass(eq=False)
class _Request:
    version: Engine
    signature: str
    inputs: Arrays
    answer: asyncio.Future[Arrays]

    @property
    def size(self) -> int:
        return len(next(iter(self.inputs.values())))

    @property
    def group(self) -> Hashable:
        """Requests of one group may run together."""
        shapes = tuple(sorted((name, v.shape[1:]) for name, v in self.inputs.items()))
        return self.version, self.signature, shapes


class RequestQueue:
    """A queue of requests and the loop that empties it."""

    def __init__(self) -> None:
        self._waiting: list[_Request] = []
        self._arrived = asyncio.Event()

    @property
    def sentences(self) -> int:
        """The number of waiting sentences, without running and abandoned requests."""
        return sum(request.size for request in self._waiting)

    async def submit(self, version: Engine, signature: str, inputs: Arrays) -> Arrays:
        """Queue checked inputs for a version's signature, and wait for the outputs.

        RequestError: the queue is full, or the model refuses the inputs.
        """
        request = _Request(version, signature, inputs, asyncio.get_running_loop().create_future())
        ahead = self.sentences
        if ahead + request.size > MAX_WAITING:
            raise RequestError(
                f"the queue is full: {ahead} sentences are waiting; try again later", 503
            )
        self._waiting.append(request)
        self._arrived.set()
        try:
            return await request.answer
        finally:
            if request in self._waiting:  # its caller left before its turn
                self._waiting.remove(request)

    async def run(self) -> None:
        """Answer requests until cancelled. All batches run in one thread, one after the other."""
        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1) as worker:
            while True:
                await self._arrived.wait()
                await self._wait_for_more()
                batch = self._take()
                try:
                    answers = await loop.run_in_executor(worker, _run, batch)
                    for request, answer in zip(batch, answers, strict=True):
                        _give(request.answer, answer)
                except Exception as error:  # the loop must go on, or all later requests would wait
                    for request in batch:
                        _give(request.answer, error)

    async def _wait_for_more(self) -> None:
        """Wait as long as requests keep arriving: a fuller batch costs less per sentence."""
        for _ in range(WAITS):
            before = self.sentences
            await asyncio.sleep(WAIT)
            if self.sentences <= before or self.sentences >= MAX_SENTENCES:
                return

    def _take(self) -> list[_Request]:
        """Remove the first request and as many of its group as fit into one batch."""
        batch: list[_Request] = []
        waiting: list[_Request] = []
        size = 0
        for request in self._waiting:
            joins = not batch or request.group == batch[0].group
            if joins and size + request.size <= MAX_SENTENCES:
                batch.append(request)
                size += request.size
            else:
                waiting.append(request)
        self._waiting = waiting
        if not waiting:
            self._arrived.clear()
        return batch


def _run(batch: list[_Request]) -> Sequence[Arrays | Exception]:
    """Return an answer or an error for each request of a batch.

    If the batch fails, each request runs alone, so that only the faulty one fails.
    """
    try:
        return _run_together(batch)
    except Exception as error:
        if len(batch) == 1:
            return [error]
        return [answer for request in batch for answer in _run([request])]


def _run_together(batch: list[_Request]) -> list[Arrays]:
    first = batch[0]

    def together(name: str) -> np.ndarray:
        return np.concatenate([request.inputs[name] for request in batch])

    inputs = {name: together(name) for name in first.inputs}
    try:
        outputs = first.version.run(first.signature, inputs)
    except ValueError as error:
        raise RequestError(str(error)) from None
    except RuntimeError as error:
        raise RequestError(str(error), 500) from None
    *ends, count = np.cumsum([request.size for request in batch])
    for name, values in outputs.items():
        if values.shape[:1] != (count,):  # a foreign model may return them
            raise RequestError(
                f"output {name} has the shape {values.shape} for {count} rows; export the model "
                "with the batch as the first axis of every output"
            )
    rows = {name: np.split(values, ends) for name, values in outputs.items()}

    def answer(number: int) -> Arrays:
        return {name: arrays[number] for name, arrays in rows.items()}

    return list(map(answer, range(len(batch))))


def _give(answer: asyncio.Future[Arrays], value: Arrays | Exception) -> None:
    if answer.done():  # the caller has gone
        return
    if isinstance(value, Exception):
        answer.set_exception(value)
    else:
        answer.set_result(value)
