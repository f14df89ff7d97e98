"""An export to another toolkit restores the imported file bit by bit."""

import dataclasses
import functools
import json
import re
import shutil
import warnings

import numpy as np
import pytest
import yaml
from support.marian_checkpoints import (
    FIXTURES,
    MARIAN,
    MULTILINGUAL,
    answers,
    checkpoint,
    each,
    edit_json,
    edit_yaml,
    languages,
    put,
)
from support.nightly import sampled

from tfformer.checkpoints.foreign_order import with_sines_first
from tfformer.checkpoints.hugging_face import writer as hugging_face_writer
from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.marian import writer as marian_writer
from tfformer.checkpoints.provenance import read_record, write_record
from tfformer.checkpoints.tensor_files import read_safetensors, write_safetensors
from tfformer.checkpoints.weight_names import OUTPUT_BIAS, take
from tfformer.cli.main import main
from tfformer.config import Rules
from tfformer.export.pipeline import export_model
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.special_ids import START_ID

export_to_hugging_face = functools.partial(export_model, format="hugging_face")
export_to_marian = functools.partial(export_model, format="marian")


def check_same(tensors, expected):
    assert tensors.keys() == expected.keys()
    for name, tensor in expected.items():
        assert tensors[name].dtype == tensor.dtype
        np.testing.assert_array_equal(tensors[name], tensor)


@pytest.mark.parametrize("name", each(MULTILINGUAL))
def test_a_multilingual_checkpoint_comes_back_bit_equal(imported, tmp_path, name):
    version = export_to_hugging_face(imported(name), tmp_path)
    first = read_safetensors(FIXTURES / name / "model.safetensors")
    check_same(read_safetensors(version / "model.safetensors"), first)
    for file in FIXTURES.glob(f"{name}/*.json"):
        if file.name not in ("expected.json", "tokenizer.json"):
            assert json.loads((version / file.name).read_text()) == json.loads(file.read_text())
    pieces = (FIXTURES / name / "sentencepiece.bpe.model").read_bytes()
    assert (version / "sentencepiece.bpe.model").read_bytes() == pieces


def test_a_search_that_stood_in_config_json_goes_back_there(tmp_path):
    """Transformers reads the search from config.json only if generation_config.json is missing."""
    folder = checkpoint("M2M", tmp_path)
    (folder / "generation_config.json").unlink()
    config = json.loads((folder / "config.json").read_text()) | {"num_beams": 3}
    (folder / "config.json").write_text(json.dumps(config))
    version = export_to_hugging_face(
        import_model(folder, tmp_path / "run", **languages("M2M")), tmp_path / "out"
    )
    assert not (version / "generation_config.json").exists()
    assert json.loads((version / "config.json").read_text()) == config


def test_a_multilingual_checkpoint_may_begin_with_another_token_than_the_end(tmp_path):
    folder = checkpoint("M2M", tmp_path)
    for file in ("config.json", "generation_config.json"):
        edit_json(folder / file, decoder_start_token_id=0)
    run = import_model(folder, tmp_path / "run", **languages("M2M"))
    version = export_to_hugging_face(run, tmp_path / "out")
    first = read_safetensors(folder / "model.safetensors")
    check_same(read_safetensors(version / "model.safetensors"), first)
    assert json.loads((version / "config.json").read_text())["decoder_start_token_id"] == 0


@pytest.mark.parametrize(
    ("forbidden", "early_stopping", "positions", "wanted"),
    [
        ([[117]], None, "marian", [[117], [1]]),
        ([[1], [117]], True, "marian", [[1], [117]]),
        ([[1], [117]], True, "auto", [[1], [117]]),
        (None, False, "auto", None),
        (None, None, "auto", None),
        (None, False, "marian", [[1]]),
    ],
)
def test_a_search_goes_back_as_it_was_stated(
    tmp_path, forbidden, early_stopping, positions, wanted
):
    """Only a token that the run never takes is forbidden: in A padding, 117, and unknown, 1."""
    folder = checkpoint("A", tmp_path)
    stated = {"bad_words_ids": forbidden, "early_stopping": early_stopping}
    edit_json(folder / "generation_config.json", **stated)
    run = import_model(folder, tmp_path / "run", positions)
    dialect = Run.open(run).config.model.dialect
    is_marian = positions == "marian"  # whose search stops early whatever the file says
    assert dialect.early_stopping is (is_marian or bool(early_stopping))
    version = export_to_hugging_face(run, tmp_path / "out")
    generation = json.loads((version / "generation_config.json").read_text())
    assert generation.get("bad_words_ids") == wanted
    if not is_marian:
        assert generation.get("early_stopping") is early_stopping


