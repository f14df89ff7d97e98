"""Compare the tokenizer with SentencePiece.

The graph returns the same ids, the special ids are exact, and damaged files are refused.
"""

import gzip
import hashlib
import io
import os
import random
import re
import subprocess
import sys
import unicodedata

import keras
import numpy as np
import pytest
import sentencepiece
import tensorflow as tf
from google.protobuf.runtime_version import VersionError
from support.segmentations import log_probability, stretched

from tfformer.data import sentencepiece_proto, tokenizers
from tfformer.data.tokenizers import Tokenizer
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

DICE = random.Random(1)
SYLLABLES = ["the", "dog", "sees", "cat", "hund", "katze", "haus", "hört", "ﬁn", "der", "ｂig"]
SYLLABLES += ["re", "small", "un"]
WORDS = ["the", "dog", "sees", "a", "cat", "der", "Hund", "hört", "eine", "Katze"]
WORDS += ["".join(DICE.choices(SYLLABLES, k=DICE.randint(1, 3))) for _ in range(300)]
SENTENCES = [" ".join(DICE.choices(WORDS, k=DICE.randint(1, 12))) for _ in range(600)]

ODD = [
    "",
    " ",
    "     ",
    "\t",
    "\n",
    "\r",
    "a\tb",
    "a\nb",
    " the dog ",
    "the  dog   sees",
    "the dog 😀 sees 👩‍👩‍👧‍👦",
    "ﬁne ① ½ ﷺ …",
    "ｆｕｌｌ ｗｉｄｔｈ",
    "e\u0301 and u\u0308 and \u0301",
    "zero\u200bwidth\u200d\ufeff",
    "\u200b",
    "\ufeffthe dog",
    "the\u00a0dog\u3000sees\u2028the cat",
    "漢字 unknown Ж",
    "漢漢漢 漢 the漢dog",
    "▁the ▁▁ dog",
    "<s> </s> <unk> <pad>",
    "a\x00b\x01c\x7f",
    "\ufffd \ufffe",
    "İ ı ß ẞ Ǆ \u1100\u1161",
    "thedogseesthecat" * 300,
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request):
    return Tokenizer.train(SENTENCES, 90, request.param)


def reference(tokenizer):
    return sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)


# Training


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
@pytest.mark.parametrize("max_sentences", [10_000, 300])
def test_training_repeats_byte_for_byte(model_type, max_sentences, monkeypatch):
    monkeypatch.setattr(tokenizers, "MAX_SENTENCES", max_sentences)
    first, second = (Tokenizer.train(SENTENCES, 60, model_type) for _ in range(2))
    assert first.model == second.model


def test_training_does_not_depend_on_the_processors():
    code = (
        "from tfformer.data.tokenizers import Tokenizer; "
        f"print(Tokenizer.train({SENTENCES!r}, 60).digest)"
    )
    one_core = {"preexec_fn": lambda: os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})}
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, **one_core
    )
    assert process.stdout.strip() == Tokenizer.train(SENTENCES, 60).digest


def test_a_sample_is_less_than_all_sentences(monkeypatch):
    of_all = Tokenizer.train(SENTENCES, 60)
    monkeypatch.setattr(tokenizers, "MAX_SENTENCES", 300)
    assert Tokenizer.train(SENTENCES, 60).model != of_all.model


