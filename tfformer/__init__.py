"""The Transformer for machine translation on TensorFlow and Keras 3: train, score, ship one artefact.

Names are imported when first used, so that the command line answers at once. Where Keras is already imported, the
layers are imported too, which registers them: `.keras` files load without `custom_objects`.
"""

import importlib
import sys

from tfformer.version import __version__ as __version__

_HOME = {
    "Config": "config",
    "Decoder": "model.transformer",
    "DecoderLayer": "model.layers",
    "Encoder": "model.transformer",
    "EncoderLayer": "model.layers",
    "FeedForward": "model.layers",
    "Generator": "inference.generator",
    "LanguageModel": "model.language_model",
    "LinearSchedule": "training.schedules",
    "MultiHeadAttention": "model.layers",
    "PositionalEncoding": "model.layers",
    "RDropCrossEntropy": "model.losses",
    "SmoothedCrossEntropy": "model.losses",
    "TokenEmbedding": "model.layers",
    "Tokenizer": "data.tokenizers",
    "Transformer": "model.transformer",
    "Translator": "inference.translator",
    "WarmupSchedule": "training.schedules",
    "alignments": "explain.alignment",
    "attention": "explain.attention",
    "look_ahead_mask": "model.masks",
    "padding_mask": "model.masks",
    "train": "training.train",
    "training_dataset": "data.batches",
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
    for _module in (
        *("model.transformer", "model.language_model", "model.losses"),
        *("training.schedules", "training.optimizer"),
    ):
        importlib.import_module(f"tfformer.{_module}")
