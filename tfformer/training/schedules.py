"""Learning-rate schedules that Keras can serialise. Knows no model."""

import keras
import tensorflow as tf


@keras.saving.register_keras_serializable(package="tfformer")
class WarmupSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """scale * d_model^-0.5 * min(s^-0.5, s * warmup_steps^-1.5) (Vaswani et al. 2017, eq. 3).

    Linear for `warmup_steps` steps, then falling with the inverse square root; the peak is 7.0e-4 at d_model=512,
    warmup_steps=4000, scale=1. Keras counts steps from 0, the paper from 1: s = step + 1.
    """

    def __init__(self, d_model: int, warmup_steps: int = 4000, scale: float = 1.0):
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        self.scale = scale

    @classmethod
    def with_peak(cls, peak: float, d_model: int, warmup_steps: int = 4000) -> "WarmupSchedule":
        """The same curve with its highest learning rate given: the usual inverse-square-root schedule."""
        return cls(d_model, warmup_steps, scale=peak * (d_model * warmup_steps) ** 0.5)

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        s = tf.cast(step, tf.float32) + 1.0
        return self.scale * self.d_model**-0.5 * tf.minimum(s**-0.5, s * self.warmup_steps**-1.5)

    def get_config(self) -> dict:
        return {"d_model": self.d_model, "warmup_steps": self.warmup_steps, "scale": self.scale}


@keras.saving.register_keras_serializable(package="tfformer")
class LinearSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """peak * min(s / warmup_steps, (total_steps - s) / (total_steps - warmup_steps)), and 0 from `total_steps` on.

    For a training whose length is known (Devlin et al. 2019, appendix A.2). s = step + 1, as in WarmupSchedule.
    """

    def __init__(self, peak: float, warmup_steps: int, total_steps: int):
        if not warmup_steps < total_steps:
            raise ValueError(
                f"warmup_steps={warmup_steps} must be below total_steps={total_steps}; lower the one or raise the other"
            )
        self.peak = peak
        self.warmup_steps = warmup_steps
        self.total_steps = total_steps

    def __call__(self, step: tf.Tensor) -> tf.Tensor:
        s = tf.cast(step, tf.float32) + 1.0
        falling = (self.total_steps - s) / (self.total_steps - self.warmup_steps)
        return self.peak * tf.minimum(s / self.warmup_steps, tf.maximum(falling, 0.0))

    def get_config(self) -> dict:
        return {
            "peak": self.peak,
            "warmup_steps": self.warmup_steps,
            "total_steps": self.total_steps,
        }
