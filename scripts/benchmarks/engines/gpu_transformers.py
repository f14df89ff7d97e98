"""Measure the search of transformers' MarianMT, with the arguments of gpu_saved_model.py."""

import json
import sys
import time

import torch
from transformers import MarianConfig, MarianMTModel

SHAPES = {  # tfformer.config.PRESETS, which this process cannot import
    "tiny": (4, 128, 4, 256),
    "base": (6, 512, 8, 2048),
    "big": (6, 1024, 16, 4096),
}
SOURCE_LENGTH = 20
TOKENS = 32
ROUNDS = 3


def main() -> None:
    """Decode with random weights, and print a line of JSON for each batch."""
    preset, dtype, vocab_size, *batches = sys.argv[1:]
    start = time.perf_counter()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = new_model(preset, int(vocab_size)).to(device, getattr(torch, dtype)).eval()
    print(json.dumps({"built_seconds": round(time.perf_counter() - start, 1)}), flush=True)
    sys.stdin.readline()  # until the other programs are ready
    for batch in batches:
        rows, beams = map(int, batch.split("x"))
        source = torch.randint(4, int(vocab_size), (rows, SOURCE_LENGTH), device=device)
        seconds = []
        for _ in range(1 + ROUNDS):
            start = time.perf_counter()
            target = model.generate(
                input_ids=source,
                attention_mask=torch.ones_like(source),
                num_beams=beams,
                do_sample=False,
                min_new_tokens=TOKENS,
                max_new_tokens=TOKENS,
            )
            target.cpu()  # waits for the device
            seconds.append(time.perf_counter() - start)
        assert target.shape[1] == TOKENS + 1, target.shape
        speed = round(rows * TOKENS / min(seconds[1:]))
        figures = {"batch": batch, "first_seconds": round(seconds[0], 1)}
        print(json.dumps(figures | {"tokens_per_second": speed}), flush=True)


def new_model(preset: str, vocab_size: int) -> MarianMTModel:
    """Return a model of the preset's shape."""
    num_layers, d_model, num_heads, d_ff = SHAPES[preset]
    sizes = {}
    for stack in ("encoder", "decoder"):
        sizes |= {
            f"{stack}_layers": num_layers,
            f"{stack}_attention_heads": num_heads,
            f"{stack}_ffn_dim": d_ff,
        }
    config = MarianConfig(
        vocab_size=vocab_size,
        d_model=d_model,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        decoder_start_token_id=0,
        forced_eos_token_id=None,
        max_position_embeddings=512,
        **sizes,
    )
    return MarianMTModel(config)


main()
