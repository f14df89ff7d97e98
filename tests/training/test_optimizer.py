"""Compare the recipe's optimizer and the schedules with the paper, NumPy and singular values."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfformer.config import Config
from tfformer.model.transformer import Transformer
from tfformer.training.optimizer import Muon, learning_rate, new_optimizer
from tfformer.training.schedules import LinearSchedule, WarmupSchedule

EPOCH_STEPS = 100


def recipe(**training) -> Config:
    values = {"warmup_steps": 20, "learning_rate": 0.005, "schedule": "inverse_sqrt"}
    return Config.from_dict({"training": values | training})


def small_model() -> Transformer:
    return Transformer(13, 13, num_layers=1, d_model=16, num_heads=2, d_ff=24, tie_embeddings="all")


def test_the_optimizer_is_the_papers_and_takes_the_recipes_settings():
    optimizer = new_optimizer(
        recipe(clip_norm=0.5, accumulate_steps=3, ema_momentum=0.99), EPOCH_STEPS
    )
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.98, 1e-9)
    assert (optimizer.global_clipnorm, optimizer.gradient_accumulation_steps) == (0.5, 3)
    assert optimizer.use_ema
    assert not new_optimizer(recipe(), EPOCH_STEPS).use_ema
    assert optimizer.ema_momentum**3 == pytest.approx(
        0.99
    )  # Keras averages at each of the three steps
    decayed = new_optimizer(recipe(optimizer="adamw", weight_decay=0.1), EPOCH_STEPS)
    assert isinstance(decayed, keras.optimizers.AdamW)
    assert decayed.weight_decay == 0.1
    muon = new_optimizer(recipe(optimizer="muon", weight_decay=0.1, clip_norm=0.5), EPOCH_STEPS)
    assert (muon.weight_decay, muon.adam_weight_decay, muon.global_clipnorm) == (0.1, 0.1, 0.5)
    assert (muon.adam_beta_1, muon.adam_beta_2, muon.epsilon) == (0.9, 0.98, 1e-9)


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(
    ("name", "of_keras", "decay"),
    [("adam", keras.optimizers.Adam, 0.0), ("adamw", keras.optimizers.AdamW, 0.1)],
)
def test_adam_takes_the_steps_of_keras_own(name, of_keras, decay, accumulate):
    settings = recipe(optimizer=name, weight_decay=decay, accumulate_steps=accumulate)
    ours = new_optimizer(settings, EPOCH_STEPS)
    theirs = of_keras.from_config(ours.get_config())
    dice = np.random.default_rng(3)
    variables = [keras.Variable(np.ones((3, 2), np.float32)) for _ in range(2)]
    for optimizer, variable in zip((ours, theirs), variables, strict=True):
        optimizer.build([variable])
    for _ in range(6):
        gradient = tf.constant(dice.normal(size=(3, 2)), tf.float32)
        for optimizer, variable in zip((ours, theirs), variables, strict=True):
            optimizer.apply([gradient], [variable])
        np.testing.assert_allclose(*variables, rtol=1e-6)
        for moment, expected in zip(ours.variables[2:], theirs.variables[2:], strict=True):
            np.testing.assert_allclose(moment, expected, rtol=1e-5, err_msg=moment.path)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_weights_decay_in_matrices_alone(optimizer):
    """Without a gradient, a matrix shrinks by rate times decay.

    Biases and normalisations do not change.
    """
    config = recipe(optimizer=optimizer, weight_decay=0.1, warmup_steps=1, learning_rate=0.01)
    model = small_model()
    for weight in model.trainable_variables:
        weight.assign(tf.ones_like(weight))  # biases begin with 0, which cannot shrink
    before = [weight.numpy() for weight in model.trainable_variables]
    new_optimizer(config, EPOCH_STEPS).apply(
        [tf.zeros_like(weight) for weight in before], model.trainable_variables
    )
    for weight, old in zip(model.trainable_variables, before, strict=True):
        np.testing.assert_allclose(
            weight.numpy(), old * (1 - 0.001 * (old.ndim == 2)), rtol=1e-6, err_msg=weight.path
        )


def test_muon_turns_the_matrices_within_layers_by_orthogonal_steps_and_leaves_the_rest_to_adam():
    """After one step, the singular values of a matrix's change are nearly equal.

    They are about 0.2 sqrt(longer side) times rate, see Liu et al. 2025, equation 4; in Jordan et
    al. 2024 they are from 0.7 to 1.2. Adam's first step changes every value by the rate.
    """
    optimizer = new_optimizer(
        recipe(optimizer="muon", warmup_steps=1, learning_rate=0.01), EPOCH_STEPS
    )
    random = np.random.default_rng(1)
    matrix = keras.Variable(np.zeros((24, 8), np.float32), name="kernel")
    vector = keras.Variable(np.zeros(8, np.float32), name="bias")
    optimizer.apply(
        [tf.constant(random.normal(size=v.shape), tf.float32) for v in (matrix, vector)],
        [matrix, vector],
    )
    singular_values = np.linalg.svd(matrix.numpy(), compute_uv=False) / (0.2 * 24**0.5 * 0.01)
    assert singular_values.min() > 0.6
    assert singular_values.max() < 1.3
    np.testing.assert_allclose(np.abs(vector.numpy()), 0.01, rtol=1e-4)


@pytest.mark.parametrize(
    ("dtype", "nesterov", "tolerance"),
    [("float32", True, 1e-5), ("float32", False, 1e-5), ("mixed_bfloat16", True, 0.1)],
)
def test_muon_takes_the_steps_of_keras_own_which_turns_one_matrix_at_a_time(
    dtype, nesterov, tolerance
):
    """Over four steps, for vectors and several matrices of two shapes, one of them wide."""
    config = recipe(
        optimizer="muon", weight_decay=0.1, warmup_steps=1, learning_rate=0.01, dtype=dtype
    )
    settings = new_optimizer(config, EPOCH_STEPS).get_config() | {"nesterov": nesterov}
    ours = Muon.from_config(settings)
    theirs = keras.optimizers.Muon.from_config(
        {name: settings[name] for name in settings if name != "matmul_dtype"}
    )
    random, shapes = np.random.default_rng(1), [(24, 8), (8,), (8, 24), (24, 8), (8, 24), (24, 8)]
    weights = [random.normal(size=shape).astype(np.float32) for shape in shapes]
    our_weights, their_weights = (list(map(keras.Variable, weights)) for _ in range(2))
    for _ in range(4):
        gradients = [tf.constant(random.normal(size=shape), tf.float32) for shape in shapes]
        ours.apply(gradients, our_weights)
        theirs.apply(gradients, their_weights)
    for weight, ours_then, theirs_then in zip(weights, our_weights, their_weights, strict=True):
        way = theirs_then.numpy() - weight
        assert np.linalg.norm(ours_then.numpy() - weight - way) < tolerance * np.linalg.norm(way)


def test_a_saved_muon_is_loaded_as_it_was():
    muon = new_optimizer(
        recipe(optimizer="muon", dtype="mixed_bfloat16", weight_decay=0.1), EPOCH_STEPS
    )
    loaded = keras.optimizers.deserialize(keras.optimizers.serialize(muon))
    assert type(loaded) is type(muon)
    assert loaded.get_config() == muon.get_config()
    assert loaded.matmul_dtype == "bfloat16"


def test_muon_takes_the_embeddings_for_no_matrices():
    optimizer, model = new_optimizer(recipe(optimizer="muon"), EPOCH_STEPS), small_model()
    optimizer.build(model.trainable_variables)
    by_adam = {
        weight.path.split("/")[-1]
        for weight in model.trainable_variables
        if optimizer._should_use_adamw(weight)
    }
    assert by_adam == {"embeddings", "bias", "gamma", "beta"}


@pytest.mark.parametrize(
    "schedule",
    [
        {"schedule": "inverse_sqrt"},
        {"schedule": "linear", "epochs": 5},
        {"schedule": "warmup", "learning_rate": None},
    ],
)
def test_accumulated_steps_count_as_one_for_the_schedule(schedule):
    alone, together = (
        learning_rate(recipe(accumulate_steps=steps, **schedule), 10 * steps) for steps in (1, 4)
    )
    for update in (0, 7, 19, 60):
        assert float(together(4 * update + 3)) == pytest.approx(float(alone(update)), rel=1e-5)


def test_a_training_shorter_than_the_warmup_only_warms_up():
    schedule = learning_rate(recipe(schedule="linear", epochs=1), epoch_steps=5)
    steps = np.arange(20)
    np.testing.assert_allclose(schedule(steps), 0.005 * (steps + 1) / 20, rtol=1e-5)


@pytest.mark.parametrize(("d_model", "warmup_steps"), [(512, 4000), (1024, 4000), (128, 7)])
def test_equals_equation_three_with_the_papers_steps_from_one(d_model, warmup_steps):
    s = np.array(
        [1, 2, 3, warmup_steps - 1, warmup_steps, warmup_steps + 1, 10 * warmup_steps, 100_000],
        np.float64,
    )
    expected = d_model**-0.5 * np.minimum(s**-0.5, s * warmup_steps**-1.5)
    schedule = WarmupSchedule(d_model, warmup_steps)
    np.testing.assert_allclose([schedule(step - 1) for step in s], expected, rtol=1e-5)


def test_scale_multiplies_every_rate():
    steps = tf.range(0, 100, 9)
    scaled = WarmupSchedule(64, 40, scale=2.5)(steps)
    np.testing.assert_allclose(scaled, 2.5 * np.asarray(WarmupSchedule(64, 40)(steps)), rtol=1e-6)


@pytest.mark.parametrize(("peak", "d_model", "warmup_steps"), [(5e-3, 128, 2000), (1.0, 16, 10)])
def test_with_peak_rises_linearly_to_the_peak_and_falls_with_the_inverse_square_root(
    peak, d_model, warmup_steps
):
    schedule = WarmupSchedule.with_peak(peak, d_model, warmup_steps)
    rates = np.asarray(schedule(tf.range(4 * warmup_steps)))
    assert np.argmax(rates) + 1 == warmup_steps
    np.testing.assert_allclose(
        rates[:warmup_steps], peak * np.arange(1, warmup_steps + 1) / warmup_steps, rtol=1e-5
    )
    np.testing.assert_allclose(rates[4 * warmup_steps - 1], peak / 2, rtol=1e-5)


def test_a_linear_schedule_rises_to_its_peak_falls_to_nothing_and_stays_there():
    rates = LinearSchedule(0.02, warmup_steps=4, total_steps=10)(tf.range(12))
    expected = np.interp(np.arange(1, 13), [0, 4, 10], [0.0, 0.02, 0.0])
    np.testing.assert_allclose(rates, expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(
    ("schedule", "arguments", "message"),
    [
        (WarmupSchedule, {"d_model": 0}, "d_model=0 must be a whole number of at least 1"),
        (WarmupSchedule, {"warmup_steps": 0}, "warmup_steps=0 must be a whole number of at least"),
        (WarmupSchedule, {"scale": -1}, "scale=-1 must be at least 0 and finite"),
        (LinearSchedule, {"peak": -0.01}, "peak=-0.01 must be at least 0 and finite"),
        (LinearSchedule, {"peak": "high"}, "peak='high' is of type str; pass a number"),
        (LinearSchedule, {"warmup_steps": -5}, "warmup_steps=-5 must be a whole number of at"),
        (LinearSchedule, {"warmup_steps": 10}, "warmup_steps=10 must be below total_steps=10"),
        (LinearSchedule, {"total_steps": 10.5}, "total_steps=10.5 must be a whole number of at"),
    ],
)
def test_a_schedule_that_would_climb_the_loss_is_refused(schedule, arguments, message):
    usual = {
        WarmupSchedule: {"d_model": 8, "warmup_steps": 4},
        LinearSchedule: {"peak": 0.01, "warmup_steps": 0, "total_steps": 10},
    }
    with pytest.raises(ValueError, match=f"^{message}"):
        schedule(**usual[schedule] | arguments)


def test_an_optimizer_takes_its_first_step_at_the_schedules_first_rate():
    """Plain gradient descent on f(w) = w moves by exactly the learning rate."""
    weight = keras.Variable(0.0)
    optimizer = keras.optimizers.SGD(WarmupSchedule(100, 10))
    for _ in range(2):
        optimizer.apply([tf.constant(1.0)], [weight])
    assert float(weight.value) == pytest.approx(-(0.1 * 10**-1.5) * (1 + 2))
