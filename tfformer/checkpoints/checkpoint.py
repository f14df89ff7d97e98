"""A foreign checkpoint, read and understood.

It is the hand-over between a format and the run directory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfformer.checkpoints.text_normalization import REWRITES, Rewrites
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.checkpoints.weight_names import OUTPUT_BIAS, TABLES, Place, Table, shapes
from tfformer.config import DecodingConfig, ModelConfig

LARGEST = float(np.finfo(np.float32).max)
FLOAT_DTYPES = ("float16", "float32", "float64")
POSITION_CHOICES = ("auto", "marian", "hf")


class Choices(NamedTuple):
    """The choices of the caller about what a checkpoint leaves open."""

    positions: str = "auto"  # the table of positions and the search, one of `POSITION_CHOICES`
    # The rules by which a text is prepared before SentencePiece, one of `REWRITES`
    normalize: str = "none"
    # The language that a multilingual model is to translate from
    source_language: str | None = None
    target_language: str | None = None  # the language that it is to translate into
    # The path of a text to whose pieces the vocabulary is cut; None for all pieces
    trim: str | None = None

    def check(self) -> None:
        """Raise ValueError if a choice is unknown."""
        for name, value, known in (
            ("positions", self.positions, POSITION_CHOICES),
            ("normalize", self.normalize, tuple(REWRITES)),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not known; choose {', '.join(known)}")


NO_CHOICES = Choices()


@dataclass(frozen=True)
class Vocabulary:
    """One side's tokens, in the foreign order."""

    pieces: list[str]  # the token of each foreign id
    model: bytes  # the bytes of the SentencePiece model that cuts this side's text
    order: RowOrder  # the rows of this package
    prefix: str | None = None  # the token of a language, with which every sentence begins, or None
    languages: Sequence[str] = ()  # the tokens of all languages that may be the prefix


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run directory needs."""

    model: ModelConfig  # the architecture
    # Place -> array; kernels as (inputs, outputs), tables in the foreign order
    tensors: dict[Place, np.ndarray]
    source: Vocabulary  # the source's vocabulary
    target: Vocabulary  # the target's vocabulary; the same object if both have one segmentation too
    shares_vocabulary: bool  # whether both sides have the same tokens with the same ids
    decoding: DecodingConfig  # the search
    max_length: int  # the longest source, in tokens with the end
    languages: list[str] | None  # source and target, where the checkpoint names them
    family: str  # "hugging_face", "marian" or "m2m100"
    names: Mapping[Place, str]  # place -> the foreign name, for messages
    # What the way back needs: the foreign configuration, plain JSON
    details: dict[str, Any] = field(default_factory=dict)
    rewrites: Rewrites = ()  # what a text goes through before SentencePiece
    # Origin, licence and digests of the files
    provenance: dict[str, Any] = field(default_factory=dict)


def check_tensors(checkpoint: Checkpoint) -> None:
    """Raise ValueError unless every tensor is present and has its shape; read no number."""
    names = checkpoint.names
    wanted: dict[Place, tuple[int, ...]] = dict(shapes(checkpoint.model).items())
    wanted.update(table_shapes(checkpoint).items())
    for place, shape in wanted.items():
        tensor = checkpoint.tensors.get(place)
        if tensor is None:
            raise ValueError(f"the tensor {names[place]} is missing; copy the checkpoint again")
        if tensor.dtype.name not in FLOAT_DTYPES:
            raise ValueError(f"the tensor {names[place]} holds {tensor.dtype}, not float numbers")
        if tensor.shape != shape:
            raise ValueError(
                f"the tensor {names[place]} has the shape {tensor.shape}, but the configuration "
                f"makes it {shape}, inputs before outputs"
            )


def check_finite(tensor: np.ndarray, name: str) -> None:
    """Raise FloatingPointError for a number that is not finite in float32."""
    lowest, highest = float(tensor.min()), float(tensor.max())  # not a number if one is
    if not -LARGEST <= lowest <= highest <= LARGEST:
        raise FloatingPointError(f"the tensor {name} holds a number that is not finite in float32")


def table_shapes(checkpoint: Checkpoint) -> dict[Table, tuple[int, ...]]:
    """Return the foreign shapes of the model's tables: (rows, d_model), of the bias (rows,)."""
    sizes = {
        "source": checkpoint.source.order.foreign_size,
        "target": checkpoint.target.order.foreign_size,
        "output": checkpoint.target.order.foreign_size,
    }
    d_model = checkpoint.model.d_model
    tables = TABLES[checkpoint.model.tie_embeddings]
    shapes: dict[Table, tuple[int, ...]] = {table: (sizes[table.side], d_model) for table in tables}
    return shapes | {OUTPUT_BIAS: (sizes["output"],)}
