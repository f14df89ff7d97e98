"""Import another toolkit's checkpoint as a run directory.

The checkpoint is read and checked before TensorFlow is loaded, so that mistakes are reported
immediately; then it is written as a run (`tfformer/checkpoints/imported_run.py`).
"""

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tfformer.checkpoints.foreign_checkpoint import REWRITES, Checkpoint, Choices
from tfformer.checkpoints.foreign_files import fetch_model, is_hub_name, is_zip, unpack
from tfformer.checkpoints.hugging_face import reader as hugging_face
from tfformer.checkpoints.marian import reader as marian
from tfformer.checkpoints.provenance import check_stated_digests, origin_of
from tfformer.checkpoints.trimming import trim as trimmed
from tfformer.storage.artifact_folders import empty_folder
from tfformer.storage.whole_files import temporary_folder, workplace_of

WEIGHTS = (".npz", ".bin", ".safetensors")  # some are zips themselves


def import_model(
    path: str | Path,
    run_dir: str | Path,
    positions: str = "auto",
    normalize: str = "none",
    source_language: str | None = None,
    target_language: str | None = None,
    revision: str | None = None,
    trim: str | None = None,
) -> Path:
    """Write another toolkit's translation model as a run directory.

    Args:
        path: The folder or zip of a Hugging Face checkpoint (Marian, M2M100 or NLLB) or of a model
            in Marian's own format; or the name of such a model on the Hugging Face hub, such as
            "Helsinki-NLP/opus-mt-en-de", which is downloaded.
        run_dir: The new run's folder; must be missing or empty.
        positions: The toolkit whose position table and search are used: "marian" for
            marian-decoder, "hf" for Transformers and CTranslate2, "auto" for the toolkit of the
            checkpoint's format. A pre-norm Marian model is computed as in training, except with
            "marian", which computes it as marian-decoder does.
        normalize: "opus-mt" normalises punctuation and spaces before SentencePiece as OPUS-MT does;
            "none" does not, as in Transformers.
        source_language: The default source language of a multilingual model (M2M100, NLLB), such as
            "en" or "eng_Latn".
        target_language: The default target language.
        revision: The branch, tag or commit of a model on the hub; None for `main`.
        trim: The path of a text in both languages; only the pieces that it needs are kept. If all
            pieces of a sentence and its translation are kept, greedy search translates the sentence
            as before.

    Returns:
        The run directory, for `Translator.load` and everything else that reads a run.

    Raises:
        FileExistsError: `run_dir` is a link, or exists and is not an empty folder.
        ValueError: The checkpoint is damaged, incomplete, or of an unknown kind, or an argument is
            invalid or does not fit it, or `run_dir` is an address. Nothing is written in this case.
        OSError: The hub cannot be reached, and the model is not in the cache.

    Example:
        >>> import tfformer
        >>> tfformer.import_model("nowhere", "runs/new")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
            ...
        ValueError: nowhere does not exist; pass a folder, a zip, ...
    """
    choices = Choices(positions, normalize, source_language, target_language, trim)
    with checkpoint_at(path, run_dir, choices, revision) as checkpoint:
        from tfformer.checkpoints.imported_run import write_run

        return write_run(checkpoint, Path(run_dir))


@contextmanager
def checkpoint_at(
    path: str | Path, run_dir: str | Path, choices: Choices, revision: str | None = None
) -> Iterator[Checkpoint]:
    """Yield a checkpoint, read and checked except for the values in its tensors.

    A zip is unpacked into a temporary folder in or beside the run; the folder is deleted when the
    block ends. Errors are as in `import_model`.
    """
    choices.check()
    run_folder = empty_folder(run_dir)
    folder = _folder_or_zip(path, revision)
    if not is_zip(folder):
        yield _read(folder, folder, choices)
        return
    with temporary_folder(workplace_of(run_folder)) as temporary:
        unpacked = temporary / "model"
        unpack(folder, unpacked)
        try:
            yield _read(unpacked, folder, choices)
        except ValueError as error:  # replace the temporary path with the user's
            raise ValueError(str(error).replace(str(unpacked), str(folder))) from error


def _folder_or_zip(model: str | Path, revision: str | None) -> Path:
    """Return the folder or zip of a model; download the model if this is its name on the hub."""
    if is_hub_name(model):
        return fetch_model(str(model), revision)
    if revision is not None:
        raise ValueError(
            f"--revision is only for models on the hub, and {model} is not such a model; leave it "
            "out"
        )
    path = Path(model)
    if not path.exists():
        raise ValueError(
            f"{path} does not exist; pass a folder, a zip, or the name of a model on the hub, such "
            "as Helsinki-NLP/opus-mt-en-de"
        )
    if path.is_file() and path.suffix in WEIGHTS:
        raise ValueError(f"{path} is one file of a checkpoint; pass its folder, {path.parent}")
    return path


def _read(folder: Path, origin: Path, choices: Choices) -> Checkpoint:
    if not folder.is_dir():
        raise ValueError(f"{folder} is neither a folder nor a zip; pass a checkpoint")
    check_stated_digests(folder)
    for toolkit in (hugging_face, marian):
        if toolkit.recognises(folder):
            checkpoint = toolkit.read(folder, choices)
            if checkpoint.family != "m2m100" and (
                choices.source_language or choices.target_language
            ):
                raise ValueError(
                    f"{origin} is not a multilingual model with language tokens; leave out "
                    "--languages"
                )
            checkpoint = dataclasses.replace(
                checkpoint,
                rewrites=REWRITES[choices.normalize],
                provenance=origin_of(folder, origin),
            )
            return checkpoint if choices.trim is None else trimmed(checkpoint, choices.trim)
    raise ValueError(
        f"{origin} contains no model that can be imported: neither a Hugging Face config.json nor "
        "a Marian .npz or .bin"
    )
