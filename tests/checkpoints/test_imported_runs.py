"""Imported runs work with servers, devices, other runtimes and further training."""

import functools
import json

import numpy as np
import pytest
import tensorflow as tf
from support.exported_page import MISSING, browse
from support.litert_samples import run_signature
from support.marian_checkpoints import answers, edit_yaml
from support.numpy_layers import log_softmax

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.tensor_files import read_safetensors
from tfformer.cli.main import main
from tfformer.engines import find_artifact, open_engine
from tfformer.explain.influence import Decision, Hidden, log_odds
from tfformer.export.pipeline import export_model
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run

export_to_saved_model = functools.partial(export_model, format="saved_model")
export_to_ctranslate2 = functools.partial(export_model, format="ctranslate2")
export_to_litert = functools.partial(export_model, format="litert")
export_to_web = functools.partial(export_model, format="web")
export_to_hugging_face = functools.partial(export_model, format="hugging_face")
export_to_marian = functools.partial(export_model, format="marian")
pytestmark = pytest.mark.usefixtures("one_process")

TEXTS = [">>deu<< we see the dog.", ">>fra<< thank you.", "the girl is 猫 big.", ""]


@pytest.mark.nightly
def test_a_saved_model_translates_text_without_an_initialisation_of_its_own(
    imported, loaded, tmp_path, cpp_loader
):
    """The C++ loader restores only tracked objects."""
    version = export_to_saved_model(
        imported("I"), tmp_path, max_length=48, beam_size=1, samples=TEXTS[:3]
    )
    wanted = loaded("I").translate(TEXTS, beam_size=1)
    assert cpp_loader(version, "serving_default", TEXTS) == wanted
    manifest = json.loads((version / "manifest.json").read_text())
    assert manifest["imported"]["origin"] == "I"
    assert {"source.pieces.json", "target.pieces.json"} <= manifest["files"].keys()


@pytest.mark.nightly
def test_a_model_as_marian_decoder_computes_it_goes_to_a_phone(marian_model, tmp_path):
    run = import_model(marian_model("pre"), tmp_path / "run", positions="marian")
    texts = ["we see the dog.", "thank you.", "the girl is big."]
    phone = export_to_litert(run, tmp_path / "phone", max_length=48, samples=texts)
    with open_engine(phone) as engine:
        translations = engine.translate(texts)
    assert translations == Translator.load(run).translate(texts, beam_size=1)


@pytest.mark.slow
def test_a_litert_file_translates_with_the_list_of_pieces_beside_it(imported, loaded, tmp_path):
    version = export_to_litert(imported("I"), tmp_path, max_length=48, samples=TEXTS[:3])
    with open_engine(version) as engine:
        assert engine.translate(TEXTS) == loaded("I").translate(TEXTS, beam_size=1)
        message = "no target language >>nld<<; the known codes are >>deu<<, >>fra<<"
        with pytest.raises(ValueError, match=message):
            engine.translate([">>nld<< a"])


@pytest.mark.nightly
def test_a_litert_file_of_a_model_of_marian_begins_with_zeros(marian_model, tmp_path):
    run = import_model(marian_model("separate"), tmp_path / "run")
    version = export_to_litert(run, tmp_path / "phone", max_length=128, samples=SOURCES[:4])
    with open_engine(version) as engine:
        translations = engine.translate(SOURCES[:4])
    assert translations == Translator.load(run).translate(SOURCES[:4], beam_size=1)


@pytest.mark.nightly
def test_marians_limit_of_a_length_goes_into_every_export(marian_model, tmp_path):
    """The end token is never likely here.

    Each translation has twice as many tokens as its source.
    """
    folder = marian_model("shared")
    edit_yaml(folder / "decoder.yml", **{"max-length-factor": 2})
    options, tensors = marian_files.read(folder / "model.npz")
    bias = tensors["decoder_ff_logit_out_b"]  # (1, V)
    tensors["decoder_ff_logit_out_b"] = bias - 1e4 * np.eye(1, bias.size, dtype=np.float32)  # end
    marian_files.write_npz(folder / "model.npz", options, tensors)
    run = import_model(folder, tmp_path / "run")
    rows = Translator.load(run).encode([SOURCES[0], "dog"]).ids
    wanted = [2 * (len(row) + 1) for row in rows]
    requests = [{"ids": [row + [0] * (16 - len(row))], "lengths": [len(row)]} for row in rows]
    settings = {"max_length": 32, "beam_size": 1, "samples": SOURCES[:2]}
    server = export_to_saved_model(run, tmp_path / "server", with_text=False, **settings)
    translate = tf.saved_model.load(str(server)).signatures["translate_ids"]
    for request, length in zip(requests, wanted, strict=True):
        assert translate(**{k: tf.constant(v) for k, v in request.items()})["lengths"] == [length]
    phone = export_to_litert(run, tmp_path / "phone", **settings)
    page = export_to_litert(run, tmp_path / "page", static=True, **settings)
    for version, signature in ((phone, "translate"), (page, "translate_16")):
        answers = [run_signature(version, signature, **request) for request in requests]
        assert [answer["lengths"][0] for answer in answers] == wanted
    export_to_ctranslate2(run, tmp_path / "ctranslate2", max_length=32, samples=SOURCES[:2])


