"""Write a run as a checkpoint of another toolkit.

The checkpoint is read back and compared tensor by tensor.
"""

from pathlib import Path
from typing import TextIO

import numpy as np

from tfformer import __version__
from tfformer.checkpoints.foreign_checkpoint import Choices
from tfformer.checkpoints.foreign_order import as_foreign
from tfformer.checkpoints.hugging_face import reader as hugging_face
from tfformer.checkpoints.hugging_face import writer as hugging_face_writer
from tfformer.checkpoints.marian import files as marian_files
from tfformer.checkpoints.marian import reader as marian
from tfformer.checkpoints.marian import writer as marian_writer
from tfformer.checkpoints.provenance import imported_from, read_record
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.runtime.progress_lines import Steps
from tfformer.storage.artifact_folders import files_in, write_manifest
from tfformer.storage.folders import local_path
from tfformer.storage.whole_files import publish, temporary_folder


def write_checkpoint(
    run: str | Path,
    output: str | Path,
    format: str,
    *,
    measure: marian_writer.Measure | None = None,
    progress: TextIO | None = None,
) -> Path:
    """Write a run as a checkpoint that Transformers or Marian can load; return its folder.

    `format` is "hugging_face" or "marian". With "hugging_face", a run imported from M2M100 or NLLB
    becomes a checkpoint for `M2M100ForConditionalGeneration`, any other run for `MarianMTModel`.
    For Marian, the run must be an imported model, fine-tuned or not, or trained with
    `model.dialect: marian`; if `measure` returns the largest absolute input of each matrix, its
    `.bin` is int8, as in Firefox. ValueError: the run is not finished, has a trimmed vocabulary, or
    cannot be represented in the format, or `output` is an address.
    """
    output = local_path(output)
    opened = Run.open(run)
    opened.check_architecture("encoder-decoder")
    opened.check_finished()
    if "trimmed" in read_record(opened):
        raise ValueError(
            f"{opened.path} has a trimmed vocabulary, which the format {format} cannot represent; "
            "import the model without --trim"
        )
    is_multilingual = read_record(opened).get("family") == "m2m100"
    if is_multilingual and format == "marian":
        raise ValueError(
            f"{opened.path} was imported from a multilingual model, which the format marian cannot "
            "represent; use --format hugging_face"
        )
    if format != "marian":
        opened.warn_of_shortlist(format)
    step = Steps(progress)
    with step(f"loading {run}"):
        model = opened.load_model()
        assert isinstance(model, Transformer)
    with temporary_folder(output) as folder:
        with step(f"writing the {format} checkpoint"):
            if format == "marian":
                marian_writer.write(folder, opened, model, measure)
            elif is_multilingual:
                hugging_face_writer.write_multilingual(folder, opened, model)
            else:
                hugging_face_writer.write(folder, opened, model)
        with step("reading it back"):
            count = _compare(folder, opened, model, format)
            if format == "marian":
                _compare_bin(folder, is_int8=measure is not None)
        manifest = {
            "format": format,
            **({"quantize": "int8"} if measure else {}),
            "parity": {"tensors": {"identical": count, "sentences": count, "beam_size": 0}},
            **files_in(folder),
            "versions": {"tfformer": __version__},
            **imported_from(opened),
        }
        write_manifest(folder, manifest)
        return publish(folder, output)


def _compare(folder: Path, run: Run, model: Transformer, format: str) -> int:
    """Read a checkpoint back; return the number of its tensors, which must equal the model's."""
    if format == "marian":
        stored = marian.read(folder).tensors
    else:
        source, target = run.languages or (None, None)
        choices = Choices(source_language=source, target_language=target)
        stored = hugging_face.read(folder, choices).tensors
    wanted = as_foreign(run, model, with_pad=format == "hugging_face").tensors
    for weight, tensor in wanted.items():
        if stored[weight].dtype != tensor.dtype or not np.array_equal(stored[weight], tensor):
            raise ValueError(f"{weight} was not written correctly; the export was discarded")
    return len(wanted)


def _compare_bin(folder: Path, is_int8: bool) -> None:
    """Compare model.bin with model.npz; int8 matrices may differ by half of their step."""
    _, exact = marian_files.read(folder / "model.npz")
    _, stored = marian_files.read(folder / "model.bin")
    for name, tensor in exact.items():
        step = np.abs(tensor).max() / 127 if is_int8 and len(tensor) > 1 else 0
        if np.abs(stored[name] - tensor).max() > 0.501 * step:
            raise ValueError(
                f"{name} in model.bin was not written correctly; the export was discarded"
            )
