"""Multilingual checkpoints: their languages and their lists of tokens.

Some are refused.
"""

import json

import pytest
from support.marian_checkpoints import checkpoint, edit_json, languages

from tfformer.importing import m2m100
from tfformer.importing.checkpoint import Choices


def read(folder, name, **changed):
    return m2m100.read(folder, Choices(**languages(name) | changed))


@pytest.mark.parametrize(("name", "tokens"), [("M2M", "__{}__"), ("NLLB", "{}")])
def test_each_side_begins_with_the_token_of_its_language(tmp_path, name, tokens):
    found = read(checkpoint(name, tmp_path), name)
    asked = languages(name)
    assert found.source.prefix == tokens.format(asked["source_language"])
    assert found.target.prefix == tokens.format(asked["target_language"])
    assert found.languages == list(asked.values())


def test_a_language_may_be_named_by_its_token(tmp_path):
    found = read(checkpoint("M2M", tmp_path), "M2M", source_language="__fr__")
    assert found.source.prefix == "__fr__"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source_language": None}, "no language is given; it has en, fr, de"),
        ({"target_language": "xx"}, "'xx' is not known; it has en, fr, de"),
        ({"positions": "hf"}, "has one table of positions; leave out --positions"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read(checkpoint("M2M", tmp_path), "M2M", **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"vocab_size": 10**15}, "vocab_size is 1000000000000000, but model.shared.weight has"),
        ({"vocab_size": "9"}, "vocab_size is '9', which is no number"),
        ({"eos_token_id": 5}, "eos_token_id in .* is 5, but </s> has the id 2"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id -1 is no id"),
        ({"activation_function": "silly"}, "activation_function is 'silly'; known are"),
        ({"d_model": None}, "has no d_model"),
        ({"model_type": "m2m_10"}, "model_type is 'm2m_10', not 'm2m_100'"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(tmp_path, changed, message):
    folder = checkpoint("M2M", tmp_path)
    edit_json(folder / "config.json", **changed)
    with pytest.raises(ValueError, match=message):
        read(folder, "M2M")


def without_files(folder):
    (folder / "special_tokens_map.json").unlink()


def with_decoder(folder):
    """The file of newer versions, with the ids."""
    size = len(json.loads((folder / "vocab.json").read_text()))
    tokens = json.loads((folder / "special_tokens_map.json").read_text())
    named = enumerate(tokens["additional_special_tokens"], start=size)
    decoder = {str(number): {"content": token} for number, token in named}
    (folder / "tokenizer_config.json").write_text(json.dumps({"added_tokens_decoder": decoder}))
    without_files(folder)


def test_the_languages_may_stand_in_any_file(tmp_path):
    folder = checkpoint("M2M", tmp_path)
    wanted = read(folder, "M2M").source.pieces
    with_decoder(folder)
    assert read(folder, "M2M").source.pieces == wanted


@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (None, "has no file that names the tokens of languages"),
        ([], "has no file that names the tokens of languages"),
        ([1], "has an added token '1' with the id"),
        (["__en__", "__en__", "__de__"], "names the token '__en__' twice"),
        ([f"__{n}__" for n in range(300)], "tokens, but vocab_size in config.json is"),
    ],
)
def test_lists_of_languages_that_do_not_fit_are_refused(tmp_path, tokens, message):
    folder = checkpoint("M2M", tmp_path)
    special = {"additional_special_tokens": tokens}
    (folder / "special_tokens_map.json").write_text(json.dumps(special))
    with pytest.raises(ValueError, match=message):
        read(folder, "M2M")
