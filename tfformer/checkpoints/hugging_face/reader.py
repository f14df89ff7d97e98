"""Marian checkpoints of Hugging Face, read into a `Checkpoint`.

The names here also serve the way back. Written from transformers 5.23, models/marian. The encoder
and decoder are post-norm; the table of positions has all sines before all cosines. Kernels are
stored as (outputs, inputs).
"""

import reprlib
import warnings
from collections.abc import Mapping
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
from tfformer.checkpoints.foreign_keys import told_by_keys
from tfformer.checkpoints.json_files import read_object
from tfformer.checkpoints.marian.reader import MAX_LENGTH_FACTOR
from tfformer.checkpoints.tensors import pytorch as pytorch_files
from tfformer.checkpoints.tensors import safetensors_file as safetensors_files
from tfformer.checkpoints.tensors import shards as sharded_files
from tfformer.checkpoints.vocabulary import (
    RowOrder,
    check_segmentation,
    check_tokens,
    read_vocabulary,
)
from tfformer.checkpoints.weight_names import (
    OUTPUT,
    OUTPUT_BIAS,
    SOURCE,
    TARGET,
    Place,
    Slot,
    Table,
    shapes,
)
from tfformer.config import Config, DecodingConfig, ModelConfig
from tfformer.data.piece_tokenizer import parse_sentencepiece
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

