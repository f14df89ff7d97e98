"""The public names and the modules that define them: read by lazy-loader and type checkers."""

from .checkpoints.import_model import import_model as import_model
from .config import Config as Config
from .data.batches import training_dataset as training_dataset
from .data.tokenizers import Tokenizer as Tokenizer
from .explain.attention_maps import attention as attention
from .export.pipeline import export_model as export_model
from .inference.alignment import alignments as alignments
from .inference.beam_search import beam_search as beam_search
from .inference.generator import Generator as Generator
from .inference.search import greedy_search as greedy_search
from .inference.search import sample as sample
from .inference.translator import Translator as Translator
from .keras_hub.translator import from_keras_hub as from_keras_hub
from .model.attention import MultiHeadAttention as MultiHeadAttention
from .model.embedding import TokenEmbedding as TokenEmbedding
from .model.feed_forward import FeedForward as FeedForward
from .model.language_model import LanguageModel as LanguageModel
from .model.layers import DecoderLayer as DecoderLayer
from .model.layers import EncoderLayer as EncoderLayer
from .model.losses import SmoothedCrossEntropy as SmoothedCrossEntropy
from .model.masks import look_ahead_mask as look_ahead_mask
from .model.masks import padding_mask as padding_mask
from .model.positions import PositionalEncoding as PositionalEncoding
from .model.recurrence import SimpleRecurrentUnit as SimpleRecurrentUnit
from .model.stacks import Decoder as Decoder
from .model.stacks import Encoder as Encoder
from .model.transformer import Transformer as Transformer
from .training.schedules import LinearSchedule as LinearSchedule
from .training.schedules import WarmupSchedule as WarmupSchedule
from .training.train import train as train

__version__: str
