"""Exports whose files are converted and checked in the process of the test, except at night.

Each other process would import TensorFlow again, for six seconds.
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
def in_one_process() -> Iterator[None]:
    """Replace the two functions that start a process of an export."""
    if is_night():
        yield
        return
    from tfformer.export.litert import converter

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parity, "ask", ask)
        patch.setattr(converter, "convert", convert)
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
