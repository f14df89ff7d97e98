"""Concurrent requests, with scripted models."""

import asyncio
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tfformer.serving.errors import RequestError
from tfformer.serving.request_queue import WAIT, WAITS, RequestQueue


def scripted(run) -> SimpleNamespace:
    return SimpleNamespace(run=run)


def strings(*values: str) -> dict[str, np.ndarray]:
    return {"text": np.array([value.encode() for value in values], object)}


async def gather(*requests) -> list:
    """Submit (version, signature, inputs) concurrently; return the outputs or errors of each."""
    batches = RequestQueue()
    loop = asyncio.create_task(batches.run())
    try:
        return await asyncio.gather(
            *(batches.submit(*request) for request in requests), return_exceptions=True
        )
    finally:
        loop.cancel()


def test_requests_of_a_kind_run_together_up_to_the_cap_and_each_gets_its_own():
    sizes = []

    def run(signature, inputs):
        sizes.append((signature, len(inputs["text"])))
        return {"found": inputs["text"]}

    version = scripted(run)
    requests = [(version, "a", strings(*[str(n)] * 20)) for n in range(4)] + [
        (version, "b", strings("b", "c"))
    ]
    answers = asyncio.run(gather(*requests))
    assert sizes == [("a", 60), ("a", 20), ("b", 2)]
    assert [list(answer["found"]) for answer in answers] == [
        list(inputs["text"]) for _, _, inputs in requests
    ]


def test_a_batch_waits_as_long_as_requests_keep_arriving_but_not_forever():
    """Requests arrive at half the interval for which a batch waits."""
    sizes = []

    def run(signature, inputs):
        sizes.append(len(inputs["text"]))
        return {"found": inputs["text"]}

    async def scenario(count: int) -> None:
        queue, version = RequestQueue(), scripted(run)
        loop = asyncio.create_task(queue.run())

        async def arrive(number: int) -> None:
            await asyncio.sleep(number * WAIT / 2)
            await queue.submit(version, "a", strings("x"))

        await asyncio.gather(*map(arrive, range(count)))
        loop.cancel()

    asyncio.run(scenario(4))
    assert sizes == [4]
    asyncio.run(scenario(6 * WAITS))
    assert sum(sizes) == 4 + 6 * WAITS
    assert len(sizes) > 2


def test_ids_of_different_lengths_do_not_run_together():
    def run(signature, inputs):
        return {"shape": np.full(len(inputs["ids"]), inputs["ids"].shape[1])}

    version = scripted(run)
    requests = [(version, "a", {"ids": np.zeros((1, width), np.int32)}) for width in (3, 4, 3)]
    answers = asyncio.run(gather(*requests))
    assert [answer["shape"].tolist() for answer in answers] == [[3], [4], [3]]


def test_requests_whose_callers_have_gone_do_not_count():
    """200 callers give up while the first request runs. The queue is then empty again."""
    started, go_on = threading.Event(), threading.Event()
    rows = []

    def run(signature, inputs):
        started.set()
        assert go_on.wait(30)
        rows.append(len(inputs["text"]))
        return {"found": inputs["text"]}

    async def scenario():
        queue, version = RequestQueue(), scripted(run)
        loop = asyncio.create_task(queue.run())
        first = asyncio.create_task(queue.submit(version, "a", strings("first")))
        assert await asyncio.to_thread(started.wait, 30)
        gone = [asyncio.create_task(queue.submit(version, "a", strings("x"))) for _ in range(200)]
        async with asyncio.timeout(30):
            while queue.sentences < len(gone):
                await asyncio.sleep(0)
        for task in gone:
            task.cancel()
        await asyncio.gather(*gone, return_exceptions=True)
        assert queue.sentences == 0
        last = asyncio.create_task(queue.submit(version, "a", strings(*"y" * 64)))
        go_on.set()
        await asyncio.gather(first, last)
        loop.cancel()

    asyncio.run(scenario())
    assert rows == [1, 64]


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 2)])
def test_an_output_without_the_batch_is_refused_by_name(shape):
    version = scripted(lambda signature, inputs: {"log_prob": np.zeros(shape)})
    answers = asyncio.run(gather(*[(version, "a", strings("x", "y"))] * 2))
    for answer in answers:
        assert isinstance(answer, RequestError)
        assert "output log_prob has the shape" in str(answer)


def test_one_that_fails_takes_no_other_with_it():
    def run(signature, inputs):
        if b"bad" in inputs["text"]:
            raise ValueError("bad text")
        return {"found": inputs["text"]}

    version = scripted(run)
    good, bad, third = asyncio.run(
        gather(*((version, "a", strings(text)) for text in ("good", "bad", "other")))
    )
    assert isinstance(bad, RequestError)
    assert (str(bad), bad.status) == ("bad text", 400)
    assert good["found"][0] == b"good"
    assert third["found"][0] == b"other"


def test_an_error_that_a_future_refuses_does_not_end_the_queue():
    def fail(*_):
        raise StopIteration

    def run(signature, inputs):
        return {"found": inputs["text"]}

    async def scenario() -> None:
        queue = RequestQueue()
        loop = asyncio.create_task(queue.run())
        with pytest.raises((TypeError, RuntimeError)):  # RuntimeError since Python 3.12
            await asyncio.wait_for(queue.submit(scripted(fail), "a", strings("x")), 5)
        answer = await asyncio.wait_for(queue.submit(scripted(run), "a", strings("y")), 5)
        assert list(answer["found"]) == [b"y"]
        loop.cancel()

    asyncio.run(scenario())
