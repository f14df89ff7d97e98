"""Turn a finished run into an artifact that other software can run.

Every format that an engine can run follows the same steps: the run is opened, its model loaded, the
artifact written to a temporary folder, run by another process, compared with the run, described in
a manifest, and published completely or not at all.
"""

import contextlib
import dataclasses
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from tfformer.checkpoints.write_checkpoint import write_checkpoint
from tfformer.export import CHECKPOINTS, FORMATS, check_options, parity
from tfformer.export.format import Format, check_validation_text, validation_pairs
from tfformer.export.largest_inputs import largest_inputs
from tfformer.export.model_card import first_manifest, model_card
from tfformer.export.parity import random_samples
from tfformer.inference.calibration import fit, measuring
from tfformer.inference.text_model import TextModel
from tfformer.inference.text_model_kinds import TEXT_MODELS
from tfformer.inference.translator import Translator
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Calibration, Run
from tfformer.runtime.progress_lines import Steps
from tfformer.storage.artifact_folders import write_manifest
from tfformer.storage.folders import local_path
from tfformer.storage.whole_files import publish, temporary_folder, write_text

CALIBRATED = 500  # sentence pairs; the temperature is a single number


def export_model(
    run: str | Path,
    folder: str | Path,
    format: str = "saved_model",
    *,
    progress: TextIO | None = None,
    **options: Any,
) -> Path:
    """Write a run for other software, and check that it translates the same there.

    In float32, another process that runs the artifact must produce the run's own text for every
    sample. In other precisions, the differences are only recorded in the manifest.

    Args:
        run: The run directory of a finished training.
        folder: The folder of versions, which is created if it is missing.
        format: "saved_model", "ctranslate2", "litert", "web", "hugging_face" or "marian".
        progress: A stream for a line about each step, such as `sys.stderr`.
        **options: Options of the format: the arguments of `SavedModel`, `CTranslate2`, `LiteRT` or
            `WebPage`; for "marian" `quantize` ("none" or "int8", of model.bin) and `samples`.

    Returns:
        The folder of the new version, `folder`/<next free number>.

    Raises:
        ValueError: The format or an option is not known, `folder` is an address, the run is not
            finished, a library is not installed, or a text differs.
        OSError: A file cannot be read or written. Nothing is left behind after either error.

    Example:
        >>> import tfformer
        >>> tfformer.export_model("runs/mine", "models", dtype="float8")
        Traceback (most recent call last):
            ...
        ValueError: dtype='float8' is not known; choose one of 'float32', 'bfloat16', 'float16'
        >>> version = tfformer.export_model("runs/mine", "models")  # doctest: +SKIP
    """
    check_options(format, options)
    if format in CHECKPOINTS:
        is_int8 = options.get("quantize") == "int8"
        measure = partial(largest_inputs, options.get("samples")) if is_int8 else None
        return write_checkpoint(run, folder, format, measure=measure, progress=progress)
    return write_version(run, folder, FORMATS[format](**options), _loaded, Steps(progress))


def write_version(
    run: str | Path,
    folder: str | Path,
    chosen: Format,
    load: Callable[[Run], TextModel],
    step: Steps,
) -> Path:
    """Write the model that `load` returns for an opened run as the next version in a folder."""
    folder = local_path(folder)
    opened = _opened(run, chosen)
    chosen.prepare(opened, step)
    with step(f"loading {run}"):
        model = load(opened)
    aligns = chosen.aligns and isinstance(model, Translator) and model.model.can_align
    if aligns:
        model.calibration = _calibration(Run.open(run), model, step)
    with temporary_folder(folder) as version:
        artifact = version / chosen.subfolder
        artifact.mkdir(exist_ok=True)
        with step(f"writing {chosen.title}"):
            chosen.write(artifact, model)
            manifest = first_manifest(artifact, opened, model) | chosen.description(artifact)
            if aligns:
                manifest["calibration"] = model.calibration and model.calibration._asdict()
            write_manifest(artifact, manifest)  # the engine needs it to open the artifact
        samples = chosen.samples or random_samples(model)
        with step(f"computing the run's own answers to {len(samples)} samples"):
            questions = chosen.questions(model, samples)
        with step("reading it back in another process"):
            manifest["parity"] = parity.compare(artifact, questions)
        chosen.check(manifest["parity"])
        manifest |= chosen.measured(artifact, opened, model, step)
        write_text(artifact / "README.md", model_card(manifest))
        write_manifest(artifact, manifest)
        chosen.finish(version)
        return publish(version, folder)


def _loaded(run: Run) -> TextModel:
    return TEXT_MODELS[run.config.model.architecture].of(run)


def _calibration(run: Run, model: TextModel, step: Steps) -> Calibration | None:
    """Return the run's calibration, which its first export fits and stores in the run.

    `run` has the run's own length and languages, not the artifact's. The calibration is None if the
    validation text cannot be read, or is not the one that the run was trained with.
    """
    if run.calibration or not run.config.data.valid:
        return run.calibration
    try:
        check_validation_text(run)
        pairs = validation_pairs(run, CALIBRATED)
    except (OSError, ValueError):
        return None
    with step(f"calibrating the confidence on {len(pairs):,} validation sentences"):
        assert isinstance(model.model, Transformer)
        measure = measuring(model.model, run.tokenizers, pairs, run.config.data.max_length)
        if measure is None:
            return None
        calibration = fit(measure)
    with contextlib.suppress(OSError):  # such as a run that may only be read
        run.keep_calibration(calibration)
    return calibration


def _opened(run: str | Path, chosen: Format) -> Run:
    """Open a finished run with the languages, the length and the search of the artifact."""
    opened = Run.open(run).with_languages(chosen.source_language, chosen.target_language)
    opened.check_finished()
    config = opened.config
    data = config.data
    if chosen.max_length is not None:
        data = data.replace(max_length=chosen.max_length, batch_tokens=None)
    model = config.model.replace(dialect=chosen.dialect(config.model.dialect))
    config = config.replace(model=model, data=data, decoding=chosen.decoding(config.decoding))
    return dataclasses.replace(opened, config=config)
