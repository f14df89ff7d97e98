"""The four ids that every vocabulary begins with, and symbols for words.

Text, masks and search agree on them.
"""

import re

PAD_ID = 0  # fills a batch behind the ends of its rows
UNKNOWN_ID = 1  # replaces a character that has no piece
START_ID = 2  # is read first by a decoder
END_ID = 3  # is the last token of a sentence
PLACEHOLDER = re.compile(r"⟦\d+⟧")  # replaces a word that is the same in both languages
