"""A server within the test's own process, of models of seven words that give texts backwards."""

import asyncio
import json
from collections.abc import Callable
from types import SimpleNamespace

import numpy as np
from aiohttp.test_utils import TestClient, TestServer
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from tfformer.serving.application import application
from tfformer.serving.model import ServedModels


class Scripted(SimpleNamespace):
    """A version without a model; like a real one it can be a key."""

    __hash__ = object.__hash__


def backwards(name: str, asked: list[str], align=None, **manifest) -> SimpleNamespace:
    """A model of seven words that gives a sentence backwards.

    It notes the sentences that it is asked for.
    """

    def run(signature, inputs):
        texts = [text.decode() for text in inputs["text"]]
        asked.extend(texts)
        turned = [[text[::-1].encode(), text.encode(), b""] for text in texts]
        scores = np.array([[-1.0, -2.0, -1e9]] * len(texts))
        return {"translations": np.array(turned, object), "scores": scores}

    version = Scripted(
        run=run,
        tokens_of=lambda outputs: 0,
        manifest=manifest,
        signatures=dict.fromkeys(("translate_beam", "serving_default"), SignatureDef()),
        count_tokens=lambda texts: [len(text.split()) for text in texts],
        max_tokens=7,
        placeholders=[],
    )
    return SimpleNamespace(
        name=name,
        versions={1: version},
        number=lambda *_: 1,
        newest=version,
        manifest=manifest,
        align=align,
    )


def with_client(scenario: Callable, *models, keys=()):
    async def run():
        app = application(ServedModels(models), keys=keys)
        async with TestClient(TestServer(app)) as client:
            return await scenario(client)

    return asyncio.run(run())


def events(text: str) -> list[tuple[str, dict]]:
    """The names and data of server-sent events."""
    found = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found
