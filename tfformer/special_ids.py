"""The four ids that every vocabulary begins with, and the symbols of placeholders and tags.

Tokenizers, masks and search all use them.
"""

import re

PAD_ID = 0  # fills the rows of a batch after their ends
UNKNOWN_ID = 1  # replaces a character that has no piece
START_ID = 2  # the first token that a decoder reads
END_ID = 3  # the last token of a sentence
PLACEHOLDER = re.compile(r"⟦\d+⟧")  # stands for a word that is the same in both languages
TAG = re.compile(r"<[^<>\s]+>")  # stands before a source: its target language, or its style
