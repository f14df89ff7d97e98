"""Parts translated by several processes of one machine, each with one thread.

A process that dies is replaced, and begins its part again; the others go on.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_int64
from pathlib import Path
from typing import Any

from tfformer.corpora.engines import Model, ModelError, load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, summed, translate_part

MAX_DEATHS = 3  # of processes at one part, which is left out then
MAX_LOST = 3  # parts left out so without a translated one between them
MAX_SILENCE = 900  # seconds without one sentence, the loading of the model included
SECONDS_A_REPORT = 1

Report = Callable[[Counts], None]  # takes the sums so far
Sums = Any  # an array of the figures of a part, which its process alone writes

_SUMS: list[Sums] = []  # of this process, once it has begun


class WorkersError(OSError):
    """The workers cannot do their work."""


def translate_parts(
    model: Model,
    parts: Sequence[Part],
    workers: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts with several processes.

    Args:
        model: A run or an export.
        parts: The files; each is one process's work at a time.
        workers: Number of processes, each of which loads the model.
        report: Called about every second.

    Returns:
        The sums of all parts.

    Raises:
        ModelError: The model cannot be loaded, or was changed meanwhile.
        ValueError: Some parts cannot be read, or processes die of them; the others are done.
        WorkersError: Processes die at one part after the other, or nothing has been done for a
            long time.
    """
    waiting = deque(parts)
    outcomes: dict[Part, Counts | Exception] = {}
    done = Counts()
    lost = 0
    silence = _Silence()
    with _begun(model, workers) as processes:
        while len(outcomes) < len(parts):
            for process in processes:
                if process.is_idle and waiting:
                    process.begin(waiting.popleft())
            for part, outcome in _finished(processes):
                outcomes[part] = outcome
                if isinstance(outcome, Counts):
                    done = done.plus(outcome)
                    lost = 0
                elif isinstance(outcome, WorkersError):
                    lost += 1
            if lost == MAX_LOST:
                raise WorkersError(
                    f"processes died {MAX_DEATHS} times at each of {lost} files; see whether the "
                    "machine's memory is enough, or give fewer --workers"
                )
            counts = functools.reduce(Counts.plus, [process.counts for process in processes], done)
            report(counts)
            silence.check(counts)
    return summed({part.source: outcome for part, outcome in outcomes.items()})


class _Process:
    """A process that translates one part at a time, and is replaced when it dies.

    An executor of several processes would end all of them with the first.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.part = Part(Path(), Path())
        self.deaths = 0  # at this part
        self.future: Future[Counts] | None = None
        self._start()

    def _start(self) -> None:
        self.sums, self.executor = _new_process()

    @property
    def is_idle(self) -> bool:
        """Whether it has no part to translate."""
        return self.future is None

    @property
    def counts(self) -> Counts:
        """The figures of the part so far."""
        return Counts() if self.is_idle else Counts(*self.sums)

    def begin(self, part: Part) -> None:
        """Begin a part."""
        self.part = part
        self.deaths = 0
        self._submit()

    def _submit(self) -> None:
        self.sums[:] = [0] * len(self.sums)
        try:
            self.future = self.executor.submit(_translate, self.model, self.part)
        except BrokenProcessPool:  # it died while it had nothing to do
            self._start()
            self.future = self.executor.submit(_translate, self.model, self.part)

    def end(self) -> Counts | Exception | None:
        """Return the figures or the fault of the part; None where it has been begun again."""
        assert self.future is not None
        error = self.future.exception()
        if isinstance(error, BrokenProcessPool):
            return self._replaced()
        future, self.future = self.future, None
        if error is None:
            return future.result()
        if isinstance(error, ModelError) or not isinstance(error, Exception):
            raise error
        if isinstance(error, ValueError | OSError):
            return error
        raise WorkersError(f"{self.part.source}: {error!r}") from error

    def _replaced(self) -> WorkersError | None:
        """Replace the dead process; return the fault of a part at which too many died."""
        self.executor.shutdown()
        self._start()
        self.future = None
        self.deaths += 1
        if self.deaths == MAX_DEATHS:
            return WorkersError(f"{MAX_DEATHS} processes died while they translated it")
        self._submit()
        return None

    def kill(self) -> None:
        """End the process at once, whatever it is doing."""
        for process in list((getattr(self.executor, "_processes", None) or {}).values()):
            process.kill()  # Python 3.14 has `kill_workers`


def _new_process() -> tuple[Sums, Executor]:
    context = multiprocessing.get_context("spawn")  # TensorFlow's threads do not survive a fork
    sums = context.Array(c_int64, len(Counts._fields), lock=False)
    return sums, ProcessPoolExecutor(1, context, _begin, (sums, os.getpid()))


@contextmanager
def _begun(model: Model, workers: int) -> Iterator[list[_Process]]:
    """Yield processes, which end with the block, at once if it fails."""
    processes = [_Process(model) for _ in range(workers)]
    try:
        yield processes
    except BaseException:
        for process in processes:
            process.kill()
        raise
    finally:
        for process in processes:
            process.executor.shutdown(cancel_futures=True)


def _finished(processes: Sequence[_Process]) -> Iterator[tuple[Part, Counts | Exception]]:
    """Wait a second at most; yield the parts that are over, with figures or faults."""
    busy = {process.future: process for process in processes if process.future is not None}
    finished, _ = wait(busy, SECONDS_A_REPORT, FIRST_COMPLETED)
    for future in finished:
        process = busy[future]
        outcome = process.end()
        if outcome is not None:
            yield process.part, outcome


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
                "at the machine's load and memory, then give the same command again"
            )


# --- In the processes ---------------------------------------------------------------------------


def _begin(sums: Sums, parent: int) -> None:
    """Prepare a process, before TensorFlow begins its threads."""
    os.environ["TF_NUM_INTRAOP_THREADS"] = os.environ["TF_NUM_INTEROP_THREADS"] = "1"
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    _SUMS.append(sums)


def _end_with(parent: int) -> None:
    """End this process when the one that began it is gone."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


_engine = functools.cache(load_engine)  # once for all parts of a process


def _translate(model: Model, part: Part) -> Counts:
    [sums] = _SUMS

    def advance(counts: Counts) -> None:
        for place, value in enumerate(counts):
            sums[place] += value

    return translate_part(_engine(model), part, advance)
