"""The settings that depend on the device: precision, compilation, tokens per batch and shards."""

import tensorflow as tf

from tfformer.config import Config
from tfformer.runtime.devices import device_line, has_gpu

BFLOAT16_CAPABILITY = (8, 0)  # Ampere; earlier GPUs emulate bfloat16
GPU_BATCH_TOKENS = 24_576  # 25,000 in Vaswani et al. 2017, section 5.1; rounded to whole tiles
PROCESSOR_BATCH_TOKENS = 4_096


def settled(config: Config, before: Config | None = None) -> Config:
    """Fill in the settings that a recipe leaves open with their values for this machine.

    The values of `before`, the settled recipe of a run to resume, are kept. On a GPU, a batch is
    never divided into shards, which are for CPU cores.

    Example:
        >>> settled(Config()).training.jit_compile in (True, False)
        True
    """
    choice = before or _choice(config)
    training = {
        key: getattr(choice.training, key)
        for key in ("dtype", "jit_compile")
        if getattr(config.training, key) == "auto"
    }
    if has_gpu():
        training["shards"] = 1
    batch_tokens = config.data.batch_tokens or choice.data.batch_tokens
    return config.replace(
        training=config.training.replace(**training),
        data=config.data.replace(batch_tokens=batch_tokens),
    )


def describe(config: Config) -> str:
    """Say in one line on which device a settled recipe trains, and how."""
    settings = config.training
    compiled = "compiled by XLA" if settings.jit_compile else "not compiled"
    shards = "1 shard" if settings.shards == 1 else f"{settings.shards} shards"
    return (
        f"on {device_line()}: {settings.dtype}, {compiled}, {config.data.batch_tokens:,} tokens "
        f"per batch, {shards}"
    )


def _choice(config: Config) -> Config:
    """Return a recipe with the best values of the open settings for this machine."""
    details = tf.config.experimental.get_device_details
    gpus = tf.config.get_visible_devices("GPU")
    capabilities = [details(gpu).get("compute_capability", (0, 0)) for gpu in gpus]
    has_bfloat16 = bool(capabilities) and min(capabilities) >= BFLOAT16_CAPABILITY
    batch_tokens = GPU_BATCH_TOKENS if capabilities else PROCESSOR_BATCH_TOKENS
    training = {
        "dtype": "mixed_bfloat16" if has_bfloat16 else "float32",
        "jit_compile": bool(capabilities),
    }
    data = {
        "batch_tokens": max(batch_tokens, config.data.max_length),
        "max_length": config.data.max_length,
    }
    return Config.from_dict({"training": training, "data": data})
