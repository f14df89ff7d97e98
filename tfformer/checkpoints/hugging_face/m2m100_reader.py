"""Checkpoints of M2M100 and of dense NLLB by Hugging Face.

They are read into a `Checkpoint`. Written from transformers 5.23, models/m2m_100 and
models/nllb. The layers are pre-norm, positions are Marian's and begin at 2, and one vocabulary
holds a token for each language. A source begins with the token of its language, and a translation
with that of its own.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tfformer.checkpoints.checkpoint import (
    NO_CHOICES,
    Checkpoint,
    Choices,
    Vocabulary,
    check_tensors,
)
from tfformer.checkpoints.hugging_face.reader import (
    ACTIVATIONS,
    GENERATION,
    ForeignConfig,
    check_special_ids,
    decoding_of,
    embedding_tables,
    layer_tensors,
    longest_source,
    model_config,
    optional_object,
    read_tensors,
    search_file,
    search_settings,
    sentencepiece_model,
)
from tfformer.checkpoints.json_files import read_object
from tfformer.checkpoints.vocabulary import (
    RowOrder,
    check_merges,
    check_segmentation,
    check_tokens,
    read_vocabulary,
)
from tfformer.checkpoints.weight_names import SOURCE, Place
from tfformer.data.piece_tokenizer import language_piece, names_of, parse_sentencepiece

DIALECT = {"position_timescale": "t2t", "position_offset": 2}
FIRST = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
]  # of NLLB, before SentencePiece's own pieces from the third
TABLES = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
SENTENCEPIECE = "sentencepiece.bpe.model"
VOCABULARY = "vocab.json"
TOKENIZER = "tokenizer.json"
NEEDED = (
    *("d_model", "encoder_layers", "decoder_layers", "encoder_ffn_dim", "decoder_ffn_dim"),
    *("encoder_attention_heads", "decoder_attention_heads", "vocab_size"),
    *("activation_function", "scale_embedding", "pad_token_id", "eos_token_id"),
)


class Names(NamedTuple):
    """The tokens of a checkpoint.

    Attributes:
        rows: The token of each row of the embedding.
        listed: How many of them vocab.json has, from the first; None where SentencePiece has them.
        added: Id -> token, of those that are not SentencePiece's.
        languages: The tokens of languages.
    """

    rows: list[str]
    listed: int | None
    added: dict[int, str]
    languages: list[str]


def recognises(folder: Path) -> bool:
    """Tell whether a folder looks like a checkpoint of M2M100 or NLLB.

    Raises:
        ValueError: Its config.json cannot be read.
    """
    path = folder / "config.json"
    return path.is_file() and read_object(path).get("model_type") == "m2m_100"


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the checkpoint in a folder.

    Args:
        folder: The folder with config.json, the weights, `sentencepiece.bpe.model`, for M2M100
            vocab.json, and a file that names the tokens of languages.
        choices: The choices of the caller. The two languages that the run has unless told otherwise
            must be given, and there is one table of positions.

    Returns:
        The checkpoint, with every tensor checked.

    Raises:
        ValueError: A file is missing, damaged or contradicts another, or a language is unknown.
    """
    path = folder / "config.json"
    config = read_object(path)
    _check(path, config, choices)
    tensors = read_tensors(folder)
    shared = {"share_encoder_decoder_embeddings": True}
    tables, names, tie = embedding_tables({**config, **shared}, tensors, choices.untied)
    for name in TABLES:
        tensors.pop(name, None)  # a formula, which older versions stored too
    model = model_config(path, config, tie, "pre", DIALECT)
    places: dict[Place, np.ndarray] = dict(tables.items())
    places |= layer_tensors(model, tensors, names)
    size = config["vocab_size"]
    if len(tables[SOURCE]) != size:
        raise ValueError(
            f"{path}: vocab_size is {size}, but {names[SOURCE]} has {len(tables[SOURCE])} rows"
        )
    tokens = _names(folder, size)
    pieces = tokens.rows
    languages = tokens.languages
    order = _order(path, config, pieces)
    check_special_ids(folder, config, order)
    content = sentencepiece_model(folder / SENTENCEPIECE)
    asked = (choices.source_language, choices.target_language)
    source, target = (
        Vocabulary(pieces, content, order, _language(language, languages), languages)
        for language in asked
    )
    generation = search_settings(folder)
    generation.pop("forced_bos_token_id", None)  # the token of the target's language
    tokenizer = optional_object(folder / "tokenizer_config.json")
    found = Checkpoint(
        model=model,
        tensors=places,
        source=source,
        target=target,
        shares_vocabulary=True,
        decoding=decoding_of(search_file(folder), generation, order),
        max_length=longest_source(folder, tokenizer),
        languages=[str(side.prefix).strip("_") for side in (source, target)],
        family="m2m100",
        names=names,
        details={
            "config": config,
            "generation": optional_object(folder / GENERATION),
            "tokenizer": tokenizer,
            "special": optional_object(folder / "special_tokens_map.json"),
            "listed": tokens.listed,
            "added": tokens.added,
        },
    )
    check_tensors(found)
    return found


