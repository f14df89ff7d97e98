"""Compare Marian models with a second implementation in NumPy; refusals name the option."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf
import yaml
from support.marian_checkpoints import FIXTURES, PRE, edit_yaml, write_marian_model
from support.numpy_marian import NumpyMarian

from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.marian import reader as marian
from tfformer.checkpoints.vocabulary import read_vocabulary
from tfformer.inference.graphs import token_log_probs
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID

RECURRENT = {"transformer-decoder-autoreg": "rnn", "dec-cell": "ssru"}
SOURCE, TARGET = [7, 30, 5, 12, 0], [9, 44, 9, 21, 60, 0]  # Marian's ids; 0 ends


def log_probs(run, source, target):
    """Return this package's log-probabilities of Marian's ids."""
    opened = Run.open(run)
    record = json.loads((run / "imported.json").read_text(encoding="utf-8"))
    ids = []
    for side, row in (("source", source), ("target", target)):
        rows = record[side]["rows"]
        ids.append(tf.constant([[rows.index(number) for number in row]]))
    return token_log_probs(opened.load_model(), *ids).numpy()[0]


@pytest.mark.parametrize("name", ["shared", "separate", "target"])
def test_log_probabilities_are_those_of_marian(marian_model, tmp_path, name):
    folder = marian_model(name)
    options, tensors = marian_files.read(folder / "model.npz")
    wanted = NumpyMarian(options, tensors).log_probs(SOURCE, TARGET)
    computed = log_probs(import_model(folder, tmp_path / "run"), SOURCE, TARGET)
    np.testing.assert_allclose(computed, wanted, atol=1e-4)


def test_a_pre_norm_model_is_that_of_the_training_or_by_choice_of_marian_decoder(
    marian_model, tmp_path
):
    folder = marian_model("pre")
    options, tensors = marian_files.read(folder / "model.npz")
    trained, decoded = (
        NumpyMarian(options, tensors, as_decoder).log_probs(SOURCE, TARGET)
        for as_decoder in (False, True)
    )
    assert np.abs(trained - decoded).max() > 0.1
    for positions in ("hf", "auto"):
        with pytest.warns(UserWarning, match="than, Marian in training; .*use --positions marian"):
            run = import_model(folder, tmp_path / positions, positions)
    np.testing.assert_allclose(log_probs(run, SOURCE, TARGET), trained, atol=1e-4)
    run = import_model(folder, tmp_path / "decoded", positions="marian")
    np.testing.assert_allclose(log_probs(run, SOURCE, TARGET), decoded, atol=1e-4)


def test_with_the_table_of_hugging_face_they_are_other_ones(marian_model, tmp_path):
    folder = marian_model("shared")
    options, tensors = marian_files.read(folder / "model.npz")
    wanted = NumpyMarian(options, tensors).log_probs(SOURCE, TARGET)
    run = import_model(folder, tmp_path / "run", positions="hf")
    assert np.abs(log_probs(run, SOURCE, TARGET) - wanted).max() > 0.01
    dialect = Run.open(run).config.model.dialect
    assert (dialect.narrowing, dialect.allow_unknown) == (False, True)
    assert (dialect.max_length_factor, dialect.extra_length) == (1, 50)


def test_a_decoder_as_wide_as_its_encoder_has_no_width_in_its_dialect(tmp_path):
    folder = write_marian_model("shared", tmp_path, **{"transformer-decoder-dim-ffn": 24})
    run = import_model(folder, tmp_path / "run")
    assert Run.open(run).config.model.dialect.decoder_d_ff is None


def test_the_decoding_is_that_of_decoder_yml(marian_model, tmp_path):
    run = Run.open(import_model(marian_model("shared"), tmp_path / "run"))
    decoding = run.config.decoding
    assert (decoding.beam_size, decoding.length_penalty) == (6, 1.0)
    assert run.config.to_dict()["model"]["dialect"] == "marian"
    assert run.config.model.dialect.search() == {
        "length_normalization": "power",
        "narrowing": True,
        "early_stopping": True,
        "allow_unknown": False,
        "max_length_factor": 3,
        "extra_length": 0,
        "rules": {},
    }
    assert run.tokenizers.source.encode(["we see"])[0][-1] != END_ID


def test_the_unknown_token_may_be_taken_if_decoder_yml_says_so(marian_model, tmp_path):
    folder = marian_model("shared")
    edit_yaml(folder / "decoder.yml", **{"allow-unk": True})
    assert marian.read(folder).model.dialect.allow_unknown


@pytest.mark.parametrize(
    ("name", "changed", "message"),
    [
        ("separate", {"vocabs": ["other.spm"] * 2}, "two vocabularies in the folder; add one"),
        ("separate", {"vocabs": ["source.spm"] * 2}, r"names .*target\.spm for neither"),
        ("shared", {"vocabs": ["a.fsv"] * 2}, r"a\.fsv is a factored vocabulary"),
        ("shared", {"models": ["a.npz", "b.npz"]}, "names an ensemble of 2 models"),
        ("shared", {"max-length-factor": 0}, r"decoder\.yml: max-length-factor=0 must be"),
        ("shared", {"normalize": True}, r"decoder\.yml: normalize=True must be a number"),
    ],
)
def test_a_decoder_yml_that_cannot_be_followed_is_refused(
    marian_model, tmp_path, name, changed, message
):
    folder = marian_model(name)
    edit_yaml(folder / "decoder.yml", **changed)
    with pytest.raises(ValueError, match=message):
        import_model(folder, tmp_path / "run")


def test_a_word_penalty_is_left_out_with_a_warning(marian_model, tmp_path):
    folder = marian_model("shared")
    edit_yaml(folder / "decoder.yml", **{"word-penalty": 0.3})
    with pytest.warns(UserWarning, match=r"word-penalty 0\.3 is not supported"):
        import_model(folder, tmp_path / "run")


def test_a_vocabulary_in_yaml_needs_the_sentencepiece_models_beside_it(marian_model, tmp_path):
    folder = marian_model("shared")
    processor_pieces = (FIXTURES / "source.spm").read_bytes()
    pieces = read_vocabulary(FIXTURES / "source.spm")
    (folder / "vocab.yml").write_text(
        "".join(f"{json.dumps(p)}: {n}\n" for n, p in enumerate(pieces))
    )
    edit_yaml(folder / "decoder.yml", vocabs=["vocab.yml"] * 2)
    with pytest.raises(ValueError, match=r"target\.spm is missing, and vocab\.yml alone cannot"):
        import_model(folder, tmp_path / "run")
    (folder / "target.spm").write_bytes(processor_pieces)
    assert import_model(folder, tmp_path / "run").is_dir()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"type": "s2s"}, "option type is 's2s'"),
        ({"transformer-heads": 3}, "dim-emb=16 must be divisible by transformer-heads=3"),
        ({"enc-depth": 3}, "encoder_l3_self_Wq is missing"),
        ({"dec-depth": 0}, "model.npz: dec-depth=0 must be at least 1"),
        ({"transformer-ffn-depth": 3}, "option transformer-ffn-depth is 3"),
        ({"transformer-preprocess": "n"}, "transformer-preprocess, -postprocess"),
        ({"transformer-postprocess-emb": "nd"}, "option transformer-postprocess-emb is 'nd'"),
        ({"transformer-attention-mask": "alibi"}, "option transformer-attention-mask is 'alibi'"),
        ({"transformer-no-projection": True}, "option transformer-no-projection is True"),
        ({"transformer-train-position-embeddings": True}, "position-embeddings is True"),
        ({"transformer-tied-layers": [1, 1]}, "option transformer-tied-layers is"),
        ({"right-left": True}, "option right-left is True"),
        ({"input-types": ["sequence"]}, "option input-types is"),
        ({"lemma-dim-emb": 4}, "option lemma-dim-emb is 4"),
        ({"transformer-ffn-activation": "tanh"}, "option transformer-ffn-activation is 'tanh'"),
        ({"transformer-new": 1}, "option transformer-new is 1, which this package does not"),
        ({"transformer-ffn-activation": "gelu", "version": "v1.9.0 x"}, "Marian before 1.12"),
        ({**PRE, "version": "v1.10.24 x"}, "Marian before 1.10.28, whose self-attention"),
        ({"transformer-decoder-autoreg": "average-attention"}, "is 'average-attention'"),
        ({**RECURRENT, "dec-cell": "gru"}, "is rnn with dec-cell gru"),
        ({**RECURRENT, "transformer-rnn-projection": True}, "dec-cell ssru and .*-projection True"),
        (RECURRENT, "decoder_l1_self_Wk does not fit"),
        ({"dim-vocabs": [71, 72]}, "has 72 tokens, but dim-vocabs"),
        ({"dim-vocabs": 72}, "there must be two sizes"),
        ({"dim-emb": None}, "dim-emb=None must be"),
        ({"tied-embeddings-all": False, "tied-embeddings": True}, "encoder_Wemb is missing|fit"),
    ],
)
def test_options_without_a_layer_here_are_refused_by_name(tmp_path, changed, message):
    folder = write_marian_model("shared", tmp_path)
    options, tensors = marian_files.read(folder / "model.npz")
    marian_files.write_npz(folder / "model.npz", options | changed, tensors)
    with pytest.raises(ValueError, match=message):
        import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["enc-depth", "transformer-heads", "transformer-dim-ffn"])
def test_an_option_that_marian_guesses_must_be_there(tmp_path, name):
    folder = write_marian_model("shared", tmp_path)
    options, tensors = marian_files.read(folder / "model.npz")
    del options[name]
    marian_files.write_npz(folder / "model.npz", options, tensors)
    with pytest.raises(ValueError, match=f"lacks the option {name}"):
        import_model(folder, tmp_path / "run")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.pop("encoder_l1_self_Wk"), "encoder_l1_self_Wk is missing"),
        (lambda t: t.update(extra=t["Wemb"]), "the tensor extra does not fit"),
        (lambda t: t.update(Wemb=t["Wemb"][:-1]), r"Wemb has the shape \(71, 16\)"),
        (lambda t: t.update(Wemb=t["Wemb"] * np.nan), "Wemb contains a value that is not finite"),
        (lambda t: t.update(Wemb=t["Wemb"] + np.float64(1e39)), "is not finite in float32"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path, change, message):
    folder = write_marian_model("shared", tmp_path)
    options, tensors = marian_files.read(folder / "model.npz")
    change(tensors)
    marian_files.write_npz(folder / "model.npz", options, tensors)
    with pytest.raises(ValueError, match=message):
        import_model(folder, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_decoder_yml_leaves_open_is_as_marian_decoder_has_it(marian_model, tmp_path):
    """`marian-decoder --help` states the defaults: --beam-size 12 and --normalize 0."""
    folder = marian_model("shared")
    decoder = yaml.safe_load((folder / "decoder.yml").read_text())
    del decoder["beam-size"], decoder["normalize"]
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))
    decoding = marian.read(folder).decoding
    assert (decoding.beam_size, decoding.length_penalty) == (12, 0.0)


def test_several_ways_to_decode_are_refused(marian_model, tmp_path):
    """Marian's training writes one decoder.yml for each model."""
    folder = marian_model("shared")
    shutil.copy(folder / "decoder.yml", folder / "model.npz.best-bleu.npz.decoder.yml")
    (folder / "decoder.yml").rename(folder / "model.npz.decoder.yml")
    with pytest.raises(ValueError, match=r"has 2 decoder configurations .*copy one to"):
        import_model(folder, tmp_path / "run")


def test_several_models_need_a_decoder_yml_that_names_one(marian_model, tmp_path):
    folder = marian_model("shared")
    (folder / "other.npz").write_bytes((folder / "model.npz").read_bytes())
    (folder / "vocab.spm").write_bytes((folder / "source.spm").read_bytes())
    (folder / "decoder.yml").unlink()
    with pytest.raises(ValueError, match=r"contains 2 models \(model\.npz, other\.npz\)"):
        import_model(folder, tmp_path / "run")
