"""A batch trained in shards has the losses, weights and metrics of the whole batch."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfformer
from tfformer.model.data_parallel import ShardedModel

SHAPE = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}


def translator() -> ShardedModel:
    return tfformer.Transformer(19, 19, tie_embeddings="all", **SHAPE)


def language_model() -> ShardedModel:
    return tfformer.LanguageModel(19, **SHAPE)


def batch(rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return target, labels and weights. The shards' rows differ in their numbers of tokens."""
    random = np.random.default_rng(seed)
    labels = random.integers(4, 19, size=(rows, 7)).astype(np.int32)
    labels[np.arange(7) >= random.integers(2, 8, size=(rows, 1))] = 0
    target = np.where(
        labels > 0, np.pad(labels[:, :-1], [(0, 0), (1, 0)], constant_values=2), 0
    ).astype(np.int32)
    return target, labels, (labels > 0).astype(np.float32)


def trained(make, rows: int, shards: int) -> tuple[list[dict], list[np.ndarray]]:
    """Return the reports of two steps, and the weights after them."""
    keras.utils.set_random_seed(1)
    model = make()
    model.compile(
        keras.optimizers.SGD(0.5),
        tfformer.SmoothedCrossEntropy(0.1),
        weighted_metrics=["accuracy"],
        run_eagerly=True,
    )
    model.shards = shards
    reports = []
    for seed in range(2):
        target, labels, weights = batch(rows, seed)
        inputs = {"source": target[:, ::-1], "target": target} if make is translator else target
        reports.append(model.train_on_batch(inputs, labels, weights, return_dict=True))
    return reports, model.get_weights()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "rows", "shards"),
    [(translator, 7, 3), (language_model, 1, 2)],
    ids=["uneven", "with_an_empty_shard"],
)
def test_shards_learn_what_the_whole_batch_teaches(make, rows, shards):
    (plain, weights), (sharded, weights_then) = trained(make, rows, 1), trained(make, rows, shards)
    for report, expected in zip(sharded, plain, strict=True):
        assert report == pytest.approx(expected, rel=1e-5)
    for weight, expected in zip(weights_then, weights, strict=True):
        np.testing.assert_allclose(weight, expected, rtol=1e-4, atol=1e-6)


def test_each_shard_is_a_pass_of_its_own_over_its_rows(monkeypatch):
    passes, original = [], tfformer.Transformer.call

    def call(self, inputs, target=None, training=None):
        passes.append(inputs["target"].shape[0])
        return original(self, inputs, target, training=training)

    monkeypatch.setattr(tfformer.Transformer, "call", call)
    model = translator()
    model.compile(keras.optimizers.SGD(0.5), tfformer.SmoothedCrossEntropy(), run_eagerly=True)
    model.shards = 3
    target, labels, weights = batch(7, 0)
    model.train_on_batch({"source": target, "target": target}, labels, weights)
    assert passes == [2, 2, 3]


class OneOfTwo:
    """A process of two that receives nothing from the other."""

    count = 2

    def __init__(self, number):
        self.number = number

    def sum(self, tensors):
        return tensors


def test_processes_draw_dropout_of_their_own_and_go_on_with_the_same_seeds():
    gradients, states = [], []
    for number in range(2):
        keras.utils.set_random_seed(1)
        model = tfformer.LanguageModel(19, **SHAPE | {"dropout": 0.5})
        model.compile(keras.optimizers.SGD(1.0), tfformer.SmoothedCrossEntropy(), run_eagerly=True)
        model.workers = OneOfTwo(number)
        rows = [np.repeat(array, 2, axis=0) for array in batch(1, 0)]  # one for each process
        model(rows[0])
        before = [weight.numpy() for weight in model.trainable_weights]
        model.train_on_batch(*rows)
        gradients.append(
            np.concatenate(
                [
                    (old - new.numpy()).ravel()
                    for old, new in zip(before, model.trainable_weights, strict=True)
                ]
            )
        )
        states.append([variable.numpy() for variable in model.non_trainable_variables])
    assert np.abs(gradients[0] - gradients[1]).max() > 0.01
    assert states[0]
    np.testing.assert_equal(states[0], states[1])


def test_shards_without_sample_weights_are_refused():
    model = translator()
    model.compile(keras.optimizers.SGD(0.5), tfformer.SmoothedCrossEntropy(), run_eagerly=True)
    model.shards = 2
    target, labels, _ = batch(4, 0)
    with pytest.raises(ValueError, match=r"^shards=2 needs sample weights \(B, T\): 1 for"):
        model.train_on_batch({"source": target, "target": target}, labels)


@pytest.mark.parametrize("shards", [0, -1, 1.5, None])
def test_shards_that_are_no_whole_number_from_1_are_refused(shards):
    model = language_model()
    with pytest.raises(ValueError, match=f"^shards={shards} must be a whole number of at least 1$"):
        model.shards = shards
    model.shards = np.int64(2)
    assert (type(model.shards), model.shards) == (int, 2)