def _check(path: Path, config: ForeignConfig, choices: Choices) -> None:
    if config.get("model_type") != "m2m_100":
        raise ValueError(f"{path}: model_type is {config.get('model_type')!r}, not 'm2m_100'")
    for name in NEEDED:
        if name not in config:
            raise ValueError(f"{path} has no {name}; copy the file again")
    if config["activation_function"] not in tuple(ACTIVATIONS):
        raise ValueError(
            f"{path}: activation_function is {config['activation_function']!r}; known are "
            f"{', '.join(ACTIVATIONS)}"
        )
    if type(config["vocab_size"]) is not int:
        raise ValueError(f"{path}: vocab_size is {config['vocab_size']!r}, which is no number")
    if choices.positions != "auto":
        raise ValueError(f"{path} has one table of positions; leave out --positions")


def _names(folder: Path, size: int) -> Names:
    """Read the tokens of a folder whose embedding has so many rows.

    M2M100's tokens are in vocab.json. NLLB's are SentencePiece's, one place further on. Behind them
    are the languages, and rows that no text has.
    """
    listed = None
    file = folder / SENTENCEPIECE
    if not file.is_file():
        raise ValueError(
            f"{file} is missing; copy it from the original checkpoint, as Transformers 5 saves "
            f"{TOKENIZER} alone, which is not enough here"
        )
    content = sentencepiece_model(file)
    check_merges(content, file)
    tokenizer = optional_object(folder / TOKENIZER)
    if (folder / VOCABULARY).is_file():
        pieces = read_vocabulary(folder / VOCABULARY)
        listed = len(pieces)
        check_segmentation(content, file, pieces)
        check_tokens(pieces, folder / VOCABULARY, [content])
    else:
        pieces = _pieces_of_nllb(content, file, tokenizer)
    added = _added_tokens(folder, tokenizer, len(pieces))
    languages = [added[number] for number in sorted(added) if number >= len(pieces)]
    if len(pieces) + len(languages) > size:
        raise ValueError(
            f"{folder} names {len(pieces) + len(languages)} tokens, but vocab_size in config.json "
            f"is {size}"
        )
    taken = {**dict(enumerate(pieces)), **added}
    rows = [taken.get(row, f"<unused {row}>") for row in range(size)]
    if len(set(rows)) < size:
        ((double, _),) = Counter(rows).most_common(1)
        raise ValueError(f"{folder} names the token {double!r} twice; copy the folder again")
    return Names(rows, listed, added, [name for name in languages if not name.startswith("<")])