@pytest.mark.parametrize("renormalized", sampled([False, True], by_day=[True]))
def test_rules_without_a_generation_config_come_back(tmp_path, renormalized):
    """A states its rules in config.json, which Transformers ignores if the other file exists."""
    folder = checkpoint("A", tmp_path)
    (folder / "generation_config.json").unlink()
    edit_json(
        folder / "config.json",
        **{"repetition_penalty": 1.5, "no_repeat_ngram_size": 3, "min_length": 5},
        **{"bad_words_ids": [[5, 9], [20]], "renormalize_logits": renormalized},
    )
    run = import_model(folder, tmp_path / "run")
    version = export_to_hugging_face(run, tmp_path / "out")
    generation = json.loads((version / "generation_config.json").read_text())
    assert generation["bad_words_ids"] == [[117], [5, 9], [20]]
    assert generation["min_new_tokens"] == 4  # min_length counts the start
    again = import_model(version, tmp_path / "again")
    rules = [Run.open(path).config.model.dialect.rules for path in (run, again)]
    assert rules[0].repetition_penalty == 1.5
    assert rules[1] == rules[0]


def test_a_recipe_may_change_the_rules(imported, tmp_path):
    run = Run.open(imported("A"))
    rules = Rules(min_length=4, bad_words=[[7, 11]])  # the rows 5 and 9
    dialect = run.config.model.dialect.replace(rules=rules)
    config = run.config.replace(model=run.config.model.replace(dialect=dialect))
    hugging_face_writer.write(tmp_path, dataclasses.replace(run, config=config), run.load_model())
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["min_new_tokens"] == 4
    assert generation["bad_words_ids"] == [[117], [5, 9]]


@pytest.mark.parametrize(
    ("name", "write", "wanted"),
    [
        ("A", hugging_face_writer.write, [[117], [1]]),
        ("M2M", hugging_face_writer.write_multilingual, [[3]]),
    ],
)
def test_a_recipe_may_forbid_the_unknown_token(imported, tmp_path, name, write, wanted):
    run = Run.open(imported(name))
    dialect = run.config.model.dialect.replace(allow_unknown=False)
    config = run.config.replace(model=run.config.model.replace(dialect=dialect))
    write(tmp_path, dataclasses.replace(run, config=config), run.load_model())
    generation = json.loads((tmp_path / "generation_config.json").read_text())
    assert generation["bad_words_ids"] == wanted


@pytest.mark.parametrize(
    ("writer", "setting", "message"),
    [
        (hugging_face_writer, {"dialect": {"position_offset": 2}}, "offset=2, but .* at 0; use"),
        (hugging_face_writer, {"use_bias": False}, "false, but .* have biases; use --format ctr"),
        (marian_writer, {"dialect": {"position_offset": 2}}, "offset=2, but .* at 0; use"),
        (marian_writer, {"use_bias": False}, "use_bias=False and .*_embedding=True, but Marian"),
    ],
)
def test_a_form_of_the_model_that_marian_does_not_have(
    imported, writer, setting, message, tmp_path
):
    run = Run.open(imported("A"))
    model = run.config.model.replace(**setting)
    config = run.config.replace(model=model)
    with pytest.raises(ValueError, match=message):
        writer.write(tmp_path, dataclasses.replace(run, config=config), run.load_model())


