"""Limits on a test's work, for faults that would otherwise make it run for hours."""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after this much CPU time; `re` handles signals, too."""

    def stop(*_) -> None:
        raise TimeoutError(f"took more than {seconds} s of work")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def lines_run(function: Callable[[], object]) -> int:
    """Count the lines of Python that a call runs, a measure of work that is independent of load."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
