"""TF_CONFIG, the meeting of its processes, and the errors about workers that are late or lost."""

import json
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from types import SimpleNamespace

import pytest
import tensorflow as tf
from support.ports import free_addresses, tf_config

from tfformer.training.cluster import Cluster, WorkerLostError
from tfformer.training.multi_worker import KILL_LATE, ClusterWorkers


def test_a_chief_comes_before_the_workers(monkeypatch):
    jobs = {"chief": ["a:1"], "worker": ["b:2", "[::1]:3"]}
    for task, number in (("chief", 0), 0), (("worker", 0), 1), (("worker", 1), 2):
        values = {"cluster": jobs, "task": {"type": task[0], "index": task[1]}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(values))
        assert Cluster.from_environment() == Cluster(("a:1", "b:2", "[::1]:3"), number)


def test_without_a_chief_the_first_worker_is_the_first(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", tf_config(("a:1", "b:2"), 1))
    assert Cluster.from_environment() == Cluster(("a:1", "b:2"), 1)


def cluster(jobs: object, kind: object = "worker", index: object = 0) -> str:
    return json.dumps({"cluster": jobs, "task": {"type": kind, "index": index}})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "TF_CONFIG is not set; set it in each process, for example to {"),
        ("{", "TF_CONFIG is not JSON"),
        ("[" * 100_000, "TF_CONFIG is not JSON"),
        ("[]", "must look like {"),
        (cluster([]), "must look like {"),
        (cluster({"worker": ["a:1"]}, index="0"), "must look like {"),
        (cluster({"worker": ["a:1"], "ps": ["b:2"]}), "names the job 'ps'; only chief and worker"),
        (cluster({"worker": "a:1"}), "has 'a:1' as its worker; use a list of host:port"),
        (cluster({"worker": ["a"]}), "use a list of host:port"),
        (cluster({"worker": ["a:0"]}), "use a list of host:port"),
        (cluster({"worker": ["a:65536"]}), "use a list of host:port"),
        (cluster({"worker": ["a:1"], "chief": ["b:1", "c:1"]}), "has 2 chiefs; use at most one"),
        (cluster({"worker": ["a:1", "a:1"]}), "names an address twice"),
        (cluster({"worker": ["a:1"]}, index=1), "this process is 'worker' 1, which is not in its"),
        (cluster({"worker": ["a:1"]}, index=-1), "this process is 'worker' -1, which"),
        (cluster({"worker": ["a:1"]}, "chief"), "this process is 'chief' 0, which is not in its"),
    ],
)
def test_a_tf_config_that_names_no_worker_is_refused(monkeypatch, value, message):
    monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(ValueError, match=r"training.strategy=multi_worker: TF_CONFIG ") as error:
        Cluster.from_environment()
    assert message in str(error.value)


def met(addresses: tuple[str, ...], facts: list[dict]) -> list[list]:
    """Return what each worker learns about all workers when they meet."""
    with ThreadPoolExecutor() as threads:
        waiting = [
            threads.submit(Cluster(addresses, number).gathered, of_worker, 1)
            for number, of_worker in enumerate(facts)
        ]
        return [worker.result() for worker in waiting]


def test_workers_that_meet_know_the_facts_of_all():
    facts = [{"seed": 1, "worker": number} for number in range(3)]
    assert met(free_addresses(3), facts) == [facts] * 3


def test_each_worker_names_the_same_difference():
    addresses = free_addresses(2)
    facts = met(addresses, [{"training.seed": 1}, {"training.seed": 2}])
    for number in range(2):
        with pytest.raises(
            ValueError,
            match=rf"worker 1 \({addresses[1]}\) has training.seed 2, but worker 0 "
            rf"\({addresses[0]}\) has 1; start every worker with the same recipe",
        ):
            Cluster(addresses, number).check_alike(facts[number])


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, r"worker 1 \(.*\) did not connect within 0.02 minutes \(training.wait_minutes\)"),
        (1, r"worker 0 \(.*\) did not answer within 0.02 minutes \(training.wait_minutes\); start"),
    ],
)
def test_a_worker_that_does_not_come_is_named_within_the_limit(number, message):
    start = time.monotonic()
    with pytest.raises(WorkerLostError, match=message):
        Cluster(free_addresses(2), number).gathered({}, 0.02)
    assert time.monotonic() - start < 10


