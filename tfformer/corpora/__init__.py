"""Corpora of any size, translated file by file by several processes."""
