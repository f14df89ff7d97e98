"""Languages and token lists of multilingual checkpoints; contradictory lists are refused."""

import dataclasses
import json

import numpy as np
import pytest
from support.marian_checkpoints import checkpoint, edit_json, languages

from tfformer.checkpoints.foreign_checkpoint import Choices
from tfformer.checkpoints.hugging_face import reader as hugging_face
from tfformer.checkpoints.import_model import import_model
from tfformer.cli.main import main
from tfformer.data.sentencepiece_proto import ModelProto
from tfformer.explain.attention_maps import attention
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run


def read(folder, name, **changed):
    return hugging_face.read(folder, Choices(**languages(name) | changed))


@pytest.mark.parametrize(("name", "tokens"), [("M2M", "__{}__"), ("NLLB", "{}")])
def test_each_side_begins_with_the_token_of_its_language(tmp_path, name, tokens):
    parsed = read(checkpoint(name, tmp_path), name)
    asked = languages(name)
    assert parsed.source.prefix == tokens.format(asked["source_language"])
    assert parsed.target.prefix == tokens.format(asked["target_language"])
    assert parsed.languages == list(asked.values())


def test_a_language_may_be_named_by_its_token(tmp_path):
    parsed = read(checkpoint("M2M", tmp_path), "M2M", source_language="__fr__")
    assert parsed.source.prefix == "__fr__"


@pytest.mark.parametrize("padding", [0, 1])
def test_positions_count_from_the_padding_id(tmp_path, padding):
    """The first position is 1 behind it; half the dimensions are sines, half cosines."""
    folder = checkpoint("M2M", tmp_path)
    start = 1 - padding
    edit_json(folder / "vocab.json", **{"<pad>": padding, "<s>": start})
    for name in ("config.json", "generation_config.json"):
        edit_json(folder / name, pad_token_id=padding, bos_token_id=start)
    model = Translator.load(import_model(folder, tmp_path / "run", **languages("M2M"))).model
    half = model.d_model // 2
    positions = np.arange(padding + 1, padding + 6)[:, np.newaxis]
    angles = positions * 10_000 ** (-np.arange(half) / (half - 1))
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    for stack in (model.encoder, model.decoder):
        encoding = stack.positions(np.zeros((1, 5, model.d_model), np.float32))[0]
        np.testing.assert_allclose(encoding, expected, atol=1e-5)


SENTENCES = ["a dog", "we see the dog."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "pair"),
    [("M2M", ("fr", "en")), pytest.param("NLLB", (None, "fra_Latn"), marks=pytest.mark.nightly)],
)
def test_a_run_translates_between_all_languages_of_its_checkpoint(
    imported, loaded, tmp_path, name, pair
):
    """The translations equal those of a run that was imported for this pair."""
    translator = Translator.load(imported(name), *pair)
    defaults = languages(name)
    asked = {key: new or defaults[key] for key, new in zip(defaults, pair, strict=True)}
    run = import_model(checkpoint(name, tmp_path), tmp_path / "run", **asked)
    expected = Translator.load(run)
    assert translator.tokenizers.source.prefix_id == expected.tokenizers.source.prefix_id
    assert translator.encode(SENTENCES).ids == expected.encode(SENTENCES).ids
    translations = translator.translate(SENTENCES, beam_size=1)
    assert translations == expected.translate(SENTENCES, beam_size=1)
    assert translations != loaded(name).translate(SENTENCES, beam_size=1)
    assert translator.language == expected.language == asked["source_language"]


@pytest.mark.parametrize(
    ("first", "second"), [(("fr", None), (None, "en")), ((None, "en"), ("fr", None))]
)
def test_a_second_choice_of_a_language_keeps_the_first(imported, first, second):
    run = Run.open(imported("M2M")).with_languages(*first).with_languages(*second)
    assert run.config.data.languages == ["fr", "en"]
    assert (run.tokenizers.source.language, run.tokenizers.target.language) == ("fr", "en")


def test_languages_that_no_recipe_names_are_those_of_the_vocabulary(imported):
    run = Run.open(imported("NLLB"))
    data = run.config.data.replace(languages=None)
    unnamed = dataclasses.replace(run, config=run.config.replace(data=data))
    assert unnamed.languages == ["eng_Latn", "deu_Latn"]
    assert Run.open(imported("I")).tokenizers.languages is None


@pytest.mark.parametrize("argument", ["source_language", "target_language"])
def test_an_unknown_language_is_refused_with_the_known_ones(imported, argument):
    with pytest.raises(ValueError, match="'xx' is not known; the model has en, fr, de"):
        Translator.load(imported("M2M"), **{argument: "xx"})


