"""One update from several shards of a batch, processed in parallel."""

import keras
import tensorflow as tf


class ShardedModel(keras.Model):
    """A `keras.Model` that can train on the shards of a batch in parallel.

    TensorFlow runs independent operations in parallel. So two shards of equally many rows keep two
    cores busy, where a single chain of operations splits every small operation between the cores
    and waits for both halves. Best with one thread per operation:
    `tf.config.threading.set_intra_op_parallelism_threads(1)`. The update is that of the whole
    batch, for a loss that is a mean by sample weights: `SmoothedCrossEntropy`, but not
    `RDropCrossEntropy`, which compares rows.

    Attributes:
        shards: The number of shards; 1 is Keras' own step.
    """

    shards: int = 1

    def train_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """Take Keras' step on a batch, or one by the sum of its shards' gradients.

        Args:
            data: Inputs, labels and sample weights, whose first axis is the rows.

        Returns:
            The loss and the metrics.

        Raises:
            ValueError: If there are several shards and no sample weights.
        """
        x, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        if self.shards == 1 and not self._loss_is_mean_by(weights):
            return super().train_step(data)
        if weights is None:
            raise ValueError(
                f"shards={self.shards} average their losses by sample weights; give one for each "
                "token"
            )
        weights = tf.cast(weights, tf.float32)  # they may be boolean
        total = tf.reduce_sum(weights)
        batch = x, labels, weights
        shards = [batch]
        if self.shards > 1:
            shards = [_shard(batch, n, self.shards) for n in range(self.shards)]
        results = [self._loss_and_gradients(shard, total) for shard in shards]
        losses, gradients = zip(*results, strict=True)
        sums = [tf.add_n(of_weight) for of_weight in zip(*gradients, strict=True)]
        self.optimizer.apply_gradients(zip(sums, self.trainable_weights, strict=True))
        self._loss_tracker.update_state(tf.add_n(losses), sample_weight=total)
        return self.get_metrics_result()

    def test_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """Take Keras' step, but weight a mean by sample weights by their sum."""
        x, labels, weights = keras.utils.unpack_x_y_sample_weight(data)
        if not self._loss_is_mean_by(weights):
            return super().test_step(data)
        predicted = self(x, training=False)
        loss = self.compute_loss(x, labels, predicted, weights, training=False)
        total = tf.reduce_sum(tf.cast(weights, tf.float32))
        self._loss_tracker.update_state(loss, sample_weight=total)
        return self.compute_metrics(x, labels, predicted, weights)

    def _loss_is_mean_by(self, weights: tf.Tensor | None) -> bool:
        """Return whether to average losses by the sums of the sample weights.

        Keras averages by the numbers of rows: a mean over tokens would then change with the size of
        the batches. Under a distribution strategy, whose replicas it counts, Keras' way stays.
        """
        reduction = getattr(self.loss, "reduction", None)
        is_mean = weights is not None and reduction == "mean_with_sample_weight"
        return is_mean and not tf.distribute.has_strategy()

    def _loss_and_gradients(
        self, shard: tuple, total: tf.Tensor
    ) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """Return a shard's share of the loss, and its gradients.

        `total` is the sum of the batch's sample weights.
        """
        x, labels, weights = shard
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            mean = self.compute_loss(x, labels, predicted, weights, training=True)
            loss = mean * tf.math.divide_no_nan(tf.reduce_sum(weights), total)
            scaled = self.optimizer.scale_loss(loss)
        self.compute_metrics(x, labels, predicted, weights)
        return loss, tape.gradient(scaled, self.trainable_weights)


def _shard(batch: tuple, number: int, shards: int) -> tuple:
    """Return the rows of shard `number`; none if the batch has too few rows."""

    def part(rows: tf.Tensor) -> tf.Tensor:
        count = tf.shape(rows)[0]
        return rows[count * number // shards : count * (number + 1) // shards]

    return tf.nest.map_structure(part, batch)
