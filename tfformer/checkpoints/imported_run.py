"""Write another toolkit's checkpoint as a run directory, in this package's order.

Padding, start and end get the ids that they have in every run
(`tfformer/checkpoints/vocabulary.py`), and the bias of padding and start is so low that they are
never generated. Search, masks and exports therefore treat an imported run like any other.
"""

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from tfformer.checkpoints.foreign_checkpoint import Checkpoint, Rewrites, Vocabulary
from tfformer.checkpoints.marian.shortlist import in_our_order
from tfformer.checkpoints.provenance import write_record
from tfformer.checkpoints.weight_names import (
    OUTPUT_BIAS,
    SOURCE,
    TokenTable,
    WeightName,
    variables,
    weight_path,
)
from tfformer.config import Config, ModelConfig
from tfformer.data.encoding import release
from tfformer.data.imported_tokenizers import PieceTokenizer
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run, Tokenizers, new_model
from tfformer.special_ids import PAD_ID, START_ID
from tfformer.storage.artifact_folders import RUN_CONFIG
from tfformer.storage.whole_files import new_folder

LARGEST = float(np.finfo(np.float32).max)
NEVER = -1e4  # a logit with probability exactly 0 in float32 that bfloat16 can represent


def write_run(checkpoint: Checkpoint, run_path: Path) -> Path:
    """Write a checkpoint as a run directory.

    A missing folder appears completely or not at all; in a folder that exists, config.json is
    written last.

    The tensors are removed from the checkpoint one by one, so that only one is in memory at a time.
    It raises ValueError if a value is not finite.
    """
    with new_folder(run_path, last=RUN_CONFIG) as temporary:
        try:
            _write(temporary, checkpoint)
        except FloatingPointError as error:  # detected only when the values are read
            raise ValueError(str(error)) from None
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
    run.save_weights(
        StreamedWeights(config.model, tokenizers, lambda weight: _in_our_order(checkpoint, weight))
    )
    if checkpoint.shortlist is not None:
        source_order, target_order = checkpoint.source.order, checkpoint.target.order
        run.save_shortlist(in_our_order(checkpoint.shortlist, source_order, target_order))
    write_record(run, record)
    run.finish({"imported": checkpoint.family})


def _tokenizer(vocabulary: Vocabulary, rewrites: Rewrites) -> PieceTokenizer:
    pieces = vocabulary.order.pieces(vocabulary.pieces)
    languages = vocabulary.languages
    return PieceTokenizer(
        vocabulary.model, pieces, vocabulary.prefix, rewrites=rewrites, languages=languages
    )


def _in_our_order(checkpoint: Checkpoint, weight: WeightName) -> np.ndarray:
    tensor = checkpoint.tensors.pop(weight)  # frees its memory once it is written
    lowest, highest = float(tensor.min()), float(tensor.max())  # NaN if any value is NaN
    if not -LARGEST <= lowest <= highest <= LARGEST:
        raise FloatingPointError(
            f"the tensor {checkpoint.names[weight]} contains a value that is not finite in float32"
        )
    release(tensor)
    if not isinstance(weight, TokenTable):
        return tensor.astype(np.float32)
    vocabulary = checkpoint.source if weight == SOURCE else checkpoint.target
    ordered = vocabulary.order.bring_in(tensor)
    if weight == OUTPUT_BIAS:
        ordered[[PAD_ID, START_ID]] = NEVER
    return ordered


def _record(checkpoint: Checkpoint) -> dict[str, Any]:
    pad = checkpoint.target.order.rows[PAD_ID]
    bias = checkpoint.tensors[OUTPUT_BIAS]
    tensors = checkpoint.tensors.items()
    return {
        "family": checkpoint.family,
        **checkpoint.provenance,
        "half": [weight_path(weight) for weight, tensor in tensors if tensor.dtype == np.float16],
        "pad_bias": None if pad is None else float(bias[pad]),
        "source": _described(checkpoint.source),
        "target": _described(checkpoint.target),
        "details": checkpoint.details,
    }


def _described(vocabulary: Vocabulary) -> dict[str, Any]:
    order = vocabulary.order
    return {"rows": order.rows, "size": order.foreign_size, "pieces": vocabulary.pieces}


class StreamedWeights:
    """Writes the weights of a model one variable at a time, without building the model.

    The names in a weights file are Keras' choice, so they are read from the file of a model with
    the same depth but tiny dimensions. `tensor_of` is called once for each weight.
    """

    def __init__(
        self,
        config: ModelConfig,
        tokenizers: Tokenizers,
        tensor_of: Callable[[WeightName], np.ndarray],
    ) -> None:
        dialect = config.dialect.replace(num_decoder_heads=1, decoder_d_ff=1)
        self._narrow = config.replace(d_model=2, num_heads=1, d_ff=1, dialect=dialect)
        self._tokenizers = tokenizers
        self._tensor_of = tensor_of

    def save_weights(self, filepath: BytesIO) -> None:
        """Write the file that Keras would write; its name ends in `.weights.h5`."""
        model = new_model(self._narrow, self._tokenizers)
        assert isinstance(model, Transformer)
        contents = []
        for number, (variable, joined) in enumerate(variables(model)):
            variable.assign(np.full(variable.shape, number))
            contents.append(joined)
        pattern = _NamedBytes()
        model.save_weights(pattern)
        with h5py.File(pattern) as names, h5py.File(filepath, "w") as file:

            def write(name: str, item: h5py.Group | h5py.Dataset) -> None:
                if isinstance(item, h5py.Group):
                    file.create_group(name).attrs.update(item.attrs)
                else:
                    weights = contents[int(item[(0,) * item.ndim])]
                    tensors = [self._tensor_of(weight) for weight in weights]
                    is_joined = len(tensors) > 1  # otherwise, a copy would double a table's memory
                    file[name] = np.concatenate(tensors, axis=-1) if is_joined else tensors[0]

            names.visititems(write)


class _NamedBytes(BytesIO):
    """A file in memory with a name that Keras recognises as a weights file."""

    def __str__(self) -> str:
        return "memory.weights.h5"
