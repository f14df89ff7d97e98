"""Compare a student with simple recurrent units with Marian's answers.

scripts/oracles/make_ssru_fixture.py trained it with Marian and wrote the answers.
"""

import json
import shutil
import struct

import numpy as np
import pytest
import tensorflow as tf
from support.marian_checkpoints import FIXTURES
from support.numpy_marian import NumpyMarian
from support.untrained_models import VOCAB_SIZE, letters_tokenizer, untrained_transformer

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import files as marian_files
from tfformer.cli.main import main
from tfformer.data.encoding import IdRows
from tfformer.export.pipeline import export_model
from tfformer.inference.graphs import token_log_probs
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID

ANSWERS = json.loads((FIXTURES / "SSRU" / "expected.json").read_text(encoding="utf-8"))
SOURCES = ANSWERS["sources"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return import_model(FIXTURES / "SSRU", tmp_path_factory.mktemp("ssru") / "run")


@pytest.fixture(scope="module")
def translator(run):
    return Translator.load(run)


def log_probs(translator, source, targets):
    """Return the log-probability of each target token; the rows of ids have no end token."""
    ids = [[*translator.tokenizers.source.encode([source])[0], END_ID]] * len(targets)
    rows = [[*row, END_ID] for row in targets]
    target = tf.ragged.constant(rows, tf.int32).to_tensor()
    values = token_log_probs(translator.model, tf.constant(ids), target).numpy()
    return [padded[: len(row)] for padded, row in zip(values, rows, strict=True)]


def test_greedy_search_and_beam_search_find_the_texts_of_marian(translator):
    for beam_size, name in ((1, "greedy"), (4, "beams")):
        wanted = [answers[0][0] for answers in ANSWERS[name]]
        assert translator.translate(SOURCES, beam_size=beam_size) == wanted


def test_the_log_probability_of_each_token_is_that_of_marian(translator):
    """Marian prints five decimals."""
    encode = translator.tokenizers.target.encode
    compared = 0
    for source, answers in zip(SOURCES, ANSWERS["beams"], strict=True):
        targets = encode([text for text, _ in answers])
        for nats, (_, wanted) in zip(log_probs(translator, source, targets), answers, strict=True):
            if len(nats) == len(wanted):  # the text was cut into pieces as Marian wrote it
                np.testing.assert_allclose(nats, wanted, atol=2e-5)
                compared += 1
    assert compared >= 0.9 * 4 * len(SOURCES)


def test_they_are_those_of_a_second_implementation(translator, run):
    options, tensors = marian_files.read(FIXTURES / "SSRU" / "model.npz")
    reference = NumpyMarian(options, tensors)
    record = json.loads((run / "imported.json").read_text(encoding="utf-8"))
    source, targets = (
        translator.tokenizers.source.encode(SOURCES[:1])[0],
        translator.tokenizers.target.encode([ANSWERS["beams"][0][0][0]]),
    )
    rows = record["source"]["rows"]
    wanted = reference.log_probs(*([*(rows[n] for n in ids), 0] for ids in (source, targets[0])))
    np.testing.assert_allclose(log_probs(translator, SOURCES[0], targets)[0], wanted, atol=2e-5)


def test_it_goes_back_into_marians_files(run, tmp_path):
    version = export_model(run, tmp_path / "out", format="marian")
    options, tensors = marian_files.read(FIXTURES / "SSRU" / "model.npz")
    for kind in ("npz", "bin"):
        written_options, written = marian_files.read(version / f"model.{kind}")
        assert written.keys() == tensors.keys()
        for name, tensor in tensors.items():
            np.testing.assert_array_equal(written[name], tensor)
        assert written_options == options
    (version / "model.npz").unlink()
    decoder = version / "decoder.yml"
    decoder.write_text(decoder.read_text().replace("model.npz", "model.bin"))
    again = import_model(version, tmp_path / "again")
    assert Run.open(again).config.model == Run.open(run).config.model


def test_a_student_that_was_trained_here_goes_into_marians_files(tmp_path):
    """Its padding and start become ordinary pieces, so that no probability changes."""
    model = untrained_transformer(decoder_kind="ssru", dialect="marian")
    trained = Translator(model, letters_tokenizer(), max_length=12)
    run = Run.open(trained.save(tmp_path / "run"))
    run.save_shortlist(IdRows.of([[n, 2 + n % 5, 9] for n in range(VOCAB_SIZE)]))
    version = export_model(run.path, tmp_path / "out", format="marian")
    again = Translator.load(import_model(version, tmp_path / "again"))
    for source, target in (("a b c", "d e"), ("h", "g f e d"), ("", "a")):
        nats = [
            log_probs(side, source, side.tokenizers.target.encode([target]))
            for side in (trained, again)
        ]
        np.testing.assert_allclose(*nats, atol=1e-5)
    pieces = run.tokenizers.target.pieces(range(VOCAB_SIZE))
    new = again.tokenizers.source.pieces(range(again.tokenizers.source.vocab_size))
    for number, piece in enumerate(pieces):
        row = again.shortlist.table[new.index(piece)]
        assert {new[n] for n in row} == {pieces[n] for n in (number, 2 + number % 5, 9)}


@pytest.mark.parametrize("format", ["ctranslate2", "hugging_face"])
def test_a_toolkit_without_such_layers_is_one_line(run, tmp_path, capsys, format):
    arguments = ["export", str(run), "--format", format, "--output", str(tmp_path / "out")]
    assert main(arguments) == 2
    assert "simple recurrent units" in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out").exists()


FORMATS = {
    "litert": {"quantize": "none"},
    "int8": {"format": "litert", "quantize": "int8"},
    "static": {"format": "litert", "static": True},
    "saved_model": {},
}
BY_DAY = {"litert"}


@pytest.mark.usefixtures("one_process")
@pytest.mark.filterwarnings("ignore:.*names no validation text")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name not in BY_DAY)) for name in FORMATS],
)
def test_exports_translate_as_the_run_does(run, tmp_path, name):
    """The export compares the artifact with the run in another process."""
    options = {"format": name, **FORMATS[name]}
    version = export_model(run, tmp_path / "out", samples=SOURCES, **options)
    manifest = json.loads((version / "manifest.json").read_text(encoding="utf-8"))
    for measured in manifest["parity"].values():
        least = 0.5 if name == "int8" else 1
        assert measured["identical"] >= least * measured["sentences"] > 0


