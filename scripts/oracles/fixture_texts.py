"""The text of the fixtures: the phrasebook in lower case, and SentencePiece vocabularies of it."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece

from tfformer.data import phrasebook

MARIAN_IDS = {"bos_id": -1, "pad_id": -1, "eos_id": 0, "unk_id": 1}


def short_pairs() -> list[tuple[str, str]]:
    """Return the short sentences of the phrasebook with their translations."""
    return [
        (pair.source.lower(), pair.target.lower())
        for pair in phrasebook.pairs("train")
        if len(pair.source) < 22 and len(pair.target) < 26
    ]


def train_pieces(path: Path, texts: Iterable[str], size: int, **settings: Any) -> None:
    """Train a vocabulary without normalisation, whose table alone would take 240 kB."""
    with path.open("wb") as file:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=file,
            vocab_size=size,
            num_threads=1,
            minloglevel=2,
            **{"normalization_rule_name": "identity"} | settings,
        )
