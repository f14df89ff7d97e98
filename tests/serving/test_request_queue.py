"""Requests that arrive together, against scripted models."""

import asyncio
from types import SimpleNamespace

import numpy as np

from tfformer.serving.model import Refused
from tfformer.serving.request_queue import Batches


def scripted(run) -> SimpleNamespace:
    return SimpleNamespace(run=run)


def strings(*values: str) -> dict[str, np.ndarray]:
    return {"text": np.array([value.encode() for value in values], object)}


async def gather(*requests) -> list:
    """Submit (version, signature, inputs) all at once; the outputs, or errors, of each."""
    batches = Batches()
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


def test_ids_of_different_lengths_do_not_run_together():
    def run(signature, inputs):
        return {"shape": np.full(len(inputs["ids"]), inputs["ids"].shape[1])}

    version = scripted(run)
    requests = [(version, "a", {"ids": np.zeros((1, width), np.int32)}) for width in (3, 4, 3)]
    answers = asyncio.run(gather(*requests))
    assert [answer["shape"].tolist() for answer in answers] == [[3], [4], [3]]


def test_one_that_fails_takes_no_other_with_it():
    def run(signature, inputs):
        if b"bad" in inputs["text"]:
            raise Refused("INVALID_ARGUMENT", "bad text")
        return {"found": inputs["text"]}

    version = scripted(run)
    good, bad, other = asyncio.run(
        gather(*((version, "a", strings(text)) for text in ("good", "bad", "other")))
    )
    assert isinstance(bad, Refused)
    assert good["found"][0] == b"good"
    assert other["found"][0] == b"other"
