"""Calls with a timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import TypeVar

T = TypeVar("T")


def within(seconds: float, operation: Callable[[], T], refusal: str) -> T:
    """Call `operation`, which may block forever, with a timeout.

    It runs in a thread, which is abandoned at the timeout and ends with the process. `refusal` is
    the message of the TimeoutError.

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
