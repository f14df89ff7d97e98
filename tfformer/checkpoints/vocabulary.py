"""Another toolkit's vocabulary, read and checked.

Its tokens get the ids of this package. Here padding, the unknown token, the start and the end have
the ids 0 to 3 in every vocabulary (`tfformer/special_ids.py`), so that masks, search and exports
need no settings. Elsewhere they are anywhere, and Marian has neither padding nor a start. So a
model's rows are put into another order when it comes in, and back into the old one when it goes
out.
"""

import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tfformer.checkpoints.json_files import read_object
from tfformer.checkpoints.tensors.stored_arrays import release
from tfformer.special_ids import END_ID, PAD_ID, START_ID, UNKNOWN_ID

PAD, UNKNOWN, START, END = "<pad>", "<unk>", "<start>", "</s>"
CHUNK = 4_096  # rows that are copied at a time
SURROGATES = range(0xD800, 0xE000)  # halves of characters, which UTF-8 does not have
SPECIAL = 4  # rows that every vocabulary of this package begins with
NAME = re.compile(r"<.+>|>>.+<<", re.DOTALL)  # of a token that stands for no text


@dataclass(frozen=True)
class RowOrder:
    """Which row of a foreign table each row here is.

    Attributes:
        rows: The foreign id of each id here; None where the foreign table has no such row.
        foreign_size: The number of foreign rows.
    """

    rows: tuple[int | None, ...]
    foreign_size: int

    @classmethod
    def of(
        cls, size: int, *, unknown: int, end: int, pad: int | None, start: int | None
    ) -> "RowOrder":
        """Return the order that puts the special rows first.

        The other rows keep theirs.

        Args:
            size: The number of foreign rows.
            unknown: The foreign id of the unknown token.
            end: The foreign id of the end token.
            pad: The foreign id of padding; None if there is none.
            start: The foreign id of the token that a translation begins with; None for a zero
                embedding.

        Returns:
            The order, with a row for each foreign token, and one more for the start and for
            padding where they have none of their own.

        Example:
            >>> RowOrder.of(5, unknown=1, end=0, pad=4, start=4).rows
            (4, 1, 4, 0, 2, 3)
        """
        own = {unknown, end, pad}
        others = [row for row in range(size) if row not in own]
        return cls((pad, unknown, start, end, *others), size)

    def bring_in(self, table: np.ndarray) -> np.ndarray:
        """Return a table in the order of this package.

        Args:
            table: Foreign rows, (foreign_size,) or (foreign_size, D).

        Returns:
            A float32 table (V,) or (V, D); rows that the foreign table lacks are zero.
        """
        found = np.zeros((len(self.rows), *table.shape[1:]), np.float32)
        for here in range(0, len(self.rows), CHUNK):
            rows = self.rows[here : here + CHUNK]
            found[here : here + CHUNK] = table[[0 if row is None else row for row in rows]]
            release(table)
        found[[here for here, row in enumerate(self.rows) if row is None]] = 0
        return found

    def give_back(self, table: np.ndarray) -> np.ndarray:
        """Return a table in the foreign order.

        The start's row wins over padding's, where both are one foreign row: it is the one that
        the model reads.

        Args:
            table: Rows of this package, (V,) or (V, D).

        Returns:
            The table (foreign_size,) or (foreign_size, D).
        """
        found = np.zeros((self.foreign_size, *table.shape[1:]), table.dtype)
        for here in [START_ID, PAD_ID, *range(SPECIAL, len(self.rows)), UNKNOWN_ID, END_ID]:
            if self.rows[here] is not None:
                found[self.rows[here]] = table[here]
        if self.rows[START_ID] is not None and self.rows[START_ID] == self.rows[PAD_ID]:
            found[self.rows[START_ID]] = table[START_ID]
        return found

    def pieces(self, foreign: Sequence[str]) -> list[str]:
        """Return the tokens in the order of this package.

        Args:
            foreign: Each foreign id's token.

        Returns:
            Each id's token here; the added rows get a name that is no foreign token.
        """
        taken = set(foreign)
        found = [_free_name(PAD, taken), UNKNOWN, _free_name(START, taken), END]
        for place in (PAD_ID, UNKNOWN_ID, END_ID):
            row = self.rows[place]
            if row is not None:
                found[place] = foreign[row]
        return [*found, *(foreign[row] for row in self.rows[SPECIAL:] if row is not None)]


def _free_name(name: str, taken: set[str]) -> str:
    while name in taken:
        name = f"<{name}>"
    return name


