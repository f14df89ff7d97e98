"""From a recipe to a run directory: text, vocabulary, `model.fit`, resume."""

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfformer.config import Config, TrainingConfig, corpora_of
from tfformer.data.augmentation import augmented
from tfformer.data.batches import Batches
from tfformer.data.case_variants import case_families
from tfformer.data.encoding import EncodedText, encode_corpora, sampled_texts
from tfformer.data.fingerprints import text_fingerprint
from tfformer.data.mixture import shares_by_temperature
from tfformer.data.piece_tokenizer import AnyTokenizer
from tfformer.data.sources import Row, source_files
from tfformer.data.text_cache import cached_text
from tfformer.data.tokenizers import Tokenizer
from tfformer.files import check_regular
from tfformer.model.losses import RDropCrossEntropy, SmoothedCrossEntropy
from tfformer.run_directory import (
    MODEL_KINDS,
    Model,
    Run,
    Tokenizers,
    check_free,
    locked_for_new_run,
    locked_for_resume,
    new_model,
)
from tfformer.training.optimizer import new_optimizer
from tfformer.training.validation import (
    Validation,
    best_epoch,
    is_validated,
    validations_since_best,
)
from tfformer.training.workers import Workers, workers_of

MAY_CHANGE_ON_RESUME = (
    "training.epochs",
    "training.max_minutes",
    "training.patience",
    "training.wait_minutes",
    "data.cache",  # whose ids are compared
)
OUTSIDE_THE_ENCODER = (
    "architecture",
    "num_decoder_layers",
    "num_decoder_heads",
    "decoder_d_ff",
    "zero_start",
    "tie_embeddings",
    "output_bias",
)

History = list[dict[str, Any]]  # an epoch each, as a line of metrics.jsonl
Report = Callable[[str], None]


class TrainingDiverged(ValueError):
    """The loss or a weight is NaN or infinite."""


def train(
    config: Config,
    run_dir: str | Path,
    resume: bool = False,
    init_from: str | Path | None = None,
    report: Report = print,
) -> dict[str, Any]:
    """Train a model and write its run directory.

    With `resume` an interrupted run continues, and has the same losses as without the interruption
    (but for `data.sampling_alpha`, which draws other segmentations in another process). A folder
    that another training is writing is refused; `folders.Folder.held` says what is promised where.

    Args:
        config: The recipe.
        run_dir: A folder that is absent or empty; with `resume` the folder of the run. It may be
            an address in an object store, such as "s3://bucket/runs/mine".
        resume: Continue the run in `run_dir`. Only `MAY_CHANGE_ON_RESUME` may change.
        init_from: A run that gives its vocabulary and its best weights. The weights of a language
            model initialise the encoder of a translator.
        report: Called with each line about the text, the model and the validations.

    Returns:
        The content of the run's result.json: epochs, steps, minutes, and the best validation's
        figures.

    Raises:
        ValueError: The recipe does not fit the text, the other run or the run to be resumed.
            Nothing has been written then.
        FileNotFoundError: There is no such run, or no such text.
        FileExistsError: Something else lies at `run_dir`.
        BlockingIOError: Another training holds the folder.
        TrainingDiverged: The loss or a weight is NaN or infinite; the last good checkpoint is kept.

    Example:
        >>> from tfformer.config import find_recipe, read_recipe
        >>> config = read_recipe(find_recipe("phrasebook"), ["training.epochs=1"])
        >>> result = train(config, "runs/phrasebook")  # doctest: +SKIP
        >>> train(Config(), "runs/empty")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: the recipe names no data.valid; give a file for each side, ...
    """
    if resume and init_from:
        raise ValueError("--resume goes on with a run as it began; leave out --init-from")
    if config.training.shards > 1:
        _limit_to_one_thread_per_operation()  # each shard has a thread of its own
    workers = workers_of(config)
    with workers.explained():
        lead_or_follow = _lead if workers.is_chief else _follow
        return lead_or_follow(config, run_dir, resume, init_from, report, workers)


