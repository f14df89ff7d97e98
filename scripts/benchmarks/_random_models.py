"""A random model, its vocabulary and its sentences, for measurements of decoding.

The end token has a bias of -1e9, so every translation has the maximum length.
"""

import random
from typing import TYPE_CHECKING, Any

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
    **settings: object,
) -> "Translator":
    """Return a translator with random weights, tied embeddings and a model's other settings."""
    import numpy as np

    from tfformer import Translator
    from tfformer.config import ModelConfig
    from tfformer.data.tokenizers import Tokenizer, Tokenizers
    from tfformer.run_directory import new_model

    shape = {"preset": preset, "tie_embeddings": "all", "dialect": {"output_bias": True}}
    tokenizer = Tokenizer(vocabulary(vocab_size))
    model = new_model(ModelConfig.from_dict(shape | settings), Tokenizers(tokenizer, tokenizer))
    assert model.output_bias is not None
    model.output_bias.assign(-1e9 * np.eye(vocab_size)[END_ID])
    return Translator(
        model, tokenizer, beam_size=beam_size, length_penalty=0.0, max_length=max_length
    )


def random_sentences(vocab_size: int, count: int = 64, length: int = SOURCE_LENGTH) -> list[str]:
    """Return sentences of `length` - 1 words, each of which is one piece."""
    dice = random.Random(1)
    words = [f"w{number}" for number in range(END_ID + 1, vocab_size)]
    chances = frequencies(vocab_size)
    return [" ".join(dice.choices(words, chances, k=length - 1)) for _ in range(count)]


def frequencies(vocab_size: int) -> list[float]:
    """Return the relative frequencies of the words w4, w5, ... by Zipf's law."""
    return [1 / rank for rank in range(1, vocab_size - END_ID)]


def ids_of(sentence: str) -> list[int]:
    """Return the ids of a sentence, without the end token."""
    return [int(word.removeprefix("w")) for word in sentence.split()]


def vocabulary(vocab_size: int) -> bytes:
    """Return a SentencePiece model with one piece for each of the words w4, w5, ..."""
    from sentencepiece import sentencepiece_model_pb2 as proto

    model: Any = proto.ModelProto()  # type: ignore[attr-defined]
    kinds = model.SentencePiece.Type
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