@pytest.mark.parametrize("name", each(MULTILINGUAL))
def test_a_multilingual_checkpoint_comes_back_as_the_same_run(imported, tmp_path, name):
    """NLLB's languages, imported from tokenizer.json, are written to tokenizer_config.json."""
    version = export_to_hugging_face(imported(name), tmp_path / "out")
    named = json.loads((version / "tokenizer_config.json").read_text())["additional_special_tokens"]
    assert [name.strip("_")[:2] for name in named] == ["en", "fr", "de"]
    again = Run.open(import_model(version, tmp_path / "again", **languages(name)))
    first = Run.open(imported(name))
    assert again.tokenizers.digests == first.tokenizers.digests
    assert again.config == first.config
    tensors, expected = (take(run.load_model()) for run in (again, first))
    for slot, tensor in expected.items():
        np.testing.assert_array_equal(tensors[slot], tensor)


@pytest.mark.parametrize(
    ("variable", "message"),
    [
        (lambda model: model.output_bias, "now has an output bias, but M2M100 and NLLB have none"),
        (lambda model: model.target_embedding.embeddings, "begins a translation with a learned"),
    ],
)
def test_a_multilingual_run_that_was_trained_since_is_refused(
    imported, tmp_path, variable, message
):
    run = Run.open(imported("M2M"))
    model = run.load_model()
    changed = variable(model)
    changed.assign(changed + np.random.default_rng(0).normal(size=changed.shape))
    with pytest.raises(ValueError, match=message):
        hugging_face_writer.write_multilingual(tmp_path, run, model)


def test_a_multilingual_run_of_another_version_is_to_be_imported_again(imported, tmp_path):
    run = Run.open(shutil.copytree(imported("M2M"), tmp_path / "run"))
    record = read_record(run)
    del record["details"]["generation"]
    write_record(run, record)
    with pytest.raises(ValueError, match=r"imported\.json has no generation, .*; import the model"):
        export_to_hugging_face(run.path, tmp_path / "out")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "start"), sampled([("A", 0), ("A", 5), ("C", 0)], by_day=[("A", 5), ("C", 0)])
)
def test_a_start_that_was_trained_gets_a_row_of_its_own(tmp_path, name, start):
    """Transformers begins with the vector of a token, which then changes this token too."""
    folder = checkpoint(name, tmp_path)
    for file in ("config.json", "generation_config.json"):
        edit_json(folder / file, decoder_start_token_id=start)
    run = import_model(folder, tmp_path / "run")
    first = read_safetensors(export_to_hugging_face(run, tmp_path / "out") / "model.safetensors")
    vector = np.linspace(-1, 1, first[EMBEDDINGS[name]].shape[1], dtype=np.float32)
    change(run, lambda model: model.target_embedding.embeddings, START_ID, vector)
    version = export_to_hugging_face(run, tmp_path / "out")
    written = read_safetensors(version / "model.safetensors")
    np.testing.assert_array_equal(written[EMBEDDINGS[name]], [*first[EMBEDDINGS[name]], vector])
    vocabulary = "vocab.json" if name == "A" else "target_vocab.json"
    size = len(json.loads((folder / vocabulary).read_text()))
    assert json.loads((version / vocabulary).read_text())["<start>"] == size
    config = json.loads((version / "config.json").read_text())
    assert config["decoder_vocab_size"] == size + 1
    for settings in (config, json.loads((version / "generation_config.json").read_text())):
        assert settings["decoder_start_token_id"] == size
    assert written["final_logits_bias"][0, size] == -1e4  # never written: exp(-1e4) is 0
    again = import_model(version, tmp_path / "again")
    texts = answers(name).texts["sentences"][:8]
    wanted = Translator.load(run).translate(texts, beam_size=1)
    assert Translator.load(again).translate(texts, beam_size=1) == wanted


EMBEDDINGS = {"A": "model.shared.weight", "C": "model.decoder.embed_tokens.weight"}


def change(path, variable, row, values):
    """Replace a row of a variable, as training does."""
    run = Run.open(path)
    model = run.load_model()
    numbers = np.array(variable(model))
    numbers[row] = values
    variable(model).assign(numbers)
    run.save_weights(model)


