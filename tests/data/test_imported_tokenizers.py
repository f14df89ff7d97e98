"""Compare the look-up of pieces with one written here, and with transformers' answers."""

import json
import random

import pytest
import sentencepiece
import tensorflow as tf
from support.marian_checkpoints import FIXTURES, answers
from support.segmentations import log_probability, stretched

from tfformer.data.imported_tokenizers import PieceTokenizer, load_tokenizer
from tfformer.data.tokenizers import Tokenizer

MODEL = (FIXTURES / "source.spm").read_bytes()
SPECIAL = ["<pad>", "<unk>", "<start>", "</s>"]
TEXTS = [
    *("we see a dog.", "  two   blanks  ", "", "猫猫 a", "日本 a", "ab\tc", "Große Wörter"),
    *(">>fra<< we see", ">>fra<<", " >>fra<< a", ">>fra<<>>deu<< a", "a >>fra<<"),
]


def listed(**changed):
    """Write a file of pieces as a tokenizer does, with some values changed."""
    return json.dumps({"pieces": [*SPECIAL, "a"], "prefix": None, "rewrites": []} | changed)


def own_pieces():
    processor = sentencepiece.SentencePieceProcessor(model_proto=MODEL)
    return [processor.id_to_piece(number) for number in range(2, processor.get_piece_size())]


@pytest.fixture(scope="module")
def tokenizer():
    """A tokenizer with codes that lacks three of its model's pieces.

    It also has a character that SentencePiece does not know.
    """
    kept = [piece for piece in own_pieces() if piece not in ("a", "▁w", "e")]
    return PieceTokenizer(MODEL, [*SPECIAL, "猫猫", *kept, ">>fra<<", ">>deu<<"])


def test_ids_are_those_of_the_pieces_as_strings(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=MODEL)
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    ids = {piece: number for number, piece in enumerate(pieces)}
    for text in ("we see a dog.", "猫猫 a", "Große"):
        wanted = [ids.get(piece, 1) for piece in processor.encode(text, out_type=str)]
        assert tokenizer.encode([text]) == [wanted]


def test_an_unknown_character_keeps_its_letters_for_the_look_up(tokenizer):
    assert 4 in tokenizer.encode(["猫猫"])[0]
    assert 4 not in tokenizer.encode(["日本"])[0]


def test_a_code_is_one_piece_at_the_beginning_only(tokenizer):
    with_code, without = tokenizer.encode([">>fra<< see", " see"])
    assert tokenizer.pieces(with_code[:1]) == [">>fra<<"]
    assert with_code[1:] == without
    assert tokenizer.encode([" >>fra<<"])[0][0] != with_code[0]


def test_a_vocabulary_without_codes_reads_one_as_text():
    plain = PieceTokenizer(MODEL, [*SPECIAL, *own_pieces()])
    assert plain.codes == ()
    assert len(plain.encode([">>fra<<"])[0]) > 1


def test_an_unknown_code_is_refused_with_the_known_ones(tokenizer):
    with pytest.raises(
        ValueError, match="no target language >>xxx<<; the known codes are >>fra<<, >>deu<<"
    ):
        tokenizer.encode([">>xxx<< a"])


@pytest.mark.usefixtures("tensorflow_text")
def test_the_graph_gives_the_ids_of_python(tokenizer):
    assert tokenizer.tokenize(tf.constant(TEXTS)).to_list() == tokenizer.encode(TEXTS)


@pytest.mark.usefixtures("tensorflow_text")
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_graph_differs_from_python_only_between_equally_likely_cuts(model_type):
    dice = random.Random(11)
    sentences = [" ".join(dice.choices(["abba", "dad", "cab", "bad"], k=4)) for _ in range(200)]
    texts = [stretched(sentence, dice) for sentence in sentences]
    cutter = Tokenizer.train(sentences + texts, 40, model_type)
    tokenizer = PieceTokenizer(cutter.model, cutter.pieces(range(cutter.vocab_size)))
    ids = tokenizer.tokenize(tf.constant(texts)).to_list()
    assert tokenizer.encode(texts) == cutter.encode(texts)
    for in_graph, in_python in zip(ids, tokenizer.encode(texts), strict=True):
        if in_graph != in_python:
            assert model_type == "unigram"
            both = map(tokenizer.pieces, (in_graph, in_python))
            computed, expected = (log_probability(cutter.model, pieces) for pieces in both)
            assert computed == pytest.approx(expected, abs=1e-4)


@pytest.mark.usefixtures("tensorflow_text")
def test_the_graph_gives_the_texts_of_python(tokenizer):
    ids = tokenizer.encode(TEXTS)
    ids[0] += [3, 7, 7]  # nothing behind the end counts
    texts = tokenizer.detokenize(tf.ragged.constant(ids, dtype=tf.int32)).numpy()
    assert [text.decode() for text in texts] == tokenizer.decode(ids)


def test_special_pieces_have_no_text(tokenizer):
    assert tokenizer.decode([[0, 2, 1, 4, 3, 5]]) == ["猫猫"]


