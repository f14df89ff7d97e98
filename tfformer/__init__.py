"""The Transformer for machine translation on TensorFlow and Keras 3: train, score, ship one artefact.

Names are imported when first used, so that the command line answers at once. Where Keras is already imported, the
layers are imported too, which registers them: `.keras` files load without `custom_objects`.
"""

import importlib
import sys

__version__ = "0.1.0"

_HOME = {
    "Config": "config",
    "Decoder": "transformer",
    "DecoderLayer": "layers",
    "Encoder": "transformer",
    "EncoderLayer": "layers",
    "FeedForward": "layers",
    "Generator": "generator",
    "LanguageModel": "language_model",
    "LinearSchedule": "schedules",
    "MultiHeadAttention": "layers",
    "PositionalEncoding": "layers",
    "RDropCrossEntropy": "losses",
    "SmoothedCrossEntropy": "losses",
    "TokenEmbedding": "layers",
    "Tokenizer": "tokenizers",
    "Transformer": "transformer",
    "Translator": "translator",
    "WarmupSchedule": "schedules",
    "alignments": "alignment",
    "attention": "attention_maps",
    "look_ahead_mask": "masks",
    "padding_mask": "masks",
    "train": "training",
    "training_dataset": "data",
}

__all__ = sorted(_HOME)


def __getattr__(name: str):
    if name == "export":  # a module: tfformer.export.saved_model(...)
        return importlib.import_module("tfformer.export")
    if name not in _HOME:
        raise AttributeError(f"module 'tfformer' has no attribute {name!r}")
    return getattr(importlib.import_module(f"tfformer.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


if "keras" in sys.modules:
    for _module in ("transformer", "language_model", "losses", "schedules", "optimizer"):
        importlib.import_module(f"tfformer.{_module}")
