"""An imported run goes where every run goes: servers, devices, other runtimes, more training."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support.marian_checkpoints import answers

from tfformer.config import Config
from tfformer.export import ctranslate2, saved_model, tflite, web
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.training.train import train

TEXTS = [">>deu<< we see the dog.", ">>fra<< thank you.", "the girl is 猫 big.", ""]


@pytest.mark.slow
def test_a_saved_model_translates_text_without_an_initialisation_of_its_own(imported, tmp_path):
    """By the loader of TensorFlow 1, which is that of C++: what is not tracked is not there."""
    import tensorflow_text  # noqa: F401  its operators

    run = imported("I")
    version = saved_model(run, tmp_path, max_length=48, samples=TEXTS[:3])
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        graph = tf.compat.v1.saved_model.load(session, ["serve"], str(version))
        signature = graph.signature_def["serving_default"]
        found = session.run(
            signature.outputs["translation"].name, {signature.inputs["text"].name: TEXTS}
        )
    wanted = Translator.load(run).translate(TEXTS, beam_size=1)
    assert [text.decode() for text in found] == wanted
    manifest = json.loads((version / "manifest.json").read_text())
    assert manifest["imported"]["origin"] == "I"
    assert {"source.pieces.json", "target.pieces.json"} <= manifest["files"].keys()


def on_device():
    path = Path(__file__).parents[2] / "export" / "on_device" / "translate.py"
    spec = importlib.util.spec_from_file_location("on_device_translate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_litert_file_translates_with_the_list_of_pieces_beside_it(imported, tmp_path):
    run = imported("I")
    version = tflite(run, tmp_path, max_length=48, samples=TEXTS[:3])
    client = on_device().Translator(version)
    found = client.translate([client.pieces(text) for text in TEXTS])
    assert found == Translator.load(run).translate(TEXTS, beam_size=1)
    with pytest.raises(ValueError, match="no target language >>nld<<; known are >>deu<<, >>fra<<"):
        client.pieces(">>nld<< a")


@pytest.mark.slow
def test_ctranslate2_gives_the_translations_of_transformers(imported, tmp_path):
    """Its own runtime, with other heads in the decoder and the position table of the run."""
    ctranslate2(imported("B"), tmp_path, max_length=48, samples=answers("B").texts["sentences"][:8])


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda run, out: tflite(run, out, with_text=True), "leave out --text"),
        (lambda run, out: web(run, out), "which the page does not have"),
    ],
)
def test_what_has_no_list_of_pieces_is_refused(imported, tmp_path, write, message):
    with pytest.raises(ValueError, match=message):
        write(imported("I"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_forced_scores_are_those_of_transformers_without_padding(imported):
    wanted = answers("A")
    translator = Translator.load(imported("A"))
    sources = wanted.texts["sentences"][:2]
    targets = wanted.texts["target_texts"][:2]
    logits = wanted.arrays["logits"][..., :-1]  # padding is the last column
    log_probs = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    for number, found in enumerate(translator.score(sources, targets)):
        ids = wanted.texts["greedy"][number]
        if len(found.log_probs) == len(ids):  # the text is cut as the model wrote it
            steps = log_probs[number, np.arange(len(ids)), ids]
            np.testing.assert_allclose(found.log_probs, steps, atol=1e-4)


@pytest.mark.slow
def test_an_imported_run_goes_on_with_its_training(imported, tmp_path):
    """A few steps on its own sentences: the loss of forced scores falls, and the run goes back."""
    run = imported("A")
    opened = Run.open(run)
    sources = [f"we see the dog {n}." for n in range(40)]
    targets = [f"wir sehen den hund {n}." for n in range(40)]
    for name, lines in (("train.en", sources), ("train.de", targets)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    text = ["train.en", "train.de"]
    config = opened.config.to_dict()
    config["data"] |= {"train": text, "valid": text, "folder": str(tmp_path), "max_length": 64}
    config["training"] |= {
        "epochs": 2,
        "schedule": "inverse_sqrt",
        "learning_rate": 0.01,
        "warmup_steps": 1,
        "epoch_steps": 10,
    }
    config["decoding"]["beam_size"] = 1
    train(Config.from_dict(config), tmp_path / "tuned", init_from=run)

    def nats(of_run):
        return sum(-score.log_prob for score in Translator.load(of_run).score(sources, targets))

    assert nats(tmp_path / "tuned") < 0.8 * nats(run)
    tuned = Run.open(tmp_path / "tuned")
    assert tuned.tokenizers.digests == opened.tokenizers.digests
    bias = np.asarray(tuned.load_model().output_bias)
    assert (
        bias[[0, 2]].max() < -9_000
    )  # padding and start are never generated after training either
