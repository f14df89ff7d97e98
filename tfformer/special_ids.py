"""The four ids that every vocabulary begins with.

Text, masks and search agree on them.
"""

PAD_ID = 0  # fills a batch behind the ends of its rows
UNKNOWN_ID = 1  # stands for a character that has no piece
START_ID = 2  # is read first by a decoder
END_ID = 3  # is the last token of a sentence
