"""Every kind of model over strings can be loaded, measured and saved."""

import typing

import keras
import numpy as np
import pytest
import sacrebleu
import tensorflow as tf
from support.nightly import sampled
from support.untrained_models import letters_tokenizer, untrained_generator, untrained_transformer

import tfformer
from tfformer.config import ModelConfig
from tfformer.data import phrasebook
from tfformer.engines import open_engine
from tfformer.inference.generator import Generator
from tfformer.inference.text_model_kinds import TEXT_MODELS
from tfformer.inference.translator import Translator
from tfformer.run_directory import MODEL_KINDS, Run


def test_each_kind_has_its_row_and_its_class():
    kinds = set(typing.get_args(typing.get_type_hints(ModelConfig)["architecture"]))
    assert set(MODEL_KINDS) == kinds == set(TEXT_MODELS)


OTHER = {"epsilon": 1e-3, "num_decoder_heads": 4}


@pytest.mark.parametrize("dialect", sampled(["paper", "marian", OTHER], by_day=[OTHER]), ids=str)
def test_a_keras_model_translates_and_its_run_translates_the_same(dialect, tmp_path):
    model = untrained_transformer(dialect=dialect, norm="pre", num_decoder_layers=1)
    translator = Translator(model, letters_tokenizer(), beam_size=3, max_length=9)
    sentences = ["a b c", "h", "", "d e f g"]
    run = translator.save(tmp_path / "run")
    again = Translator.load(run)
    assert again.n_best(sentences, 1) == translator.n_best(sentences, 1)
    assert again.decoding == translator.decoding
    assert (again.decoding.beam_size, again.max_length) == (3, 9)
    assert Run.open(run).history() == []
    Run.open(run).check_finished()


def test_a_model_that_was_fit_and_loaded_by_keras_translates(tmp_path):
    tokenizer = letters_tokenizer()
    pairs = [("a b c", "c b a"), ("d e", "e d")] * 8
    sizes = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 16}
    model = tfformer.Transformer(tokenizer.vocab_size, tokenizer.vocab_size, **sizes)
    model.compile("adam", tfformer.SmoothedCrossEntropy(), run_eagerly=True)
    model.fit(tfformer.training_dataset(pairs, tokenizer), verbose=0)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    expected = Translator(model, tokenizer, max_length=9).translate(["a b c"])
    translator = Translator(loaded, tokenizer, max_length=9)
    assert translator.translate(["a b c"]) == expected


def test_a_language_model_is_saved_as_a_run(tmp_path):
    generator = untrained_generator()
    again = Generator.load(generator.save(tmp_path / "run"))
    assert again.max_length == generator.max_length
    assert again.log_prob(["c d"]) == generator.log_prob(["c d"])


def test_a_model_that_no_recipe_describes_is_not_saved(tmp_path):
    model = untrained_transformer(activation=tf.nn.silu)
    with pytest.raises(ValueError, match="cannot be described by a recipe; save it with Keras"):
        Translator(model, letters_tokenizer()).save(tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["mine.txt", "pairs", ".lock"])  # training ignores the last two
def test_a_folder_that_is_not_empty_is_left_alone(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(FileExistsError, match="is not an empty folder"):
        Translator(untrained_transformer(), letters_tokenizer()).save(tmp_path)


def test_a_model_is_saved_into_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    translator = Translator(untrained_transformer(), letters_tokenizer())
    again = Translator.load(translator.save("."))
    assert [path.name for path in tmp_path.glob(".*")] == []
    np.testing.assert_array_equal(
        again.score(["a b"], ["b"])[0].log_probs, translator.score(["a b"], ["b"])[0].log_probs
    )


def test_a_model_is_not_saved_to_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="s3://bucket/run is an address, not a path; write"):
        Translator(untrained_transformer(), letters_tokenizer()).save("s3://bucket/run")
    assert list(tmp_path.iterdir()) == []


def test_a_length_without_a_token_before_the_end_token_is_refused():
    models = {Translator: untrained_transformer(), Generator: untrained_generator().model}
    for kind, model in models.items():
        with pytest.raises(ValueError, match="max_length=1 must be a whole number of at least 2"):
            kind(model, letters_tokenizer(), max_length=1)


def test_a_tokenizer_of_another_size_is_refused():
    tokenizer = tfformer.Tokenizer.train(["a b c d"] * 20, vocab_size=9)
    with pytest.raises(ValueError, match="a tokenizer of 9 pieces does not fit a model for 13"):
        Translator(untrained_transformer(), tokenizer)


@pytest.mark.usefixtures("one_process")
def test_a_keras_model_is_exported(tmp_path):
    pytest.importorskip("ctranslate2")
    translator = Translator(untrained_transformer(), letters_tokenizer(), max_length=9)
    version = translator.export(tmp_path, format="ctranslate2", samples=["a b c", "d"])
    with open_engine(version) as engine:
        found = engine.translate(["a b c"], beam_size=1)
    assert found == translator.translate(["a b c"], beam_size=1)


@pytest.mark.slow
def test_an_evaluator_measures_bleu_as_the_recipe_says(tiny_run, translator):
    run = Run.open(tiny_run)
    training = run.config.training.replace(bleu_tokenizer="char")
    config = run.config.replace(training=training)
    rows = [(pair.source, pair.target) for pair in phrasebook.pairs("test")[:8]]
    measured = Translator.of(run).measure(rows, config)
    sources, targets = (list(side) for side in zip(*rows, strict=True))
    texts = translator.translate(sources, beam_size=1)
    bleu = sacrebleu.corpus_bleu(texts, [targets], tokenize="char").score
    assert measured.figures["val_bleu"] == pytest.approx(bleu)
    assert measured.samples == [f"{sources[n]}\n\n> {texts[n]}" for n in range(0, 8, 2)]
