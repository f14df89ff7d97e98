"""Metrics in the format of Prometheus, and the routes for whoever watches the server."""

from collections.abc import Callable

from fastapi import APIRouter, Request, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from pydantic import BaseModel

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SENTENCES = (1, 2, 4, 8, 16, 32, 64)

router = APIRouter(tags=["Monitoring"])


class Metrics:
    """The metrics of one server.

    Example:
        >>> metrics = Metrics()
        >>> metrics.batch_done("en-de", sentences=3, tokens=24, seconds=0.2)
        >>> 'tfformer_tokens_total{model="en-de"} 24.0' in metrics.text().decode()
        True
    """

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        ProcessCollector(registry=registry)  # memory, processor time, open files
        self._requests = Counter(
            "tfformer_requests",
            "Answered requests.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "tfformer_request_duration_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=registry,
        )
        self._under_way = Gauge(
            "tfformer_requests_under_way", "Requests without an answer yet.", registry=registry
        )
        self._sentences = Counter(
            "tfformer_sentences", "Sentences that a model processed.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "tfformer_tokens",
            "Tokens of a model's translations, or of the texts that it scored.",
            ["model"],
            registry=registry,
        )
        self._batches = Histogram(
            "tfformer_batch_sentences",
            "Sentences per batch.",
            ["model"],
            buckets=SENTENCES,
            registry=registry,
        )
        self._batch_seconds = Histogram(
            "tfformer_batch_duration_seconds",
            "Time of a model per batch.",
            ["model"],
            buckets=SECONDS,
            registry=registry,
        )
        self._cache = Counter(
            "tfformer_cache_sentences",
            "Sentences looked up in the cache, by result.",
            ["result"],
            registry=registry,
        )

    def watch(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a metric, such as `tfformer_queue_sentences`, that is computed at each scrape."""
        Gauge(name, description, registry=self._registry).set_function(value)

    def request_begun(self) -> None:
        """Count a request as under way."""
        self._under_way.inc()

    def request_done(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answered request, from its head to the end of its answer.

        `route` is the path, with parameter names for its variable parts.
        """
        self._under_way.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_done(self, model: str, sentences: int, tokens: int, seconds: float) -> None:
        """Count a batch of sentences and the tokens of their translations."""
        self._sentences.labels(model).inc(sentences)
        self._tokens.labels(model).inc(tokens)
        self._batches.labels(model).observe(sentences)
        self._batch_seconds.labels(model).observe(seconds)

    def cache_asked(self, hits: int, misses: int) -> None:
        """Count sentences in the cache, and sentences that a model had to translate."""
        self._cache.labels("hit").inc(hits)
        self._cache.labels("miss").inc(misses)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self._registry)


class Health(BaseModel):
    """The state of the server."""

    status: str


@router.get("/healthz", summary="Tell whether the server is alive")
@router.get("/readyz", summary="Tell whether the server accepts requests")
@router.get("/health", summary="Tell whether the server is alive, under LibreTranslate's name")
async def health() -> Health:
    """Answer; the server listens from when its models are loaded until it begins to shut down."""
    return Health(status="ok")


@router.get("/metrics", summary="Show the metrics for Prometheus", response_class=Response)
async def metrics(request: Request) -> Response:
    """Return requests, their time, the queue, sentences, tokens, the cache and memory."""
    return Response(request.app.state.serving.metrics.text(), media_type=CONTENT_TYPE_LATEST)
