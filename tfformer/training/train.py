"""Train a model from a recipe: text, vocabulary, `model.fit`, resuming, run directory."""

import contextlib
import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path
from reprlib import repr as shown
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfformer.config import Config
from tfformer.data.case_variants import case_families
from tfformer.inference.evaluation import check_bleu
from tfformer.model.losses import SmoothedCrossEntropy
from tfformer.model.simcut import SimCutCrossEntropy
from tfformer.run_directory import Model, Run, locked_for_new_run, locked_for_resume, new_model
from tfformer.runtime.devices import has_gpu
from tfformer.storage.whole_files import digest_of_values
from tfformer.training.callbacks import HistoryAndResume, LinePerMinute, StepCounter, StopOnNaN
from tfformer.training.early_stopping import History, is_over, result_of
from tfformer.training.multi_worker import Workers, workers_of
from tfformer.training.optimizer import CaseSharing, new_optimizer
from tfformer.training.precision_and_batch_size import describe
from tfformer.training.resume_or_initialise import Start, start_of
from tfformer.training.training_data import Report, TrainingData
from tfformer.training.validation import Validation


def train(
    config: Config,
    run_dir: str | Path,
    resume: bool = False,
    init_from: str | Path | None = None,
    report: Report = print,
) -> dict[str, Any]:
    """Train a model and write its run directory.

    With `resume` an interrupted run continues, and has the same losses as without the interruption.
    A folder that another training run is writing to is refused; see `folders.Folder.held`.

    Args:
        config: The recipe.
        run_dir: A folder that is absent or empty; with `resume` the folder of the run. It may be
            an address in an object store, such as "s3://bucket/runs/mine".
        resume: Continue the run in `run_dir`. Only `MAY_CHANGE_ON_RESUME` may change.
        init_from: A run whose vocabulary and best weights are the starting point. The weights of a
            language model initialise the encoder of a translator.
        report: Called with each line about the text and the model; Keras prints the epochs.

    Returns:
        The content of the run's result.json: epochs, steps, minutes, and the best validation's
        figures.

    Raises:
        TypeError: `config` is not a Config.
        ValueError: The recipe does not fit the text, the other run or the run to be resumed. In
            this case, nothing has been written.
        FileNotFoundError: There is no such run, or no such text.
        FileExistsError: `run_dir` is not empty, and `resume` is False.
        BlockingIOError: Another training run has locked the folder.
        TrainingDiverged: The loss or a weight is NaN or infinite; the last good checkpoint is kept.

    Example:
        >>> import tfformer
        >>> from tfformer.config import find_recipe, read_recipe
        >>> config = read_recipe(find_recipe("phrasebook"), ["training.epochs=1"])
        >>> result = tfformer.train(config, "runs/phrasebook")  # doctest: +SKIP
        >>> tfformer.train(tfformer.Config(), "runs/empty")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: the recipe has no data.valid; set it to a file per side, ...
    """
    if not isinstance(config, Config):
        raise TypeError(
            f"config is {shown(config)}, but must be a Config; pass Config.from_dict({{...}}), or "
            "tfformer.config.read_recipe(FILE)"
        )
    if resume and init_from:
        raise ValueError(
            "--resume continues the run with its original starting point; leave out --init-from"
        )
    if config.training.shards > 1 and not has_gpu():
        with contextlib.suppress(RuntimeError):  # TensorFlow has started its threads
            tf.config.threading.set_intra_op_parallelism_threads(1)  # one thread per shard
    workers = workers_of(config)
    if not workers.is_chief:
        report = lambda line: None  # noqa: E731  the chief prints the same lines
    with workers.explained(), _held(run_dir, resume, workers) as before:
        start = start_of(config, before, init_from)
        config = start.settled(config)
        report(describe(config))
        return _train(config, run_dir, report, workers, start)


@contextlib.contextmanager
def _held(run_dir: str | Path, resume: bool, workers: Workers) -> Iterator[Run | None]:
    """Hold the run directory, if this is the chief, and yield the run to continue, if any."""
    if not workers.is_chief:
        yield Run.open(run_dir) if resume else None
    elif resume:
        with locked_for_resume(run_dir) as before:
            yield before
    else:
        with locked_for_new_run(run_dir):
            yield None


