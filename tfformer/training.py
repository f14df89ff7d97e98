"""From a recipe to a run directory: text, vocabulary, compile, `model.fit`, validation, resume. Knows no search."""

import dataclasses
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from tfformer import evaluation, tokenizers
from tfformer.checkpoints import RunDirectory, Tokenizers
from tfformer.config import Config, DataConfig
from tfformer.data import Batches, SentencePair, encode_pairs, read_pairs
from tfformer.losses import SmoothedCrossEntropy
from tfformer.schedules import WarmupSchedule
from tfformer.tokenizers import Tokenizer
from tfformer.transformer import Transformer
from tfformer.translator import Translator

SAMPLES = 4  # translations shown after each validation
MAY_CHANGE_ON_RESUME = ("epochs", "max_minutes", "patience")

Report = Callable[[str], None]


class TrainingDiverged(ValueError):
    """The loss is no longer a number."""


def train(
    config: Config,
    run_dir: str | Path,
    resume: bool = False,
    init_from: str | Path | None = None,
    report: Report = print,
) -> dict:
    """Train as `config` says, and return what the run's result.json then holds.

    `resume` goes on with an interrupted run, with the losses that it would have had. `init_from` starts from another
    run's vocabulary and best weights. Raises ValueError, FileNotFoundError or FileExistsError for what a person can put
    right, before anything is written.
    """
    run, origin = _open_runs(config, run_dir, resume, init_from)
    if origin:
        config = dataclasses.replace(config, tokenizer=origin.config().tokenizer)
    keras.utils.set_random_seed(config.training.seed)
    text = Text.read(config, origin.tokenizers() if origin else None, report)
    model = _compiled_model(config, text.tokenizers)
    if resume:
        history = _resumed_history(run, config, model, text)
    else:
        history = []
        if origin:
            model.set_weights(origin.load_model(text.tokenizers).get_weights())
    run.create(config, text.tokenizers, text.train.pairs.digest)
    run.save_resume_state(model, history)
    report(f"{model.count_params():,} parameters; writing to {run.path}")
    if not _is_over(config, history):
        _fit(model, run, config, text, history, report)
    result = _result(history)
    run.finish(result)
    return result


def _resumed_history(run: RunDirectory, config: Config, model: Transformer, text: "Text") -> list[dict]:
    """Put the run's state into the model; refuse what would not be the same run, or would end it without a result."""
    run.check_text(text.train.pairs.digest)
    history = run.load_resume_state(model)
    if _is_over(config, history) and not any("val_bleu" in epoch for epoch in history):
        raise ValueError(f"the recipe ends {run.path} before its first validation; give it more epochs or minutes")
    return history


def _open_runs(config: Config, run_dir, resume: bool, init_from) -> tuple[RunDirectory, RunDirectory | None]:
    """The run to write, and the one whose vocabulary (and weights) it begins with."""
    if resume and init_from:
        raise ValueError("--resume goes on with a run as it began; leave out --init-from")
    if resume:
        run = RunDirectory.open(run_dir)
        _check_same_run(config, run.config())
        return run, run
    run = RunDirectory(run_dir)
    run.check_free()
    if init_from is None:
        return run, None
    origin = RunDirectory.open(init_from)
    if dataclasses.replace(origin.config().model, dropout=config.model.dropout) != config.model:
        raise ValueError(
            f"the recipe's model is not that of {init_from}; copy the section 'model' of its config.json "
            "(only dropout may differ)"
        )
    return run, origin


def _check_same_run(config: Config, before: Config) -> None:
    """A resumed run may be made longer; anything else would make it another run."""
    for section, values in before.to_dict().items():
        for key, old in values.items():
            new = config.to_dict()[section][key]
            if new != old and not (section == "training" and key in MAY_CHANGE_ON_RESUME):
                raise ValueError(
                    f"--resume cannot change {section}.{key} from {old!r} to {new!r}; only "
                    f"{', '.join('training.' + name for name in MAY_CHANGE_ON_RESUME)} may change"
                )


@dataclass(frozen=True)
class Text:
    """The training and validation text of a run, encoded, with its vocabularies."""

    tokenizers: Tokenizers
    train: Batches
    valid: Batches
    valid_pairs: list[SentencePair]

    @classmethod
    def read(cls, config: Config, vocabularies: Tokenizers | None, report: Report) -> "Text":
        """Read, train the vocabularies unless there are some, encode; everything dropped is counted and reported."""
        data = config.data
        valid_pairs = list(_read(data, data.valid, "valid"))
        if vocabularies is None:
            report(f"training the vocabulary on {data.train}")
            vocabularies = _train_tokenizers(config)
        train = _batches(config, "train", _read(data, data.train, "train"), vocabularies, report)
        valid = _batches(config, "valid", valid_pairs, vocabularies, report)
        return cls(vocabularies, train, valid, valid_pairs)


def _read(data: DataConfig, source: str | list[str], role: str) -> Iterator[SentencePair]:
    if not source:
        raise ValueError(f"the recipe names no data.{role}; give two files, FILE.tsv, tfds:NAME or phrasebook:SPLIT")
    languages = tuple(data.languages) if data.languages else None
    split = {"train": "train", "valid": "validation"}[role]
    return read_pairs(source, folder=data.folder, languages=languages, split=split)


