"""Asks an artefact in a process of its own, which does not import tfformer."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"


def ask(program: str, arguments: Sequence[str | Path], requests: Sequence[Any]) -> list[Any]:
    """Return the answers of a program to requests.

    Args:
        program: The name of a file in `programs/`, which describes its requests and answers.
        arguments: Its arguments, such as the artefact's folder.
        requests: Values that JSON can hold; all go to one process.

    Raises:
        ValueError: The process failed, or printed no answer.
    """
    file = PROGRAMS / f"{program}.py"
    # -P: no module is looked for beside the file.
    command = [sys.executable, "-P", str(file), *map(str, arguments)]
    done = subprocess.run(
        command, input=json.dumps(requests), capture_output=True, encoding="utf-8", errors="replace"
    )
    if done.returncode:
        raise _refusal((done.stderr.strip() or f"exit code {done.returncode}").splitlines()[-1])
    last = done.stdout.strip().rpartition("\n")[2]
    try:
        return json.loads(last)
    except ValueError:
        raise _refusal(f"its last line is no answer: {last[:100]!r}") from None


def _refusal(reason: str) -> ValueError:
    return ValueError(
        f"what was written cannot be run by another process, so it is not kept: {reason}"
    )
