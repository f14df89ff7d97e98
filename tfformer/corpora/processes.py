"""Workers that are processes on this machine, each with one thread."""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from ctypes import c_int64
from typing import Any

from tfformer.corpora import workers
from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, translate_part
from tfformer.corpora.workers import Report, Worker
from tfformer.engines import Artifact, Engine

Sums = Any  # shared counts of a part, written only by its process

_SUMS: list[Sums] = []  # this process's counts, set when it starts


def translate_parts(
    model: Artifact,
    parts: Sequence[Part],
    count: int,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts with `count` processes, each of which loads the model.

    See `workers.translate_parts` for the other arguments, the result and the errors.
    """
    with ExitStack() as begun:
        processes = [begun.enter_context(_Process(model)) for _ in range(count)]
        return workers.translate_parts(processes, parts, report)


class _Process(Worker):
    """A worker process that ends with the block, immediately if the block fails.

    With one executor for several processes, all would end when the first dies.
    """

    def __init__(self, model: Artifact) -> None:
        super().__init__()
        self.model = model
        self._restart()

    def __enter__(self) -> _Process:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            for process in list((getattr(self.executor, "_processes", None) or {}).values()):
                process.kill()  # replace with `kill_workers` from Python 3.14 on
        self.executor.shutdown(cancel_futures=True)

    def counts(self) -> Counts:
        """Return the current counts of its part."""
        return Counts() if self.future is None else Counts(*self.sums)

    def _submitted(self, part: Part) -> Future[Counts]:
        self.sums[:] = [0] * len(self.sums)
        try:
            return self.executor.submit(_translate, self.model, part)
        except BrokenProcessPool:  # the process died while idle
            self._restart()
            return self.executor.submit(_translate, self.model, part)

    def _fault(self, error: BaseException) -> BaseException | None:
        return None if isinstance(error, BrokenProcessPool) else error

    def _restart(self) -> None:
        context = multiprocessing.get_context("spawn")  # TensorFlow's threads do not survive a fork
        self.sums: Sums = context.Array(c_int64, len(Counts._fields), lock=False)
        arguments = self.sums, os.getpid()
        self.executor = ProcessPoolExecutor(1, context, _begin, arguments)


# --- In the processes ---------------------------------------------------------------------------


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
def _engine(model: Artifact) -> Engine:
    """Return the engine, with one thread, for all parts that this process translates."""
    return model.open(threads=1)


def _translate(model: Artifact, part: Part) -> Counts:
    [sums] = _SUMS

    def advance(counts: Counts) -> None:
        for index, value in enumerate(counts):
            sums[index] += value

    return translate_part(_engine(model), part, advance)
