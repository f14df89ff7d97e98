"""Processes that need not load TensorFlow: one that has loaded it forks for each of them."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tfformer.cli.main", "tfformer.training.train"])


def started(
    function: Callable[..., int | None], *arguments: object, output: Path | None = None, **more: str
) -> BaseProcess:
    """Begin a process that calls a function; its exit code is what that returns.

    Args:
        function: One of a module that the process can import.
        *arguments: The function's.
        output: The file of both streams, if they go to one.
        **more: Variables of the environment, beside those of this process.
    """
    given = (function, arguments, output, os.environ | more)
    process = CONTEXT.Process(target=_call, args=given, daemon=True)  # it ends with this one
    process.start()
    return process


def _call(
    function: Callable[..., int | None],
    arguments: tuple,
    output: Path | None,
    environment: Mapping[str, str],
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    if output:
        streams = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for stream in (1, 2):
            os.dup2(streams, stream)
    sys.exit(function(*arguments))