def write_firefox(path, options, tensors):
    """Write a student in the format of browsermt/marian-dev, for any processor.

    A header contains the length of the name, the type, the number of axes and the number of bytes.
    A matrix is rounded to int8, transposed unless it is an embedding, and followed by its
    multiplier.
    """
    entries = {"special:model.yml": (0x0101, (len(options),), options)}
    wanted = {}
    for name, tensor in tensors.items():
        if len(tensor) == 1:
            entries[name] = (0x0404, tensor.shape, tensor.astype("<f4").tobytes())
            continue
        multiplier = np.float32(127 / np.abs(tensor).max())
        integers = np.rint(tensor * multiplier).astype(np.int8)
        wanted[name] = integers / multiplier
        stored = integers if name == "Wemb" else integers.T
        content = stored.tobytes() + multiplier.tobytes()
        entries[name] = (0x4101, tensor.shape, content + bytes(-len(content) % 256))
        entries[f"{name}_QuantMultA"] = (0x0404, (1, 1), np.float32(20).tobytes())
    names = [name.encode() + b"\0" for name in entries]
    begin = struct.pack("<2Q", 1, len(entries))
    for name, (kind, shape, content) in zip(names, entries.values(), strict=True):
        begin += struct.pack("<4Q", len(name), kind, len(shape), len(content))
    begin += b"".join(names)
    begin += b"".join(struct.pack(f"<{len(s)}i", *s) for _, s, _ in entries.values())
    gap = -(len(begin) + 8) % 256
    contents = b"".join(content for _, _, content in entries.values())
    path.write_bytes(begin + struct.pack("<Q", gap) + bytes(gap) + contents)
    return wanted


@pytest.fixture
def firefox(tmp_path):
    """A folder with Firefox's files, and the matrices after rounding."""
    folder = tmp_path / "ende"
    folder.mkdir()
    with np.load(FIXTURES / "SSRU" / "model.npz") as archive:
        tensors = dict(archive)
    options = tensors.pop("special:model.yml").tobytes()
    wanted = write_firefox(folder / "model.ende.intgemm.alphas.bin", options, tensors)
    shutil.copy(FIXTURES / "SSRU" / "joint.spm", folder / "vocab.ende.spm")
    return folder, tensors | wanted


def test_a_student_of_firefox_is_read(firefox, tmp_path):
    folder, wanted = firefox
    _, tensors = marian_files.read(folder / "model.ende.intgemm.alphas.bin")
    assert tensors.keys() == wanted.keys()
    for name, tensor in wanted.items():
        np.testing.assert_array_equal(tensors[name], tensor)
    run = Run.open(import_model(folder, tmp_path / "run"))
    assert (run.config.decoding.beam_size, run.config.decoding.length_penalty) == (1, 1)
    assert run.config.model.dialect.max_length_factor == 2
    (folder / "vocab.ende.spm").rename(folder / "srcvocab.ende.spm")
    shutil.copy(folder / "srcvocab.ende.spm", folder / "trgvocab.ende.spm")
    import_model(folder, tmp_path / "two")


@pytest.mark.parametrize("changed", ["cut", "type", "multiplier"])
def test_a_damaged_student_is_one_line(firefox, tmp_path, capsys, changed):
    folder, _ = firefox
    path = next(folder.glob("*.bin"))
    content = path.read_bytes()
    if changed == "cut":
        path.write_bytes(content[:-300])
    if changed == "type":  # packed for one processor
        path.write_bytes(content.replace(struct.pack("<Q", 0x4101), struct.pack("<Q", 0x4111), 1))
    if changed == "multiplier":
        with np.load(FIXTURES / "SSRU" / "model.npz") as archive:
            multiplier = np.float32(127 / np.abs(archive["Wemb"]).max()).tobytes()
        path.write_bytes(content.replace(multiplier, bytes(4), 1))
    assert main(["import", str(folder), "--run-dir", str(tmp_path / "run")]) == 2
    assert path.name in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "run").exists()