def _lead(
    config: Config,
    run_dir: str | Path,
    resume: bool,
    init_from: str | Path | None,
    report: Report,
    workers: Workers,
) -> dict[str, Any]:
    """Train as `train` does, in the process that holds and writes the run directory."""
    if resume:
        with locked_for_resume(run_dir) as before:
            _check_same_run(config, before.config)
            return _train(config, run_dir, report, workers, before=before)
    check_free(run_dir)
    initial = _initial_run(config, init_from)
    with locked_for_new_run(run_dir):
        return _train(config, run_dir, report, workers, initial=initial)


def _follow(
    config: Config,
    run_dir: str | Path,
    resume: bool,
    init_from: str | Path | None,
    report: Report,
    workers: Workers,
) -> dict[str, Any]:
    """Train as `train` does, in a process that writes nothing.

    Its reports would be the chief's once more, so they are left out.
    """
    before = Run.open(run_dir) if resume else None
    if before:
        _check_same_run(config, before.config)
    initial = _initial_run(config, init_from)
    return _train(config, run_dir, lambda line: None, workers, before, initial)


def _initial_run(config: Config, init_from: str | Path | None) -> Run | None:
    """Open the run to start from, if there is one."""
    if init_from is None:
        return None
    initial = Run.open(init_from)
    _check_fits(config, initial)
    return initial


def _train(
    config: Config,
    run_dir: str | Path,
    report: Report,
    workers: Workers,
    before: Run | None = None,
    initial: Run | None = None,
) -> dict[str, Any]:
    """Train into `run_dir`: continue the run `before`, or begin a new run.

    Args:
        config: The recipe.
        run_dir: The run directory.
        report: Called with a line of text at a time.
        workers: The processes that train; the first alone writes.
        before: The run to continue.
        initial: The run that gives a new run its vocabulary and first weights.

    Returns:
        The content of result.json.
    """
    config = _with_vocabulary_settings_of(before or initial, config)
    keras.utils.set_random_seed(config.training.seed)
    data = TrainingData.read(config, before or initial, report)
    model = _compiled_model(config, data.tokenizers, workers)
    run = Run.new(run_dir, config, data.tokenizers, data.train.text.digest)
    history: History = []
    if before:
        history = _resumed_history(before, config, model, data)
    elif initial:
        _take_weights(model, initial.load_model())
    if workers.count > 1:
        workers.check_alike(_facts(run, model, history))
    if workers.is_chief:
        if before:
            run.keep_weights(before)
        if initial and not _gives_encoder(initial, config):
            run.keep_origin(initial)
        run.save_resume_state(model, history)
        run.write(data.tokenizers)
    report(f"{model.count_params():,} parameters{workers.report()}; writing to {run.folder}")
    if not _is_over(config, history):
        _fit(model, run, config, data, history, report, workers)
    result = _result(history)
    if workers.is_chief:
        run.finish(result)
    _warn_if_bleu_is_0(result, report)
    return workers.first(result)


def _facts(run: Run, model: Model, history: History) -> dict[str, Any]:
    """Return what all workers must share before the first step."""
    state = hashlib.sha256()
    for variable in [*model.variables, *model.optimizer.variables]:
        state.update(np.ascontiguousarray(variable).data)
    return {
        "the text's digest": run.digests["text"],
        "the vocabularies' digests": [run.digests["source"], run.digests["target"]],
        "the weights' digest": state.hexdigest(),
        "epochs": len(history),
    }


def _with_vocabulary_settings_of(other: Run | None, config: Config) -> Config:
    """Return the recipe with the other run's tokenizer settings if it takes both."""
    if other is None or _gives_encoder(other, config):
        return config
    return dataclasses.replace(config, tokenizer=other.config.tokenizer)


def _limit_to_one_thread_per_operation() -> None:
    """Let each operation use one thread, unless TensorFlow runs already."""
    with contextlib.suppress(RuntimeError):  # they have started: all shards share them
        tf.config.threading.set_intra_op_parallelism_threads(1)


