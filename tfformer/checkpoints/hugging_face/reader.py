"""Read Hugging Face checkpoints into a `Checkpoint`: Marian, M2M100 and dense NLLB.

Written from transformers 5.23, models/marian, models/m2m_100 and models/nllb. A Marian model is
post-norm; its table of positions has all sines before all cosines. M2M100 and NLLB are pre-norm;
they use Marian's positional encodings, counted from the padding id + 1, and one vocabulary with a
token for each language. Sources and translations begin with the token of their language.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tfformer.checkpoints.foreign_checkpoint import (
    NO_CHOICES,
    Checkpoint,
    Choices,
    Vocabulary,
    check_tensors,
)
from tfformer.checkpoints.foreign_files import naming_damage, optional_object, read_object
from tfformer.checkpoints.hugging_face.search_settings import (
    GENERATION,
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
from tfformer.data.imported_tokenizers import language_piece, names_of
from tfformer.data.tokenizers import parse_sentencepiece

CONFIG = "config.json"
VOCABULARY = "vocab.json"
POSITION_TENSORS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
STORED_FORMULA = tuple(f"{name}s" for name in POSITION_TENSORS)  # in older M2M100 and NLLB files
TARGET_VOCABULARY = "target_vocab.json"  # in models with two vocabularies
TOKENIZER = "tokenizer_config.json"
MARIAN_EPSILON = 1e-6  # the epsilon with which most models were trained
MAX_LENGTH = 512  # MarianTokenizer's limit
LONGEST = 4096
TABLE_TOLERANCE = 4e-3  # for bfloat16 rounding; the two tables differ by 0.04 within 30 positions
MUST_BE = {  # keys that transformers 5 ignores, but older checkpoints of other models set
    "normalize_before": False,
    "add_final_layer_norm": False,
    "normalize_embedding": False,
    "static_position_embeddings": True,
}
MULTILINGUAL = "m2m_100"  # the model_type of M2M100 and NLLB
FIRST = ["<s>", "<pad>", "</s>", "<unk>"]  # NLLB's pieces before SentencePiece's others
SENTENCEPIECE = "sentencepiece.bpe.model"
FAST_TOKENIZER = "tokenizer.json"
SPECIAL_TOKENS = "special_tokens_map.json"
NUMBERS = ("vocab_size", "pad_token_id", "eos_token_id")


class Tokens(NamedTuple):
    """The tokens of a multilingual checkpoint."""

    rows: list[str]  # the token of each row of the embedding
    listed: int | None  # how many of them vocab.json contains; None if SentencePiece contains them
    added: dict[int, str]  # the tokens that are not SentencePiece's, by id
    languages: list[str]


def recognises(folder: Path) -> bool:
    """Return whether a folder looks like a Hugging Face checkpoint."""
    return (folder / CONFIG).is_file()


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the checkpoint in a folder, with every tensor checked.

    The folder of a Marian model has config.json, the weights, vocab.json, source.spm and
    target.spm. Positions are "hf" for Hugging Face's table, "marian" for the table that Marian
    trains with, "auto" for the table in the file, or else "hf".

    The folder of an M2M100 or NLLB model contains `sentencepiece.bpe.model`, a file that names the
    language tokens and, for M2M100, vocab.json. It raises ValueError if a file is missing, damaged,
    or contradicts another file.
    """
    path = folder / CONFIG
    config = read_object(path)
    kind = config.get("model_type")
    if kind not in ("marian", MULTILINGUAL):
        raise ValueError(
            f"{path}: model_type is {kind!r}; only 'marian' and '{MULTILINGUAL}' can be imported"
        )
    checkpoint = (_read_marian if kind == "marian" else _read_multilingual)(path, config, choices)
    check_tensors(checkpoint)
    return checkpoint


