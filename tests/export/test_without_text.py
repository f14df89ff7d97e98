"""Without TensorFlow Text, which is not released for every TensorFlow, only ids are exported."""

import json
import sys

import pytest
from support.untrained import untrained_translator

from tfformer.export.pipeline import export_model


@pytest.fixture(autouse=True)
def without_tf_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)


@pytest.mark.slow
def test_text_is_refused_in_one_line(tiny_run, tmp_path):
    with pytest.raises(ValueError, match=r"TensorFlow Text, .* TensorFlow 2\.\d+.*--no-text"):
        export_model(tiny_run, tmp_path / "models")
    assert not (tmp_path / "models").exists()


@pytest.mark.slow
def test_ids_are_exported(tmp_path):
    version = untrained_translator().export(tmp_path, with_text=False)
    measured = json.loads((version / "manifest.json").read_text())["parity"]["translate_ids"]
    assert measured["identical"] == measured["sentences"] == 32
