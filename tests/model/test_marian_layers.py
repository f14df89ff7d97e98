"""Arguments for models of other toolkits: positions, scale, size of the decoder, ties."""

import numpy as np
import tensorflow as tf
from support import numpy_marian

from tfformer.model.positions import positional_encoding
from tfformer.model.transformer import Transformer
from tfformer.special_ids import START_ID

SMALL = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 16, "dropout": 0.0}


def test_the_t2t_timescale_is_that_of_marian():
    encoding = positional_encoding(tf.range(200), 32, "halves", "t2t")
    np.testing.assert_allclose(encoding, numpy_marian.positions(200, 32), atol=2e-5)


def test_one_pair_of_dimensions_has_a_t2t_timescale_too():
    encoding = positional_encoding(tf.range(3), 2, "halves", "t2t")
    np.testing.assert_allclose(encoding[:, 0], np.sin([0, 1, 2]), atol=1e-6)


def test_a_start_of_zeros_is_that_of_a_row_of_zeros_whatever_is_learned():
    """The values of the row do not matter, and the look-up gives it no gradient."""
    model = Transformer(10, 10, **SMALL, dialect={"zero_start": True}, tie_embeddings="none")
    with_row = Transformer(10, 10, **SMALL, tie_embeddings="none")
    weights = model.get_weights()
    with_row.set_weights(weights)
    table = np.array(with_row.target_embedding.embeddings)
    table[START_ID] = 0
    with_row.target_embedding.embeddings.assign(table)
    inputs = {"source": np.array([[5, 7, 3]]), "target": np.array([[START_ID, 9, 8]])}
    with tf.GradientTape() as tape:
        logits = model(inputs)
    np.testing.assert_allclose(logits, with_row(inputs), atol=1e-6)
    np.testing.assert_array_equal(model.target_embedding.table(), table)
    gradient = tf.convert_to_tensor(tape.gradient(logits, model.target_embedding.embeddings.value))
    assert np.abs(gradient[9]).max() > 0
    np.testing.assert_array_equal(gradient[START_ID], 0)


def test_the_decoder_may_have_its_own_heads_and_width():
    model = Transformer(10, 10, **SMALL, dialect={"num_decoder_heads": 4, "decoder_d_ff": 24})
    assert model.encoder.layers[0].self_attention.num_heads == 2
    assert model.decoder.layers[0].self_attention.num_heads == 4
    assert model.decoder.layers[0].cross_attention.num_heads == 4
    assert model.encoder.layers[0].feed_forward.inner.kernel.shape == (8, 16)
    assert model.decoder.layers[0].feed_forward.inner.kernel.shape == (8, 24)


def test_source_and_target_may_be_one_matrix_and_the_output_another():
    model = Transformer(10, 10, **SMALL, tie_embeddings="input")
    assert model.source_embedding is model.target_embedding
    assert model.output_embedding is not model.target_embedding
