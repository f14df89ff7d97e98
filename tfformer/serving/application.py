"""The web application: its routes and the steps around every request."""

import asyncio
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import suppress

from aiohttp import web

from tfformer.serving import (
    align,
    deepl,
    health,
    libretranslate,
    openapi,
    page,
    stream,
    tf_serving_api,
)
from tfformer.serving.api_keys import ApiKeys
from tfformer.serving.application_keys import (
    API_KEYS,
    BUSY,
    DIRECTIONS,
    GUARD,
    LIFECYCLE,
    METRICS,
    MODELS,
    QUEUE,
    TRANSLATIONS,
    USAGE,
)
from tfformer.serving.body import MAX_BYTES
from tfformer.serving.browser_guard import HostGuard, add_headers
from tfformer.serving.error_answers import Handler, answer_errors
from tfformer.serving.languages import Directions
from tfformer.serving.lifecycle import Lifecycle
from tfformer.serving.metrics import Metrics
from tfformer.serving.model import ServedModels
from tfformer.serving.request_queue import RequestQueue, Runs
from tfformer.serving.translations import Translations
from tfformer.serving.usage import Usage
from tfformer.serving.version import Arrays

CLIENT_GONE = 499  # the usual status in figures for a client that did not wait for its answer


def application(
    models: ServedModels,
    hosts: Collection[str] = (),
    keys: Collection[str] = (),
    own_host: str = "localhost",
) -> web.Application:
    """Return the application, without a socket.

    Args:
        models: The models that answer.
        hosts: Names, beside addresses and localhost, by which browsers may call this server.
        keys: The API keys of which a request needs one; none lets everybody in.
        own_host: The name at which it listens.
    """
    middlewares = [_mark_busy, _measure, answer_errors, _check_sender, _count_under_way]
    app = web.Application(client_max_size=MAX_BYTES, middlewares=middlewares)
    app[MODELS] = models
    app[METRICS] = metrics = Metrics()
    app[QUEUE] = queue = _queue(models, metrics)
    app[API_KEYS] = ApiKeys(keys)
    app[DIRECTIONS] = Directions(models)
    app[TRANSLATIONS] = Translations(queue, metrics)
    app[USAGE] = Usage()
    app[LIFECYCLE] = lifecycle = Lifecycle()
    app[GUARD] = HostGuard(hosts, own_host)
    app[BUSY] = set()
    metrics.watch("tfformer_queue_sentences", "Sentences that wait.", lambda: queue.sentences)
    metrics.watch("tfformer_requests_under_way", "Requests.", lambda: lifecycle.under_way)
    app.on_response_prepare.append(add_headers)
    app.cleanup_ctx.append(_run_queue)
    for room in (page, health, tf_serving_api, libretranslate, deepl, stream, align, openapi):
        room.add_routes(app)
    return app


def _queue(models: ServedModels, metrics: Metrics) -> RequestQueue:
    """A queue whose work is among the figures."""

    def observe(version: Runs, sentences: int, answers: Sequence[Arrays], seconds: float) -> None:
        tokens = sum(map(version.tokens_of, answers))
        metrics.batch_done(models.name_of(version), sentences, tokens, seconds)

    return RequestQueue(observe)


async def _run_queue(app: web.Application) -> AsyncIterator[None]:
    task = asyncio.create_task(app[QUEUE].run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    app[TRANSLATIONS].close()


# --- Around every request, from the outside inwards -----------------------------------------------


@web.middleware
async def _mark_busy(request: web.Request, handler: Handler) -> web.StreamResponse:
    busy = request.app[BUSY]
    busy.add(request.protocol)
    try:
        return await handler(request)
    finally:
        busy.discard(request.protocol)


@web.middleware
async def _measure(request: web.Request, handler: Handler) -> web.StreamResponse:
    start = time.perf_counter()
    status = CLIENT_GONE
    try:
        response = await handler(request)
        status = response.status
        return response
    finally:
        seconds = time.perf_counter() - start
        request.app[METRICS].request_done(*_method_and_route(request), status, seconds)


def _method_and_route(request: web.Request) -> tuple[str, str]:
    """The route with names in place of its variable parts.

    So the figures stay few.
    """
    resource = request.match_info.route.resource
    if resource is None:
        return "unknown", "unknown"
    return request.method, resource.canonical


@web.middleware
async def _check_sender(request: web.Request, handler: Handler) -> web.StreamResponse:
    request.app[GUARD].check(request)
    return await handler(request)


@web.middleware
async def _count_under_way(request: web.Request, handler: Handler) -> web.StreamResponse:
    if request.path in health.WATCHED:
        return await handler(request)
    with request.app[LIFECYCLE].request():
        return await handler(request)