@pytest.mark.nightly
def test_another_pair_of_languages_goes_into_every_export(imported, tmp_path):
    run, pair = imported("M2M"), {"source_language": "fr", "target_language": "en"}
    translator = Translator.load(run, **pair)
    texts = answers("M2M").texts["sentences"][:4]
    wanted = translator.translate(texts, beam_size=1)
    settings = {"max_length": 48, "samples": texts} | pair
    server = export_to_saved_model(run, tmp_path / "server", beam_size=1, **settings)
    phone = export_to_litert(run, tmp_path / "phone", **settings)
    assert json.loads((phone / "manifest.json").read_text())["languages"] == ["fr", "en"]
    version = export_to_ctranslate2(run, tmp_path / "ctranslate2", **settings)
    for artifact in (server, phone, version):
        assert find_artifact(artifact, beam_size=1).open().translate(texts) == wanted


@pytest.mark.slow
def test_ctranslate2_gives_the_translations_of_the_run(imported, tmp_path):
    """The export compares translations itself.

    The decoder has another number of heads, and the model includes the run's position table.
    """
    export_to_ctranslate2(
        imported("B"), tmp_path, max_length=48, samples=answers("B").texts["sentences"][:8]
    )


@pytest.mark.nightly
def test_the_browser_looks_pieces_up_in_the_list(imported, loaded, tmp_path):
    """Known and unknown codes and characters, some of them unusual, or in the target only."""
    if MISSING:
        pytest.skip(f"{' and '.join(MISSING)} not installed")
    texts = [*answers("I").texts["sentences"][:8], *TEXTS]
    with pytest.warns(UserWarning, match="names no validation text"):
        page = export_to_web(imported("I"), tmp_path, max_length=32, samples=texts)
    translations = browse(page, [*texts, ">>nld<< a"])["translations"]
    assert [row["text"] for row in translations[:-1]] == loaded("I").translate(texts, beam_size=1)
    assert translations[-1]["error"] == (
        "the model has no target language >>nld<<; the known codes are >>deu<<, >>fra<<"
    )


