"""A run as an artefact that other software runs.

Artefacts are written, read back, compared and published. The functions are imported when first
used, as whoever reads an artefact needs no TensorFlow.
"""

from typing import TYPE_CHECKING, Any

from tfformer.runtime.lazy_names import imported

if TYPE_CHECKING:
    from tfformer.export.formats import ctranslate2 as ctranslate2
    from tfformer.export.formats import hugging_face as hugging_face
    from tfformer.export.formats import marian as marian
    from tfformer.export.formats import saved_model as saved_model
    from tfformer.export.formats import tflite as tflite
    from tfformer.export.formats import web as web

__all__ = ["ctranslate2", "hugging_face", "marian", "saved_model", "tflite", "web"]

if not TYPE_CHECKING:  # a type checker would believe that there is every name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'tfformer.export' has no attribute {name!r}")
        return imported("tfformer.export.formats", name)

    def __dir__() -> list[str]:
        return __all__
