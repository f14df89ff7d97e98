"""The recipe of Multi30k, killed and resumed: the bits of a training that was not killed.

The captions are not part of the repository: without them the test is skipped.
"""

import gzip
import os
import shutil
import signal
import time
from itertools import islice
from multiprocessing.process import BaseProcess
from pathlib import Path

import numpy as np
import pytest
from support import forked
from support.beside import beside_the_checkout

from tfformer.cli.verbs import main

DATA = beside_the_checkout("data", "multi30k")
pytestmark = [
    pytest.mark.nightly,
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


def training(captions: Path, run: Path, *arguments: str) -> BaseProcess:
    settings = SHORT | {"data.folder": captions}
    overrides = [f"--set={name}={value}" for name, value in settings.items()]
    words = ["train", "multi30k-en-de", "--run-dir", str(run), *overrides, *arguments]
    return forked.started(main, words)


def arrays(file: Path) -> dict[str, np.ndarray]:
    with np.load(file) as state:
        return {name: state[name] for name in state.files if name != "history"}


def test_a_training_killed_after_its_first_validation_ends_with_the_same_bits(captions, tmp_path):
    """A process that stands still has the folder that one leaves that is killed then."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    process, end = training(captions, whole), time.monotonic() + PATIENCE
    while not (whole / "best.weights.h5").exists() and time.monotonic() < end:
        time.sleep(0.01)
    assert (whole / "best.weights.h5").exists(), f"no validation within {PATIENCE} s"
    os.kill(process.pid, signal.SIGSTOP)
    try:
        while "T (stopped)" not in Path(f"/proc/{process.pid}/status").read_text():
            assert time.monotonic() < end
            time.sleep(0.001)
        shutil.copytree(whole, killed)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert not (killed / "result.json").exists()
    resumed = training(captions, killed, "--resume")
    for one in (process, resumed):
        one.join()
        assert one.exitcode == 0

    expected, reached = arrays(whole / "resume.npz"), arrays(killed / "resume.npz")
    assert expected.keys() == reached.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(reached[name], array, err_msg=name)
