"""One update from several shards of a batch, which are learned side by side. Knows no text, no files, no search."""

import keras
import tensorflow as tf


class ShardedModel(keras.Model):
    """A `keras.Model` whose training step may cut a batch into `shards` of as many rows, and learn them at once.

    TensorFlow runs what does not wait for one another in parallel. So two shards keep two cores busy, each with its own
    chain of operations, where one chain would split every small operation between them and wait for both halves: this
    pays off with one thread for an operation (`tf.config.threading.set_intra_op_parallelism_threads(1)`). The update is
    that of the whole batch, for a loss that is a mean by sample weights, as `SmoothedCrossEntropy` is.
    """

    shards: int = 1

    def train_step(self, data: tuple) -> dict[str, tf.Tensor]:
        """Keras' step, by the sum of the shards' gradients. ValueError without sample weights."""
        if self.shards == 1:
            return super().train_step(data)
        batch = keras.utils.unpack_x_y_sample_weight(data)
        if batch[2] is None:
            raise ValueError(f"shards={self.shards} average their losses by sample weights; give fit a weight per token")
        total = tf.reduce_sum(batch[2])
        learned = [self._learn(_shard(batch, n, self.shards), total) for n in range(self.shards)]
        losses, gradients = zip(*learned, strict=True)
        self.optimizer.apply_gradients(zip(map(tf.add_n, zip(*gradients, strict=True)), self.trainable_weights))
        self._loss_tracker.update_state(tf.add_n(losses), sample_weight=tf.shape(batch[1])[0])
        return self.get_metrics_result()

    def _learn(self, shard: tuple, total: tf.Tensor) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """A shard's share of the loss of the batch, whose weights sum to `total`, and that share's gradients."""
        x, labels, weights = shard
        with tf.GradientTape() as tape:
            predicted = self(x, training=True)
            mean = self.compute_loss(x, labels, predicted, weights, training=True)
            loss = mean * tf.math.divide_no_nan(tf.reduce_sum(weights), total)
            scaled = self.optimizer.scale_loss(loss)
        self.compute_metrics(x, labels, predicted, weights)
        return loss, tape.gradient(scaled, self.trainable_weights)


def _shard(batch: tuple, number: int, shards: int) -> tuple:
    """The rows of a batch that are its shard `number`; none, where there are fewer rows than shards."""

    def cut(rows: tf.Tensor) -> tf.Tensor:
        count = tf.shape(rows)[0]
        return rows[count * number // shards : count * (number + 1) // shards]

    return tf.nest.map_structure(cut, batch)
