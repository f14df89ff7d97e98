"""A training into an object store is resumed after a kill between any two changes.

The local copy is lost with the process, so only the store before the next change remains.
"""

import numpy as np
import pytest
from support.faults import record, size
from support.faulty_process import spread
from support.resume_state import state_of

from tfformer.run_directory import Run, check_free
from tfformer.storage.folders import folder_at
from tfformer.training.train import train

CHANGES = ("PUT", "POST", "DELETE")
Image = dict[str, bytes]  # the objects of a store


def state(objects: Image) -> Image:
    """Return the state that determines how the next start continues."""
    return {name: content for name, content in objects.items() if "tensorboard" not in name}


@pytest.fixture(scope="session")  # a process takes tests of other modules in between
def images(smallest_config, object_store) -> list[Image]:
    """Return the distinct states of the store before each change, and at the end."""
    address, taken = object_store.bucket("images"), []

    def look(method: str, path: str) -> None:
        if method in CHANGES:
            object_store.look = lambda method, path: None
            image = object_store.content("images")
            if state(image) not in map(state, taken):
                taken.append(image)
            object_store.look = look

    object_store.look = look
    try:
        train(smallest_config, f"{address}/run", report=lambda line: None)
    finally:
        object_store.look = lambda method, path: None
    return [*taken, object_store.content("images")]


@pytest.mark.nightly
def test_each_state_of_the_store_is_free_or_a_whole_run(images, object_store):
    for number, image in enumerate(images):
        address = f"{object_store.bucket(f'whole-{number}', image)}/run"
        if not folder_at(address).has_file("config.json"):
            check_free(address)
            continue
        run = Run.open(address)
        assert len(run.history()) in (0, 1, 2)
        if run.weights.exists():
            run.check_weights()


@pytest.mark.nightly
def test_a_training_goes_on_from_each_with_the_same_bits(images, smallest_config, object_store):
    numbers = spread(len(images) - 1, size("kills", 3))
    expected = state_of(folder_at("s3://images/run").path)
    for number in numbers:
        address = f"{object_store.bucket(f'on-{number}', images[number - 1])}/run"
        is_run = folder_at(address).has_file("config.json")
        train(smallest_config, address, resume=is_run, report=lambda line: None)
        content = object_store.content(f"on-{number}")
        assert {"run/result.json", "run/best.weights.h5"} < content.keys()
        assert "run/.lock" not in content
        (folder_at(address).path / "resume.npz").write_bytes(content["run/resume.npz"])
        np.testing.assert_equal(state_of(folder_at(address).path), expected)
    tried = f"{len(numbers)} of {len(images) - 1} states between its changes"
    record("train into a store, killed", f"{tried}, all end bitwise equal")
