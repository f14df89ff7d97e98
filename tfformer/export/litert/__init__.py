"""The LiteRT format: one file for phones and browsers."""