SHARED = "model.shared.weight"
ENCODER_EMBEDDING = "model.encoder.embed_tokens.weight"
DECODER_EMBEDDING = "model.decoder.embed_tokens.weight"
HEAD = "lm_head.weight"
BIAS = "final_logits_bias"
POSITION_TENSORS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
SAFETENSORS, PYTORCH = "model.safetensors", "pytorch_model.bin"
TARGET_VOCABULARY = "target_vocab.json"  # of models with two vocabularies
EPSILON = 1e-5  # torch.nn.LayerNorm
MARIAN_EPSILON = 1e-6  # of most models' training
MAX_LENGTH = 512  # of MarianTokenizer
LONGEST = 4096
TABLE_TOLERANCE = 4e-3  # of bfloat16; the two tables are 0.04 apart within 30 positions
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
GENERATION = "generation_config.json"
SIZES = {  # the recipe's setting -> the key of config.json
    "num_layers": "encoder_layers",
    "num_decoder_layers": "decoder_layers",
    "d_model": "d_model",
    "num_heads": "encoder_attention_heads",
    "d_ff": "encoder_ffn_dim",
}
DECODER_SIZES = {  # the encoder's setting -> the decoder's, and its key of config.json
    "num_heads": ("num_decoder_heads", "decoder_attention_heads"),
    "d_ff": ("decoder_d_ff", "decoder_ffn_dim"),
}
SEARCH = {"beam_size": "num_beams", "length_penalty": "length_penalty"}  # of both configurations
NEEDED = (  # keys that every version of transformers writes
    *("d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim"),
    *("encoder_attention_heads", "decoder_attention_heads"),
    *("activation_function", "scale_embedding"),
)
MUST_BE = {  # keys that transformers 5 ignores, but older checkpoints of other models set
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
USUAL_SEARCH = {  # settings that change a search, as they are where they have no effect
    "do_sample": False,
    "min_length": 0,
    "min_new_tokens": 0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "num_beam_groups": 1,
    "early_stopping": True,
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
}
BLOCKS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PARTS = {
    **{"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"},
    **{"inner": "fc1", "outer": "fc2"},
}
NORMS = {
    "self_attention": "self_attn_layer_norm",
    "cross_attention": "encoder_attn_layer_norm",
    "feed_forward": "final_layer_norm",
}
ForeignConfig = Mapping[str, Any]  # the content of config.json or of a file beside it
Groups = dict[Table, tuple[str, ...]]
# (shared, tied) -> table -> names of the same numbers, the one to trust first
GROUPS: dict[tuple[bool, bool], Groups] = {
    (True, True): {SOURCE: (SHARED, DECODER_EMBEDDING, ENCODER_EMBEDDING, HEAD)},
    (False, True): {SOURCE: (ENCODER_EMBEDDING,), TARGET: (DECODER_EMBEDDING, HEAD)},
    (False, False): {SOURCE: (ENCODER_EMBEDDING,), TARGET: (DECODER_EMBEDDING,), OUTPUT: (HEAD,)},
    (True, False): {  # transformers 5 ties nothing then; older versions store only two tables
        SOURCE: (ENCODER_EMBEDDING, SHARED),
        TARGET: (DECODER_EMBEDDING, SHARED),
        OUTPUT: (HEAD,),
    },
}
UNTIED: Groups = {
    SOURCE: (ENCODER_EMBEDDING, SHARED),
    TARGET: (DECODER_EMBEDDING, SHARED),
    OUTPUT: (HEAD, DECODER_EMBEDDING, SHARED),
}


def recognises(folder: Path) -> bool:
    """Whether a folder looks like a checkpoint of Hugging Face."""
    return (folder / "config.json").is_file()


def slot_name(slot: Slot) -> str:
    """Return Hugging Face's name of a layer's tensor.

    Args:
        slot: The tensor's place, in a model of Transformers with Marian's or M2M100's names.

    Example:
        >>> slot_name(Slot("decoder", 0, "cross_attention", "key", "kernel"))
        'model.decoder.layers.0.encoder_attn.k_proj.weight'
    """
    kind = "bias" if slot.kind == "bias" else "weight"
    if slot.layer is None:
        return f"model.{slot.side}.layer_norm.{kind}"
    if slot.part == "norm":
        middle = NORMS[slot.block]
    elif slot.block == "feed_forward":
        middle = PARTS[slot.part]
    else:
        middle = f"{BLOCKS[slot.block]}.{PARTS[slot.part]}"
    return f"model.{slot.side}.layers.{slot.layer}.{middle}.{kind}"


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the checkpoint in a folder.

    Args:
        folder: The folder with config.json, the weights, vocab.json, source.spm and target.spm.
        choices: The choices of the caller. Positions are "hf" for Hugging Face's table, "marian"
            for the one that Marian trains with, "auto" for the table in the file if there is one,
            and otherwise for "hf". `untied` keeps all tensors that the configuration ties and that
            differ.

    Returns:
        The checkpoint, with every tensor checked.

    Raises:
        ValueError: A file is missing, damaged or contradicts another.
    """
    path = folder / "config.json"
    config = read_object(path)
    _check_config(path, config)
    tensors = read_tensors(folder)
    tables, names, tie = embedding_tables(config, tensors, choices.untied)
    dialect = {
        "position_timescale": _position_table(choices.positions, tensors),
        "epsilon": MARIAN_EPSILON if choices.positions == "marian" else EPSILON,
    }
    model = model_config(path, config, tie, "post", dialect)
    places: dict[Place, np.ndarray] = dict(tables.items())
    places |= layer_tensors(model, tensors, names)
    generation = search_settings(folder)
    source, target, shared = _vocabularies(folder, config, generation, places)
    check_special_ids(folder, config, target.order)
    if tie in ("all", "input") and not shared:
        raise ValueError(f"{path} shares the embeddings, but there are two vocabularies")
    tokenizer = optional_object(folder / "tokenizer_config.json")
    _check_tokenizer(folder / "tokenizer_config.json", tokenizer, source.pieces)
    found = Checkpoint(
        model=model,
        tensors=places,
        source=source,
        target=target,
        shares_vocabulary=shared,
        decoding=decoding_of(
            search_file(folder), generation, target.order, choices.positions == "marian"
        ),
        max_length=longest_source(folder, tokenizer),
        languages=_languages(tokenizer),
        family="hugging_face",
        names=names,
        details={
            "config": config,
            "generation": optional_object(folder / GENERATION),
            "tokenizer": tokenizer,
        },
    )
    check_tensors(found)
    return found


def layer_tensors(
    model: ModelConfig, tensors: dict[str, np.ndarray], names: dict[Place, str]
) -> dict[Place, np.ndarray]:
    """Take the layers' tensors out of a file's, which must hold no others.

    Args:
        model: The architecture.
        tensors: The file's tensors by their names.
        names: Gets the names of the places.

    Raises:
        ValueError: A tensor is left over.
    """
    found: dict[Place, np.ndarray] = {}
    for slot, shape in shapes(model).items():
        names[slot] = slot_name(slot)
        if names[slot] in tensors:
            stored = tensors.pop(names[slot])
            found[slot] = stored.T if len(shape) == 2 else stored
    if tensors:
        raise ValueError(
            f"the tensor {sorted(tensors)[0]} has no place in a model of this configuration "
            f"({len(tensors)} such); correct config.json or give the right file"
        )
    return found


def optional_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file; an empty one if there is no file."""
    return read_object(path) if path.is_file() else {}


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a folder by their names.

    They are in a file of safetensors or of PyTorch, or in several files with an index.
    """
    if (folder / SAFETENSORS).is_file():
        return safetensors_files.read(folder / SAFETENSORS)
    if (folder / safetensors_files.INDEX).is_file():
        return sharded_files.read(folder / safetensors_files.INDEX, safetensors_files.read)
    if (folder / PYTORCH).is_file():
        return pytorch_files.read(folder / PYTORCH)
    if (folder / pytorch_files.INDEX).is_file():
        return sharded_files.read(folder / pytorch_files.INDEX, pytorch_files.read)
    raise ValueError(f"{folder} has neither {SAFETENSORS} nor {PYTORCH}; copy the whole folder")


def _check_config(path: Path, config: ForeignConfig) -> None:
    """Raise ValueError for a model that is not Marian's, or is unlike them all."""
    kind = config.get("model_type")
    if kind != "marian":
        raise ValueError(
            f"{path}: model_type is {kind!r}; only 'marian' and 'm2m_100' can be imported"
        )
    for name in NEEDED:
        if name not in config:
            raise ValueError(f"{path} has no {name}; copy the file again")
    for name, value in MUST_BE.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} is {config[name]!r}, which Marian models in Transformers do not "
                "have; correct config.json"
            )
    if config["activation_function"] not in tuple(ACTIVATIONS):
        raise ValueError(
            f"{path}: activation_function is {config['activation_function']!r}; known are "
            f"{', '.join(ACTIVATIONS)}"
        )


