"""A run's tensors in another toolkit's order, for the writers of that toolkit's files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfformer.checkpoints.foreign_checkpoint import Vocabulary
from tfformer.checkpoints.marian.shortlist import in_foreign_order
from tfformer.checkpoints.provenance import read_record
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.checkpoints.weight_names import (
    OUTPUT_BIAS,
    SOURCE,
    TARGET,
    TokenTable,
    WeightName,
    take,
    weight_path,
)
from tfformer.data.encoding import IdRows
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID


@dataclass(frozen=True)
class Foreign:
    """A run's tensors and vocabularies as they were before it was imported.

    `tensors` contains kernels as (inputs, outputs) and tables in the foreign order, in float16 if
    they were imported in float16 and have not changed since. `record` is the content of
    imported.json; empty for a run that was trained here. `shortlist` contains the candidates of
    each source piece, by foreign ids; None if the run has no shortlist.
    """

    tensors: dict[WeightName, np.ndarray]
    source: Vocabulary
    target: Vocabulary
    shares_vocabulary: bool
    record: dict[str, Any]
    shortlist: IdRows | None


def as_foreign(run: Run, model: Transformer, with_pad: bool) -> Foreign:
    """Return a run's tensors and vocabularies in the order in which they were imported.

    If the run has padding, and its start vector is not the vector of any token, as after training,
    the start vector becomes the last row of the target. `with_pad` states whether the foreign
    vocabulary has padding: it is added as the last row of the smaller vocabulary, or removed.
    """
    record = read_record(run)
    sizes = [len(record.get(name, {}).get("pieces", ())) for name in ("source", "target")]
    pad = min(sizes)  # Transformers uses one padding id for both vocabularies
    source = _foreign_vocabulary(run, record, "source", with_pad, pad)
    target = _foreign_vocabulary(run, record, "target", with_pad, pad)
    shared = source.pieces == target.pieces
    if with_pad and _has_start_vector(model, target.order):
        (token,) = run.tokenizers.target.pieces([START_ID])
        target = _with_start(target, token)
        source = _with_start(source, token) if shared else source
    tensors = take(model)
    is_ordinary = not (record or with_pad)  # the start piece, as Marian begins without one
    if run.config.model.dialect.zero_start and not is_ordinary:
        table = TARGET if TARGET in tensors else SOURCE
        tensors[table] = model.target_embedding.table()
    if run.config.model.dialect.position_layout == "interleaved":
        tensors = with_sines_first(tensors)
    if OUTPUT_BIAS not in tensors:
        tensors[OUTPUT_BIAS] = np.zeros(len(target.order.rows), np.float32)
    if record:  # this package's own bias prevents padding and start from being generated
        pad_row = target.order.rows[PAD_ID]
        ids = [number for number in (PAD_ID, START_ID) if target.order.rows[number] == pad_row]
        tensors[OUTPUT_BIAS][ids] = record.get("pad_bias") or 0.0
    for weight, tensor in tensors.items():
        if isinstance(weight, TokenTable):
            order = source.order if weight == SOURCE else target.order
            tensors[weight] = order.give_back(tensor)
    tensors = _in_first_dtype(tensors, record)
    candidates = run.load_shortlist()
    orders = (source.order, target.order)
    shortlist = None if candidates is None else in_foreign_order(candidates, *orders)
    return Foreign(tensors, source, target, shared, record, shortlist)


def with_sines_first(tensors: dict[WeightName, np.ndarray]) -> dict[WeightName, np.ndarray]:
    """Return the tensors of an equivalent model with all sines before all cosines.

    Only the positional encodings fix the order of the d_model dimensions, so permuting the rows or
    columns of every matrix gives an equivalent model.
    """
    permuted: dict[WeightName, np.ndarray] = {}
    for weight, tensor in tensors.items():
        if isinstance(weight, TokenTable):
            has_outputs, has_inputs = weight != OUTPUT_BIAS, False
        else:
            has_outputs = weight.projection in ("output", "outer", "norm", "candidate", "forget")
            has_inputs = weight.kind == "kernel" and weight.projection not in ("output", "outer")
        if has_outputs:
            tensor = np.concatenate([tensor[..., 0::2], tensor[..., 1::2]], axis=-1)
        if has_inputs:
            tensor = np.concatenate([tensor[0::2], tensor[1::2]])
        permuted[weight] = tensor
    return permuted


def _foreign_vocabulary(
    run: Run, record: dict[str, Any], name: str, with_pad: bool, index: int
) -> Vocabulary:
    tokenizer = getattr(run.tokenizers, name)
    if not record:
        pieces = tokenizer.pieces(range(tokenizer.vocab_size))
        return _vocabulary(pieces, range(len(pieces)), tokenizer.model)
    try:
        pieces = list(record[name]["pieces"])
        rows = list(record[name]["rows"])
        if len(rows) != tokenizer.vocab_size or record[name]["size"] != len(pieces):
            raise ValueError
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"{run.origin} is damaged; import the model again") from None
    if with_pad and rows[PAD_ID] is None:
        rows = [row + (row >= index) if row is not None else index for row in rows]
        pieces.insert(index, "<pad>")
    if not with_pad and rows[PAD_ID] is not None:
        pad = rows[PAD_ID]
        del pieces[pad]
        if rows[START_ID] == pad:
            rows[START_ID] = None
        rows[PAD_ID] = None
        rows = [row - (row > pad) if row is not None else None for row in rows]
    return _vocabulary(pieces, rows, tokenizer.model)


def _vocabulary(pieces: list[str], rows: Sequence[int | None], model: bytes) -> Vocabulary:
    return Vocabulary(pieces, model, RowOrder(tuple(rows), len(pieces)))


def _has_start_vector(model: Transformer, order: RowOrder) -> bool:
    """Whether the start vector differs from the vector of the foreign start token."""
    table = model.target_embedding.table()
    start = order.rows[START_ID]
    same = [number for number, row in enumerate(order.rows) if row == start and number != PAD_ID]
    return bool(np.any(table[same] != table[START_ID]))


def _with_start(vocabulary: Vocabulary, token: str) -> Vocabulary:
    """Return a vocabulary with a row for the start token added at the end."""
    rows = list(vocabulary.order.rows)
    rows[START_ID] = len(vocabulary.pieces)
    return _vocabulary([*vocabulary.pieces, token], rows, vocabulary.model)


def _in_first_dtype(
    tensors: dict[WeightName, np.ndarray], record: dict[str, Any]
) -> dict[WeightName, np.ndarray]:
    """Return the tensors in float16 if they were imported in float16.

    If any of them has changed since, all are returned in their current dtype.
    """
    float16 = record.get("half", ())
    narrow = {
        weight: tensor.astype(np.float16)
        for weight, tensor in tensors.items()
        if weight_path(weight) in float16
    }
    unchanged = all(np.array_equal(tensor, tensors[weight]) for weight, tensor in narrow.items())
    return tensors | narrow if unchanged else tensors


def special_ids(vocabulary: Vocabulary) -> dict[str, int | None]:
    """Return the foreign ids of "pad", "unknown", "start" and "end"; None for a missing one."""
    names = {"pad": PAD_ID, "unknown": UNKNOWN_ID, "start": START_ID, "end": END_ID}
    return {name: vocabulary.order.rows[number] for name, number in names.items()}