def test_the_vocabulary_has_the_size_asked_for_and_the_special_ids(tokenizer):
    assert tokenizer.vocab_size == 90 == len(tokenizer.pieces(range(90)))
    assert tokenizer.pieces([PAD_ID, UNKNOWN_ID, START_ID, END_ID]) == [
        "<pad>",
        "<unk>",
        "<s>",
        "</s>",
    ]
    assert (PAD_ID, UNKNOWN_ID, START_ID, END_ID) == (0, 1, 2, 3)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_too_large_names_the_largest_that_works(model_type):
    with pytest.raises(ValueError, match=r"^vocab_size 9999 is too large .*at most \d+") as error:
        Tokenizer.train(SENTENCES, 9999, model_type)
    assert str(error.value).endswith("or less, or use more text")
    largest = int(re.search(r"at most (\d+);", str(error.value))[1])
    assert Tokenizer.train(SENTENCES, largest, model_type).vocab_size == largest
    with pytest.raises(ValueError, match=f"at most {largest}"):
        Tokenizer.train(SENTENCES, largest + 1, model_type)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_vocabulary_too_small_names_the_smallest_that_works(model_type):
    with pytest.raises(ValueError, match=r"^vocab_size 5 is too small for the") as error:
        Tokenizer.train(SENTENCES, 5, model_type)
    assert str(error.value).endswith("or more, or lower character_coverage")
    smallest = int(re.search(r"at least (\d+);", str(error.value))[1])
    assert Tokenizer.train(SENTENCES, smallest, model_type).vocab_size == smallest


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"text": []}, "there is no text to train a tokenizer on; use sentences that are"),
        ({"text": ["", " "]}, "there is no text to train a tokenizer on; use sentences"),
        ({"vocab_size": "60"}, "vocab_size='60' must be a whole number of at least 1"),
        ({"vocab_size": 60.0}, "vocab_size=60.0 must be a whole number of at least 1"),
        ({"vocab_size": 4}, "vocab_size is 4, but padding, unknown, start and end alone take 4"),
        ({"vocab_size": 200, "byte_fallback": True}, r"vocab_size 200 is too small .* 2\d\d; set"),
        ({"model_type": "wordpiece"}, "model_type='wordpiece' is not known; choose one of"),
        ({"model_type": "bpe", "case_variants": True}, "model_type is 'bpe', but case_variants"),
        ({"character_coverage": 0.5}, "character_coverage is 0.5, but must be between 0.98 and"),
        ({"normalization": "nfc"}, "normalization='nfc' is not known; choose one of 'nmt_nfkc', "),
        ({"symbols": ["a b"]}, "the symbol 'a b' must be a string without spaces other than"),
        ({"symbols": [""]}, "the symbol '' must be a string without spaces"),
        ({"symbols": ["</s>"]}, "the symbol '</s>' must be .* choose another symbol, such as"),
        ({"symbols": ["⟦1⟧", "⟦1⟧"]}, "the symbol '⟦1⟧' is given twice; list each symbol once"),
    ],
)
def test_settings_that_cannot_be_trained_are_refused(settings, message):
    given = {"text": SENTENCES, "vocab_size": 90} | settings
    with pytest.raises(ValueError, match=f"^{message}"):
        Tokenizer.train(given.pop("text"), **given)


def test_an_error_in_the_sentences_comes_out_as_it_is():
    def broken():
        yield "the dog"
        raise FileNotFoundError("train.de: no such file")

    with pytest.raises(FileNotFoundError, match=r"^train.de: no such file$"):
        Tokenizer.train(broken(), 60)
    with pytest.raises(
        ValueError,
        match=r"^sentence 2 contains '\\ud800', which is not a Unicode character; read the text",
    ):
        Tokenizer.train(["the dog", "\ud800"], 60)
    with pytest.raises(ValueError, match=r"^sentence 1 is 7, but must be a str; decode or"):
        Tokenizer.train([7], 60)


def test_any_other_training_error_carries_sentencepieces_words(monkeypatch):
    def fail(**_):
        raise RuntimeError("INTERNAL: out of luck")

    monkeypatch.setattr(sentencepiece.SentencePieceTrainer, "train", fail)
    with pytest.raises(
        ValueError, match=r"^SentencePiece cannot train on these .* reports: INTERNAL: out of luck$"
    ):
        Tokenizer.train(SENTENCES, 60)


# In Python


def test_encode_equals_sentencepiece_and_adds_no_special_ids(tokenizer):
    ids = tokenizer.encode(SENTENCES + ODD)
    assert ids == reference(tokenizer).encode(SENTENCES + ODD)
    assert not {PAD_ID, START_ID, END_ID} & {i for row in ids for i in row}
    assert tokenizer.encode([""]) == [[]]
    assert tokenizer.encode([]) == []