@pytest.mark.parametrize("name", "AI")
def test_texts_are_those_of_transformers(name):
    """`target_texts` were decoded by transformers 4 with the target's SentencePiece model."""
    wanted = answers(name).texts
    vocabulary = json.loads((FIXTURES / name / "vocab.json").read_text(encoding="utf-8"))
    pieces = sorted(vocabulary, key=vocabulary.get)
    special = ["<pad>", "<unk>", "</s>"]
    ordered = ["<pad>", "<unk>", "<start>", "</s>", *(p for p in pieces if p not in special)]
    tokenizer = PieceTokenizer((FIXTURES / "target.spm").read_bytes(), ordered)

    def our_ids(ids):
        return [ordered.index(pieces[number]) for number in ids]

    assert tokenizer.decode(list(map(our_ids, wanted["greedy"]))) == wanted["target_texts"]


REWRITES = [("[，、]", ","), ("[\x00-\x1f\u200b]", " "), ("  +", " "), ("^ | $", "")]
WRITTEN = {"a，b": "a,b", " a\u200b\t b ": "a b", "\x01": "", "": ""}


@pytest.mark.usefixtures("tensorflow_text")
def test_a_text_is_rewritten_first_in_python_and_in_the_graph():
    plain = PieceTokenizer(MODEL, [*SPECIAL, *own_pieces()])
    rewriting = PieceTokenizer(MODEL, [*SPECIAL, *own_pieces()], rewrites=REWRITES)
    assert rewriting.encode(list(WRITTEN)) == plain.encode(list(WRITTEN.values()))
    assert rewriting.tokenize(tf.constant(list(WRITTEN))).to_list() == rewriting.encode(
        list(WRITTEN)
    )


@pytest.mark.usefixtures("tensorflow_text")
def test_a_prefix_begins_each_sentence_and_has_no_text():
    plain = PieceTokenizer(MODEL, [*SPECIAL, *own_pieces(), "__de__"])
    prefixed = PieceTokenizer(MODEL, [*SPECIAL, *own_pieces(), "__de__"], prefix="__de__")
    texts = ["we see a dog.", "", "thank you"]
    ids = prefixed.encode(texts)
    assert ids == [[prefixed.prefix_id, *row] if row else [] for row in plain.encode(texts)]
    assert prefixed.decode(ids) == plain.decode(plain.encode(texts))
    assert prefixed.tokenize(tf.constant(texts)).to_list() == ids
    decoded = prefixed.detokenize(tf.ragged.constant(ids, dtype=tf.int32)).numpy()
    assert [text.decode() for text in decoded] == prefixed.decode(ids)


def test_a_tokenizer_with_prefix_and_rewrites_is_loaded_as_it_was(tmp_path):
    pieces = [*SPECIAL, *own_pieces(), "__de__"]
    tokenizer = PieceTokenizer(MODEL, pieces, "__de__", rewrites=REWRITES)
    tokenizer.save(tmp_path / "source.model")
    loaded = load_tokenizer(tmp_path / "source.model")
    assert loaded.digest == tokenizer.digest
    assert loaded.encode(list(WRITTEN)) == tokenizer.encode(list(WRITTEN))


def test_the_digest_depends_on_the_pieces(tokenizer):
    assert PieceTokenizer(MODEL, [*SPECIAL, *own_pieces()]).digest != tokenizer.digest


def test_a_model_without_a_list_of_pieces_is_an_ordinary_tokenizer(tmp_path):
    (tmp_path / "source.model").write_bytes(MODEL)
    with pytest.raises(ValueError, match="the padding, unknown, start and end ids"):
        load_tokenizer(tmp_path / "source.model")


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("[", "is not a list of pieces \\(Invalid JSON"),
        ("{}", "is not a list of pieces"),
        ('["a", "b", "c", "d"]', "is not a list of pieces"),
        (listed(pieces=[1, 2, 3, 4]), "is not a list of pieces"),
        (listed(prefix=1), "is not a list of pieces"),
        (listed(rewrites=[["a"]]), "is not a list of pieces"),
        (listed(pieces=["a"]), "must begin with four special pieces"),
        (listed(pieces=["a", "b", "c", "d", "a"]), "must not repeat a piece"),
        (listed(prefix="e"), "lacks the piece 'e'"),
        (listed(rewrites=[["(", ""]]), "'\\(' is not a regular expression"),
    ],
)
def test_a_damaged_list_of_pieces_is_refused(tmp_path, table, message):
    (tmp_path / "source.model").write_bytes(MODEL)
    (tmp_path / "source.pieces.json").write_text(table)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path / "source.model")


def test_a_missing_model_is_named(tmp_path):
    (tmp_path / "source.pieces.json").write_text("[]")
    with pytest.raises(FileNotFoundError, match=r"source\.model: the tokenizer file is missing"):
        load_tokenizer(tmp_path / "source.model")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.encode("text"), "must be a list"),
        (lambda t: t.encode([3]), "sentence 1 is 3"),
        (lambda t: t.encode(["\ud800"]), "not a Unicode"),
        (lambda t: t.decode([[10_000]]), "id 10000 is not in this vocabulary"),
        (lambda t: t.pieces([-1]), "id -1 is not in this vocabulary"),
    ],
)
def test_bad_input_is_named(tokenizer, call, message):
    with pytest.raises(ValueError, match=message):
        call(tokenizer)
