"""Exports whose files are converted and checked in the process of the test.

Each other process would import TensorFlow again, for six seconds. Nightly tests start them.
"""

import contextlib
import io
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from support.nightly import is_night

from tfformer.engines import __main__ as engines
from tfformer.export import parity


@contextlib.contextmanager
def converted_in_one_process() -> Iterator[None]:
    """Replace the function that starts LiteRT's converter; the process that checks is fast."""
    if is_night():
        yield
        return
    from tfformer.export.litert import writer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "convert", convert)
        yield


@contextlib.contextmanager
def in_one_process() -> Iterator[None]:
    """Replace both functions that start a process of an export."""
    if is_night():
        yield
        return
    with converted_in_one_process(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "ask", ask)
        yield


def ask(folder: Path, requests: Sequence[tuple[str, dict]]) -> list[list[dict]]:
    """Do as `parity.ask`."""
    answers = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(answers):
        patch.setattr(sys, "stdin", io.StringIO(json.dumps(requests)))
        engines.main(str(folder))
    return json.loads(answers.getvalue())


def convert(save: Callable[[str], None], signatures: list[str], quantize: str, path: Path) -> None:
    """Do as `converter.convert`."""
    from tfformer.export.litert import converter

    with tempfile.TemporaryDirectory() as folder:
        save(folder)
        converter._write(folder, signatures, quantize, str(path))
