"""The callback of `model.fit` that validates, and saves the weights with the best score."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.batches import Batches
from tfformer.data.sources import Row
from tfformer.inference.text_model_kinds import TEXT_MODELS
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.run_directory import Run, Tokenizers
from tfformer.training.early_stopping import NOT_VALIDATED, quality


class Validation(keras.callbacks.Callback):
    """Measures loss and quality on the validation text, and saves the best weights.

    The model is measured in the dtype of the training. `val_loss` is in nats per token. `valid`
    contains the batches for the loss, `rows` the same text for BLEU and chrF or bits per byte. If
    the first validation finds that nothing was learned, `report` is called with a line that says
    so.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        tokenizers: Tokenizers,
        *,
        valid: Batches,
        rows: Sequence[Row],
        report: Callable[[str], None],
    ) -> None:
        super().__init__()
        self.run = run
        self.config = config
        self.tokenizers = tokenizers
        self.valid = valid
        self.rows = rows
        self.report = report
        self.best = max(map(quality, run.history()), default=NOT_VALIDATED)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        """Build a second model that holds the weights to measure while training continues."""
        settings = self.config.training
        self.snapshot = type(self.model).from_config(self.model.get_config())
        self.snapshot.compile(
            None, SmoothedCrossEntropy(settings.label_smoothing), jit_compile=settings.jit_compile
        )
        text_model = TEXT_MODELS[self.config.model.architecture]
        self.measured = text_model.for_recipe(self.snapshot, self.tokenizers, self.config)
        self.writer = tf.summary.create_file_writer(str(self.run.tensorboard / "samples"))

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Validate every `validate_every` epochs and after the last; save the best weights.

        The figures are added to `logs`, which Keras prints.
        """
        logs = {} if logs is None else logs
        settings = self.config.training
        is_last = self.model.stop_training or epoch + 1 == settings.epochs
        if (epoch + 1) % settings.validate_every and not is_last:
            return
        logs |= self._figures(epoch)
        if self.best == NOT_VALIDATED:
            self._compare_with_frequencies(logs["val_loss"])
        if quality(logs) > self.best:
            self.best = quality(logs)
            self.run.save_weights(self.snapshot)

    def _compare_with_frequencies(self, loss: float) -> None:
        """Warn if the loss is no better than that of a model that ignores its input."""
        labels = self.valid.text.sides[-1].ids
        least = frequency_loss(
            np.bincount(labels, minlength=self.tokenizers.target.vocab_size),
            self.config.training.label_smoothing,
        )
        if loss >= least:
            self.report(
                f"val_loss {loss:.3f} is no better than predicting tokens by frequency alone "
                f"({least:.3f}): if it does not fall soon, try the settings in docs/data.md"
            )

    def _figures(self, epoch: int) -> dict[str, float]:
        """Measure the weights, or their moving average, in the second model."""
        self.snapshot.set_weights(self.model.get_weights())
        self.model.optimizer.finalize_variable_values(self.snapshot.trainable_variables)
        steps = self.valid.steps_per_epoch
        loss = self.snapshot.evaluate(self.valid.dataset(), steps=steps, verbose=0)
        measured = self.measured.measure(self.rows, self.config)
        with self.writer.as_default():
            tf.summary.text("samples", measured.samples, step=epoch)
        return {"val_loss": loss} | measured.figures


def frequency_loss(counts: np.ndarray, label_smoothing: float) -> float:
    """Return the lowest label-smoothed loss, in nats, that a model can reach without its input.

    It is the entropy of the smoothed label distribution. `counts` (V,) is the number of times that
    each token occurs in the labels.

    Example:
        >>> round(frequency_loss(np.array([2, 2]), label_smoothing=0.0), 4)  # log 2
        0.6931
    """
    shares = (1 - label_smoothing) * counts / counts.sum() + label_smoothing / len(counts)
    likely = shares[shares > 0]
    return float(-(likely * np.log(likely)).sum())