def model_config(
    path: Path, config: ForeignConfig, tie: str, norm: str, dialect: Mapping[str, Any]
) -> ModelConfig:
    """Return the architecture that config.json describes.

    Args:
        path: The place of config.json, for messages.
        config: Its content.
        tie: The tie of the embeddings.
        norm: The norm of the family.
        dialect: The fields in which the family differs from Marian in Transformers.

    Raises:
        ValueError: A size makes no sense.
    """
    values = {
        **{name: config[key] for name, key in SIZES.items()},
        "dropout": config.get("dropout", 0.1),
        "activation": ACTIVATIONS[config["activation_function"]],
        "tie_embeddings": tie,
        "norm": norm,
        "use_bias": True,
        "dialect": {
            "output_bias": True,
            "epsilon": EPSILON,
            "position_layout": "halves",
            "scale_embedding": config["scale_embedding"],
            **dialect,
        },
    }
    keys = SIZES | {"dropout": "dropout", "scale_embedding": "scale_embedding"}
    for encoder, (decoder, key) in DECODER_SIZES.items():
        keys[decoder] = key
        if config[key] != values[encoder]:
            values["dialect"][decoder] = config[key]
    sections = {"model": values, "tokenizer": {"shared": tie in ("all", "input")}}
    with told_by_keys(path, keys):
        return Config.from_dict(sections).model


def embedding_tables(
    config: ForeignConfig, tensors: dict[str, np.ndarray], untied: bool
) -> tuple[dict[Table, np.ndarray], dict[Place, str], str]:
    """Take the embeddings and the output's bias out of `tensors`.

    Returned are the tables, their names and the tie. The flags decide which tables are one, and
    names are then searched in a fixed order.
    """
    shares = _flag(config, "share_encoder_decoder_embeddings")
    ties = _flag(config, "tie_word_embeddings") and not untied
    groups = UNTIED if untied else GROUPS[shares, ties]
    last = next(table for table in (OUTPUT, TARGET, SOURCE) if table in groups)
    found: dict[Table, np.ndarray] = {}
    names: dict[Place, str] = {}
    for table, aliases in groups.items():
        names[table] = aliases[0]
        present = [name for name in aliases if name in tensors]
        if not present:
            raise ValueError(f"the tensor {aliases[0]} is missing; copy the checkpoint again")
        found[table] = tensors[present[0]]
        if ties:
            _warn_of_differences(tensors, present)
    if not ties:
        _warn_of_unused(tensors, found)
    names[OUTPUT_BIAS] = BIAS
    bias = tensors.pop(BIAS, None)
    if bias is None:  # transformers, too, begins with zeros
        bias = np.zeros((1, len(found[last])), np.float32)
    found[OUTPUT_BIAS] = bias[0] if bias.ndim == 2 and len(bias) == 1 else bias
    for aliases in groups.values():
        for name in aliases:
            tensors.pop(name, None)
    return found, names, _tie(found)


