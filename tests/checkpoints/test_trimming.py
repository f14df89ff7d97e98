"""With a trimmed vocabulary, sentences of kept pieces are translated as before."""

import itertools
import json

import h5py
import numpy as np
import pytest
from support.marian_checkpoints import checkpoint, edit_json, languages
from support.nightly import sampled

from tfformer.checkpoints.hugging_face.weights import SAFETENSORS
from tfformer.checkpoints.import_model import import_model
from tfformer.checkpoints.tensor_files import read_safetensors, write_safetensors
from tfformer.checkpoints.write_checkpoint import write_checkpoint
from tfformer.cli.main import main
from tfformer.data import phrasebook
from tfformer.data.sentencepiece_proto import ModelProto
from tfformer.inference.translator import Translator
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID, PAD_ID

pytestmark = pytest.mark.filterwarnings("ignore:.*max_length 200$")

NAMES = ["A", "C", "M2M", "NLLB"]  # shared and separate unigram vocabularies; BPE, twice
LINES = 12  # of the text, so that some pieces are dropped


def sentences() -> tuple[list[str], list[str]]:
    """Return short sentences and their translations, written with the fixtures' letters."""
    pairs = [(entry.source.lower(), entry.target.lower()) for entry in phrasebook.pairs("train")]
    short = [pair for pair in dict.fromkeys(pairs) if len(pair[0]) < 40]
    return [source for source, _ in short], [target for _, target in short]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text"
    lines = [line for texts in sentences() for line in texts[:LINES]]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def give_pieces(translator: Translator) -> Translator:
    """Make translations the pieces, separated by spaces."""
    tokenizer = translator.tokenizers.target

    def decode(rows):
        ended = (itertools.takewhile(lambda id_: id_ not in (PAD_ID, END_ID), row) for row in rows)
        return [" ".join(tokenizer.pieces(list(row))) for row in ended]

    tokenizer.decode = decode
    return translator


def imported(name, folder, run, text=None) -> Translator:
    trim = None if text is None else str(text)
    path = import_model(folder / name, folder / run, trim=trim, **languages(name))
    return give_pieces(Translator.load(path))


