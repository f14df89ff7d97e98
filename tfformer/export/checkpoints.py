"""The way back: a run as a checkpoint of another toolkit.

The checkpoint is read back and compared tensor by tensor.
"""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TextIO

import numpy as np

from tfformer.export.manifest import write_manifest
from tfformer.export.steps import Steps
from tfformer.files import file_digest, publish, temporary_folder
from tfformer.importing import (
    giving_back,
    hugging_face,
    hugging_face_writer,
    marian,
    marian_writer,
)
from tfformer.importing.record import imported_from
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.version import __version__


def write_hugging_face(
    run: str | Path, output: str | Path, *, progress: TextIO | None = None
) -> Path:
    """Write a run as a Marian checkpoint of Hugging Face.

    `MarianMTModel.from_pretrained` of Transformers loads it.

    Args:
        run: The run directory of a finished translation model, imported or trained here.
        output: The folder of versions, made if it is not there.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: The run is not finished, or Marian models in Transformers have no such layers.
        OSError: A file cannot be read or written. Nothing is left behind after either error.
    """
    return _write(run, output, "hugging_face", hugging_face_writer.write, hugging_face, progress)


def write_marian(run: str | Path, output: str | Path, *, progress: TextIO | None = None) -> Path:
    """Write an imported run as a model that marian-decoder and pymarian load.

    Args:
        run: The run directory of an imported translation model, fine-tuned or not.
        output: The folder of versions, made if it is not there.
        progress: A stream for a line about each step, such as `sys.stderr`.

    Returns:
        The new version's folder, `output`/<next free number>.

    Raises:
        ValueError: The run is not finished, or Marian has no such layers.
        OSError: A file cannot be read or written. Nothing is left behind after either error.
    """
    return _write(run, output, "marian", marian_writer.write, marian, progress)


def _write(
    run: str | Path,
    output: str | Path,
    name: str,
    write: Callable[[Path, Run, Transformer], None],
    reader: ModuleType,
    progress: TextIO | None,
) -> Path:
    opened = Run.open(run)
    opened.check_architecture("encoder-decoder")
    opened.check_finished()
    giving_back.check_family(opened)
    step = Steps(progress)
    with step(f"loading {run}"):
        model = opened.load_model()
        assert isinstance(model, Transformer)
    with temporary_folder(Path(output)) as folder:
        with step(f"writing the checkpoint of {name}"):
            write(folder, opened, model)
        with step("reading it back"):
            count = _check_tensors(folder, opened, model, name, reader)
        paths = sorted(path for path in folder.iterdir() if path.is_file())
        manifest = {
            "format": name,
            "parity": {"tensors": {"identical": count, "sentences": count, "beam_size": 0}},
            "files": {path.name: path.stat().st_size for path in paths},
            "digests": {path.name: file_digest(path) for path in paths},
            "versions": {"tfformer": __version__},
            **imported_from(opened),
        }
        write_manifest(folder, manifest)
        return publish(folder, Path(output))


def _check_tensors(
    folder: Path, run: Run, model: Transformer, name: str, reader: ModuleType
) -> int:
    """Read the checkpoint as an import would; ValueError if a number is another."""
    wanted = giving_back.as_foreign(run, model, with_pad=name == "hugging_face").tensors
    found = reader.read(folder).tensors
    for place, tensor in wanted.items():
        if not np.array_equal(found[place], tensor):
            raise ValueError(f"{place} was not written as it is; what was written is not kept")
    return len(wanted)