def _flag(config: ForeignConfig, name: str) -> bool:
    """Return a setting that is true or false, and true if it is not there."""
    value = config.get(name, True)
    if type(value) is not bool:
        raise ValueError(f"{name} in config.json is {value!r}, but must be true or false")
    return value


def _tie(tables: dict[Table, np.ndarray]) -> str:
    """Return the tie of the given tables.

    A target's table that equals the source's is taken out.
    """
    if OUTPUT in tables and SOURCE in tables and TARGET in tables:
        if not np.array_equal(tables[SOURCE], tables[TARGET]):
            return "none"
        del tables[TARGET]
    if OUTPUT in tables:
        return "input"
    return "output" if TARGET in tables else "all"


def _warn_of_differences(tensors: Mapping[str, np.ndarray], names: list[str]) -> None:
    """Warn where tied tensors differ.

    The first is taken; the others are usually leftovers.
    """
    first = tensors[names[0]]
    for name in names[1:]:
        other = tensors[name]
        if other.shape != first.shape:
            raise ValueError(
                f"{names[0]} and {name} are tied, but have the shapes {first.shape} and "
                f"{other.shape}; correct config.json"
            )
        difference = float(np.abs(other.astype(np.float64) - first).max())
        if difference > 0 and names[0] != SHARED:
            raise ValueError(
                f"{names[0]} and {name}, which config.json shares, differ, and {SHARED} is "
                "missing; copy the checkpoint again"
            )
        if difference > 0:
            warnings.warn(
                f"{names[0]} and {name} are tied, but differ by up to {difference:.3g}; "
                f"{names[0]} is used for both (--untied keeps both)",
                stacklevel=2,
            )


def _warn_of_unused(tensors: Mapping[str, np.ndarray], tables: Mapping[Table, np.ndarray]) -> None:
    """Warn of a shared table that no table of an untied model is taken from."""
    shared = tensors.get(SHARED)
    if shared is None or any(np.array_equal(shared, table) for table in tables.values()):
        return
    warnings.warn(
        f"{SHARED} differs from each table that the model uses, as nothing is tied, and is left "
        "out",
        stacklevel=3,
    )


def _position_table(positions: str, tensors: dict[str, np.ndarray]) -> str:
    """Return the timescale of the positions.

    A table in the file must be one of the two that are known.
    """
    stored = [tensors.pop(name) for name in POSITION_TENSORS if name in tensors]
    asked = {"hf": "paper", "marian": "t2t", "auto": "paper"}[positions]
    for table in stored:
        known = [name for name in ("paper", "t2t") if _is_table(table, name)]
        if not known:
            raise ValueError(
                f"{POSITION_TENSORS[0]} holds learned positions, which this package does not have"
            )
        if positions == "auto":
            asked = known[0]
    return asked


def _is_table(table: np.ndarray, timescale: str) -> bool:
    if table.ndim != 2 or table.shape[1] % 2:
        return False
    half = table.shape[1] // 2
    steps = half if timescale == "paper" else max(half - 1, 1)
    angles = np.arange(len(table))[:, None] * 10000.0 ** (-np.arange(half) / steps)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return bool(np.abs(table - wanted).max() < TABLE_TOLERANCE)


def search_file(folder: Path) -> Path:
    """Return the file of the search; in older checkpoints config.json has it."""
    own = folder / GENERATION
    return own if own.is_file() else folder / "config.json"


