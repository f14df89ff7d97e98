"""Workers on a Ray cluster: refusals, and the number of replacements for lost workers.

tests/faults/test_lost_workers.py trains on a cluster.
"""

import json
import re
from types import SimpleNamespace

import pytest

from tfformer.cli.main import main
from tfformer.config import Config
from tfformer.run_directory.run import digest_of_settings
from tfformer.training.cluster import Cluster, WorkerLostError

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")

from tfformer.training import on_ray as training  # noqa: E402

CONFIG = Config.from_dict({"training": {"strategy": "multi_worker"}})


def command(tmp_path, *options) -> list[str]:
    run = ["--run-dir", str(tmp_path / "run")]
    return ["train", "phrasebook", *run, *options, "--set", "training.strategy=multi_worker"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", "2"], "--workers needs --ray"),
        (["--ray", "nowhere"], "--ray nowhere must be HOST:PORT, ray://HOST:PORT or local"),
        (["--ray", "127.0.0.1:1"], "there is no Ray cluster at 127.0.0.1:1"),
    ],
)
def test_a_mistake_is_one_line(tmp_path, capsys, options, message):
    assert main(command(tmp_path, *options)) == 2
    assert message in capsys.readouterr().err


def test_all_gpus_of_one_machine_need_no_cluster(tmp_path, capsys):
    words = command(tmp_path, "--ray", "local")[:-1]
    assert main([*words, "training.strategy=mirrored"]) == 2
    assert "--ray cannot be combined with training.strategy=mirrored" in capsys.readouterr().err


@pytest.fixture
def cluster(monkeypatch):
    """A cluster of two processors that starts no process."""
    stub = SimpleNamespace(
        exceptions=ray.exceptions,
        cluster_resources=lambda: {"CPU": 2.0},
        get=lambda reference: None,
        shutdown=lambda: None,
    )
    monkeypatch.setattr(training, "ray", stub)
    monkeypatch.setattr(training, "connect", lambda address, log_to_driver: None)
    monkeypatch.setattr(
        training, "Head", lambda: SimpleNamespace(answer=lambda call: stub.get(call))
    )
    return stub


def test_more_workers_than_processors_are_refused(cluster, tmp_path):
    with pytest.raises(ValueError, match="--workers 3 exceeds the 2 processors"):
        training.train_on_ray("local", 3, CONFIG, str(tmp_path))


def test_a_recipe_for_one_device_is_trained_by_several_workers(cluster, monkeypatch, tmp_path):
    configs = []
    monkeypatch.setattr(training, "_trained", lambda *arguments: configs.append(arguments[2]) or {})
    training.train_on_ray("local", 2, Config(), str(tmp_path))
    assert configs == [CONFIG]


def test_another_run_is_not_continued(cluster, tmp_path):
    (tmp_path / "config.json").touch()
    with pytest.raises(FileExistsError, match="already contains a run; add --resume"):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path))


@pytest.mark.parametrize(
    ("error", "expected", "message"),
    [
        (
            ray.exceptions.RayTaskError("fit", "", ValueError("the text is another one")),
            ValueError,
            "the text is another one",
        ),
        (
            ray.exceptions.RayTaskError("fit", "", WorkerLostError("worker 1 is gone")),
            WorkerLostError,
            "a worker was lost 3 times in a row before an epoch ended (worker 1 is gone)",
        ),
        (ray.exceptions.ActorDiedError(), WorkerLostError, "a worker was lost 3 times"),
    ],
)
def test_a_failure_is_one_line_and_ends_each_job(
    cluster, monkeypatch, tmp_path, error, expected, message
):
    def get(reference):
        raise error

    started, killed = [], []

    def start(actor):
        started.append(SimpleNamespace(fit=SimpleNamespace(remote=lambda *arguments: None)))
        return started[-1]

    monkeypatch.setattr(training, "on_head", start)
    cluster.get, cluster.kill = get, killed.append
    with pytest.raises(expected, match=re.escape(message)):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path))
    assert started == killed


def failures(*errors):
    return training.WorkerGroupError("", dict(enumerate(errors)))


def failures_of_the_start(name, argument):
    from ray.train.v2._internal import exceptions

    return training.ControllerError(getattr(exceptions, name)(argument))


LOST, ANOTHER = WorkerLostError("worker 1 is gone"), ValueError("the text is another one")
DIED = ray.exceptions.ActorDiedError()
DEAD = training.WorkerHealthCheckFailedError("a health check failed", DIED)
OTHER_VERSION = ray.exceptions.RayTaskError("_prepare", "", ValueError("another version"))
CAUSES = [
    (failures(LOST, ANOTHER), ANOTHER),  # a refusal before workers that see another gone
    (failures(KeyError("socket"), DEAD), WorkerLostError(str(DIED).splitlines()[-1].strip())),
    (failures(LOST), LOST),
    (training.ControllerError(OTHER_VERSION), ValueError("another version")),
    (failures_of_the_start("WorkerGroupStartupFailedError", "one"), WorkerLostError("one")),
    (
        failures_of_the_start("WorkerGroupStartupTimeoutError", 2),
        TimeoutError("has not started 2 workers within 0.5 minutes (training.wait_minutes)"),
    ),
]