def _read_marian(path: Path, config: ForeignConfig, choices: Choices) -> Checkpoint:
    folder = path.parent
    _check_marian(path, config)
    tensors = read_tensors(folder)
    as_marian = choices.positions == "marian"
    weights = read_weights(
        path,
        config,
        tensors,
        norm="post",
        dialect={
            "position_timescale": _position_table(choices.positions, tensors),
            "epsilon": MARIAN_EPSILON if as_marian else EPSILON,
        },
        ignored=POSITION_TENSORS,
    )
    search = read_search(folder)
    if "forced_bos_token_id" in search.settings:
        raise ValueError(
            f"{search.file}: forced_bos_token_id is set, but Marian models have no forced first "
            "token; remove it"
        )
    start = search.settings.get("decoder_start_token_id", config.get("decoder_start_token_id"))
    source, target, shared = _vocabularies(folder, config, start, weights)
    check_special_ids(folder, config, target.order)
    if weights.model.tie_embeddings in ("all", "input") and not shared:
        raise ValueError(
            f"{path} ties the source and target embeddings, but there are two vocabularies"
        )
    tokenizer = _read_tokenizer(folder)
    languages = [tokenizer.get(key) for key in ("source_lang", "target_lang")]
    longest = _longest_source(folder, tokenizer)
    return Checkpoint(
        model=with_search(weights.model, search, target.order, longest, as_marian),
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


def _check_marian(path: Path, config: ForeignConfig) -> None:
    """Raise ValueError for settings that Marian models in Transformers do not support."""
    check_config(path, config, NEEDED)
    for name, value in MUST_BE.items():
        if config.get(name, value) != value:
            raise ValueError(
                f"{path}: {name} is {config[name]!r}, which Marian models in Transformers do not "
                "have; correct config.json"
            )


def _position_table(positions: str, tensors: Tensors) -> str:
    """Return the timescale of the positions; a table in the file must be a known table."""
    kind = {"hf": "paper", "marian": "t2t", "auto": "paper"}[positions]
    for table in [tensors[name] for name in POSITION_TENSORS if name in tensors]:
        known = [name for name in ("paper", "t2t") if _is_table(table, name)]
        if not known:
            raise ValueError(
                f"{POSITION_TENSORS[0]} contains learned positions; use a model with sinusoidal "
                "positions"
            )
        if positions == "auto":
            kind = known[0]
    return kind


def _is_table(table: np.ndarray, timescale: str) -> bool:
    if table.ndim != 2 or table.shape[1] % 2:
        return False
    frequencies = table.shape[1] // 2
    steps = frequencies if timescale == "paper" else max(frequencies - 1, 1)
    angles = np.arange(len(table))[:, None] * 10000.0 ** (-np.arange(frequencies) / steps)
    wanted = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    return bool(np.abs(table - wanted).max() < TABLE_TOLERANCE)


def _longest_source(folder: Path, tokenizer: ForeignConfig) -> int:
    """Return the maximum number of tokens of a source.

    Transformers writes 10^30 for no limit. It raises ValueError unless the value is a whole number
    of at least 2.
    """
    length = tokenizer.get("model_max_length", MAX_LENGTH)
    is_whole = type(length) is int or (isinstance(length, float) and length.is_integer())
    if not is_whole or length < 2:
        raise ValueError(
            f"{folder}: model_max_length in {TOKENIZER} is {length!r}, but must be a whole number "
            "of at least 2"
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
    folder: Path, config: ForeignConfig, start: object, weights: Weights
) -> tuple[Vocabulary, Vocabulary, bool]:
    """Return the vocabularies of source and target, and whether they have the same tokens."""
    tables = weights.tensors
    shared = not (folder / TARGET_VOCABULARY).is_file()
    if shared and SOURCE in tables and TARGET in tables:
        shared = len(tables[SOURCE]) == len(tables[TARGET])
    first = folder / VOCABULARY
    file = first if shared else folder / TARGET_VOCABULARY
    source_pieces = read_vocabulary(first)
    pieces = source_pieces if shared else read_vocabulary(file)
    order = special_order(file, pieces, start)
    source_order = order if shared else special_order(first, source_pieces)
    source = _vocabulary(folder / "source.spm", source_pieces, source_order)
    target = _vocabulary(folder / "target.spm", pieces, order)
    sizes = {"vocab_size": (first, source_pieces), "decoder_vocab_size": (file, pieces)}
    for key, (named, pieces) in sizes.items():
        size = config.get(key) or config.get("vocab_size")
        if size != len(pieces):
            raise ValueError(
                f"{named} has {len(pieces)} tokens, but {key} in config.json is {size}"
            )
    if shared and source.model == target.model:
        target = source
    return source, target, shared


def _vocabulary(file: Path, pieces: list[str], order: RowOrder) -> Vocabulary:
    model = read_sentencepiece(file)
    check_segmentation(model, file, pieces)
    return Vocabulary(pieces, model, order)


def _read_multilingual(path: Path, config: ForeignConfig, choices: Choices) -> Checkpoint:
    folder = path.parent
    _check_multilingual(path, config, choices)
    weights = read_weights(
        path,
        {**config, "share_encoder_decoder_embeddings": True},
        read_tensors(folder),
        norm="pre",
        dialect={"position_timescale": "t2t", "position_offset": config["pad_token_id"] + 1},
        ignored=STORED_FORMULA,
    )
    size = config["vocab_size"]
    rows = len(weights.tensors[SOURCE])
    if rows != size:
        raise ValueError(
            f"{path}: vocab_size is {size}, but {weights.names[SOURCE]} has {rows} rows"
        )
    tokens = _tokens(folder, size)
    start = config.get("decoder_start_token_id", config["eos_token_id"])
    order = special_order(folder / VOCABULARY, tokens.rows, start)
    check_special_ids(folder, config, order)
    content = read_sentencepiece(folder / SENTENCEPIECE)
    prefixes = [
        _language(language, tokens.languages)
        for language in (choices.source_language, choices.target_language)
    ]
    source, target = (
        Vocabulary(tokens.rows, content, order, prefix, tokens.languages) for prefix in prefixes
    )
    tokenizer = optional_object(folder / TOKENIZER)
    longest = _longest_source(folder, tokenizer)
    search = read_search(folder)
    return Checkpoint(
        model=with_search(weights.model, search, order, longest),
        tensors=weights.tensors,
        source=source,
        target=target,
        shares_vocabulary=True,
        decoding=decoding_of(search),
        max_length=longest,
        languages=[prefix.strip("_") for prefix in prefixes],
        family="m2m100",
        names=weights.names,
        details={
            "config": config,
            "generation": optional_object(folder / GENERATION),
            "tokenizer": tokenizer,
            "special": optional_object(folder / SPECIAL_TOKENS),
            "listed": tokens.listed,
            "added": tokens.added,
        },
    )


def _check_multilingual(path: Path, config: ForeignConfig, choices: Choices) -> None:
    check_config(path, config, (*NEEDED, *NUMBERS))
    for name in NUMBERS:
        if type(config[name]) is not int:
            raise ValueError(f"{path}: {name} is {config[name]!r}, not a whole number")
    if choices.positions != "auto":
        raise ValueError(
            f"{path}: this model has only one table of positions; leave out --positions"
        )


def _tokens(folder: Path, size: int) -> Tokens:
    """Read the tokens of a folder whose embedding has `size` rows.

    M2M100's tokens are in vocab.json. NLLB's are SentencePiece's, shifted by one row. The languages
    follow, then unused rows.
    """
    file = folder / SENTENCEPIECE
    if not file.is_file():
        raise ValueError(
            f"{file} is missing; copy it from the original checkpoint: Transformers 5 saves only "
            f"{FAST_TOKENIZER}, which is not enough here"
        )
    content = read_sentencepiece(file)
    listed = None
    if (folder / VOCABULARY).is_file():
        pieces = read_vocabulary(folder / VOCABULARY)
        listed = len(pieces)
        check_segmentation(content, file, pieces)
    else:
        processor = parse_sentencepiece(content, str(file))
        model_pieces = [
            processor.id_to_piece(number) for number in range(3, processor.get_piece_size())
        ]
        pieces = [*FIRST, *model_pieces]
    added = _added_tokens(folder, len(pieces))
    languages = [added[number] for number in sorted(added) if number >= len(pieces)]
    if len(pieces) + len(languages) > size:
        raise ValueError(
            f"{folder} names {len(pieces) + len(languages)} tokens, but vocab_size in config.json "
            f"is {size}; copy the whole folder again"
        )
    taken = {**dict(enumerate(pieces)), **added}
    rows = [taken.get(row, f"<unused {row}>") for row in range(size)]
    if len(set(rows)) < size:
        ((double, _),) = Counter(rows).most_common(1)
        raise ValueError(f"{folder} names the token {double!r} twice; copy the folder again")
    return Tokens(rows, listed, added, [name for name in languages if not name.startswith("<")])


def _added_tokens(folder: Path, first: int) -> dict[int, str]:
    """Return the tokens that are not SentencePiece's, by their ids.

    Languages have ids from `first` on. The first file that contains this id is used, because a file
    may contain only the special tokens.
    """
    config = optional_object(folder / TOKENIZER)
    special = optional_object(folder / SPECIAL_TOKENS) | config
    with naming_damage(folder / FAST_TOKENIZER):
        fast = optional_object(folder / FAST_TOKENIZER).get("added_tokens") or []
        numbered = [(entry["id"], entry) for entry in fast]
    keyed = config.get("added_tokens_decoder")
    every: list[Iterable[tuple[object, object]]] = [
        numbered,
        keyed.items() if isinstance(keyed, dict) else (),
    ]
    for name in ("additional_special_tokens", "extra_special_tokens"):
        tokens = special.get(name)
        every.append(enumerate(tokens, first) if isinstance(tokens, list) else ())
    for entries in every:
        added = dict(_added_token(folder, *entry) for entry in entries)
        if first in added:
            return added
    raise ValueError(
        f"{folder} has {first:,} tokens, but no file names the language tokens with ids from "
        f"{first:,} on: {FAST_TOKENIZER}, {TOKENIZER} or {SPECIAL_TOKENS}; copy the whole folder"
    )


def _added_token(folder: Path, number: object, token: object) -> tuple[int, str]:
    """Return an id and its token, which is a text or an object with `content`."""
    text = token.get("content") if isinstance(token, dict) else token
    if not str(number).isdecimal() or not isinstance(text, str):
        raise ValueError(
            f"{folder} has an added token {str(text)[:40]!r} with the id {str(number)[:40]!r}, but "
            "a token must be a string and an id a whole number; copy the folder again"
        )
    return int(str(number)), text


def _language(language: str | None, known: list[str]) -> str:
    if language is None:
        raise ValueError(
            "a multilingual model needs --languages SOURCE,TARGET, the defaults of the run; "
            f"it has {names_of(known)}"
        )
    return language_piece(language, known)