class WithMoreLosses(tfformer.LanguageModel):
    """A model whose call adds two losses, a constant and a mean over the rows.

    One variable has a regulariser, and `compute_loss` updates a metric.
    """

    def build(self, ids_shape=None):
        self.seen = keras.metrics.Sum("seen")
        super().build(ids_shape)
        self.embedding.embeddings.regularizer = keras.regularizers.L2(0.1)

    def call(self, ids, training=None):
        self.add_loss(tf.constant(100.0))
        logits = super().call(ids, training=training)
        self.add_loss(tf.reduce_mean(tf.square(logits)))
        return logits

    def compute_loss(self, x, y, y_pred, sample_weight=None, training=True):
        self.seen.update_state(tf.ones(tf.shape(y)[0]))
        return super().compute_loss(x, y, y_pred, sample_weight, training=training)


def reports_with_more_losses(rows, shards, has_weights, run_eagerly):
    """Return the reports of two steps of plain gradient descent, and the model after them."""
    keras.utils.set_random_seed(1)
    model = WithMoreLosses(19, **SHAPE)
    model.compile(
        keras.optimizers.SGD(0.1),
        tfformer.SmoothedCrossEntropy(0.1),
        run_eagerly=run_eagerly,
        jit_compile=False,
    )
    model.shards = shards
    target, labels, _ = batch(rows, 0)
    weights = np.ones_like(labels, np.float32) if has_weights else None
    reports = [model.train_on_batch(target, labels, weights, return_dict=True) for _ in range(2)]
    return keras.tree.map_structure(float, reports), model


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "shards", "run_eagerly"),
    [(8, 1, True), (7, 2, False), (1, 2, True)],
    ids=["one", "uneven", "empty"],
)
def test_added_losses_regularisers_and_metrics_of_a_subclass_are_those_of_keras_step(
    rows, shards, run_eagerly
):
    """Without sample weights the step is Keras'; weights of 1 give the same mean."""
    expected, reference = reports_with_more_losses(rows, 1, False, run_eagerly=True)
    reports, model = reports_with_more_losses(rows, shards, True, run_eagerly)
    assert [report["seen"] for report in reports] == [rows] * 2
    assert 103 < reports[0]["loss"] < 110
    for report, of_keras in zip(reports, expected, strict=True):
        assert report == pytest.approx(of_keras, rel=1e-5)
    for weight, of_keras in zip(model.get_weights(), reference.get_weights(), strict=True):
        np.testing.assert_allclose(weight, of_keras, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_scaled_loss_is_reported_as_it_is_and_learned_as_it_is():
    """Scaling prevents underflow in half precision; the optimizer scales the gradients back."""
    reports = []
    for optimizer in (
        keras.optimizers.SGD(0.5),
        keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.5)),
    ):
        keras.utils.set_random_seed(1)
        model = language_model()
        model.compile(optimizer, tfformer.SmoothedCrossEntropy(), run_eagerly=True)
        model.shards = 2
        target, labels, weights = batch(6, 0)
        reports.append([float(model.train_on_batch(target, labels, weights)) for _ in range(2)])
    assert reports[1] == pytest.approx(reports[0], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("shards", [1, 2])
def test_losses_are_means_over_tokens_whatever_the_size_of_the_batches(shards):
    """Rows of two to seven tokens. A learning rate of 0 leaves the weights unchanged."""
    keras.utils.set_random_seed(1)
    model = language_model()
    loss = tfformer.SmoothedCrossEntropy(0.1)
    model.compile(keras.optimizers.SGD(0.0), loss, run_eagerly=True)
    model.shards = shards
    target, labels, weights = batch(12, seed=3)
    expected = float(model.loss(labels, model(target), weights))
    for size in (5, 12):
        settings = {"batch_size": size, "sample_weight": weights, "verbose": 0}
        evaluated = model.evaluate(target, labels, **settings)
        fitted = model.fit(target, labels, **settings).history["loss"]
        assert [evaluated, *fitted] == pytest.approx([expected] * 2, rel=1e-5)


@pytest.mark.parametrize("weights", [None, np.ones((6, 7))], ids=["unweighted", "weighted"])
def test_a_model_learns_where_keras_computes_in_float64(weights):
    """Labels with weight 1 give the step that Keras takes for labels without weights."""
    keras.config.set_floatx("float64")
    try:
        model = tfformer.LanguageModel(19, dtype="float64", **SHAPE)
        model.compile(keras.optimizers.SGD(0.5), tfformer.SmoothedCrossEntropy(), run_eagerly=True)
        target, labels, _ = batch(6, 0)
        expected = float(model.loss(labels, model(target)))
        assert float(model.train_on_batch(target, labels, weights)) == pytest.approx(expected)
    finally:
        keras.config.set_floatx("float32")
