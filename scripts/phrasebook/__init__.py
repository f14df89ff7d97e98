"""The bilingual grammar that writes the package's English-German parallel corpus.

`lexicon.py` has the words, `grammar.py` and `everyday.py` the rules that make sentences of them,
`small_talk.py` the fixed phrases; `rules.py` defines a rule, `corpus.py` draws the splits. In the
folder `scripts`, `python -m phrasebook` writes `tfformer/data/phrasebook/*.tsv.gz`.
"""

from phrasebook import everyday as everyday  # registers its rules
from phrasebook import grammar as grammar
from phrasebook.corpus import align, drawn, every_sentence, is_grammatical, spell, table
from phrasebook.rules import RULES

__all__ = ["RULES", "align", "drawn", "every_sentence", "is_grammatical", "spell", "table"]
