"""Marian checkpoints of Hugging Face, read into a `Checkpoint`.

Written from transformers 5.23, models/marian. The encoder and decoder are post-norm; the table of
positions has all sines before all cosines.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.checkpoint import (
    NO_CHOICES,
    Checkpoint,
    Choices,
    Vocabulary,
    check_tensors,
)
from tfformer.checkpoints.foreign_files import optional_object, read_object
from tfformer.checkpoints.hugging_face.search import (
    GENERATION,
    Search,
    check_special_ids,
    decoding_of,
    read_search,
    with_search,
)
from tfformer.checkpoints.hugging_face.weights import (
    EPSILON,
    NEEDED,
    ForeignConfig,
    Tensors,
    Weights,
    check_config,
    read_tensors,
    read_weights,
)
from tfformer.checkpoints.vocabulary import (
    RowOrder,
    check_segmentation,
    read_sentencepiece,
    read_vocabulary,
    special_order,
)
from tfformer.checkpoints.weight_names import SOURCE, TARGET

POSITION_TENSORS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
TARGET_VOCABULARY = "target_vocab.json"  # of models with two vocabularies
TOKENIZER = "tokenizer_config.json"
MARIAN_EPSILON = 1e-6  # of most models' training
MAX_LENGTH = 512  # of MarianTokenizer
LONGEST = 4096
TABLE_TOLERANCE = 4e-3  # of bfloat16; the two tables are 0.04 apart within 30 positions
MUST_BE = {  # keys that transformers 5 ignores, but older checkpoints of other models set
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}


def recognises(folder: Path) -> bool:
    """Tell whether a folder looks like a checkpoint of Hugging Face."""
    return (folder / "config.json").is_file()


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the checkpoint in a folder, with every tensor checked.

    The folder has config.json, the weights, vocab.json, source.spm and target.spm. Positions are
    "hf" for Hugging Face's table, "marian" for the table that Marian trains with, "auto" for the
    table in the file, or else "hf". `untied` keeps all tensors that the configuration ties and that
    differ. A file that is missing, damaged or contradicts another raises ValueError.
    """
    path = folder / "config.json"
    config = read_object(path)
    _check_config(path, config)
    tensors = read_tensors(folder)
    dialect = {
        "position_timescale": _position_table(choices.positions, tensors),
        "epsilon": MARIAN_EPSILON if choices.positions == "marian" else EPSILON,
    }
    weights = read_weights(
        path,
        config,
        tensors,
        untied=choices.untied,
        norm="post",
        dialect=dialect,
        ignored=POSITION_TENSORS,
    )
    search = read_search(folder)
    if "forced_bos_token_id" in search.settings:
        raise ValueError(
            f"{search.file}: forced_bos_token_id is set, but Marian models have no forced first "
            "token; remove it"
        )
    source, target, shared = _vocabularies(folder, config, search, weights)
    check_special_ids(folder, config, target.order)
    if weights.model.tie_embeddings in ("all", "input") and not shared:
        raise ValueError(f"{path} shares the embeddings, but there are two vocabularies")
    tokenizer = _read_tokenizer(folder)
    languages = [tokenizer.get(key) for key in ("source_lang", "target_lang")]
    longest = longest_source(folder, tokenizer)
    found = Checkpoint(
        model=with_search(
            weights.model, search, target.order, longest, choices.positions == "marian"
        ),
        tensors=weights.tensors,
        source=source,
        target=target,
        shares_vocabulary=shared,
        decoding=decoding_of(search),
        max_length=longest,
        languages=[str(name) for name in languages] if all(languages) else None,
        family="hugging_face",
        names=weights.names,
        details={
            "config": config,
            "generation": optional_object(folder / GENERATION),
            "tokenizer": tokenizer,
        },
    )
    check_tensors(found)
    return found


