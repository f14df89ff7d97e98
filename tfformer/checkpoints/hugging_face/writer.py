"""Write a run as a Hugging Face checkpoint: M2M100 or NLLB if imported from these, else Marian.

`MarianMTModel.from_pretrained` or `M2M100ForConditionalGeneration.from_pretrained` loads it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.foreign_files import write_object
from tfformer.checkpoints.foreign_order import Foreign, as_foreign, special_ids
from tfformer.checkpoints.hugging_face.reader import (
    CONFIG,
    POSITION_TENSORS,
    SENTENCEPIECE,
    SPECIAL_TOKENS,
    TARGET_VOCABULARY,
    TOKENIZER,
    VOCABULARY,
)
from tfformer.checkpoints.hugging_face.search_settings import GENERATION
from tfformer.checkpoints.hugging_face.weights import (
    BIAS,
    DECODER_EMBEDDING,
    ENCODER_EMBEDDING,
    HEAD,
    SAFETENSORS,
    SHARED,
    slot_name,
)
from tfformer.checkpoints.tensor_files import write_safetensors
from tfformer.checkpoints.vocabulary import renumbered
from tfformer.checkpoints.weight_names import OUTPUT, OUTPUT_BIAS, SOURCE, TARGET, Slot
from tfformer.config import Config, ModelConfig, Rules
from tfformer.model.positions import positional_encoding
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run

CLASSES = ("NllbTokenizer", "M2M100Tokenizer")  # without and with a vocab.json
DETAILS = {"config", "generation", "tokenizer", "special", "listed", "added"}  # recorded on import
TABLES = {  # tie -> name -> table; Transformers 5 ties nothing if the output is not tied
    "all": {SHARED: SOURCE},
    "input": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: SOURCE, HEAD: OUTPUT},
    "output": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: TARGET},
    "none": {ENCODER_EMBEDDING: SOURCE, DECODER_EMBEDDING: TARGET, HEAD: OUTPUT},
}


def write(folder: Path, run: Run, model: Transformer) -> None:
    """Fill an empty folder with a Marian checkpoint of a run and its model.

    It raises ValueError for layers that Marian models in Transformers do not have.
    """
    settings = run.config.model
    _check_layers(run.path, settings)
    foreign = as_foreign(run, model, with_pad=True)
    config = _config(foreign, run.config)
    tensors = _tensors(foreign, settings)
    tensors[BIAS] = foreign.tensors[OUTPUT_BIAS][np.newaxis]
    timescale = settings.dialect.position_timescale
    if timescale != "paper":  # Transformers computes only "paper", and loads others
        positions = np.arange(config["max_position_embeddings"])
        table = positional_encoding(positions, settings.d_model, "halves", timescale).numpy()
        tensors |= dict.fromkeys(POSITION_TENSORS, table.astype(_dtype(foreign)))
    write_safetensors(folder / SAFETENSORS, tensors)
    write_object(folder / CONFIG, config)
    write_object(folder / GENERATION, _generation(foreign, run.config))
    write_object(folder / TOKENIZER, _tokenizer(foreign, run.config))
    vocabularies = {VOCABULARY: foreign.source}
    if not foreign.shares_vocabulary:
        vocabularies[TARGET_VOCABULARY] = foreign.target
    for file, vocabulary in vocabularies.items():
        _write_vocabulary(folder / file, vocabulary.pieces)
    (folder / "source.spm").write_bytes(foreign.source.model)
    (folder / "target.spm").write_bytes(foreign.target.model)


def write_multilingual(folder: Path, run: Run, model: Transformer) -> None:
    """Fill an empty folder with the checkpoint of M2M100 or NLLB that a run was imported from.

    It raises ValueError if the run was trained after its import in a way that Transformers cannot
    represent.
    """
    foreign = as_foreign(run, model, with_pad=True)
    _check_multilingual(run, foreign)
    details = foreign.record["details"]
    write_safetensors(folder / SAFETENSORS, _tensors(foreign, run.config.model))
    config = _stating_dtype(details["config"], foreign)
    generation = details["generation"]
    if generation:
        write_object(folder / GENERATION, _changed_search(generation, foreign, run.config))
    else:  # config.json may contain an older search, which this file overrides
        config = _changed_search(config, foreign, run.config)
    write_object(folder / CONFIG, config)
    write_object(folder / TOKENIZER, _multilingual_tokenizer(details, run))
    if details["special"]:
        write_object(folder / SPECIAL_TOKENS, details["special"])
    (folder / SENTENCEPIECE).write_bytes(foreign.source.model)
    if details["listed"] is not None:
        _write_vocabulary(folder / VOCABULARY, foreign.source.pieces[: details["listed"]])


def _check_layers(path: Path, settings: ModelConfig) -> None:
    if settings.decoder != "attention":
        raise ValueError(
            f"{path} has model.decoder={settings.decoder}, simple recurrent units, which Marian "
            "models in Transformers do not have; use --format saved_model, litert or marian"
        )
    if settings.norm != "post":
        raise ValueError(
            f"{path} has model.norm={settings.norm}, which Marian models in Transformers do not "
            f"have; use --format {'ctranslate2' if settings.norm == 'pre' else 'marian'}"
        )
    if settings.dialect.position_offset:
        raise ValueError(
            f"{path} has model.dialect.position_offset={settings.dialect.position_offset}, but "
            "Marian's positions begin at 0; use --format ctranslate2"
        )
    if not settings.use_bias:
        raise ValueError(
            f"{path} has model.use_bias=false, but Marian models in Transformers have biases; "
            "use --format ctranslate2"
        )


def _check_multilingual(run: Run, foreign: Foreign) -> None:
    """Raise ValueError for weights that Transformers cannot store in such a model."""
    missing = sorted(DETAILS - foreign.record["details"].keys())
    if missing:
        raise ValueError(
            f"{run.origin} has no {missing[0]}, because another version of tfformer wrote it; "
            "import the model again"
        )
    config = foreign.record["details"]["config"]
    offset = run.config.model.dialect.position_offset
    if offset != config["pad_token_id"] + 1:
        raise ValueError(
            f"{run.path} has model.dialect.position_offset={offset}, but M2M100 and NLLB count "
            f"positions from pad_token_id + 1 = {config['pad_token_id'] + 1}; import the model "
            "again, or use --format ctranslate2"
        )
    if len(foreign.target.pieces) > config["vocab_size"]:
        raise ValueError(
            f"{run.path} was trained after its import and now begins a translation with a learned "
            "vector, but M2M100 and NLLB begin with a token's vector; use --format ctranslate2"
        )
    if np.any(foreign.tensors[OUTPUT_BIAS]):
        raise ValueError(
            f"{run.path} was trained after its import and now has an output bias, but M2M100 and "
            "NLLB have none; use --format ctranslate2"
        )


def _tensors(foreign: Foreign, settings: ModelConfig) -> dict[str, np.ndarray]:
    """Return all tensors by their names in Transformers, except the output's bias."""
    tensors: dict[str, np.ndarray] = {}
    for weight, tensor in foreign.tensors.items():
        if isinstance(weight, Slot):
            tensors[slot_name(weight)] = tensor.T if tensor.ndim == 2 else tensor
    for name, table in TABLES[settings.tie_embeddings].items():
        tensors[name] = foreign.tensors[table]
    return tensors


