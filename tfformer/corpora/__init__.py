"""Corpora of any size, translated file by file: by processes or a Ray cluster."""
