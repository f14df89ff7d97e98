"""Learning-rate schedules that Keras can serialise."""

from typing import Any

import keras
import tensorflow as tf

from tfformer.argument_checks import require_number, require_size
from tfformer.model.base_layer import register


@register
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """The paper's schedule: linear warmup, then decay with the inverse square root.

    scale * d_model^-0.5 * min(s^-0.5, s * warmup_steps^-1.5) (Vaswani et al. 2017, equation 3).
    Keras counts steps from 0, the paper from 1: s = step + 1. The peak, at s = warmup_steps, is
    7.0e-4 for d_model=512, warmup_steps=4000, scale=1.

    Args:
        d_model: The model's width.
        warmup_steps: Number of steps during which the rate rises linearly.
        scale: Factor by which all rates are multiplied, at least 0.

    Raises:
        ValueError: `d_model` or `warmup_steps` is not a positive integer, or `scale` is negative or
            not a number.

    Example:
        >>> import tfformer
        >>> schedule = tfformer.WarmupSchedule(d_model=512)
        >>> f"{float(schedule(0)):.2e} {float(schedule(3999)):.2e} {float(schedule(15999)):.2e}"
        '1.75e-07 6.99e-04 3.49e-04'
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0) -> None:
        self.d_model = require_size("d_model", d_model)
        self.warmup_steps = require_size("warmup_steps", warmup_steps)
        self.scale = require_number("scale", scale)

    @classmethod
    def with_peak(cls, peak: float, d_model: int, warmup_steps: int = 4000) -> "WarmupSchedule":
        """Return the schedule with a given peak (`inverse_sqrt` in a recipe).

        Args:
            peak: The rate at step `warmup_steps`.
            d_model: The model's width, which cancels out.
            warmup_steps: Number of steps during which the rate rises linearly.

        Returns:
            The schedule.

        Example:
            >>> import tfformer
            >>> schedule = tfformer.WarmupSchedule.with_peak(0.003, d_model=128, warmup_steps=300)
            >>> f"{float(schedule(299)):.4f}"
            '0.0030'
        """
        return cls(d_model, warmup_steps, scale=peak * (d_model * warmup_steps) ** 0.5)

    def __call__(self, step: tf.Tensor | int) -> tf.Tensor:
        s = tf.cast(step, tf.float32) + 1.0
        return self.scale * self.d_model**-0.5 * tf.minimum(s**-0.5, s * self.warmup_steps**-1.5)

    def get_config(self) -> dict[str, Any]:
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}

    def __repr__(self) -> str:
        return f"WarmupSchedule({self.d_model}, {self.warmup_steps}, scale={self.scale:g})"


@register
class LinearSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warmup, then linear decay to 0, for a training run of known length.

    peak * min(s / warmup_steps, (total_steps - s) / (total_steps - warmup_steps)), and 0 from
    `total_steps` on (Devlin et al. 2019, appendix A.2). s = step + 1, as in `WarmupSchedule`.

    Args:
        peak: The highest rate, at least 0.
        warmup_steps: Number of steps during which the rate rises linearly, at least 0.
        total_steps: Number of steps after which the rate is 0.

    Raises:
        ValueError: An argument is outside its range, or `warmup_steps` is not below `total_steps`.

    Example:
        >>> import tfformer
        >>> schedule = tfformer.LinearSchedule(0.01, warmup_steps=100, total_steps=500)
        >>> [round(float(schedule(step)), 4) for step in (0, 99, 299, 499)]
        [0.0001, 0.01, 0.005, 0.0]
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int) -> None:
        self.peak = require_number("peak", peak)
        self.warmup_steps = require_size("warmup_steps", warmup_steps, least=0)
        self.total_steps = require_size("total_steps", total_steps)
        if not warmup_steps < total_steps:
            raise ValueError(
                f"warmup_steps={warmup_steps} must be below total_steps={total_steps}; lower "
                "warmup_steps or raise total_steps"
            )

    def __call__(self, step: tf.Tensor | int) -> tf.Tensor:
        s = tf.cast(step, tf.float32) + 1.0
        falling = (self.total_steps - s) / (self.total_steps - self.warmup_steps)
        return self.peak * tf.minimum(s / self.warmup_steps, tf.maximum(falling, 0.0))

    def get_config(self) -> dict[str, Any]:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }
