"""A search with a shortlist against a search whose full logits NumPy masks."""

import numpy as np
import pytest
import tensorflow as tf
from support.untrained_models import VOCAB_SIZE, untrained_transformer

from tfformer.config import DecodingConfig
from tfformer.data.encoding import IdRows, pad
from tfformer.inference.graphs import translate_ids
from tfformer.inference.search import is_used
from tfformer.inference.shortlist import Shortlist
from tfformer.special_ids import END_ID

SPECIAL = {0, 1, 2, 3}
SOURCES = [[5, 3], [4, 6, 7, 3], [8, 8, 9, 10, 11, 12, 3], [], [12, 3], [6, 5, 3]]


def random_table(seed, longest=3):
    random = np.random.default_rng(seed)
    rows = [random.permutation(np.arange(4, VOCAB_SIZE))[: random.integers(longest + 1)]]
    rows += [
        random.permutation(np.arange(4, VOCAB_SIZE))[: random.integers(longest + 1)]
        for _ in range(VOCAB_SIZE - 1)
    ]
    rows[0] = rows[0][:0]
    return IdRows.of(rows)


def allowed(table, source):
    return SPECIAL.union(*(table[number].tolist() for number in source))


@pytest.mark.parametrize("width", [None, 7])
def test_the_candidates_are_the_union_and_each_sentence_has_its_own(width):
    table = random_table(1, longest=2)
    shortlist = Shortlist(table, VOCAB_SIZE)
    signature = [tf.TensorSpec((None, width), tf.int32)]
    candidates = tf.function(lambda source: shortlist.candidates(source, spare=2), signature)
    for sources in (SOURCES[:3], SOURCES[3:]):
        rows = np.zeros((len(sources), 7), np.int32)
        for row, source in zip(rows, sources, strict=True):
            row[: len(source)] = source
        ids, bias = (x.numpy() for x in candidates(rows))
        assert ids[:4].tolist() == [0, 1, 2, 3]
        for source, row in zip(sources, bias, strict=True):
            assert sorted(ids[row == 0]) == sorted(allowed(table, source))
        assert (width is None) == (
            len(ids) == 2 + len(set.union(*(allowed(table, s) for s in sources)))
        )
        assert (bias[:, -2:] == -1e9).all()


@pytest.mark.parametrize(
    ("beam_size", "decoder", "dialect"),
    [(1, "attention", "paper"), (3, "ssru", "paper"), (3, "attention", "marian")],
)
def test_a_search_chooses_among_each_sentence_s_own_candidates(beam_size, decoder, dialect):
    """The other search sees one sentence and all logits; NumPy has masked other candidates."""
    model = untrained_transformer(decoder_kind=decoder, dialect=dialect)
    table = random_table(2)
    shortlist = Shortlist(table, VOCAB_SIZE)
    decoding = DecodingConfig(beam_size=beam_size, length_penalty=0.6)
    ids_of = [tf.TensorSpec((None, None), tf.int32), tf.TensorSpec((VOCAB_SIZE,))]

    @tf.function(input_signature=ids_of)
    def alone(ids, mask):
        return translate_ids(model, ids, 9, decoding, lambda hidden: model.logits(hidden) + mask)

    @tf.function(input_signature=ids_of[:1])
    def together(ids):
        return translate_ids(model, ids, 9, decoding, shortlist=shortlist)

    batched = together(pad(SOURCES))
    for number, source in enumerate(SOURCES):
        if not source:
            assert not batched.ids[number].numpy().any()
            continue
        mask = np.full(VOCAB_SIZE, -1e9, np.float32)
        mask[sorted(allowed(table, source))] = 0
        expected = alone([source], mask)
        used = is_used(expected.scores[0]).numpy()
        assert (is_used(batched.scores[number]).numpy() == used).all()
        length = expected.ids.shape[2]
        ids = batched.ids[number].numpy()
        assert (ids[used, :length] == expected.ids[0].numpy()[used]).all()
        assert not ids[used, length:].any()
        np.testing.assert_allclose(
            batched.scores[number][used], expected.scores[0][used], rtol=1e-5
        )
        assert set(ids[used].ravel().tolist()) <= allowed(table, source) | {END_ID}


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_model_in_half_precision_adds_its_output_bias_in_float32(dtype):
    """The output bias alone decides, because the output embedding is zero."""
    model = untrained_transformer(dialect="marian", tie_embeddings="none", dtype=dtype)
    bias = np.linspace(1, 2, VOCAB_SIZE)
    model.output_embedding.embeddings.assign(np.zeros((VOCAB_SIZE, model.d_model)))
    model.output_bias.assign(bias)
    shortlist = Shortlist(IdRows.of([[], [], [], [4, 7], *[[6]] * 9]), VOCAB_SIZE)
    decoding = DecodingConfig(beam_size=1)
    translated = translate_ids(model, tf.constant([[5, 3]]), 2, decoding, shortlist=shortlist)
    stored = bias.astype(model.output_bias.dtype).astype(np.float32)
    among = stored[[1, 2, 3, 4, 6, 7]]  # padding cannot follow
    assert translated.ids.numpy().tolist() == [[[7, 7]]]
    score = 2 * (stored[7] - np.log(np.exp(among).sum() + np.exp(stored[0])))
    np.testing.assert_allclose(translated.scores.numpy(), [[score]], rtol=1e-5)


@pytest.mark.parametrize("width", [None, 3])
def test_the_pieces_of_a_prefix_are_candidates_of_their_sentence(width):
    """The table allows only pieces 4 and 5 otherwise."""
    model = untrained_transformer()
    shortlist = Shortlist(IdRows.of([[], [], [], [4, 5], *[[]] * 9]), VOCAB_SIZE)
    specs = [tf.TensorSpec((None, width), tf.int32)] * 2

    @tf.function(input_signature=specs)
    def translate(source, prefix):
        decoding = DecodingConfig(beam_size=1)
        return translate_ids(model, source, 9, decoding, shortlist=shortlist, prefix=prefix)

    prefixes = [[11, 7, 0], [12, 0, 0]]
    translated = translate([[5, 6, 3], [8, 3, 0]], prefixes).ids.numpy()[:, 0]
    assert translated[0, :2].tolist() == [11, 7]
    assert translated[1, 0] == 12
    assert set(translated[0, 2:].tolist()) <= SPECIAL | {4, 5, 11, 7}
    assert set(translated[1, 1:].tolist()) <= SPECIAL | {4, 5, 12}