def _warn_if_bleu_is_0(result: dict[str, Any], report: Report) -> None:
    if result.get("val_bleu") == 0:
        report(
            "warning: the best validation has BLEU 0, so the weights were chosen by chrF; if the "
            "target is written without spaces, set data.languages or training.bleu_tokenizer=char"
        )


def _resumed_history(run: Run, config: Config, model: Model, data: "TrainingData") -> History:
    """Put the run's state into the model and return its history.

    Raises:
        ValueError: The text is another one, or the recipe ends the run without a result.
    """
    run.check_text(data.train.text.digest)
    history = run.load_resume_state(model)
    if _is_over(config, history) and not any(map(is_validated, history)):
        raise ValueError(
            f"the recipe ends {run.folder} before its first validation; give it more epochs or "
            "minutes"
        )
    return history


def _gives_encoder(initial: Run, config: Config) -> bool:
    """Return whether a language model initialises the encoder of a translator."""
    return config.model.has_encoder and not initial.config.model.has_encoder


def _check_fits(config: Config, initial: Run) -> None:
    """Raise ValueError unless the other run's weights fit into the recipe's model."""
    encoder_alone = _gives_encoder(initial, config)
    may_differ = ("dropout", *(OUTSIDE_THE_ENCODER if encoder_alone else ()))
    overrides = {name: getattr(config.model, name) for name in may_differ}
    if dataclasses.replace(initial.config.model, **overrides) != config.model:
        raise ValueError(
            f"the recipe's model is not that of {initial.folder}; copy the section 'model' of its "
            f"config.json (only {', '.join(may_differ)} may differ)"
        )
    if encoder_alone and config.tokenizer.shared:
        raise ValueError(
            f"{initial.folder} is a language model of the source, whose vocabulary is not the "
            "target's; set tokenizer.shared=false and model.tie_embeddings=output"
        )


def _take_weights(model: Model, other: Model) -> None:
    """Copy the other model's weights; a language model's go to the source side."""
    if type(other) is type(model):
        model.set_weights(other.get_weights())
    else:
        model.source_embedding.set_weights(other.embedding.get_weights())
        model.encoder.set_weights(other.stack.get_weights())


def _check_same_run(config: Config, before: Config) -> None:
    """Raise ValueError if the recipe changes more of a resumed run than its length."""
    wanted = config.to_dict()
    for section, values in before.to_dict().items():
        for key, old in values.items():
            new = wanted[section][key]
            if new != old and f"{section}.{key}" not in MAY_CHANGE_ON_RESUME:
                raise ValueError(
                    f"--resume cannot change {section}.{key} from {old!r} to {new!r}; only "
                    f"{', '.join(MAY_CHANGE_ON_RESUME)} may change"
                )


@dataclass(frozen=True)
class TrainingData:
    """The training and validation text of a run, encoded, with its tokenizers."""

    tokenizers: Tokenizers
    train: Batches
    valid: Batches
    valid_rows: list[Row]

    @classmethod
    def read(cls, config: Config, other: Run | None, report: Report) -> "TrainingData":
        """Read both texts, train the tokenizers and encode.

        Args:
            config: The recipe.
            other: A run whose tokenizers to take in place of new ones.
            report: Takes a line for each text, with the number of rows that were dropped.

        Returns:
            The text; that of the training in files, if the recipe has a cache.
        """
        valid_rows = list(_read(config, "valid"))
        if other and not _gives_encoder(other, config):
            tokenizers = other.tokenizers
        else:
            report(f"training the vocabulary on {config.data.train}")
            tokenizers = _train_tokenizers(config, other.tokenizers.target if other else None)
        train = _batches(config, "train", tokenizers, report)
        valid = _batches(config, "valid", tokenizers, report)
        return cls(tokenizers, train, valid, valid_rows)


def _read(config: Config, role: str) -> Iterator[Row]:
    """Yield the rows of the recipe's `train` or `valid` text."""
    return itertools.chain.from_iterable(_read_corpora(config, role))


