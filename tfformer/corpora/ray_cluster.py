"""Workers that are actors of a Ray cluster, each with one processor.

Ray places them, and says when one is lost with its machine. All machines must see the corpus and
the output, and a model that has no address, under the same paths.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from tfformer.corpora import workers
from tfformer.corpora.engines import Model, load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, translate_part
from tfformer.corpora.workers import MAX_DEATHS, Report, Worker, WorkersError
from tfformer.ray_connection import Head, check_version, connected, reason
from tfformer.version import __version__


class PartTranslator:
    """A worker's process: it loads the model once and takes one part after the other."""

    def __init__(self) -> None:
        self._counts = Counts()

    def prepare(self, version: str) -> None:
        """Raise ValueError if the job was begun with another version of the package."""
        check_version(version)

    def translate(self, model: Model, part: Part) -> Counts:
        """Translate a part; see `translate_part`."""
        self._counts = Counts()
        return translate_part(_engine(model), part, self._advance)

    def _advance(self, counts: Counts) -> None:
        self._counts = self._counts.plus(counts)

    def counts(self) -> Counts:
        """Return the figures of its part so far."""
        return self._counts


_engine = functools.cache(load_engine)


def translate_parts(
    address: str,
    model: Model,
    parts: Sequence[Part],
    count: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts on a cluster.

    Args:
        address: As in `ray_connection.connected`.
        model: A run or an export.
        parts: The files.
        count: Number of workers, each of which loads the model and has one processor. Those for
            which no processor is free begin when there is one.
        report: As in `workers.translate_parts`.

    Returns:
        The sums of all parts; see `workers.translate_parts` for more errors.

    Raises:
        ValueError: Ray is not installed, or a machine has another version of this package.
        ConnectionError: There is no cluster at `address`, or its head is lost.
    """
    if not parts:
        return Counts()
    ray = connected(address, log_to_driver=False)
    try:
        # A second thread answers for the figures.
        actor = ray.remote(num_cpus=1, max_concurrency=2)(PartTranslator)
        actors = [_Actor(actor, ray.exceptions, model) for _ in range(count)]
        # No link is followed: the name of a file says whether it is packed.
        absolute = [Part(*(path.absolute() for path in part)) for part in parts]
        head = Head(ray)

        def report_and_look(counts: Counts) -> None:
            report(counts)
            head.check()

        return workers.translate_parts(actors, absolute, report_and_look)
    finally:
        ray.shutdown()


class _Actor(Worker):
    """An actor, and another where it is lost."""

    def __init__(self, actor: Any, errors: Any, model: Model) -> None:
        super().__init__()
        self.model = model
        self._new_actor = actor.remote
        self._errors = errors  # Ray's
        self._starts = 0  # in a row without success
        self._last = Counts()
        self._asked: Future[Counts] = Future()
        self._restart()

    @property
    def is_free(self) -> bool:
        """Whether it can begin a part now: Ray has found a processor for it."""
        if not (super().is_free and self._prepared.done()):
            return False
        error = self._prepared.exception()
        if error is None:
            self._starts = 0
            return True
        if self._fault(error) is not None or self._starts == MAX_DEATHS:
            raise WorkersError(f"a worker cannot begin: {reason(self._fault(error) or error)}")
        self._restart()
        return False

    def counts(self) -> Counts:
        """Return the figures of its part so far, as it last gave them."""
        if self.future is None:
            return Counts()
        if self._asked.done():
            if self._asked.exception() is None:
                self._last = self._asked.result()
            self._asked = self._actor.counts.remote().future()
        return self._last

    def _submitted(self, part: Part) -> Future[Counts]:
        self._last = Counts()
        future: Future[Counts] = self._actor.translate.remote(self.model, part).future()
        self._asked = self._actor.counts.remote().future()
        return future

    def _fault(self, error: BaseException) -> BaseException | None:
        if isinstance(error, self._errors.RayTaskError):
            return error.cause
        return None if isinstance(error, self._errors.RayError) else error

    def _restart(self) -> None:
        self._starts += 1
        self._actor = self._new_actor()
        self._prepared = self._actor.prepare.remote(__version__).future()
