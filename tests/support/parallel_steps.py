"""Fifty training steps on made-up batches in a separate process: losses and weights."""

from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

import tfformer
from tfformer.config import Config
from tfformer.model import data_parallel
from tfformer.training.multi_worker import Workers, workers_of
from tfformer.training.optimizer import new_optimizer

STEPS = 50
COUNTS = (1, 3)  # of devices
SHAPE = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}


def batches() -> Iterator[tuple]:
    """Batches of 1 to 12 rows and 3 to 8 tokens, with padding, for a language model."""
    random = np.random.default_rng(1)
    while True:
        rows, length = random.integers(1, 13), random.integers(3, 9)
        labels = random.integers(4, 19, size=(rows, length)).astype(np.int32)
        labels[np.arange(length) >= random.integers(2, length + 1, size=(rows, 1))] = 0
        target = np.pad(labels[:, :-1], [(0, 0), (1, 0)], constant_values=2) * (labels > 0)
        yield target.astype(np.int32), labels, (labels > 0).astype(np.float32)


def config(optimizer: str, strategy: str) -> Config:
    training = {"optimizer": optimizer, "schedule": "inverse_sqrt", "learning_rate": 0.003}
    together = {"accumulate_steps": 2, "clip_norm": 0.5, "ema_momentum": 0.9, "warmup_steps": 10}
    return Config.from_dict({"training": training | together | {"strategy": strategy}})


def trained(optimizer: str, workers: Workers) -> dict[str, np.ndarray]:
    """Return the loss of each step, the weights and their averages, and the traced shards."""
    traced, shard = [], data_parallel._shard
    keras.utils.set_random_seed(1)
    model = tfformer.LanguageModel(19, norm="pre", use_bias=False, **SHAPE)
    inner = new_optimizer(config(optimizer, "one_device"), epoch_steps=10)
    model.compile(
        keras.optimizers.LossScaleOptimizer(inner),
        tfformer.SmoothedCrossEntropy(0.1),
        jit_compile=False,
    )
    model.optimizer.build(model.trainable_variables)
    model.devices = workers.devices
    model.shards = len(workers.devices)
    model.workers = workers if workers.count > 1 else None
    data_parallel._shard = lambda *given: traced.append(given[1]) or shard(*given)
    ids, weights = tf.TensorSpec([None, None], tf.int32), tf.TensorSpec([None, None], tf.float32)
    losses = Losses()
    model.fit(
        tf.data.Dataset.from_generator(batches, output_signature=(ids, ids, weights)),
        steps_per_epoch=STEPS,
        callbacks=[losses],
        verbose=0,
    )
    data_parallel._shard = shard
    averages = inner._model_variables_moving_average
    arrays = [np.ravel(variable) for variable in [*model.trainable_variables, *averages]]
    return {
        "losses": np.array(losses.of_steps),
        "weights": np.concatenate(arrays),
        "traced": np.array(len(traced)),
    }


class Losses(keras.callbacks.Callback):
    """Records the loss of each step; Keras itself reports only the mean so far."""

    def __init__(self) -> None:
        super().__init__()
        self.of_steps: list[float] = []

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self.of_steps.append((logs or {})["loss"])
        self.model.reset_metrics()


def main(file: Path, layout: str, optimizer: str) -> None:
    """Train, and save the losses and the weights.

    Args:
        file: The file for the arrays.
        layout: "devices" for one, then several logical CPUs, or "workers" for a worker from
            TF_CONFIG.
        optimizer: The name of the optimizer.
    """
    if layout == "workers":
        runs = {2: workers_of(config(optimizer, "multi_worker"))}
    else:
        processor = tf.config.list_physical_devices("CPU")[0]
        logical = [tf.config.LogicalDeviceConfiguration()] * max(COUNTS)
        tf.config.set_logical_device_configuration(processor, logical)
        devices = workers_of(config(optimizer, "mirrored")).devices
        runs = {count: Workers(devices[:count]) for count in COUNTS}
    results = {}
    for count, workers in runs.items():
        arrays = trained(optimizer, workers)
        results |= {f"{count}_{key}": array for key, array in arrays.items()}
    np.savez(file, **results)
