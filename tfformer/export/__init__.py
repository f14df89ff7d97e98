"""Export a run as an artifact for other software: write, read back, compare, publish.

The entry point is `pipeline.export_model`. `formats.FORMATS` lists the formats; each has a folder
with its options, its writer and its questions.
"""
