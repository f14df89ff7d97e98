"""A random model, its vocabulary and its sentences, for measurements of decoding.

The end token has a bias of -1e9, so every translation has the maximum length.
"""

import random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tfformer import Translator

SOURCE_LENGTH = 20  # tokens, end token included
TOKENS = 32
END_ID = 3


def random_translator(
    preset: str,
    vocab_size: int,
    beam_size: int = 4,
    max_length: int = TOKENS,
    **dialect: object,
) -> "Translator":
    """Return a translator with random weights, tied embeddings and the settings of a dialect."""
    import numpy as np

    from tfformer import Transformer, Translator
    from tfformer.config import PRESETS
    from tfformer.data.tokenizers import Tokenizer

    shape = PRESETS[preset] | {"tie_embeddings": "all", "dialect": {"output_bias": True} | dialect}
    model = Transformer(vocab_size, vocab_size, **shape)
    model.output_bias.assign(-1e9 * np.eye(vocab_size)[END_ID])
    tokenizer = Tokenizer(vocabulary(vocab_size))
    return Translator(
        model, tokenizer, beam_size=beam_size, length_penalty=0.0, max_length=max_length
    )


def random_sentences(vocab_size: int, count: int = 64, length: int = SOURCE_LENGTH) -> list[str]:
    """Return sentences of `length` - 1 words, each of which is one piece."""
    dice = random.Random(1)
    sentences = []
    for _ in range(count):
        words = [f"w{dice.randrange(4, vocab_size)}" for _ in range(length - 1)]
        sentences.append(" ".join(words))
    return sentences


def ids_of(sentence: str) -> list[int]:
    """Return the ids of a sentence, without the end token."""
    return [int(word.removeprefix("w")) for word in sentence.split()]


def vocabulary(vocab_size: int) -> bytes:
    """Return a SentencePiece model with one piece for each of the words w4, w5, ..."""
    from sentencepiece import sentencepiece_model_pb2

    model = sentencepiece_model_pb2.ModelProto()
    kinds = sentencepiece_model_pb2.ModelProto.SentencePiece.Type
    model.pieces.add(piece="<pad>", type=kinds.CONTROL)
    model.pieces.add(piece="<unk>", type=kinds.UNKNOWN)
    model.pieces.add(piece="<s>", type=kinds.CONTROL)
    model.pieces.add(piece="</s>", type=kinds.CONTROL)
    for number in range(4, vocab_size):
        model.pieces.add(piece=f"\u2581w{number}", score=-1.0)
    model.trainer_spec.model_type = model.trainer_spec.UNIGRAM
    model.trainer_spec.vocab_size = vocab_size
    model.trainer_spec.pad_id, model.trainer_spec.unk_id = 0, 1
    model.trainer_spec.bos_id, model.trainer_spec.eos_id = 2, 3
    model.normalizer_spec.name = "identity"
    return model.SerializeToString()
