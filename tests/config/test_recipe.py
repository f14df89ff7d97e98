"""Recipes: YAML, overrides, defaults, presets, round trip, and the message for a wrong value."""

import inspect
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tfformer.config import (
    DIALECTS,
    Config,
    Corpus,
    ModelConfig,
    builtin_recipes,
    corpora_of,
    find_recipe,
    parse_yaml,
    read_recipe,
)
from tfformer.storage.whole_files import MAX_BYTES


def test_the_defaults_are_the_papers_base_model():
    model = Config().model
    sizes = (model.num_layers, model.d_model, model.num_heads, model.d_ff, model.dropout)
    assert sizes == (6, 512, 8, 2048, 0.1)
    assert (model.norm, model.activation, model.tie_embeddings) == ("post", "relu", "all")
    assert model.dialect == DIALECTS["paper"]


def test_model_section_names_exactly_the_arguments_of_the_models():
    from tfformer.model.language_model import LanguageModel
    from tfformer.model.transformer import Transformer

    known = set(ModelConfig.model_fields) - {"architecture"}
    of_keras = {"self", "options"}
    parameters = inspect.signature(Transformer.__init__).parameters
    for name in ("num_layers", "d_model", "num_heads", "d_ff", "dropout"):
        assert parameters[name].default == getattr(Config().model, name)
    arguments = set(parameters)
    arguments = arguments - {"decoder_kind"} | {"decoder"}  # the model's `decoder` is a layer
    assert known == arguments - of_keras - {"source_vocab_size", "target_vocab_size"}
    arguments = set(inspect.signature(LanguageModel.__init__).parameters)
    assert known - {"num_decoder_layers", "decoder"} == arguments - of_keras - {"vocab_size"}


def test_there_are_at_most_60_keys():
    sections = [Config.model_fields[name].annotation for name in Config.model_fields]
    keys = [name for section in sections for name in section.model_fields]
    assert len(keys) <= 60


@pytest.mark.parametrize("dialect", [*DIALECTS, {"epsilon": 1e-5, "position_offset": 2}])
def test_a_round_trip_through_json_keeps_every_value(dialect):
    values = {
        "model": {"preset": "tiny", "dropout": 0.3, "dialect": dialect},
        "data": {"train": ["a.en", "a.de"], "augment": {"title": 0.1}},
    }
    config = Config.from_dict(values)
    plain = json.loads(json.dumps(config.to_dict()))
    assert Config.from_dict(plain) == config
    assert plain["model"]["dialect"] == dialect
    assert (config.model.d_model, config.model.dropout) == (128, 0.3)
    assert config.data.train == ["a.en", "a.de"]
    assert (config.data.augment.title, config.data.augment.upper) == (0.1, 0)


@pytest.mark.parametrize("preset", ["tiny", "small", "student-tiny", "student-base"])
def test_small_presets_train_by_muon_unless_told_otherwise(preset):
    def training(**keys):
        return Config.from_dict({"model": {"preset": preset}, "training": keys}).training

    assert Config.from_dict({"model": {"preset": preset}}).model.norm == "pre"
    assert (training().optimizer, training().schedule) == ("muon", "linear")
    assert training(learning_rate=0.02).learning_rate == 0.02
    for key, value in (("optimizer", "adam"), ("schedule", "warmup")):
        assert training(**{key: value}) == Config.from_dict({"training": {key: value}}).training
    assert Config.from_dict({"model": {"preset": "base"}}).training == Config().training


def test_replaced_values_are_checked():
    assert Config().model.replace(d_model=64).d_model == 64
    with pytest.raises(ValueError, match=r"model\.d_model=63 must be even"):
        Config().model.replace(d_model=63)


