"""Brings a foreign checkpoint in, as a run directory.

The checkpoint is read and checked before TensorFlow is loaded, so that a mistake is answered at
once; then it is written as a run (`tfformer/checkpoints/run_writer.py`).
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tfformer.checkpoints import archive
from tfformer.checkpoints.checkpoint import Checkpoint, Choices
from tfformer.checkpoints.checksums import check_stated_digests
from tfformer.checkpoints.hugging_face import m2m100_reader as m2m100
from tfformer.checkpoints.hugging_face import reader as hugging_face
from tfformer.checkpoints.licence import licence
from tfformer.checkpoints.marian import reader as marian
from tfformer.checkpoints.paths import check_paths
from tfformer.checkpoints.text_normalization import REWRITES
from tfformer.storage.whole_files import file_digest, temporary_folder


def import_model(
    path: str | Path,
    run_dir: str | Path,
    positions: str = "auto",
    untied: bool = False,
    normalize: str = "none",
    source_language: str | None = None,
    target_language: str | None = None,
) -> Path:
    """Write another toolkit's translation model as a run directory.

    Args:
        path: The folder of a Marian, M2M100 or NLLB checkpoint of Hugging Face, or of a model of
            Marian itself, or the zip of one.
        run_dir: The new run; must be new or empty.
        positions: The table of positions, and the beam: "marian" as marian-decoder has them, "hf"
            as Transformers and CTranslate2 decode, "auto" as the toolkit of the format does. A
            pre-norm model of Marian decodes as it was trained, but with "marian" as marian-decoder
            does.
        untied: Keep tensors apart that the configuration ties and that differ in the file.
        normalize: "opus-mt" for the rules of punctuation and blanks by which OPUS-MT prepares a
            text before SentencePiece, "none" for none, as Transformers.
        source_language: The language that the run of a multilingual model (M2M100, NLLB)
            translates from unless told otherwise, such as "en" or "eng_Latn".
        target_language: The language that it translates into.

    Returns:
        The run directory, for `Translator.load` and everything else that takes a run.

    Raises:
        FileExistsError: `run_dir` is not empty.
        ValueError: The checkpoint is damaged, incomplete, or of an unknown kind. Nothing is
            written then.

    Example:
        >>> import tfformer
        >>> tfformer.import_model("no/folder", "runs/new")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: no/folder is neither a folder nor a zip; nothing is downloaded, so ...
    """
    choices = Choices(positions, untied, normalize, source_language, target_language)
    with checkpoint_at(path, run_dir, choices) as checkpoint:
        from tfformer.checkpoints.run_writer import write_run

        return write_run(checkpoint, Path(run_dir))


@contextmanager
def checkpoint_at(path: str | Path, run_dir: str | Path, choices: Choices) -> Iterator[Checkpoint]:
    """Yield a checkpoint, read and checked, but for the numbers themselves.

    Args:
        path: Its folder or zip.
        run_dir: The run that it will become; a zip is unpacked beside it for as long as needed.
        choices: The choices of the caller.

    Raises:
        FileExistsError: `run_dir` is not empty.
        ValueError: As `import_model`.
    """
    place = Path(path)
    check_paths(place, Path(run_dir))
    choices.check()
    if not archive.is_archive(place):
        yield _read(place, place, choices)
        return
    with temporary_folder(Path(run_dir).absolute().parent) as temporary:
        unpacked = temporary / "model"
        archive.unpack(place, unpacked)
        with archive.naming_archive(place, unpacked):
            yield _read(unpacked, place, choices)


def _read(folder: Path, origin: Path, choices: Choices) -> Checkpoint:
    if not folder.is_dir():
        raise ValueError(f"{folder} is neither a folder nor a zip; give that of a checkpoint")
    check_stated_digests(folder)
    for family in (m2m100, hugging_face, marian):
        if family.recognises(folder):
            if family is not m2m100 and (choices.source_language or choices.target_language):
                raise ValueError(
                    f"{origin} is no multilingual model with tokens of languages; leave out "
                    "--source-language and --target-language"
                )
            return dataclasses.replace(
                family.read(folder, choices),
                rewrites=REWRITES[choices.normalize],
                provenance=_provenance(folder, origin),
            )
    raise ValueError(
        f"{origin} holds no model that can be imported: neither config.json of Hugging Face nor "
        "an .npz or .bin of Marian"
    )


def _provenance(folder: Path, origin: Path) -> dict[str, Any]:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "origin": _name(origin.resolve()),
        "licence": licence(folder),
        "files": {path.name: file_digest(path) for path in files},
    }


def _name(origin: Path) -> str:
    """Return the name of a folder or zip.

    The cache of huggingface_hub has a folder for each commit of a model, such as
    models--Helsinki-NLP--opus-mt-en-de/snapshots/COMMIT.
    """
    model = origin.parents[1].name if origin.parent.name == "snapshots" else ""
    if not model.startswith("models--"):
        return origin.name
    return f"{model.removeprefix('models--').replace('--', '/')}@{origin.name}"
