"""A keras-hub vocabulary in the order of this package's ids."""

import json
from typing import Any

import numpy as np
from keras_hub import tokenizers as hub
from keras_hub.tokenizers import SentencePieceTokenizer
from tokenizers import Tokenizer
from tokenizers.normalizers import Prepend
from tokenizers.processors import TemplateProcessing

from tfformer.checkpoints.vocabulary import RowOrder
from tfformer.data.imported_tokenizers import BytePairTokenizer, PieceTokenizer

Prompt = tuple[list[int], list[int]]  # the ids around an empty source, and before a translation


def prompt_of(preprocessor: Any) -> Prompt:
    """Return the ids that keras-hub's preprocessor puts around empty texts."""
    text = {"encoder_text": [""], "decoder_text": [""]}
    lengths = {"encoder_sequence_length": 8, "decoder_sequence_length": 8}
    packed = preprocessor.generate_preprocess(text, **lengths)
    source, target = (
        np.asarray(packed[f"{stack}_token_ids"])[np.asarray(packed[f"{stack}_padding_mask"], bool)]
        for stack in ("encoder", "decoder")
    )
    return source.tolist(), target.tolist()


def row_order(tokenizer: Any, prompt: Prompt, size: int) -> RowOrder:
    """Return the order of `size` rows; the start row is a copy of keras-hub's start token.

    ValueError: tokenizers or prompts of this kind are not supported.
    """
    is_known = isinstance(tokenizer, SentencePieceTokenizer | hub.BytePairTokenizer)
    *before_source, end = prompt[0] or [-1]
    start, *before_translation = prompt[1] or [-1]
    is_short = before_source == before_translation and len(before_source) <= 1
    if not is_known or not is_short or min(start, end) < 0:
        raise ValueError(
            f"{type(tokenizer).__name__} is not supported; use a model with T5's or BART's "
            "tokenizer"
        )
    if isinstance(tokenizer, SentencePieceTokenizer):
        unknown = tokenizer._unk_token_id
    else:
        unknown = tokenizer.vocabulary.get("<unk>")
    pad = tokenizer.pad_token_id
    return RowOrder.of(size, unknown=unknown, end=end, pad=pad, start=start)


def new_tokenizer(
    tokenizer: Any, order: RowOrder, prompt: Prompt, instruction: str = ""
) -> PieceTokenizer | BytePairTokenizer:
    """Return a tokenizer with the ids of this package; `instruction` begins each text."""
    is_sentencepiece = isinstance(tokenizer, SentencePieceTokenizer)
    listed = tokenizer.get_vocabulary()  # BART's may have gaps
    ids = range(len(listed)) if is_sentencepiece else tokenizer.vocabulary.values()
    known = dict(zip(ids, listed, strict=True))
    names = [known.get(row, f"<unused {row}>") for row in range(order.foreign_size)]
    pieces = order.pieces(names)
    prefix = names[prompt[0][0]] if len(prompt[0]) > 1 else None  # of sources and translations
    if is_sentencepiece:
        begin = r"^(\s*\S)"  # of a text that is not blank
        rewrites = [(begin, instruction.replace("\\", r"\\") + r"\1")] if instruction else []
        return PieceTokenizer(tokenizer.proto, pieces, prefix, rewrites=rewrites)
    return _byte_pair_tokenizer(tokenizer._tokenizer, pieces, prefix, instruction)


def _byte_pair_tokenizer(
    foreign: Tokenizer, pieces: list[str], prefix: str | None, instruction: str
) -> BytePairTokenizer:
    ids = {piece: number for number, piece in enumerate(pieces)}
    values = json.loads(foreign.to_str())
    values["model"]["vocab"] = ids
    for token in values["added_tokens"]:
        token["id"] = ids[token["content"]]
    renumbered = Tokenizer.from_str(json.dumps(values))
    if prefix is not None:
        special = [(prefix, ids[prefix])]
        renumbered.post_processor = TemplateProcessing(f"{prefix} $A", special_tokens=special)
    if instruction:
        renumbered.normalizer = Prepend(instruction)
    return BytePairTokenizer(renumbered.to_str().encode())
