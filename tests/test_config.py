"""Recipes: defaults, presets, overrides, round trip, and what a wrong one is told."""

import dataclasses
import inspect
import subprocess
import sys

import pytest

from tfformer.config import PRESETS, Config, ModelConfig, builtin_recipes, find_recipe, read_recipe


def test_the_defaults_are_the_papers_base_model():
    model = Config().model
    assert (model.num_layers, model.d_model, model.num_heads, model.d_ff, model.dropout) == (6, 512, 8, 2048, 0.1)
    assert (model.norm, model.activation, model.tie_embeddings) == ("post", "relu", "all")


def test_model_section_names_exactly_the_arguments_of_the_transformer():
    from tfformer.transformer import Transformer

    arguments = set(inspect.signature(Transformer.__init__).parameters)
    sizes_and_rest = {"self", "source_vocab_size", "target_vocab_size", "kwargs"}
    assert {field.name for field in dataclasses.fields(ModelConfig)} == arguments - sizes_and_rest


def test_json_round_trip_keeps_every_value():
    config = Config.from_dict({"model": {"preset": "tiny", "dropout": 0.3}, "data": {"train": ["a.en", "a.de"]}})
    assert Config.from_json(config.to_json()) == config
    assert config.model.d_model == 128 and config.model.dropout == 0.3 and config.data.train == ["a.en", "a.de"]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_a_model(preset):
    assert Config.from_dict({"model": {"preset": preset}}).model.d_model == PRESETS[preset]["d_model"]


@pytest.mark.parametrize("name", builtin_recipes())
def test_builtin_recipes_are_valid_and_begin_with_a_description(name):
    path = find_recipe(name)
    assert read_recipe(path).data.train
    assert path.read_text().startswith("# ")


def test_overrides_are_yaml_values_on_top_of_the_file(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("model: {preset: tiny}\ndata: {train: [a, b]}\n")
    config = read_recipe(
        recipe, ["training.epochs=3", "model.num_layers=2", "data.train=[c.en, c.de]", "data.folder=x"]
    )
    assert (config.training.epochs, config.model.num_layers) == (3, 2)
    assert (config.data.train, config.data.folder) == (["c.en", "c.de"], "x")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"modell": {}}, r"recipe has an unknown key 'modell'; known are model, tokenizer, data, training, decoding"),
        ({"model": {"layers": 2}}, r"section 'model' has an unknown key 'layers'; known are num_layers, "),
        ({"model": 3}, r"section 'model' must hold keys, not 3"),
        ({"model": {"preset": "huge"}}, r"model.preset='huge' is not known; the presets are tiny, small, base, big"),
        ({"model": {"d_model": "512"}}, r"model.d_model='512' must be of type int"),
        ({"model": {"d_model": True}}, r"model.d_model=True must be of type int"),
        ({"model": {"norm": "mid"}}, r"model.norm='mid' must be one of post, pre"),
        ({"model": {"dropout": 1.0}}, r"model.dropout=1.0 must be at least 0 and below 1"),
        ({"model": {"num_layers": 0}}, r"model.num_layers=0 must be at least 1"),
        ({"data": {"train": 5}}, r"data.train=5 must be of type str or list"),
        ({"data": {"max_length": 9000}}, r"data.batch_tokens=4096 must hold one sentence of data.max_length=9000"),
        ({"tokenizer": {"shared": False}}, r"model.tie_embeddings='all' needs one vocabulary"),
        (
            {"training": {"schedule": "plateau"}},
            r"training.learning_rate=None must be given for training.schedule=plateau",
        ),
        ({"training": {"max_minutes": "1h"}}, r"training.max_minutes='1h' must be of type float or nothing"),
    ],
)
def test_a_wrong_recipe_is_told_the_value_the_rule_and_what_is_known(values, message):
    with pytest.raises(ValueError, match=message):
        Config.from_dict(values)


def test_a_float_may_be_written_with_an_exponent_alone(tmp_path):
    recipe = tmp_path / "r.yaml"
    recipe.write_text("model: {epsilon: 1e-5}\n")
    assert read_recipe(recipe, ["training.weight_decay=2e-3"]).model.epsilon == 1e-5
    assert read_recipe(recipe, ["training.weight_decay=2e-3"]).training.weight_decay == 0.002


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("- a", [], "must hold sections such as 'model:' and 'data:', not a list"),
        ("model: {", [], "is not YAML"),
        ("", ["epochs=3"], "--set 'epochs=3' must read section.key=value"),
        ("model: 3", ["model.d_ff=3"], "section 'model' of the recipe holds no keys"),
    ],
)
def test_an_unreadable_recipe(tmp_path, text, overrides, message):
    recipe = tmp_path / "r.yaml"
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_recipe(recipe, overrides)


def test_an_unknown_recipe_names_the_built_in_ones():
    with pytest.raises(ValueError, match=r"recipe 'nope' is neither a file nor built in; built in are .*phrasebook"):
        find_recipe("nope")


def test_reading_a_recipe_does_not_import_tensorflow():
    code = "import sys; from tfformer.config import *; read_recipe(find_recipe('phrasebook')); " + (
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
