"""The CTranslate2 export, another engine, finds the same translations and probabilities."""

import importlib.util
import itertools
import json
import os
import subprocess
import sys
import warnings

import keras
import numpy as np
import pytest
from support.light_install import light
from support.numpy_layers import log_softmax

from tfformer import Transformer, Translator
from tfformer.data.sources import read_pairs
from tfformer.export import ctranslate2 as writer
from tfformer.export.pipeline import export_model
from tfformer.special_ids import END_ID, START_ID

pytestmark = pytest.mark.slow  # an export is read back in another process

pytest.importorskip("ctranslate2")

SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:test"), 200)]
BASE = {"num_layers": 1, "d_model": 32, "num_heads": 2, "d_ff": 48}
SHAPES = {
    "post-norm": {},
    "pre-norm": {"norm": "pre"},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish", "dialect": {"position_layout": "halves"}},
    "depths": {"num_layers": 3, "num_decoder_layers": 2},
    "untied": {"tie_embeddings": "none", "dialect": {"output_bias": True}},
    "all tied": {"tie_embeddings": "all", "use_bias": False},
    "epsilon": {"dialect": {"epsilon": 0.1}},
}
TRANSLATE = """
import json, sys
import ctranslate2, sentencepiece

folder, beam_size, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tokenizer = sentencepiece.SentencePieceProcessor(model_file=folder + "/tokenizer.model")
sentences = json.load(sys.stdin)
pieces = [[tokenizer.id_to_piece(i) for i in tokenizer.encode(sentence)] for sentence in sentences]
results = ctranslate2.Translator(folder, compute_type=kind).translate_batch(
    pieces, beam_size=beam_size, length_penalty=0, max_decoding_length=40, min_decoding_length=0
)
print(json.dumps([tokenizer.decode(result.hypotheses[0]) for result in results]))
"""
SCORE = """
import json, sys
import ctranslate2

translator = ctranslate2.Translator(sys.argv[1], compute_type="float32")
results = translator.score_batch(*json.load(sys.stdin))
print(json.dumps([result.log_probs for result in results]))
"""


def ask(program, *arguments, about):
    """Return the output of a Python program in a new process.

    TensorFlow and CTranslate2 each start their own threads. Waiting threads sleep.
    """
    command = [sys.executable, "-c", program, *map(str, arguments)]
    settings = os.environ | {"OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(
        command, input=json.dumps(about), capture_output=True, text=True, env=settings
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_translations_are_those_of_the_run(ctranslate2_export, translator, beam_size):
    expected = translator.translate(translator.encode(SENTENCES), beam_size, length_penalty=0.0)
    answers = ask(TRANSLATE, ctranslate2_export, beam_size, "float32", about=SENTENCES)
    same = sum(a == b for a, b in zip(expected, answers, strict=True))
    assert same >= 0.99 * len(SENTENCES)
    assert len(set(expected)) > len(SENTENCES) / 2  # the run has learned to tell them apart


def test_the_command_line_translates_without_tensorflow(ctranslate2_export, translator):
    is_long = translator.encode(SENTENCES).is_truncated
    sentences = [line for line, cut in zip(SENTENCES, is_long, strict=True) if not cut]
    text = "".join(sentence + "\n" for sentence in sentences)
    done = light("translate", ctranslate2_export, "--beam-size", 1, text=text)
    assert (done.returncode, done.stderr) == (0, "")
    expected = translator.translate(sentences, beam_size=1)
    same = sum(a == b for a, b in zip(expected, done.stdout.splitlines(), strict=True))
    assert same >= 0.99 * len(sentences)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_model_has_the_same_probabilities(shape, translator, tmp_path):
    """All weights are random, also biases and normalisations. None can be forgotten or swapped."""
    tokenizers = translator.tokenizers
    size, dice = tokenizers.source.vocab_size, np.random.default_rng(1)
    model = Transformer(size, size, **BASE | SHAPES[shape])
    model.set_weights(
        [weight + dice.normal(0, 0.1, weight.shape) for weight in model.get_weights()]
    )
    writer.write(tmp_path, model, tokenizers, 40)
    source, target = (dice.integers(4, size, length).tolist() for length in (9, 12))
    (measured,) = ask(
        SCORE,
        tmp_path,
        about=[[tokenizers.source.pieces(source)], [tokenizers.target.pieces(target)]],
    )
    inputs = {"source": np.array([[*source, END_ID]]), "target": np.array([[START_ID, *target]])}
    log_probs = log_softmax(model(inputs)[0])
    expected = log_probs[np.arange(13), [*target, END_ID]]
    np.testing.assert_allclose(measured, expected, atol=5e-3)
    assert np.ptp(expected) > 1  # the comparison can fail


def test_a_source_of_more_than_1024_tokens_is_read_to_its_end(translator, tmp_path):
    """CTranslate2 cuts a source after 1,024 tokens unless it is told otherwise."""
    tokenizer = translator.tokenizers.source
    keras.utils.set_random_seed(2)
    model = Transformer(tokenizer.vocab_size, tokenizer.vocab_size, **BASE)
    long = Translator(model, tokenizer, beam_size=1, length_penalty=0.0, max_length=1200)
    ends = ["dog", "cat", "man", "house"]
    samples = ["the " * 1100 + f"{end} " * 40 for end in ends]
    assert not any(long.encode(samples).is_truncated)
    assert len({*long.translate(samples)}) == len(ends)  # the end of a source matters
    version = long.export(tmp_path, "ctranslate2", samples=samples)
    parity = json.loads((version / "manifest.json").read_text())["parity"]
    assert parity["greedy"]["identical"] == parity["greedy"]["sentences"] == len(ends)


def test_manifest_and_files(ctranslate2_export):
    manifest = json.loads((ctranslate2_export / "manifest.json").read_text())
    assert (manifest["format"], manifest["dtype"]) == ("ctranslate2", "float32")
    assert list(manifest["parity"]) == ["greedy", "beam"]
    assert manifest["decoding"]["length_penalty"] == 0.0
    assert {"model.bin", "config.json", "shared_vocabulary.json", "tokenizer.model"} <= set(
        manifest["files"]
    )


@pytest.mark.usefixtures("one_process")
def test_other_weights_are_not_kept(tiny_run, tmp_path, monkeypatch):
    write = writer.write

    def broken(folder, model, *arguments):
        reversed_model = Transformer.from_config(model.get_config())
        reversed_model.set_weights([weight[::-1] for weight in model.get_weights()])
        write(folder, reversed_model, *arguments)

    monkeypatch.setattr(writer, "write", broken)
    with pytest.raises(ValueError, match="the export is deleted"), warnings.catch_warnings():
        export_model(tiny_run, tmp_path / "models", "ctranslate2")
    assert list(tmp_path.iterdir()) == []


def test_without_the_engine_the_message_says_how_to_install_it(tiny_run, tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"install it with: pip install -e '\.\[ctranslate2\]'"):
        export_model(tiny_run, tmp_path / "models", "ctranslate2")
    assert not (tmp_path / "models").exists()
