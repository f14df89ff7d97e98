"""Writes a run as a Marian checkpoint of Hugging Face.

`MarianMTModel.from_pretrained` loads it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.foreign_order import (
    Foreign,
    as_foreign,
    special_ids,
)
from tfformer.checkpoints.hugging_face.reader import (
    BIAS,
    DECODER_EMBEDDING,
    ENCODER_EMBEDDING,
    HEAD,
    POSITION_TENSORS,
    SAFETENSORS,
    SHARED,
    slot_name,
)
from tfformer.checkpoints.json_files import write_object
from tfformer.checkpoints.tensors import safetensors_file as safetensors_files
from tfformer.checkpoints.weight_names import OUTPUT, OUTPUT_BIAS, SOURCE, TARGET, Slot
from tfformer.config import Config, ModelConfig
from tfformer.model.positions import positional_encoding
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run

TABLES = {  # tie -> name -> table; transformers 5 ties nothing where the output is not tied
    "all": {SHARED: SOURCE},
    "input": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: SOURCE, HEAD: OUTPUT},
    "output": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: TARGET},
    "none": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: TARGET, HEAD: OUTPUT},
}


def write(folder: Path, run: Run, model: Transformer) -> None:
    """Fill a folder with a checkpoint.

    Args:
        folder: An empty one.
        run: A run, imported or trained here.
        model: Its model.

    Raises:
        ValueError: The model has layers that Marian models in Transformers do not have.
    """
    settings = run.config.model
    _check(run.path, settings)
    foreign = as_foreign(run, model, with_pad=True)
    tensors = tensors_of(foreign, settings)
    tensors[BIAS] = foreign.tensors[OUTPUT_BIAS][np.newaxis]
    config = _config(foreign, run.config)
    if settings.dialect.position_timescale != "paper":
        table = _position_table(settings, config["max_position_embeddings"])
        tensors |= dict.fromkeys(POSITION_TENSORS, table.astype(_dtype(foreign)))
    safetensors_files.write(folder / SAFETENSORS, tensors)
    write_object(folder / "config.json", config)
    write_object(folder / "generation_config.json", _generation(foreign, run.config))
    write_object(folder / "tokenizer_config.json", _tokenizer(foreign, run.config))
    _write_vocabularies(folder, foreign)


def _check(path: Path, settings: ModelConfig) -> None:
    if settings.norm != "post":
        raise ValueError(
            f"{path} has model.norm={settings.norm}, which Marian models in Transformers do not "
            f"have; use --format {'ctranslate2' if settings.norm == 'pre' else 'marian'}"
        )
    if settings.dialect.position_offset:
        raise ValueError(
            f"{path} has model.dialect.position_offset={settings.dialect.position_offset}, but "
            "positions of Marian begin at 0; use --format ctranslate2"
        )
    if not settings.use_bias:
        raise ValueError(
            f"{path} has model.use_bias=false, but Marian models in Transformers have biases; "
            "use --format ctranslate2"
        )


def tensors_of(foreign: Foreign, settings: ModelConfig) -> dict[str, np.ndarray]:
    """Return the layers and the tables of a run by their names in Transformers.

    Args:
        foreign: The run's tensors.
        settings: The architecture.

    Returns:
        Name -> array, all but the output's bias.
    """
    found: dict[str, np.ndarray] = {}
    for place, tensor in foreign.tensors.items():
        if isinstance(place, Slot):
            stored = tensor.T if tensor.ndim == 2 else tensor
            found[slot_name(place)] = np.ascontiguousarray(stored)
    for name, table in TABLES[settings.tie_embeddings].items():
        found[name] = foreign.tensors[table]
    return found


def _position_table(settings: ModelConfig, length: int) -> np.ndarray:
    """Return the table of positions of each side, (length, D).

    Transformers computes one kind of positions, and loads a table where there is one.
    """
    places = np.arange(length)
    timescale = settings.dialect.position_timescale
    return positional_encoding(places, settings.d_model, "halves", timescale).numpy()


def _dtype(foreign: Foreign) -> str:
    """Return the kind of numbers of a run's tables."""
    return foreign.tensors[SOURCE].dtype.name


def stating_dtype(config: dict[str, Any], foreign: Foreign) -> dict[str, Any]:
    """Return config.json with the kind of numbers that is written.

    Args:
        config: Its content; older versions of Transformers have a key of another name.
        foreign: The run's tensors.
    """
    keys = [key for key in ("dtype", "torch_dtype") if key in config] or ["dtype"]
    return config | dict.fromkeys(keys, _dtype(foreign))


