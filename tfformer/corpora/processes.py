"""Parts translated by several processes of one machine, each with one thread.

A process that dies is replaced, and its part begun again.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from ctypes import c_int64
from pathlib import Path
from typing import Any

from tfformer.corpora.engines import load_engine
from tfformer.corpora.parts import Part
from tfformer.corpora.translation import Counts, translate_part

MAX_DEATHS = 3  # of processes in a row, without a part that came to its end
MAX_SILENCE = 900  # seconds without one sentence, the loading of the model included
SECONDS_A_REPORT = 1

Report = Callable[[Counts], None]  # takes the sums so far
Sums = Any  # a SynchronizedArray of `Counts`, shared by all processes

_SUMS: list[Sums] = []  # of this process, once it has begun


class WorkersError(OSError):
    """The workers cannot do their work."""


def translate_parts(
    model: str | Path,
    parts: Sequence[Part],
    workers: int,
    beam_size: int | None = None,
    report: Report = lambda counts: None,
) -> Counts:
    """Translate parts with several processes.

    Args:
        model: A run or an export.
        parts: The files; each is one process's work at a time.
        workers: Number of processes, each of which loads the model.
        beam_size: As in `load_engine`.
        report: Called about every second.

    Returns:
        The sums of all parts.

    Raises:
        ValueError: Some parts cannot be read; the others are done.
        WorkersError: Processes die again and again, or nothing has been done for a long time.
    """
    context = multiprocessing.get_context("spawn")  # TensorFlow's threads do not survive a fork
    left = list(parts)
    total = Counts()
    faults: list[str] = []
    deaths = 0
    while left:
        sums = context.Array(c_int64, [*total])
        with _pool(context, workers, sums) as pool:
            work = {pool.submit(_translate, str(model), beam_size, part): part for part in left}
            over, is_whole = _watch(work, sums, report)
        for part, outcome in over.items():
            left.remove(part)
            if isinstance(outcome, Counts):
                total = total.plus(outcome)
            else:
                faults.append(str(outcome))
        if over:
            deaths = 0
        if not is_whole:
            deaths += 1
        if deaths == MAX_DEATHS:
            raise WorkersError(
                f"{deaths} times a process died before it had ended a part; see whether the "
                "machine's memory is enough, or give fewer --workers"
            )
    if faults:
        raise ValueError(f"{len(faults)} of {len(parts)} parts were left out: {faults[0]}")
    return total


@contextmanager
def _pool(
    context: multiprocessing.context.SpawnContext, workers: int, sums: Sums
) -> Iterator[ProcessPoolExecutor]:
    """Yield processes, which end with the block, at once if it fails."""
    pool = ProcessPoolExecutor(workers, context, _begin, (sums, os.getpid()))
    try:
        yield pool
    except BaseException:
        _kill(pool)
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _watch(
    work: Mapping[Future[Counts], Part], sums: Sums, report: Report
) -> tuple[dict[Part, Counts | Exception], bool]:
    """Wait for all parts, or for the death of a process.

    Returns:
        The parts that are over with their figures or faults, and whether these are all.
    """
    over: dict[Part, Counts | Exception] = {}
    waiting: Collection[Future[Counts]] = list(work)
    last, since = list(sums), time.monotonic()
    while waiting:
        finished, waiting = wait(waiting, SECONDS_A_REPORT, FIRST_COMPLETED)
        for future in finished:
            error = future.exception()
            if isinstance(error, BrokenProcessPool):
                return over, False
            if error is not None and not isinstance(error, ValueError | OSError):
                raise error
            over[work[future]] = future.result() if error is None else error
        report(Counts(*sums))
        if finished or list(sums) != last:
            last, since = list(sums), time.monotonic()
        elif time.monotonic() - since > MAX_SILENCE:
            raise WorkersError(
                f"no sentence was translated for {MAX_SILENCE} seconds; what is done stays: look "
                "at the machine's load and memory, then give the same command again"
            )
    return over, True


def _kill(pool: ProcessPoolExecutor) -> None:
    """End a pool's processes at once, whatever they are doing."""
    for process in list((pool._processes or {}).values()):  # Python 3.14 has `kill_workers`
        process.kill()


# --- In the processes ---------------------------------------------------------------------------


def _begin(sums: Sums, parent: int) -> None:
    """Prepare a process, before TensorFlow is loaded."""
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


def _translate(model: str, beam_size: int | None, part: Part) -> Counts:
    [sums] = _SUMS

    def advance(counts: Counts) -> None:
        with sums.get_lock():
            for place, value in enumerate(counts):
                sums[place] += value

    return translate_part(_engine(model, beam_size), part, advance)
