"""The model: layers, parameters, masks, cached decoding and Keras' methods."""

import warnings

import keras
import numpy as np
import pytest
import tensorflow as tf
from support.nightly import sampled
from support.numpy_layers import randomized, smoothed_cross_entropy

import tfformer
from tfformer.explain.attention_maps import attention_weights
from tfformer.inference.beam_search import beam_search
from tfformer.inference.search import is_used
from tfformer.model.masks import look_ahead_mask
from tfformer.model.simcut import divergence
from tfformer.model.transformer import Transformer
from tfformer.special_ids import START_ID

SOURCE = np.array([[5, 9, 4, 7, 3], [8, 3, 0, 0, 0], [6, 6, 10, 3, 0]], np.int32)
TARGET = np.array([[2, 7, 12, 5, 5, 9], [2, 4, 0, 0, 0, 0], [2, 11, 6, 8, 4, 0]], np.int32)
INPUTS = {"source": SOURCE, "target": TARGET}
each_norm = pytest.mark.parametrize("norm", ["post", "pre", "marian"])


def small(tie="output", seed=1, **changes):
    """A model for 13 tokens with random weights, so that no bias is zero and no scale is one."""
    settings = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}
    settings["tie_embeddings"] = tie
    return randomized(Transformer(13, 13, **(settings | changes)), seed, scale=0.25)


def sizes(d_model, num_layers, vocab_size, d_ff):
    """Count the paper's weights: kernels and biases, two numbers per norm, and one embedding."""
    attention = 4 * (d_model * d_model + d_model)
    feed_forward = d_model * d_ff + d_ff + d_ff * d_model + d_model
    norm = 2 * d_model
    encoder_layer = attention + feed_forward + 2 * norm
    decoder_layer = 2 * attention + feed_forward + 3 * norm
    return num_layers * (encoder_layer + decoder_layer) + vocab_size * d_model


# Composition and size


@pytest.mark.parametrize(
    ("tie", "norm", "output_bias"),
    [("none", "post", True), ("output", "pre", False), ("all", "marian", True)],
)
def test_logits_are_embeddings_positions_layers_and_the_transposed_embedding(
    tie, norm, output_bias
):
    """NumPy computes everything around the layers, which have separate tests."""
    model = small(
        tie,
        norm=norm,
        dialect={"output_bias": output_bias, "position_layout": "halves"},
        dropout=0.3,
        num_layers=2,
    )
    assert len(model.encoder.layers) == len(model.decoder.layers) == 2

    def enter(embedding, ids):
        angles = np.arange(ids.shape[1])[:, np.newaxis] / 10000 ** (np.arange(8) / 8)
        return np.asarray(embedding.embeddings)[ids] * 4 + np.concatenate(
            [np.sin(angles), np.cos(angles)], axis=1
        )

    def leave(stack, x):
        if norm == "post":
            return x
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
        return x * stack.normalization.gamma.numpy() + stack.normalization.beta.numpy()

    mask = tf.constant(SOURCE != 0)[:, tf.newaxis, tf.newaxis]
    x = tf.cast(enter(model.source_embedding, SOURCE), tf.float32)
    for layer in model.encoder.layers:
        x = layer(x, mask)
    memory = leave(model.encoder, x.numpy())
    x = tf.cast(enter(model.target_embedding, TARGET), tf.float32)
    for layer in model.decoder.layers:
        x = layer(x, tf.constant(memory), look_ahead_mask(6), mask)
    expected = leave(model.decoder, x.numpy()) @ np.asarray(model.output_embedding.embeddings).T
    if output_bias:
        assert model.output_bias.shape == (13,)
        expected = expected + model.output_bias.numpy()
    logits = model(INPUTS)
    assert logits.shape == (3, 6, 13)
    np.testing.assert_allclose(logits, expected, rtol=1e-3, atol=1e-3)


def test_options_add_and_remove_the_parameters_they_name():
    base = small().count_params()
    assert base == sizes(16, 1, 13, 24) + 13 * 16  # "output" has two embeddings
    assert small("none").count_params() == base + 13 * 16
    assert small("all").count_params() == base - 13 * 16
    assert small(dialect={"output_bias": True}).count_params() == base + 13
    assert small(norm="pre").count_params() == base + 2 * 2 * 16  # a normalisation after each stack
    assert small(use_bias=False).count_params() == base - (1 + 2) * 4 * 16
    one_decoder_layer = 2 * 4 * (16 * 16 + 16) + (16 * 24 + 24 + 24 * 16 + 16) + 3 * 2 * 16
    assert small(num_decoder_layers=3).count_params() == base + 2 * one_decoder_layer


# Ties


