"""Parts translated by several workers: processes of this machine, or of a cluster.

A worker that dies begins again, and any free one begins its part again; the others go on.
"""

from __future__ import annotations

import functools
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait

from tfformer.corpora.engines import ModelError
from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, summed

MAX_DEATHS = 3  # of workers at one part, which is left out then
MAX_LOST = 3  # parts left out so without a translated one between them
MAX_SILENCE = 900  # seconds without one sentence, the loading of the model included
SECONDS_A_REPORT = 1

Report = Callable[[Counts], None]  # takes the sums so far


class WorkersError(OSError):
    """The workers cannot do their work."""


class Worker(ABC):
    """Translates one part at a time.

    Attributes:
        part: The last one that it has begun.
        future: The outcome of the part that it translates, if there is one.
    """

    def __init__(self) -> None:
        self.part: Part | None = None
        self.future: Future[Counts] | None = None

    @property
    def is_free(self) -> bool:
        """Whether it can begin a part now."""
        return self.future is None

    def begin(self, part: Part) -> None:
        """Begin a part."""
        self.part = part
        self.future = self._submitted(part)

    def end(self) -> Counts | Exception | None:
        """Take the outcome: the figures, the part's fault, or None if the worker has died.

        Raises:
            ModelError: The model cannot be loaded, or is another one.
            WorkersError: A library has an error of its own.
        """
        assert self.future is not None
        future, self.future = self.future, None
        error = future.exception()
        if error is None:
            return future.result()
        fault = self._fault(error)
        if fault is None:
            self._restart()
        elif isinstance(fault, ModelError) or not isinstance(fault, Exception):
            raise fault
        elif not isinstance(fault, ValueError | OSError):
            assert self.part is not None
            raise WorkersError(f"{self.part.source}: {fault!r}") from fault
        return fault

    @abstractmethod
    def counts(self) -> Counts:
        """Return the figures of its part so far."""

    @abstractmethod
    def _submitted(self, part: Part) -> Future[Counts]:
        """Begin a part."""

    @abstractmethod
    def _fault(self, error: BaseException) -> BaseException | None:
        """Return the fault of the part; None if the worker has died."""

    @abstractmethod
    def _restart(self) -> None:
        """Replace what has died."""


def translate_parts(workers: Sequence[Worker], parts: Sequence[Part], report: Report) -> Counts:
    """Translate parts.

    Args:
        workers: Each takes one part after the other.
        parts: The files.
        report: Called about every second.

    Returns:
        The sums of all parts.

    Raises:
        ModelError: The model cannot be loaded, or was changed meanwhile.
        ValueError: Some parts cannot be read, or workers die of them; the others are done.
        WorkersError: Workers die at one part after the other, or nothing has been done for a long
            time.
    """
    waiting = deque(parts)
    deaths: Counter[Part] = Counter()
    lost: list[Part] = []  # since the last that was translated
    outcomes: dict[Part, Counts | Exception] = {}
    done = Counts()
    silence = _Silence()
    while len(outcomes) < len(parts):
        for worker in workers:
            if waiting and worker.is_free:
                worker.begin(waiting.popleft())
        for part, outcome in _ended(workers):
            if outcome is None:
                deaths[part] += 1
                if deaths[part] < MAX_DEATHS:
                    waiting.appendleft(part)
                    continue
                outcome = WorkersError(f"{MAX_DEATHS} workers died while they translated it")
                lost.append(part)
            outcomes[part] = outcome
            if isinstance(outcome, Counts):
                done = done.plus(outcome)
                lost.clear()
        if len(lost) >= MAX_LOST:
            names = ", ".join(str(part.source) for part in lost)
            raise WorkersError(
                f"{MAX_DEATHS} workers died at each of {names}; see whether the machine's memory "
                "is enough, or give fewer --workers"
            )
        counts = functools.reduce(Counts.plus, [worker.counts() for worker in workers], done)
        report(counts)
        silence.check(counts)
    return summed({part.source: outcome for part, outcome in outcomes.items()})


def _ended(workers: Sequence[Worker]) -> Iterator[tuple[Part, Counts | Exception | None]]:
    """Wait a second at most; yield the parts that are over, with their outcomes."""
    busy = {worker.future: worker for worker in workers if worker.future is not None}
    if not busy:
        time.sleep(SECONDS_A_REPORT)
    finished, _ = wait(busy, SECONDS_A_REPORT, FIRST_COMPLETED)
    for future in finished:
        worker = busy[future]
        assert worker.part is not None
        yield worker.part, worker.end()


class _Silence:
    """Notes since when the figures have been the same."""

    def __init__(self) -> None:
        self._last: Counts | None = None
        self._since = 0.0

    def check(self, counts: Counts) -> None:
        """Raise WorkersError if they have not changed for too long."""
        now = time.monotonic()
        if counts != self._last:
            self._last = counts
            self._since = now
        elif now - self._since > MAX_SILENCE:
            raise WorkersError(
                f"no sentence was translated for {MAX_SILENCE} seconds; what is done stays: look "
                "at the load, the memory and the free processors, then give the same command again"
            )