def search_settings(folder: Path) -> dict[str, Any]:
    """Return the settings of the search, without those that are null, which are unset."""
    found = read_object(search_file(folder))
    return {key: value for key, value in found.items() if value is not None}


def decoding_of(
    file: Path, generation: ForeignConfig, order: RowOrder, as_marian: bool = False
) -> DecodingConfig:
    """Return the search that a checkpoint asks for.

    Args:
        file: The file of the settings, for messages.
        generation: The settings of the search.
        order: The target's rows.
        as_marian: Whether the beam is Marian's, in place of its own.

    Raises:
        ValueError: A setting has no meaning here.
    """
    forbidden = _forbidden_tokens(file, generation, order)
    values = {
        **{name: generation.get(key, 1) for name, key in SEARCH.items()},
        "length_normalization": "power",
        "narrowing": as_marian,
        "allow_unknown": not as_marian and order.rows[UNKNOWN_ID] not in forbidden,
    }
    if as_marian:
        values |= {"max_length_factor": MAX_LENGTH_FACTOR, "extra_length": 0}
    for name, usual in USUAL_SEARCH.items():
        if (value := generation.get(name, usual)) != usual:
            warnings.warn(f"{file}: {name} {value!r} is not known here and left out", stacklevel=2)
    if "forced_bos_token_id" in generation:
        raise ValueError(
            f"{file}: forced_bos_token_id is set, but a forced first token is not known"
        )
    with told_by_keys(file, SEARCH):
        return Config.from_dict({"decoding": values}).decoding


def _forbidden_tokens(file: Path, generation: ForeignConfig, order: RowOrder) -> set[int | None]:
    """Return the ids that a translation never has, by `bad_words_ids`.

    Padding and the start are never generated here, and the unknown token need not be.
    """
    words = generation.get("bad_words_ids") or []
    known = [[order.rows[place]] for place in (PAD_ID, START_ID, UNKNOWN_ID)]
    if not isinstance(words, list) or any(word not in known for word in words):
        warnings.warn(
            f"{file}: bad_words_ids {reprlib.repr(words)} has more than padding, start and the "
            "unknown token; they are left out",
            stacklevel=3,
        )
        return set()
    return {number for word in words for number in word}


def longest_source(folder: Path, tokenizer: ForeignConfig) -> int:
    """Return the most tokens of a source, by tokenizer_config.json.

    Args:
        folder: Its folder, for messages.
        tokenizer: Its content. Transformers writes 10^30 where there is no limit.

    Raises:
        ValueError: It is no whole number from 2 on.
    """
    length = tokenizer.get("model_max_length", MAX_LENGTH)
    is_whole = type(length) is int or (isinstance(length, float) and length.is_integer())
    if not is_whole or length < 2:
        raise ValueError(
            f"{folder}: model_max_length in tokenizer_config.json is {length!r}, but must be a "
            "whole number from 2 on"
        )
    return int(length) if length <= LONGEST else MAX_LENGTH


def check_special_ids(folder: Path, config: ForeignConfig, order: RowOrder) -> None:
    """Compare the ids in both configurations with the special rows of the vocabulary.

    Args:
        folder: The folder with generation_config.json.
        config: The content of config.json.
        order: The target's rows.

    Raises:
        ValueError: A special token has another id.
    """
    own = optional_object(folder / GENERATION)
    wanted = {
        "eos_token_id": ("</s>", order.rows[END_ID]),
        "forced_eos_token_id": ("</s>", order.rows[END_ID]),
        "pad_token_id": ("<pad>", order.rows[PAD_ID]),
        "decoder_start_token_id": ("the first token", order.rows[START_ID]),
    }
    for file, settings in (("config.json", config), (GENERATION, own)):
        for key, (name, row) in wanted.items():
            found = settings.get(key)
            if found is not None and found not in (row, [row]):
                raise ValueError(
                    f"{folder}: {key} in {file} is {found!r}, but {name} has the id {row} by the "
                    "other files; correct one of them"
                )