@pytest.mark.parametrize("tie", ["none", "output", "all"])
def test_each_embedding_learns_from_every_end_it_serves(tie):
    """A matrix that serves the output gets a gradient in every row.

    A matrix that only embeds ids gets one in the rows of these ids.
    """
    model = small(tie)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.log_softmax(model(INPUTS))[..., 5])
    embeddings = [model.source_embedding, model.target_embedding, model.output_embedding]
    gradients = tape.gradient(loss, [layer.embeddings.value for layer in embeddings])
    source, target, output = (
        set(np.flatnonzero(np.abs(tf.convert_to_tensor(g)).max(axis=1) > 0)) for g in gradients
    )
    everything = set(range(13))
    seen = set(SOURCE.ravel()) - {0}  # padding is never attended to
    assert output == everything
    assert source == (everything if tie == "all" else seen)
    assert target == (set(TARGET.ravel()) if tie == "none" else everything)


# SimCut


@pytest.mark.parametrize(
    "changes", [{}, {"decoder_kind": "ssru"}, {"dtype": "mixed_bfloat16"}, {"norm": "pre"}]
)
def test_simcut_computes_the_rows_and_the_rows_with_vectors_of_0_at_the_cuts(changes):
    """The id 12 of a model without ties gets a vector of 0; it replaces the ids that are cut."""
    model = small("none", **changes)
    for embedding in (model.source_embedding, model.target_embedding):
        embedding.embeddings.assign(np.array(embedding.embeddings) * (np.arange(13) != 12)[:, None])
    inputs = {"source": SOURCE, "target": np.where(TARGET == 12, 1, TARGET)}
    dice = np.random.default_rng(5)
    kept = {f"{side}_kept": dice.integers(0, 2, ids.shape) for side, ids in inputs.items()}
    cut = {
        side: np.where((ids != 0) & (kept[f"{side}_kept"] == 0), 12, ids)
        for side, ids in inputs.items()
    }
    assert all((cut[side] != inputs[side]).any() for side in cut)
    logits = model(inputs | kept, training=True)
    assert logits.shape == (2, 3, 6, 13)
    tolerance = 0.05 if "dtype" in changes else 1e-5
    real = inputs["target"] != 0
    for found, ids in zip(logits, (inputs, cut), strict=True):
        np.testing.assert_allclose(
            tf.cast(found, tf.float32)[real],
            tf.cast(model(ids), tf.float32)[real],
            atol=tolerance,
        )


@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_without_cuts_and_dropout_both_passes_agree(dropout):
    kept = {"source_kept": np.ones_like(SOURCE), "target_kept": np.ones_like(TARGET)}
    first, second = small(dropout=dropout)(INPUTS | kept, training=True)
    nats = divergence(first, second).numpy()[TARGET != 0]
    assert (np.abs(nats) < 1e-6).all() if dropout == 0 else (nats > 1e-3).all()


# Guided alignment

LINKS = np.array([[2, 1, 0, 3, 1, 0], [1, 2, 0, 0, 0, 0], [0, 1, 0, 4, 0, 0]], np.int32)


def guided_loss(model):
    """The mean over target tokens of -log of the first head's weight, by NumPy."""
    *_, weights = attention_weights(model, tf.constant(SOURCE), tf.constant(TARGET))
    head = np.array(weights, np.float64)[:, -2:][:, 0, 0]  # (B, T, S), the penultimate layer
    rows, positions = np.nonzero(LINKS)
    nats = -np.log(head[rows, positions, LINKS[rows, positions] - 1])
    return 0.7 * nats.sum() / np.count_nonzero(TARGET)


@pytest.mark.parametrize(
    "changes", [{}, {"decoder_kind": "ssru"}, {"num_layers": 3, "norm": "pre"}]
)
def test_the_loss_of_guided_alignment_is_that_of_numpy(changes):
    model = small(**changes)
    model.guided_alignment = 0.7
    logits = model(INPUTS | {"links": LINKS}, training=True)
    [loss] = model.losses
    assert float(loss) == pytest.approx(guided_loss(model), rel=1e-4)
    np.testing.assert_allclose(logits, model(INPUTS), atol=1e-5)
    assert model.losses == []


def test_the_gradient_of_guided_alignment_is_the_slope():
    model = small()
    model.guided_alignment = 0.7
    for layer in (model.decoder.layers[0].cross_attention, model.encoder.layers[0].feed_forward):
        matrix = layer.weights[0]
        with tf.GradientTape() as tape:
            model(INPUTS | {"links": LINKS}, training=True)
            loss = tf.add_n(model.losses)
        gradient = tape.gradient(loss, matrix.value)
        step = np.zeros(matrix.shape, np.float32)
        step[1, 2] = 1e-2
        before = np.array(matrix)
        slopes = []
        for sign in (1, -1):
            matrix.assign(before + sign * step)
            slopes.append(guided_loss(model))
        matrix.assign(before)
        assert (slopes[0] - slopes[1]) / 2e-2 == pytest.approx(float(gradient[1, 2]), rel=0.05)


