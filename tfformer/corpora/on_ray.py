"""Translates a corpus on a Ray cluster.

Ray Data starts the workers and assigns them one part at a time. The corpus, the output and a local
model must be at the same paths on all machines.
"""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import ray
from ray.data import ActorPoolStrategy, DataContext

from tfformer import __version__
from tfformer.corpora.parts import Advance, Counts, Part, translate_part
from tfformer.corpora.teachers import Teacher
from tfformer.corpora.workers import MAX_DEATHS, SECONDS_A_REPORT, Outcomes, Report, WorkersError
from tfformer.engines import Engine
from tfformer.runtime.ray_cluster import Head, check_version, connect, on_head, reason

AT_ONCE = 8  # maximum concurrent calls to the job
NUMBER = "number"  # the column of the data set: the index of the part
SECONDS_A_MESSAGE = 0.5  # minimum time between a worker's messages

Outcome = Counts | Exception | None  # outcome of a part; None if workers died on it


def translate_parts(
    address: str,
    model: Teacher,
    parts: Sequence[Part],
    count: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts on the cluster at `address`, see `ray_cluster.connect`.

    Each of the `count` workers loads the model and needs one processor; it waits until one is free.
    The other arguments, the result and the errors are those of `workers.translate_parts`. It also
    raises ConnectionError if there is no cluster at `address` or its head is lost.
    """
    if not parts:
        return Counts()
    connect(address, log_to_driver=False)
    try:
        # Symbolic links are not resolved, because a file's name tells whether it is compressed.
        absolute = [Part(p.source.absolute(), p.output.absolute(), p.makes_pairs) for p in parts]
        return _followed(model, absolute, count, report)
    finally:
        ray.shutdown()


def _followed(model: Teacher, parts: Sequence[Part], count: int, report: Report) -> Counts:
    job = on_head(TranslationJob, max_concurrency=AT_ONCE)
    head = Head()
    outcomes = Outcomes(parts)
    over = False
    running = job.run.remote(model, parts, count, __version__)
    try:
        while not over:
            over = bool(ray.wait([running], timeout=SECONDS_A_REPORT)[0])
            news = head.answer(job.news.remote())
            for number, outcome in news.outcomes:
                if outcome is None:
                    outcomes.leave_out(parts[number])
                else:
                    outcomes.add(parts[number], outcome)
            report(outcomes.with_those_under_way(news.under_way))
        ray.get(running)
        return outcomes.sums()
    except ray.exceptions.RayTaskError as error:
        raise WorkersError(f"a worker cannot start: {reason(error.cause)}") from None
    except ray.exceptions.RayError as error:
        raise WorkersError(f"the job on the cluster's head is lost: {reason(error)}") from None


class News(NamedTuple):
    """Progress of the parts since the last request."""

    outcomes: list[tuple[int, Outcome]]  # (number, outcome) of finished parts
    under_way: list[Counts]  # current counts of each part being translated


class TranslationJob:
    """An actor on the head that runs the Ray Data job for the command.

    Workers report their progress to it, because Ray Data reports a part only when it is finished.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: Counter[int] = Counter()  # how often each part was started
        self._counts: dict[int, Counts] = {}  # counts of unfinished parts
        self._over: set[int] = set()
        self._news: list[tuple[int, Outcome]] = []

    def run(self, model: Teacher, parts: Sequence[Part], count: int, version: str) -> None:
        """Translate all parts with `count` workers.

        A worker that dies is restarted on a free CPU and gets the same part again. Ray's limit on
        retries counts more than deaths, so it is turned off, and this job counts the deaths. It
        raises RayError if a worker cannot start.
        """
        check_version(version)
        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.max_consecutive_actor_init_deaths = MAX_DEATHS - 1
        numbers = [{NUMBER: number} for number in range(len(parts))]
        job = ray.get_runtime_context().current_actor
        ray.data.from_items(numbers, override_num_blocks=len(parts)).map_batches(
            PartTranslator,
            fn_constructor_args=(job, model, list(parts)),
            fn_constructor_kwargs={"version": version},
            batch_size=1,
            compute=ActorPoolStrategy(size=count, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=-1,
        ).materialize()

    def begin(self, number: int) -> bool:
        """Return whether a worker should translate a part.

        It should not if the part is already finished but Ray has lost the result, or if too many
        workers have died on it.
        """
        with self._lock:
            self._begun[number] += 1
            if self._begun[number] > MAX_DEATHS:
                self._note(number, None)
            is_left = number not in self._over
            if is_left:
                self._counts[number] = Counts()
            return is_left

    def advance(self, number: int, counts: Counts) -> None:
        """Record the current counts of a part."""
        with self._lock:
            if number not in self._over:
                self._counts[number] = counts

    def end(self, number: int, outcome: Counts | Exception) -> None:
        """Record that a part is finished."""
        with self._lock:
            self._note(number, outcome)

    def news(self) -> News:
        """Return the progress since the last call."""
        with self._lock:
            news, self._news = self._news, []
            return News(news, list(self._counts.values()))

    def _note(self, number: int, outcome: Outcome) -> None:
        if number not in self._over:
            self._over.add(number)
            self._counts.pop(number, None)
            self._news.append((number, outcome))


class PartTranslator:
    """A worker that loads the model once and translates one part after another."""

    def __init__(self, job: Any, model: Teacher, parts: list[Part], *, version: str) -> None:
        self._job = job
        self._model = model
        self._parts = parts
        self._version = version

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Translate a part, report it to the job, and return the row unchanged."""
        [number] = batch[NUMBER].tolist()
        if ray.get(self._job.begin.remote(number)):
            ray.get(self._job.end.remote(number, self._outcome(number)))
        return batch

    def _outcome(self, number: int) -> Counts | Exception:
        try:
            check_version(self._version)
        except ValueError as error:
            return WorkersError(f"a worker cannot start: {error}")
        part = self._parts[number]
        try:
            return translate_part(self._engine, part, self._advance(number))
        except (ValueError, OSError) as error:
            return error
        except Exception as error:  # an error that may not unpickle on another machine
            return WorkersError(f"{part.source}: {error!r}")

    @functools.cached_property
    def _engine(self) -> Engine:
        return self._model.open(threads=1)

    def _advance(self, number: int) -> Advance:
        """Return a function that regularly reports the current counts of a part to the job."""
        sums = Counts()
        told = time.monotonic()

        def advance(counts: Counts) -> None:
            nonlocal sums, told
            sums = sums.plus(counts)
            now = time.monotonic()
            if now - told > SECONDS_A_MESSAGE:
                told = now
                self._job.advance.remote(number, sums)

        return advance
