"""The optimizer and the learning-rate schedule of a recipe."""

from __future__ import annotations

from typing import Any

import keras
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.case_variants import CASES, CaseFamilies
from tfformer.training.schedules import LinearSchedule, WarmupSchedule


class CaseSharing(keras.optimizers.Optimizer):
    """An optimizer that can learn embeddings as sums; a mixin for Keras' optimizers.

    The embedding of a piece is then the sum of a vector for its letters and a vector for its case,
    as in factored translation (García-Martínez et al. 2016), so that what is learned about "dog"
    also holds for "DOG". The matrix itself remains an ordinary matrix: the optimizer sums each
    vector's gradient over the rows that contain it, and adds the vector's update to these rows.
    """

    def share_rows(self, matrix: keras.Variable, families: CaseFamilies) -> None:
        """Make each row of a matrix (V, D) the sum of its family's vector and its case's vector.

        The optimizer must be built. Nothing is shared if the families leave no rows free for the
        vectors per case, as in a language without capitals.
        """
        rows = len(families.family)
        if families.families + CASES > rows:
            return
        self._families: dict[int, CaseFamilies] = getattr(self, "_families", {})
        self._families[self._get_variable_index(matrix)] = families
        first = {family: row for row, family in reversed(list(enumerate(families.family)))}
        matrix.assign(tf.gather(matrix, [first[family] for family in families.family]))

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Update a variable, or the vectors whose sums are the rows of a matrix.

        The optimizer's state for a matrix (V, D) then describes the vectors: one row per family,
        followed by one row per case.
        """
        families = getattr(self, "_families", {}).get(self._get_variable_index(variable))
        if families is None:
            super().update_step(gradient, variable, learning_rate)
            return
        gradient = tf.convert_to_tensor(gradient)
        rows = gradient.shape[0]
        case_rows = families.families + families.case
        summed = tf.math.unsorted_segment_sum(gradient, families.family, rows)
        summed += tf.math.unsorted_segment_sum(gradient, case_rows, rows)
        before = tf.identity(variable)
        super().update_step(summed, variable, learning_rate)
        step = tf.convert_to_tensor(variable) - before
        spread = tf.gather(step, families.family) + tf.gather(step, case_rows)
        self.assign(variable, before + spread)


class FusedAdam(keras.optimizers.Adam):
    """Keras' Adam, computed by one TensorFlow operation per variable instead of 17.

    On a GPU without XLA, a step of the base model then launches 3,500 fewer operations.
    """

    def _backend_update_step(
        self, gradients: list[tf.Tensor], variables: list[keras.Variable], learning_rate: tf.Tensor
    ) -> None:
        """Keras' hook for the update of all variables: correct the moments' bias once for all."""
        step = tf.cast(self.iterations + 1, tf.float32)
        correction = tf.sqrt(1 - self.beta_2**step) / (1 - self.beta_1**step)
        super()._backend_update_step(gradients, variables, learning_rate * correction)

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        """Keras' hook for the update of one variable."""
        index = self._get_variable_index(variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[index].value.handle,
            v=self._velocities[index].value.handle,
            beta1_power=0.0,  # `_backend_update_step` has corrected the bias
            beta2_power=0.0,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


class Adam(CaseSharing, FusedAdam):
    """Keras' Adam, with rows that may share vectors."""


class AdamW(CaseSharing, FusedAdam, keras.optimizers.AdamW):
    """Keras' AdamW, with rows that may share vectors."""


def new_optimizer(config: Config, epoch_steps: int) -> CaseSharing:
    """Build the recipe's optimizer.

    Adam(0.9, 0.98, 1e-9) is that of Vaswani et al. 2017, section 5.3; AdamW adds weight decay,
    except for biases and normalisations. Muon (Jordan et al. 2024) updates the weight matrices with
    orthogonalised momentum, scaled to the RMS of an Adam step (Liu et al. 2025, section 2.2);
    embeddings, biases and normalisations use Adam.
    """
    settings = config.training
    accumulate = settings.accumulate_steps
    shared: dict[str, Any] = {
        "learning_rate": learning_rate(config, epoch_steps),
        "epsilon": 1e-9,
        "global_clipnorm": settings.clip_norm,
        "gradient_accumulation_steps": accumulate if accumulate > 1 else None,
        "use_ema": settings.ema_momentum is not None,
        # Keras averages the weights at every batch, even if several batches make one update.
        "ema_momentum": (settings.ema_momentum or 0.0) ** (1 / accumulate),
    }
    if settings.optimizer == "muon":
        decay = settings.weight_decay or None  # decaying by 0 takes as long as by any other rate
        optimizer = Muon(
            adam_beta_1=0.9,
            adam_beta_2=0.98,
            adam_weight_decay=decay,
            weight_decay=decay,
            matmul_dtype="bfloat16" if settings.dtype == "mixed_bfloat16" else "float32",
            **shared,
        )
    elif settings.optimizer == "adamw":
        optimizer = AdamW(beta_1=0.9, beta_2=0.98, weight_decay=settings.weight_decay, **shared)
    else:
        optimizer = Adam(beta_1=0.9, beta_2=0.98, **shared)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


@keras.saving.register_keras_serializable(package="tfformer")
class Muon(CaseSharing, keras.optimizers.Muon):
    """Keras' Muon (Jordan et al. 2024), which updates matrices of the same shape together.

    One matrix at a time, the Newton-Schulz iterations would be many small products. As in Jordan et
    al., they can run in bfloat16 (`matmul_dtype`).
    """

    def __init__(self, *args: Any, matmul_dtype: str = "float32", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.matmul_dtype = matmul_dtype

    def _backend_update_step(
        self, gradients: list[tf.Tensor], variables: list[keras.Variable], learning_rate: tf.Tensor
    ) -> None:
        """Update all variables; Keras calls this hook instead of `update_step` per variable."""
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


def learning_rate(config: Config, epoch_steps: int) -> WarmupSchedule | LinearSchedule:
    """Return the recipe's learning rate over Keras' steps.

    `accumulate_steps` of these steps make one update. A linear schedule reaches 0 when training
    ends; a run shorter than the warmup only warms up.
    """
    settings = config.training
    d_model = config.model.d_model
    warmup_steps = settings.warmup_steps * settings.accumulate_steps
    if settings.learning_rate is None:
        # Keras counts batches and equation 3 counts updates, so the inverse root is rescaled.
        return WarmupSchedule(d_model, warmup_steps, scale=settings.accumulate_steps**0.5)
    if settings.schedule == "inverse_sqrt":
        return WarmupSchedule.with_peak(settings.learning_rate, d_model, warmup_steps)
    total_steps = max(settings.epochs * epoch_steps, warmup_steps + 1)
    return LinearSchedule(settings.learning_rate, warmup_steps, total_steps)
