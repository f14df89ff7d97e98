"""The weights of Marian and M2M100 models from Hugging Face: files, names and architecture.

Written from transformers 5.23, models/marian and models/m2m_100. Kernels are stored as (outputs,
inputs). The names are also used for export.
"""

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfformer.checkpoints.foreign_files import read_object, told_by_keys
from tfformer.checkpoints.tensor_files import read_pytorch, read_safetensors
from tfformer.checkpoints.weight_names import (
    OUTPUT,
    OUTPUT_BIAS,
    SOURCE,
    TABLES,
    TARGET,
    Slot,
    TokenTable,
    WeightName,
    shapes,
)
from tfformer.config import Config, ModelConfig

SAFETENSORS = "model.safetensors"
FILES = {SAFETENSORS: read_safetensors, "pytorch_model.bin": read_pytorch}
INDEX = ".index.json"  # suffix of a file's name, for a checkpoint in several files
SHARED = "model.shared.weight"
ENCODER_EMBEDDING = "model.encoder.embed_tokens.weight"
DECODER_EMBEDDING = "model.decoder.embed_tokens.weight"
HEAD = "lm_head.weight"
BIAS = "final_logits_bias"
EPSILON = 1e-5  # torch.nn.LayerNorm
ACTIVATIONS = {"swish": "swish", "silu": "swish", "relu": "relu", "gelu": "gelu"}
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
NEEDED = (  # keys that every version of transformers writes
    *SIZES.values(),
    *("decoder_attention_heads", "decoder_ffn_dim", "activation_function", "scale_embedding"),
)
BLOCKS = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
PROJECTIONS = {
    **{"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"},
    **{"inner": "fc1", "outer": "fc2"},
}
NORMS = {
    "self_attention": "self_attn_layer_norm",
    "cross_attention": "encoder_attn_layer_norm",
    "feed_forward": "final_layer_norm",
}
ForeignConfig = Mapping[str, Any]  # the content of config.json or of a file beside it
Tensors = Mapping[str, np.ndarray]  # name -> tensor
Groups = dict[TokenTable, tuple[str, ...]]
# (shared, tied) -> table -> names of the same tensor, the most reliable first
GROUPS: dict[tuple[bool, bool], Groups] = {
    (True, True): {SOURCE: (SHARED, DECODER_EMBEDDING, ENCODER_EMBEDDING, HEAD)},
    (False, True): {SOURCE: (ENCODER_EMBEDDING,), TARGET: (DECODER_EMBEDDING, HEAD)},
    (False, False): {SOURCE: (ENCODER_EMBEDDING,), TARGET: (DECODER_EMBEDDING,), OUTPUT: (HEAD,)},
    (True, False): {  # Transformers 5 then ties no tables; older versions store only two tables
        SOURCE: (ENCODER_EMBEDDING, SHARED),
        TARGET: (DECODER_EMBEDDING, SHARED),
        OUTPUT: (HEAD,),
    },
}


class Weights(NamedTuple):
    """The architecture and the numbers of a checkpoint."""

    model: ModelConfig
    tensors: dict[WeightName, np.ndarray]  # kernels as (inputs, outputs)
    names: dict[WeightName, str]  # weight -> name of the tensor in the file


def slot_name(slot: Slot) -> str:
    """Return Transformers' name of a layer's tensor, for Marian and M2M100.

    Example:
        >>> slot_name(Slot("decoder", 0, "cross_attention", "key", "kernel"))
        'model.decoder.layers.0.encoder_attn.k_proj.weight'
    """
    kind = "bias" if slot.kind == "bias" else "weight"
    if slot.layer is None:
        return f"model.{slot.stack}.layer_norm.{kind}"
    if slot.projection == "norm":
        middle = NORMS[slot.block]
    elif slot.block == "feed_forward":
        middle = PROJECTIONS[slot.projection]
    else:
        middle = f"{BLOCKS[slot.block]}.{PROJECTIONS[slot.projection]}"
    return f"model.{slot.stack}.layers.{slot.layer}.{middle}.{kind}"


