"""The callback of `model.fit` that saves, after each epoch, a checkpoint to resume from."""

import time
from typing import Any

import keras

from tfformer.config import Config
from tfformer.run_directory import Run
from tfformer.training.callbacks import StepCounter
from tfformer.training.early_stopping import History, is_over, is_validated
from tfformer.training.multi_worker import Workers


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
