"""A server in the test's process for models that reverse sentences of up to seven words."""

import asyncio
import json
import queue
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from types import SimpleNamespace

import numpy as np
import uvicorn
from aiohttp import ClientSession

from tfformer.engines.engine import BEAMS, TEXTS
from tfformer.serving.application import application
from tfformer.serving.served_models import ServedModels


class Scripted(SimpleNamespace):
    """A version without a model; like a real version it is hashable."""

    __hash__ = object.__hash__
    tokenizers = None
    can_align = False
    signatures = {"serving_default": TEXTS, "translate_beam": BEAMS}
    manifest = {}
    tags = ()


def scripted(name: str, version: SimpleNamespace) -> SimpleNamespace:
    """A served model with one version."""
    return SimpleNamespace(
        name=name,
        versions={1: version},
        version=lambda *_: (1, version),
        newest=version,
        reload=lambda: None,
    )


def backwards(name: str, asked: list[str], align=None, **manifest) -> SimpleNamespace:
    """A model that reverses a sentence of up to seven words, and records it in `asked`."""

    def run(signature, inputs):
        texts = [text.decode() for text in inputs["text"]]
        asked.extend(texts)
        turned = [[text[::-1].encode(), text.encode(), b""] for text in texts]
        scores = np.array([[-1.0, -2.0, -1e9]] * len(texts))
        return {"translations": np.array(turned, object), "scores": scores}

    def aligned(sources, targets):
        if align is None:
            raise ValueError("the export has no word alignments")
        return list(map(aligned_words, align(sources, targets), targets))

    target = SimpleNamespace(encode=lambda texts: [[] for _ in texts])
    version = Scripted(
        run=run,
        manifest=manifest,
        languages=manifest.get("languages") or [],
        tokenizers=SimpleNamespace(target=target),
        count_tokens=lambda texts: [len(text.split()) for text in texts],
        max_tokens=7,
        placeholders=[],
        can_align=align is not None,
        nearest_targets=align,
        aligned=aligned,
    )
    return scripted(name, version)


def aligned_words(links, translation: str) -> SimpleNamespace:
    """What an engine's `aligned` returns: a word of N characters has the probability 1 / N."""
    probabilities = np.array([1 / len(word) for word in translation.split()])
    return SimpleNamespace(
        nearest_targets=lambda: links,
        word_confidences=lambda: probabilities,
        log_probs=np.log(probabilities),
        confidence=float(np.exp(np.log(probabilities).mean())) if len(probabilities) else 1.0,
    )


@asynccontextmanager
async def serving(app) -> AsyncIterator[str]:
    """Serve an application in this event loop; yield its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="warning", access_log=False, log_config=None)
        server = uvicorn.Server(config)
        task = asyncio.create_task(server._serve([listener]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = server.force_exit = True
        await task


@asynccontextmanager
async def client_of(app) -> AsyncIterator[ClientSession]:
    """A client of an application that is served in this event loop."""
    async with serving(app) as address, ClientSession(address) as client:
        yield client


@contextmanager
def in_thread(*models) -> Iterator[SimpleNamespace]:
    """Serve models in a thread; yield the server's address as `rest`."""
    addresses: queue.Queue[str] = queue.Queue()
    done = asyncio.Event()

    async def run():
        async with serving(application(ServedModels(models))) as address:
            addresses.put(address)
            await done.wait()

    with asyncio.Runner() as runner:  # which cancels the tasks that are left at the end
        thread = threading.Thread(target=runner.run, args=[run()])
        thread.start()
        try:
            yield SimpleNamespace(rest=addresses.get(timeout=20))
        finally:
            runner.get_loop().call_soon_threadsafe(done.set)
            thread.join()


def with_client(scenario: Callable, *models, keys=()):
    async def run():
        async with client_of(application(ServedModels(models), keys=keys)) as client:
            return await scenario(client)

    return asyncio.run(run())


def posted(models, *requests: tuple[str, dict]) -> list[tuple[int, dict]]:
    """Send paths and bodies to a server of models; return the statuses and JSON of its answers."""

    async def scenario(client):
        answers = []
        for path, body in requests:
            async with client.post(path, json=body) as response:
                answers.append((response.status, await response.json()))
        return answers

    return with_client(scenario, *models)


def events(text: str) -> list[tuple[str, dict]]:
    """The names and data of server-sent events."""
    all_events = []
    for block in text.removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        all_events.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return all_events
