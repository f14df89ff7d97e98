"""Compare the learning-rate schedules with NumPy and with the paper's peak."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfformer.training.schedules import LinearSchedule, WarmupSchedule


@pytest.mark.parametrize(("d_model", "warmup_steps"), [(512, 4000), (1024, 4000), (128, 7)])
def test_equals_equation_three_with_the_papers_steps_from_one(d_model, warmup_steps):
    s = np.array(
        [1, 2, 3, warmup_steps - 1, warmup_steps, warmup_steps + 1, 10 * warmup_steps, 100_000],
        np.float64,
    )
    expected = d_model**-0.5 * np.minimum(s**-0.5, s * warmup_steps**-1.5)
    schedule = WarmupSchedule(d_model, warmup_steps)
    np.testing.assert_allclose([schedule(step - 1) for step in s], expected, rtol=1e-5)


def test_peak_of_the_base_model_is_seven_ten_thousandths_at_the_last_warmup_step():
    rates = WarmupSchedule(512, 4000)(tf.range(12_000))
    assert np.argmax(rates) + 1 == 4000
    assert np.max(rates) == pytest.approx(7.0e-4, rel=0.002)


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
