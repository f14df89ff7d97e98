"""Importing TensorFlow loads no unneeded modules, collects no garbage and prints no lines."""

import gc
import importlib
import os
import subprocess
import sys

import pytest

from tfformer.runtime import tensorflow

PROGRAM = """
import gc, sys
from tfformer.runtime.tensorflow import import_tensorflow
collections = [generation["collections"] for generation in gc.get_stats()]
import_tensorflow()
print({"keras", "tensorflow", "matplotlib", "pandas"} & set(sys.modules) == {"keras", "tensorflow"})
print(collections == [generation["collections"] for generation in gc.get_stats()])
print(gc.isenabled(), gc.get_freeze_count() > 100_000)
import matplotlib.pyplot
"""


@pytest.mark.slow
def test_the_import_is_silent_and_what_it_leaves_out_can_be_imported_afterwards():
    environment = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 4
    assert done.stderr == ""


def test_a_module_is_missing_for_a_while_unless_it_is_imported(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "made_up_module.py").touch()
    with tensorflow._missing(("gc", "made_up_module")):
        assert sys.modules["gc"] is gc
        with pytest.raises(ImportError):
            importlib.import_module("made_up_module")
    assert importlib.import_module("made_up_module")


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    try:
        with tensorflow._no_garbage_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()