# What may influence what


@each_norm
def test_changing_a_target_token_never_changes_the_logits_before_it_and_does_after(norm):
    model = small(norm=norm)
    before = model(INPUTS)
    for position in (1, 3, 5):
        changed = TARGET.copy()
        changed[:, position] = (changed[:, position] + 1) % 13
        after = model({"source": SOURCE, "target": changed})
        np.testing.assert_array_equal(after[:, :position], before[:, :position])
        assert (np.abs(after[:, position:] - before[:, position:]).max(axis=-1) > 1e-3).all()


@each_norm
def test_what_stands_on_padding_in_the_memory_changes_nothing(norm):
    model = small(norm=norm)
    memory, mask = model.encode(SOURCE)
    noise = np.where(SOURCE[:, :, np.newaxis] == 0, 1e3, 0)
    expected = model.decode(TARGET, memory, mask)
    np.testing.assert_allclose(
        model.decode(TARGET, memory + noise, mask), expected, rtol=1e-5, atol=1e-5
    )
    everywhere = model.decode(TARGET, memory + 1.0, mask)
    assert np.abs(everywhere - expected).max() > 1e-2


def test_a_sentence_is_the_same_alone_and_in_a_batch():
    model = small()
    together = model(INPUTS)
    for row in range(3):
        source, target = SOURCE[row][SOURCE[row] != 0], TARGET[row][TARGET[row] != 0]
        alone = model({"source": source[np.newaxis], "target": target[np.newaxis]})[0]
        np.testing.assert_allclose(together[row, : len(target)], alone, rtol=1e-4, atol=1e-4)


def test_every_source_token_influences_every_target_position():
    model = small()
    changed = np.where(np.eye(5, dtype=bool), 12, SOURCE[:1])  # one token in each row
    target = TARGET[:1].repeat(5, axis=0)
    expected = model({"source": SOURCE[:1], "target": TARGET[:1]})
    difference = model({"source": changed, "target": target}) - expected
    assert (np.abs(difference).max(axis=-1) > 1e-4).all()


def test_a_stack_without_masks_sees_everything():
    """The result equals masks that are true everywhere, without a warning from Keras."""
    x, memory = tf.random.normal((2, 3, 8), seed=1), tf.random.normal((2, 5, 8), seed=2)
    encoder, decoder = tfformer.Encoder(1, 8, 2, d_ff=16), tfformer.Decoder(1, 8, 2, d_ff=16)
    all_of_x, all_of_memory = tf.ones((2, 1, 3, 3), bool), tf.ones((2, 1, 1, 5), bool)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(encoder(x), encoder(x, all_of_x), atol=1e-6)
        np.testing.assert_allclose(
            decoder(x, memory), decoder(x, memory, all_of_x, all_of_memory), atol=1e-6
        )


def test_dropout_acts_in_training_alone_and_on_embeddings_plus_positions():
    model, without = small(dropout=0.3, num_layers=2), small(dropout=0.0)
    expected = model(INPUTS)
    np.testing.assert_array_equal(model(INPUTS, training=False), expected)
    np.testing.assert_array_equal(without(INPUTS, training=True), without(INPUTS))
    assert np.abs(model(INPUTS, training=True) - expected).max() > 0.1
    for stack in (model.encoder, model.decoder):
        assert [layer.dropout for layer in stack.layers] == [0.3] * 2
        embeddings = tf.random.stateless_normal([4, 50, 16], seed=[1, 2])
        entered, dropped = (
            stack.add_positions(embeddings).numpy(),
            stack.add_positions(embeddings, training=True).numpy(),
        )
        np.testing.assert_allclose(entered, stack.positions(embeddings), rtol=1e-6)
        kept = dropped != 0
        assert kept.mean() == pytest.approx(0.7, abs=4 * (0.3 * 0.7 / kept.size) ** 0.5)
        np.testing.assert_allclose(dropped[kept], entered[kept] / 0.7, rtol=1e-5)


# Cached decoding