def _read_corpora(config: Config, role: str) -> list[Iterator[Row]]:
    """Return the rows of each corpus of the recipe's `train` or `valid` text.

    Behind the rows of the training text stand their altered copies.
    """
    data_source, folder, languages, split = _source(config, role)
    read = MODEL_KINDS[config.model.architecture].read
    corpora = [
        read(corpus.text, folder=folder, languages=languages, split=split)
        for corpus in corpora_of(data_source)
    ]
    if role == "valid":
        return corpora
    settings = config.data.augment
    placeholders = config.tokenizer.placeholders
    return [augmented(rows, settings, config.training.seed, placeholders) for rows in corpora]


def _source(config: Config, role: str) -> tuple[Any, str, tuple[str, ...] | None, str]:
    """Return the recipe's data source, with its folder, languages and split."""
    data_source = getattr(config.data, role)
    split = "validation" if role == "valid" else "train"  # the names of TensorFlow Datasets
    if not data_source:
        raise ValueError(
            f"the recipe names no data.{role}; give a file for each side, FILE.tsv, "
            "tfds:NAME or phrasebook:SPLIT"
        )
    folder = config.data.folder
    for file in itertools.chain.from_iterable(source_files(data_source, folder)):
        check_regular(file)
    languages = tuple(config.data.languages) if config.data.languages else None
    return data_source, folder, languages, split


def _train_tokenizers(config: Config, source_tokenizer: AnyTokenizer | None = None) -> Tokenizers:
    """Train the tokenizers; the target's alone if there is a `source_tokenizer`."""
    settings = config.tokenizer

    def trained(sentences: Iterator[str], normalization: str) -> Tokenizer:
        return Tokenizer.train(
            sentences,
            settings.vocab_size,
            settings.model_type,
            normalization=normalization,
            character_coverage=settings.character_coverage,
            max_sentences=settings.max_sentences,
            symbols=settings.symbols,
            byte_fallback=settings.byte_fallback,
            case_variants=settings.case_variants,
        )

    def side(number: int) -> Iterator[str]:
        return (row[number] for row in _read(config, "train"))

    if settings.shared:
        sentences = itertools.chain.from_iterable(_read(config, "train"))
        shared = trained(sentences, settings.normalization)
        return Tokenizers(shared, shared)
    target_normalization = settings.target_normalization or settings.normalization
    return Tokenizers(
        source_tokenizer or trained(side(0), settings.normalization),
        trained(side(1), target_normalization),
    )


def _batches(config: Config, role: str, tokenizers: Tokenizers, report: Report) -> Batches:
    """Encode one text and group it into batches.

    Args:
        config: The recipe.
        role: "train" or "valid".
        tokenizers: The run's.
        report: Takes the lines about the text.

    Returns:
        The batches.
    """
    side_tokenizers = MODEL_KINDS[config.model.architecture].sides(tokenizers)
    is_training = role == "train"
    text_of_epoch = None
    if is_training and config.data.sampling_alpha is not None:
        text_of_epoch = sampled_texts(
            list(_read(config, role)),
            side_tokenizers,
            config.data.max_length,
            config.data.sampling_alpha,
            config.training.seed,
        )
    encode = _cached if is_training and config.data.cache else _encoded
    text = encode(config, role, side_tokenizers)
    shares = _shares(config, text) if is_training else None
    batches = Batches(text, config.data.batch_tokens, config.training.seed, text_of_epoch, shares)
    report(f"{role}: {text.report()}; {batches.report()}")
    if shares is not None:
        report(f"{role}: shares of an epoch {', '.join(f'{share:.1%}' for share in shares)}")
    return batches


def _encoded(config: Config, role: str, tokenizers: Sequence[AnyTokenizer]) -> EncodedText:
    """Read and encode one text into memory."""
    return encode_corpora(
        _read_corpora(config, role),
        tokenizers,
        config.data.max_length,
        functools.partial(_show_encoded, role),
    )


