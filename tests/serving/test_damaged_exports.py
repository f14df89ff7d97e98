"""Damaged or changed exports are refused in one line, before TensorFlow loads them."""

import json
import shutil

import pytest
from support.servers import save_scripted_model, write_manifest_of

from tfformer.cli.main import main
from tfformer.serving.served_models import ServedModel
from tfformer.storage.artifact_folders import check_files, read_manifest, write_manifest


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A scripted export with its manifest."""
    folder = tmp_path_factory.mktemp("sound") / "1"
    save_scripted_model(folder, "v1")
    write_manifest_of(folder)
    return folder


@pytest.fixture
def export(sound, tmp_path):
    """A copy of the export, to be damaged."""
    return shutil.copytree(sound, tmp_path / "echo" / "1")


def refused(capsys, export) -> str:
    """Return the error line of `tfformer serve`, which follows its step "loading ..."."""
    assert main(["serve", str(export), "--port", "0"]) == 2
    lines = capsys.readouterr().err.splitlines()
    (line,) = (line for line in lines if not line.startswith("loading "))
    return line


def test_a_sound_export_is_served(export):
    assert ServedModel("echo", export).versions.keys() == {1}


def test_a_damaged_version_does_not_keep_sound_ones_from_being_served(sound, tmp_path, capsys):
    """The newest two sound versions are served; each is opened once, an error printed once."""
    versions = tmp_path / "echo"
    for number in "12345":
        shutil.copytree(sound, versions / number)
    for number in "35":
        (versions / number / "fingerprint.pb").write_bytes(b"")
    model = ServedModel("echo", versions)
    assert list(model.versions) == [2, 4]
    opened = dict(model.versions)
    model.reload()
    assert model.versions == opened
    errors = sorted(capsys.readouterr().err.splitlines())
    for number, error in zip("35", errors, strict=True):
        assert error.startswith(f"echo: {versions}/{number}/fingerprint.pb ")


def test_a_version_whose_manifest_arrives_last_is_opened_again(export):
    manifest = (export / "manifest.json").read_bytes()
    (export / "manifest.json").unlink()
    model = ServedModel("echo", export)
    assert model.newest.manifest == {}
    (export / "manifest.json").write_bytes(manifest[:9])  # half copied: the version stays
    assert not model.load()
    (export / "manifest.json").write_bytes(manifest)
    assert model.load()
    assert model.newest.manifest["digests"].keys() >= {"saved_model.pb"}
    assert not model.load()


@pytest.mark.parametrize("name", ["manifest.json", "fingerprint.pb"])
def test_a_file_that_may_never_end_is_refused(export, capsys, name):
    (export / name).unlink()
    (export / name).symlink_to("/dev/zero")
    assert f"{name} is a device or a pipe; use a regular file" in refused(capsys, export)


@pytest.mark.parametrize(
    "name",
    [
        "saved_model.pb",
        "variables/variables.index",
        "variables/variables.data-00000-of-00001",
        "fingerprint.pb",
    ],
)
@pytest.mark.parametrize("damage", ["shorter", "one bit", "empty", "gone"])
def test_a_damaged_file_is_refused_by_its_digest(export, capsys, name, damage):
    path = export / name
    content = path.read_bytes()
    middle = len(content) // 2
    if damage == "gone":
        path.unlink()
    else:
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes({"shorter": content[:middle], "one bit": flipped, "empty": b""}[damage])
    line = refused(capsys, export)
    assert f"{path} " in line
    assert "copy the whole exported folder again" in line


@pytest.mark.parametrize("name", ["variables/variables.index", "fingerprint.pb"])
def test_without_a_manifest_a_damaged_file_is_still_one_line(export, capsys, name):
    (export / "manifest.json").unlink()
    (export / name).write_bytes(b"\xff")
    assert "cannot be loaded" in refused(capsys, export)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "manifest.json cannot be read"),
        ("[" * 100_000, "manifest.json cannot be read"),
        ("[]", "must contain a JSON object"),
    ],
)
def test_a_manifest_of_another_form_is_refused(export, capsys, text, message):
    (export / "manifest.json").write_text(text, encoding="utf-8")
    assert message in refused(capsys, export)


@pytest.mark.parametrize(
    ("manifest", "message"),
    [
        ({}, "has no object `digests`"),
        ({"digests": 7}, "has no object `digests`"),
        ({"digests": {}}, "has no object `digests`"),
        ({"digests": {"saved_model.pb": 7}}, "is not the file that was exported"),
        ({"digests": {"../../x": "0"}}, "outside its folder"),
        ({"digests": {"/dev/zero": "0"}}, "outside its folder"),
        ({"digests": {"none": "0"}}, "none cannot be read (No such file or directory)"),
    ],
)
def test_digests_of_another_form_are_refused(export, capsys, manifest, message):
    write_manifest(export, {"format": "saved_model"} | manifest)
    assert message in refused(capsys, export)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../../vocabulary", "names the vocabulary '../../vocabulary', which is not among its"),
        ("none.model", "names the vocabulary 'none.model', which is not among its files"),
        ("fingerprint.pb", "fingerprint.pb"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(export, capsys, name, message):
    (export / "manifest.json").unlink()
    write_manifest_of(export, tokenizers={name: "0"})
    assert message in refused(capsys, export)


def test_a_manifest_knows_its_own_digest(export, capsys):
    """A single changed value is detected; spaces and the order of keys do not matter."""
    manifest = read_manifest(export) | {"decoding": {"max_length": 60, "length_penalty": 0.6}}
    write_manifest(export, manifest)
    assert read_manifest(export) == manifest
    check_files(export, manifest)
    path = export / "manifest.json"
    written = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(dict(reversed(written.items()))), encoding="utf-8")
    assert read_manifest(export) == manifest
    path.write_text(json.dumps(written | {"decoding": {"max_length": 2}}), encoding="utf-8")
    assert "manifest.json was changed after the export" in refused(capsys, export)


def test_a_manifest_that_has_lost_its_digest_is_refused(export):
    path = export / "manifest.json"
    path.write_text(path.read_text().replace("manifest_digest", "manifest_digesu"))
    with pytest.raises(ValueError, match=r"manifest.json was changed after the export"):
        read_manifest(export)
