"""A student with a decoder of simple recurrent units, beside Marian's own answers.

scripts/oracles/make_ssru_fixture.py trained it by Marian and wrote them.
"""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
from support.marian_checkpoints import FIXTURES
from support.numpy_marian import NumpyMarian

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import files as marian_files
from tfformer.cli.main import main
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
    """The log-probability of each token of the targets, whose rows of ids end without end."""
    ids = [[*translator.tokenizers.source.encode([source])[0], END_ID]] * len(targets)
    rows = [[*row, END_ID] for row in targets]
    target = tf.ragged.constant(rows, tf.int32).to_tensor()
    values = token_log_probs(translator.model, tf.constant(ids), target).numpy()
    return [found[: len(row)] for found, row in zip(values, rows, strict=True)]


def test_greedy_search_and_beam_search_find_the_texts_of_marian(translator):
    for beam_size, name in ((1, "greedy"), (4, "beams")):
        wanted = [answers[0][0] for answers in ANSWERS[name]]
        assert translator.translate(SOURCES, beam_size=beam_size) == wanted


def test_the_log_probability_of_each_token_is_that_of_marian(translator):
    """Marian prints five decimals."""
    encode = translator.tokenizers.target.encode
    for source, answers in zip(SOURCES, ANSWERS["beams"], strict=True):
        targets = encode([text for text, _ in answers])
        for found, (_, wanted) in zip(log_probs(translator, source, targets), answers, strict=True):
            if len(found) == len(wanted):  # the text was cut into pieces as Marian wrote it
                np.testing.assert_allclose(found, wanted, atol=2e-5)


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


@pytest.mark.parametrize("kind", ["npz", "bin"])
def test_it_goes_back_into_marians_files(run, tmp_path, kind):
    version = export_model(run, tmp_path / "out", format="marian")
    options, tensors = marian_files.read(FIXTURES / "SSRU" / "model.npz")
    found_options, found = marian_files.read(version / f"model.{kind}")
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(found[name], tensor)
    assert found_options == options
    (version / f"model.{'bin' if kind == 'npz' else 'npz'}").unlink()
    decoder = version / "decoder.yml"
    decoder.write_text(decoder.read_text().replace("model.npz", f"model.{kind}"))
    again = import_model(version, tmp_path / "again")
    assert Run.open(again).config.model == Run.open(run).config.model


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dec-cell": "gru"}, "with dec-cell gru and transformer-rnn-projection False"),
        ({"transformer-rnn-projection": True}, "with dec-cell ssru and .*-projection True"),
    ],
)
def test_other_recurrent_decoders_are_refused_by_name(tmp_path, changed, message):
    folder = shutil.copytree(FIXTURES / "SSRU", tmp_path / "model")
    options, tensors = marian_files.read(folder / "model.npz")
    tensors = {name: np.array(tensor) for name, tensor in tensors.items()}
    marian_files.write_npz(folder / "model.npz", options | changed, tensors)
    with pytest.raises(ValueError, match=message):
        import_model(folder, tmp_path / "run")


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


@pytest.mark.filterwarnings("ignore:.*names no validation text")
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.nightly] * (name not in BY_DAY)) for name in FORMATS],
)
def test_exports_translate_as_the_run_does(run, tmp_path, name):
    """The exporter compares the artifact with the run in another process."""
    options = {"format": name, **FORMATS[name]}
    version = export_model(run, tmp_path / "out", samples=SOURCES, **options)
    manifest = json.loads((version / "manifest.json").read_text(encoding="utf-8"))
    for measured in manifest["parity"].values():
        least = 0.5 if name == "int8" else 1
        assert measured["identical"] >= least * measured["sentences"] > 0
