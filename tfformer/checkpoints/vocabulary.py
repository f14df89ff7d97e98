"""Read and check another toolkit's vocabulary.

An import renumbers its tokens. In tfformer, padding, unknown, start and end have the ids 0 to 3 in
every vocabulary (`tfformer/special_ids.py`), so that masks, search and exports need no settings. In
other toolkits these ids vary, and Marian has neither a padding nor a start token. An import
therefore reorders the rows of a model's tables, and an export restores the original order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from tfformer.checkpoints.foreign_files import read_object
from tfformer.data.encoding import release
from tfformer.data.tokenizers import parse_sentencepiece
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "</s>"
CHUNK = 4_096  # rows that are copied at a time
SPECIAL = 4  # rows that every vocabulary of this package begins with


@dataclass(frozen=True)
class RowOrder:
    """The foreign row for each row of a table in this package."""

    rows: tuple[int | None, ...]  # the foreign id of each id of this package; None if it has none
    foreign_size: int  # the number of foreign rows

    @classmethod
    def of(
        cls, size: int, *, unknown: int, end: int, pad: int | None, start: int | None
    ) -> "RowOrder":
        """Return the order that puts the special rows first; the other rows keep their order.

        Arguments are foreign ids. Without a `start` token, translations begin with a zero
        embedding. Padding and start each get an additional row if the foreign vocabulary has no
        token for them.

        Example:
            >>> RowOrder.of(5, unknown=1, end=0, pad=4, start=4).rows
            (4, 1, 4, 0, 2, 3)
        """
        special = {unknown, end, pad}
        ordinary = [row for row in range(size) if row not in special]
        return cls((pad, unknown, start, end, *ordinary), size)

    def bring_in(self, table: np.ndarray) -> np.ndarray:
        """Return a table (foreign_size,) or (foreign_size, D) in the order of this package.

        The result (V,) or (V, D) is float32; rows that the foreign table lacks are zero.
        """
        ordered = np.zeros((len(self.rows), *table.shape[1:]), np.float32)
        for number in range(0, len(self.rows), CHUNK):
            rows = self.rows[number : number + CHUNK]
            ordered[number : number + CHUNK] = table[[0 if row is None else row for row in rows]]
            release(table)
        ordered[[number for number, row in enumerate(self.rows) if row is None]] = 0
        return ordered

    def give_back(self, table: np.ndarray) -> np.ndarray:
        """Return a table (V,) or (V, D) in the foreign order.

        If start and padding share a foreign row, it gets the start's vector, which the model reads.
        """
        foreign = np.zeros((self.foreign_size, *table.shape[1:]), table.dtype)
        for number in [PAD_ID, START_ID, *range(SPECIAL, len(self.rows)), UNKNOWN_ID, END_ID]:
            if self.rows[number] is not None:
                foreign[self.rows[number]] = table[number]
        return foreign

    def pieces(self, foreign: Sequence[str]) -> list[str]:
        """Return the tokens in the order of this package.

        Added rows get names that are not foreign tokens.
        """
        taken = set(foreign)
        pieces = [_free_name(PAD, taken), UNKNOWN, _free_name(START, taken), END]
        for special_id in (PAD_ID, UNKNOWN_ID, END_ID):
            row = self.rows[special_id]
            if row is not None:
                pieces[special_id] = foreign[row]
        return [*pieces, *(foreign[row] for row in self.rows[SPECIAL:] if row is not None)]


def renumbered(words: Sequence[Sequence[int]], ids: Mapping[int, int]) -> list[list[int]]:
    """Convert words to the ids of another vocabulary, dropping words that it cannot represent."""
    return [[ids[number] for number in word] for word in words if ids.keys() >= set(word)]


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"<{name}>"
    return name


def read_vocabulary(path: Path) -> list[str]:
    """Return the tokens of a vocabulary file, by id.

    The file is `.json` (token -> id), `.yml` or `.yaml` (the same, as Marian writes it) or `.spm`
    (SentencePiece's own ids). ValueError is raised if ids are missing or duplicate, or if the file
    cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder of the checkpoint")
    if path.suffix == ".json":
        return by_id(read_object(path), path)
    if path.suffix == ".spm":
        processor = parse_sentencepiece(path.read_bytes(), str(path))
        return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]
    return by_id(_read_yaml(path), path)