def _train(
    config: Config,
    run_dir: str | Path,
    report: Report,
    workers: Workers,
    start: Start,
) -> dict[str, Any]:
    if config.model.has_encoder:
        check_bleu(config)
    keras.utils.set_random_seed(config.training.seed)
    data = TrainingData.read(config, start, report)
    model = _compiled_model(config, data, workers)
    text_digest, valid_digest = data.train.text.digest, digest_of_values(data.valid_rows)
    run = Run.new(run_dir, config, data.tokenizers, text_digest, valid_digest)
    history = start.restore(model, run)
    if workers.count > 1:
        workers.check_alike(_facts(run, config, model, history))
    if workers.is_chief:
        start.keep_origin(run)
        run.save_resume_state(model, history)
        run.write(data.tokenizers)
    report(f"{model.count_params():,} parameters{workers.report()}; writing to {run.folder}")
    if not is_over(config, history):
        _fit(model, run, config, data, history, workers, report)
    result = result_of(history)
    if workers.is_chief:
        run.finish(result)
    if result.get("val_bleu") == 0:
        report(
            "warning: the best validation has BLEU 0, so the weights were chosen by chrF; if the "
            "target is written without spaces, set data.languages or training.bleu_tokenizer=char"
        )
    return workers.first(result)


def _compiled_model(config: Config, data: TrainingData, workers: Workers) -> Model:
    settings = config.training
    model = new_model(config.model, data.tokenizers, settings.dtype)
    optimizer = new_optimizer(config, _epoch_steps(config, data))
    alpha, smoothing = settings.simcut.alpha, settings.label_smoothing
    loss = SimCutCrossEntropy(alpha, smoothing) if alpha else SmoothedCrossEntropy(smoothing)
    model.compile(
        optimizer=optimizer,
        loss=loss,
        jit_compile=settings.jit_compile if settings.strategy == "one_device" else False,
    )
    model.compiles_shards = settings.jit_compile is True and not model.jit_compile
    model.guided_alignment = settings.guided_alignment
    model.devices = workers.devices
    model.shards = settings.shards * len(workers.devices)
    model.workers = workers if workers.count > 1 else None
    model.optimizer.build(model.trainable_variables)
    if config.tokenizer.case_variants:
        _share_rows(model, optimizer, data)
    return model


def _share_rows(model: Model, optimizer: CaseSharing, data: TrainingData) -> None:
    """Make pieces that differ only in case share a vector, to which a vector per case is added.

    A matrix shared by source and target is visited twice; the second visit, with the target's case
    counts, wins. `optimizer` is the recipe's optimizer, not `model.optimizer`: with float16, Keras
    wraps it in an optimizer that scales the loss.
    """
    tokenizers = data.tokenizers
    text = data.train.text
    source = (tokenizers.source, text.source)
    target = (tokenizers.target, text.target)
    vocabularies = {
        "source_embedding": source,
        "target_embedding": target,
        "embedding": target,
        "output_embedding": target,
    }
    for name, (tokenizer, rows) in vocabularies.items():
        if hasattr(model, name):
            pieces = tokenizer.pieces(range(tokenizer.vocab_size))
            families = case_families(pieces, rows.counts_after_first(tokenizer.vocab_size))
            optimizer.share_rows(getattr(model, name).embeddings, families)


def _epoch_steps(config: Config, data: TrainingData) -> int:
    return config.training.epoch_steps or data.train.steps_per_epoch


def _fit(
    model: Model,
    run: Run,
    config: Config,
    data: TrainingData,
    history: History,
    workers: Workers,
    report: Report,
) -> None:
    """Run `model.fit`.

    The order of the callbacks matters: `StopOnNaN` stops before anything is saved, `Validation`
    adds its figures to the epoch's logs, and TensorBoard and `HistoryAndResume` read them there.
    """
    first_step = history[-1]["step"] if history else 0
    counter = StepCounter(first_step)
    callbacks = [counter, StopOnNaN(run, counter)]
    if workers.is_chief:
        callbacks += [
            Validation(
                run,
                config,
                data.tokenizers,
                valid=data.valid,
                rows=data.valid_rows,
                report=report,
            ),
            keras.callbacks.TensorBoard(run.tensorboard, write_graph=False),
        ]
    callbacks.append(HistoryAndResume(run, config, history, counter=counter, workers=workers))
    verbosity = 1 if sys.stdout.isatty() else 2
    if workers.is_chief and verbosity == 2:
        callbacks.append(LinePerMinute(report))
    model.fit(
        data.train.dataset(first_step),
        steps_per_epoch=_epoch_steps(config, data),
        initial_epoch=len(history),
        epochs=config.training.epochs,
        callbacks=callbacks,
        shuffle=False,  # the batches are already shuffled
        verbose=verbosity if workers.is_chief else 0,
    )


def _facts(run: Run, config: Config, model: Model, history: History) -> dict[str, Any]:
    """Return the facts on which all workers must agree before the first step."""
    state = hashlib.sha256()
    for variable in [*model.variables, *model.optimizer.variables]:
        state.update(np.ascontiguousarray(variable).data)
    return {
        "training.dtype": config.training.dtype,
        "training.jit_compile": config.training.jit_compile,
        "data.batch_tokens": config.data.batch_tokens,
        "the text's digest": run.digests["text"],
        "the vocabularies' digests": [run.digests["source"], run.digests["target"]],
        "the weights' digest": state.hexdigest(),
        "epochs": len(history),
    }