def read_vocabulary(path: Path) -> list[str]:
    """Return the tokens of a vocabulary file, by id.

    Args:
        path: `.json` (token -> id), `.yml` or `.yaml` (the same, as Marian writes it), `.spm`
            (SentencePiece, whose own ids count) or text with a token a line.

    Returns:
        The token of each id.

    Raises:
        ValueError: Ids are missing or doubled, or the file cannot be read.
    """
    if not path.is_file():
        raise ValueError(f"{path} is missing; copy the whole folder of the checkpoint")
    if path.suffix == ".json":
        return by_id(read_object(path), path)
    if path.suffix == ".spm":
        return _spm_pieces(path)
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not UTF-8; copy the file again") from None
    if path.suffix in (".yml", ".yaml"):
        return by_id(parse_yaml_vocabulary(text, path), path)
    lines = text.split("\n")
    pieces = lines[:-1] if lines[-1] == "" else lines
    found: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        _add(found, piece, number, path, line=number + 1)
    return by_id(found, path)


def check_segmentation(model: bytes, file: Path, vocabulary: Sequence[str]) -> None:
    """Compare a SentencePiece model with the vocabulary of its pieces.

    A vocabulary may lack pieces that its training text did not have.

    Args:
        model: The bytes of the SentencePiece model.
        file: Its file, for messages.
        vocabulary: The tokens.

    Raises:
        ValueError: Most pieces are no tokens, or their scores do not fall from piece to piece, as
            SentencePiece writes them.
    """
    scores = ordinary_pieces(model, file)
    lacking = len(set(scores) - set(vocabulary))
    if lacking > len(scores) / 2:
        raise ValueError(
            f"{file} has {len(scores):,} pieces, of which the vocabulary lacks {lacking:,}, so "
            "they belong to different models; copy the files again"
        )
    learned = [item for item in scores.items() if item[1]]  # a symbol that was added has 0
    for (piece, score), (following, next_score) in itertools.pairwise(learned):
        if score < next_score:
            raise ValueError(
                f"{file} has the piece {following[:40]!r} of score {next_score:g} behind "
                f"{piece[:40]!r} of {score:g}, but scores fall; copy the file again"
            )


def check_merges(model: bytes, file: Path) -> None:
    """Compare the scores of a BPE model, which count its merges, with each other.

    Pieces that somebody has added behind the learned ones may have any scores.

    Args:
        model: The bytes of the SentencePiece model, of any type.
        file: Its file, for messages.

    Raises:
        ValueError: A score between two whole numbers that fall is no whole number between them.
    """
    from sentencepiece import sentencepiece_model_pb2

    proto = sentencepiece_model_pb2.ModelProto.FromString(model)  # type: ignore[attr-defined]
    if proto.trainer_spec.model_type != proto.trainer_spec.BPE:
        return
    pieces = [piece for piece in proto.pieces if piece.type == piece.NORMAL]
    scores = [piece.score for piece in pieces]
    for piece, above, score, below in zip(pieces[1:], scores, scores[1:], scores[2:], strict=False):
        is_learned = above.is_integer() and below.is_integer() and above > below
        if is_learned and not (score.is_integer() and above >= score >= below):
            raise ValueError(
                f"{file} has the piece {piece.piece[:40]!r} of score {score} between {above:g} and "
                f"{below:g}, but scores of BPE count its merges; copy the file again"
            )


def check_tokens(vocabulary: Sequence[str], file: Path, models: Iterable[bytes]) -> None:
    """Compare a vocabulary with the SentencePiece models beside it.

    It was counted from text that the models had cut. So each token is a piece of one of them, a
    run of characters that none has, or a name such as `<unk>` and Marian's `>>fra<<`.

    Args:
        vocabulary: The tokens.
        file: Their file, for messages.
        models: The bytes of the SentencePiece models, of one side or of both.

    Raises:
        ValueError: A token is none of these.
    """
    pieces = {piece for model in models for piece in ordinary_pieces(model, file)}
    for token in vocabulary:
        if token not in pieces and not NAME.fullmatch(token) and not pieces.isdisjoint(token):
            raise ValueError(
                f"{file} has the token {token[:40]!r}, which no SentencePiece model beside it "
                "writes, so one of these files is damaged or another model's; copy them again"
            )


def ordinary_pieces(model: bytes, file: Path) -> dict[str, float]:
    """Return the pieces that stand for text, with their scores.

    Those of single bytes are left out.

    Args:
        model: Its bytes.
        file: Their file, for messages.
    """
    from tfformer.data.piece_tokenizer import parse_sentencepiece

    parsed = parse_sentencepiece(model, str(file))
    kinds = (parsed.is_control, parsed.is_unknown, parsed.is_unused, parsed.is_byte)

    def is_text(number: int) -> bool:
        return not any(is_kind(number) for is_kind in kinds)

    return {
        parsed.id_to_piece(number): parsed.get_score(number)
        for number in range(parsed.get_piece_size())
        if is_text(number)
    }


