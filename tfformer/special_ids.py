"""The four ids that every vocabulary begins with: what text, masks and search have to agree on."""

PAD_ID, UNKNOWN_ID, START_ID, END_ID = 0, 1, 2, 3
