"""Recipes: defaults, presets, overrides, round trip, and what a wrong one is told."""

import dataclasses
import inspect
import json
import subprocess
import sys

import pytest

from tfformer.config import (
    Config,
    Corpus,
    Dialect,
    ModelConfig,
    builtin_recipes,
    corpora_of,
    find_recipe,
    read_recipe,
)


def test_the_defaults_are_the_papers_base_model():
    model = Config().model
    assert (model.num_layers, model.d_model, model.num_heads, model.d_ff, model.dropout) == (
        6,
        512,
        8,
        2048,
        0.1,
    )
    assert (model.norm, model.activation, model.tie_embeddings) == ("post", "relu", "all")


def test_model_section_names_exactly_the_arguments_of_the_models():
    from tfformer.model.language_model import LanguageModel
    from tfformer.model.transformer import Transformer

    known = {field.name for field in dataclasses.fields(ModelConfig)} - {"architecture"}
    known -= set(Dialect.model_fields)
    of_keras = {"self", "options", "dialect"}
    arguments = set(inspect.signature(Transformer.__init__).parameters)
    assert known == arguments - of_keras - {"source_vocab_size", "target_vocab_size"}
    arguments = set(inspect.signature(LanguageModel.__init__).parameters)
    of_decoder = {"num_decoder_layers"}
    assert known - of_decoder == arguments - of_keras - {"vocab_size"}


def test_a_round_trip_through_json_keeps_every_value():
    config = Config.from_dict(
        {
            "model": {"preset": "tiny", "dropout": 0.3},
            "data": {"train": ["a.en", "a.de"], "augment": {"title": 0.1}},
        }
    )
    assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.model.d_model == 128
    assert config.model.dropout == 0.3
    assert config.data.train == ["a.en", "a.de"]
    assert (config.data.augment.title, config.data.augment.upper) == (0.1, 0)


@pytest.mark.parametrize(("preset", "millions"), [("base", 65), ("big", 213)])
def test_the_papers_presets_have_the_papers_parameters(preset, millions):
    """Table 3, within 3 %, for a shared vocabulary of 37,000.

    They are counted from the preset by hand.
    """
    model = Config.from_dict({"model": {"preset": preset}}).model
    d, f = model.d_model, model.d_ff
    attention, feed_forward, norm = 4 * d * d + 4 * d, 2 * d * f + d + f, 2 * d
    layers = model.num_layers * (
        (attention + feed_forward + 2 * norm) + (2 * attention + feed_forward + 3 * norm)
    )
    assert (37_000 * d + layers) / 1e6 == pytest.approx(millions, rel=0.03)
    assert model.dropout == {"base": 0.1, "big": 0.3}[preset]


@pytest.mark.parametrize("name", builtin_recipes())
def test_builtin_recipes_are_valid_and_begin_with_a_description(name):
    path = find_recipe(name)
    config = read_recipe(path)
    assert config.data.train
    assert path.read_text().startswith("# ")


def test_a_recipe_names_one_corpus_or_several():
    assert corpora_of("a.tsv") == [Corpus("a.tsv")]
    assert corpora_of(["a.en", "a.de"]) == [Corpus(["a.en", "a.de"])]
    assert corpora_of(["a.tsv", "tfds:b"]) == [Corpus("a.tsv"), Corpus("tfds:b")]
    assert corpora_of([["a.en", "a.de"], {"text": "b.tsv", "weight": 2}]) == [
        Corpus(["a.en", "a.de"]),
        Corpus("b.tsv", 2.0),
    ]


