"""A training that is killed between any two of its files goes on.

The folder that it leaves resumes as if nothing had been.
"""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tfformer.run_directory import Run, check_free
from tfformer.training.train import train

pytestmark = pytest.mark.slow  # a training, and another from each place of a kill


@pytest.fixture(scope="module")
def images(smallest_config, tmp_path_factory) -> list[Path]:
    """The folder as a kill would leave it, and at the end.

    There is an image before each step in which a file appears.
    """
    folder, replace = tmp_path_factory.mktemp("images"), os.replace
    run, taken = folder / "run", []

    def after_an_image(source: str | Path, target: str | Path) -> None:
        taken.append(Path(shutil.copytree(run, folder / f"{len(taken):02}")))
        replace(source, target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "replace", after_an_image)
        train(smallest_config, run, report=lambda line: None)
    return [*taken, run]


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def is_run(folder: Path) -> bool:
    return (folder / "config.json").is_file()


def test_there_are_kills_before_the_run_in_each_epoch_and_before_the_end(images):
    assert sum(not is_run(image) for image in images) >= 3
    assert any("best.weights.h5" in names(image) for image in images)
    assert "result.json" not in names(images[-2])
    assert "result.json" in names(images[-1])


def test_a_folder_that_is_no_run_yet_is_taken_again(images):
    for image in images:
        if not is_run(image):
            assert ".lock" in names(image)
            check_free(image)


def test_a_folder_that_is_a_run_opens_with_all_its_files_whole(images):
    for image in images:
        if is_run(image):
            run = Run.open(image)
            assert run.history() == Run.open(images[-1]).history()[: len(run.history())]
            if run.weights.exists():
                run.check_weights()


def test_training_goes_on_from_each_with_the_variables_of_the_uninterrupted_run(
    smallest_config, images, tmp_path
):
    """From the first image, and the first of each length of the history.

    The first image is no run.
    """
    firsts = {len(Run.open(image).history()): image for image in images[-2::-1] if is_run(image)}
    assert set(firsts) == {0, 1, 2}
    for image in (images[0], *firsts.values()):
        folder = Path(shutil.copytree(image, tmp_path / image.name))
        train(smallest_config, folder, resume=is_run(folder), report=lambda line: None)
        with (
            np.load(images[-1] / "resume.npz") as expected,
            np.load(folder / "resume.npz") as state,
        ):
            for name in set(expected.files) - {"history"}:
                np.testing.assert_array_equal(state[name], expected[name])
        Run.open(folder).check_weights()
