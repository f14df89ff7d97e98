"""The search settings of a Hugging Face checkpoint.

Written from transformers 5.23, generation/configuration_utils.py. This package's beam search
supports both usual stopping criteria, a length penalty and the rules in `RULES`; one warning names
every other setting that can change a translation.
"""

import reprlib
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tfformer.checkpoints.foreign_files import optional_object, read_object, told_by_keys
from tfformer.checkpoints.marian.reader import MARIAN_SEARCH
from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.config import Config, DecodingConfig, ModelConfig, Rules
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

GENERATION = "generation_config.json"
READ = {"beam_size": "num_beams", "length_penalty": "length_penalty"}  # setting -> key
NEUTRAL = {  # settings that can change a translation -> the value that turns them off
    "do_sample": False,
    "num_beam_groups": 1,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1.0,
    "exponential_decay_length_penalty": None,
    "sequence_bias": None,
    "stop_strings": None,
    "watermarking_config": None,
    "suppress_tokens": None,
    "begin_suppress_tokens": None,
    "force_words_ids": None,
    "constraints": None,
    "penalty_alpha": None,
    "dola_layers": None,
    "guidance_scale": None,
    "token_healing": False,
}
RULES = {"repetition_penalty", "no_repeat_ngram_size", "min_length", "min_new_tokens"}
LIMITS = ("max_length", "max_new_tokens")
HARMLESS = {  # settings that do not change the best translation of a deterministic search
    *READ.values(),
    *("bad_words_ids", "early_stopping", *RULES, *LIMITS),
    *("eos_token_id", "pad_token_id", "decoder_start_token_id", "forced_eos_token_id"),  # compared
    *("bos_token_id", "forced_bos_token_id", "renormalize_logits", "remove_invalid_values"),
    *("temperature", "top_k", "top_p", "top_h", "min_p", "typical_p"),  # without do_sample
    *("epsilon_cutoff", "eta_cutoff", "diversity_penalty", "num_return_sequences", "max_time"),
    *("use_cache", "cache_implementation", "cache_config", "return_legacy_cache", "low_memory"),
    *("output_attentions", "output_hidden_states", "output_scores", "output_logits"),
    *("return_dict_in_generate", "prefill_chunk_size", "compile_config", "disable_compile"),
    *("is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule"),
    *("assistant_confidence_threshold", "assistant_early_exit", "assistant_lookbehind"),
    *("target_lookbehind", "prompt_lookup_num_tokens", "max_matching_ngram_size"),
    *("use_model_defaults", "_from_model_config", "transformers_version", "_commit_hash"),
    "generation_kwargs",
}


class Search(NamedTuple):
    """The settings of a search."""

    file: Path  # the settings' file: generation_config.json, or config.json in older checkpoints
    settings: Mapping[str, Any]  # key -> value, without null settings, which count as unset


def read_search(folder: Path) -> Search:
    """Return a checkpoint's search settings."""
    generation = folder / GENERATION
    file = generation if generation.is_file() else folder / "config.json"
    return Search(file, {k: value for k, value in read_object(file).items() if value is not None})


def decoding_of(search: Search) -> DecodingConfig:
    """Return the number of beams and the length penalty; raise ValueError for an invalid value."""
    values = {name: search.settings.get(key, 1) for name, key in READ.items()}
    with told_by_keys(search.file, READ):
        return Config.from_dict({"decoding": values}).decoding