@pytest.mark.slow
def test_the_command_line_translates_into_another_language(imported, tmp_path, capsys):
    (tmp_path / "source").write_text("a dog\n")
    words = ["translate", str(imported("M2M")), "--input", str(tmp_path / "source")]
    assert main([*words, "--languages", "en,fr", "--beam-size", "1"]) == 0
    printed = capsys.readouterr().out.splitlines()
    french = Translator.load(imported("M2M"), target_language="fr")
    assert printed == french.translate(["a dog"], beam_size=1)
    assert main([*words, "--output", str(tmp_path), "--workers", "1", "--languages", "fr,en"])
    assert "--languages cannot be used with --workers or --ray" in capsys.readouterr().err


def test_a_run_of_one_pair_is_refused_other_languages(imported):
    with pytest.raises(ValueError, match="between two fixed languages, so 'fr' cannot be chosen"):
        Translator.load(imported("A"), target_language="fr")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"source_language": None}, "a multilingual model needs --languages SOURCE,TARGET"),
        ({"target_language": "xx"}, "'xx' is not known; the model has en, fr, de"),
        ({"positions": "hf"}, "only one table of positions; leave out --positions"),
    ],
)
def test_a_choice_that_there_is_not_is_refused(tmp_path, changed, message):
    with pytest.raises(ValueError, match=message):
        read(checkpoint("M2M", tmp_path), "M2M", **changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"vocab_size": 10**15}, "vocab_size is 1000000000000000, but model.shared.weight has"),
        ({"vocab_size": "9"}, "vocab_size is '9', not a whole number"),
        ({"eos_token_id": 5}, "eos_token_id in .* is 5, but </s> has the id 2"),
        ({"decoder_start_token_id": -1}, "decoder_start_token_id -1 is not an id"),
    ],
)
def test_a_configuration_that_does_not_fit_is_named(tmp_path, changed, message):
    folder = checkpoint("M2M", tmp_path)
    edit_json(folder / "config.json", **changed)
    with pytest.raises(ValueError, match=message):
        read(folder, "M2M")


def test_a_tokenizer_of_transformers_5_alone_is_told_so(tmp_path):
    folder = checkpoint("NLLB", tmp_path)
    (folder / "sentencepiece.bpe.model").unlink()
    with pytest.raises(ValueError, match=r"bpe\.model is missing; .* only tokenizer\.json"):
        read(folder, "NLLB")


def without_files(folder):
    (folder / "special_tokens_map.json").unlink()


def with_decoder(folder):
    """Add the file of newer versions, with the ids."""
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
        (None, "has 121 tokens, but no file names the language tokens"),
        ([], "has 121 tokens, but no file names the language tokens"),
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


def edit_pieces(folder, change):
    """Change the pieces of a checkpoint's SentencePiece model."""
    path = folder / "sentencepiece.bpe.model"
    model = ModelProto.FromString(path.read_bytes())
    change(model.pieces)
    path.write_bytes(model.SerializeToString())


def test_pieces_that_somebody_has_added_are_read(tmp_path):
    """For example a language added to NLLB, as two pieces: the ids of all languages grow by two."""
    folder = checkpoint("NLLB", tmp_path)

    def add(pieces):
        for name in ("tyv", "тыв"):
            pieces.add(piece=name, score=0.0)

    edit_pieces(folder, add)
    path = folder / "tokenizer.json"
    tokens = json.loads(path.read_text())["added_tokens"]
    moved = [{**token, "id": token["id"] + 2 * (token["id"] > 3)} for token in tokens]
    edit_json(path, added_tokens=moved)
    assert read(folder, "NLLB").source.pieces[121:124] == ["tyv", "тыв", "eng_Latn"]


def test_languages_begin_behind_the_last_token(tmp_path):
    folder = checkpoint("NLLB", tmp_path)
    edit_pieces(folder, lambda pieces: pieces.pop())
    message = "has 120 tokens, but no file names the language tokens with ids from 120 on"
    with pytest.raises(ValueError, match=message):
        read(folder, "NLLB")


def test_language_tokens_are_no_words_of_an_alignment(loaded):
    translator = loaded("M2M")
    source, target = "we see the dog.", "wir sie."
    (pair,) = translator.aligned([source], [target])
    assert "".join(pair.source) == "▁we▁see▁the▁dog.</s>"
    assert "".join(pair.target) == "▁wir▁sie.</s>"
    assert [word for word, _ in pair.nearest_targets()] == [0, 1, 2, 3]
    (score,) = translator.score([source], [target])
    np.testing.assert_allclose(pair.log_probs, score.log_probs[1:], atol=1e-4)
    weights = attention(translator, source, target).cross.weights[-2:][0].mean(axis=0)
    np.testing.assert_allclose(pair.attention, weights[1:, 1:], atol=1e-5)
