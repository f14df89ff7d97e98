"""Writes a foreign checkpoint as a run directory, in the order of this package.

Three rows of a vocabulary decide how everything else works: padding, start and end. They get the
ids that they have in every run (`tfformer/checkpoints/vocabulary.py`), and the bias of padding and
start is so low that they are never generated. So search, masks and exports know of no import.
"""

import functools
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.checkpoint import Checkpoint, Vocabulary, check_finite
from tfformer.checkpoints.provenance import write_record
from tfformer.checkpoints.tensors.stored_arrays import release
from tfformer.checkpoints.text_normalization import Rewrites
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.checkpoints.weight_names import OUTPUT_BIAS, SOURCE, Place, Table, place_name
from tfformer.checkpoints.weights_file import StreamedWeights
from tfformer.config import Config
from tfformer.data.piece_tokenizer import PieceTokenizer
from tfformer.run_directory import Run, Tokenizers
from tfformer.special_ids import PAD_ID, START_ID
from tfformer.storage.whole_files import temporary_folder

NEVER = -1e4  # a logit whose probability is exactly 0 in float32, and that bfloat16 can hold


def write_run(checkpoint: Checkpoint, run_path: Path) -> Path:
    """Write a checkpoint as a run directory, whole or not at all.

    Args:
        checkpoint: Its tensors are taken out one by one, so that none stays in memory.
        run_path: The new run; absent or an empty folder.

    Returns:
        The run directory.

    Raises:
        ValueError: A number is not finite.
    """
    with temporary_folder(run_path.absolute().parent) as temporary:
        try:
            _write(temporary / "run", checkpoint)
        except FloatingPointError as error:  # seen as late as the numbers are read
            raise ValueError(str(error)) from None
        (temporary / "run").rename(run_path)
    return run_path


def _write(run_path: Path, checkpoint: Checkpoint) -> None:
    source = _tokenizer(checkpoint.source, checkpoint.rewrites)
    same = checkpoint.target is checkpoint.source
    target = source if same else _tokenizer(checkpoint.target, checkpoint.rewrites)
    tokenizers = Tokenizers(source, target)
    config = Config.from_dict(
        {
            "model": checkpoint.model,
            "tokenizer": {
                "vocab_size": tokenizers.target.vocab_size,
                "shared": checkpoint.shares_vocabulary,
            },
            "data": {"max_length": checkpoint.max_length, "languages": checkpoint.languages},
            "decoding": checkpoint.decoding,
        }
    )
    run = Run.create(run_path, config, tokenizers)
    record = _record(checkpoint)
    numbers = functools.partial(_in_our_order, checkpoint)
    run.save_weights(StreamedWeights(config.model, tokenizers, numbers))
    write_record(run, record)
    run.finish({"imported": checkpoint.family})


def _tokenizer(vocabulary: Vocabulary, rewrites: Rewrites) -> PieceTokenizer:
    pieces = vocabulary.order.pieces(vocabulary.pieces)
    languages = vocabulary.languages
    return PieceTokenizer(vocabulary.model, pieces, vocabulary.prefix, rewrites, languages)


def _in_our_order(checkpoint: Checkpoint, place: Place) -> np.ndarray:
    """Take one tensor out, in float32, a table in this package's order.

    Padding and start are never chosen.
    """
    tensor = checkpoint.tensors.pop(place)
    check_finite(tensor, checkpoint.names[place])
    release(tensor)
    if not isinstance(place, Table):
        return tensor.astype(np.float32)
    found = _order(checkpoint, place).bring_in(tensor)
    if place == OUTPUT_BIAS:
        found[[PAD_ID, START_ID]] = NEVER
    return found


def _order(checkpoint: Checkpoint, table: Table) -> RowOrder:
    side = checkpoint.source if table == SOURCE else checkpoint.target
    return side.order


def _record(checkpoint: Checkpoint) -> dict[str, Any]:
    """Where the model is from, and what the way back needs."""
    pad = checkpoint.target.order.rows[PAD_ID]
    bias = checkpoint.tensors[OUTPUT_BIAS]
    places = checkpoint.tensors.items()
    return {
        "family": checkpoint.family,
        **checkpoint.provenance,
        "half": [place_name(place) for place, tensor in places if tensor.dtype == np.float16],
        "pad_bias": None if pad is None else float(bias[pad]),
        "source": _described(checkpoint.source),
        "target": _described(checkpoint.target),
        "details": checkpoint.details,
    }


def _described(vocabulary: Vocabulary) -> dict[str, Any]:
    order = vocabulary.order
    return {"rows": order.rows, "size": order.foreign_size, "pieces": vocabulary.pieces}