def _read_yaml(path: Path) -> dict[str, int | str]:
    """Return the tokens of a vocabulary in Marian's YAML.

    With the base loader every scalar is a text, so `yes`, `1.0` and `~` are tokens.
    """
    try:
        ids = yaml.load(path.read_bytes(), yaml.CBaseLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(
            f"{path} is not a YAML vocabulary ({reason}); copy the file again"
        ) from None
    if not isinstance(ids, dict):
        raise ValueError(f"{path} must contain tokens and ids, such as 'house: 7'")
    return {
        piece: int(number) if str(number).isdecimal() else number for piece, number in ids.items()
    }


def by_id(ids: Mapping[str, object], path: Path) -> list[str]:
    """Return the tokens in the order of their ids, which must be 0, 1, 2, ... once each.

    `path` names their file in messages.
    """
    pieces: dict[int, str] = {}
    for piece, number in ids.items():
        if type(number) is not int or number < 0:
            raise ValueError(
                f"{path}: {piece!r} has the id {number!r}, which is not an integer of at least 0"
            )
        if number in pieces:
            raise ValueError(f"{path}: {pieces[number]!r} and {piece!r} have the same id {number}")
        pieces[number] = piece
    for number in range(len(pieces)):
        if number not in pieces:
            raise ValueError(
                f"{path}: no token has the id {number}, although the largest id is {max(pieces)}; "
                "ids must be 0, 1, 2, ... without gaps"
            )
    return [pieces[number] for number in range(len(pieces))]


def special_order(
    file: Path, pieces: Sequence[str], start: object = None, has_pad: bool = True
) -> RowOrder:
    """Return the order of a vocabulary whose special tokens are known by name.

    `start` is the id that a translation begins with. None means the padding id or, in a vocabulary
    without padding such as Marian's, a zero embedding. ValueError is raised if a special token is
    missing or `start` is not an id.
    """
    rows = {piece: number for number, piece in enumerate(pieces)}
    for name in (END, UNKNOWN, PAD)[: 2 + has_pad]:
        if name not in rows:
            raise ValueError(f"{file} has no {name}; use the model's own vocabulary")
    pad = rows[PAD] if has_pad else None
    first = pad if start is None else start
    if first is not None and (type(first) is not int or not 0 <= first < len(pieces)):
        raise ValueError(f"decoder_start_token_id {first!r} is not an id in {file}; correct it")
    return RowOrder.of(len(pieces), unknown=rows[UNKNOWN], end=rows[END], pad=pad, start=first)


def read_sentencepiece(path: Path) -> bytes:
    """Return the bytes of a SentencePiece model; ValueError unless it is whole."""
    if not path.is_file():
        raise ValueError(
            f"{path} is missing; copy the whole folder (models with source.bpe have no "
            "SentencePiece model and cannot be imported)"
        )
    content = path.read_bytes()
    parse_sentencepiece(content, str(path))
    return content


def check_segmentation(model: bytes, file: Path, vocabulary: Sequence[str]) -> None:
    """Raise ValueError unless a SentencePiece model and a vocabulary belong together.

    A vocabulary may lack pieces that do not occur in its training text.
    """
    parsed = parse_sentencepiece(model, str(file))
    texts = set()
    for number in range(parsed.get_piece_size()):
        kinds = (parsed.is_control, parsed.is_unknown, parsed.is_unused, parsed.is_byte)
        if not any(is_kind(number) for is_kind in kinds):
            texts.add(parsed.id_to_piece(number))
    lacking = len(texts - set(vocabulary))
    if lacking > len(texts) / 2:
        raise ValueError(
            f"{file} has {len(texts):,} pieces, but the vocabulary lacks {lacking:,} of them, so "
            "they belong to different models; copy the files again"
        )