@pytest.mark.parametrize(("error", "expected"), CAUSES)
def test_the_cause_of_a_failed_training_is_told(error, expected):
    cause = training.cause_of(error, 2, 0.5)
    assert type(cause) is type(expected)
    assert str(expected) in str(cause)


def losing(run, calls, epochs):
    """Return a training that loses a worker each time, after the numbers of epochs in `epochs`."""

    def trained(workers, gpus, config, run_dir, resume, init_from):
        calls.append((resume, init_from))
        if len(calls) > len(epochs):
            return {"epochs": 7}
        if epochs[len(calls) - 1]:
            digests = {"settings": digest_of_settings({})}
            (run / "config.json").write_text(json.dumps({"digests": digests}))
            with open(run / "metrics.jsonl", "a") as metrics:
                metrics.write("{}\n" * epochs[len(calls) - 1])
        raise WorkerLostError("worker 1 is gone")

    return trained


def test_losses_without_an_epoch_between_them_end_the_training(cluster, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(training, "_trained", losing(tmp_path, calls, [0] * 9))
    message = r"a worker was lost 3 times in a row before an epoch .*run the same command again$"
    with pytest.raises(WorkerLostError, match=message):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path), init_from="runs/first")
    assert calls == [(False, "runs/first")] * 3


def test_losses_of_a_run_that_has_begun_are_followed_by_a_resume(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "_trained", losing(tmp_path, [], [1, 0, 0]))
    with pytest.raises(WorkerLostError, match=r"3 times in a row .*command with --resume$"):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path))


def test_a_training_that_comes_forward_may_lose_many_workers(cluster, monkeypatch, tmp_path):
    calls, lines = [], []
    monkeypatch.setattr(training, "_trained", losing(tmp_path, calls, [0, 0, 1, 0, 2, 0]))
    result = training.train_on_ray(
        "local", 2, CONFIG, str(tmp_path), init_from="runs/first", report=lines.append
    )
    assert result == {"epochs": 7}
    assert calls == [(False, "runs/first")] * 3 + [(True, None)] * 4
    assert lines == ["restarting all workers, because one was lost: worker 1 is gone"] * 6


def held_after_a_loss(calls, times):
    """Return a training that loses a worker, which still locks the folder for `times` attempts."""

    def trained(*arguments):
        calls.append(arguments)
        if len(calls) == 1:
            raise WorkerLostError("worker 0 is gone")
        if len(calls) <= 1 + times:
            raise BlockingIOError("the folder is being written")
        return {"epochs": 7}

    return trained


def test_a_folder_that_a_lost_worker_still_holds_is_no_further_loss(cluster, monkeypatch, tmp_path):
    calls = []
    monkeypatch.setattr(training, "RETRY_SECONDS", 0)
    monkeypatch.setattr(training, "_trained", held_after_a_loss(calls, 5))
    assert training.train_on_ray("local", 2, CONFIG, str(tmp_path)) == {"epochs": 7}
    assert len(calls) == 7


def test_the_wait_for_a_held_folder_ends(cluster, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(training, "SECONDS_TO_DIE", 0.1)
    monkeypatch.setattr(training, "_trained", held_after_a_loss([], 10**6))
    with pytest.raises(BlockingIOError, match=r"is being written; waited 0\.1 seconds for the"):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path))


def test_a_folder_that_is_held_from_the_beginning_is_refused_at_once(
    cluster, monkeypatch, tmp_path
):
    def trained(*arguments):
        raise BlockingIOError("the folder is being written by another training")

    monkeypatch.setattr(training, "_trained", trained)
    with pytest.raises(BlockingIOError, match=r"by another training$"):
        training.train_on_ray("local", 2, CONFIG, str(tmp_path))


class BoundError(Exception):
    """An error that Ray cannot transfer, because its text is not enough to construct it."""

    def __init__(self, library, text):
        super().__init__(text)


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (ValueError("another text"), ValueError, "another text"),
        (OSError("the disk is full"), OSError, "the disk is full"),
        (BoundError(object(), "a bug"), RuntimeError, "BoundError('a bug')"),
    ],
)
def test_a_worker_raises_errors_that_ray_can_carry(monkeypatch, raised, kind, text):
    def train(*arguments):
        raise raised

    monkeypatch.setattr("tfformer.training.train.train", train)
    task = training.Task(CONFIG.to_dict(), "run", False, None, ".", "0")
    with pytest.raises(kind) as caught:
        training._train({"task": task})
    assert (type(caught.value), str(caught.value)) == (kind, text)


def test_the_workers_variable_is_read_as_that_of_one_by_hand(monkeypatch):
    addresses = ["host1:2222", "host2:2222"]
    monkeypatch.setenv("TF_CONFIG", training.tf_config(addresses, 1))
    assert Cluster.from_environment() == Cluster(tuple(addresses), number=1)
