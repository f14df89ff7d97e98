"""Several devices or processes take the same steps as one device.

Each layout trains fifty steps in separate processes, in float32 without dropout, with clipping,
accumulation, averaged weights and a scaled loss.
"""

import json

import numpy as np
import pytest
from support import forked, parallel_steps
from support.parallel_steps import COUNTS, SHAPE, STEPS
from support.ports import free_addresses, tf_config

from tfformer.cli.main import main


@pytest.fixture(scope="module")
def steps(tmp_path_factory) -> dict[str, np.ndarray]:
    """The losses and weights of each layout, and of both workers."""
    folder, addresses = tmp_path_factory.mktemp("steps"), free_addresses(2)
    processes = [forked.started(parallel_steps.main, folder / "devices.npz", "devices", "adam")]
    for number in range(2):
        to = folder / f"worker{number}.npz"
        task = tf_config(addresses, number)
        processes.append(forked.started(parallel_steps.main, to, "workers", "adam", TF_CONFIG=task))
    for process in processes:
        process.join(900)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    arrays_of_runs = {}
    for name in ("devices", "worker0", "worker1"):
        with np.load(folder / f"{name}.npz") as arrays:
            arrays_of_runs |= {f"{name}_{key}": arrays[key] for key in arrays.files}
    return arrays_of_runs


LAYOUTS = [
    *(("devices", count) for count in COUNTS if count > 1),
    ("worker0", 2),
    ("worker1", 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "count"), LAYOUTS)
def test_losses_and_weights_are_those_of_one_device(steps, strategy, count):
    several, single = f"{strategy}_{count}", "devices_1"
    assert len(steps[f"{single}_losses"]) == STEPS
    np.testing.assert_allclose(steps[f"{several}_losses"], steps[f"{single}_losses"], rtol=1e-5)
    np.testing.assert_allclose(
        steps[f"{several}_weights"], steps[f"{single}_weights"], rtol=0, atol=1e-5
    )


@pytest.mark.nightly
def test_steps_of_muon_are_those_of_one_device(tmp_path):
    process = forked.started(parallel_steps.main, tmp_path / "steps.npz", "devices", "muon")
    process.join(900)
    with np.load(tmp_path / "steps.npz") as steps:
        np.testing.assert_allclose(steps["3_losses"], steps["1_losses"], rtol=1e-5)
        np.testing.assert_allclose(steps["3_weights"], steps["1_weights"], rtol=0, atol=1e-5)


@pytest.mark.slow
def test_all_workers_have_the_same_bits(steps):
    weights = [steps[f"worker{number}_2_weights"] for number in range(2)]
    np.testing.assert_array_equal(*weights)


@pytest.mark.slow
@pytest.mark.parametrize(("strategy", "count"), LAYOUTS)
def test_no_shape_of_a_batch_is_traced_by_itself(steps, strategy, count):
    """Two traces, with and without variables to create, for dozens of batch shapes."""
    shards = count if strategy == "devices" else 1
    assert steps[f"{strategy}_{count}_traced"] in (shards, 2 * shards)


@pytest.mark.slow
def test_workers_with_another_text_are_refused_before_the_first_step(tmp_path):
    """The files have the same names, vocabulary and number of words."""
    recipe = {
        "model": SHAPE,
        "tokenizer": {"vocab_size": 10},
        "data": {"train": "train.tsv", "valid": "train.tsv", "max_length": 20},
        "training": {"epochs": 1, "strategy": "multi_worker", "wait_minutes": 5},
    }
    (tmp_path / "recipe.yaml").write_text(json.dumps(recipe))
    words = ["train", f"{tmp_path}/recipe.yaml", "--run-dir", f"{tmp_path}/run", "--set"]
    addresses, processes = free_addresses(2), []
    for number, line in enumerate(("a b\tc d\n", "b a\tc d\n")):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "train.tsv").write_text("a b\tc d\n" * 40 + line)
        task = tf_config(addresses, number)
        given = [*words, f"data.folder={folder}"]
        processes.append(forked.started(main, given, output=folder / "messages", TF_CONFIG=task))
    for process in processes:
        process.join(600)
    assert [process.exitcode for process in processes] == [2, 2]
    for number in range(2):
        last = (tmp_path / str(number) / "messages").read_text().splitlines()[-1]
        assert last.startswith(f"tfformer: worker 1 ({addresses[1]}) has the text's digest ")
        assert last.endswith("start every worker with the same recipe, text and versions")
    assert not (tmp_path / "run").exists()