@pytest.mark.parametrize(("preset", "millions"), [("base", 65), ("big", 213)])
def test_the_papers_presets_have_the_papers_parameters(preset, millions):
    """Table 3, within 3%, for a shared vocabulary of 37,000; counted from the preset by hand."""
    model = Config.from_dict({"model": {"preset": preset}}).model
    d, f = model.d_model, model.d_ff
    attention, feed_forward, norm = 4 * d * d + 4 * d, 2 * d * f + d + f, 2 * d
    layers = model.num_layers * (
        (attention + feed_forward + 2 * norm) + (2 * attention + feed_forward + 3 * norm)
    )
    assert (37_000 * d + layers) / 1e6 == pytest.approx(millions, rel=0.03)
    assert model.dropout == {"base": 0.1, "big": 0.3}[preset]


@pytest.mark.parametrize(("name", "millions", "megabytes"), [("tiny", 16, 17), ("base", 27, 31)])
def test_students_fit_into_phones(name, millions, megabytes):
    """Counted from the recipe by hand; int8 stores a byte per parameter, and 0.6 MB around it."""
    config = read_recipe(find_recipe(f"student-{name}"))
    model = config.model
    d, f = model.d_model, model.d_ff
    attention, ssru, feed_forward, norm = 4 * d * d + 4 * d, 2 * d * d + d, 2 * d * f + d + f, 2 * d
    encoder = model.num_layers * (attention + feed_forward + 2 * norm) + norm
    decoder = model.num_decoder_layers * (ssru + attention + feed_forward + 3 * norm) + norm
    assert (model.num_layers, model.num_decoder_layers, model.decoder) == (6, 2, "ssru")
    count = (config.tokenizer.vocab_size * d + encoder + decoder) / 1e6
    assert count == pytest.approx(millions, rel=0.02)
    assert count + 0.6 < megabytes


@pytest.mark.parametrize("name", builtin_recipes())
def test_builtin_recipes_are_valid_and_begin_with_a_description(name):
    path = find_recipe(name)
    assert read_recipe(path).data.train or name.startswith("student-")  # a teacher writes it
    assert path.read_text().startswith("# ")


def test_a_recipe_names_one_corpus_or_several():
    assert corpora_of("a.tsv") == [Corpus("a.tsv")]
    assert corpora_of(["a.en", "a.de"]) == [Corpus(["a.en", "a.de"])]
    assert corpora_of(["a.tsv", "tfds:b"]) == [Corpus("a.tsv"), Corpus("tfds:b")]
    assert corpora_of([["a.en", "a.de"], {"text": "b.tsv", "weight": 2}]) == [
        Corpus(["a.en", "a.de"]),
        Corpus("b.tsv", 2.0),
    ]
    tagged = {"text": "a.tsv", "tag": "<de>", "languages": ["en", "de"]}
    assert corpora_of([tagged]) == [Corpus("a.tsv", None, "<de>", ("en", "de"))]


LANGUAGE_MODEL = {"architecture": "decoder"}
TWO_VOCABULARIES = {"shared": False}

