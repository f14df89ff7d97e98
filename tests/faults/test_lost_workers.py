"""A worker is killed at a random moment; all start again and end as if nothing had been."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from support.faults import record, size
from support.ports import free_addresses, tf_config

EPOCHS = 60
PATIENCE_SECONDS = 600


def started(recipe: Path, run: Path, *more: str) -> list[subprocess.Popen]:
    """Two workers that train, with their messages in files beside the run."""
    addresses, processes = free_addresses(2), []
    for number in range(2):
        command = [sys.executable, "-m", "tfformer", "train", str(recipe), "--run-dir", str(run)]
        environment = os.environ | {"TF_CONFIG": tf_config(addresses, number)}
        with open(f"{run}.{number}", "w") as messages:
            processes.append(
                subprocess.Popen(
                    [*command, *more], env=environment, stdout=messages, stderr=subprocess.STDOUT
                )
            )
    return processes


def codes(processes: list[subprocess.Popen]) -> list[int]:
    return [process.wait(PATIENCE_SECONDS) for process in processes]


def epochs(run: Path) -> int:
    metrics = run / "metrics.jsonl"
    return len(metrics.read_text().splitlines()) if metrics.exists() else 0


def wait_for_epochs(run: Path, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while epochs(run) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(scope="module")
def recipe(smallest_config, tmp_path_factory) -> Path:
    values = smallest_config.to_dict()
    values["training"] |= {"strategy": "multi_worker", "epochs": EPOCHS, "wait_minutes": 5}
    values["training"] |= {"validate_every": 30}
    path = tmp_path_factory.mktemp("recipe") / "recipe.yaml"
    path.write_text(json.dumps(values))
    return path


@pytest.fixture(scope="module")
def undisturbed(recipe, tmp_path_factory) -> dict[str, np.ndarray]:
    run = tmp_path_factory.mktemp("undisturbed") / "run"
    assert codes(started(recipe, run)) == [0, 0]
    return state(run)


def state(run: Path) -> dict[str, np.ndarray]:
    with np.load(run / "resume.npz") as arrays:
        return {name: arrays[name] for name in arrays.files if name != "history"}


@pytest.mark.slow
def test_a_killed_worker_costs_nothing_but_time(recipe, undisturbed, tmp_path):
    draw, same = random.Random(os.urandom(8)), 0
    kills = size("worker_kills", 1)
    for kill in range(kills):
        run, victim = tmp_path / str(kill), draw.randrange(2)
        processes = started(recipe, run)
        wait_for_epochs(run, draw.randint(1, EPOCHS // 2))
        time.sleep(draw.random() / 10)
        processes[victim].kill()
        begin = time.monotonic()
        assert codes(processes)[1 - victim] == 2
        assert time.monotonic() - begin < 120
        last = Path(f"{run}.{1 - victim}").read_text().splitlines()[-1]
        assert last.startswith(f"tfformer: worker {victim} (localhost:")
        assert last.endswith("; restart every worker with --resume")
        assert codes(started(recipe, run, "--resume")) == [0, 0]
        for name, array in state(run).items():
            np.testing.assert_array_equal(array, undisturbed[name])
        same += 1
    record("workers killed", f"{kills} kills, {same} with the bits of an undisturbed training")


@pytest.mark.slow
def test_a_cluster_replaces_a_killed_worker_and_ends_with_the_same_bits(
    recipe, undisturbed, tmp_path
):
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'tfformer[ray]'")
    run, messages = tmp_path / "run", tmp_path / "messages"
    words = ["train", recipe, "--run-dir", run, "--ray", "local", "--workers", 2]
    with open(messages, "w") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "tfformer", *map(str, words)],
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    wait_for_epochs(run, EPOCHS // 6)
    chief = re.search(r"TrainingWorker pid=(\d+)", messages.read_text())
    os.kill(int(chief[1]), signal.SIGKILL)
    assert process.wait(PATIENCE_SECONDS) == 0, messages.read_text()
    assert "all workers begin again, as one was lost: " in messages.read_text()
    for name, array in state(run).items():
        np.testing.assert_array_equal(array, undisturbed[name])