def _write_vocabulary(path: Path, pieces: list[str]) -> None:
    write_object(path, {piece: number for number, piece in enumerate(pieces)})


def _dtype(foreign: Foreign) -> str:
    return foreign.tensors[SOURCE].dtype.name


def _stating_dtype(config: dict[str, Any], foreign: Foreign) -> dict[str, Any]:
    """Return config.json with the dtype of the tensors; older versions call it `torch_dtype`."""
    keys = [key for key in ("dtype", "torch_dtype") if key in config] or ["dtype"]
    return config | dict.fromkeys(keys, _dtype(foreign))


def _config(foreign: Foreign, config: Config) -> dict[str, Any]:
    settings = config.model
    dialect = settings.dialect
    ids = special_ids(foreign.target)
    first = foreign.record.get("details", {}).get("config", {})
    values = {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": len(foreign.source.pieces),
        "decoder_vocab_size": len(foreign.target.pieces),
        "d_model": settings.d_model,
        "encoder_layers": settings.num_layers,
        "decoder_layers": settings.num_decoder_layers or settings.num_layers,
        "encoder_attention_heads": settings.num_heads,
        "decoder_attention_heads": dialect.num_decoder_heads or settings.num_heads,
        "encoder_ffn_dim": settings.d_ff,
        "decoder_ffn_dim": dialect.decoder_d_ff or settings.d_ff,
        "activation_function": settings.activation,
        "dropout": settings.dropout,
        "scale_embedding": dialect.scale_embedding,
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
        values["max_position_embeddings"] = first.get("max_position_embeddings", 1024)
    return _stating_dtype(first | values, foreign)


def _search(foreign: Foreign, config: Config) -> dict[str, Any]:
    """Return the settings of a run's search in generation_config.json, except forbidden words."""
    rules = config.model.dialect.rules
    return {
        "num_beams": config.decoding.beam_size,
        "length_penalty": config.decoding.length_penalty,
        "early_stopping": config.model.dialect.early_stopping,
        "decoder_start_token_id": special_ids(foreign.target)["start"],
        "repetition_penalty": rules.repetition_penalty,
        "no_repeat_ngram_size": rules.no_repeat_ngram_size,
        "min_new_tokens": rules.min_length,
    }


def _changed_search(first: dict[str, Any], foreign: Foreign, config: Config) -> dict[str, Any]:
    """Return generation_config.json, updated where the run's search has changed."""
    values = _search(foreign, config) | {"bad_words_ids": _forbidden(first, foreign, config)}
    usual = {  # Transformers' default; config.json then contains the start token
        "num_beams": 1,
        "length_penalty": 1.0,
        "early_stopping": False,
        "bad_words_ids": None,
        "decoder_start_token_id": values["decoder_start_token_id"],
        "repetition_penalty": 1.0,
        "no_repeat_ngram_size": 0,
        "min_new_tokens": max((first.get("min_length") or 0) - 1, 0),  # includes the start token
    }
    return first | {name: value for name, value in values.items() if value != (usual | first)[name]}


def _forbidden(first: dict[str, Any], foreign: Foreign, config: Config) -> list[list[int]] | None:
    """Return the forbidden words, including the unknown token if the run forbids it.

    Entries for padding and the end token, which a run's rules cannot contain, are preserved.
    """
    words = first.get("bad_words_ids") or []
    ids = special_ids(foreign.target)
    unknown = [ids["unknown"]]
    silent = [word for word in words if word in ([ids["pad"]], [ids["end"]])]
    known = [word for word in words if word not in (*silent, unknown)]
    bad_words = _bad_words(foreign, config)
    if known == bad_words and (unknown in words) is not config.model.dialect.allow_unknown:
        return first.get("bad_words_ids")
    return [*silent, *bad_words, *([] if config.model.dialect.allow_unknown else [unknown])] or None


def _bad_words(foreign: Foreign, config: Config) -> list[list[int]]:
    """Return the forbidden words in a run's rules as ids of the checkpoint."""
    rows = enumerate(foreign.target.order.rows)
    ids = {number: row for number, row in rows if row is not None}
    return renumbered(config.model.dialect.rules.bad_words, ids)


def _generation(foreign: Foreign, config: Config) -> dict[str, Any]:
    first = foreign.record.get("details", {}).get("generation")
    if first:
        return _changed_search(first, foreign, config)
    ids = special_ids(foreign.target)
    silent = ["pad", "start", *([] if config.model.dialect.allow_unknown else ["unknown"])]
    rules = config.model.dialect.rules
    never = sorted({number for name in silent if (number := ids[name]) is not None})
    return _search(foreign, config) | {
        "max_length": config.data.max_length,
        "bad_words_ids": [
            *([number] for number in never if number != ids["end"]),
            *_bad_words(foreign, config),
        ],
        "forced_eos_token_id": ids["end"],
        "eos_token_id": ids["end"],
        "pad_token_id": ids["pad"],
        "renormalize_logits": rules == Rules() or rules.beam_scores != "log_probs",
    }


def _tokenizer(foreign: Foreign, config: Config) -> dict[str, Any]:
    languages = config.data.languages or ["source", "target"]
    values = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": not foreign.shares_vocabulary,
        "source_lang": languages[0],
        "target_lang": languages[1],
        "model_max_length": config.data.max_length,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
    }
    return foreign.record.get("details", {}).get("tokenizer") or values


def _multilingual_tokenizer(details: dict[str, Any], run: Run) -> dict[str, Any]:
    """Return tokenizer_config.json, which names each added token by its id."""
    source, target = run.languages or (None, None)
    values = {
        "tokenizer_class": CLASSES[details["listed"] is not None],
        "src_lang": source,
        "tgt_lang": target,
        "model_max_length": run.config.data.max_length,
        "additional_special_tokens": list(run.tokenizers.source.languages),
    }
    decoder = {
        number: {"content": token, "special": True} for number, token in details["added"].items()
    }
    return values | {"added_tokens_decoder": decoder} | details["tokenizer"]
