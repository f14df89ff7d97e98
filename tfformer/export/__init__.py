"""A run as an artifact that other software runs: written, read back, compared, published.

`pipeline.export_model` is the entrance, `formats.FORMATS` the table of formats, and each format has
a folder with its options, its writer and its questions.
"""
