"""Small untrained models, whose choices are therefore close."""

from support.numpy_layers import randomized

from tfformer.data.tokenizers import Tokenizer
from tfformer.inference.generator import Generator
from tfformer.inference.translator import Translator
from tfformer.model.language_model import LanguageModel
from tfformer.model.transformer import Transformer

SHAPE = {"num_layers": 1, "d_model": 16, "num_heads": 2, "d_ff": 24, "dropout": 0.0}
VOCAB_SIZE = 13


def untrained_transformer(**settings) -> Transformer:
    return randomized(Transformer(VOCAB_SIZE, VOCAB_SIZE, **SHAPE, **settings))


def untrained_language_model(**settings) -> LanguageModel:
    return randomized(LanguageModel(VOCAB_SIZE, **SHAPE, **settings))


def letters_tokenizer() -> Tokenizer:
    return Tokenizer.train(["a b c d e f g h"] * 20, VOCAB_SIZE)


def untrained_translator(max_length=12) -> Translator:
    tokenizer = letters_tokenizer()
    return Translator(untrained_transformer(), tokenizer, beam_size=2, max_length=max_length)


def untrained_generator(max_length=12) -> Generator:
    tokenizer = letters_tokenizer()
    return Generator(untrained_language_model(), tokenizer, max_length=max_length)
