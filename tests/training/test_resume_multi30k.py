"""The recipe of Multi30k, killed and resumed: the bits of a training that was not killed.

The captions are not part of the repository: without them the test is skipped.
"""

import gzip
import os
import signal
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from support.beside import beside_the_checkout

DATA = beside_the_checkout("data", "multi30k")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(DATA is None, reason="Multi30k is not beside this checkout"),
]
SHORT = {
    "model.num_layers": 1,
    "training.epochs": 2,
    "training.epoch_steps": 3,
    "training.validate_every": 1,
    "training.warmup_steps": 2,
}
TRAINED = 3000  # captions, enough for the recipe's vocabulary
VALIDATED = 8  # the decoding of an untrained model is long
PATIENCE = 120  # seconds for the first epoch


@pytest.fixture(scope="module")
def captions(tmp_path_factory) -> Path:
    """The first of the training and of the validation captions."""
    folder = tmp_path_factory.mktemp("multi30k")
    for split, count in (("train", TRAINED), ("val", VALIDATED)):
        for language in ("en", "de"):
            name = f"{split}.{language}.gz"
            with gzip.open(DATA / name, "rt", encoding="utf-8") as lines:
                text = "".join(islice(lines, count))
            with gzip.open(folder / name, "wt", encoding="utf-8") as file:
                file.write(text)
    return folder


def training(captions: Path, run: Path, *arguments: str) -> subprocess.Popen:
    settings = SHORT | {"data.folder": captions}
    overrides = [f"--set={name}={value}" for name, value in settings.items()]
    command = ["train", "multi30k-en-de", "--run-dir", run, *overrides, *arguments]
    return subprocess.Popen([sys.executable, "-m", "tfformer", *command], stdout=subprocess.DEVNULL)


def arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as state:
        return {name: state[name] for name in state.files if name != "history"}


def test_a_training_killed_after_its_first_validation_ends_with_the_same_bits(captions, tmp_path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert training(captions, whole).wait() == 0

    process, end = training(captions, killed), time.monotonic() + PATIENCE
    while not (killed / "best.weights.h5").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert (killed / "best.weights.h5").exists(), f"no validation within {PATIENCE} s"
    assert process.poll() is None
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert not (killed / "result.json").exists()
    assert training(captions, killed, "--resume").wait() == 0

    expected, resumed = arrays(whole / "resume.npz"), arrays(killed / "resume.npz")
    assert expected.keys() == resumed.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(resumed[name], array, err_msg=name)