def _check_tokenizer(path: Path, tokenizer: ForeignConfig, pieces: list[str]) -> None:
    """Raise ValueError if tokenizer_config.json is not of the source's vocabulary.

    MarianTokenizer takes the ids of special tokens from vocab.json, also for the target.
    """
    for key, name in (("unk_token", "<unk>"), ("eos_token", "</s>"), ("pad_token", "<pad>")):
        token = tokenizer.get(key, name)
        if (token.get("content") if isinstance(token, dict) else token) != name:
            raise ValueError(f"{path}: {key} is {token!r}, not {name}; copy the file again")
    is_separate = (path.parent / TARGET_VOCABULARY).is_file()
    if tokenizer.get("separate_vocabs", is_separate) is not is_separate:
        raise ValueError(
            f"{path}: separate_vocabs is {tokenizer['separate_vocabs']!r}, but there is "
            f"{'a' if is_separate else 'no'} {TARGET_VOCABULARY}; copy the whole folder"
        )
    added = tokenizer.get("added_tokens_decoder", {})
    for number, entry in added.items() if isinstance(added, dict) else ():
        token = entry.get("content") if isinstance(entry, dict) else None
        if token not in pieces or str(pieces.index(token)) != number:
            raise ValueError(
                f"{path} names the token {token!r} with the id {number}, which vocab.json "
                "beside it does not; copy both files again"
            )


def _languages(tokenizer: ForeignConfig) -> list[str] | None:
    found = [tokenizer.get(key) for key in ("source_lang", "target_lang")]
    return [str(name) for name in found] if all(found) else None


def _vocabularies(
    folder: Path,
    config: ForeignConfig,
    generation: ForeignConfig,
    places: Mapping[Place, np.ndarray],
) -> tuple[Vocabulary, Vocabulary, bool]:
    """Both sides' vocabularies, and whether they have the same tokens."""
    files = [folder / "vocab.json", folder / TARGET_VOCABULARY]
    shared = not files[1].is_file()
    if shared and SOURCE in places and TARGET in places:
        shared = len(places[SOURCE]) == len(places[TARGET])
    source = read_vocabulary(files[0])
    target = source if shared else read_vocabulary(files[1])
    sizes = {"vocab_size": (files[0], source), "decoder_vocab_size": (files[not shared], target)}
    for key, (file, pieces) in sizes.items():
        size = config.get(key, config.get("vocab_size"))
        if (size or config.get("vocab_size")) != len(pieces):
            raise ValueError(f"{file} has {len(pieces)} tokens, but {key} in config.json is {size}")
    start = generation.get("decoder_start_token_id", config.get("decoder_start_token_id"))
    orders = (_order(files[0], source, None), _order(files[not shared], target, start))
    files_of_models = [folder / f"{side}.spm" for side in ("source", "target")]
    models = [sentencepiece_model(file) for file in files_of_models]
    for model, file, pieces in zip(models, files_of_models, (source, target), strict=True):
        check_segmentation(model, file, pieces)
    for file, pieces in ((files[0], source), (files[not shared], target)):
        check_tokens(pieces, file, models)
    if shared:
        orders = (orders[1], orders[1])
    sides = [
        Vocabulary(pieces, model, order)
        for pieces, model, order in zip((source, target), models, orders, strict=True)
    ]
    if shared and models[0] == models[1]:
        sides[1] = sides[0]
    return sides[0], sides[1], shared


def _order(file: Path, pieces: list[str], start: object) -> RowOrder:
    """The special tokens by name."""
    places = {piece: number for number, piece in enumerate(pieces)}
    for name in ("</s>", "<unk>", "<pad>"):
        if name not in places:
            raise ValueError(f"{file} has no {name}; give the model's own vocabulary")
    first = places["<pad>"] if start is None else start
    if type(first) is not int or not 0 <= first < len(pieces):
        raise ValueError(f"decoder_start_token_id {first!r} is no id of {file}")
    return RowOrder.of(
        len(pieces),
        unknown=places["<unk>"],
        end=places["</s>"],
        pad=places["<pad>"],
        start=first,
    )


def sentencepiece_model(path: Path) -> bytes:
    """Return the bytes of a SentencePiece model; ValueError if it is missing or none."""
    if not path.is_file():
        raise ValueError(
            f"{path} is missing; copy the whole folder (models with source.bpe have no "
            "SentencePiece and cannot be imported)"
        )
    content = path.read_bytes()
    parse_sentencepiece(content, str(path))
    return content
