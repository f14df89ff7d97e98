"""Every Keras feature that a user may apply to a model, on a model with a few hundred weights."""

import copy
import functools
import os
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfformer

SIZES = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 8, "dropout": 0.1}
RNG = np.random.default_rng(0)
SOURCE = RNG.integers(4, 11, size=(8, 5)).astype(np.int32)
TARGET = RNG.integers(4, 13, size=(8, 4)).astype(np.int32)
INPUTS = {"source": SOURCE, "target": TARGET}
LABELS = np.roll(TARGET, -1, axis=1)
WEIGHTS = np.ones(TARGET.shape, np.float32)


def model(**changes) -> tfformer.Transformer:
    keras.utils.set_random_seed(1)
    return tfformer.Transformer(11, 13, **SIZES | changes)


def compiled(made: keras.Model | None = None, **options) -> keras.Model:
    """Compile a model to run eagerly, which is faster than tracing for a few steps."""
    made = made or model()
    eager = {"run_eagerly": True, "jit_compile": False}
    options = {"optimizer": keras.optimizers.SGD(0.5)} | eager | options
    made.compile(loss=tfformer.SmoothedCrossEntropy(0.1), **options)
    return made


def fitted(made: keras.Model, *data, **options) -> list[float]:
    data = data or (INPUTS, LABELS, WEIGHTS)
    names = ("x", "y", "sample_weight")[: len(data)]
    options = {"batch_size": 4, "epochs": 2, "verbose": 0, "shuffle": False} | options
    return made.fit(**dict(zip(names, data, strict=True)), **options).history["loss"]


@functools.cache
def eager_losses() -> list[float]:
    """Return the losses of a fit without dropout on NumPy arrays."""
    return fitted(compiled(model(dropout=0.0)))


# Data


def test_source_and_target_in_any_form_give_the_same_logits():
    made = model()
    expected = made(INPUTS)
    for logits in (made([SOURCE, TARGET]), made((SOURCE, TARGET)), made(SOURCE, TARGET)):
        np.testing.assert_array_equal(logits, expected)
    np.testing.assert_array_equal(made(SOURCE, target=TARGET), expected)


@pytest.mark.parametrize("inputs", [SOURCE, {"src": SOURCE, "target": TARGET}, [SOURCE]])
def test_inputs_without_a_target_are_refused(inputs):
    message = r"a Transformer accepts \{'source': ids \(B, S\), 'target': ids \(B, T\)\}, \[source"
    with pytest.raises(ValueError, match=message):
        model()(inputs)


def test_ids_in_floating_point_are_ids_in_any_precision():
    made = tfformer.Transformer(1000, 1000, dtype="mixed_bfloat16", **SIZES)
    ids = np.array([[999, 257, 501]])
    expected = made(ids, ids)
    np.testing.assert_array_equal(made(ids.astype(np.float32), ids.astype(np.float32)), expected)


class Batches(keras.utils.PyDataset):
    def __len__(self):
        return 2

    def __getitem__(self, index):
        rows = slice(4 * index, 4 * index + 4)
        inputs = {name: ids[rows] for name, ids in INPUTS.items()}
        return inputs, LABELS[rows], WEIGHTS[rows]


def generator():
    while True:
        yield from (Batches()[index] for index in range(2))


@pytest.mark.slow
def test_fit_learns_the_same_from_every_kind_of_data():
    assert eager_losses()[1] < eager_losses()[0]
    dataset = tf.data.Dataset.from_tensor_slices((INPUTS, LABELS, WEIGHTS)).batch(4)
    kinds = {
        "pair": {"x": [SOURCE, TARGET], "y": LABELS, "sample_weight": WEIGHTS, "batch_size": 4},
        "dataset": {"x": dataset},
        "py_dataset": {"x": Batches()},
        "generator": {"x": generator(), "steps_per_epoch": 2},
    }
    for name, data in kinds.items():
        made = compiled(model(dropout=0.0))
        history = made.fit(**data, epochs=2, shuffle=False, verbose=0).history
        np.testing.assert_allclose(history["loss"], eager_losses(), rtol=1e-5, err_msg=name)


# Callbacks


@pytest.mark.slow
def test_callbacks_save_stop_and_restore(tmp_path):
    made = compiled(keras.models.clone_model(model()))
    callbacks = [
        keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", "loss", save_best_only=True),
        keras.callbacks.EarlyStopping("loss", patience=1, min_delta=100.0),
        keras.callbacks.BackupAndRestore(tmp_path / "backup"),
    ]
    losses = fitted(made, callbacks=callbacks, epochs=9)
    assert len(losses) == 2
    best = keras.models.load_model(tmp_path / "best.keras")
    np.testing.assert_array_equal(best(INPUTS), made(INPUTS))


# How it computes


