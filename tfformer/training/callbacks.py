"""Callbacks of `model.fit` that count the steps, report, stop, and save what to resume from."""

import math
import time
from collections.abc import Callable
from typing import Any

import keras
import numpy as np

from tfformer.config import Config
from tfformer.run_directory import Run
from tfformer.training.early_stopping import History, is_over, is_validated
from tfformer.training.multi_worker import Workers

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

    New epochs are appended to `history`. With several workers, only the chief writes, and all use
    its clock and its validations.
    """

    def __init__(
        self,
        run: Run,
        config: Config,
        history: History,
        *,
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
