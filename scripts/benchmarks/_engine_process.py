"""A process that holds one engine of a measurement, and works when it is told to.

It reads a line for each task, and answers with a line of JSON: one about itself when it is ready,
one for each task, and one about itself when there are no more.
"""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence


class EngineProcess:
    """The process, once it has said that it is ready.

    Args:
        name: The engine's name, for messages.
        command: The words of its command line.
        environment: Variables that it has beside those of this process.
    """

    def __init__(
        self, name: str, command: Sequence[object], environment: Mapping[str, str]
    ) -> None:
        self._name = name
        self._process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"} | dict(environment),
        )
        self.about = self._answer()

    def work(self, task: str) -> dict:
        """Let it do a task; returns its figures."""
        self._process.stdin.write(f"{task}\n")
        self._process.stdin.flush()
        return self._answer()

    def stop(self) -> dict:
        """End the process and return its figures about itself."""
        self._process.stdin.close()
        about = self.about | self._answer()
        self._process.wait()
        return about

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self._name} has ended; the reason stands above")
        return json.loads(line)