MISTAKES = [  # section, its values, the message
    ("modell", {}, "modell is not known; the known keys are model, tokenizer, data, training"),
    ("model", 3, "model must be a mapping of keys, not 3"),
    ("model", {"layers": 2}, "model.layers is not known; the known keys are architecture"),
    ("model", {"preset": "huge"}, "model.preset='huge' is not known; the presets are tiny, "),
    ("model", {"preset": ["tiny"]}, "model.preset=['tiny'] is not known"),
    ("model", {"d_model": "512"}, "model.d_model='512' must be a whole number"),
    ("model", {"d_model": True}, "model.d_model=True must be a whole number"),
    ("model", {"d_model": 511}, "model.d_model=511 must be even"),
    ("model", {"use_bias": 1}, "model.use_bias=1 must be true or false"),
    ("model", {"num_heads": 3}, "model.d_model=512 must be divisible by model.num_heads=3"),
    ("model", {"num_heads": 0}, "model.num_heads=0 must be at least 1"),
    ("model", {"num_decoder_layers": 1001}, "model.num_decoder_layers=1001 must be at most 1000"),
    ("model", {"dropout": 1.0}, "model.dropout=1.0 must be below 1.0"),
    ("model", {"dropout": float("nan")}, "model.dropout=nan must be a finite number"),
    ("model", {"norm": "mid"}, "model.norm='mid' must be 'post', 'pre' or 'marian'"),
    ("model", {"dialect": "hf"}, "the dialect 'hf' is not known; use paper, marian, m2m100, or"),
    ("model", {"dialect": 3}, "model.dialect must be a mapping of keys, not 3"),
    ("model", {"dialect": {"epsilon": 2}}, "model.dialect.epsilon=2 must be at most 1.0"),
    ("model", {"dialect": {"bias": 1}}, "model.dialect.bias is not known; the known keys are"),
    ("model", {"dialect": {"num_decoder_heads": 3}}, "by model.dialect.num_decoder_heads=3"),
    ("model", LANGUAGE_MODEL | {"num_decoder_layers": 2}, "=2 needs an encoder; with model.arch"),
    ("model", {"decoder": "gru"}, "model.decoder='gru' must be 'attention' or 'ssru'"),
    ("model", LANGUAGE_MODEL | {"decoder": "ssru"}, "model.decoder='ssru' needs an encoder"),
    ("model", LANGUAGE_MODEL | {"norm": "marian"}, "model.norm='marian' needs an encoder"),
    ("model", LANGUAGE_MODEL | {"dialect": "marian"}, "model.dialect='marian' needs an encoder"),
    ("tokenizer", {"normalization": "none"}, "tokenizer.normalization='none' must be 'nmt_nfkc', "),
    ("tokenizer", {"symbols": ["a", 3]}, "tokenizer.symbols.1=3 must be a string"),
    ("tokenizer", TWO_VOCABULARIES, "model.tie_embeddings='all' needs one vocabulary; set token"),
    (
        "tokenizer",
        {"target_normalization": "identity"},
        "tokenizer.target_normalization='identity' needs a target vocabulary; set tokenizer.shar",
    ),
    ("data", {"augment": {"upper": 2}}, "data.augment.upper=2 must be at most 1"),
    ("data", {"augment": 0.1}, "data.augment must be a mapping of keys, not 0.1"),
    ("data", {"augment": {"capitals": 0.1}}, "data.augment.capitals is not known; the known keys"),
    ("data", {"augment": {"placeholders": 0.5}}, "data.augment.placeholders=0.5 needs symbols"),
    ("data", {"languages": ["en", "de", "fr"]}, "must name source and target, for example [en,"),
    ("data", {"train": 5}, "data.train has the corpus 5; use a file, a list of its files, or"),
    ("data", {"train": [[]]}, "data.train has the corpus []; use a file, a list of its files, or"),
    ("data", {"valid": [{"text": []}]}, "data.valid has the corpus {'text': []}; use a file, a"),
    ("data", {"train": [["a.en", "a.de"], 5]}, "data.train has the corpus 5; use a file, a list"),
    ("data", {"train": [{"text": "a.tsv", "size": 5}]}, "data.train has the corpus {'size': 5, 't"),
    ("data", {"train": [{"text": "a.tsv", "weight": 0}]}, "has the weight 0; use a number above"),
    (
        "data",
        {"train": [{"text": "a.tsv", "weight": 1}, "b.tsv"]},
        "data.train must give a weight for every corpus or for none",
    ),
    (
        "data",
        {"train": [{"text": "a.tsv", "weight": 1}], "temperature": 5},
        "data.temperature=5.0 sets the shares of the corpora; leave out the weights in data.tr",
    ),
    ("data", {"valid": [{"text": "a.tsv", "weight": 1}]}, "data.valid is always used in full"),
    (
        "data",
        {"train": [{"text": "a.tsv", "tag": 5}]},
        "data.train has the tag 5; use one of data.",
    ),
    (
        "data",
        {"train": [{"text": "a.tsv", "tag": "<de>"}]},
        "the tag '<de>', which is not in data.tag",
    ),
    (
        "data",
        {"valid": [{"text": "a.tsv", "tag": "<x>"}], "tags": ["<y>"]},
        "data.tags (<y>); add it",
    ),
    (
        "data",
        {"train": [{"text": "a.tsv", "languages": "en"}]},
        "the languages 'en'; name source and",
    ),
    ("data", {"tags": ["de"]}, "data.tags has 'de'; write a tag without spaces in angle brackets"),
    ("data", {"tags": ["<a b>"]}, "data.tags has '<a b>'; write a tag without spaces in angle"),
    ("data", {"tags": 5}, "data.tags"),
    ("data", {"max_length": 9000, "batch_tokens": 4096}, "=4096 must hold one sentence of data"),
    ("training", {"ema_momentum": 1.5}, "training.ema_momentum=1.5 must be below 1"),
    ("training", {"strategy": "tpu"}, "training.strategy='tpu' must be 'one_device', 'mirrored'"),
    ("training", {"patience": 0}, "training.patience=0 must be at least 1"),
    ("training", {"max_minutes": "1h"}, "training.max_minutes='1h' must be a number"),
    ("training", {"max_minutes": 0}, "training.max_minutes=0 must be above 0"),
    ("training", {"simcut": 3}, "training.simcut must be a mapping of keys, not 3"),
    ("training", {"simcut": {"cutoff": 1}}, "training.simcut.cutoff=1 must be below 1"),
    ("training", {"simcut": {"p": 0.1}}, "training.simcut.p is not known; the known keys are alp"),
    ("training", {"weight_decay": 0.1}, "needs training.optimizer=adamw or muon"),
    ("training", {"learning_rate": 0.1}, "is the peak of training.schedule=inverse_sqrt"),
    ("training", {"schedule": "linear"}, "training.schedule='linear' needs training.learning_rate"),
    ("decoding", {"length_penalty": -1}, "decoding.length_penalty=-1 must be at least 0"),
]


