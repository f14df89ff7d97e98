"""Waits that have a limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, operation: Callable[[], T], refusal: str) -> T:
    """Return what an operation of a library returns that may wait for ever.

    It runs in a thread of its own, which is left to itself when the time is over, and ends with the
    process.

    Args:
        seconds: The longest wait.
        operation: Called once.
        refusal: The message of the error when the time is over; it names the limit.

    Raises:
        TimeoutError: The time is over.
        BaseException: What the operation raises.

    Example:
        >>> within(5, lambda: 2 + 2, "2 + 2 has taken 5 seconds")
        4
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(operation())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    if not wait([outcome], seconds).done:
        raise TimeoutError(refusal)
    return outcome.result()
