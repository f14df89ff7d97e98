"""Runs of 0.1 load, and answer as they did.

`tests/support/runs_of_0.1/` holds two runs and a `.keras` file that 0.1 wrote, and the answers that
0.1 gave. Those answers are the promise of compatibility, not golden numbers of what the code does
today: they never change.
"""

import json
import tarfile
from pathlib import Path

import keras
import numpy as np
import pytest

import tfformer

pytestmark = pytest.mark.filterwarnings("ignore:.* is a run of 0.1")
STORED = Path(__file__).parents[1] / "support" / "runs_of_0.1"
EXPECTED = json.loads((STORED / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("runs_of_0.1")
    for archive in STORED.glob("*.tar.xz"):
        with tarfile.open(archive) as files:
            files.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def translator(unpacked) -> tfformer.Translator:
    return tfformer.Translator.load(unpacked / "translator")


@pytest.fixture(scope="module")
def generator(unpacked) -> tfformer.Generator:
    return tfformer.Generator.load(unpacked / "language_model")


def test_a_translator_of_0_1_gives_the_same_translations_and_scores(translator):
    best = [translations[0] for translations in translator.n_best(EXPECTED["sources"])]
    assert [translation.text for translation in best] == EXPECTED["translations"]
    scores = [translation.score for translation in best]
    np.testing.assert_allclose(scores, EXPECTED["scores"], atol=1e-3)


def test_a_translator_of_0_1_gives_given_translations_the_same_probability(translator):
    scored = translator.score(EXPECTED["sources"], EXPECTED["targets"])
    log_probs = [pair.log_prob for pair in scored]
    np.testing.assert_allclose(log_probs, EXPECTED["log_probs_of_targets"], atol=1e-3)


@pytest.mark.slow
def test_a_language_model_of_0_1_goes_on_in_the_same_way(generator):
    continuations = generator.complete(EXPECTED["prefixes"])
    assert [found.text for found in continuations] == EXPECTED["continuations"]
    scores = [found.score for found in continuations]
    np.testing.assert_allclose(scores, EXPECTED["continuation_scores"], atol=1e-3)


@pytest.mark.slow
def test_a_language_model_of_0_1_gives_sentences_the_same_probability(generator):
    log_probs = generator.log_prob(EXPECTED["sources"])
    np.testing.assert_allclose(log_probs, EXPECTED["log_probs_of_sources"], atol=1e-3)


def test_a_keras_file_of_0_1_loads_with_its_optimizer_and_gives_the_same_logits(unpacked):
    model = keras.models.load_model(unpacked / "model.keras")
    source, target = np.array(EXPECTED["source_ids"]), np.array(EXPECTED["target_ids"])
    logits = model({"source": source, "target": target})
    np.testing.assert_allclose(logits, EXPECTED["logits"], atol=1e-4)
    assert int(model.optimizer.iterations) == 1