@pytest.mark.parametrize("name", each(MARIAN))
def test_a_hugging_face_checkpoint_comes_back_bit_equal(imported, tmp_path, name):
    version = export_to_hugging_face(imported(name), tmp_path)
    first = read_safetensors(FIXTURES / name / "model.safetensors")
    first.pop("model.shared.weight" if name == "D" else "", None)  # transformers 5 ignores it
    check_same(read_safetensors(version / "model.safetensors"), first)


def test_the_command_line_says_that_tensors_were_compared(imported, tmp_path, capsys):
    words = ["export", str(imported("A")), "--format", "hugging_face", "--output", str(tmp_path)]
    assert main(words) == 0
    first, _ = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"tensors: (\d+) of \1 were read back bit-identical", first)


@pytest.mark.parametrize("name", "ACHI")
def test_vocabularies_and_settings_come_back(imported, tmp_path, name):
    version = export_to_hugging_face(imported(name), tmp_path)
    for file in ("vocab.json", "target_vocab.json", "generation_config.json"):
        if (FIXTURES / name / file).is_file():
            assert json.loads((version / file).read_text()) == json.loads(
                (FIXTURES / name / file).read_text()
            )
    first = json.loads((FIXTURES / name / "config.json").read_text())
    written = json.loads((version / "config.json").read_text())
    assert {key: written[key] for key in first} == first
    for side in ("source", "target"):
        wanted = (FIXTURES / f"{side}.spm").read_bytes()
        assert (version / f"{side}.spm").read_bytes() == wanted


def halved(name, folder, but=()):
    """Write a checkpoint in float16 except for some tensors; return it and its tensors."""
    path = checkpoint(name, folder)
    tensors = read_safetensors(path / "model.safetensors")
    rounded = {
        tensor: np.array(stored, np.float32 if tensor in but else np.float16)
        for tensor, stored in tensors.items()
    }
    write_safetensors(path / "model.safetensors", rounded)
    edit_json(path / "config.json", dtype="float16")
    return path, rounded


@pytest.mark.parametrize(
    ("name", "but"),
    sampled(
        [("A", ()), ("A", ("final_logits_bias",)), ("M2M", ()), ("NLLB", ())],
        by_day=[("A", ("final_logits_bias",)), ("M2M", ())],
    ),
)
def test_every_tensor_comes_back_in_its_own_precision(tmp_path, name, but):
    folder, tensors = halved(name, tmp_path, but)
    run = import_model(folder, tmp_path / "run", **languages(name))
    version = export_to_hugging_face(run, tmp_path / "out")
    check_same(read_safetensors(version / "model.safetensors"), tensors)
    assert json.loads((version / "config.json").read_text())["dtype"] == "float16"


def test_a_table_of_positions_is_in_the_precision_of_the_embeddings(tmp_path):
    run = import_model(halved("A", tmp_path)[0], tmp_path / "run", positions="marian")
    version = export_to_hugging_face(run, tmp_path / "out")
    kinds = {t.dtype.name for t in read_safetensors(version / "model.safetensors").values()}
    assert kinds == {"float16"}


@pytest.mark.slow
@pytest.mark.parametrize("key", sampled(["dtype", "torch_dtype"], by_day=["torch_dtype"]))
def test_a_half_precision_checkpoint_that_was_trained_comes_back_in_float32(tmp_path, key):
    folder, _ = halved("A", tmp_path)
    edit_json(folder / "config.json", **{"dtype": None, key: "float16"})
    run = import_model(folder, tmp_path / "run")
    change(run, lambda model: model.output_bias, 7, 1 / 3)
    version = export_to_hugging_face(run, tmp_path / "out")
    written = read_safetensors(version / "model.safetensors")
    assert np.sum(written["final_logits_bias"] == np.float32(1 / 3)) == 1
    assert {tensor.dtype.name for tensor in written.values()} == {"float32"}
    config = json.loads((version / "config.json").read_text())
    assert {config.get(name) for name in ("dtype", "torch_dtype")} == {None, "float32"}


