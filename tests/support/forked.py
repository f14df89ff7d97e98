"""Processes that start fast, forked from one process that has already loaded TensorFlow."""

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping
from multiprocessing.process import BaseProcess
from pathlib import Path

from support.nightly import leave_graphs_as_traced

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tfformer.cli.main", "tfformer.training.train"])


def started(
    function: Callable[..., int | None], *arguments: object, output: Path | None = None, **more: str
) -> BaseProcess:
    """Start a process that calls a function; its exit code is the function's return value.

    Args:
        function: A function in a module that the process can import.
        *arguments: Arguments of the function.
        output: A file for stdout and stderr, if they are to be redirected.
        **more: Environment variables, in addition to those of this process.
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
    leave_graphs_as_traced()
    sys.exit(function(*arguments))