def test_decode_gives_the_sentences_back(tokenizer):
    plain = ["the dog sees a cat", "der Hund hört eine Katze"]
    assert tokenizer.decode(tokenizer.encode(plain)) == plain
    assert tokenizer.decode(np.array(tokenizer.encode(plain[:1]), "int32")) == plain[:1]
    assert tokenizer.decode([[]]) == [""]
    assert tokenizer.decode([]) == []


def test_decode_leaves_special_ids_out_and_ends_at_the_first_end(tokenizer):
    dog, cat = tokenizer.encode(["the dog", "cat"])
    rows = [
        [START_ID, *dog, END_ID, *cat],
        [PAD_ID, *dog, PAD_ID],
        [END_ID, *dog],
        [dog[0], START_ID, *dog[1:]],
    ]
    assert tokenizer.decode(rows) == ["the dog", "the dog", "", "the dog"]


def test_an_unknown_character_is_visible_in_the_decoded_text(tokenizer):
    (ids,) = tokenizer.encode(["the 漢 dog"])
    assert UNKNOWN_ID in ids
    assert tokenizer.decode([ids]) == ["the  ⁇  dog"]


@pytest.mark.parametrize("bad", [-1, 90])
def test_an_id_out_of_range_is_named(tokenizer, bad):
    message = rf"^id {bad} is not in this vocabulary of 90 pieces \(0 to 89\); decode with the "
    with pytest.raises(ValueError, match=message):
        tokenizer.decode([[4, bad]])
    with pytest.raises(ValueError, match=message):
        tokenizer.pieces([bad])


def test_a_text_in_place_of_a_list_of_texts_is_refused(tokenizer):
    for use in (tokenizer.encode, lambda sentences: Tokenizer.train(sentences, vocab_size=8)):
        with pytest.raises(ValueError, match=r"^sentences must be a list, not the string 'the"):
            use("the dog")


def test_encode_refuses_a_sentence_that_is_no_unicode(tokenizer):
    with pytest.raises(
        ValueError,
        match=r"^sentence 2 contains '\\udcff', which is not a Unicode character; read the text",
    ):
        tokenizer.encode(["the dog", "a\udcff"])


# Normalisation


def nfkc(text):
    return unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    ("normalization", "normalised"),
    [
        ("nmt_nfkc", nfkc),
        ("nfkc", nfkc),
        ("nmt_nfkc_cf", lambda text: nfkc(text).casefold()),
        ("nfkc_cf", lambda text: nfkc(text).casefold()),
        ("identity", str),
    ],
)
def test_a_decoded_text_is_the_normalised_one(normalization, normalised):
    sentence = "Der\u00a0Hund … ½"
    tokenizer = Tokenizer.train([sentence, *SENTENCES], 60, normalization=normalization)
    assert tokenizer.decode(tokenizer.encode([sentence])) == [normalised(sentence)]


@pytest.fixture
def model_pb2():
    """SentencePiece's module of its model file, for which TensorFlow 2.19's protobuf is too old."""
    return pytest.importorskip("sentencepiece.sentencepiece_model_pb2", exc_type=VersionError)


def test_the_usual_normalisation_is_sentencepieces(model_pb2):
    settings = {"vocab_size": 60, "pad_id": PAD_ID, "unk_id": UNKNOWN_ID, "bos_id": START_ID}
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=model,
        eos_id=END_ID,
        character_coverage=1.0,
        minloglevel=2,
        **settings,
    )
    normalizer = model_pb2.ModelProto.FromString(model.getvalue()).normalizer_spec
    trained = model_pb2.ModelProto.FromString(Tokenizer.train(SENTENCES, 60).model)
    assert trained.normalizer_spec == normalizer


