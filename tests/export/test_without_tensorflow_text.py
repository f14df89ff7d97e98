"""Without TensorFlow Text, which is not released for every TensorFlow, only ids are exported."""

import json
import sys

import pytest
import tensorflow as tf
from support.untrained_models import untrained_translator

from tfformer.export.pipeline import export_model
from tfformer.export.saved_model.writer import signatures


@pytest.fixture(autouse=True)
def without_tf_text(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)


@pytest.mark.slow
def test_text_is_refused_in_one_line(tiny_run, tmp_path):
    with pytest.raises(ValueError, match=r"TensorFlow Text, .* TensorFlow 2\.\d+.*--no-text"):
        export_model(tiny_run, tmp_path / "models")
    assert not (tmp_path / "models").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("one_process")
def test_ids_are_exported_and_no_text(tmp_path):
    version = untrained_translator().export(tmp_path, with_text=False, max_length=8)
    manifest = json.loads((version / "manifest.json").read_text())
    measured = manifest["parity"]["translate_ids"]
    assert measured["identical"] == measured["sentences"] >= 30
    assert set(signatures(version)) == {"translate_ids", "align_ids"}
    warmup = (version / "assets.extra" / "tf_serving_warmup_requests").read_bytes()
    assert b"translate_ids" in warmup
    assert b"serving_default" not in warmup
    assert b"entencepiece" not in (version / "saved_model.pb").read_bytes()
    assert manifest["decoding"]["max_length"] == 8
    translate = tf.saved_model.load(str(version)).signatures["translate_ids"]
    assert translate(ids=tf.fill((1, 90), 5), lengths=tf.constant([90]))["lengths"][0] <= 8
