"""One update from several shards of a batch: in threads, on devices, in processes."""

import warnings
from collections.abc import Sequence
from typing import Any, Protocol

import keras
import tensorflow as tf

from tfformer.argument_checks import require_size
from tfformer.runtime.tracing import traced

Batch = tuple[Any, tf.Tensor, tf.Tensor]  # inputs, labels and sample weights
SEED = "seed_generator_state"  # variable name in each `keras.random.SeedGenerator`


class ProcessGroup(Protocol):
    """Processes that train one model together, each on different shards of a batch."""

    number: int  # the number of this process, from 0
    count: int  # the number of processes

    def sum(self, tensors: list[tf.Tensor]) -> list[tf.Tensor]:
        """Return each tensor's sum over all processes; every process gets the same sums."""


class ShardedModel(keras.Model):
    """A `keras.Model` that can train on the shards of a batch in parallel.

    TensorFlow runs independent operations in parallel. Two shards of equal size keep two cores
    busy, whereas a single chain of operations splits every small operation between the cores and
    waits for both. One thread per operation works best:
    `tf.config.threading.set_intra_op_parallelism_threads(1)`. With several devices, each step
    copies the weights to all of them and sums their gradients on the first. Several processes
    receive the same batch, train on different shards of it and sum their gradients. The update
    equals that of the whole batch if the loss is a mean weighted by the sample weights, such as
    `SmoothedCrossEntropy`.

    Attributes:
        shards: The number of shards of this process, at least 1. With one shard in one process, and
            a loss that is not a weighted mean, the step is Keras' own.
        devices: The devices to which shards are assigned in turn; the first device stores the
            weights. "" leaves the choice to TensorFlow.
        workers: The processes that train the model together; None for a single process.
        compiles_shards: Whether XLA compiles the work of each shard for its device. Keras'
            `jit_compile` compiles the whole step, which then runs on one device.
    """

    devices: Sequence[str] = ("",)
    workers: ProcessGroup | None = None
    compiles_shards: bool = False
    _shards: int = 1

    @property
    def shards(self) -> int:
        """The number of shards of this process."""
        return self._shards

    @shards.setter
    def shards(self, count: int) -> None:
        self._shards = require_size("shards", count)

    def train_step(self, data: tuple[Any, ...]) -> dict[str, tf.Tensor]:
        """Run Keras' training step on a batch, or a step that sums the gradients of its shards.

        Args:
            data: Inputs, labels and sample weights, with the rows on the first axis.

        Returns:
            The loss and the metrics.

        Raises:
            ValueError: There are several shards and no sample weights, or the weights do not have
                the shape of the labels.
        """
        x, labels, weights = _checked(data)
        first, count = 0, self.shards  # this process's first shard, and the number of all shards
        if self.workers is not None:
            first, count = self.workers.number * self.shards, self.workers.count * self.shards
        if count == 1 and not self._loss_is_mean_by(weights):
            return super().train_step(data)
        if weights is None:
            raise ValueError(
                f"shards={count} needs sample weights (B, T): 1 for tokens, 0 for padding"
            )
        weights = tf.cast(weights, keras.config.floatx())  # weights may be boolean
        total = tf.reduce_sum(weights)
        batch = x, labels, weights
        shards = [batch]
        if count > 1:
            shards = [_shard(batch, first + n, count) for n in range(self.shards)]
        loss, gradients = self._summed_loss_and_gradients(shards, total)
        if gradients:
            self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        else:
            warnings.warn("the model has no trainable weights", stacklevel=2)
        self._loss_tracker.update_state(loss, sample_weight=total)
        return self.get_metrics_result()

    def test_step(self, data: tuple[Any, ...]) -> dict[str, tf.Tensor]:
        """Run Keras' test step, but weight a batch's mean loss by its sum of sample weights."""
        x, labels, weights = _checked(data)
        if not self._loss_is_mean_by(weights):
            return super().test_step(data)
        predicted = self(x, training=False)
        loss = self.compute_loss(x, labels, predicted, weights, training=False)
        total = tf.reduce_sum(tf.cast(weights, tf.float32))
        self._loss_tracker.update_state(loss, sample_weight=total)
        return self.compute_metrics(x, labels, predicted, weights)

    def _loss_is_mean_by(self, weights: tf.Tensor | None) -> bool:
        """Return whether to average losses by the sums of the sample weights.

        Keras weights each batch by its number of rows, so a mean over tokens would depend on the
        batch size. Under a distribution strategy, Keras' average is kept, because it takes the
        replicas into account.
        """
        reduction = getattr(self.loss, "reduction", None)
        is_mean = weights is not None and reduction == "mean_with_sample_weight"
        return is_mean and not tf.distribute.has_strategy()

    def _summed_loss_and_gradients(
        self, shards: list[Batch], total: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return the loss and the gradients of the whole batch, given this process's shards.

        `total` is the sum of the batch's sample weights.
        """
        weights = [tf.convert_to_tensor(weight) for weight in self.trainable_variables]
        worker = self.workers.number if self.workers else 0
        state = self._with_moved_seeds(self.non_trainable_variables, worker)
        scale = self.optimizer.scale_loss(tf.ones(()))
        process = self._loss_and_gradients
        if self.compiles_shards:
            process = traced(process, jit_compile=True)
        results = []
        for number, shard in enumerate(shards):
            with tf.device(self.devices[number % len(self.devices)]):
                result, state = process(shard, total, scale, weights, state)
            results.append(result)
        state = self._with_moved_seeds(state, -worker)  # the same in all processes
        for variable, value in zip(self.non_trainable_variables, state, strict=True):
            variable.assign(value)
        with tf.device(self.devices[0]):
            sums = [tf.add_n(of_shards) for of_shards in zip(*results, strict=True)]
            loss, *gradients = self.workers.sum(sums) if self.workers else sums
        return loss, gradients

    def _with_moved_seeds(self, state: Sequence[tf.Tensor], distance: int) -> list[tf.Tensor]:
        """Return the non-trainable variables' values, with each seed advanced by `distance`.

        Dropout then differs between processes, as it does between shards.
        """
        values = zip(self.non_trainable_variables, map(tf.convert_to_tensor, state), strict=True)
        return [
            value + tf.constant([distance, 0], value.dtype) if variable.name == SEED else value
            for variable, value in values
        ]

    def _loss_and_gradients(
        self,
        shard: Batch,
        total: tf.Tensor,
        scale: tf.Tensor,
        weights: list[tf.Tensor],
        state: list[tf.Tensor],
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Process a shard with copies of the weights, on the current device.

        `weights` and `state` are the values of the trainable and the non-trainable variables. The
        loss is multiplied by `scale` before it is differentiated.

        Returns:
            The shard's share of the loss, its gradients, and the state after the shard.
        """
        x, labels, sample_weights = shard
        copies = [tf.identity(weight) for weight in weights]
        variables = self.trainable_variables + self.non_trainable_variables
        values = zip(variables, [*copies, *state], strict=True)
        with tf.GradientTape() as tape:
            tape.watch(copies)
            # In one scope, the loss includes the losses that the call adds, and regularisers read
            # the copies, whose gradients are taken.
            with keras.StatelessScope(values, collect_losses=True) as scope:
                predicted = self(x, training=True)
                mean = self.compute_loss(x, labels, predicted, sample_weights, training=True)
            share = tf.math.divide_no_nan(tf.reduce_sum(sample_weights), total)
            loss = tf.math.multiply_no_nan(mean, share)  # a mean over no rows may be NaN
            scaled = loss * tf.cast(scale, loss.dtype)
        for variable in self.metrics_variables:  # the variables that `compute_loss` has updated
            if (value := scope.get_current_value(variable)) is not None:
                variable.assign(value)
        if self.metrics != [self._loss_tracker]:
            self.compute_metrics(x, labels, predicted, sample_weights)
        state = [scope.get_current_value(variable) for variable in self.non_trainable_variables]
        return [loss, *tape.gradient(scaled, copies)], state


def _checked(data: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """Return inputs, labels and sample weights; ValueError unless weights are per token."""
    x, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
    if weights is not None and len(weights.shape) < len(labels.shape):
        raise ValueError(
            f"sample weights have the shape {tuple(weights.shape)}, but must contain one weight "
            f"per token, like the labels {tuple(labels.shape)}; class_weight creates one weight "
            "per row, so omit it"
        )
    return x, labels, weights


def _shard(batch: Batch, number: int, shards: int) -> Batch:
    """Return the rows of shard `number`; none if the batch has too few rows."""

    def rows_of_shard(rows: tf.Tensor) -> tf.Tensor:
        count = tf.shape(rows)[0]
        return rows[count * number // shards : count * (number + 1) // shards]

    return tf.nest.map_structure(rows_of_shard, batch)
