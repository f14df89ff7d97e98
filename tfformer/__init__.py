"""The Transformer for machine translation on TensorFlow and Keras 3.

Train, score, and ship one artefact. Names are imported when first used, so that the command line
answers at once; a type checker reads them below as real imports. Keras knows the layers as soon as
it is imported: `.keras` files load without `custom_objects`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tfformer.public_modules import list_public_packages
from tfformer.runtime.keras_registration import check_backend, register_with_keras
from tfformer.runtime.lazy_names import imported
from tfformer.version import __version__ as __version__

if TYPE_CHECKING:
    from tfformer import export as export
    from tfformer.checkpoints.import_model import import_model as import_model
    from tfformer.config import Config as Config
    from tfformer.data.batches import training_dataset as training_dataset
    from tfformer.data.tokenizers import Tokenizer as Tokenizer
    from tfformer.explain.alignment import alignments as alignments
    from tfformer.explain.attention import attention as attention
    from tfformer.inference.beam_search import beam_search as beam_search
    from tfformer.inference.generator import Generator as Generator
    from tfformer.inference.search import greedy_search as greedy_search
    from tfformer.inference.search import sample as sample
    from tfformer.inference.translator import Translator as Translator
    from tfformer.model.attention import MultiHeadAttention as MultiHeadAttention
    from tfformer.model.embedding import TokenEmbedding as TokenEmbedding
    from tfformer.model.feed_forward import FeedForward as FeedForward
    from tfformer.model.language_model import LanguageModel as LanguageModel
    from tfformer.model.layers import DecoderLayer as DecoderLayer
    from tfformer.model.layers import EncoderLayer as EncoderLayer
    from tfformer.model.losses import SmoothedCrossEntropy as SmoothedCrossEntropy
    from tfformer.model.masks import look_ahead_mask as look_ahead_mask
    from tfformer.model.masks import padding_mask as padding_mask
    from tfformer.model.positions import PositionalEncoding as PositionalEncoding
    from tfformer.model.stacks import Decoder as Decoder
    from tfformer.model.stacks import Encoder as Encoder
    from tfformer.model.transformer import Transformer as Transformer
    from tfformer.training.schedules import LinearSchedule as LinearSchedule
    from tfformer.training.schedules import WarmupSchedule as WarmupSchedule
    from tfformer.training.train import train as train

_HOME = {  # the same at run time, imported when first used
    "Config": "config",
    "Decoder": "model.stacks",
    "DecoderLayer": "model.layers",
    "Encoder": "model.stacks",
    "EncoderLayer": "model.layers",
    "FeedForward": "model.feed_forward",
    "Generator": "inference.generator",
    "LanguageModel": "model.language_model",
    "LinearSchedule": "training.schedules",
    "MultiHeadAttention": "model.attention",
    "PositionalEncoding": "model.positions",
    "SmoothedCrossEntropy": "model.losses",
    "TokenEmbedding": "model.embedding",
    "Tokenizer": "data.tokenizers",
    "Transformer": "model.transformer",
    "Translator": "inference.translator",
    "WarmupSchedule": "training.schedules",
    "alignments": "explain.alignment",
    "attention": "explain.attention",
    "beam_search": "inference.beam_search",
    "greedy_search": "inference.search",
    "import_model": "checkpoints.import_model",
    "look_ahead_mask": "model.masks",
    "padding_mask": "model.masks",
    "sample": "inference.search",
    "train": "training.train",
    "training_dataset": "data.batches",
}

__all__ = [
    "Config",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "Generator",
    "LanguageModel",
    "LinearSchedule",
    "MultiHeadAttention",
    "PositionalEncoding",
    "SmoothedCrossEntropy",
    "TokenEmbedding",
    "Tokenizer",
    "Transformer",
    "Translator",
    "WarmupSchedule",
    "alignments",
    "attention",
    "beam_search",
    "export",
    "greedy_search",
    "import_model",
    "look_ahead_mask",
    "padding_mask",
    "sample",
    "train",
    "training_dataset",
]

if not TYPE_CHECKING:  # a type checker would believe that there is every name

    def __getattr__(name: str) -> Any:
        if name == "export":  # a module: tfformer.export.saved_model(...)
            return importlib.import_module("tfformer.export")
        if name not in _HOME:
            raise AttributeError(f"module 'tfformer' has no attribute {name!r}")
        return imported(f"tfformer.{_HOME[name]}", name)

    def __dir__() -> list[str]:
        return __all__


check_backend()
register_with_keras()
list_public_packages(__path__, ["export"])
