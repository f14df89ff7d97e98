"""Figures of the server in the format of Prometheus."""

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
SENTENCES = (1, 2, 4, 8, 16, 32, 64)
CONTENT_TYPE = CONTENT_TYPE_LATEST


class Metrics:
    """The figures of one server.

    Example:
        >>> metrics = Metrics()
        >>> metrics.batch_done("en-de", sentences=3, tokens=24, seconds=0.2)
        >>> 'tfformer_tokens_total{model="en-de"} 24.0' in metrics.text().decode()
        True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)  # memory, processor time, open files
        self._requests = Counter(
            "tfformer_requests",
            "Requests that were answered.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self._seconds = Histogram(
            "tfformer_request_duration_seconds",
            "Time from the head of a request to the end of its answer.",
            ["route"],
            buckets=SECONDS,
            registry=self._registry,
        )
        self._sentences = Counter(
            "tfformer_sentences",
            "Sentences that a model has worked on.",
            ["model"],
            registry=self._registry,
        )
        self._tokens = Counter(
            "tfformer_tokens",
            "Tokens of a model's translations, or of the texts that it scored.",
            ["model"],
            registry=self._registry,
        )
        self._batches = Histogram(
            "tfformer_batch_sentences",
            "Sentences that ran together.",
            ["model"],
            buckets=SENTENCES,
            registry=self._registry,
        )
        self._batch_seconds = Histogram(
            "tfformer_batch_duration_seconds",
            "Time of a model for the sentences that ran together.",
            ["model"],
            buckets=SECONDS,
            registry=self._registry,
        )

        self._cache = Counter(
            "tfformer_cache_sentences",
            "Sentences that the cache was asked for, and whether it knew them.",
            ["result"],
            registry=self._registry,
        )

    def watch(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Add a figure that is read whenever the figures are asked for.

        Args:
            name: Its name, as `tfformer_queue_sentences`.
            description: A sentence about it.
            value: Returns the figure.
        """
        Gauge(name, description, registry=self._registry).set_function(value)

    def request_done(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request.

        Args:
            method: The method of HTTP.
            route: The path with names in place of its variable parts.
            status: The status of HTTP.
            seconds: The time from its head to the end of its answer.
        """
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def batch_done(self, model: str, sentences: int, tokens: int, seconds: float) -> None:
        """Count sentences that ran together.

        Args:
            model: The model's name.
            sentences: Their number.
            tokens: The tokens of their translations.
            seconds: The time that they took together.
        """
        self._sentences.labels(model).inc(sentences)
        self._tokens.labels(model).inc(tokens)
        self._batches.labels(model).observe(sentences)
        self._batch_seconds.labels(model).observe(seconds)

    def cache_asked(self, hits: int, misses: int) -> None:
        """Count sentences that the cache was asked for.

        Args:
            hits: Those that it knew.
            misses: The others.
        """
        self._cache.labels("hit").inc(hits)
        self._cache.labels("miss").inc(misses)

    def text(self) -> bytes:
        """Return all figures, in the format that `CONTENT_TYPE` names."""
        return generate_latest(self._registry)