def _cached(config: Config, role: str, tokenizers: Sequence[AnyTokenizer]) -> EncodedText:
    """Map one text from the recipe's cache, which takes it if it has it not."""
    source = _source(config, role)
    shares = dataclasses.asdict(config.data.augment)
    altered = (shares, config.training.seed, config.tokenizer.placeholders)
    copies = altered if any(shares.values()) else None
    return cached_text(
        Path(str(config.data.cache)),
        lambda notes: {"text": text_fingerprint(*source, notes), "copies": copies},
        lambda: _read_corpora(config, role),
        tokenizers,
        config.data.max_length,
        functools.partial(_show_encoded, role),
    )


def _shares(config: Config, text: EncodedText) -> np.ndarray | None:
    """Return the share of each corpus in an epoch; None where each row comes once."""
    weights = [corpus.weight for corpus in corpora_of(config.data.train)]
    if None not in weights:
        given = np.array(weights, float)
        return given / given.sum()
    if config.data.temperature is not None:
        return shares_by_temperature(text.corpora, config.data.temperature)
    return None


def _show_encoded(role: str, rows_done: int) -> None:
    if sys.stdout.isatty():
        print(f"{role}: {rows_done:,} sentences encoded", end="\r", flush=True)


def _compiled_model(config: Config, tokenizers: Tokenizers, workers: Workers) -> Model:
    settings = config.training
    model = new_model(config.model, tokenizers, settings.dtype)
    model.compile(
        optimizer=new_optimizer(config),
        loss=_loss(settings),
        jit_compile=settings.jit_compile,
    )
    model.devices = workers.devices
    model.shards = settings.shards * len(workers.devices)
    model.workers = workers if workers.count > 1 else None
    model.optimizer.build(model.trainable_variables)
    if config.tokenizer.case_variants:
        _share_rows(model, tokenizers)
    return model


def _share_rows(model: Model, tokenizers: Tokenizers) -> None:
    """Make embeddings share what does not depend on case."""
    for name in ("source_embedding", "target_embedding", "embedding", "output_embedding"):
        if hasattr(model, name):
            tokenizer = tokenizers.source if name == "source_embedding" else tokenizers.target
            families = case_families(tokenizer.pieces(range(tokenizer.vocab_size)))
            model.optimizer.share_rows(getattr(model, name).embeddings, families)


def _loss(settings: TrainingConfig) -> SmoothedCrossEntropy:
    if settings.r_drop:
        return RDropCrossEntropy(settings.r_drop, settings.label_smoothing)
    return SmoothedCrossEntropy(settings.label_smoothing)


def _dataset(batches: Batches, first_step: int, settings: TrainingConfig) -> tf.data.Dataset:
    """Return the batches from `first_step` on; for R-Drop each one twice, (2B, ...)."""
    dataset = batches.dataset(first_step)
    if not settings.r_drop:
        return dataset
    return dataset.map(
        lambda *batch: tf.nest.map_structure(lambda rows: tf.concat([rows, rows], axis=0), batch)
    )


def _fit(
    model: Model,
    run: Run,
    config: Config,
    data: TrainingData,
    history: History,
    report: Report,
    workers: Workers,
) -> None:
    """Run `model.fit`.

    The callbacks run in this order: nothing is saved of a step with NaN, `Validation` adds its
    figures to the epoch's logs, and the last two read them.

    Args:
        model: The compiled model.
        run: The run directory that keeps the weights.
        config: The recipe.
        data: The batches and the tokenizers.
        history: The epochs that a resumed run has behind it; the new ones are added to it.
        report: Called with a line of text at a time.
        workers: The processes that train; the first one validates.
    """
    first_step = history[-1]["step"] if history else 0
    counter = StepCounter(first_step)
    callbacks = [counter, StopOnNaN(run, counter)]
    if workers.is_chief:
        callbacks += [
            Validation(run, config, data.tokenizers, data.valid, data.valid_rows, report),
            keras.callbacks.TensorBoard(run.tensorboard, write_graph=False),
        ]
    callbacks.append(HistoryAndResume(run, config, history, counter, workers))
    verbosity = 1 if sys.stdout.isatty() else 2
    model.fit(
        _dataset(data.train, first_step, config.training),
        steps_per_epoch=config.training.epoch_steps or data.train.steps_per_epoch,
        initial_epoch=len(history),
        epochs=config.training.epochs,
        callbacks=callbacks,
        shuffle=False,  # the batches already are
        verbose=verbosity if workers.is_chief else 0,
    )


