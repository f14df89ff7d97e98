"""A run as an artefact that other software runs.

Artefacts are written, read back, compared and published.
"""

from tfformer.export.formats import ctranslate2, hugging_face, marian, saved_model, tflite, web

__all__ = ["ctranslate2", "hugging_face", "marian", "saved_model", "tflite", "web"]
