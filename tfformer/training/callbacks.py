"""Callbacks of `model.fit`: steps, divergence, validation, history, early stopping."""

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.batches import Batches
from tfformer.data.sources import Row
from tfformer.inference.text_models import TEXT_MODELS
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.run_directory import Run, Tokenizers
from tfformer.training.early_stopping import NOT_VALIDATED, History, is_over, is_validated, quality
from tfformer.training.workers import Workers

SECONDS_PER_LINE = 60


class TrainingDiverged(ValueError):
    """The loss or a weight is NaN or infinite."""


class StepCounter(keras.callbacks.Callback):
    """Counts the steps of the whole run, starting from a given number."""

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        self.step += 1


class StopOnNaN(keras.callbacks.Callback):
    """Stops when the loss or a weight is NaN or infinite, before anything is saved.

    It raises TrainingDiverged at the end of the batch or epoch; the message names the run and the
    step.
    """

    def __init__(self, run: Run, counter: StepCounter) -> None:
        super().__init__()
        self.run = run
        self.counter = counter

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Check the mean loss of the epoch so far."""
        loss = (logs or {})["loss"]
        self._check(math.isfinite(loss), f"the loss is {loss}")

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Check every weight."""
        finite = all(np.isfinite(weight).all() for weight in self.model.get_weights())
        self._check(finite, "a weight is NaN or infinite")

    def _check(self, holds: bool, finding: str) -> None:
        if not holds:
            raise TrainingDiverged(
                f"{finding} at step {self.counter.step}; {self.run.folder} keeps its last good "
                "checkpoint: lower the learning rate, lengthen the warmup or set training.clip_norm"
            )


class LinePerMinute(keras.callbacks.Callback):
    """Reports the step, the loss and the time left in the epoch once a minute, for a log file."""

    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self.report = report

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.epoch = epoch + 1
        self.start = self.last = time.monotonic()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Report if a minute has passed since the last line."""
        now = time.monotonic()
        if now - self.last < SECONDS_PER_LINE:
            return
        self.last = now
        done, steps = batch + 1, self.params["steps"]
        left = (now - self.start) / done * (steps - done) / 60
        self.report(
            f"epoch {self.epoch}, step {done:,} of {steps:,}: loss {(logs or {})['loss']:.4f}, "
            f"{left:.0f} min left"
        )


class HistoryAndResume(keras.callbacks.Callback):
    """Saves the history and the state to resume from, and decides when to stop.

    New epochs are appended to `history`. With several workers, only the first writes; its clock and
    its validations count.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        history: History,
        counter: StepCounter,
        workers: Workers,
    ) -> None:
        super().__init__()
        self.run = run
        self.config = config
        self.history = history
        self.counter = counter
        self.workers = workers
        self.start = time.monotonic() - 60 * (history[-1]["minutes"] if history else 0.0)

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        """Stop when the minutes are used up."""
        limit = self.config.training.max_minutes
        if limit is not None and self.workers.first(self._minutes() >= limit):
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        """Add the epoch to the history, save the state, and stop if the run is over."""
        logs = {} if logs is None else logs
        rate = float(self.model.optimizer.learning_rate)
        progress = {"epoch": epoch + 1, "step": self.counter.step, "minutes": self._minutes()}
        figures = {name: float(value) for name, value in logs.items()}
        self.history.append(self.workers.first(progress | {"learning_rate": rate} | figures))
        if self.workers.is_chief:
            self.run.save_resume_state(self.model, self.history)
        if is_validated(self.history[-1]) and is_over(self.config, self.history):
            self.model.stop_training = True

    def _minutes(self) -> float:
        return (time.monotonic() - self.start) / 60


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
        self._take_snapshot()
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