def _train_tokenizers(config: Config) -> Tokenizers:
    settings = config.tokenizer

    def trained(sentences: Iterator[str]) -> Tokenizer:
        return Tokenizer(
            tokenizers.train(
                sentences,
                settings.vocab_size,
                settings.model_type,
                character_coverage=settings.character_coverage,
            )
        )

    def side(number: int) -> Iterator[str]:
        return (pair[number] for pair in _read(config.data, config.data.train, "train"))

    if settings.shared:
        both = trained(itertools.chain.from_iterable(_read(config.data, config.data.train, "train")))
        return Tokenizers(both, both)
    return Tokenizers(trained(side(0)), trained(side(1)))


def _batches(config: Config, role: str, pairs, vocabularies: Tokenizers, report: Report) -> Batches:
    def on_progress(pairs_done: int) -> None:
        if sys.stdout.isatty():
            print(f"{role}: {pairs_done:,} pairs encoded", end="\r", flush=True)

    encoded = encode_pairs(pairs, vocabularies.source, vocabularies.target, config.data.max_length, on_progress)
    batches = Batches(encoded, config.data.batch_tokens, config.training.seed)
    report(f"{role}: {encoded.report()}; {batches.report()}")
    return batches


def _compiled_model(config: Config, vocabularies: Tokenizers) -> Transformer:
    settings = config.training
    model = Transformer(
        vocabularies.source.vocab_size, vocabularies.target.vocab_size, dtype=settings.dtype, **vars(config.model)
    )
    model.compile(
        optimizer=_optimizer(config),
        loss=SmoothedCrossEntropy(settings.label_smoothing),
        jit_compile=settings.jit_compile,
    )
    model.optimizer.build(model.trainable_variables)
    return model


def _optimizer(config: Config) -> keras.optimizers.Optimizer:
    """Adam(0.9, 0.98, 1e-9) as in section 5.3, or AdamW; Keras clips, accumulates and averages.

    Where Keras accumulates, it counts and averages at each of the accumulated steps; the moving average is told so.
    """
    settings = config.training
    accumulate = settings.accumulate_steps
    kind = {"adam": keras.optimizers.Adam, "adamw": keras.optimizers.AdamW}[settings.optimizer]
    return kind(
        learning_rate(config),
        beta_1=0.9,
        beta_2=0.98,
        epsilon=1e-9,
        weight_decay=settings.weight_decay if settings.optimizer == "adamw" else None,
        global_clipnorm=settings.clip_norm,
        gradient_accumulation_steps=accumulate if accumulate > 1 else None,
        use_ema=settings.ema_momentum is not None,
        ema_momentum=(settings.ema_momentum or 0.0) ** (1 / accumulate),
    )


def learning_rate(config: Config) -> float | WarmupSchedule:
    """By updates; Keras counts steps, of which `accumulate_steps` make an update."""
    settings, d_model = config.training, config.model.d_model
    if settings.schedule == "plateau":
        return settings.learning_rate
    warmup_steps = settings.warmup_steps * settings.accumulate_steps
    if settings.schedule == "inverse_sqrt":
        return WarmupSchedule.with_peak(settings.learning_rate, d_model, warmup_steps)
    return WarmupSchedule(d_model, warmup_steps, settings.learning_rate_scale * settings.accumulate_steps**0.5)


def _fit(
    model: Transformer, run: RunDirectory, config: Config, text: Text, history: list[dict], report: Report
) -> None:
    first_step = history[-1]["step"] if history else 0
    guard = Guard(run, history)
    callbacks = [
        guard,
        Validation(run, config, text, report),
        keras.callbacks.TensorBoard(run.tensorboard, write_graph=False),
        Progress(run, config, history, guard),
    ]
    model.fit(
        text.train.dataset(first_step),
        steps_per_epoch=config.training.epoch_steps or text.train.steps_per_epoch,
        initial_epoch=len(history),
        epochs=config.training.epochs,
        callbacks=callbacks,
        shuffle=False,  # the batches already are
        verbose=1 if sys.stdout.isatty() else 2,
    )


class Guard(keras.callbacks.Callback):
    """Counts the steps; stops when the loss or a weight is no longer a number, before anything is kept."""

    def __init__(self, run: RunDirectory, history: list[dict]):
        super().__init__()
        self.run = run
        self.step = history[-1]["step"] if history else 0

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self.step += 1
        self._check(math.isfinite(logs["loss"]), f"the loss is {logs['loss']}")

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        finite = all(np.isfinite(weight).all() for weight in self.model.get_weights())
        self._check(finite, "a weight is not a number")

    def _check(self, holds: bool, what: str) -> None:
        if not holds:
            raise TrainingDiverged(
                f"{what} at step {self.step}; {self.run.path} keeps its last good checkpoint: lower the learning rate, "
                "lengthen the warmup or set training.clip_norm"
            )