def by_id(ids: dict[str, Any], path: Path) -> list[str]:
    """Return the token of each id.

    Any ids but 0, 1, 2, ... once each raise ValueError.

    Args:
        ids: Token -> id.
        path: Their file, for messages.

    Returns:
        The tokens, in the order of their ids.

    Example:
        >>> by_id({"b": 1, "a": 0}, Path("vocab.json"))
        ['a', 'b']
    """
    pieces: list[str | None] = [None] * len(ids)
    for piece, number in ids.items():
        if type(number) is not int or number < 0:
            raise ValueError(f"{path}: {piece!r} has the id {number!r}, which is no number from 0")
        if number >= len(ids):
            missing = sorted(set(range(len(ids))) - set(map(_as_number, ids.values())))
            raise ValueError(
                f"{path}: no token has the id {missing[0]}, though {piece!r} has {number}; "
                "ids must be 0, 1, 2, ... without a hole"
            )
        if pieces[number] is not None:
            raise ValueError(f"{path}: {pieces[number]!r} and {piece!r} have the same id {number}")
        pieces[number] = piece
    return [piece for piece in pieces if piece is not None]


def _as_number(value: object) -> int:
    return value if isinstance(value, int) else -1


def _spm_pieces(path: Path) -> list[str]:
    from tfformer.data.piece_tokenizer import parse_sentencepiece

    processor = parse_sentencepiece(path.read_bytes(), str(path))
    return [processor.id_to_piece(number) for number in range(processor.get_piece_size())]


ESCAPES = {
    **{"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"},
    **{"e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0"},
    **{"L": "\u2028", "P": "\u2029"},
}
ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)", re.DOTALL)
ENTRY = re.compile(
    r"""(?P<question>\?\ )?
        (?:"(?P<double>(?:[^"\\]|\\.)*)"|'(?P<single>(?:[^']|'')*)'|(?P<plain>.+?))
        \ *(?(question)$|:\ +(?P<number>\d+)\ *$)""",
    re.VERBOSE | re.DOTALL,
)


def parse_yaml_vocabulary(text: str, path: Path) -> dict[str, int]:
    r"""Return the tokens of a vocabulary in Marian's YAML.

    A YAML library would take `yes` for a truth value, `1.0` for a number and `~` for nothing,
    and would refuse control characters; here each line is a token, a colon and an id.

    Args:
        text: Lines such as `"</s>": 0`; a long token may stand behind `? ` on a line of its own.
        path: Their file, for messages.

    Returns:
        Token -> id.

    Raises:
        ValueError: A line is of another form, or a token is named twice.

    Example:
        >>> parse_yaml_vocabulary("yes: 0\n'it''s': 1\n", Path("vocab.yml"))
        {'yes': 0, "it's": 1}
    """
    found: dict[str, int] = {}
    waiting: str | None = None
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line in ("---", "...") or (line[0] == "#" and waiting is None):
            continue
        if waiting is not None and (value := re.fullmatch(r": +(\d+) *", line)):
            _add(found, waiting, int(value[1]), path, number)
            waiting = None
            continue
        entry = ENTRY.fullmatch(line)
        if entry is None or waiting is not None:
            raise ValueError(f"{path}, line {number}: {line[:40]!r} is no token with its id")
        piece = _unquoted(entry, path, number)
        if entry["question"]:
            waiting = piece
        else:
            _add(found, piece, int(entry["number"]), path, number)
    if waiting is not None:
        raise ValueError(f"{path}: {waiting[:40]!r} has no id; the file is cut off")
    return found


def _add(found: dict[str, int], piece: str, number: int, path: Path, line: int) -> None:
    if piece in found:
        raise ValueError(f"{path}, line {line}: {piece!r} is named twice; keep one of them")
    found[piece] = number


def _unquoted(entry: re.Match[str], path: Path, line: int) -> str:
    if entry["single"] is not None:
        return entry["single"].replace("''", "'")
    if entry["double"] is None:
        return entry["plain"]

    def character(escape: re.Match[str]) -> str:
        code = escape[1]
        if code in ESCAPES:
            return ESCAPES[code]
        if len(code) == 1:
            raise ValueError(f"{path}, line {line}: \\{code} is no escape of YAML")
        number = int(code[1:], 16)
        if number > sys.maxunicode or number in SURROGATES:
            raise ValueError(f"{path}, line {line}: an escape is no character of Unicode")
        return chr(number)

    return ESCAPE.sub(character, entry["double"])
