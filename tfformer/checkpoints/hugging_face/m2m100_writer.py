"""Writes an imported run as the checkpoint of M2M100 or NLLB that it was.

`M2M100ForConditionalGeneration.from_pretrained` and the tokenizers of Transformers load it.
"""

from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.foreign_order import Foreign, as_foreign
from tfformer.checkpoints.hugging_face.m2m100_reader import SENTENCEPIECE, VOCABULARY
from tfformer.checkpoints.hugging_face.reader import SAFETENSORS
from tfformer.checkpoints.hugging_face.writer import changed_search, stating_dtype, tensors_of
from tfformer.checkpoints.json_files import write_object
from tfformer.checkpoints.tensors import safetensors_file as safetensors_files
from tfformer.checkpoints.weight_names import OUTPUT_BIAS
from tfformer.model.transformer import Transformer
from tfformer.run_directory import Run

CLASSES = ("NllbTokenizer", "M2M100Tokenizer")  # without and with a vocab.json


def write(folder: Path, run: Run, model: Transformer) -> None:
    """Fill a folder with a checkpoint.

    Args:
        folder: An empty one.
        run: A run that was imported from a checkpoint of several languages.
        model: Its model.

    Raises:
        ValueError: The run was trained since, or its record has no list of tokens.
    """
    foreign = as_foreign(run, model, with_pad=True)
    _check(run.path, foreign)
    details = foreign.record["details"]
    safetensors_files.write(folder / SAFETENSORS, tensors_of(foreign, run.config.model))
    config = stating_dtype(details["config"], foreign)
    generation = details["generation"]
    if generation:
        generation = changed_search(generation, foreign, run.config)
        write_object(folder / "generation_config.json", generation)
    else:  # an older checkpoint has the search in config.json, which counts only without this file
        config = changed_search(config, foreign, run.config)
    write_object(folder / "config.json", config)
    write_object(folder / "tokenizer_config.json", _tokenizer(details, run))
    if details["special"]:
        write_object(folder / "special_tokens_map.json", details["special"])
    (folder / SENTENCEPIECE).write_bytes(foreign.source.model)
    if details["listed"] is not None:
        pieces = foreign.source.pieces[: details["listed"]]
        write_object(folder / VOCABULARY, {piece: number for number, piece in enumerate(pieces)})


def _check(path: Path, foreign: Foreign) -> None:
    """Refuse numbers that a training gives and Transformers has no place for."""
    if "added" not in foreign.record["details"]:
        raise ValueError(
            f"{path} was imported before its list of languages was kept; import the model again"
        )
    if len(foreign.target.pieces) > foreign.record["details"]["config"]["vocab_size"]:
        raise ValueError(
            f"{path} begins a translation with a vector of its own, where M2M100 and NLLB begin "
            "with that of a token: it was trained since its import; use --format ctranslate2"
        )
    if np.any(foreign.tensors[OUTPUT_BIAS]):
        raise ValueError(
            f"{path} has an output with a bias, which M2M100 and NLLB do not have: it was trained "
            "since its import; use --format ctranslate2"
        )


def _tokenizer(details: dict[str, Any], run: Run) -> dict[str, Any]:
    """Return tokenizer_config.json, which names each added token by its id."""
    source, target = run.languages or (None, None)
    own = {
        "tokenizer_class": CLASSES[details["listed"] is not None],
        "src_lang": source,
        "tgt_lang": target,
        "model_max_length": run.config.data.max_length,
        "additional_special_tokens": list(run.tokenizers.source.languages),
    }
    decoder = {
        number: {"content": token, "special": True} for number, token in details["added"].items()
    }
    return own | {"added_tokens_decoder": decoder} | details["tokenizer"]