def test_overrides_are_yaml_values_on_top_of_the_file(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("model: {preset: tiny}\ndata: {train: [a, b]}\n")
    config = read_recipe(
        recipe,
        ["training.epochs=3", "model.num_layers=2", "data.train=[c.en, c.de]", "data.folder=x"],
    )
    assert (config.training.epochs, config.model.num_layers) == (3, 2)
    assert (config.data.train, config.data.folder) == (["c.en", "c.de"], "x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"modell": {}},
            r"recipe has an unknown key 'modell'; known are model, tokenizer, data, training, "
            r"decoding",
        ),
        (
            {"model": {"layers": 2}},
            r"section 'model' has an unknown key 'layers'; known are architecture, num_layers, ",
        ),
        ({"model": 3}, r"section 'model' must hold keys, not 3"),
        (
            {"model": {"preset": "huge"}},
            r"model.preset='huge' is not known; the presets are tiny, small, base, big",
        ),
        ({"model": {"preset": ["tiny"]}}, r"model.preset=\['tiny'\] is not known"),
        ({"model": {"d_model": "512"}}, r"model.d_model='512' must be a whole number"),
        ({"model": {"d_model": True}}, r"model.d_model=True must be a whole number"),
        ({"model": {"use_bias": 1}}, r"model.use_bias=1 must be true or false"),
        ({"model": {"d_model": 511}}, r"model.d_model=511 must be even"),
        ({"model": {"num_heads": 3}}, r"model.d_model=512 must be divisible by model.num_heads=3"),
        ({"model": {"num_heads": 0}}, r"model.num_heads=0 must be from 1 to 1,000,000"),
        (
            {"model": {"num_decoder_layers": 0}},
            r"model.num_decoder_layers=0 must be from 1 to 1,000",
        ),
        (
            {"training": {"ema_momentum": 1.5}},
            r"training.ema_momentum=1.5 must be at least 0 and below 1",
        ),
        ({"training": {"patience": 0}}, r"training.patience=0 must be from 1"),
        ({"data": {"sampling_alpha": 1.5}}, r"data.sampling_alpha=1.5 must be from 0 to 1"),
        ({"data": {"augment": {"upper": 2}}}, r"data.augment.upper=2.0 must be from 0 to 1"),
        ({"data": {"augment": 0.1}}, r"section 'data.augment' must hold keys, not 0.1"),
        (
            {"data": {"augment": {"capitals": 0.1}}},
            r"section 'data.augment' has an unknown key 'capitals'; known are upper, title, lower",
        ),
        (
            {
                "model": {"architecture": "decoder"},
                "data": {"augment": {"typos": 0.1}},
            },
            r"data.augment.typos=0.1 needs a source; with model.architecture=decoder leave it out",
        ),
        (
            {"data": {"augment": {"placeholders": 0.5}}, "tokenizer": {"symbols": ["<b>"]}},
            r"data.augment.placeholders=0.5 needs symbols to stand for words; set tokenizer",
        ),
        (
            {"tokenizer": {"case_variants": True, "model_type": "bpe"}},
            r"tokenizer.model_type='bpe' has no merges for the capitals of tokenizer.case_variants",
        ),
        (
            {"training": {"weight_decay": 0.1}},
            r"training.weight_decay=0.1 needs training.optimizer=adamw or muon",
        ),
        (
            {"training": {"learning_rate": 0.1}},
            r"training.learning_rate=0.1 is the peak of .* linear; leave it out with warmup",
        ),
        (
            {"decoding": {"length_penalty": -1}},
            r"decoding.length_penalty=-1.0 must be from 0 to 100",
        ),
        (
            {"data": {"languages": [False, "en"]}},
            r"must be a list of texts \(put no, yes, on and off in quotes\)",
        ),
        (
            {"tokenizer": {"normalization": "none"}},
            r"tokenizer.normalization='none' must be one of nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, "
            r"ide",
        ),
        (
            {"tokenizer": {"target_normalization": "identity"}},
            r"target_normalization='identity' needs a vocabulary of the target; set "
            r"tokenizer.shared",
        ),
        ({"model": {"norm": "mid"}}, r"model.norm='mid' must be one of post, pre, marian"),
        (
            {"model": {"architecture": "encoder"}},
            r"model.architecture='encoder' must be one of encoder-decoder, decoder",
        ),
        (
            {"model": {"architecture": "decoder", "num_decoder_layers": 2}},
            r"model.num_decoder_layers=2 goes with an encoder; with model.architecture=decoder "
            r"leave it out",
        ),
        (
            {"model": {"architecture": "decoder", "norm": "marian"}},
            r"model.norm='marian' is for translators of Marian; with model.architecture=decoder",
        ),
        (
            {"data": {"languages": ["en", "de", "fr"]}},
            r"data.languages=.*'fr'\] must name two, source and target, such as \[en, de\]",
        ),
        (
            {
                "model": {"architecture": "decoder", "tie_embeddings": "output"},
                "tokenizer": {"shared": False},
            },
            r"tokenizer.shared=False needs two languages; with model.architecture=decoder there "
            r"is one vocabulary",
        ),
        ({"model": {"dropout": 1.0}}, r"model.dropout=1.0 must be at least 0 and below 1"),
        ({"model": {"num_layers": 0}}, r"model.num_layers=0 must be from 1 to 1,000"),
        ({"data": {"train": 5}}, r"data.train=5 must be a text or a list of texts"),
        (
            {"data": {"train": [["a.en", "a.de"], 5]}},
            r"data.train has the corpus 5, but a corpus is a file, a list of its two files, or "
            r"\{text: ..., weight: ...\}",
        ),
        (
            {"data": {"train": [{"text": "a.tsv", "size": 5}]}},
            r"data.train has the corpus \{'size': 5, 'text': 'a.tsv'\}, but a corpus is",
        ),
        (
            {"data": {"train": [{"text": "a.tsv", "weight": 0}]}},
            r"data.train has the weight 0, but a weight must be above 0 and at most 1e\+09",
        ),
        (
            {"data": {"train": [{"text": "a.tsv", "weight": 1}, "b.tsv"]}},
            r"data.train=\[.*\] must have a weight for each corpus, or for none",
        ),
        (
            {"data": {"train": [{"text": "a.tsv", "weight": 1}], "temperature": 5}},
            r"data.temperature=5.0 decides the shares by itself; leave out the weights of",
        ),
        (
            {"data": {"valid": [{"text": "a.tsv", "weight": 1}]}},
            r"data.valid=\[.*\] is used whole; leave out its weights",
        ),
        (
            {"data": {"cache": "ids", "sampling_alpha": 0.1}},
            r"data.cache='ids' keeps one segmentation; leave out data.sampling_alpha",
        ),
        (
            {"data": {"max_length": 9000}},
            r"data.batch_tokens=4096 must hold one sentence of data.max_length=9000",
        ),
        ({"tokenizer": {"shared": False}}, r"model.tie_embeddings='all' needs one vocabulary"),
        (
            {"training": {"schedule": "linear"}},
            r"training.learning_rate=None is the peak of training.schedule=inverse_sqrt or linear",
        ),
        (
            {"training": {"max_minutes": "1h"}},
            r"training.max_minutes='1h' must be a number or nothing",
        ),
    ],
)
def test_a_wrong_recipe_is_told_the_value_the_rule_and_what_is_known(values, message):
    with pytest.raises(ValueError, match=message):
        Config.from_dict(values)


