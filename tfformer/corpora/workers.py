"""Parts translated by processes on this machine, and the rules for workers that die.

A worker that dies is restarted, and any free worker starts its part again; the other workers
continue.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from ctypes import c_int64
from typing import Any

from tfformer.corpora.parts import Counts, Part, translate_part
from tfformer.corpora.teachers import Teacher
from tfformer.engines import ArtifactError, Engine

MAX_DEATHS = 3  # dead workers after which a part is skipped
MAX_LOST = 3  # skipped parts in a row, after which the work ends
MAX_NAMED = 10  # files that the message about faults names
MAX_SILENCE = 900  # seconds without a translated sentence, including model loading
SECONDS_A_REPORT = 1

Report = Callable[[Counts], None]  # takes the sums so far
Sums = Any  # shared counts of a part, written only by its process


class WorkersError(OSError):
    """The workers cannot continue."""


def translate_parts(
    model: Teacher,
    parts: Sequence[Part],
    count: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts with `count` processes, each of which loads the model; return the sums.

    `report` is called about every second.

    Raises:
        ArtifactError: The model cannot be loaded, or has changed since the start.
        ValueError: Some parts cannot be read or make workers die; all other parts are translated.
        WorkersError: Workers die on several parts in a row, or no sentence has been translated for
            a long time.
    """
    with ExitStack() as begun:
        workers = [begun.enter_context(Worker(model)) for _ in range(count)]
        return share_parts(workers, parts, report)


def share_parts(workers: Sequence[Worker], parts: Sequence[Part], report: Report) -> Counts:
    """Translate parts, each by one of the workers; see `translate_parts`."""
    waiting = deque(parts)
    deaths: Counter[Part] = Counter()
    outcomes = Outcomes(parts)
    while not outcomes.are_complete:
        for worker in workers:
            if waiting and worker.future is None:
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
    finished, _ = wait(busy, SECONDS_A_REPORT, FIRST_COMPLETED)
    for future in finished:
        worker = busy[future]
        assert worker.part is not None
        yield worker.part, worker.end()


class Worker:
    """A process with one thread, which translates one part at a time.

    It ends with the block, immediately if the block fails. With one executor for several processes,
    all would end when the first dies.
    """

    def __init__(self, model: Teacher) -> None:
        self.model = model
        self.part: Part | None = None  # the last part that it has started
        self.future: Future[Counts] | None = None  # the part's future, until it ends
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # TensorFlow's threads do not survive a fork
        self.sums: Sums = context.Array(c_int64, len(Counts._fields), lock=False)
        arguments = self.sums, os.getpid()
        self.executor = ProcessPoolExecutor(1, context, _begin, arguments)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            for process in list((getattr(self.executor, "_processes", None) or {}).values()):
                process.kill()  # replace with `kill_workers` from Python 3.14 on
        self.executor.shutdown(cancel_futures=True)

    def begin(self, part: Part) -> None:
        """Begin a part."""
        self.part = part
        self.sums[:] = [0] * len(self.sums)
        try:
            self.future = self.executor.submit(_translate, self.model, part)
        except BrokenProcessPool:  # the process died while idle
            self._start()
            self.future = self.executor.submit(_translate, self.model, part)

    def counts(self) -> Counts:
        """Return the current counts of its part."""
        return Counts() if self.future is None else Counts(*self.sums)

    def end(self) -> Counts | BaseException | None:
        """Return the outcome: the counts, the exception, or None if the process has died."""
        assert self.future is not None
        future, self.future = self.future, None
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            self._start()
            return None
        return future.result() if error is None else error


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
        """Return the sums of all parts; ValueError names up to ten that were not translated."""
        faults = []
        for part, outcome in self._outcomes.items():
            if isinstance(outcome, Exception):
                fault = str(outcome)
                faults.append(fault if str(part.source) in fault else f"{part.source}: {fault}")
        if faults:
            more = ["..."] if len(faults) > MAX_NAMED else []
            listed = "; ".join(faults[:MAX_NAMED] + more)
            raise ValueError(f"{len(faults)} of {self._count} files were not translated: {listed}")
        return self._done


# --- In the processes ---------------------------------------------------------------------------

_SUMS: list[Sums] = []  # this process's counts, set when it starts


def _begin(sums: Sums, parent: int) -> None:
    """Prepare a process before TensorFlow starts its threads."""
    os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _SUMS.append(sums)


def _end_with(parent: int) -> None:
    """End this process when its parent has ended."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


@functools.cache
def _engine(model: Teacher) -> Engine:
    """Return the engine, with one thread, for all parts that this process translates."""
    return model.open(threads=1)


def _translate(model: Teacher, part: Part) -> Counts:
    [sums] = _SUMS

    def advance(counts: Counts) -> None:
        for index, value in enumerate(counts):
            sums[index] += value

    return translate_part(_engine(model), part, advance)