@pytest.mark.parametrize("name", ["ModelProto", "NormalizerSpec"])
def test_the_declared_fields_are_sentencepieces(name, model_pb2):
    declared = getattr(sentencepiece_proto, name).DESCRIPTOR
    assert_fields_equal(declared, getattr(model_pb2, name).DESCRIPTOR)


def assert_fields_equal(declared, theirs):
    for field in declared.fields:
        reference = theirs.fields_by_name[field.name]
        assert (field.number, field.is_repeated) == (reference.number, reference.is_repeated)
        if field.message_type:
            assert_fields_equal(field.message_type, reference.message_type)
        elif field.default_value:
            assert field.default_value == reference.default_value


def test_fields_that_are_not_declared_are_preserved(model_pb2):
    model = model_pb2.ModelProto.FromString(Tokenizer.train(SENTENCES, 60).model)
    parsed = sentencepiece_proto.ModelProto.FromString(model.SerializeToString())
    for each in (model, parsed):
        each.pieces.add(piece="dog", score=-2.5, type=1)
        each.trainer_spec.vocab_size = 61
    assert model_pb2.ModelProto.FromString(parsed.SerializeToString()) == model


QUOTES = {**dict.fromkeys(map(ord, "‘’‚‛"), "'"), **dict.fromkeys(map(ord, "“”„‟"), '"'), 0xAD: ""}


def test_the_plain_normalisation_is_the_usual_one_of_a_text_with_plain_quotes():
    generator = random.Random(7)
    alphabet = "the dog Hund  \t▁éßﬁ①Ａ漢😀\u200b\u00a0.,'<>/s\x01\u2028ÄöЖ‘’‚‛“”„‟\u00ad～！ｗ½"
    noise = ["".join(generator.choices(alphabet, k=generator.randrange(30))) for _ in range(400)]
    text = SENTENCES[:50] + ODD + noise
    plain = Tokenizer.train(SENTENCES, 90, normalization="nmt_nfkc_plain")
    usual = Tokenizer.train(SENTENCES, 90)
    assert plain.encode(text) == usual.encode([line.translate(QUOTES) for line in text])
    assert plain.is_cut_by_fast_operation


# Symbols and bytes

SYMBOLS = ["⟦1⟧", "⟦2⟧", "①", "<b>"]


def with_symbols(model_type):
    return Tokenizer.train(SENTENCES, 350, model_type, symbols=SYMBOLS, byte_fallback=True)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_a_symbol_is_one_piece_wherever_it_stands(model_type):
    tokenizer = with_symbols(model_type)
    assert tokenizer.symbols == tuple(SYMBOLS)
    (ids,) = tokenizer.encode(["the⟦1⟧dog ①<b>⟦2⟧⟦2⟧"])
    assert [piece for piece in tokenizer.pieces(ids) if piece in SYMBOLS] == [
        "⟦1⟧",
        "①",  # which the normalisation would make "1"
        "<b>",
        "⟦2⟧",
        "⟦2⟧",
    ]
    assert tokenizer.decode([ids]) == ["the⟦1⟧dog ①<b>⟦2⟧⟦2⟧"]


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_with_bytes_every_text_comes_back_normalised(model_type):
    tokenizer = with_symbols(model_type)
    text = ["the 漢字 dog 😀👍🏽", "Ж, ж? 100 € ½", "a\u0301\U0001f469\u200d\U0001f467"]
    ids = tokenizer.encode(text)
    assert not any(UNKNOWN_ID in row for row in ids)
    normalised = [unicodedata.normalize("NFKC", line) for line in text]
    assert tokenizer.decode(ids) == normalised


@pytest.mark.usefixtures("tensorflow_text")
@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_graph_knows_symbols_and_bytes(model_type):
    generator = random.Random(7)
    fragments = [*SYMBOLS, "the", " ", "dog", "漢", "é", "<", "⟦", "😀"]
    noise = ["".join(generator.choices(fragments, k=generator.randrange(12))) for _ in range(400)]
    text = SENTENCES + ODD + noise
    tokenizer = with_symbols(model_type)
    ids = tokenizer.encode(text)
    assert tokenizer.tokenize(tf.constant(text)).to_list() == ids
    texts = tokenizer.detokenize(tf.ragged.constant(ids, dtype=tf.int32)).numpy()
    assert [line.decode() for line in texts] == tokenizer.decode(ids)


