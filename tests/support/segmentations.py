"""Texts that a SentencePiece model can cut in several equally likely ways."""

import random

from sentencepiece import SentencePieceProcessor


def stretched(sentence: str, dice: random.Random) -> str:
    """Write some letters several times.

    "dooog" has one equally likely segmentation per position of "oo".
    """
    return "".join(letter * dice.choice([1, 1, 1, 1, 2, 3, 5]) for letter in sentence)


def log_probability(model: bytes, pieces: list[str]) -> float:
    """Return the sum of the pieces' scores; all pieces must be in the model."""
    processor = SentencePieceProcessor(model_proto=model)
    ids = [processor.piece_to_id(piece) for piece in pieces]
    assert processor.unk_id() not in ids, pieces
    return sum(map(processor.get_score, ids))