@pytest.mark.parametrize(("number", "stated"), [(1, 3), (2, 3), (1, 2)])
def test_a_worker_of_another_cluster_is_refused_at_once(number, stated):
    """Its TF_CONFIG names more or fewer workers than the first one's.

    The other workers continue.
    """
    addresses, count = free_addresses(3), 5 - stated
    with ThreadPoolExecutor() as threads:
        first = [threads.submit(Cluster(addresses[:count], 0).gathered, {}, 1)]
        message = rf"names {stated} workers for worker {number} \(.*, but {count} for worker 0 "
        with pytest.raises(ValueError, match=message):
            Cluster(addresses[:stated], number).gathered({}, 1)
        second = [
            threads.submit(Cluster(addresses[:count], n).gathered, {}, 1) for n in range(1, count)
        ]
        assert [future.result() for future in first + second] == [[{}] * count] * count


def test_a_strangers_words_do_not_disturb_a_meeting():
    addresses = free_addresses(2)
    port = int(addresses[0].rpartition(":")[2])
    with ThreadPoolExecutor() as threads:
        chief = threads.submit(Cluster(addresses, 0).gathered, {"number": 0}, 1)
        for words in (b"GET / HTTP/1.1\r\n\r\n", b'{"worker": 7, "facts": {}}\n', b"\xff\n", b""):
            speak_to(port, words)
        follower = threads.submit(Cluster(addresses, 1).gathered, {"number": 1}, 1)
        assert chief.result() == follower.result() == [{"number": 0}, {"number": 1}]


def test_the_answer_may_be_longer_than_the_words_of_one(monkeypatch):
    facts = [{"recipe": letter * 150} for letter in "abc"]
    monkeypatch.setattr("tfformer.training.cluster.MESSAGE_BYTES", 200)
    assert met(free_addresses(3), facts) == [facts] * 3


@pytest.mark.parametrize("words", [b"x", b""])
def test_a_stranger_that_is_slow_or_silent_is_not_heard_for_long(monkeypatch, words):
    monkeypatch.setattr("tfformer.training.cluster.ANSWER_SECONDS", 0.3)
    addresses = free_addresses(2)
    with ThreadPoolExecutor(2) as threads:
        chief = threads.submit(Cluster(addresses, 0).gathered, {}, 0.02)
        stranger = threads.submit(speak_slowly, int(addresses[0].rpartition(":")[2]), words)
        began = time.monotonic()
        with pytest.raises(WorkerLostError, match="did not connect"):
            chief.result(30)
        assert time.monotonic() - began < 3
        stranger.result(30)


def called(port: int) -> socket.socket:
    """Connect to a port of this machine as soon as a process listens there."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            return socket.create_connection(("localhost", port), timeout=5)
        except ConnectionRefusedError:
            time.sleep(0.05)
    raise TimeoutError("the chief does not listen")


def speak_slowly(port: int, words: bytes) -> None:
    """Send words every 0.1 s for five seconds, or until the connection is closed."""
    with called(port) as line, suppress(OSError):
        end = time.monotonic() + 5
        while time.monotonic() < end:
            line.sendall(words)
            time.sleep(0.1)


def speak_to(port: int, words: bytes) -> None:
    with called(port) as line:
        line.sendall(words)


def test_a_port_that_is_taken_is_named():
    addresses = free_addresses(2)
    port = int(addresses[0].rpartition(":")[2])
    with (
        socket.create_server(("", port)),
        pytest.raises(
            OSError, match=rf"worker 0 \({addresses[0]}\) cannot listen on its port \(Add"
        ),
    ):
        Cluster(addresses, 0).gathered({}, 0.02)


def test_workers_at_whose_address_nobody_listens_are_found():
    addresses = free_addresses(3)
    port = int(addresses[1].rpartition(":")[2])
    with socket.create_server(("localhost", port)):
        assert Cluster(addresses, 0).closed() == [2]


def test_a_worker_that_comes_again_is_answered():
    """As after a restart while the chief still waits for a third worker."""
    addresses = free_addresses(3)
    with ThreadPoolExecutor() as threads:
        chief = threads.submit(Cluster(addresses, 0).gathered, {}, 1)
        port = int(addresses[0].rpartition(":")[2])
        speak_to(port, b'{"worker": 1, "facts": {"try": 1}}\n')
        with socket.create_connection(("localhost", port), timeout=60) as again:
            again.sendall(b'{"worker": 1, "facts": {"try": 2}}\n')
            third = threads.submit(Cluster(addresses, 2).gathered, {"try": 1}, 1)
            answer = json.loads(again.makefile().readline())
        assert answer == [{}, {"try": 2}, {"try": 1}]
        assert chief.result() == third.result() == answer


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