def read_tensors(folder: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a folder by their names.

    The folder contains a safetensors or PyTorch file, or several files with an index. It raises
    ValueError if there is no such file or it is damaged.
    """
    for name, read in FILES.items():
        if (folder / name).is_file():
            return read(folder / name)
        index = folder / f"{name}{INDEX}"
        if index.is_file():
            return _read_shards(index, read)
    raise ValueError(f"{folder} has neither {' nor '.join(FILES)}; copy the whole folder")


def _read_shards(
    index: Path, read: Callable[[Path], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    weight_map = read_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError(f"{index} has no weight_map; copy it again")
    tensors: dict[str, np.ndarray] = {}
    for name in sorted({str(name) for name in weight_map.values()}):
        if Path(name).name != name or not (index.parent / name).is_file():
            raise ValueError(
                f"{index} names {name!r}, which is not in the same folder; copy all files"
            )
        tensors |= read(index.parent / name)
    differing = sorted(weight_map.keys() ^ tensors.keys())
    if differing:
        raise ValueError(
            f"{index} and its files differ in {differing[0]} ({len(differing)} such tensors); copy "
            "all files again"
        )
    return tensors


def check_config(path: Path, config: ForeignConfig, needed: tuple[str, ...]) -> None:
    """Raise ValueError for a config.json without a needed key, or with an unknown activation."""
    for name in needed:
        if name not in config:
            raise ValueError(f"{path} has no {name}; copy the file again")
    if config["activation_function"] not in tuple(ACTIVATIONS):
        raise ValueError(
            f"{path}: activation_function is {config['activation_function']!r}; known are "
            f"{', '.join(ACTIVATIONS)}"
        )


def read_weights(
    path: Path,
    config: ForeignConfig,
    tensors: Tensors,
    *,
    norm: str,
    dialect: Mapping[str, Any],
    ignored: tuple[str, ...],
) -> Weights:
    """Return the architecture of a checkpoint, and its tensors by their names here.

    `path` is config.json, for messages; `dialect` contains the fields in which the family differs
    from Marian in Transformers; `ignored` names tensors that are not weights. It raises ValueError
    if a tensor is missing or unknown, or a size is invalid.
    """
    shares = _flag(config, "share_encoder_decoder_embeddings")
    ties = _flag(config, "tie_word_embeddings")
    groups = GROUPS[shares, ties]
    tables, names = _tables(groups, tensors)
    if ties:
        _check_ties(groups, tensors)
    else:
        _warn_of_unused(tensors, tables)
    if {TARGET, OUTPUT} <= tables.keys() and np.array_equal(tables[SOURCE], tables[TARGET]):
        del tables[TARGET]
    tie = next(tie for tie, kept in TABLES.items() if {*kept, OUTPUT_BIAS} == tables.keys())
    model = _model_config(path, config, tie, norm, dialect)
    weights: dict[WeightName, np.ndarray] = dict(tables.items())
    for slot, shape in shapes(model).items():
        names[slot] = slot_name(slot)
        if names[slot] in tensors:
            stored = tensors[names[slot]]
            weights[slot] = stored.T if len(shape) == 2 else stored
    aliases = {name for group in groups.values() for name in group}
    unknown = sorted(tensors.keys() - aliases - {*names.values(), *ignored})
    if unknown:
        raise ValueError(
            f"the tensor {unknown[0]} does not fit a model with this configuration "
            f"({len(unknown)} such); correct config.json or use the right file"
        )
    return Weights(model, weights, names)


def _flag(config: ForeignConfig, name: str) -> bool:
    """Return a Boolean setting; True if it is missing."""
    value = config.get(name, True)
    if type(value) is not bool:
        raise ValueError(f"{name} in config.json is {value!r}, but must be true or false")
    return value


def _tables(
    groups: Groups, tensors: Tensors
) -> tuple[dict[TokenTable, np.ndarray], dict[WeightName, str]]:
    tables: dict[TokenTable, np.ndarray] = {}
    names: dict[WeightName, str] = {OUTPUT_BIAS: BIAS}
    for table, aliases in groups.items():
        names[table] = aliases[0]
        present = [name for name in aliases if name in tensors]
        if not present:
            raise ValueError(f"the tensor {aliases[0]} is missing; copy the checkpoint again")
        tables[table] = tensors[present[0]]
    last = next(table for table in (OUTPUT, TARGET, SOURCE) if table in groups)
    bias = tensors.get(BIAS)
    if bias is None:  # Transformers also initialises it with zeros
        bias = np.zeros((1, len(tables[last])), np.float32)
    tables[OUTPUT_BIAS] = bias[0] if bias.ndim == 2 and len(bias) == 1 else bias
    return tables, names


def _check_ties(groups: Groups, tensors: Tensors) -> None:
    """Warn if tied tensors differ; the shared tensor is used, the others are usually leftovers."""
    for aliases in groups.values():
        first, *copies = [name for name in aliases if name in tensors]
        for name in copies:
            if tensors[name].shape != tensors[first].shape:
                raise ValueError(
                    f"{first} and {name} are tied, but have the shapes {tensors[first].shape} and "
                    f"{tensors[name].shape}; correct config.json"
                )
            difference = float(np.abs(tensors[name].astype(np.float64) - tensors[first]).max())
            if difference and first != SHARED:
                raise ValueError(
                    f"{first} and {name} are tied in config.json but differ, and {SHARED} is "
                    "missing; copy the checkpoint again"
                )
            if difference:
                warnings.warn(
                    f"{first} and {name} are tied, but differ by up to {difference:.3g}; {first} "
                    "is used for both",
                    stacklevel=2,
                )


def _warn_of_unused(tensors: Tensors, tables: Mapping[TokenTable, np.ndarray]) -> None:
    """Warn if an untied model contains a shared table that it does not use."""
    shared = tensors.get(SHARED)
    if shared is None or any(np.array_equal(shared, table) for table in tables.values()):
        return
    warnings.warn(
        f"{SHARED} is ignored: nothing is tied, and it differs from every table that the model "
        "uses",
        stacklevel=2,
    )


def _model_config(
    path: Path, config: ForeignConfig, tie: str, norm: str, dialect: Mapping[str, Any]
) -> ModelConfig:
    values: dict[str, Any] = {name: config[key] for name, key in SIZES.items()} | {
        "dropout": config.get("dropout", 0.1),
        "activation": ACTIVATIONS[config["activation_function"]],
        "tie_embeddings": tie,
        "norm": norm,
    }
    differing: dict[str, Any] = {
        "output_bias": True,
        "epsilon": EPSILON,
        "position_layout": "halves",
        "scale_embedding": config["scale_embedding"],
        **dialect,
    }
    keys = {**SIZES, "position_offset": "pad_token_id"}
    for encoder, (decoder, key) in DECODER_SIZES.items():
        keys[decoder] = key
        if config[key] != values[encoder]:
            differing[decoder] = config[key]
    sections = {
        "model": {**values, "dialect": differing},
        "tokenizer": {"shared": tie in ("all", "input")},
    }
    with told_by_keys(path, keys):
        return Config.from_dict(sections).model
