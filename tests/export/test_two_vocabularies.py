"""Exports with separate vocabularies for source and target, in every engine and loader."""

import itertools
import json
from pathlib import Path

import pytest
from support.marian_checkpoints import checkpoint
from support.numpy_layers import randomized
from support.untrained_models import SHAPE

from tfformer.checkpoints.import_model import import_model
from tfformer.data.sources import read_pairs
from tfformer.data.tokenizers import Tokenizer
from tfformer.engines import open_engine
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Tokenizers

pytestmark = pytest.mark.nightly  # each writes an export and reads it in another process

PAIRS = list(itertools.islice(read_pairs("phrasebook:train"), 400))
SENTENCES = [source for source, _ in PAIRS[:24]]
KINDS = [
    {},
    {"model_type": "bpe"},
    {"normalization": "nfkc"},
    {"normalization": "identity"},
    {"byte_fallback": True},
]


def trained_on(pairs, **settings) -> Tokenizers:
    sources, targets = zip(*pairs, strict=True)
    return Tokenizers(
        Tokenizer.train(sources, 450, **settings), Tokenizer.train(targets, 420, **settings)
    )


def translator_of(tokenizers: Tokenizers) -> Translator:
    model = randomized(Transformer(450, 420, **SHAPE))
    return Translator(model, tokenizers.source, tokenizers.target, beam_size=3, max_length=40)


def exported_alike(translator: Translator, folder: Path) -> Path:
    """Export a translator, which compares every signature in both of TensorFlow's loaders."""
    version = translator.export(folder, samples=SENTENCES)
    measured = json.loads((version / "manifest.json").read_text())["parity"]
    assert set(measured) == {
        "translate_ids",
        "serving_default",
        "translate_beam",
        "translate_prefix",
        "translate_aligned",
        "align_ids",
        "score",
    }
    return version


@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_each_language_is_cut_and_joined_by_its_own_vocabulary(settings, cpp_loader, tmp_path):
    translator = translator_of(trained_on(PAIRS, **settings))
    greedy = translator.translate(SENTENCES, beam_size=1)
    assert len(set(greedy)) > 1
    version = exported_alike(translator, tmp_path)
    assert cpp_loader(version, "serving_default", SENTENCES) == greedy


@pytest.mark.parametrize("format", ["litert", "ctranslate2"])
@pytest.mark.parametrize("settings", KINDS, ids=str)
def test_engines_cut_and_join_each_language_by_its_own_vocabulary(settings, format, tmp_path):
    translator = translator_of(trained_on(PAIRS, **settings))
    version = translator.export(tmp_path / "export", format=format, samples=SENTENCES)
    with open_engine(version) as engine:
        translations = engine.translate(SENTENCES, beam_size=1)
    assert translations == translator.translate(SENTENCES, beam_size=1)


def test_an_imported_checkpoint_with_two_models_scores_targets_by_the_second(tmp_path):
    import_model(checkpoint("A", tmp_path), tmp_path / "run")
    exported_alike(Translator.load(tmp_path / "run"), tmp_path / "saved")
