"""Brings a foreign checkpoint in, as a run directory.

It reads the checkpoint, puts it into this package's order and writes the run. Three rows of a
vocabulary decide how everything else works: padding, start and end. They get the ids that they have
in every run (`tfformer/importing/vocabulary.py`), and the bias of padding and start is so low that
they are never generated. So search, masks and exports know of no import.
"""

import functools
import hashlib
import json
import shutil
import uuid
from pathlib import Path

import numpy as np

from tfformer.config import Config, DataConfig, TokenizerConfig
from tfformer.data.piece_tokenizer import PieceTokenizer
from tfformer.files import write_text
from tfformer.importing import hugging_face, marian, weights
from tfformer.importing.checkpoint import Checkpoint, Vocabulary
from tfformer.importing.licence import licence
from tfformer.importing.vocabulary import RowOrder
from tfformer.importing.weights import OUTPUT_BIAS, SOURCE, Place, Table
from tfformer.run_directory import Run, Tokenizers, check_free, new_model
from tfformer.special_ids import PAD_ID, START_ID

NEVER = -1e4  # a logit whose probability is exactly 0 in float32, and that bfloat16 can hold
RECORD = "imported.json"
POSITIONS = ("auto", "marian", "hf")


def import_model(
    path: str | Path, run_dir: str | Path, positions: str = "auto", untied: bool = False
) -> Path:
    """Write another toolkit's translation model as a run directory.

    Args:
        path: the folder of a Marian checkpoint of Hugging Face, or of a model of Marian itself.
        run_dir: the new run; must be new or empty.
        positions: the table of positions: "marian" as Marian trains and decodes, "hf" as
            Transformers and CTranslate2 decode, "auto" as the toolkit of the format does.
        untied: keep tensors apart that the configuration ties and that differ in the file.

    Returns:
        The run directory, for `Translator.load` and everything else that takes a run.

    Raises:
        FileExistsError: `run_dir` is not empty.
        ValueError: the checkpoint is damaged, incomplete, or of an unknown kind. Nothing is
            written then.

    Example:
        >>> import_model("no/such/folder", "runs/new")
        Traceback (most recent call last):
            ...
        ValueError: no/such/folder is no folder; give that of a Marian checkpoint
    """
    folder, run_path = Path(path), Path(run_dir)
    check_free(run_path)
    checkpoint = _read(folder, positions, untied)
    missing = [parent for parent in run_path.absolute().parents if not parent.exists()]
    temporary = run_path.absolute().parent / f".{uuid.uuid4().hex}"
    try:
        temporary.mkdir(parents=True)
        _write(temporary, folder, checkpoint)
        temporary.rename(run_path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        for parent in missing:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
    return run_path


def _read(folder: Path, positions: str, untied: bool) -> Checkpoint:
    if positions not in POSITIONS:
        raise ValueError(f"positions={positions!r} is not known; choose {', '.join(POSITIONS)}")
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; give that of a Marian checkpoint")
    for family in (hugging_face, marian):
        if family.recognises(folder):
            return family.read(folder, positions, untied)
    raise ValueError(
        f"{folder} holds no model that can be imported: neither config.json of Hugging Face nor "
        "an .npz or .bin of Marian"
    )


def _write(run_path: Path, folder: Path, checkpoint: Checkpoint) -> None:
    source = _tokenizer(checkpoint.source)
    same = checkpoint.target is checkpoint.source
    tokenizers = Tokenizers(source, source if same else _tokenizer(checkpoint.target))
    config = Config(
        model=checkpoint.model,
        tokenizer=TokenizerConfig(
            vocab_size=tokenizers.target.vocab_size, shared=checkpoint.shares_vocabulary
        ),
        data=DataConfig(max_length=checkpoint.max_length, languages=checkpoint.languages),
        decoding=checkpoint.decoding,
    ).checked()
    model = new_model(config.model, tokenizers)
    weights.put(model, functools.partial(_in_our_order, checkpoint))
    run = Run.create(run_path, config, tokenizers)
    run.save_weights(model)
    write_text(run_path / RECORD, json.dumps(_record(folder, checkpoint), indent=1) + "\n")
    run.finish({"imported": checkpoint.family})


def _tokenizer(vocabulary: Vocabulary) -> PieceTokenizer:
    return PieceTokenizer(vocabulary.model, vocabulary.order.pieces(vocabulary.pieces))


def _in_our_order(checkpoint: Checkpoint, place: Place) -> np.ndarray:
    """One tensor in float32, a table in this package's order.

    Padding and start are never chosen.
    """
    tensor = checkpoint.tensors[place]
    if not isinstance(place, Table):
        return tensor.astype(np.float32)
    found = _order(checkpoint, place).bring_in(tensor)
    if place == OUTPUT_BIAS:
        found[[PAD_ID, START_ID]] = NEVER
    return found


def _order(checkpoint: Checkpoint, table: Table) -> RowOrder:
    side = checkpoint.source if table == SOURCE else checkpoint.target
    return side.order


def _record(folder: Path, checkpoint: Checkpoint) -> dict:
    """Where the model is from, and all that the way back needs."""
    pad = checkpoint.target.order.rows[PAD_ID]
    files = sorted(path for path in folder.iterdir() if path.is_file())
    return {
        "family": checkpoint.family,
        "origin": folder.resolve().name,
        "licence": licence(folder),
        "files": {path.name: _digest(path) for path in files},
        "dtype": checkpoint.tensors[OUTPUT_BIAS].dtype.name,
        "pad_bias": None if pad is None else float(checkpoint.tensors[OUTPUT_BIAS][pad]),
        "source": _described(checkpoint.source),
        "target": _described(checkpoint.target),
        "details": checkpoint.details,
    }


def _described(vocabulary: Vocabulary) -> dict:
    order = vocabulary.order
    return {"rows": order.rows, "size": order.foreign_size, "pieces": vocabulary.pieces}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
