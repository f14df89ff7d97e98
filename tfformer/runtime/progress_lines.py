"""Progress lines for the steps of an export, with the time of each."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Steps:
    """Writes each step's name when it begins, and its seconds when it ends."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Run a block as the step with this name."""
        start = time.monotonic()
        self._write(f"{name} ... ")
        try:
            yield
        except BaseException:
            self._write("\n")
            raise
        self._write(f"{time.monotonic() - start:.1f} s\n")

    def _write(self, text: str) -> None:
        if self._stream is not None:
            self._stream.write(text)
            self._stream.flush()
