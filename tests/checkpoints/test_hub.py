"""Import models from a local server with the API of the Hugging Face hub."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from support.hugging_face_hub import COMMIT, serving
from support.marian_checkpoints import NPZ, checkpoint, edit_json, write_marian_model
from support.ports import free_addresses

from tfformer.checkpoints.foreign_files import fetch_model
from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.provenance import check_stated_digests
from tfformer.cli.main import main
from tfformer.run_directory import Run

constants = pytest.importorskip("huggingface_hub.constants")
NAME = "Helsinki-NLP/opus-mt-en-de"
CARD = "---\nlicense: cc-by-4.0\n---\n"


@pytest.fixture
def hub(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "DEFAULT_ETAG_TIMEOUT", 2)
    with serving() as server:
        monkeypatch.setattr(constants, "ENDPOINT", server.address)
        files = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
        folder = checkpoint("A", tmp_path)
        (folder / "README.md").write_text(CARD)
        (folder / "pytorch_model.bin").write_bytes(b"unused")
        (folder / "tf_model.h5").write_bytes(b"unused")
        server.models[NAME] = folder
        yield server


def refused(tmp_path, capsys, *arguments: str) -> str:
    """Return the error line of an import that exits with code 2 and writes nothing."""
    run = tmp_path / "run"
    assert main(["import", *arguments, "--run-dir", str(run)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert not run.exists()
    return printed.err


@pytest.mark.slow
def test_a_run_from_the_hub_has_the_files_and_the_record(hub, tmp_path, monkeypatch, capsys):
    """The second import uses the cache instead of the hub."""
    for run in ("first", "second"):
        assert main(["import", NAME, "--run-dir", str(tmp_path / run)]) == 0
        assert capsys.readouterr().err == "hugging_face, en to de, 4 beams, licence: cc-by-4.0\n"
        hub.models.clear()
        monkeypatch.setattr(constants, "ENDPOINT", f"http://{free_addresses(1)[0]}")
    record = json.loads((tmp_path / "first" / "imported.json").read_text())
    assert record["origin"] == f"{NAME}@{COMMIT}"
    assert record["licence"] == "cc-by-4.0"
    local = import_model(tmp_path / "A", tmp_path / "local")
    weights = Run.open(local).load_model().get_weights()
    for run in ("first", "second"):
        assert (tmp_path / run / "config.json").read_bytes() == (local / "config.json").read_bytes()
        downloaded = Run.open(tmp_path / run).load_model().get_weights()
        assert all(map(np.array_equal, downloaded, weights))


def test_only_needed_files_are_downloaded_and_once(hub, tmp_path):
    needed = {path.name for path in (tmp_path / "A").iterdir()}
    needed -= {"pytorch_model.bin", "tf_model.h5"}
    folder = fetch_model(NAME, "v1")
    assert {path.name for path in folder.iterdir()} == needed
    assert sorted(hub.requests) == sorted(needed)
    assert fetch_model(NAME, "v1") == folder
    assert len(hub.requests) == len(needed)


def test_pytorch_weights_and_marian_models_are_found(hub, tmp_path):
    (tmp_path / "A" / "model.safetensors").unlink()
    assert (fetch_model(NAME) / "pytorch_model.bin").is_file()
    hub.models["marian/own"] = write_marian_model("separate", tmp_path)
    folder = fetch_model("marian/own")
    assert (folder / NPZ).is_file()
    assert (folder / "decoder.yml").is_file()


def test_each_failure_is_one_line(hub, tmp_path, capsys, monkeypatch):
    assert "nobody/knows is not a folder, a zip file or a model on" in refused(
        tmp_path, capsys, "nobody/knows"
    )
    line = refused(tmp_path, capsys, NAME, "--revision", "v2")
    assert f"{NAME} has no revision 'v2'; use a branch, a tag or a commit" in line
    hub.gated.add(NAME)
    assert f"{NAME} is gated: accept its terms at {hub.address}/{NAME}" in refused(
        tmp_path, capsys, NAME
    )
    hub.gated.clear()
    edit_json(tmp_path / "A" / "config.json", model_type="t5")
    line = refused(tmp_path, capsys, NAME)
    assert "has the model_type 't5'; supported are marian and" in line
    monkeypatch.setattr(constants, "ENDPOINT", f"http://{free_addresses(1)[0]}")
    assert "cannot be reached, and other/model is not in the cache" in refused(
        tmp_path, capsys, "other/model"
    )


def test_a_missing_extra_is_named(hub, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "pip install -e '.[hub]'" in refused(tmp_path, capsys, NAME)


def test_a_file_that_arrives_changed_is_refused(hub, tmp_path, capsys):
    hub.damaged.add("model.safetensors")
    line = refused(tmp_path, capsys, NAME)
    assert "its digest is not" in line
    hub.damaged.clear()
    Path(re.search("delete (.*) to download it again", line)[1]).unlink()
    check_stated_digests(fetch_model(NAME))


def test_a_download_that_breaks_off_leaves_the_cache_whole(hub, tmp_path, capsys):
    hub.cut_off.add("model.safetensors")
    assert f"the download of {NAME} was interrupted" in refused(tmp_path, capsys, NAME)
    hub.cut_off.clear()
    folder = fetch_model(NAME)
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "A" / file.name).read_bytes()