@pytest.mark.usefixtures("tensorflow_text")
def test_placeholders_are_cut_by_the_fast_operation_too():
    generator = random.Random(7)
    placeholders = ["⟦1⟧", "⟦2⟧"]
    fragments = [*placeholders, "the", " ", "dog", "é", "⟦", "1", "⟧", "2", "."]
    noise = ["".join(generator.choices(fragments, k=generator.randrange(14))) for _ in range(600)]
    tokenizer = Tokenizer.train([*SENTENCES, "⟦ ⟧ [1] 1 2."], 90, symbols=placeholders)
    assert tokenizer.is_cut_by_fast_operation
    text = [*SENTENCES[:50], *ODD, *noise]
    assert tokenizer.tokenize(tf.constant(text)).to_list() == tokenizer.encode(text)
    models = (90, {"symbols": ["<b>"]}), (350, {"byte_fallback": True}), (90, {"model_type": "bpe"})
    for vocab_size, settings in models:
        assert not Tokenizer.train(SENTENCES, vocab_size, **settings).is_cut_by_fast_operation


# In the graph


@pytest.mark.usefixtures("tensorflow_text")
def test_the_graph_gives_pythons_ids(tokenizer):
    generator = random.Random(7)
    alphabet = "the dog Hund  \t▁éßﬁ①Ａ漢😀\u0301\u200b\u00a0.,'<>/s\x01\u2028ÄöЖ\u1100\u1161"
    noise = ["".join(generator.choices(alphabet, k=generator.randrange(30))) for _ in range(400)]
    text = SENTENCES + ODD + noise
    ids = tokenizer.tokenize(tf.constant(text))
    assert ids.dtype == tf.int32
    assert ids.to_list() == tokenizer.encode(text)


@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_ties_between_segmentations_end_in_the_graph_as_in_python(model_type, tensorflow_text):
    if tensorflow_text.__version__.startswith("2.19."):
        pytest.skip("TensorFlow Text 2.19 aborts the process at batches of over 32,767 pieces")
    dice = random.Random(11)
    stretched_sentences = [stretched(sentence, dice) for sentence in SENTENCES]
    tokenizer = Tokenizer.train(SENTENCES + stretched_sentences, 300, model_type)
    text = [stretched(sentence, dice) for sentence in SENTENCES * 3] + ["p" * n for n in range(50)]
    expected = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model).encode(text)
    if model_type == "unigram":
        assert any(is_tied(tokenizer, sentence) for sentence in text[:50])
    assert tokenizer.tokenize(tf.constant(text)).to_list() == expected


