"""A worker is killed at a random moment; after a restart, all workers end with the same result."""

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from support import forked
from support.faults import record, size
from support.ports import free_addresses, tf_config
from support.process_tree import descendants
from support.resume_state import state_of

from tfformer.cli.main import main
from tfformer.storage.folders import folder_at

EPOCHS = 30
PATIENCE_SECONDS = 600


def started(recipe: Path, run: Path | str, *more: str) -> list[BaseProcess]:
    """Start two workers that train, with their messages in files beside the recipe."""
    addresses, words = free_addresses(2), ["train", str(recipe), "--run-dir", str(run), *more]
    return [
        forked.started(main, words, output=Path(f"{recipe}.{n}"), TF_CONFIG=tf_config(addresses, n))
        for n in range(2)
    ]


def codes(processes: list[BaseProcess]) -> list[int | None]:
    for process in processes:
        process.join(PATIENCE_SECONDS)
    return [process.exitcode for process in processes]


def files(run: Path | str) -> Path:
    """Return the run's files; for an object store, those of the local copy, which is up to date."""
    folder = folder_at(run)
    folder.pull()
    return folder.path


def epochs(run: Path | str) -> int:
    metrics = files(run) / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.exists() else 0


def wait_for_epochs(run: Path | str, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while epochs(run) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture(scope="module")
def recipe(smallest_config, tmp_path_factory) -> Path:
    values = smallest_config.to_dict()
    values["training"] |= {"strategy": "multi_worker", "epochs": EPOCHS, "wait_minutes": 5}
    values["training"] |= {"validate_every": EPOCHS // 2}
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(json.dumps(values))
    return path


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory) -> dict[str, np.ndarray]:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    assert codes(started(recipe, run)) == [0, 0]
    return state_of(files(run))


@pytest.fixture(params=["a folder", "an object store"])
def run_root(request, tmp_path) -> str:
    """The folder or address of the runs."""
    if request.param == "a folder":
        return str(tmp_path)
    return request.getfixturevalue("object_store").bucket("lost-workers")


@pytest.mark.nightly
def test_a_killed_worker_costs_nothing_but_time(recipe, undisturbed, run_root):
    draw, same = random.Random(os.urandom(8)), 0
    where = "a store" if "://" in run_root else "a folder"
    kills = size("worker_kills", 1 if where == "a store" else 0)
    if not kills:
        pytest.skip("only scripts/faults.sh tries this; a store is tried in its place")
    for kill in range(kills):
        run, victim = f"{run_root}/{kill}", draw.randrange(2)
        processes = started(recipe, run)
        wait_for_epochs(run, draw.randint(1, EPOCHS // 3))
        time.sleep(draw.random() / 10)
        processes[victim].kill()
        begin = time.monotonic()
        assert codes(processes)[1 - victim] == 2
        assert time.monotonic() - begin < 120
        last = Path(f"{recipe}.{1 - victim}").read_text().splitlines()[-1]
        assert last.startswith(f"tfformer: worker {victim} (localhost:")
        assert last.endswith("; restart every worker, with --resume if the run has begun")
        assert codes(started(recipe, run, "--resume")) == [0, 0]
        np.testing.assert_equal(state_of(files(run)), undisturbed)
        same += 1
    result = f"{kills} kills, {same} with the bits of an undisturbed training"
    record(f"workers killed, run in {where}", result)


def started_on_a_cluster(recipe: Path, run: Path, *more: str) -> subprocess.Popen:
    """Start two workers on a Ray cluster on this machine, which the command starts and stops."""
    words = ["train", recipe, "--run-dir", run, "--ray", "local", "--workers", 2, *more]
    with open(f"{run}.messages", "a") as output:
        return subprocess.Popen(
            [sys.executable, "-m", "tfformer", *map(str, words)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def killed(name: str, process: subprocess.Popen) -> None:
    """Kill a random process with this name below another process."""
    numbers = [number for number, line in descendants(process.pid).items() if name in line]
    os.kill(random.choice(numbers), signal.SIGKILL)


def lose_a_worker(process: subprocess.Popen) -> None:
    killed("ray::RayTrainWorker", process)


def lose_the_head(process: subprocess.Popen) -> None:
    killed("gcs_server", process)


def stop_the_machine(process: subprocess.Popen) -> None:
    """Ask each process to end, as a machine does before it shuts down."""
    for number in [process.pid, *descendants(process.pid)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGTERM)


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("lose", "sample"), [(lose_a_worker, 1), (lose_the_head, 0), (stop_the_machine, 0)]
)
def test_a_training_on_a_cluster_ends_with_the_same_bits(
    recipe, undisturbed, tmp_path, lose, sample
):
    """The command replaces a lost worker itself; after other losses it is run again.

    If a training ends before the loss of the head is noticed, its bits are compared immediately.
    """
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    losses, resumed, same = size("cluster_losses", sample), 0, 0
    if not losses:
        pytest.skip("only scripts/faults.sh tries this")
    for number in range(losses):
        run = tmp_path / str(number)
        process = started_on_a_cluster(recipe, run)
        wait_for_epochs(run, random.randint(1, EPOCHS // 2))
        time.sleep(random.random() / 10)
        lose(process)
        code, messages = process.wait(PATIENCE_SECONDS), Path(f"{run}.messages").read_text()
        if lose is lose_a_worker:
            assert code == 0, messages
            assert "restarting all workers, because one was lost: " in messages
        if lose is lose_the_head and code:
            assert "tfformer: the head of the Ray cluster" in messages
        if lose is stop_the_machine:
            assert code, messages
        if code:
            assert "Traceback" not in messages
            assert started_on_a_cluster(recipe, run, "--resume").wait(PATIENCE_SECONDS) == 0
            resumed += 1
        np.testing.assert_equal(state_of(files(run)), undisturbed)
        same += 1
    record(
        f"on Ray: {lose.__name__.replace('_', ' ')}",
        f"{losses} times, {resumed} resumed, {same} with the bits of an undisturbed training",
    )
