"""Artifacts are found and refused before they are loaded, and fixed for a whole job."""

import shutil
import subprocess
import sys

import pytest
from support.scripted_engine import ScriptedEngine

from tfformer.engines import ArtifactError, artifact, find_artifact
from tfformer.storage.artifact_folders import write_manifest


def export(folder, **values):
    """A folder with only a manifest."""
    folder.mkdir(parents=True)
    decoding = {"max_length": 40, "beam_size": 4, "length_penalty": 0.6}
    signatures = {"serving_default": {}, "translate_beam": {}}
    manifest = {"format": "saved_model", "decoding": decoding, "signatures": signatures}
    write_manifest(folder, manifest | values)
    return folder


@pytest.mark.parametrize(
    ("values", "beam_size", "message"),
    [
        ({"format": "web"}, None, "has the export format web, which tfformer cannot run; export"),
        ({"decoding": {"max_length": 40}}, None, "is an export of a language model"),
        ({"signatures": {"encode": {}}}, None, "does not accept text; export .* without --no-text"),
        ({}, 7, "only --beam-size 1 and 4; omit --beam-size 7, or export"),
    ],
)
def test_an_export_that_cannot_do_it_is_refused(tmp_path, values, beam_size, message):
    with pytest.raises(ValueError, match=message):
        find_artifact(export(tmp_path / "1", **values), beam_size)


def test_the_beam_size_is_the_models_own_unless_another_is_wanted(tmp_path, tiny_run):
    folder = export(tmp_path / "1")
    assert [find_artifact(folder, size).beam_size for size in (None, 1, 4)] == [4, 1, 4]
    assert find_artifact(tiny_run, 3).beam_size == 3
    assert find_artifact(export(tmp_path / "2", format="ctranslate2"), 7).beam_size == 7


def test_the_newest_version_is_that_of_the_beginning(tmp_path, monkeypatch):
    export(tmp_path / "9")
    model = find_artifact(tmp_path)
    export(tmp_path / "10")
    monkeypatch.setattr(artifact, "_opened", lambda format, *location: ScriptedEngine(location, 9))
    assert model.open(threads=3).translate == (str(tmp_path / "9"), 3)


def test_a_model_that_changes_during_the_job_is_refused(tmp_path, monkeypatch):
    model = find_artifact(export(tmp_path / "1"))
    shutil.rmtree(tmp_path / "1")
    export(tmp_path / "1", quantize="int8")
    monkeypatch.setattr(artifact, "_opened", lambda format, *location: ScriptedEngine(location, 9))
    with pytest.raises(ArtifactError, match="has changed since the job began"):
        model.open()


def test_a_runtimes_own_error_names_the_model(tmp_path, monkeypatch):
    def failing(*_):
        raise RuntimeError("unsupported model version")

    monkeypatch.setattr(artifact, "_opened", failing)
    with pytest.raises(ArtifactError, match=r"1 cannot be loaded .*unsupported model version"):
        find_artifact(export(tmp_path / "1")).open()


def test_other_weights_make_another_model(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    before = find_artifact(run)
    assert find_artifact(tiny_run).digest == before.digest
    (run / "best.weights.h5").unlink()
    with pytest.raises(FileNotFoundError, match="no validation has been reached; continue"):
        find_artifact(run)


def test_an_export_without_a_tokenizer_cannot_be_loaded(tmp_path):
    folder = export(tmp_path / "1", format="ctranslate2", digests={"a": EMPTY})
    (folder / "a").touch()
    with pytest.raises(ArtifactError, match="contains no tokenizer"):
        find_artifact(folder).open()


EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"  # SHA-256 of no bytes


def test_workers_of_an_export_for_another_runtime_need_no_tensorflow():
    """TensorFlow would cost each worker some seconds and 600 MB."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install -e '.[ray]'")
    code = (
        "import sys, tfformer.corpora.workers, tfformer.corpora.on_ray\n"
        "print([name for name in ('tensorflow', 'keras') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_command_with_an_export_for_ctranslate2_needs_no_tensorflow(tmp_path):
    """Such an export has a config.json, as a run does."""
    folder = export(tmp_path / "1", format="ctranslate2")
    (folder / "config.json").write_text("{}")
    (tmp_path / "a.en").touch()
    code = (
        "import sys\n"
        "from tfformer.cli.main import main\n"
        "main(sys.argv[1:])\n"
        "print('tensorflow' in sys.modules)"
    )
    words = ["translate", folder, "--input", tmp_path / "a.en", "--output", tmp_path / "out"]
    command = [sys.executable, "-c", code, *map(str, words), "--workers", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--workers 2 is more than the 1 file of" in done.stderr
    assert done.stdout == "False\n"
