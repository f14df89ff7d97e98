import functools
import warnings
from pathlib import Path

import pytest
from support.marian_checkpoints import checkpoint, languages, write_marian_model

from tfformer.checkpoints.import_model import import_model
from tfformer.inference.translator import Translator


@pytest.fixture(scope="session")
def imported(tmp_path_factory):
    """A function that imports a fixture by name, once, and returns its run directory."""
    runs: dict[str, Path] = {}

    def run_of(name: str) -> Path:
        if name not in runs:
            folder = tmp_path_factory.mktemp("imported")
            with warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                warnings.filterwarnings("ignore", "model.shared.weight is ignored")  # of D
                warnings.filterwarnings("ignore", ".*: max_length 200$")  # of M2M and NLLB
                folder_of_checkpoint = checkpoint(name, folder)
                runs[name] = import_model(folder_of_checkpoint, folder / "run", **languages(name))
        return runs[name]

    return run_of


@pytest.fixture(scope="session")
def loaded(imported):
    """A function that loads the translator of a fixture's run, once.

    Tests must not change its weights.
    """
    return functools.cache(lambda name: Translator.load(imported(name)))


@pytest.fixture
def marian_model(tmp_path):
    """A function that returns the folder of a random Marian model.

    See `support.marian_checkpoints`.
    """
    return lambda name: write_marian_model(name, tmp_path)
