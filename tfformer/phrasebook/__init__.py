"""An English-German parallel corpus that a small bilingual grammar writes."""

from tfformer.phrasebook.grammar import (
    RULES,
    SPLITS,
    Pair,
    align,
    every_sentence,
    is_grammatical,
    pairs,
    spell,
    write,
)

__all__ = [
    "RULES",
    "SPLITS",
    "Pair",
    "align",
    "every_sentence",
    "is_grammatical",
    "pairs",
    "spell",
    "write",
]