class Validation(keras.callbacks.Callback):
    """Loss, BLEU and chrF on the validation text, really decoded (greedily); keeps the weights with the best BLEU."""

    def __init__(self, run: RunDirectory, config: Config, text: Text, report: Report):
        super().__init__()
        self.run = run
        self.config = config
        self.text = text
        self.report = report

    def on_train_begin(self, logs: dict | None = None) -> None:
        settings, vocabularies = self.config.training, self.text.tokenizers
        self.averaged = Transformer.from_config(self.model.get_config())
        self.averaged.compile(None, SmoothedCrossEntropy(settings.label_smoothing), jit_compile=settings.jit_compile)
        self.translator = Translator(self.averaged, vocabularies, self.config.decoding, self.config.data.max_length)
        self.writer = tf.summary.create_file_writer(str(self.run.tensorboard / "samples"))
        self.best = max((epoch.get("val_bleu", -1.0) for epoch in self.run.history()), default=-1.0)

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        settings = self.config.training
        is_last = self.model.stop_training or epoch + 1 == settings.epochs
        if (epoch + 1) % settings.validate_every and not is_last:
            return
        self._average()
        logs |= self._scores(epoch)
        if logs["val_bleu"] > self.best:
            self.best = logs["val_bleu"]
            self.run.save_weights(self.averaged)

    def _average(self) -> None:
        """The weights, or their moving average if the optimizer keeps one, into the model that is validated."""
        self.averaged.set_weights(self.model.get_weights())
        self.model.optimizer.finalize_variable_values(self.averaged.trainable_variables)

    def _scores(self, epoch: int) -> dict[str, float]:
        valid = self.text.valid
        loss = self.averaged.evaluate(valid.dataset(), steps=valid.steps_per_epoch, verbose=0)
        sources, references = (list(side) for side in zip(*self.text.valid_pairs, strict=True))
        translations = self.translator.translate(sources, beam_size=1)
        self._show(epoch, sources, translations)
        scores = evaluation.scores(translations, references)
        self.report(f" - val_loss: {loss:.4f} - val_bleu: {scores['bleu']:.2f} - val_chrf: {scores['chrf']:.2f}")
        return {"val_loss": loss, "val_bleu": scores["bleu"], "val_chrf": scores["chrf"]}

    def _show(self, epoch: int, sources: list[str], translations: list[str]) -> None:
        step = max(1, len(sources) // SAMPLES)
        rows = [f"{source}\n\n> {translation}" for source, translation in zip(sources, translations, strict=True)]
        with self.writer.as_default():
            tf.summary.text("translations", rows[::step][:SAMPLES], step=epoch)


class Progress(keras.callbacks.Callback):
    """Counts the minutes, keeps the history and the state to resume from, and decides when to stop."""

    def __init__(self, run: RunDirectory, config: Config, history: list[dict], guard: Guard):
        super().__init__()
        self.run = run
        self.config = config
        self.history = history
        self.guard = guard
        self.start = time.monotonic() - 60 * (history[-1]["minutes"] if history else 0.0)

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        if self._minutes() >= (self.config.training.max_minutes or math.inf):
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        settings, optimizer = self.config.training, self.model.optimizer
        position = {"epoch": epoch + 1, "step": self.guard.step, "minutes": self._minutes()}
        rate = {"learning_rate": float(optimizer.learning_rate)}
        self.history.append(position | rate | {name: float(value) for name, value in logs.items()})
        if settings.schedule == "plateau" and _is_on_plateau(settings.plateau_patience, self.history):
            optimizer.learning_rate = rate["learning_rate"] * settings.plateau_factor
        self.run.save_resume_state(self.model, self.history)
        if "val_bleu" in logs and _is_over(self.config, self.history):
            self.model.stop_training = True

    def _minutes(self) -> float:
        return (time.monotonic() - self.start) / 60


def _validations_since_best(history: list[dict]) -> int:
    bleus = [epoch["val_bleu"] for epoch in history if "val_bleu" in epoch]
    return len(bleus) - 1 - bleus.index(max(bleus)) if bleus else 0


def _is_on_plateau(patience: int, history: list[dict]) -> bool:
    """Another `patience` validations have passed without a better BLEU."""
    since = _validations_since_best(history)
    return "val_bleu" in history[-1] and since > 0 and since % patience == 0


def _is_over(config: Config, history: list[dict]) -> bool:
    """All epochs are done, the minutes are used up or patience has run out."""
    if not history:
        return False
    settings, last = config.training, history[-1]
    return (
        last["epoch"] >= settings.epochs
        or last["minutes"] >= (settings.max_minutes or math.inf)
        or _validations_since_best(history) >= (settings.patience or math.inf)
    )


def _result(history: list[dict]) -> dict:
    """What result.json says: how long it took, and the epoch whose weights were kept."""
    best = max(history, key=lambda epoch: epoch.get("val_bleu", -1.0))
    last = history[-1]
    return {
        "epochs": last["epoch"],
        "steps": last["step"],
        "minutes": round(last["minutes"], 2),
        "best_epoch": best["epoch"],
        "val_bleu": round(best["val_bleu"], 2),
        "val_chrf": round(best["val_chrf"], 2),
    }