def _config(foreign: Foreign, config: Config) -> dict[str, Any]:
    settings = config.model
    ids = special_ids(foreign.target)
    first = foreign.record.get("details", {}).get("config", {})
    own = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": len(foreign.source.pieces),
        "decoder_vocab_size": len(foreign.target.pieces),
        "d_model": settings.d_model,
        "encoder_layers": settings.num_layers,
        "decoder_layers": settings.num_decoder_layers or settings.num_layers,
        "encoder_attention_heads": settings.num_heads,
        "decoder_attention_heads": settings.dialect.num_decoder_heads or settings.num_heads,
        "encoder_ffn_dim": settings.d_ff,
        "decoder_ffn_dim": settings.dialect.decoder_d_ff or settings.d_ff,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "scale_embedding": settings.dialect.scale_embedding,
        "share_encoder_decoder_embeddings": settings.tie_embeddings == "all",
        "tie_word_embeddings": settings.tie_embeddings in ("all", "output"),
        "max_position_embeddings": config.data.max_length,
        "pad_token_id": ids["pad"],
        "eos_token_id": ids["end"],
        "forced_eos_token_id": ids["end"],
        "decoder_start_token_id": ids["start"],
        "is_encoder_decoder": True,
    }
    if first:
        own["max_position_embeddings"] = first.get("max_position_embeddings", 1024)
    return stating_dtype(first | own, foreign)


def changed_search(first: dict[str, Any], foreign: Foreign, config: Config) -> dict[str, Any]:
    """Return generation_config.json with the run's search where that changed.

    Args:
        first: Its content when the run was imported.
        foreign: The run in the foreign order.
        config: The run's recipe.
    """
    start = special_ids(foreign.target)["start"]
    usual = {  # what Transformers takes where none is stated; the start then stands elsewhere
        "num_beams": 1,
        "length_penalty": 1.0,
        "bad_words_ids": None,
        "decoder_start_token_id": start,
    }
    own = {
        "num_beams": config.decoding.beam_size,
        "length_penalty": config.decoding.length_penalty,
        "bad_words_ids": _forbidden(first, foreign, config),
        "decoder_start_token_id": start,
    }
    return first | {name: value for name, value in own.items() if value != (usual | first)[name]}


def _forbidden(first: dict[str, Any], foreign: Foreign, config: Config) -> list[list[int]] | None:
    """Return the forbidden words, with the unknown token if the run never takes it."""
    words = first.get("bad_words_ids")
    unknown = [special_ids(foreign.target)["unknown"]]
    if (unknown in (words or [])) is not config.decoding.allow_unknown:
        return words
    others = [word for word in words or [] if word != unknown]
    return (others if config.decoding.allow_unknown else [*others, unknown]) or None


def _generation(foreign: Foreign, config: Config) -> dict[str, Any]:
    first = foreign.record.get("details", {}).get("generation")
    if first:
        return changed_search(first, foreign, config)
    ids = special_ids(foreign.target)
    silent = ["pad", "start", *([] if config.decoding.allow_unknown else ["unknown"])]
    never = sorted({number for name in silent if (number := ids[name]) is not None})
    return {
        "num_beams": config.decoding.beam_size,
        "length_penalty": config.decoding.length_penalty,
        "max_length": config.data.max_length,
        "bad_words_ids": [[number] for number in never if number != ids["end"]],
        "forced_eos_token_id": ids["end"],
        "eos_token_id": ids["end"],
        "pad_token_id": ids["pad"],
        "decoder_start_token_id": ids["start"],
        "renormalize_logits": True,
    }


def _tokenizer(foreign: Foreign, config: Config) -> dict[str, Any]:
    languages = config.data.languages or ["source", "target"]
    own = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": not foreign.shares_vocabulary,
        "source_lang": languages[0],
        "target_lang": languages[1],
        "model_max_length": config.data.max_length,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
    }
    return foreign.record.get("details", {}).get("tokenizer") or own


def _write_vocabularies(folder: Path, foreign: Foreign) -> None:
    sides = {"source": foreign.source, "target": foreign.target}
    for name, side in sides.items():
        (folder / f"{name}.spm").write_bytes(side.model)
    names = {"vocab.json": foreign.source}
    if not foreign.shares_vocabulary:
        names["target_vocab.json"] = foreign.target
    for file, side in names.items():
        write_object(folder / file, {piece: number for number, piece in enumerate(side.pieces)})
