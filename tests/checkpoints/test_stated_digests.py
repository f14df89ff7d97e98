"""A checkpoint is refused if its files do not match the digests that were published with them."""

import pytest
from support import stated_digests
from support.marian_checkpoints import checkpoint, edit_json

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.provenance import check_stated_digests
from tfformer.cli.main import main


@pytest.fixture
def folder(tmp_path):
    return checkpoint("A", tmp_path)


def in_place(state):
    def stated(folder):
        state(folder)
        return folder

    return stated


WAYS = {"downloads": in_place(stated_digests.state_by_downloads), "cache": stated_digests.as_cache}


@pytest.mark.parametrize("way", WAYS)
def test_a_whole_checkpoint_is_imported(folder, tmp_path, way):
    assert (import_model(WAYS[way](folder), tmp_path / "run") / "imported.json").is_file()


@pytest.mark.parametrize("name", ["generation_config.json", "source.spm", "model.safetensors"])
@pytest.mark.parametrize("way", WAYS)
def test_one_bit_of_any_file_is_noticed(folder, way, name):
    stated = WAYS[way](folder)
    content = bytearray((stated / name).read_bytes())
    content[len(content) // 2] ^= 1
    (stated / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged or changed: its digest is not"):
        check_stated_digests(stated)


def test_a_change_on_purpose_is_told_the_way_out_at_the_command_line(folder, tmp_path, capsys):
    stated_digests.state_by_downloads(folder)
    edit_json(folder / "generation_config.json", num_beams=2)
    arguments = ["import", str(folder), "--run-dir", str(tmp_path / "run")]
    assert main(arguments) == 2
    [line] = capsys.readouterr().err.splitlines()
    note = folder / ".cache" / "huggingface" / "download" / "generation_config.json.metadata"
    assert line.endswith(f"download it again, or remove {note}")
    assert not (tmp_path / "run").exists()
    note.unlink()
    assert main(arguments) == 0


def test_a_change_in_the_cache_becomes_a_file_of_its_own(folder, tmp_path):
    snapshot = stated_digests.as_cache(folder)
    file = snapshot / "generation_config.json"
    content = file.read_bytes().replace(b"{", b"{ ", 1)
    file.write_bytes(content)  # through the link
    with pytest.raises(ValueError, match="or put a file in place of the link"):
        check_stated_digests(snapshot)
    file.unlink()
    file.write_bytes(content)
    check_stated_digests(snapshot)


def test_a_link_of_the_cache_to_nothing_is_left_out(folder):
    snapshot = stated_digests.as_cache(folder)
    (snapshot / "tokenizer_config.json").resolve().unlink()
    check_stated_digests(snapshot)


def test_files_that_are_not_there_and_other_kinds_of_digests_are_left_out(folder):
    stated_digests.state_by_downloads(folder)
    (folder / "tokenizer_config.json").unlink()
    note = folder / ".cache" / "huggingface" / "download" / "config.json.metadata"
    note.write_text(f"{stated_digests.COMMIT}\nW/another-kind\n0\n")
    edit_json(folder / "config.json", dropout=0.3)
    check_stated_digests(folder)
