"""A damaged or contradictory checkpoint is refused with one line, and nothing is written."""

import json
import re
import shutil
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from support.marian_checkpoints import checkpoint, edit_json
from support.pytorch_writer import write_pytorch

from tfformer.checkpoints.foreign_checkpoint import Choices
from tfformer.checkpoints.hugging_face import reader as hugging_face
from tfformer.checkpoints.hugging_face.weights import read_tensors
from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.tensor_files import read_safetensors, write_safetensors
from tfformer.cli.main import main
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import Run

SHARED, HEAD = "model.shared.weight", "lm_head.weight"
POSITIONS = "model.encoder.embed_positions.weight"
LAYER = "model.encoder.layers.0.fc1.weight"


@pytest.fixture
def folder(tmp_path):
    return checkpoint("A", tmp_path)


def change_tensors(folder, **changed):
    """Replace tensors of a checkpoint; None removes a tensor."""
    path = folder / "model.safetensors"
    tensors = {name: np.array(t) for name, t in read_safetensors(path).items()}
    for name, change in changed.items():
        tensors[name] = change(tensors)
    write_safetensors(path, {n: t for n, t in tensors.items() if t is not None})


def refused(folder, message, **options):
    run = folder.parent / "run"
    with pytest.raises(ValueError, match=message):
        import_model(folder, run, **options)
    assert not run.exists()
    assert sorted(path.name for path in folder.parent.iterdir()) == [folder.name]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({LAYER: lambda t: None}, f"the tensor {LAYER} is missing"),
        ({SHARED: lambda t: None}, f"the tensor {SHARED} is missing"),
        ({"model.extra": lambda t: t[SHARED]}, "the tensor model.extra does not fit"),
        ({LAYER: lambda t: t[LAYER].T}, r"fc1.weight has the shape \(32, 16\)"),
        ({SHARED: lambda t: t[SHARED][1:]}, "model.shared.weight has the shape"),
        ({LAYER: lambda t: t[LAYER] * np.inf}, "fc1.weight contains a value that is not finite"),
        ({LAYER: lambda t: t[LAYER] * np.nan}, "fc1.weight contains a value that is not finite"),
        ({HEAD: lambda t: t[SHARED][1:]}, "are tied, but have the shapes"),
        ({POSITIONS: lambda t: t[SHARED]}, "learned positions; use a model with sinusoidal"),
    ],
)
def test_tensors_that_do_not_fit_are_named(folder, changed, message):
    change_tensors(folder, **changed)
    refused(folder, message)