def is_tied(tokenizer, sentence):
    """Return whether the two best segmentations have the same probability."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model)
    cuts = processor.nbest_encode(sentence, nbest_size=2, out_type=str)
    first, second = (log_probability(tokenizer.model, pieces) for pieces in cuts)
    return first == pytest.approx(second, abs=1e-4)


@pytest.mark.usefixtures("tensorflow_text")
@pytest.mark.parametrize(
    "normalization", ["nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity", "nmt_nfkc_plain"]
)
@pytest.mark.parametrize("model_type", ["unigram", "bpe"])
def test_the_graph_normalises_as_python_does(model_type, normalization):
    tokenizer = Tokenizer.train(SENTENCES, 150, model_type, normalization=normalization)
    text = [*SENTENCES[:50], *ODD, "The DOG, sees\u00a0½ cat…", "“it’s a \u00adsoft hy\u00adphen”"]
    assert tokenizer.tokenize(tf.constant(text)).to_list() == tokenizer.encode(text)


@pytest.mark.usefixtures("tensorflow_text")
def test_the_graph_gives_pythons_text(tokenizer):
    ids = tokenizer.encode(SENTENCES[:50] + ODD)
    rows = [[START_ID, *row, END_ID, *row[:3]] for row in ids] + [
        [PAD_ID, *row, PAD_ID, START_ID] for row in ids
    ]
    rows.append([])
    expected = tokenizer.decode(rows)
    ragged = tf.ragged.constant(rows, dtype=tf.int32)
    assert [text.decode() for text in tokenizer.detokenize(ragged).numpy()] == expected
    assert [
        text.decode() for text in tokenizer.detokenize(ragged.to_tensor(PAD_ID)).numpy()
    ] == expected


@pytest.mark.usefixtures("tensorflow_text")
def test_empty_batches_pass_through_the_graph(tokenizer):
    assert tokenizer.tokenize(tf.constant([], tf.string)).to_list() == []
    assert tokenizer.detokenize(tf.zeros([0, 3], tf.int32)).numpy().tolist() == []
    assert tokenizer.detokenize(tf.zeros([2, 0], tf.int32)).numpy().tolist() == [b"", b""]


@pytest.mark.usefixtures("tensorflow_text")
def test_setting_seeds_and_clearing_sessions_leaves_the_graph_alive(tokenizer):
    text = tf.constant(SENTENCES[:5])
    expected = tokenizer.tokenize(text).to_list()
    for destroy in (
        lambda: tf.random.set_seed(1),
        lambda: keras.utils.set_random_seed(2),
        keras.backend.clear_session,
    ):
        destroy()
        assert tokenizer.tokenize(text).to_list() == expected
        assert tokenizer.detokenize(tokenizer.tokenize(text)).shape == [5]


# On disk


def test_save_and_load_keep_every_byte(tokenizer, tmp_path):
    path = tmp_path / "tokenizer.model"
    path.write_bytes(b"an older file")
    tokenizer.save(path)
    loaded = Tokenizer.load(str(path))
    assert path.read_bytes() == tokenizer.model == loaded.model
    assert loaded.digest == tokenizer.digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert loaded.encode(SENTENCES) == tokenizer.encode(SENTENCES)
    assert os.listdir(tmp_path) == ["tokenizer.model"]


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none.model: there is no tokenizer file here"):
        Tokenizer.load(tmp_path / "none.model")


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"the dog sees\n" * 50, gzip.compress(b"the dog", mtime=0), bytes(range(256))],
)
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "foreign.model"
    path.write_bytes(content)
    message = (
        "foreign.model: the tokenizer is not a complete SentencePiece model "
        rf"\({len(content)} bytes\); copy the "
    )
    with pytest.raises(ValueError, match=message):
        Tokenizer.load(path)


def test_every_shorter_part_of_a_model_is_refused(tokenizer):
    pieces_end = tokenizer.model.index(
        b"nmt_nfkc"
    )  # cuts between two pieces all lie before the normalizer
    for end in [
        *range(pieces_end),
        *range(pieces_end, len(tokenizer.model), 5003),
        len(tokenizer.model) - 1,
    ]:
        with pytest.raises(ValueError, match="is not a complete SentencePiece model"):
            Tokenizer(tokenizer.model[:end])


def test_a_model_with_a_damaged_normalizer_is_refused(tokenizer):
    proto = sentencepiece_proto.ModelProto.FromString(tokenizer.model)
    proto.normalizer_spec.precompiled_charsmap = (
        b"\xff\xff\xff\xff" + proto.normalizer_spec.precompiled_charsmap[4:]
    )
    with pytest.raises(ValueError, match="is not a complete SentencePiece model"):
        Tokenizer(proto.SerializeToString())


def test_a_model_with_other_special_ids_is_refused():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES), model_writer=model, vocab_size=60, minloglevel=2
    )
    with pytest.raises(ValueError, match=r"SentencePiece model are \(-1, 0, 1, 2\), but must be"):
        Tokenizer(model.getvalue())