@pytest.mark.parametrize(("section", "values", "message"), MISTAKES)
def test_a_wrong_value_is_told_with_its_rule(section, values, message):
    with pytest.raises(ValueError, match=re.escape(message)) as refusal:
        Config.from_dict({section: values})
    assert len(str(refusal.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"model": LANGUAGE_MODEL, "data": {"augment": {"typos": 0.1}}},
            "data.augment.typos=0.1 needs a source; with model.architecture=decoder leave it out",
        ),
        (
            {"model": LANGUAGE_MODEL, "training": {"simcut": {"alpha": 3}}},
            "training.simcut.alpha=3.0 needs a source; with model.architecture=decoder leave it",
        ),
        (
            {"model": LANGUAGE_MODEL, "data": {"tags": ["<de>"]}},
            "data.tags=['<de>'] needs a source; with model.architecture=decoder leave it out",
        ),
        (
            {"model": LANGUAGE_MODEL, "training": {"guided_alignment": 0.05}},
            "training.guided_alignment=0.05 needs a source; with model.architecture=decoder leave",
        ),
        (
            {"model": LANGUAGE_MODEL | {"tie_embeddings": "none"}, "tokenizer": TWO_VOCABULARIES},
            "tokenizer.shared=False needs two languages; with model.architecture=decoder there is",
        ),
    ],
)
def test_sections_must_fit_together(values, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Config.from_dict(values)


SECTIONS = {name: Config.model_fields[name].annotation for name in Config.model_fields}
KEYS = sorted({key for section in SECTIONS.values() for key in section.model_fields})
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)  # fast to set up
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda values: st.lists(values, max_size=3) | st.dictionaries(TEXT, values),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*SECTIONS]), st.dictionaries(st.sampled_from(KEYS), PLAIN)))
def test_a_recipe_of_any_values_is_refused_in_one_line_or_comes_back(values):
    message = ""
    try:
        config = Config.from_dict(values)
    except ValueError as error:
        message = str(error)
    if message:
        assert "validation error" not in message  # pydantic's own, of many lines
        assert len(message) < 600
    else:
        assert Config.from_dict(json.loads(json.dumps(config.to_dict()))) == config


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


