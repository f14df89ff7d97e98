"""Ray Data, which gives the workers their parts, and a worker's part of it."""

from __future__ import annotations

import functools
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import ray
from ray.data import ActorPoolStrategy, DataContext

from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, translate_part
from tfformer.corpora.workers import MAX_DEATHS, WorkersError
from tfformer.engines import Artifact, Engine
from tfformer.runtime.ray_cluster import check_version

NUMBER = "number"  # the column of the data set: which of the parts
SECONDS_A_MESSAGE = 0.5  # at least between those of one worker

Outcome = Counts | Exception | None  # of a part; None if workers die of it


class News(NamedTuple):
    """Progress of the parts since the last request.

    Attributes:
        outcomes: The numbers of finished parts, and their outcomes.
        under_way: The figures so far of each part that a worker is translating.
    """

    outcomes: list[tuple[int, Outcome]]
    under_way: list[Counts]


class TranslationJob:
    """An actor on the head, which holds Ray Data for the command.

    Workers report their progress to it, as Ray Data knows a part only when it is finished.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun: Counter[int] = Counter()  # how often each part was
        self._counts: dict[int, Counts] = {}  # of the parts under way
        self._over: set[int] = set()
        self._news: list[tuple[int, Outcome]] = []

    def run(self, model: Artifact, parts: Sequence[Part], count: int, version: str) -> None:
        """Translate all parts with `count` workers.

        A worker that dies starts again where a processor is free, and gets its part again. Ray
        counts more than deaths as tries, so Ray may retry without limit, and the job counts.

        Raises:
            RayError: A worker cannot start.
        """
        check_version(version)
        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.max_consecutive_actor_init_deaths = MAX_DEATHS - 1
        numbers = [{NUMBER: number} for number in range(len(parts))]
        job = ray.get_runtime_context().current_actor
        ray.data.from_items(numbers, override_num_blocks=len(parts)).map_batches(
            PartTranslator,
            fn_constructor_args=(job, model, list(parts), version),
            batch_size=1,
            compute=ActorPoolStrategy(size=count, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            max_restarts=-1,
            max_task_retries=-1,
        ).materialize()

    def begin(self, number: int) -> bool:
        """Return whether a worker should translate a part.

        It should not if the part is finished, although Ray has lost that result, or if too many
        workers have died with it.
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
        """Note the figures of a part so far."""
        with self._lock:
            if number not in self._over:
                self._counts[number] = counts

    def end(self, number: int, outcome: Counts | Exception) -> None:
        """Note that a part is over."""
        with self._lock:
            self._note(number, outcome)

    def news(self) -> News:
        """Return what has become of the parts since the last call."""
        with self._lock:
            news, self._news = self._news, []
            return News(news, list(self._counts.values()))

    def _note(self, number: int, outcome: Outcome) -> None:
        if number not in self._over:
            self._over.add(number)
            self._counts.pop(number, None)
            self._news.append((number, outcome))


class PartTranslator:
    """A worker, which loads the model once and translates one part after the other."""

    def __init__(self, job: Any, model: Artifact, parts: list[Part], version: str) -> None:
        self._job = job
        self._model = model
        self._parts = parts
        self._version = version

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Translate a part, tell the job, and return the row as it was."""
        [number] = batch[NUMBER].tolist()
        if ray.get(self._job.begin.remote(number)):
            ray.get(self._job.end.remote(number, self._outcome(number)))
        return batch

    def _outcome(self, number: int) -> Counts | Exception:
        try:
            check_version(self._version)
        except ValueError as error:
            return WorkersError(f"a worker cannot begin: {error}")
        part = self._parts[number]
        try:
            return translate_part(self._engine, part, _Advance(self._job, number))
        except (ValueError, OSError) as error:
            return error
        except Exception as error:  # one that may not be read on another machine
            return WorkersError(f"{part.source}: {error!r}")

    @functools.cached_property
    def _engine(self) -> Engine:
        return self._model.open(threads=1)


class _Advance:
    """Tells the job how far a part is, now and then."""

    def __init__(self, job: Any, number: int) -> None:
        self._job = job
        self._number = number
        self._sums = Counts()
        self._told = time.monotonic()

    def __call__(self, counts: Counts) -> None:
        self._sums = self._sums.plus(counts)
        now = time.monotonic()
        if now - self._told > SECONDS_A_MESSAGE:
            self._told = now
            self._job.advance.remote(self._number, self._sums)