def without_bias(folder, dtype="float32"):
    """Remove the output bias from a Marian model; return its options and tensors."""
    options, tensors = marian_files.read(folder / "model.npz")
    del tensors["decoder_ff_logit_out_b"]
    unbiased = {name: np.array(tensor, dtype) for name, tensor in tensors.items()}
    options = {**options, "output-omit-bias": True}
    marian_files.write_npz(folder / "model.npz", options, unbiased)
    return options, unbiased


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_model_of_marian_without_a_bias_goes_back_without_one(marian_model, tmp_path, dtype):
    folder = marian_model("shared")
    options, tensors = without_bias(folder, dtype)
    version = export_to_marian(import_model(folder, tmp_path / "run"), tmp_path / "out")
    for file in ("model.npz", "model.bin"):
        written_options, written = marian_files.read(version / file)
        assert written_options["output-omit-bias"] is True
        assert {key: written_options[key] for key in options} == options
        check_same(written, tensors)


@pytest.mark.slow
def test_a_bias_that_was_trained_goes_to_marian_with_the_option_that_it_counts(
    marian_model, tmp_path
):
    folder = marian_model("shared")
    _, tensors = without_bias(folder)
    run = import_model(folder, tmp_path / "run")
    change(run, lambda model: model.output_bias, 7, 3.0)
    options, written = marian_files.read(export_to_marian(run, tmp_path / "out") / "model.npz")
    assert options["output-omit-bias"] is False
    bias = written.pop("decoder_ff_logit_out_b")
    assert sorted(bias[0])[-2:] == [0, 3]
    check_same(written, tensors)


def test_a_bias_that_marian_does_not_add_is_left_out_with_a_warning(marian_model, tmp_path):
    folder = marian_model("shared")
    options, tensors = marian_files.read(folder / "model.npz")
    options = {**options, "output-omit-bias": True}
    marian_files.write_npz(folder / "model.npz", options, {n: t[:] for n, t in tensors.items()})
    with pytest.warns(UserWarning, match="output-omit-bias is set, so decoder_ff_logit_out_b is"):
        run = Run.open(import_model(folder, tmp_path / "run"))
    np.testing.assert_array_equal(take(run.load_model())[OUTPUT_BIAS][4:], 0)


AS_TRAINED = pytest.mark.filterwarnings(
    "ignore:.*pre-norm models differently from, and worse than, Marian"
)


@AS_TRAINED
def test_a_pre_norm_model_goes_back_with_a_warning(marian_model, tmp_path):
    run = import_model(marian_model("pre"), tmp_path / "run")
    with pytest.warns(UserWarning, match="norm=pre, which marian-decoder computes differently"):
        export_to_marian(run, tmp_path / "out")


@AS_TRAINED
@pytest.mark.filterwarnings("ignore:.*model.norm=pre")
@pytest.mark.parametrize(
    ("name", "positions"),
    [("shared", "auto"), ("separate", "auto"), ("pre", "auto"), ("pre", "marian")],
)
def test_a_marian_model_comes_back_bit_equal(marian_model, tmp_path, name, positions):
    folder = marian_model(name)
    version = export_to_marian(import_model(folder, tmp_path / "run", positions), tmp_path / "out")
    options, first = marian_files.read(folder / "model.npz")
    for file in ("model.npz", "model.bin"):
        written_options, written = marian_files.read(version / file)
        assert {key: written_options[key] for key in options} == options
        check_same(written, first)


@pytest.mark.parametrize(("positions", "factor"), [("marian", 2.5), ("hf", None)])
def test_the_limit_of_a_length_comes_back(marian_model, tmp_path, positions, factor):
    folder = marian_model("shared")
    edit_yaml(folder / "decoder.yml", **{"max-length-factor": 2.5})
    run = import_model(folder, tmp_path / "run", positions)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the other table of positions
        version = export_to_marian(run, tmp_path / "out")
    assert yaml.safe_load((version / "decoder.yml").read_text()).get("max-length-factor") == factor