def _pieces_of_nllb(model: bytes, file: Path, tokenizer: ForeignConfig) -> list[str]:
    """Return the special tokens and SentencePiece's pieces.

    If tokenizer.json lists them too, it must give each the same id.
    """
    processor = parse_sentencepiece(model, str(file))
    own = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
    pieces = [*FIRST, *own]
    other = tokenizer.get("model")
    ids = other.get("vocab") if isinstance(other, dict) else None
    if not isinstance(ids, dict):
        return pieces
    for number, piece in enumerate(pieces):
        if ids.get(piece) != number:
            raise ValueError(
                f"{file} gives the piece {piece[:40]!r} the id {number:,}, but {TOKENIZER} beside "
                "it does not; they must agree, so copy both files again"
            )
    return pieces


def _added_tokens(folder: Path, tokenizer: ForeignConfig, first: int) -> dict[int, str]:
    """The tokens that are not SentencePiece's, by their ids.

    Languages have ids from `first` on, without a gap behind the other tokens. The first file that
    names that id counts; one may name the special tokens alone.
    """
    config = optional_object(folder / "tokenizer_config.json")
    special = optional_object(folder / "special_tokens_map.json") | config
    for entries in (
        _numbered(tokenizer.get("added_tokens")),
        _keyed(config.get("added_tokens_decoder")),
        _listed(special.get("additional_special_tokens"), first),
        _listed(special.get("extra_special_tokens"), first),
    ):
        found = _by_number(folder, entries)
        if first in found:
            return found
    raise ValueError(
        f"{folder} has {first:,} tokens, but no file that names those of languages, from the id "
        f"{first:,} on: tokenizer.json, tokenizer_config.json or special_tokens_map.json; copy the "
        "whole folder"
    )


Entries = list[tuple[object, object]]  # of an id and a token, as a file has them


def _numbered(tokens: object) -> Entries:
    """Of tokenizer.json: a list of objects with `id` and `content`."""
    tokens = tokens if isinstance(tokens, list) else []
    return [(entry.get("id"), entry.get("content")) for entry in tokens if isinstance(entry, dict)]


def _keyed(tokens: object) -> Entries:
    """Of tokenizer_config.json: objects with `content`, by their ids."""
    tokens = tokens if isinstance(tokens, dict) else {}
    return [(key, entry.get("content")) for key, entry in tokens.items() if isinstance(entry, dict)]


def _listed(tokens: object, first: int) -> Entries:
    """A list of tokens, or of objects with `content`, whose ids follow each other."""
    tokens = tokens if isinstance(tokens, list) else []
    texts = [token.get("content") if isinstance(token, dict) else token for token in tokens]
    return list(enumerate(texts, start=first))


def _by_number(folder: Path, entries: Entries) -> dict[int, str]:
    found: dict[int, str] = {}
    for number, token in entries:
        if not str(number).isdecimal() or not isinstance(token, str):
            raise ValueError(
                f"{folder} has an added token {str(token)[:40]!r} with the id {str(number)[:40]!r}"
            )
        found[int(str(number))] = token
    return found


def _language(language: str | None, known: list[str]) -> str:
    if language is None:
        raise ValueError(
            "a multilingual model needs --source-language and --target-language, which the run has "
            f"unless told otherwise; it has {names_of(known)}"
        )
    return language_piece(language, known)


def _order(path: Path, config: ForeignConfig, pieces: list[str]) -> RowOrder:
    places = {piece: number for number, piece in enumerate(pieces)}
    for name in ("</s>", "<pad>", "<unk>"):
        if name not in places:
            raise ValueError(f"the vocabulary beside {path} has no {name}; copy the whole folder")
    start = config.get("decoder_start_token_id", places["</s>"])
    if type(start) is not int or not 0 <= start < len(pieces):
        raise ValueError(f"decoder_start_token_id {start!r} is no id of the vocabulary")
    return RowOrder.of(
        len(pieces),
        unknown=places["<unk>"],
        end=places["</s>"],
        pad=places["<pad>"],
        start=start,
    )