def with_search(
    model: ModelConfig, search: Search, order: RowOrder, longest: int, as_marian: bool = False
) -> ModelConfig:
    """Return a model with a search's settings in its dialect, and warn about unsupported settings.

    `longest` is the maximum number of tokens of a source; `as_marian` selects Marian's search in
    place of Transformers'.
    """
    settings = search.settings
    ids = {row: number for number, row in enumerate(order.rows) if number != START_ID}
    words = settings.get("bad_words_ids") or []
    is_known = isinstance(words, list) and all(_is_word(word, ids) for word in words)
    words = [[ids[row] for row in word] for word in words] if is_known else []
    rules = _rules(search, words, ids.get(order.rows[START_ID], START_ID))
    left_out = _unknown(search)
    for name in LIMITS:
        limit = settings.get(name)
        if isinstance(limit, int) and limit < longest:
            left_out.add(name)
    if not is_known:
        left_out.add("bad_words_ids")
    if settings.get("early_stopping", False) not in (True, False):
        left_out.add("early_stopping")
    if as_marian and rules != Rules():
        left_out |= (RULES | {"bad_words_ids"}) & settings.keys()
    _warn(search, left_out)
    if as_marian:
        return model.replace(dialect=model.dialect.replace(**MARIAN_SEARCH))
    dialect = model.dialect.replace(
        length_normalization="power",
        early_stopping=settings.get("early_stopping") is True,
        allow_unknown=[UNKNOWN_ID] not in words,
        rules=rules,
    )
    return model.replace(dialect=dialect)


def _is_word(word: object, ids: Mapping[int | None, int]) -> bool:
    """Whether a value is a list of ids of the checkpoint."""
    return (
        isinstance(word, list)
        and bool(word)
        and all(isinstance(row, int) and row in ids for row in word)
    )


def _rules(search: Search, words: Sequence[Sequence[int]], start_token: int) -> Rules:
    """Return the rules of a search with these forbidden words; raise ValueError for invalid values.

    Forbidding padding or the end token has no effect; the dialect handles the unknown token.
    """
    stated = {name: value for name, value in search.settings.items() if name in RULES}
    least = stated.get("min_length")
    if isinstance(least, int):
        stated["min_length"] = max(least - 1, 0)  # Transformers counts the start token
    if "min_new_tokens" in stated:
        stated["min_length"] = stated.pop("min_new_tokens")
    special = ([PAD_ID], [END_ID], [UNKNOWN_ID])
    stated["bad_words"] = [word for word in words if word not in special]
    with told_by_keys(search.file, {}):
        rules = Rules.from_dict(stated)
    if rules == Rules():
        return rules
    if search.settings.get("renormalize_logits") is True:
        rules = rules.replace(beam_scores="renormalized")
    return rules.replace(start_token=start_token)


def _unknown(search: Search) -> set[str]:
    """Return the names of settings that are not known to be harmless."""
    settings = search.settings
    names = settings.keys() - HARMLESS
    if search.file.name != GENERATION:  # config.json also contains unrelated keys
        names &= NEUTRAL.keys()
    empty: tuple[object, ...] = ([], {}, "", False)
    return {
        name
        for name in names
        if settings[name] != NEUTRAL.get(name) and settings[name] not in empty
    }


def _warn(search: Search, names: set[str]) -> None:
    if not names:
        return
    values = {name: reprlib.repr(search.settings[name]) for name in sorted(names)}
    stated = ", ".join(f"{name} {value}" for name, value in values.items())
    warnings.warn(
        f"{search.file}: unsupported search settings are ignored, so translations may differ from "
        f"those of Transformers: {stated}",
        stacklevel=3,
    )


def check_special_ids(folder: Path, config: Mapping[str, Any], order: RowOrder) -> None:
    """Raise ValueError if a special token's id in a configuration differs from that in `order`."""
    wanted = {
        "eos_token_id": ("</s>", order.rows[END_ID]),
        "forced_eos_token_id": ("</s>", order.rows[END_ID]),
        "pad_token_id": ("<pad>", order.rows[PAD_ID]),
        "decoder_start_token_id": ("the first token", order.rows[START_ID]),
    }
    generation = optional_object(folder / GENERATION)
    for file, settings in (("config.json", config), (GENERATION, generation)):
        for key, (name, row) in wanted.items():
            value = settings.get(key)
            if value is not None and value not in (row, [row]):
                raise ValueError(
                    f"{folder}: {key} in {file} is {value!r}, but {name} has the id {row} in the "
                    "other files; correct one of them"
                )
