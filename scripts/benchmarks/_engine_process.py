"""A process that runs one engine of a measurement on request.

The process reads one task per line and prints lines of JSON: a description of the engine when it is
ready, the figures of each task, and final figures when its input ends.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parents[1]


class EngineProcess:
    """The process of one engine; the constructor waits until the engine is ready.

    Args:
        name: The engine's name, for messages.
        command: The command line, one item per argument.
        environment: Environment variables in addition to this process's.
    """

    def __init__(
        self, name: str, command: Sequence[object], environment: Mapping[str, str]
    ) -> None:
        self._name = name
        process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=SCRIPTS,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | dict(environment),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self._tasks, self._answers = process, process.stdin, process.stdout
        self.about = self._answer()

    def work(self, task: str) -> dict[str, Any]:
        """Run a task and return its figures."""
        self._tasks.write(f"{task}\n")
        self._tasks.flush()
        return self._answer()

    def stop(self) -> dict[str, Any]:
        """End the process and return the engine's description with its final figures."""
        self._tasks.close()
        about = self.about | self._answer()
        self._process.wait()
        return about

    def _answer(self) -> dict[str, Any]:
        line = self._answers.readline()
        if not line:
            raise SystemExit(f"{self._name} has ended; see the error above")
        return json.loads(line)


def say(**figures: float | None) -> None:
    """Print the answer of an engine's process."""
    print(json.dumps(figures), flush=True)


def say_peak_memory() -> None:
    """Print the peak memory of an engine's process.

    `getrusage` counts the memory of the process that started it too.
    """
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    say(peak_memory_megabytes=int(status.partition("VmHWM:")[2].split()[0]) // 1024)