@pytest.mark.nightly
@pytest.mark.parametrize("options", [{"steps_per_execution": 2}, {"jit_compile": True}])
def test_ways_to_run_learn_the_same(options):
    losses = fitted(compiled(model(dropout=0.0), run_eagerly=False, **options))
    np.testing.assert_allclose(losses, eager_losses(), rtol=1e-4)


@pytest.mark.slow
def test_pure_half_precision_learns():
    """With plain gradient descent, because Keras' Adam rounds beta_2 to 1 and never moves."""
    losses = fitted(compiled(model(dtype="bfloat16")), batch_size=8, epochs=4)
    assert losses[-1] < losses[0]


# Weights


def test_a_frozen_model_keeps_its_weights_reports_its_loss_and_warns_as_keras_does():
    made = compiled(model(trainable=False, dropout=0.0))
    before = made.get_weights()
    loss = tfformer.SmoothedCrossEntropy(0.1)(LABELS, made(INPUTS))
    with pytest.warns(UserWarning, match=r"^the model has no trainable weights$"):
        assert fitted(made, epochs=1) == pytest.approx([float(loss)], rel=1e-6)
    for old, new in zip(before, made.get_weights(), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.slow
def test_lora_of_a_projection_learns_beside_its_frozen_matrix():
    made = model()
    inner = made.encoder.layers[0].feed_forward.inner
    inner.enable_lora(2)
    frozen = inner._kernel.numpy()
    merged = inner.kernel.numpy()
    fitted(compiled(made), epochs=1)
    np.testing.assert_array_equal(inner._kernel.numpy(), frozen)
    assert np.any(inner.kernel.numpy() != merged)


@pytest.mark.slow
def test_lora_of_an_embedding_learns_at_both_ends_and_is_merged_when_saved(tmp_path):
    made = model()
    made.target_embedding.enable_lora(2)
    frozen = made.target_embedding._embeddings.numpy()
    fitted(compiled(made), epochs=1)
    np.testing.assert_array_equal(made.target_embedding._embeddings.numpy(), frozen)
    low_rank = made.target_embedding.lora_embeddings_a @ made.target_embedding.lora_embeddings_b
    assert np.abs(low_rank).max() > 0
    np.testing.assert_allclose(made.target_embedding.embeddings, frozen + low_rank, rtol=1e-5)
    made.save_weights(tmp_path / "merged.weights.h5")
    plain = model()
    plain.load_weights(tmp_path / "merged.weights.h5")
    np.testing.assert_allclose(plain(INPUTS), made(INPUTS), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["int8", "float8"])
def test_quantisation_is_refused_with_the_way_to_eight_bits(mode):
    message = rf"^quantize\('{mode}'\) leaves .* export RUN --format litert --quantize int8$"
    with pytest.raises(NotImplementedError, match=message):
        model().quantize(mode, type_check=False)
    vectors = keras.Input((None, 8))
    encoded = tfformer.Encoder(num_layers=1, d_model=8, num_heads=2, d_ff=16)(vectors)
    around = keras.Model(vectors, encoded)
    before = around.get_weights()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        around.quantize(mode)
    refused = [warning for warning in warned if re.search(message, str(warning.message))]
    assert len(refused) == 3 + 2  # query, key with value, output; the feed-forward's two
    for weight, expected in zip(around.get_weights(), before, strict=True):
        np.testing.assert_array_equal(weight, expected)


def test_a_dtype_of_eight_bits_is_refused_with_the_way_to_them():
    message = r"^quantize\('int8'\) leaves .* export RUN --format litert --quantize int8$"
    dtype = "int8_from_float32"
    with pytest.raises(NotImplementedError, match=message):
        tfformer.TokenEmbedding(9, 8, dtype=dtype)(np.array([[1, 2]]))
    with pytest.raises(NotImplementedError, match=message):
        tfformer.Encoder(1, 8, num_heads=2, d_ff=16, dtype=dtype)(np.ones((1, 2, 8)))


# Copies and files


def test_copies_give_the_same_logits():
    made = model()
    expected = made(INPUTS)
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made)):
        np.testing.assert_array_equal(twin(INPUTS), expected)
    for twin in (keras.models.clone_model(made), keras.models.model_from_json(made.to_json())):
        twin.set_weights(made.get_weights())
        np.testing.assert_array_equal(twin(INPUTS), expected)


def test_the_summary_names_the_parts_and_their_shapes():
    lines = []
    model(tie_embeddings="none").summary(print_fn=lines.append, line_length=100)
    text = "\n".join(lines)
    for name in ("source_embedding", "target_embedding", "output_embedding", "encoder", "decoder"):
        assert name in text
    assert text.count("(None, None, 8)") == 5
    assert "?" not in text


