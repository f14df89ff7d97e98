"""Recipes in YAML: overrides, and the message for a file that is not a recipe."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfformer.config import Config, find_recipe, parse_yaml, read_recipe
from tfformer.storage.whole_files import MAX_BYTES


@pytest.fixture
def recipe(tmp_path):
    return tmp_path / "r.yaml"


def test_overrides_are_yaml_values_on_top_of_the_file(recipe):
    recipe.write_text("model: {preset: tiny}\ndata: {train: [a, b]}\n")
    changes = ["training.epochs=3", "model.num_layers=2", "data.train=[c, d]", "data.folder=x"]
    config = read_recipe(recipe, changes)
    assert (config.training.epochs, config.model.num_layers) == (3, 2)
    assert (config.data.train, config.data.folder) == (["c", "d"], "x")


def test_an_empty_section_may_be_filled_from_the_command_line(recipe):
    recipe.write_text("data:\n")
    assert read_recipe(recipe, ["data.folder=corpus"]).data.folder == "corpus"


def test_languages_and_numbers_need_no_quotes(recipe):
    recipe.write_text("data: {languages: [en, no]}\ntraining: {clip_norm: 1e-3}\n")
    config = read_recipe(recipe)
    assert config.data.languages == ["en", "no"]
    assert config.training.clip_norm == 0.001


def test_a_recipe_without_a_model_takes_the_model_of_another(recipe):
    base = Config.from_dict(
        {
            "model": {"preset": "tiny", "norm": "pre"},
            "tokenizer": {"vocab_size": 123},
            "decoding": {"beam_size": 7},
            "data": {"languages": ["en", "de"], "max_length": 77, "train": "old.tsv"},
            "training": {"epochs": 9},
        }
    )
    recipe.write_text("data: {train: new.tsv}\ntokenizer: {vocab_size: 5}\n")
    taken = read_recipe(recipe, ["model.dropout=0.3"], base)
    assert taken.model == base.model.replace(dropout=0.3)
    assert (taken.tokenizer.vocab_size, taken.decoding) == (5, base.decoding)
    assert (taken.data.languages, taken.data.max_length) == (["en", "de"], 77)
    assert (taken.data.train, taken.training) == ("new.tsv", Config().training)
    assert read_recipe(None, [], base).tokenizer == base.tokenizer
    recipe.write_text("model: {preset: tiny}\n")
    assert read_recipe(recipe, [], base) == read_recipe(recipe)


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("- a", [], "must contain sections such as 'model:' and 'data:', not a list"),
        ("model: {", [], "r.yaml is not YAML"),
        ("model: {}\nmodel: {}", [], "r.yaml is not YAML: .* duplicate key"),
        ("!!python/object:os.system x", [], "r.yaml is not YAML: could not determine"),
        ("", ["epochs=3"], "--set 'epochs=3' must read section.key=value"),
        ("model: 3", ["model.d_ff=3"], "section 'model' of the recipe has no keys"),
        ("", ["data.train=[a.en"], r"--set 'data.train=\[a.en' is not YAML"),
        ("data: {folder: 2024-13-45}", [], "is not YAML: month must be in 1..12"),
        ("a" * (MAX_BYTES + 1), [], "has more than 65,536 bytes; check that it is the right"),
    ],
)
def test_an_unreadable_recipe_is_one_line(recipe, text, overrides, message):
    recipe.write_text(text)
    with pytest.raises(ValueError, match=message) as refusal:
        read_recipe(recipe, overrides)
    assert len(str(refusal.value).splitlines()) == 1


def test_a_recipe_that_is_not_utf8(recipe):
    recipe.write_bytes(b"data: \xff")
    with pytest.raises(ValueError, match=r"r.yaml is not UTF-8 at byte 7; save it as UTF-8 text"):
        read_recipe(recipe)


def test_a_folder_is_no_recipe(tmp_path):
    with pytest.raises(ValueError, match="is not a regular file; use a regular file"):
        read_recipe(tmp_path)


def test_an_error_names_the_whole_path_of_the_recipe(recipe, monkeypatch):
    recipe.write_text("training: {epoch: 3}\n")
    monkeypatch.chdir(recipe.parent)
    with pytest.raises(ValueError, match=f"^{recipe}: training.epoch is not known; the known keys"):
        read_recipe("r.yaml")
    with pytest.raises(ValueError, match=f"^{recipe} with --set: training.epoch is not known"):
        read_recipe("r.yaml", ["training.seed=3"])


def test_an_unknown_recipe_names_the_built_in_ones():
    message = r"recipe 'nope' is neither a file nor built in; the built-in recipes are .*phrasebook"
    with pytest.raises(ValueError, match=message):
        find_recipe("nope")


TOKENS = ["a", ": ", "- ", "[", "]", "{", "}", "\n", "  ", "&a ", "*a", "!!int ", "!!bool ", "<<"]
TOKENS += ["!!timestamp ", "!!omap ", "!!set ", "!!binary ", "? ", "| ", "'", '"', "\\", "1", "\0"]


TEXT = st.text(st.characters(exclude_categories=["Cs"]))  # fast to set up


@given(st.lists(st.sampled_from(TOKENS), max_size=20).map("".join) | TEXT)
def test_any_text_is_parsed_or_refused(text):
    message = "recipe.yaml is not YAML: "
    try:
        parse_yaml(text, "recipe.yaml")
    except ValueError as error:
        message = str(error)
    assert message.startswith("recipe.yaml is not YAML: ")


def test_deep_nesting_is_refused():
    with pytest.raises(ValueError, match="is not YAML: maximum recursion depth"):
        parse_yaml("[" * 30_000, "recipe.yaml")


def test_reading_a_recipe_does_not_import_tensorflow():
    code = (
        "import sys; from tfformer.config import Config, find_recipe, read_recipe\n"
        "read_recipe(find_recipe('phrasebook'))\n"
        "assert not {'tensorflow', 'keras', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
