"""Runs and exports are distinguished by the names of their files."""

from pathlib import Path

import pytest

from tfformer.storage.artifact_folders import exported_version, is_run, run_folder


def folder_of(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("{}")
    return folder


def test_an_exported_version_with_a_config_is_no_run(tmp_path):
    run = folder_of(tmp_path / "run", "config.json")
    export = folder_of(tmp_path / "export", "config.json", "manifest.json")
    assert (is_run(run), is_run(export), is_run(tmp_path / "missing")) == (True, False, False)
    assert run_folder(run).path == run
    with pytest.raises(FileNotFoundError, match="export is an export, not a run directory; pass"):
        run_folder(export)


def test_the_newest_version_has_the_highest_number(tmp_path):
    export = folder_of(tmp_path, *(f"{name}/manifest.json" for name in ("9", "10", "2", "web")))
    assert exported_version(export) == tmp_path / "10"
    assert exported_version(tmp_path / "2") == tmp_path / "2"


def test_a_folder_without_a_numbered_version_is_no_export(tmp_path):
    assert exported_version(folder_of(tmp_path, "app/manifest.json")) is None
    assert exported_version(tmp_path / "missing") is None
    with pytest.raises(FileNotFoundError, match=r"is not a run directory: it has no config\.json"):
        run_folder(tmp_path)
