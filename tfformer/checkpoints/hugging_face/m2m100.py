"""Checkpoints of M2M100 and of dense NLLB by Hugging Face, read into a `Checkpoint`.

Written from transformers 5.23, models/m2m_100 and models/nllb. The layers are pre-norm, positions
are Marian's and count from the id of padding + 1, and one vocabulary has a token for each language.
A source begins with the token of its language, and so does a translation.
"""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tfformer.checkpoints.checkpoint import (
    NO_CHOICES,
    Checkpoint,
    Choices,
    Vocabulary,
    check_tensors,
)
from tfformer.checkpoints.foreign_files import naming_damage, optional_object, read_object
from tfformer.checkpoints.hugging_face.reader import TOKENIZER, longest_source
from tfformer.checkpoints.hugging_face.search import (
    GENERATION,
    check_special_ids,
    decoding_of,
    read_search,
    with_search,
)
from tfformer.checkpoints.hugging_face.weights import (
    NEEDED,
    ForeignConfig,
    check_config,
    read_tensors,
    read_weights,
)
from tfformer.checkpoints.vocabulary import (
    check_segmentation,
    read_sentencepiece,
    read_vocabulary,
    special_order,
)
from tfformer.checkpoints.weight_names import SOURCE
from tfformer.data.piece_tokenizer import language_piece, names_of
from tfformer.data.tokenizers import parse_sentencepiece

FIRST = ["<s>", "<pad>", "</s>", "<unk>"]  # of NLLB, before SentencePiece's pieces from the third
TABLES = ("model.encoder.embed_positions.weights", "model.decoder.embed_positions.weights")
SENTENCEPIECE = "sentencepiece.bpe.model"
VOCABULARY = "vocab.json"
FAST_TOKENIZER = "tokenizer.json"
SPECIAL_TOKENS = "special_tokens_map.json"
NUMBERS = ("vocab_size", "pad_token_id", "eos_token_id")


class Tokens(NamedTuple):
    """The tokens of a checkpoint.

    Attributes:
        rows: The token of each row of the embedding.
        listed: How many of them vocab.json has, from the first; None where SentencePiece has them.
        added: Id -> token, for tokens that are not SentencePiece's.
        languages: The tokens of languages.
    """

    rows: list[str]
    listed: int | None
    added: dict[int, str]
    languages: list[str]


def recognises(folder: Path) -> bool:
    """Tell whether a folder looks like a checkpoint of M2M100 or NLLB."""
    path = folder / "config.json"
    return path.is_file() and read_object(path).get("model_type") == "m2m_100"


def read(folder: Path, choices: Choices = NO_CHOICES) -> Checkpoint:
    """Return the checkpoint in a folder, with every tensor checked.

    The folder has config.json, the weights, `sentencepiece.bpe.model`, for M2M100 vocab.json, and a
    file that names the language tokens. A file that is missing, damaged or contradicts another
    raises ValueError.
    """
    path = folder / "config.json"
    config = read_object(path)
    _check(path, config, choices)
    weights = read_weights(
        path,
        {**config, "share_encoder_decoder_embeddings": True},
        read_tensors(folder),
        untied=choices.untied,
        norm="pre",
        dialect={"position_timescale": "t2t", "position_offset": config["pad_token_id"] + 1},
        ignored=TABLES,  # a formula, which older versions stored too
    )
    size = config["vocab_size"]
    if len(weights.tensors[SOURCE]) != size:
        raise ValueError(
            f"{path}: vocab_size is {size}, but {weights.names[SOURCE]} has "
            f"{len(weights.tensors[SOURCE])} rows"
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
    longest = longest_source(folder, tokenizer)
    search = read_search(folder)
    found = Checkpoint(
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
    check_tensors(found)
    return found


def _check(path: Path, config: ForeignConfig, choices: Choices) -> None:
    if config.get("model_type") != "m2m_100":
        raise ValueError(f"{path}: model_type is {config.get('model_type')!r}, not 'm2m_100'")
    check_config(path, config, (*NEEDED, *NUMBERS))
    for name in NUMBERS:
        if type(config[name]) is not int:
            raise ValueError(f"{path}: {name} is {config[name]!r}, which is no number")
    if choices.positions != "auto":
        raise ValueError(f"{path} has one table of positions; leave out --positions")


def _tokens(folder: Path, size: int) -> Tokens:
    """Read the tokens of a folder whose embedding has `size` rows.

    M2M100's tokens are in vocab.json. NLLB's are SentencePiece's, one row further on. The languages
    follow, then rows that no text has.
    """
    file = folder / SENTENCEPIECE
    if not file.is_file():
        raise ValueError(
            f"{file} is missing; copy it from the original checkpoint, as Transformers 5 saves "
            f"{FAST_TOKENIZER} alone, which is not enough here"
        )
    content = read_sentencepiece(file)
    listed = None
    if (folder / VOCABULARY).is_file():
        pieces = read_vocabulary(folder / VOCABULARY)
        listed = len(pieces)
        check_segmentation(content, file, pieces)
    else:
        processor = parse_sentencepiece(content, str(file))
        own = [processor.id_to_piece(number) for number in range(3, processor.get_piece_size())]
        pieces = [*FIRST, *own]
    added = _added_tokens(folder, len(pieces))
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
    return Tokens(rows, listed, added, [name for name in languages if not name.startswith("<")])


def _added_tokens(folder: Path, first: int) -> dict[int, str]:
    """Return the tokens that are not SentencePiece's, by their ids.

    Languages have ids from `first` on. The first file that names this id counts; a file may name
    the special tokens alone.
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
        found = dict(_added_token(folder, *entry) for entry in entries)
        if first in found:
            return found
    raise ValueError(
        f"{folder} has {first:,} tokens, but no file that names those of languages, from the id "
        f"{first:,} on: {FAST_TOKENIZER}, {TOKENIZER} or {SPECIAL_TOKENS}; copy the whole folder"
    )


def _added_token(folder: Path, number: object, token: object) -> tuple[int, str]:
    """Return an id and its token, which is a text or an object with `content`."""
    text = token.get("content") if isinstance(token, dict) else token
    if not str(number).isdecimal() or not isinstance(text, str):
        raise ValueError(
            f"{folder} has an added token {str(text)[:40]!r} with the id {str(number)[:40]!r}"
        )
    return int(str(number)), text


def _language(language: str | None, known: list[str]) -> str:
    if language is None:
        raise ValueError(
            "a multilingual model needs --languages SOURCE TARGET, the defaults of the run; "
            f"it has {names_of(known)}"
        )
    return language_piece(language, known)