def test_a_float_may_be_written_with_an_exponent_alone(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("model: {epsilon: 1e-5}\n")
    config = read_recipe(recipe, ["training.clip_norm=2e-3"])
    assert (config.model.epsilon, config.training.clip_norm) == (1e-5, 0.002)


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("- a", [], "must hold sections such as 'model:' and 'data:', not a list"),
        ("model: {", [], "is not YAML"),
        ("", ["epochs=3"], "--set 'epochs=3' must read section.key=value"),
        ("model: 3", ["model.d_ff=3"], "section 'model' of the recipe holds no keys"),
        ("", ["data.train=[a.en"], r"--set 'data.train=\[a.en' is not YAML"),
        ("data: {folder: 2024-13-45}", [], "is not YAML: month must be in 1..12"),
    ],
)
def test_an_unreadable_recipe(tmp_path, text, overrides, message):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_recipe(recipe, overrides)


def test_an_empty_section_may_be_filled_from_the_command_line(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("data:\n")
    assert read_recipe(recipe, ["data.folder=corpus"]).data.folder == "corpus"


def test_a_recipe_that_is_not_utf8(tmp_path):
    (tmp_path / "r.yaml").write_bytes(b"data: \xff")
    with pytest.raises(ValueError, match=r"r.yaml is not UTF-8 at byte 7; save it as UTF-8 text"):
        read_recipe(tmp_path / "r.yaml")


def test_an_unknown_recipe_names_the_built_in_ones():
    with pytest.raises(
        ValueError, match=r"recipe 'nope' is neither a file nor built in; built in are .*phrasebook"
    ):
        find_recipe("nope")


def test_reading_a_recipe_does_not_import_tensorflow():
    code = "import sys; from tfformer.config import *; read_recipe(find_recipe('phrasebook')); " + (
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
