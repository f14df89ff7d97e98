"""The optimizer and the learning-rate schedule of a recipe. Knows no model."""

import keras

from tfformer.config import Config
from tfformer.schedules import LinearSchedule, WarmupSchedule


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
        optimizer = keras.optimizers.Muon(weight_decay=decay, **adam, **shared)
    elif settings.optimizer == "adamw":
        optimizer = keras.optimizers.AdamW(beta_1=0.9, beta_2=0.98, weight_decay=settings.weight_decay, **shared)
    else:
        optimizer = keras.optimizers.Adam(beta_1=0.9, beta_2=0.98, **shared)
    optimizer.exclude_from_weight_decay(var_names=["bias", "gamma", "beta"])
    return optimizer


def learning_rate(config: Config) -> float | WarmupSchedule | LinearSchedule:
    """By updates; Keras counts steps, of which `accumulate_steps` make an update."""
    settings, d_model = config.training, config.model.d_model
    if settings.schedule == "plateau":
        return settings.learning_rate
    warmup_steps = settings.warmup_steps * settings.accumulate_steps
    if settings.schedule == "linear":
        return LinearSchedule(settings.learning_rate, warmup_steps, settings.total_steps * settings.accumulate_steps)
    if settings.schedule == "inverse_sqrt":
        return WarmupSchedule.with_peak(settings.learning_rate, d_model, warmup_steps)
    return WarmupSchedule(d_model, warmup_steps, settings.learning_rate_scale * settings.accumulate_steps**0.5)
