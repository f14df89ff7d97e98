"""The optimizer and the learning-rate schedule of a recipe. Knows no model."""

import keras
import tensorflow as tf

from tfformer.config import Config
from tfformer.training.schedules import LinearSchedule, WarmupSchedule


def new_optimizer(config: Config) -> keras.optimizers.Optimizer:
    """Adam(0.9, 0.98, 1e-9) as in section 5.3, AdamW, or Muon for the matrices within the layers (Jordan et al. 2024).

    Muon's steps have the size of Adam's (Liu et al. 2025, section 2.2), which it leaves the embeddings and vectors to.
    Keras clips, accumulates and averages; where it accumulates, it counts and averages at each of the accumulated
    steps, and the moving average is told so. Biases and normalisations do not decay.
    """
    settings = config.training
    accumulate = settings.accumulate_steps
    shared = {
        "learning_rate": learning_rate(config),
        "epsilon": 1e-9,
        "global_clipnorm": settings.clip_norm,
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
        "use_ema": settings.ema_momentum is not None,
        "ema_momentum": (settings.ema_momentum or 0.0) ** (1 / accumulate),
    }
    if settings.optimizer == "muon":
        decay = settings.weight_decay or None  # to decay by 0 takes as long as by anything
        adam = {"adam_beta_1": 0.9, "adam_beta_2": 0.98, "adam_weight_decay": decay}
        matmul_dtype = "bfloat16" if settings.dtype == "mixed_bfloat16" else "float32"
        optimizer = Muon(matmul_dtype=matmul_dtype, weight_decay=decay, **adam, **shared)
    elif settings.optimizer == "adamw":
        optimizer = keras.optimizers.AdamW(
            beta_1=0.9, beta_2=0.98, weight_decay=settings.weight_decay, **shared
        )
    else:
        optimizer = keras.optimizers.Adam(beta_1=0.9, beta_2=0.98, **shared)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


@keras.saving.register_keras_serializable(package="tfformer")
class Muon(keras.optimizers.Muon):
    """Keras' optimizer; matrices of one shape are made orthogonal together, by products in `matmul_dtype`.

    One by one they would be many small products. Jordan et al. 2024 multiply in bfloat16 too: the iteration bears it.
    """

    def __init__(self, *args, matmul_dtype: str = "float32", **kwargs):
        super().__init__(*args, **kwargs)
        self.matmul_dtype = matmul_dtype

    def _backend_update_step(
        self, gradients: list, variables: list, learning_rate: tf.Tensor
    ) -> None:
        """Keras' hook for the update of all variables at once, which would be `update_step` of each."""
        by_shape = {}
        for gradient, variable in zip(gradients, variables, strict=True):
            if self._should_use_adamw(variable):
                self.update_step(gradient, variable, learning_rate)
            else:
                by_shape.setdefault(tuple(variable.shape), []).append((gradient, variable))
        for pairs in by_shape.values():
            directions = tf.cast(
                tf.stack([self._look_ahead(*pair) for pair in pairs]), self.matmul_dtype
            )
            orthogonal = tf.cast(
                self.zeropower_via_newtonschulz5(directions, self.ns_steps), tf.float32
            )
            for (_, variable), direction in zip(
                pairs, tf.unstack(orthogonal, len(pairs)), strict=True
            ):
                self.assign_sub(variable, self.lr_adjust(learning_rate * direction))

    def _look_ahead(self, gradient: tf.Tensor, variable: keras.Variable) -> tf.Tensor:
        """Add the gradient to the momentum, m = mu m + g, and return the direction: m, or Nesterov's g + mu m."""
        momentum = self.momentums[self._get_variable_index(variable)]
        self.assign(momentum, self.momentum * momentum + gradient)
        return (
            gradient + self.momentum * momentum if self.nesterov else tf.convert_to_tensor(momentum)
        )

    def get_config(self) -> dict:
        return super().get_config() | {"matmul_dtype": self.matmul_dtype}


def learning_rate(config: Config) -> float | WarmupSchedule | LinearSchedule:
    """By updates; Keras counts steps, of which `accumulate_steps` make an update."""
    settings, d_model = config.training, config.model.d_model
    if settings.schedule == "plateau":
        return settings.learning_rate
    warmup_steps = settings.warmup_steps * settings.accumulate_steps
    if settings.schedule == "linear":
        return LinearSchedule(
            settings.learning_rate, warmup_steps, settings.total_steps * settings.accumulate_steps
        )
    if settings.schedule == "inverse_sqrt":
        return WarmupSchedule.with_peak(settings.learning_rate, d_model, warmup_steps)
    return WarmupSchedule(
        d_model, warmup_steps, settings.learning_rate_scale * settings.accumulate_steps**0.5
    )