def test_an_override_of_a_nested_key_keeps_the_keys_beside_it(recipe):
    recipe.write_text("training: {simcut: {alpha: 1, cutoff: 0.1}}\n")
    config = read_recipe(recipe, ["training.simcut.alpha=3", "data.augment.upper=0.2"])
    assert (config.training.simcut.alpha, config.training.simcut.cutoff) == (3, 0.1)
    assert config.data.augment.upper == 0.2


def test_a_single_corpus_may_be_a_mapping():
    corpus = {"text": "a.tsv", "tag": "<de>"}
    data = Config.from_dict({"data": {"train": corpus, "tags": ["<de>"]}}).data
    assert data == Config.from_dict({"data": {"train": [corpus], "tags": ["<de>"]}}).data


@pytest.mark.parametrize("corpus", [["a.tsv", "b.tsv"], {"text": ["a.tsv", "b.tsv.gz"]}])
def test_files_of_both_languages_are_not_two_sides(corpus):
    with pytest.raises(ValueError, match="a file contains both languages; make that file a sep"):
        Config.from_dict({"data": {"train": [corpus]}})


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


def test_the_recipe_of_a_resumed_run_changes_in_the_sections_of_a_file(recipe):
    """A section of the file counts as a whole, with the languages of the run."""
    resumed = Config.from_dict(
        {
            "model": {"preset": "tiny", "norm": "pre"},
            "tokenizer": {"vocab_size": 123},
            "data": {"languages": ["en", "de"], "max_length": 77, "train": "old.tsv"},
            "training": {"epochs": 9, "patience": 2},
        }
    )
    assert read_recipe(None, resumed=resumed) == resumed
    later = read_recipe(None, ["training.epochs=12"], resumed=resumed)
    assert later == resumed.replace(training=resumed.training.replace(epochs=12))
    recipe.write_text("data: {train: new.tsv}\ntraining: {epochs: 12}\ndecoding:\n")
    changed = read_recipe(recipe, resumed=resumed)
    assert (changed.model, changed.tokenizer) == (resumed.model, resumed.tokenizer)
    assert changed.data == resumed.data.replace(train="new.tsv")
    assert changed.training == Config.from_dict({"training": {"epochs": 12}}).training
    recipe.write_text("model: {preset: tiny, norm: post}\n")
    assert read_recipe(recipe, resumed=resumed) == resumed.replace(
        model=resumed.model.replace(norm="post")
    )


@pytest.mark.parametrize(
    ("text", "overrides", "message"),
    [
        ("- a", [], "must contain sections such as 'model:' and 'data:', not a list"),
        ("model: {", [], "r.yaml is not YAML"),
        ("model: {}\nmodel: {}", [], "r.yaml is not YAML: .* duplicate key"),
        ("!!python/object:os.system x", [], "r.yaml is not YAML: could not determine"),
        ("", ["epochs=3"], "--set 'epochs=3' must read section.key=value"),
        ("model: 3", ["model.d_ff=3"], "section 'model' of the recipe has no keys"),
        (
            "",
            ["model.norm=pre", "model.norm.x=1"],
            "section 'model.norm' of the recipe has no keys",
        ),
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


@given(st.lists(st.sampled_from(TOKENS), max_size=20).map("".join) | TEXT)
def test_any_text_is_parsed_or_refused(text):
    message = "recipe.yaml is not YAML: "
    try:
        parse_yaml(text, "recipe.yaml")
    except ValueError as error:
        message = str(error)
    assert message.startswith("recipe.yaml is not YAML: ")


def test_an_alias_is_the_last_anchor_of_its_name_without_a_warning():
    assert parse_yaml("[&a 1, *a, &a 2, *a]", "recipe.yaml") == [1, 1, 2, 2]


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