@pytest.mark.parametrize("beam_size", sampled([1, 3], by_day=[3]))
def test_beam_search_with_a_cache_equals_one_that_recomputes_every_prefix(beam_size):
    model, limits, longest = small(seed=4), tf.constant([6, 3, 5]), 6

    def recompute(ids, step, state):
        source, prefix = state
        prefix = tf.where(tf.range(longest) == step, ids[:, tf.newaxis], prefix)
        return model({"source": source, "target": prefix})[:, step], (source, prefix)

    sources = SOURCE.repeat(beam_size, axis=0)
    memory = model.encode_and_project(sources)

    def cached(ids, step, cache):
        logits, cache = model.step(ids[:, tf.newaxis], step, cache, memory)
        return logits[:, 0], cache

    rows = 3 * beam_size
    state = (tf.constant(sources), tf.zeros([rows, longest], tf.int32))
    expected = beam_search(recompute, state, limits, beam_size=beam_size)
    beams = beam_search(
        cached, model.decoder.empty_cache(rows, longest), limits, beam_size=beam_size
    )
    assert np.all(is_used(beams.scores))
    np.testing.assert_array_equal(beams.ids, expected.ids)
    np.testing.assert_allclose(beams.scores, expected.scores, rtol=1e-4, atol=1e-4)


# What Keras does with it


def loss_and_accuracy(logits, labels, weights, smoothing):
    """Return the mean smoothed cross-entropy and the accuracy over real tokens."""
    nats, real = smoothed_cross_entropy(logits, labels, smoothing), weights > 0
    return nats[real].mean(), (np.asarray(logits).argmax(-1) == labels)[real].mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", sampled(["mixed_bfloat16", "mixed_float16"], by_day=["mixed_bfloat16"])
)
def test_half_precision_trains_with_a_finite_loss_and_float32_variables(policy):
    model, full = small(dtype=policy, num_layers=1), small(num_layers=1)
    logits = model(INPUTS)
    assert logits.dtype == model.compute_dtype == policy.removeprefix("mixed_")
    assert {variable.dtype for variable in model.variables} == {"float32"}
    spread = np.std(full(INPUTS))
    assert np.abs(np.asarray(logits, np.float32) - full(INPUTS)).mean() < 0.05 * spread
    model.compile(
        keras.optimizers.Adam(1e-3),
        tfformer.SmoothedCrossEntropy(0.1),
        run_eagerly=True,
        jit_compile=False,
    )
    labels, weights = np.roll(TARGET, -1, axis=1), (TARGET != 0).astype(np.float32)
    losses = [float(model.train_on_batch(INPUTS, labels, weights)) for _ in range(4)]
    expected, _ = loss_and_accuracy(full(INPUTS), labels, weights, 0.1)
    assert losses[0] == pytest.approx(expected, rel=0.05)
    assert losses[-1] < losses[0]


@pytest.mark.slow
def test_compile_fit_evaluate_predict_save_and_load(tmp_path):
    """tests/test_public_names.py loads such a file in a fresh process."""
    rng = np.random.default_rng(0)
    source, target = (rng.integers(4, 50, size=(12, length)).astype(np.int32) for length in (7, 9))
    target[:, 0] = START_ID
    source[::2, 4:] = target[1::2, 6:] = 0
    labels, weights = np.roll(target, -1, axis=1), (target != 0).astype(np.float32)
    inputs = {"source": source, "target": target}
    dataset = tf.data.Dataset.from_tensor_slices((inputs, labels, weights)).batch(4)

    model = tfformer.Transformer(
        source_vocab_size=50,
        target_vocab_size=50,
        num_layers=1,
        d_model=16,
        num_heads=4,
        d_ff=32,
        dropout=0.1,
    )
    model.compile(
        optimizer=keras.optimizers.Adam(tfformer.WarmupSchedule(d_model=16, warmup_steps=4000)),
        loss=tfformer.SmoothedCrossEntropy(label_smoothing=0.1),
        weighted_metrics=["accuracy"],
    )
    before = model.get_weights()
    board = keras.callbacks.TensorBoard(tmp_path / "logs")
    model.fit(dataset, callbacks=[board], shuffle=False, verbose=0)
    for variable, old in zip(model.trainable_variables, before, strict=True):
        assert np.any(variable.numpy() != old), variable.path
    assert list((tmp_path / "logs").rglob("events.out.tfevents.*"))

    logits = model({"source": source, "target": target})
    loss, accuracy = loss_and_accuracy(logits, labels, weights, 0.1)
    results = model.evaluate(
        tf.data.Dataset.from_tensors((inputs, labels, weights)), verbose=0, return_dict=True
    )
    assert results["loss"] == pytest.approx(loss, rel=1e-4)
    assert results["accuracy"] == pytest.approx(accuracy, abs=1e-6)
    np.testing.assert_allclose(model.predict(dataset, verbose=0), logits, rtol=1e-3, atol=1e-4)

    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(again(inputs), logits)
    assert int(again.optimizer.iterations) == 3
    assert float(again.optimizer.learning_rate) == pytest.approx(16**-0.5 * 4 * 4000**-1.5)


SMALL = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 16, "dropout": 0.0}
