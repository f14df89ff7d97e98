"""Errors about other workers of a cluster, and the end of a process that takes too long."""

import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
import tensorflow as tf
from support.ports import free_addresses

from tfformer.training.cluster import Cluster, WorkerLostError
from tfformer.training.multi_worker import KILL_LATE, ClusterWorkers

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def test_a_worker_that_has_waited_too_long_says_so():
    waiting = SimpleNamespace(cluster=Cluster(free_addresses(2), 1), number=1, minutes=0.5)
    message = r"^worker 1 \(.*\) has waited 0.5 minutes for another worker \(training.wait_min"
    with pytest.raises(WorkerLostError, match=message), ClusterWorkers.explained(waiting):
        raise tf.errors.DeadlineExceededError(None, None, "too late")


def ended(seconds: float, standard_input: int) -> tuple[int | None, bytes]:
    """Return the exit code of a sleeping process, if it has ended, and the program's output."""
    with subprocess.Popen(SLEEP) as late:
        command = ["sh", "-c", KILL_LATE, "sh", str(seconds), "too late", str(late.pid)]
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
