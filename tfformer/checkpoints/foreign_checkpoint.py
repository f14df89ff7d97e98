"""The representation of another toolkit's checkpoint in memory.

It is the interface between the readers of formats and the writer of run directories.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tfformer.argument_checks import require
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.checkpoints.weight_names import OUTPUT_BIAS, SOURCE, TABLES, WeightName, shapes
from tfformer.config import DecodingConfig, ModelConfig
from tfformer.data.encoding import IdRows

FLOAT_DTYPES = ("float16", "float32", "float64")
POSITION_CHOICES = ("auto", "marian", "hf")

# OPUS-MT's text normalisation before SentencePiece. The rules are those of the `preprocess.sh`
# distributed with its models: East Asian punctuation and curly quotes become plain, invisible
# characters become spaces, and repeated spaces are merged. The full-width digit 1 becomes a
# quotation mark: a bug in that file, with which the models were trained.
#
# A rule is a regular expression and its replacement. The expressions mean the same in Python, in
# RE2 (TensorFlow) and in JavaScript. The class \p{C} is therefore written out: the control
# characters, and the format and private-use characters below U+10000.
Rewrites = tuple[tuple[str, str], ...]
PLAIN = {  # full-width or curly characters -> their replacement
    **{"，、": ",", "”“《》１」「": '"', "∶：": ":", "？": "?", "）": ")", "！": "!", "（": "("},
    **{"；": ";", "０": "0", "２": "2", "３": "3", "４": "4", "５": "5", "６": "6", "７": "7"},
    **{"８": "8", "９": "9", "～": "~", "’": "'", "…": "...", "━": "-", "〈": "<", "〉": ">"},
    **{"【": "[", "】": "]", "％": "%"},
}
INVISIBLE = (
    r"[\x00-\x1f\x7f-\x9f\xad"
    "\u0600-\u0605\u061c\u06dd\u070f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ue000-\uf8ff\ufeff\ufff9-\ufffb]"
)
OPUS_MT: Rewrites = (
    ("[。．] *", ". "),
    *((f"[{characters}]", text) for characters, text in PLAIN.items()),
    (INVISIBLE, " "),
    ("  +", " "),
    ("^ | $", ""),
)
REWRITES: dict[str, Rewrites] = {"none": (), "opus-mt": OPUS_MT}


class Choices(NamedTuple):
    """The caller's choices for settings that a checkpoint does not determine."""

    positions: str = "auto"  # the table of positions and the search, one of `POSITION_CHOICES`
    # The text normalisation before SentencePiece, a key of `REWRITES`
    normalize: str = "none"
    # The source language of a multilingual model
    source_language: str | None = None
    target_language: str | None = None  # its target language
    # The path of a text; only the pieces that occur in it are kept. None keeps all pieces
    trim: str | None = None

    def check(self) -> None:
        """Raise ValueError if a choice is unknown."""
        require("positions", self.positions, POSITION_CHOICES)
        require("normalize", self.normalize, tuple(REWRITES))


NO_CHOICES = Choices()


@dataclass(frozen=True)
class Vocabulary:
    """The tokens of the source or the target, in the foreign order."""

    pieces: list[str]  # the token of each foreign id
    model: bytes  # the bytes of the SentencePiece model
    order: RowOrder  # how the rows are ordered in this package
    prefix: str | None = None  # the language token that begins every sentence, or None
    languages: Sequence[str] = ()  # the tokens of all languages that may be the prefix


@dataclass(frozen=True)
class Checkpoint:
    """Everything that a run directory needs."""

    model: ModelConfig  # the architecture
    # Weight -> array; kernels as (inputs, outputs), tables in the foreign order
    tensors: dict[WeightName, np.ndarray]
    source: Vocabulary  # the source's vocabulary
    target: Vocabulary  # the target's vocabulary; the source's object if both are the same
    shares_vocabulary: bool  # whether source and target have the same tokens with the same ids
    decoding: DecodingConfig  # the search
    max_length: int  # the longest source, in tokens with the end
    languages: list[str] | None  # source and target, if the checkpoint names them
    family: str  # "hugging_face", "marian" or "m2m100"
    names: Mapping[WeightName, str]  # weight -> the foreign name, for messages
    # What is needed to write the checkpoint again: the foreign configuration, plain JSON
    details: dict[str, Any] = field(default_factory=dict)
    rewrites: Rewrites = ()  # the rewrites applied before SentencePiece
    shortlist: IdRows | None = None  # the candidates of each source piece, by foreign ids
    # Origin, licence and digests of the files
    provenance: dict[str, Any] = field(default_factory=dict)


def check_tensors(checkpoint: Checkpoint) -> None:
    """Raise ValueError unless every tensor is present with the right shape; values are not read."""
    names = checkpoint.names
    d_model = checkpoint.model.d_model
    source, target = checkpoint.source.order.foreign_size, checkpoint.target.order.foreign_size
    wanted: dict[WeightName, tuple[int, ...]] = dict(shapes(checkpoint.model).items())
    for table in TABLES[checkpoint.model.tie_embeddings]:
        wanted[table] = (source if table == SOURCE else target, d_model)
    wanted[OUTPUT_BIAS] = (target,)
    for weight, shape in wanted.items():
        tensor = checkpoint.tensors.get(weight)
        if tensor is None:
            raise ValueError(f"the tensor {names[weight]} is missing; copy the checkpoint again")
        if tensor.dtype.name not in FLOAT_DTYPES:
            raise ValueError(
                f"the tensor {names[weight]} has dtype {tensor.dtype}, which is not floating "
                "point; use a float checkpoint"
            )
        if tensor.shape != shape:
            raise ValueError(
                f"the tensor {names[weight]} has the shape {tensor.shape}, but the configuration "
                f"makes it {shape}, inputs before outputs"
            )
