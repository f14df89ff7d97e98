"""Validation: the figures of a model, and the weights that are kept by them."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.batches import Batches
from tfformer.data.sources import Row
from tfformer.inference.text_models import TEXT_MODELS
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.run_directory import Run, Tokenizers
from tfformer.training.history import NOT_VALIDATED, quality


class Validation(keras.callbacks.Callback):
    """Measures loss and quality on the validation text, and saves the best weights.

    The model is measured in the dtype of the training. `val_loss` is in nats per token.

    Args:
        run: Stores the weights and TensorBoard's samples.
        config: The recipe.
        tokenizers: The run's tokenizers.
        valid: The validation text as batches, for the loss.
        rows: The same text, for the quality.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        tokenizers: Tokenizers,
        valid: Batches,
        rows: Sequence[Row],
    ) -> None:
        super().__init__()
        self.run = run
        self.config = config
        self.tokenizers = tokenizers
        self.valid = valid
        self.rows = rows

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Build a second model for the weights to measure, as training goes on."""
        settings = self.config.training
        self.snapshot = type(self.model).from_config(self.model.get_config())
        self.snapshot.compile(
            None, SmoothedCrossEntropy(settings.label_smoothing), jit_compile=settings.jit_compile
        )
        text_model = TEXT_MODELS[self.config.model.architecture]
        self.measured = text_model.for_recipe(self.snapshot, self.tokenizers, self.config)
        self.writer = tf.summary.create_file_writer(str(self.run.tensorboard / "samples"))
        self.best = max(map(quality, self.run.history()), default=NOT_VALIDATED)

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Add the figures to `logs`, every few epochs and at the end; Keras prints them."""
        logs = {} if logs is None else logs
        settings = self.config.training
        is_last = self.model.stop_training or epoch + 1 == settings.epochs
        if (epoch + 1) % settings.validate_every and not is_last:
            return
        self._take_snapshot()
        logs |= self._figures(epoch)
        if quality(logs) > self.best:
            self.best = quality(logs)
            self.run.save_weights(self.snapshot)

    def _take_snapshot(self) -> None:
        """Copy the weights, or their moving average, into the second model."""
        self.snapshot.set_weights(self.model.get_weights())
        self.model.optimizer.finalize_variable_values(self.snapshot.trainable_variables)

    def _figures(self, epoch: int) -> dict[str, float]:
        loss = self.snapshot.evaluate(
            self.valid.dataset(), steps=self.valid.steps_per_epoch, verbose=0
        )
        measured = self.measured.measure(self.rows, self.config)
        with self.writer.as_default():
            tf.summary.text("samples", measured.samples, step=epoch)
        return {"val_loss": loss} | measured.figures