@pytest.mark.slow
def test_a_marian_model_becomes_one_of_hugging_face_with_a_padding_row(marian_model, tmp_path):
    version = export_to_hugging_face(
        import_model(marian_model("shared"), tmp_path / "run"), tmp_path / "out"
    )
    vocabulary = json.loads((version / "vocab.json").read_text())
    assert vocabulary["<pad>"] == len(vocabulary) - 1
    written = read_safetensors(version / "model.safetensors")
    np.testing.assert_array_equal(written["model.shared.weight"][-1], 0)
    assert "model.encoder.embed_positions.weight" in written  # Marian's own
    again = import_model(version, tmp_path / "again")
    assert (again / "imported.json").is_file()


@pytest.mark.parametrize(("stated", "length"), [(48, 48), (None, 1024)])
def test_a_table_of_positions_is_as_long_as_the_configuration_says(tmp_path, stated, length):
    """Transformers loads only such a table; without a stated length, it uses 1024 positions."""
    folder = checkpoint("A", tmp_path)
    edit_json(folder / "config.json", max_position_embeddings=stated)
    run = import_model(folder, tmp_path / "run", positions="marian")
    version = export_to_hugging_face(run, tmp_path / "out")
    config = json.loads((version / "config.json").read_text())
    tensors = read_safetensors(version / "model.safetensors")
    for stack in ("encoder", "decoder"):
        table = tensors[f"model.{stack}.embed_positions.weight"]
        assert table.shape == (length, config["d_model"])
    assert config["max_position_embeddings"] == length


def test_a_hugging_face_checkpoint_becomes_a_model_of_marian(imported, tmp_path):
    with pytest.warns(UserWarning, match="position_timescale=paper, but Marian always uses t2t"):
        version = export_to_marian(imported("A"), tmp_path)
    options, written = marian_files.read(version / "model.npz")
    stored = read_safetensors(FIXTURES / "A" / "model.safetensors")["model.shared.weight"]
    np.testing.assert_array_equal(written["Wemb"], stored[:-1])
    assert options["dim-vocabs"] == [len(stored) - 1] * 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("B", "4 heads in the encoder and 2 in the decoder, but Marian uses the same"),
        ("F", "dialect.scale_embedding=False, but Marian always uses both"),
        ("H", "begins a translation with a learned vector"),
        ("M2M", "a multilingual model, which the format marian cannot represent; use --"),
    ],
)
@pytest.mark.filterwarnings("ignore:.*position_timescale")
def test_a_model_that_marian_cannot_hold_is_refused(imported, tmp_path, name, message):
    with pytest.raises(ValueError, match=message):
        export_to_marian(imported(name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_norms_of_marian_decoder_go_to_no_other_toolkit(marian_model, tmp_path):
    run = import_model(marian_model("pre"), tmp_path / "run", positions="marian")
    for format, message in (
        ("hugging_face", "norm=marian, which .* do not have; use --format marian"),
        ("ctranslate2", "CTranslate2 computes pre-norm layers as they"),
    ):
        with pytest.raises(ValueError, match=message):
            export_model(run, tmp_path / "out", format)
        assert not (tmp_path / "out").exists()


def test_a_model_whose_sines_and_cosines_take_turns_is_the_same_in_halves():
    settings = {"num_layers": 2, "d_model": 8, "num_heads": 2, "d_ff": 12, "dropout": 0.0}
    model = Transformer(20, 20, **settings, dialect={"output_bias": True}, tie_embeddings="none")
    random = np.random.default_rng(1)
    model.set_weights([random.standard_normal(w.shape) * 0.3 for w in model.get_weights()])
    with_halves = Transformer(
        *(20, 20),
        **settings,
        tie_embeddings="none",
        dialect={"output_bias": True, "position_layout": "halves"},
    )
    put(with_halves, with_sines_first(take(model)))
    inputs = {"source": np.array([[5, 7, 3]]), "target": np.array([[2, 9, 8, 4]])}
    np.testing.assert_allclose(with_halves(inputs), model(inputs), atol=1e-5)
