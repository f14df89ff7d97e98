"""Measure the search of transformers' MarianMT.

Arguments: SHAPE DTYPE VOCABULARY BATCHES; the shape is JSON.
"""

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import process
import torch
from transformers import MarianConfig, MarianMTModel

SOURCE_LENGTH = 20


def prepare(shape: dict[str, Any], dtype: str, vocab_size: int) -> Callable[[int, int], None]:
    """Return a function that decodes random sentences with random weights."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = new_model(shape, vocab_size).to(device, getattr(torch, dtype)).eval()

    def decode(rows: int, beams: int) -> None:
        source = torch.randint(4, vocab_size, (rows, SOURCE_LENGTH), device=device)
        target = model.generate(
            input_ids=source,
            attention_mask=torch.ones_like(source),
            num_beams=beams,
            do_sample=False,
            min_new_tokens=process.TOKENS,
            max_new_tokens=process.TOKENS,
        )
        target.cpu()  # waits for the device
        assert target.shape[1] == process.TOKENS + 1, target.shape

    return decode


def new_model(shape: dict[str, Any], vocab_size: int) -> MarianMTModel:
    """Return a model of the shape of a preset."""
    sizes: dict[str, int] = {}
    for stack in ("encoder", "decoder"):
        sizes |= {
            f"{stack}_layers": shape["num_layers"],
            f"{stack}_attention_heads": shape["num_heads"],
            f"{stack}_ffn_dim": shape["d_ff"],
        }
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=shape["d_model"],
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        max_position_embeddings=512,
        **sizes,
    )
    return MarianMTModel(config)


shape, dtype, vocab_size, *batches = sys.argv[1:]
process.measure(functools.partial(prepare, json.loads(shape), dtype, int(vocab_size)), batches)