def vocabulary(tokenizer) -> set[str]:
    return set(tokenizer.pieces(range(tokenizer.vocab_size)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [("C", 100), *(pytest.param(name, 1000, marks=pytest.mark.nightly) for name in NAMES)],
)
def test_all_sentences_of_kept_pieces_are_translated_as_before(name, count, tmp_path, text):
    checkpoint(name, tmp_path)
    untrimmed = imported(name, tmp_path, "whole")
    trimmed = imported(name, tmp_path, "trimmed", text)
    kept = [vocabulary(trimmed.tokenizers.source), vocabulary(trimmed.tokenizers.target)]
    assert len(kept[1]) < untrimmed.tokenizers.target.vocab_size
    texts = sentences()[0][: 4 * count]
    cutter = untrimmed.tokenizers.source
    expected = {}
    for text_, translation in zip(texts, untrimmed.translate(texts, beam_size=1), strict=True):
        pieces = cutter.pieces(cutter.encode([text_])[0])
        if kept[0].issuperset(pieces) and kept[1].issuperset(translation.split()):
            expected[text_] = translation
    expected = dict(itertools.islice(expected.items(), count))
    assert len(expected) == count
    assert trimmed.translate([*expected], beam_size=1) == [*expected.values()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"), sampled([("A", 16), ("A", 64), ("NLLB", 64)], by_day=[("A", 16)])
)
def test_beams_are_equal_if_the_dropped_pieces_are_never_likely(name, count, tmp_path, text):
    folder = checkpoint(name, tmp_path)
    trimmed = imported(name, tmp_path, "trimmed", text)
    described = json.loads((tmp_path / "trimmed" / "imported.json").read_text())["target"]
    dropped = set(range(described["size"])) - set(described["rows"])
    tensors = {
        key: np.array(value) for key, value in read_safetensors(folder / SAFETENSORS).items()
    }
    bias = tensors.setdefault("final_logits_bias", np.zeros((1, described["size"]), np.float32))
    bias[0, sorted(dropped)] = -1e4
    write_safetensors(folder / SAFETENSORS, tensors)
    untrimmed = imported(name, tmp_path, "whole")
    kept = vocabulary(trimmed.tokenizers.source)
    cutter = untrimmed.tokenizers.source
    texts = [
        line for line in sentences()[0] if kept.issuperset(cutter.pieces(cutter.encode([line])[0]))
    ][:count]
    assert len(texts) == count
    for n_best, wanted in zip(trimmed.n_best(texts, 4), untrimmed.n_best(texts, 4), strict=True):
        assert [text_ for text_, _ in n_best] == [text_ for text_, _ in wanted]
        scores = [score for _, score in wanted]
        np.testing.assert_allclose([score for _, score in n_best], scores, atol=1e-4)


@pytest.mark.parametrize("name", ["A", "NLLB"])
def test_the_verb_prints_the_sizes(name, tmp_path, text, capsys):
    folder = checkpoint(name, tmp_path)
    words = ["--trim", str(text)]
    if languages(name):
        words += ["--languages", ",".join(languages(name).values())]
    assert main(["import", str(folder), "--run-dir", str(tmp_path / "run"), *words]) == 0
    line = capsys.readouterr().err.splitlines()[-1]
    tokenizer = Run.open(tmp_path / "run").tokenizers.target
    record = json.loads((tmp_path / "run" / "imported.json").read_text())["trimmed"]
    assert record["pieces"][1] == tokenizer.vocab_size
    assert f"to {tokenizer.vocab_size} pieces, " in line
    assert line.endswith(f"{record['coverage']:.2%} of the text is covered")
    with h5py.File(tmp_path / "run" / "best.weights.h5") as file:
        sizes = []
        file.visititems(lambda _, item: sizes.append(getattr(item, "size", 0)))
    assert record["bytes"][1] == 4 * sum(sizes)


def pieces_of_a(folder, text) -> tuple[list[str], set[str]]:
    """Return the tokens of A in the order of their ids, and the dropped tokens."""
    ids = json.loads((checkpoint("A", folder) / "vocab.json").read_text())
    run = Run.open(import_model(folder / "A", folder / "first", trim=str(text)))
    return sorted(ids, key=ids.get), ids.keys() - vocabulary(run.tokenizers.target)


def test_the_rules_keep_their_pieces(tmp_path, text):
    pieces, dropped = pieces_of_a(tmp_path, text)
    cut, start = [number for number, piece in enumerate(pieces) if piece in dropped][:2]
    kept = [number for number, piece in enumerate(pieces) if piece not in dropped][-3:-1]
    words = [[cut], kept, [kept[0], cut], kept[1:]]
    for file in ("config.json", "generation_config.json"):
        edit_json(tmp_path / "A" / file, decoder_start_token_id=start)
    edit_json(tmp_path / "A" / "generation_config.json", bad_words_ids=words)
    run = Run.open(import_model(tmp_path / "A", tmp_path / "run", trim=str(text)))
    rules = run.config.model.dialect.rules
    bad_words = [
        run.tokenizers.target.pieces(word) for word in [*rules.bad_words, [rules.start_token]]
    ]
    assert bad_words == [[pieces[row] for row in word] for word in (kept, kept[1:], [start])]


def test_a_shared_vocabulary_is_cut_once(tmp_path, text):
    """A piece that is a special piece in one SentencePiece model is kept in both."""
    unused = min(pieces_of_a(tmp_path, text)[1])
    path = tmp_path / "A" / "source.spm"
    model = ModelProto.FromString(path.read_bytes())
    for piece in model.pieces:
        if piece.piece == unused:
            piece.type = 5  # UNUSED
    path.write_bytes(model.SerializeToString())
    run = import_model(tmp_path / "A", tmp_path / "run", trim=str(text))
    record = json.loads((run / "imported.json").read_text())
    assert record["source"]["rows"] == record["target"]["rows"]
    assert unused in vocabulary(Run.open(run).tokenizers.target)


def test_only_the_two_languages_remain(tmp_path, text):
    run = import_model(
        checkpoint("M2M", tmp_path), tmp_path / "run", trim=str(text), **languages("M2M")
    )
    assert Run.open(run).with_languages("de", "en").languages == ["de", "en"]
    with pytest.raises(ValueError, match="the model has en, de"):
        Run.open(run).with_languages("fr", "en")


def test_a_text_of_another_alphabet_and_an_empty_text_are_refused(tmp_path):
    folder = checkpoint("A", tmp_path)
    greek = tmp_path / "greek"
    greek.write_text("\u03b1\u03b2\u03b3 \u03b4\u03b5\u03b6\n")
    with pytest.raises(ValueError, match=r"contains \d+\.\d% of the pieces of .*needs 98%"):
        import_model(folder, tmp_path / "run", trim=str(greek))
    greek.write_text("\n")
    with pytest.raises(ValueError, match="contains no text"):
        import_model(folder, tmp_path / "run", trim=str(greek))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("format", ["hugging_face", "marian"])
def test_no_other_toolkit_gets_a_trimmed_vocabulary(tmp_path, text, format):
    run = import_model(checkpoint("A", tmp_path), tmp_path / "run", trim=str(text))
    with pytest.raises(ValueError, match="trimmed vocabulary"):
        write_checkpoint(run, tmp_path / "out", format)
