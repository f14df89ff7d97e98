"""The export of a run, for a corpus that another engine than Keras translates.

It lies beside the translations, where every worker finds it, and is made once for a job.
"""

from pathlib import Path
from typing import TextIO

from tfformer.corpora.parts import EXPORTS
from tfformer.engines import Artifact, find_artifact
from tfformer.storage.run_folders import exported_version


def checked_engine(model: Artifact, name: str | None) -> str:
    """Return the name of the engine to translate with, by default the model's own.

    Raises:
        ValueError: The model is an export for another engine.
    """
    engine = name or model.format
    if model.format not in ("keras", engine):
        raise ValueError(
            f"{model.place} is an export of format {model.format}, which --engine {name} cannot "
            "run; leave out --engine, or give the run that was exported"
        )
    return engine


def for_engine(
    model: Artifact, engine: str, folder: str | Path, progress: TextIO | None = None
) -> Artifact:
    """Return a model that an engine can run; a run is exported the first time.

    Args:
        model: A run or an export.
        engine: The result of `checked_engine`.
        folder: The folder of the translations.
        progress: A stream for a line about each step of the export.

    Raises:
        ValueError: The package of the format is not installed, or the export differs from the run.
        OSError: A file cannot be read or written.
    """
    if engine == model.format:
        return model
    place = Path(folder) / EXPORTS / f"{engine}-{model.beam_size}-{model.digest}"
    if exported_version(place) is None:  # a killed export leaves a folder of another name
        from tfformer.export import formats

        write = getattr(formats, engine)
        write(model.place, place, beam_size=model.beam_size, progress=progress)
    return find_artifact(place, model.beam_size)
