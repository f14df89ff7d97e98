"""Zips from OPUS become runs; malicious zips have no effect."""

import errno
import json
import os
import shutil
import zipfile

import pytest
import sentencepiece
import yaml
from support.marian_checkpoints import FIXTURES, write_marian_model

from tfformer.checkpoints import foreign_files
from tfformer.checkpoints.import_model import import_model
from tfformer.run_directory import Run

LINK, DEVICE = 0o120777 << 16, 0o060666 << 16


def opus_zip(folder):
    """A zip in OPUS's layout: `opus*.npz`, decoder.yml, vocab.yml, SentencePiece, licence."""
    model = write_marian_model("shared", folder)
    processor = sentencepiece.SentencePieceProcessor(model_file=str(model / "source.spm"))
    pieces = [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    lines = [f"{json.dumps(piece)}: {number}" for number, piece in enumerate(pieces)]
    name = "opus.spm32k-spm32k"
    decoder = {
        "models": [f"{name}.transformer-align.model1.npz.best-perplexity.npz"],
        "vocabs": [f"{name}.vocab.yml"] * 2,
        "beam-size": 6,
        "normalize": 1,
    }
    path = folder / "opus-2020-02-26.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.write(model / "model.npz", decoder["models"][0])
        packed.writestr("decoder.yml", yaml.safe_dump(decoder))
        packed.writestr(decoder["vocabs"][0], "\n".join(lines) + "\n")
        packed.write(FIXTURES / "source.spm", "source.spm")
        packed.write(FIXTURES / "source.spm", "target.spm")
        packed.writestr("LICENSE", "Attribution 4.0 International\n")
    return path, model


def test_a_zip_gives_the_run_of_its_folder(tmp_path):
    path, model = opus_zip(tmp_path)
    run = import_model(path, tmp_path / "new" / "run")
    weights = Run.open(run).load_model().get_weights()
    wanted = Run.open(import_model(model, tmp_path / "other")).load_model().get_weights()
    assert all((weight == expected).all() for weight, expected in zip(weights, wanted, strict=True))
    record = json.loads((run / "imported.json").read_text())
    assert record["origin"] == "opus-2020-02-26.zip"
    assert record["licence"] == "Attribution 4.0 International"
    assert "decoder.yml" in record["files"]
    assert [entry.name for entry in run.parent.iterdir()] == ["run"]


def packed(path, *entries):
    """Write a zip of (name, content, external attributes)."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as writer:
        for name, content, attributes in entries:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = attributes
            entry.compress_type = zipfile.ZIP_DEFLATED
            writer.writestr(entry, content)
    return path


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([("../outside", b"a", 0)], r"'\.\./outside' is not a plain file name"),
        ([("/tmp/outside", b"a", 0)], "is not a plain file name"),
        ([("folder/model.npz", b"a", 0)], "is not a plain file name"),
        ([("..\\outside", b"a", 0)], "is not a plain file name"),
        ([("model.npz", b"/etc/passwd", LINK)], "'model.npz' is a link or a device"),
        ([("model.npz", b"", DEVICE)], "is a link or a device"),
        ([("a", b"1", 0), ("a", b"2", 0)], "contains two members with the same name"),
        ([("bomb", bytes(5_000_000), 0)], "bomb is compressed more than 100 times"),
        ([(f"{n}", b"", 0) for n in range(1001)], "contains 1,001 files"),
    ],
)
def test_a_zip_of_anything_but_files_of_a_model_is_refused(tmp_path, entries, message):
    path = packed(tmp_path / "model.zip", *entries)
    with pytest.raises(ValueError, match=message):
        import_model(path, tmp_path / "run")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.zip"]


def test_a_zip_of_more_than_a_model_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(foreign_files, "MAX_ZIP_BYTES", 9)
    path = packed(tmp_path / "model.zip", ("a", b"12345", 0), ("b", b"12345", 0))
    with pytest.raises(ValueError, match="it unpacks to 10 bytes, but a model has at m"):
        import_model(path, tmp_path / "run")


@pytest.mark.parametrize("kind", ["ZIP_DEFLATED", "ZIP_BZIP2", "ZIP_LZMA"])
@pytest.mark.parametrize("offset", [0, 60, 100, 1_000, 3_000, -60])
def test_a_compressed_member_that_is_damaged_anywhere_is_one_line(tmp_path, kind, offset):
    path = tmp_path / "model.zip"
    with zipfile.ZipFile(path, "w", getattr(zipfile, kind)) as archive:
        archive.writestr("model.npz", os.urandom(4_000) + b"model " * 1_000)
    content = bytearray(path.read_bytes())
    content[offset : offset + 40] = bytes(255 - byte for byte in content[offset : offset + 40])
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.zip"):
        import_model(path, tmp_path / "run")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.zip"]


def test_a_full_disk_is_not_called_a_damaged_zip(tmp_path, monkeypatch):
    def no_space(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path, _ = opus_zip(tmp_path)
    monkeypatch.setattr(shutil, "copyfileobj", no_space)
    with pytest.raises(OSError, match="No space left on device"):
        import_model(path, tmp_path / "new" / "run")
    assert not (tmp_path / "new").exists()


def test_what_is_wrong_in_a_zip_is_told_by_the_place_in_the_zip(tmp_path):
    path = packed(tmp_path / "model.zip", ("config.json", b"{", 0))
    with pytest.raises(ValueError, match="is not JSON") as refused:
        import_model(path, tmp_path / "run")
    assert str(refused.value).startswith(f"{path / 'config.json'} is not JSON")


def test_an_encrypted_zip_is_refused(tmp_path):
    path = packed(tmp_path / "model.zip", ("decoder.yml", b"models: [a]", 0))
    content = bytearray(path.read_bytes())
    for header, flags in ((b"PK\3\4", 6), (b"PK\1\2", 8)):
        content[content.index(header) + flags] |= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"is damaged \(RuntimeError\)"):
        import_model(path, tmp_path / "run")