@pytest.mark.parametrize(
    ("ties", "names"),
    [
        ("all", ["shared_embedding"]),
        ("output", ["source_embedding", "target_embedding"]),
        ("none", ["source_embedding", "target_embedding", "output_embedding"]),
    ],
)
def test_embeddings_are_named_after_their_places(ties, names):
    made = tfformer.Transformer(9, 9, tie_embeddings=ties, **SIZES)
    assert [layer.name for layer in made.layers] == [*names, "encoder", "decoder"]


@pytest.mark.parametrize("preset", ["tiny", "small"])
def test_a_preset_gives_its_sizes_and_overrides_win(preset):
    d_model = {"tiny": 128, "small": 256}[preset]
    made = tfformer.Transformer.from_preset(
        preset, source_vocab_size=9, target_vocab_size=11, num_layers=1, d_ff=8
    )
    assert (made.d_model, made.num_heads, made.num_layers, made.d_ff) == (d_model, 4, 1, 8)
    made = tfformer.LanguageModel.from_preset(preset, 9, num_layers=1)
    assert (made.d_model, made.vocab_size) == (d_model, 9)


class Doubled(tfformer.Transformer):
    """A model with a custom training step, in which the loss counts twice."""

    def train_step(self, data):
        inputs, labels, weights = data
        with tf.GradientTape() as tape:
            loss = 2 * self.compute_loss(y=labels, y_pred=self(inputs), sample_weight=weights)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"doubled_loss": loss}


@pytest.mark.slow
def test_a_subclass_may_have_its_own_step():
    keras.utils.set_random_seed(1)
    made = compiled(Doubled(11, 13, **SIZES | {"dropout": 0.0}))
    expected = compiled(model(dropout=0.0)).evaluate(
        INPUTS, LABELS, sample_weight=WEIGHTS, verbose=0
    )
    history = made.fit(
        INPUTS, LABELS, sample_weight=WEIGHTS, batch_size=8, epochs=2, verbose=0
    ).history
    losses = history["doubled_loss"]
    assert losses[0] == pytest.approx(2 * expected, rel=1e-5)
    assert losses[1] < losses[0]


# In processes of their own


def run(code: str, folder: Path) -> str:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.nightly
def test_exports_are_read_by_tensorflow_alone(tmp_path):
    """One export is from a new model, the other from the same model after training."""
    made, expected = model(), {}
    for name in ("new", "fitted"):
        if name == "fitted":
            fitted(compiled(made))
        made.export(tmp_path / name, verbose=False)
        expected[name] = made(INPUTS).numpy()
    assert np.abs(expected["fitted"] - expected["new"]).max() > 1e-3
    np.savez(tmp_path / "inputs.npz", **INPUTS)
    code = """
import numpy, sys, tensorflow as tf
for name in ("new", "fitted"):
    exported = tf.saved_model.load(name)
    numpy.save(name, exported.serve(dict(numpy.load("inputs.npz"))))
assert "tfformer" not in sys.modules
"""
    run(code, tmp_path)
    for name, logits in expected.items():
        np.testing.assert_allclose(np.load(tmp_path / f"{name}.npy"), logits, rtol=1e-5, atol=1e-6)


@pytest.mark.nightly
def test_two_devices_learn_as_one(tmp_path):
    code = """
import keras, numpy as np, tensorflow as tf, tfformer
[cpu] = tf.config.list_physical_devices("CPU")
halves = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, halves)
ids = np.random.default_rng(0).integers(4, 11, size=(16, 5)).astype("int32")
data = ({"source": ids, "target": ids}, ids, np.ones(ids.shape, "float32"))
losses = []
one_device = tf.distribute.get_strategy()
two_devices = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
for strategy in (one_device, two_devices):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        sizes = {"num_layers": 1, "d_model": 8, "num_heads": 2, "d_ff": 8}
        model = tfformer.Transformer(11, 11, dropout=0.0, **sizes)
        loss = tfformer.SmoothedCrossEntropy(0.1, reduction="sum_over_batch_size")
        eager = {"run_eagerly": strategy is one_device, "jit_compile": False}
        model.compile(keras.optimizers.SGD(0.5), loss, **eager)
    dataset = tf.data.Dataset.from_tensor_slices(data).batch(8)
    losses.append(model.fit(dataset, epochs=3, verbose=0).history["loss"])
np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
assert losses[0][-1] < losses[0][0]
print("same")
"""
    assert run(code, tmp_path) == "same\n"


@pytest.mark.parametrize(
    "weights", [{"sample_weight": np.ones(len(LABELS))}, {"class_weight": {5: 2.0}}]
)
def test_weights_that_are_not_of_tokens_are_one_clear_line(weights):
    made = compiled(model())
    with pytest.raises(ValueError, match=r"^sample weights .* one weight per token.*class_weight"):
        made.fit(INPUTS, LABELS, verbose=0, **weights)
