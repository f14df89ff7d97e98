"""SentencePiece models for TF Text's operators in LiteRT.

Their ids are the run's own. An imported run numbers its pieces by a list
(`tfformer/data/piece_tokenizer.py`). LiteRT has no table to look pieces up in, so the SentencePiece
model itself is written with the list's order.
"""

from collections.abc import Sequence
from typing import Any

from sentencepiece import sentencepiece_model_pb2

from tfformer.data.piece_tokenizer import PieceTokenizer
from tfformer.data.tokenizers import Tokenizer
from tfformer.run_directory import Tokenizers
from tfformer.special_ids import END_ID, UNKNOWN_ID

PIECE = sentencepiece_model_pb2.ModelProto.SentencePiece  # type: ignore[attr-defined]
INSTEAD = "leave out --text and use the files *.pieces.json beside the model"


def check(tokenizers: Tokenizers) -> None:
    """Raise ValueError if TF Text's operators cannot segment text in LiteRT.

    They do not support byte pieces, nor all rules and pieces of imported vocabularies.
    """
    for tokenizer in (tokenizers.source, tokenizers.target):
        if not isinstance(tokenizer, PieceTokenizer):
            _check_trained(tokenizer)
            continue
        trainer = _parsed(tokenizer).trainer_spec
        if trainer.model_type != trainer.UNIGRAM:
            raise ValueError(f"LiteRT's operators on text know unigram models alone; {INSTEAD}")
        if trainer.byte_fallback:
            raise ValueError(f"LiteRT's operators on text know no pieces of bytes; {INSTEAD}")
        if tokenizer.prefix_id is not None or tokenizer.rewrites:
            raise ValueError(
                f"LiteRT's operators on text know no tokens of languages and no rules; {INSTEAD}"
            )
        if tokenizer.codes:
            raise ValueError(
                f"LiteRT's operators on text know no codes such as {tokenizer.codes[0]}; {INSTEAD}"
            )


def _check_trained(tokenizer: Tokenizer) -> None:
    """Raise ValueError for a recipe's vocabulary that the operators cut otherwise."""
    if not tokenizer.is_cut_by_fast_operation:
        raise ValueError(
            "LiteRT's operators on text know unigram vocabularies alone, of an nmt_ normalization, "
            "without bytes and symbols other than ⟦1⟧; leave out --text and cut texts by the "
            "files *.model beside the model"
        )


def source_ids(tokenizers: Tokenizers) -> list[int]:
    """Return the ids of the pieces into which the operators cut the source.

    A list with two languages' pieces has some that the source's SentencePiece model lacks; their
    characters are unknown in LiteRT.
    """
    tokenizer = tokenizers.source
    own = _normal(tokenizer) if isinstance(tokenizer, PieceTokenizer) else None
    pieces = tokenizer.pieces(range(tokenizer.vocab_size))
    return [
        number
        for number, piece in enumerate(pieces)
        if number > END_ID and (own is None or piece in own)
    ]


def source_model(tokenizers: Tokenizers) -> bytes:
    """Return the bytes of the SentencePiece model that cuts the source.

    Pieces without an id in the run come last and mean the unknown piece.
    """
    tokenizer = tokenizers.source
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.model
    own = _normal(tokenizer)
    listed = _pieces(tokenizer)
    known = set(listed)
    numbered = [own.get(piece) or PIECE(piece=piece, type=PIECE.CONTROL) for piece in listed]
    behind = [own[piece] for piece in own if piece not in known]
    return _with_pieces(tokenizer, [*numbered, *behind])


def target_model(tokenizers: Tokenizers) -> bytes:
    """Return the bytes of the SentencePiece model that joins the target's pieces."""
    tokenizer = tokenizers.target
    if isinstance(tokenizer, Tokenizer):
        return tokenizer.model
    silent = {piece.piece for piece in _parsed(tokenizer).pieces if piece.type == PIECE.CONTROL}
    kinds = [
        PIECE.CONTROL if number <= END_ID or piece in silent else PIECE.NORMAL
        for number, piece in enumerate(_pieces(tokenizer))
    ]
    joined = zip(_pieces(tokenizer), kinds, strict=True)
    return _with_pieces(tokenizer, [PIECE(piece=piece, type=kind) for piece, kind in joined])


def _normal(tokenizer: PieceTokenizer) -> dict[str, PIECE]:  # type: ignore[valid-type]
    """The pieces that text is cut into, by their text."""
    found = _parsed(tokenizer).pieces
    return {piece.piece: piece for piece in found if piece.type == PIECE.NORMAL}


def _pieces(tokenizer: PieceTokenizer) -> list[str]:
    return tokenizer.pieces(range(tokenizer.vocab_size))


def _parsed(tokenizer: PieceTokenizer) -> sentencepiece_model_pb2.ModelProto:  # type: ignore[name-defined]
    return sentencepiece_model_pb2.ModelProto.FromString(tokenizer.model)  # type: ignore[attr-defined]


def _with_pieces(tokenizer: PieceTokenizer, pieces: Sequence[Any]) -> bytes:
    """The tokenizer's model with other pieces.

    The unknown one among them has the run's id.
    """
    pieces[UNKNOWN_ID].type = PIECE.UNKNOWN
    model = _parsed(tokenizer)
    del model.pieces[:]
    model.pieces.extend(pieces)
    return model.SerializeToString()