def test_a_translator_of_two_sentencepiece_models_is_saved_as_imported(loaded, tmp_path):
    translator = loaded("A")
    again = Translator.load(translator.save(tmp_path / "run"))
    assert again.tokenizers.digests == translator.tokenizers.digests
    for weight, expected in zip(again.model.weights, translator.model.weights, strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_forced_scores_are_those_of_transformers_without_padding(loaded):
    wanted = answers("A")
    translator = loaded("A")
    sources = wanted.texts["sentences"][:2]
    targets = wanted.texts["target_texts"][:2]
    logits = wanted.arrays["logits"][..., :-1]  # padding is the last column
    log_probs = log_softmax(logits)
    for number, forced in enumerate(translator.score(sources, targets)):
        ids = wanted.texts["greedy"][number]
        if len(forced.log_probs) == len(ids):  # the text is cut as the model wrote it
            steps = log_probs[number, np.arange(len(ids)), ids]
            np.testing.assert_allclose(forced.log_probs, steps, atol=1e-4)


SOURCES = [f"we see the dog {n}." for n in range(40)]
TARGETS = [f"wir sehen den hund {n}." for n in range(40)]


def tuned(run, folder, steps, *more):
    """Train an imported run further on other sentences, without a recipe."""
    for name, lines in (("train.en", SOURCES), ("train.de", TARGETS)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    settings = [
        *(f"data.folder={folder}", "data.train=[train.en, train.de]", "data.max_length=64"),
        *("data.valid=[train.en, train.de]", "decoding.beam_size=1", "training.warmup_steps=1"),
        *("training.schedule=inverse_sqrt", "training.learning_rate=0.01", "training.epochs=2"),
        *("training.validate_every=2", f"training.epoch_steps={steps}", *more),
    ]
    place = ["--run-dir", str(folder / "tuned")]
    assert main(["train", "--init-from", str(run), *place, "--set", *settings]) == 0
    return folder / "tuned"


@pytest.mark.slow
def test_a_multilingual_run_goes_on_with_another_language(imported, tmp_path):
    """The recipe's languages, not those of the import, determine the language tokens."""
    trained = Run.open(tuned(imported("M2M"), tmp_path, 2, "data.languages=[en, fr]"))
    assert trained.config.data.languages == ["en", "fr"]
    for side, language in ((trained.tokenizers.source, "en"), (trained.tokenizers.target, "fr")):
        assert side.pieces(side.begin_ids) == [f"__{language}__"]


def test_a_language_token_is_not_a_word_of_an_influence(loaded):
    """The first word follows the language token, whose probability does not count."""
    translator, source = loaded("M2M"), "we see the dog"

    def first_word(target: str) -> float:
        count = len(translator.encode_targets(target.split()[:1]).ids[0]) - 1
        (score,) = translator.score([source], [target])
        return score.log_probs[1 : 1 + count].sum()

    chosen, other = "wir sehen den hund", "sie sehen den hund"
    decision = Decision(source, chosen, word=0, alternatives=("sie",))
    (odds,) = log_odds(translator, [decision], [Hidden()])
    assert odds == pytest.approx(first_word(chosen) - first_word(other), abs=1e-4)
    assert abs(odds) > 0.01


@pytest.mark.slow
def test_an_imported_run_goes_on_with_its_training(imported, loaded, tmp_path):
    """The loss of forced scores decreases, and the run keeps its vocabulary and licence."""
    run = imported("A")
    opened, trained = Run.open(run), Run.open(tuned(run, tmp_path, 10, "model.dropout=0.2"))

    def nats(translator):
        return sum(-score.log_prob for score in translator.score(SOURCES, TARGETS))

    assert nats(Translator.load(trained.path)) < 0.8 * nats(loaded("A"))
    assert trained.config.model == opened.config.model.replace(dropout=0.2)
    assert trained.config.decoding == opened.config.decoding.replace(beam_size=1)
    assert trained.config.data.languages == opened.config.data.languages
    assert trained.tokenizers.digests == opened.tokenizers.digests
    assert trained.origin.read_bytes() == opened.origin.read_bytes()
    bias = np.asarray(trained.load_model().output_bias)
    assert (
        bias[[0, 2]].max() < -9_000
    )  # padding and start are never generated after training either


@pytest.mark.nightly
def test_a_multilingual_run_that_went_on_keeps_its_languages(imported, tmp_path):
    """The recipe names no languages, so the vocabulary's languages apply."""
    run = tuned(imported("M2M"), tmp_path, 2, "data.languages=null")
    settings = {"max_length": 32, "beam_size": 1, "samples": SOURCES[:2]}
    for asked, wanted in (({}, ["en", "de"]), ({"target_language": "fr"}, ["en", "fr"])):
        version = export_to_ctranslate2(run, tmp_path / wanted[1], **settings, **asked)
        assert json.loads((version / "manifest.json").read_text())["languages"] == wanted


@pytest.mark.nightly
def test_a_model_of_marian_goes_back_after_its_training(marian_model, tmp_path):
    """Its decoder still begins with zeros, in both toolkits' files.

    The search is the tuned run's.
    """
    folder = marian_model("separate")
    run = tuned(import_model(folder, tmp_path / "run"), tmp_path, 2)
    wanted = Translator.load(run).score(SOURCES[:4], TARGETS[:4])
    export_to_marian(run, tmp_path / "marian")
    again = import_model(tmp_path / "marian" / "1", tmp_path / "again")
    scores = Translator.load(again).score(SOURCES[:4], TARGETS[:4])
    for score, expected in zip(scores, wanted, strict=True):
        np.testing.assert_allclose(score.log_probs, expected.log_probs, atol=1e-5)
    before, after = (
        marian_files.read(path / "model.npz")[1] for path in (folder, tmp_path / "marian" / "1")
    )
    manifest = json.loads((tmp_path / "marian" / "1" / "manifest.json").read_text())
    assert manifest["imported"]["origin"] == folder.name
    assert not np.array_equal(before["decoder_Wemb"], after["decoder_Wemb"])
    version = export_to_hugging_face(run, tmp_path / "hugging_face")
    tensors = read_safetensors(version / "model.safetensors")
    pad = json.loads((version / "target_vocab.json").read_text())["<pad>"]
    np.testing.assert_array_equal(tensors["model.decoder.embed_tokens.weight"][pad], 0)
    assert json.loads((version / "generation_config.json").read_text())["num_beams"] == 1
