"""Parts translated by several workers, and the rules for workers that die.

A worker that dies is restarted, and any free worker starts its part again; the other workers
continue.
"""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, summed
from tfformer.engines import ArtifactError

MAX_DEATHS = 3  # dead workers after which a part is skipped
MAX_LOST = 3  # skipped parts in a row, after which the work ends
MAX_SILENCE = 900  # seconds without a translated sentence, including model loading
SECONDS_A_REPORT = 1

Report = Callable[[Counts], None]  # takes the sums so far


class WorkersError(OSError):
    """The workers cannot continue."""


class Worker(ABC):
    """Translates one part at a time."""

    def __init__(self) -> None:
        self.part: Part | None = None  # the last part that it has started
        self.future: Future[Counts] | None = None  # the part's future, until it ends

    @property
    def is_free(self) -> bool:
        """Whether it can begin a part now."""
        return self.future is None

    def begin(self, part: Part) -> None:
        """Begin a part."""
        self.part = part
        self.future = self._submitted(part)

    def end(self) -> Counts | BaseException | None:
        """Return the outcome: the counts, the exception, or None if the worker has died."""
        assert self.future is not None
        future, self.future = self.future, None
        error = future.exception()
        if error is None:
            return future.result()
        fault = self._fault(error)
        if fault is None:
            self._restart()
        return fault

    @abstractmethod
    def counts(self) -> Counts:
        """Return the figures of its part so far."""

    @abstractmethod
    def _submitted(self, part: Part) -> Future[Counts]: ...

    @abstractmethod
    def _fault(self, error: BaseException) -> BaseException | None:
        """Return the error that the part caused; None if the worker has died."""

    @abstractmethod
    def _restart(self) -> None: ...


class Outcomes:
    """The outcomes of the parts so far, and the rules for ending the work early."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._count = len(parts)
        self._outcomes: dict[Part, Counts | Exception] = {}
        self._lost: list[Part] = []  # since the last part that was translated
        self._done = Counts()  # sum over the translated parts
        self._sums = Counts()  # sum over all parts at the last report
        self._since = time.monotonic()  # the sums have not changed

    @property
    def are_complete(self) -> bool:
        """Whether every part has an outcome."""
        return len(self._outcomes) == self._count

    def add(self, part: Part, outcome: Counts | BaseException) -> None:
        """Record the counts or the error of a part; raise an error that ends the work."""
        if isinstance(outcome, Counts):
            self._done = self._done.plus(outcome)
            self._lost.clear()
        elif isinstance(outcome, ArtifactError | WorkersError) or not isinstance(
            outcome, Exception
        ):
            raise outcome
        elif not isinstance(outcome, ValueError | OSError):
            raise WorkersError(f"{part.source}: {outcome!r}") from outcome
        self._outcomes[part] = outcome

    def leave_out(self, part: Part) -> None:
        """Record that `MAX_DEATHS` workers have died on a part.

        WorkersError is raised after `MAX_LOST` such parts in a row.
        """
        self._outcomes[part] = WorkersError(f"{MAX_DEATHS} workers died while they translated it")
        self._lost.append(part)
        if len(self._lost) >= MAX_LOST:
            names = ", ".join(str(part.source) for part in self._lost)
            raise WorkersError(
                f"{MAX_DEATHS} workers died on each of {names}; check that the machine has enough "
                "memory, or use fewer --workers"
            )

    def with_those_under_way(self, counts: Iterable[Counts]) -> Counts:
        """Return the sums of all parts, given the figures of the parts under way.

        WorkersError is raised if the sums have not changed for `MAX_SILENCE` seconds.
        """
        sums = functools.reduce(Counts.plus, counts, self._done)
        now = time.monotonic()
        if sums != self._sums:
            self._sums = sums
            self._since = now
        elif now - self._since > MAX_SILENCE:
            raise WorkersError(
                f"no sentence was translated for {MAX_SILENCE} seconds; finished files are kept: "
                "check the load, the memory and the free processors, then run the same command "
                "again"
            )
        return sums

    def sums(self) -> Counts:
        """Return the sums of all parts; ValueError if some parts were skipped."""
        return summed({part.source: outcome for part, outcome in self._outcomes.items()})


def translate_parts(workers: Sequence[Worker], parts: Sequence[Part], report: Report) -> Counts:
    """Translate parts, each by one of the workers, and return the sums of all parts.

    `report` is called about every second.

    Raises:
        ArtifactError: The model cannot be loaded, or has changed since the start.
        ValueError: Some parts cannot be read or make workers die; all other parts are translated.
        WorkersError: Workers die on several parts in a row, or no sentence has been translated for
            a long time.
    """
    waiting = deque(parts)
    deaths: Counter[Part] = Counter()
    outcomes = Outcomes(parts)
    while not outcomes.are_complete:
        for worker in workers:
            if waiting and worker.is_free:
                worker.begin(waiting.popleft())
        for part, outcome in _ended(workers):
            if outcome is not None:
                outcomes.add(part, outcome)
                continue
            deaths[part] += 1
            if deaths[part] < MAX_DEATHS:
                waiting.appendleft(part)
            else:
                outcomes.leave_out(part)
        report(outcomes.with_those_under_way(worker.counts() for worker in workers))
    return outcomes.sums()


def _ended(workers: Sequence[Worker]) -> Iterator[tuple[Part, Counts | BaseException | None]]:
    """Wait at most a second; yield the parts that have ended, with their outcomes."""
    busy = {worker.future: worker for worker in workers if worker.future is not None}
    if not busy:
        time.sleep(SECONDS_A_REPORT)
    finished, _ = wait(busy, SECONDS_A_REPORT, FIRST_COMPLETED)
    for future in finished:
        worker = busy[future]
        assert worker.part is not None
        yield worker.part, worker.end()