MISFITS = {
    "config.json": [
        ({"model_type": "bart"}, "model_type is 'bart'; only 'marian' and 'm2m_100'"),
        ({"scale_embedding": None}, "has no scale_embedding; copy the file again"),
        ({"d_model": None}, "has no d_model"),
        ({"activation_function": "gelu_new"}, "activation_function is 'gelu_new'; known are"),
        ({"normalize_before": True}, "normalize_before is True, which Marian models"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm is True"),
        ({"static_position_embeddings": False}, "static_position_embeddings is False"),
        ({"encoder_layers": 3}, "model.encoder.layers.2.self_attn.q_proj.weight is missing"),
        ({"encoder_layers": 1}, "does not fit a model with this configuration"),
        ({"encoder_layers": "2"}, "config.json: encoder_layers='2' must be a whole number"),
        ({"encoder_attention_heads": 3}, "must be divisible by encoder_attention_heads=3"),
        ({"decoder_attention_heads": 3}, "must be divisible by decoder_attention_heads=3"),
        ({"d_model": 32}, "has the shape"),
        ({"d_model": 10**6, "encoder_attention_heads": 1}, "has the shape|must divide"),
        ({"vocab_size": 9}, "but vocab_size in config.json is 9"),
        ({"eos_token_id": 3}, "eos_token_id in config.json is 3, but </s> has the id 0"),
        ({"pad_token_id": 3}, "pad_token_id in config.json is 3, but <pad> has the id"),
        ({"share_encoder_decoder_embeddings": False}, "embed_tokens.weight is missing"),
        ({"tie_word_embeddings": False}, "lm_head.weight is missing"),
        ({"tie_word_embeddings": "no"}, "tie_word_embeddings in config.json is 'no', but must be"),
    ],
    "generation_config.json": [
        ({"num_beams": 0}, "generation_config.json: num_beams=0 must be at least 1"),
        ({"length_penalty": "x"}, "generation_config.json: length_penalty='x' must be a number"),
        ({"forced_bos_token_id": 3}, "forced_bos_token_id is set"),
        ({"decoder_start_token_id": 999}, "decoder_start_token_id 999 is not an id"),
        ({"eos_token_id": 5}, "eos_token_id in generation_config.json is 5, but </s> has the id 0"),
        ({"forced_eos_token_id": 5}, "forced_eos_token_id in generation_config.json is 5"),
        ({"pad_token_id": [3]}, r"pad_token_id in generation_config.json is \[3\], but <pad> has"),
        ({"decoder_start_token_id": 5}, "decoder_start_token_id in config.json is 117, but the"),
    ],
    "tokenizer_config.json": [
        ({"model_max_length": 1}, "model_max_length in tokenizer_config.json is 1, but must be a"),
        ({"model_max_length": 51.5}, "is 51.5, but must be a whole number of at least 2"),
        ({"model_max_length": float("inf")}, "is inf, but must be a whole number"),
        ({"model_max_length": "512"}, "is '512', but must be a whole number"),
        ({"separate_vocabs": True}, "separate_vocabs is True, but there is no target_vocab.json"),
    ],
}


@pytest.mark.parametrize(
    ("file", "changed", "message"),
    [(file, *row) for file, rows in MISFITS.items() for row in rows],
)
def test_a_setting_that_does_not_fit_is_named(folder, file, changed, message):
    edit_json(folder / file, **changed)
    refused(folder, message)


def test_shared_embeddings_have_one_vocabulary(folder):
    shutil.copy(folder / "vocab.json", folder / "target_vocab.json")
    refused(folder, "ties the source and target embeddings, but there are two vocabularies")


@pytest.mark.parametrize("length", [10**30, 1e30])
def test_a_tokenizer_without_a_limit_gets_that_of_marian(folder, length):
    edit_json(folder / "tokenizer_config.json", model_max_length=length)
    assert hugging_face.read(folder).max_length == 512


def test_the_tokens_that_newer_tokenizers_list_are_those_of_the_source(tmp_path):
    """MarianTokenizer of Transformers 5.23 writes these files; </s> has the id 17 in the target."""
    folder = checkpoint("C", tmp_path)
    path = folder / "target_vocab.json"
    moved = next(piece for piece, number in json.loads(path.read_text()).items() if number == 17)
    edit_json(path, **{"</s>": 17, moved: 0})
    for file in ("config.json", "generation_config.json"):
        edit_json(folder / file, eos_token_id=17, forced_eos_token_id=17)
    added = {"0": {"content": "</s>"}, "1": {"content": "<unk>"}, "72": {"content": "<pad>"}}
    edit_json(folder / "tokenizer_config.json", added_tokens_decoder=added)
    hugging_face.read(folder)


LEFT_OUT = {  # settings that change a translation, which the search of this package does not have
    "a_setting_of_another_version": "x",
    "encoder_no_repeat_ngram_size": 3,
    "encoder_repetition_penalty": 1.1,
    "max_new_tokens": 20,
    "sequence_bias": [[[5], -10.0]],
    "watermarking_config": {"bias": 2.5},
}


def test_one_warning_names_all_settings_that_are_left_out(folder):
    harmless = {"repetition_penalty": 1.0, "top_k": 50, "temperature": 0.7, "stop_strings": []}
    edit_json(folder / "generation_config.json", **harmless, **LEFT_OUT)
    named = ", ".join(f"{name} {value!r}" for name, value in LEFT_OUT.items())
    with pytest.warns(UserWarning, match=f": {re.escape(named)}$") as warned:
        hugging_face.read(folder)
    assert sum("are ignored" in str(warning.message) for warning in warned) == 1


@given(st.data())
@settings(max_examples=20)
def test_swapped_ids_are_refused_for_special_tokens_and_taken_for_others(data):
    """Only the vocabulary defines ordinary pieces' ids. config.json repeats the special ids."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = checkpoint("A", Path(temporary))
        path = folder / "vocab.json"
        ids = json.loads(path.read_text(encoding="utf-8"))
        pair = st.lists(st.sampled_from(sorted(ids)), min_size=2, max_size=2, unique=True)
        first, second = data.draw(pair)
        path.write_text(json.dumps(ids | {first: ids[second], second: ids[first]}))
        if {first, second} & {"</s>", "<pad>"}:
            with pytest.raises(ValueError, match="in the other files; correct one of them"):
                hugging_face.read(folder)
            return
        pieces = hugging_face.read(folder).source.pieces
        assert (pieces[ids[second]], pieces[ids[first]]) == (first, second)


def test_a_beam_that_never_stops_early_is_left_out_with_a_warning(folder):
    edit_json(folder / "generation_config.json", early_stopping="never")
    with pytest.warns(UserWarning, match=r"config\.json: .*: early_stopping 'never'$"):
        dialect = hugging_face.read(folder).model.dialect
    assert not dialect.early_stopping


@pytest.mark.parametrize(
    "setting", [{"bad_words_ids": [[10**6]]}, {"bad_words_ids": 3}, {"suppress_tokens": [4]}]
)
def test_tokens_that_may_not_come_are_left_out_with_a_warning(folder, setting):
    edit_json(folder / "generation_config.json", **setting)
    with pytest.warns(UserWarning, match=f"are ignored.*: {next(iter(setting))} "):
        dialect = hugging_face.read(folder).model.dialect
    assert dialect.allow_unknown


def test_the_unknown_token_may_be_forbidden(folder):
    unknown = json.loads((folder / "vocab.json").read_text(encoding="utf-8"))["<unk>"]
    edit_json(folder / "generation_config.json", bad_words_ids=[[117], [unknown]])
    assert not hugging_face.read(folder).model.dialect.allow_unknown


def test_a_shared_table_that_nothing_uses_is_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match=r"model\.shared\.weight is ignored"):
        hugging_face.read(checkpoint("D", tmp_path))


@pytest.mark.parametrize("timescale", ["paper", "t2t"])
def test_a_table_of_positions_may_be_rounded_to_bfloat16(folder, timescale):
    steps = np.arange(8) / (8 if timescale == "paper" else 7)
    angles = np.arange(512)[:, None] / 10_000**steps
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    rounded = tf.cast(tf.cast(table, tf.bfloat16), tf.float32).numpy()
    change_tensors(folder, **{POSITIONS: lambda t: rounded})
    assert hugging_face.read(folder).model.dialect.position_timescale == timescale


@pytest.mark.parametrize("name", ["</s>", "<unk>", "<pad>"])
def test_a_vocabulary_needs_its_special_tokens(folder, name):
    path = folder / "vocab.json"
    values = json.loads(path.read_text())
    values[f"{name}?"] = values.pop(name)
    path.write_text(json.dumps(values))
    refused(folder, f"has no {name}")


@pytest.mark.parametrize(
    "name", ["model.safetensors", "vocab.json", "source.spm", "target.spm", "config.json"]
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    what = "no model that can be imported" if name == "config.json" else name
    refused(folder, what)


def test_tied_tensors_that_differ_give_the_shared_one_and_a_warning(folder):
    change_tensors(
        folder,
        **{
            HEAD: lambda t: t[SHARED] + 0.25,
            "model.decoder.embed_tokens.weight": lambda t: t[SHARED],
        },
    )
    message = r"model\.shared\.weight and lm_head\.weight are tied, but differ by up to 0\.25"
    with pytest.warns(UserWarning, match=message):
        run = import_model(folder, folder.parent / "run")
    model = Run.open(run).load_model()
    assert model.output_embedding is model.source_embedding


def test_embeddings_that_differ_are_not_shared_without_the_shared_one(folder):
    change_tensors(
        folder,
        **{
            "model.encoder.embed_tokens.weight": lambda t: t[SHARED] + 1,
            "model.decoder.embed_tokens.weight": lambda t: t[SHARED],
            SHARED: lambda t: None,
        },
    )
    refused(folder, "are tied in config.json but differ, and model.shared.weight is missing")


@pytest.mark.parametrize("name", ["source.spm", "target.spm"])
def test_a_damaged_sentencepiece_model_is_named(folder, name):
    (folder / name).write_bytes((folder / name).read_bytes()[:-40])
    refused(folder, f"{name} is not a complete SentencePiece model")


def test_a_sentencepiece_model_of_other_pieces_is_refused(folder):
    """Every piece of a text would become the unknown token."""
    stranger = Tokenizer.train(["ПРИВЕТ ДОМ", "КОШКА И ДОМ"] * 20, 18)
    stranger.save(folder / "source.spm")
    refused(folder, r"source.spm has \d+ pieces, but the vocabulary lacks \d+ of them, so they")


def test_tied_tensors_that_are_equal_give_no_warning(folder, recwarn):
    change_tensors(folder, **{HEAD: lambda t: t[SHARED]})
    hugging_face.read(folder)
    assert [w for w in recwarn if issubclass(w.category, UserWarning)] == []


def test_without_a_generation_config_the_keys_of_config_json_count(folder):
    (folder / "generation_config.json").unlink()
    edit_json(folder / "config.json", num_beams=3, length_penalty=0.5)
    decoding = hugging_face.read(folder).decoding
    assert (decoding.beam_size, decoding.length_penalty) == (3, 0.5)


def test_beside_a_generation_config_the_keys_of_config_json_do_not_count(folder):
    """Transformers 5.23 behaves so; its defaults are one beam and a length penalty of 1."""
    edit_json(folder / "config.json", num_beams=6, length_penalty=0.5)
    edit_json(folder / "generation_config.json", num_beams=None)
    decoding = hugging_face.read(folder).decoding
    assert (decoding.beam_size, decoding.length_penalty) == (1, 1.0)


def test_a_setting_of_the_search_that_is_null_is_unset(folder):
    path = folder / "generation_config.json"
    null = dict.fromkeys(("num_beams", "length_penalty", "decoder_start_token_id"))
    path.write_text(json.dumps(json.loads(path.read_text()) | null))
    decoding = hugging_face.read(folder).decoding
    assert (decoding.beam_size, decoding.length_penalty) == (1, 1.0)


@pytest.mark.parametrize(("positions", "timescale"), [("hf", "paper"), ("marian", "t2t")])
def test_the_table_of_positions_may_be_chosen(folder, positions, timescale):
    model = hugging_face.read(folder, Choices(positions)).model
    assert model.dialect.position_timescale == timescale
    assert model.dialect.epsilon == {"hf": 1e-5, "marian": 1e-6}[positions]


def test_a_table_in_the_file_decides(folder):
    from support.numpy_marian import positions

    table = positions(40, 16).astype(np.float32)
    change_tensors(folder, **{POSITIONS: lambda t: table})
    model = hugging_face.read(folder).model
    assert model.dialect.position_timescale == "t2t"


def test_shards_of_torch_give_the_same_tensors(folder):
    tensors = read_safetensors(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    names = sorted(tensors)
    shards = {"one.bin": names[::2], "two.bin": names[1::2]}
    for shard, kept in shards.items():
        write_pytorch(folder / shard, {name: tensors[name] for name in kept})
    weight_map = {name: shard for shard, kept in shards.items() for name in kept}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": weight_map}))
    read = read_tensors(folder)
    assert read.keys() == tensors.keys()
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(read[name], tensor)


def test_a_run_is_never_overwritten(folder, tmp_path):
    run = import_model(folder, tmp_path / "run")
    for output in (run, run / "config.json"):
        with pytest.raises(FileExistsError, match="is not an empty folder; choose another"):
            import_model(folder, output)


@pytest.mark.parametrize("is_zip", [False, True])
def test_a_run_may_fill_the_working_directory(folder, tmp_path, monkeypatch, is_zip):
    """It is not replaced, because no program can replace a mount point."""
    if is_zip:
        folder = Path(shutil.make_archive(str(tmp_path / "model"), "zip", folder))
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.chdir(run)
    before = run.stat().st_ino
    import_model(folder, ".")
    assert run.stat().st_ino == before
    assert list(run.glob(".*")) == []
    Run.open(run).check_weights()


def test_an_address_is_no_place_for_a_run(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    with pytest.raises(ValueError, match="s3://bucket/run is an address, not a path; write"):
        import_model(folder, "s3://bucket/run")
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("is_dangling", [False, True])
def test_a_link_is_no_place_for_a_run(folder, tmp_path, is_dangling):
    if not is_dangling:
        (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with pytest.raises(FileExistsError, match="link is a link; pass the folder itself"):
        import_model(folder, tmp_path / "link")


@pytest.mark.parametrize("name", ["model.npz", "pytorch_model.bin", "model.safetensors"])
def test_one_file_of_a_checkpoint_is_not_enough(tmp_path, name):
    """NumPy's and PyTorch's files are zips too."""
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("data", b"")
    with pytest.raises(ValueError, match=f"{name} is one file of a checkpoint; pass its folder"):
        import_model(tmp_path / name, tmp_path / "run")


def test_an_unknown_table_of_positions_is_refused(folder, tmp_path):
    with pytest.raises(ValueError, match="positions='both' is not known; choose one of 'auto'"):
        import_model(folder, tmp_path / "run", positions="both")


def test_the_command_line_imports(folder, tmp_path, capsys):
    run = tmp_path / "new" / "run"
    assert main(["import", str(folder), "--run-dir", str(run)]) == 0
    captured = capsys.readouterr()
    assert captured.out == f"{run}\n"
    assert captured.err.startswith("hugging_face, ")
    assert "licence: not stated" in captured.err
    record = json.loads((run / "imported.json").read_text())
    assert record["origin"] == "A"
    assert record["licence"].startswith("not stated")
    assert record["files"].keys() == {path.name for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("models--Helsinki-NLP--opus-mt-en-de/snapshots/0a1b", "Helsinki-NLP/opus-mt-en-de@0a1b"),
        ("models--aren/snapshots/0a1b", "aren@0a1b"),
        ("mine/snapshots/0a1b", "0a1b"),
    ],
)
def test_the_origin_is_the_name_of_the_model(folder, tmp_path, path, origin):
    """In a cache of huggingface_hub, the folder has the name of a commit."""
    shutil.copytree(folder, tmp_path / path)
    run = import_model(tmp_path / path, tmp_path / "run")
    assert json.loads((run / "imported.json").read_text())["origin"] == origin
