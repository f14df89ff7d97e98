"""A run as an artefact that other software runs: written, loaded back, compared, then moved into place."""

from tfformer.export.formats import ctranslate2, hugging_face, marian, saved_model, tflite, web

__all__ = ["ctranslate2", "hugging_face", "marian", "saved_model", "tflite", "web"]