def _check_config(path: Path, config: ForeignConfig) -> None:
    """Raise ValueError for a model that is not Marian's, or that Transformers computes wrongly."""
    kind = config.get("model_type")
    if kind != "marian":
        raise ValueError(
            f"{path}: model_type is {kind!r}; only 'marian' and 'm2m_100' can be imported"
        )
    check_config(path, config, NEEDED)
    for name, value in MUST_BE.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} is {config[name]!r}, which Marian models in Transformers do not "
                "have; correct config.json"
            )


def _position_table(positions: str, tensors: Tensors) -> str:
    """Return the timescale of the positions; a table in the file must be a known one."""
    found = {"hf": "paper", "marian": "t2t", "auto": "paper"}[positions]
    for table in [tensors[name] for name in POSITION_TENSORS if name in tensors]:
        known = [name for name in ("paper", "t2t") if _is_table(table, name)]
        if not known:
            raise ValueError(
                f"{POSITION_TENSORS[0]} holds learned positions, which this package does not have"
            )
        if positions == "auto":
            found = known[0]
    return found


def _is_table(table: np.ndarray, timescale: str) -> bool:
    if table.ndim != 2 or table.shape[1] % 2:
        return False
    half = table.shape[1] // 2
    steps = half if timescale == "paper" else max(half - 1, 1)
    angles = np.arange(len(table))[:, None] * 10000.0 ** (-np.arange(half) / steps)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return bool(np.abs(table - wanted).max() < TABLE_TOLERANCE)


def longest_source(folder: Path, tokenizer: ForeignConfig) -> int:
    """Return the maximum number of tokens of a source.

    Transformers writes 10^30 for no limit. ValueError: it is no whole number from 2 on.
    """
    length = tokenizer.get("model_max_length", MAX_LENGTH)
    is_whole = type(length) is int or (isinstance(length, float) and length.is_integer())
    if not is_whole or length < 2:
        raise ValueError(
            f"{folder}: model_max_length in {TOKENIZER} is {length!r}, but must be a whole number "
            "from 2 on"
        )
    return int(length) if length <= LONGEST else MAX_LENGTH


def _read_tokenizer(folder: Path) -> dict[str, Any]:
    tokenizer = optional_object(folder / TOKENIZER)
    is_separate = (folder / TARGET_VOCABULARY).is_file()
    if tokenizer.get("separate_vocabs", is_separate) is not is_separate:
        raise ValueError(
            f"{folder / TOKENIZER}: separate_vocabs is {tokenizer['separate_vocabs']!r}, but there "
            f"is {'a' if is_separate else 'no'} {TARGET_VOCABULARY}; copy the whole folder"
        )
    return tokenizer


def _vocabularies(
    folder: Path, config: ForeignConfig, search: Search, weights: Weights
) -> tuple[Vocabulary, Vocabulary, bool]:
    """Return both sides' vocabularies, and whether they have the same tokens."""
    places = weights.tensors
    shared = not (folder / TARGET_VOCABULARY).is_file()
    if shared and SOURCE in places and TARGET in places:
        shared = len(places[SOURCE]) == len(places[TARGET])
    first = folder / "vocab.json"
    file = first if shared else folder / TARGET_VOCABULARY
    source = read_vocabulary(first)
    target = source if shared else read_vocabulary(file)
    start = search.settings.get("decoder_start_token_id", config.get("decoder_start_token_id"))
    order = special_order(file, target, start)
    sides = [
        _side(folder / "source.spm", source, order if shared else special_order(first, source)),
        _side(folder / "target.spm", target, order),
    ]
    sizes = {"vocab_size": (first, source), "decoder_vocab_size": (file, target)}
    for key, (named, pieces) in sizes.items():
        size = config.get(key) or config.get("vocab_size")
        if size != len(pieces):
            raise ValueError(
                f"{named} has {len(pieces)} tokens, but {key} in config.json is {size}"
            )
    if shared and sides[0].model == sides[1].model:
        sides[1] = sides[0]
    return sides[0], sides[1], shared


def _side(file: Path, pieces: list[str], order: RowOrder) -> Vocabulary:
    model = read_sentencepiece(file)
    check_segmentation(model, file, pieces)
    return Vocabulary(pieces, model, order)
