"""The optimizer and the learning-rate schedule of a recipe. Knows no model."""

from typing import Any

import keras
import tensorflow as tf

from tfformer.config import Config
from tfformer.training.schedules import LinearSchedule, WarmupSchedule


def new_optimizer(config: Config) -> keras.optimizers.Optimizer:
    """Build the recipe's optimizer.

    Adam(0.9, 0.98, 1e-9) is that of Vaswani et al. 2017, section 5.3; AdamW the same with weight
    decay. Muon turns the matrices within the layers (Jordan et al. 2024) in steps of Adam's size
    (Liu et al. 2025, section 2.2) and leaves embeddings and vectors to Adam. Keras clips,
    accumulates and averages; where it accumulates, it counts and averages at each of the
    accumulated steps, and the moving average is told so. Biases and normalisations do not decay.

    Args:
        config: The recipe.

    Returns:
        The optimizer, not built yet.

    Example:
        >>> optimizer = new_optimizer(Config())
        >>> optimizer.beta_1, optimizer.beta_2, optimizer.epsilon
        (0.9, 0.98, 1e-09)
    """
    settings = config.training
    accumulate = settings.accumulate_steps
    shared: dict[str, Any] = {
        "learning_rate": learning_rate(config),
        "epsilon": 1e-9,
        "global_clipnorm": settings.clip_norm,
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
        "use_ema": settings.ema_momentum is not None,
        "ema_momentum": (settings.ema_momentum or 0.0) ** (1 / accumulate),
    }
    if settings.optimizer == "muon":
        decay = settings.weight_decay or None  # to decay by 0 takes as long as by anything
        optimizer = Muon(
            adam_beta_1=0.9,
            adam_beta_2=0.98,
            adam_weight_decay=decay,
            weight_decay=decay,
            matmul_dtype="bfloat16" if settings.dtype == "mixed_bfloat16" else "float32",
            **shared,
        )
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
    """Keras' Muon (Jordan et al. 2024), for matrices of one shape together.

    They are made orthogonal in one product: one by one they would be many small products. Jordan et
    al. multiply in bfloat16 too: the Newton-Schulz iteration bears it.

    Args:
        learning_rate: Of the matrices; times `adam_lr_ratio` for the rest.
        adam_beta_1: Decay of Adam's first moment, for embeddings and vectors.
        adam_beta_2: Decay of Adam's second moment.
        adam_weight_decay: Decoupled weight decay of the variables left to Adam.
        epsilon: Added to Adam's denominator.
        weight_decay: Decoupled weight decay of the matrices.
        clipnorm: Most that the norm of each gradient may be.
        clipvalue: Most that each number of a gradient may be.
        global_clipnorm: Most that the norm of all gradients together may be.
        use_ema: Keep a moving average of the weights.
        ema_momentum: Its decay.
        ema_overwrite_frequency: Steps after which the average replaces the weights.
        loss_scale_factor: Factor of the loss, taken out of the gradients again.
        gradient_accumulation_steps: Steps an update.
        name: The optimizer's name.
        exclude_layers: Regular expressions of paths that are left to Adam.
        exclude_embeddings: Leave embeddings to Adam.
        muon_a: First coefficient of the Newton-Schulz iteration.
        muon_b: Its second coefficient.
        muon_c: Its third coefficient.
        adam_lr_ratio: Adam's learning rate over that of the matrices.
        momentum: Decay of the momentum of the matrices.
        ns_steps: Newton-Schulz iterations.
        nesterov: Look ahead by the momentum.
        rms_rate: Root mean square of a step, over the rate (Liu et al. 2025, section 2.2).
        matmul_dtype: The dtype of the iteration's products.

    Example:
        >>> Muon(0.01, matmul_dtype="bfloat16").get_config()["matmul_dtype"]
        'bfloat16'
    """

    def __init__(
        self,
        learning_rate: float | keras.optimizers.schedules.LearningRateSchedule = 0.001,
        adam_beta_1: float = 0.9,
        adam_beta_2: float = 0.999,
        adam_weight_decay: float | None = 0.004,
        epsilon: float = 1e-7,
        weight_decay: float | None = 0.004,
        clipnorm: float | None = None,
        clipvalue: float | None = None,
        global_clipnorm: float | None = None,
        use_ema: bool = False,
        ema_momentum: float = 0.99,
        ema_overwrite_frequency: int | None = None,
        loss_scale_factor: float | None = None,
        gradient_accumulation_steps: int | None = None,
        name: str | None = None,
        exclude_layers: list[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.7750,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1,
        momentum: float = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        matmul_dtype: str = "float32",
    ) -> None:
        super().__init__(
            learning_rate=learning_rate,
            adam_beta_1=adam_beta_1,
            adam_beta_2=adam_beta_2,
            adam_weight_decay=adam_weight_decay,
            epsilon=epsilon,
            weight_decay=weight_decay,
            clipnorm=clipnorm,
            clipvalue=clipvalue,
            global_clipnorm=global_clipnorm,
            use_ema=use_ema,
            ema_momentum=ema_momentum,
            ema_overwrite_frequency=ema_overwrite_frequency,
            loss_scale_factor=loss_scale_factor,
            gradient_accumulation_steps=gradient_accumulation_steps,
            name=name,
            exclude_layers=exclude_layers,
            exclude_embeddings=exclude_embeddings,
            muon_a=muon_a,
            muon_b=muon_b,
            muon_c=muon_c,
            adam_lr_ratio=adam_lr_ratio,
            momentum=momentum,
            ns_steps=ns_steps,
            nesterov=nesterov,
            rms_rate=rms_rate,
        )
        self.matmul_dtype = matmul_dtype

    def _backend_update_step(
        self, gradients: list, variables: list, learning_rate: tf.Tensor
    ) -> None:
        """Keras' hook for the update of all variables at once, else `update_step` of each."""
        by_shape: dict[tuple[int, ...], list[tuple[tf.Tensor, keras.Variable]]] = {}
        for gradient, variable in zip(gradients, variables, strict=True):
            if self._should_use_adamw(variable):
                self.update_step(gradient, variable, learning_rate)
            else:
                by_shape.setdefault(tuple(variable.shape), []).append((gradient, variable))
        for pairs in by_shape.values():
            directions = tf.stack([self._look_ahead(*pair) for pair in pairs])  # (matrices, *shape)
            directions = tf.cast(directions, self.matmul_dtype)
            orthogonal = self.zeropower_via_newtonschulz5(directions, self.ns_steps)
            steps = tf.unstack(tf.cast(orthogonal, tf.float32), len(pairs))
            for (_, variable), step in zip(pairs, steps, strict=True):
                self.assign_sub(variable, self.lr_adjust(learning_rate * step))

    def _look_ahead(self, gradient: tf.Tensor, variable: keras.Variable) -> tf.Tensor:
        """Add the gradient to the momentum, m = mu m + g; return m, or Nesterov: g + mu m."""
        momentum = self.momentums[self._get_variable_index(variable)]
        self.assign(momentum, self.momentum * momentum + gradient)
        if self.nesterov:
            return gradient + self.momentum * momentum
        return tf.convert_to_tensor(momentum)

    def get_config(self) -> dict[str, Any]:
        """Return the constructor's arguments."""
        return super().get_config() | {"matmul_dtype": self.matmul_dtype}


def learning_rate(config: Config) -> float | WarmupSchedule | LinearSchedule:
    """Return the recipe's learning rate.

    Args:
        config: The recipe, whose steps are updates.

    Returns:
        A schedule over Keras' steps, of which `accumulate_steps` make an update; with the schedule
        `plateau` the first rate.

    Example:
        >>> learning_rate(Config()).warmup_steps
        4000
    """
    settings, d_model = config.training, config.model.d_model
    accumulate = settings.accumulate_steps
    warmup_steps = settings.warmup_steps * accumulate
    if settings.learning_rate is None:
        scale = settings.learning_rate_scale * accumulate**0.5
        return WarmupSchedule(d_model, warmup_steps, scale)
    if settings.schedule == "plateau":
        return settings.learning_rate
    if settings.total_steps is None:
        return WarmupSchedule.with_peak(settings.learning_rate, d_model, warmup_steps)
    return LinearSchedule(settings.learning_rate, warmup_steps, settings.total_steps * accumulate)
