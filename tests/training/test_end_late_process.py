"""The program that ends a process which takes too long."""

import signal
import subprocess
import sys

from tfformer.training.workers import LATE

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def ended(seconds: float, standard_input: int) -> tuple[int | None, bytes]:
    """Return how a sleeping process has ended, if it has, and what the program says."""
    with subprocess.Popen(SLEEP) as late:
        command = [sys.executable, "-P", LATE, str(seconds), "too late", str(late.pid)]
        done = subprocess.run(command, stdin=standard_input, capture_output=True, timeout=60)
        code = late.wait() if done.stderr else late.poll()
        late.kill()
    return code, done.stderr


def test_a_late_process_is_killed_with_a_message():
    with subprocess.Popen(SLEEP, stdout=subprocess.PIPE) as silent:
        assert ended(0.2, silent.stdout) == (-signal.SIGKILL, b"too late\n")
        silent.kill()


def test_a_process_in_time_is_left_alone():
    assert ended(60, subprocess.DEVNULL) == (None, b"")
