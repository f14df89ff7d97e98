"""Runs command lines in which a chosen file operation fails or kills the process."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

FAULTS = Path(__file__).parents[1] / "faults"
KILL, INPUT_OUTPUT, FULL_DISK, STOPS = "k", "i", "s", "p"  # as in fault_shim.c


@dataclass(frozen=True)
class Outcome:
    """The end of a command line."""

    code: int | None  # the exit code, -9 for a kill, None after the time limit
    operations: int  # number of operations on files below the folder; 0 after a kill
    printed: str  # stdout and stderr


class FaultyProcess:
    """One process that has loaded TensorFlow, and forks for each command line.

    Args:
        folder: A folder for the shim, which gcc compiles, and for output streams.
    """

    def __init__(self, folder: Path) -> None:
        self._streams = folder / "streams"
        shim = compiled_shim(folder)
        self._process = subprocess.Popen(
            [sys.executable, str(FAULTS / "fork_server.py")],
            env=os.environ | {"LD_PRELOAD": str(shim)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def run(
        self, arguments: list, folder: Path, number: int = 0, kind: str = "", seconds: int = 900
    ) -> Outcome:
        """Run `tfformer` with these arguments.

        Args:
            arguments: The words of the command line.
            folder: The operations below it are counted.
            number: The number of the operation that fails, from 1; 0 for none.
            kind: The fault.
            seconds: The time limit.
        """
        self._ask(arguments, folder, number, kind or KILL, seconds)
        return self._outcome(self._answer())

    def run_with_stops(
        self, arguments: list, folder: Path, look: Callable[[], None], seconds: int = 900
    ) -> Outcome:
        """Run `tfformer` so that it stops before each operation.

        Args:
            arguments: The words of the command line.
            folder: The operations below it are counted.
            look: Called at each stop, when the folder is in the state that a kill would leave.
            seconds: The time limit, including the stops.
        """
        self._ask(arguments, folder, 0, STOPS, seconds)
        while (answer := self._answer()) is None:
            look()
            print(file=self._process.stdin, flush=True)
        return self._outcome(answer)

    def _ask(self, arguments: list, folder: Path, number: int, kind: str, seconds: int) -> None:
        asked = {
            "arguments": list(map(str, arguments)),
            "folder": str(folder),
            "number": number,
            "kind": kind,
            "output": str(self._streams),
            "seconds": seconds,
        }
        print(json.dumps(asked), file=self._process.stdin, flush=True)

    def _answer(self) -> dict[str, int] | None:
        """The outcome's numbers, or None at a stop."""
        return json.loads(self._process.stdout.readline())

    def _outcome(self, answer: dict[str, int]) -> Outcome:
        return Outcome(**answer, printed=self._streams.read_text(errors="replace"))

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def compiled_shim(folder: Path) -> Path:
    """Compile fault_shim.c to a shared library; skip the test without gcc."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc here to compile the fault shim; apt-get install gcc")
    shim = folder / "shim.so"
    command = [gcc, "-shared", "-fPIC", "-O1", "-o", shim, FAULTS / "fault_shim.c", "-ldl"]
    subprocess.run(list(map(str, command)), check=True)
    return shim


def spread(count: int, sample: int) -> list[int]:
    """Return `sample` evenly spaced numbers from 1 to `count`; all if there are fewer."""
    if sample >= count:
        return list(range(1, count + 1))
    return [1 + (2 * n + 1) * count // (2 * sample) for n in range(sample)]
