"""An English-German parallel corpus that a small bilingual grammar writes.

`pairs("train")` is the corpus, `write` puts it into files. To read the room: `lexicon.py` has the
words, `grammar.py` and `everyday.py` the rules that make sentences of them, `small_talk.py` the
fixed phrases; `rules.py` defines a rule, `corpus.py` draws the splits.
"""

from tfformer.phrasebook import everyday as everyday  # registers its rules
from tfformer.phrasebook import grammar as grammar
from tfformer.phrasebook.corpus import (
    Pair,
    align,
    every_sentence,
    is_grammatical,
    pairs,
    spell,
    write,
)
from tfformer.phrasebook.rules import RULES, SPLITS

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
