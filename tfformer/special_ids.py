"""The four ids that every vocabulary begins with, and the symbols of placeholders, terms and tags.

Tokenizers, masks and search all use them.
"""

import re

PAD_ID = 0  # fills the rows of a batch after their ends
UNKNOWN_ID = 1  # replaces a character that has no piece
START_ID = 2  # the first token that a decoder reads
END_ID = 3  # the last token of a sentence
PLACEHOLDER = re.compile(r"⟦\d+⟧")  # stands for a word that is the same in both languages
TAG = re.compile(r"<[^<>\s]+>")  # stands before a source: its target language, or its style
TERM_SYMBOLS = ("⟦t⟧", "⟦=⟧", "⟦/t⟧")  # before a term, before its translation, and after it


def annotated(term: str, translation: str) -> str:
    """Return a term with its translation, as a model reads them (Dinu et al. 2019, "append").

    Example:
        >>> f"The {annotated('engine', 'Motor')} is old."
        'The ⟦t⟧ engine ⟦=⟧ Motor ⟦/t⟧ is old.'
    """
    begin, equals, end = TERM_SYMBOLS
    return f"{begin} {term} {equals} {translation} {end}"