class StepCounter(keras.callbacks.Callback):
    """Counts the steps of the whole run.

    Args:
        step: The number of steps so far.

    Attributes:
        step: The number of steps so far.
    """

    def __init__(self, step: int) -> None:
        super().__init__()
        self.step = step

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Count the step."""
        self.step += 1


class StopOnNaN(keras.callbacks.Callback):
    """Stops when the loss or a weight is NaN or infinite, before anything is kept.

    Args:
        run: Named in the error.
        counter: Gives the step for the error.

    Raises:
        TrainingDiverged: At the end of a batch or an epoch.
    """

    def __init__(self, run: Run, counter: StepCounter) -> None:
        super().__init__()
        self.run = run
        self.counter = counter

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Look at the mean loss of the epoch so far."""
        loss = (logs or {})["loss"]
        self._check(math.isfinite(loss), f"the loss is {loss}")

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Look at every weight."""
        finite = all(np.isfinite(weight).all() for weight in self.model.get_weights())
        self._check(finite, "a weight is NaN or infinite")

    def _check(self, holds: bool, finding: str) -> None:
        if not holds:
            raise TrainingDiverged(
                f"{finding} at step {self.counter.step}; {self.run.folder} keeps its last good "
                "checkpoint: lower the learning rate, lengthen the warmup or set training.clip_norm"
            )


class HistoryAndResume(keras.callbacks.Callback):
    """Saves the history and the state to resume from, and decides when to stop.

    It also lowers the learning rate on a plateau, before the state is saved.

    Args:
        run: Takes the state.
        config: The recipe, which says when to stop.
        history: The epochs so far; it grows.
        counter: Counts the steps.
        workers: The processes that train. The first one's clock and validations count, and it
            writes.
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

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        """Stop when the minutes are used up."""
        limit = self.config.training.max_minutes
        if limit is not None and self.workers.first(self._minutes() >= limit):
            self.model.stop_training = True

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        """Add the epoch to the history, save the state, and stop if the run is over."""
        logs = {} if logs is None else logs
        settings = self.config.training
        optimizer = self.model.optimizer
        rate = float(optimizer.learning_rate)
        progress = {"epoch": epoch + 1, "step": self.counter.step, "minutes": self._minutes()}
        figures = {name: float(value) for name, value in logs.items()}
        self.history.append(self.workers.first(progress | {"learning_rate": rate} | figures))
        if settings.schedule == "plateau" and _is_on_plateau(
            settings.plateau_patience, self.history
        ):
            optimizer.learning_rate = rate * settings.plateau_factor
        if self.workers.is_chief:
            self.run.save_resume_state(self.model, self.history)
        if is_validated(self.history[-1]) and _is_over(self.config, self.history):
            self.model.stop_training = True

    def _minutes(self) -> float:
        return (time.monotonic() - self.start) / 60


def _is_on_plateau(patience: int, history: History) -> bool:
    """Return whether another `patience` validations have passed without a better one."""
    since = validations_since_best(history)
    return is_validated(history[-1]) and since > 0 and since % patience == 0


def _is_over(config: Config, history: History) -> bool:
    """Return whether the epochs, the minutes or the patience are used up."""
    if not history:
        return False
    settings, last = config.training, history[-1]
    return (
        last["epoch"] >= settings.epochs
        or last["minutes"] >= (settings.max_minutes or math.inf)
        or validations_since_best(history) >= (settings.patience or math.inf)
    )


def _result(history: History) -> dict[str, Any]:
    """Return the content of result.json: the duration and the best figures."""
    best, last = best_epoch(history), history[-1]
    return {
        "epochs": last["epoch"],
        "steps": last["step"],
        "minutes": round(last["minutes"], 2),
        "best_epoch": best["epoch"],
    } | {name: round(value, 4) for name, value in best.items() if name.startswith("val_")}
