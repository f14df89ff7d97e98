"""The cost of importing a model of OPUS-MT's shape, and its size on a phone.

The checkpoint is Hugging Face's form of opus-mt-en-de (d_model 512, 6 + 6 layers, 58,101 pieces)
with random numbers. The end is never the likeliest token, so every translation has as many tokens
as it may have. Import and export run in processes of their own, whose time and greatest memory are
measured.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tfformer.checkpoints.hugging_face.reader import BIAS, SHARED, slot_name
from tfformer.checkpoints.tensors import safetensors_file as safetensors_files
from tfformer.checkpoints.weight_names import shapes
from tfformer.config import ModelConfig
from tfformer.data import phrasebook
from tfformer.data.tokenizers import Tokenizer

VOCAB_SIZE = 58_101
SHAPE = ModelConfig(num_layers=6, d_model=512, num_heads=8, d_ff=2048)
CONFIG = {
    "model_type": "marian",
    "vocab_size": VOCAB_SIZE,
    "d_model": SHAPE.d_model,
    "encoder_layers": SHAPE.num_layers,
    "decoder_layers": SHAPE.num_layers,
    "encoder_ffn_dim": SHAPE.d_ff,
    "decoder_ffn_dim": SHAPE.d_ff,
    "encoder_attention_heads": SHAPE.num_heads,
    "decoder_attention_heads": SHAPE.num_heads,
    "activation_function": "swish",
    "scale_embedding": True,
    "num_beams": 4,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this measurement."""
    parser.add_argument("--no-export", action="store_true", help="measure the import alone")


def measure(options: argparse.Namespace) -> dict:
    """Import, export, and return the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        size = write_checkpoint(folder / "opus")
        found: dict = {"checkpoint_bytes": size}
        words = ["import", str(folder / "opus"), "--run-dir", str(folder / "run")]
        found["import"] = measured(words, size)
        if not options.no_export:
            words = ["export", str(folder / "run"), "--format", "litert", "--quantize", "int8"]
            words += ["--beam-size", "4", "--max-length", "128", "--output", str(folder / "phone")]
            found["export"] = measured(words, size)
            found["int8_bytes"] = (folder / "phone" / "1" / "model.tflite").stat().st_size
    return found


def write_checkpoint(folder: Path) -> int:
    """Write the checkpoint; returns the bytes of its weights."""
    folder.mkdir()
    random = np.random.default_rng(1)

    def numbers(*shape: int) -> np.ndarray:
        return random.standard_normal(shape, np.float32) * SHAPE.d_model**-0.5

    tensors = {SHARED: numbers(VOCAB_SIZE, SHAPE.d_model), BIAS: numbers(1, VOCAB_SIZE)}
    tensors[SHARED][-1] = 0  # padding, with which a translation begins
    tensors[BIAS][0, 0] = -1e4  # the end has a probability of 0
    for slot, shape in shapes(SHAPE).items():
        tensors[slot_name(slot)] = numbers(*shape[::-1])
    safetensors_files.write(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    texts = [text for pair in phrasebook.pairs("train")[:5_000] for text in (pair.source,)]
    cutter = Tokenizer.train(texts, vocab_size=500)
    pieces = ["</s>", "<unk>", *cutter.pieces(range(4, cutter.vocab_size))]
    pieces += [f"<{number}>" for number in range(VOCAB_SIZE - len(pieces) - 1)] + ["<pad>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary, ensure_ascii=False))
    for side in ("source", "target"):
        (folder / f"{side}.spm").write_bytes(cutter.model)
    return (folder / "model.safetensors").stat().st_size


def measured(words: list[str], size: int) -> dict:
    """Run a verb in a process of its own; returns its seconds and its greatest memory."""
    before = time.monotonic()
    process = subprocess.Popen([sys.executable, "-P", "-m", "tfformer", *words])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise ValueError(f"tfformer {words[0]} ended with {status}")
    found = {
        "seconds": round(time.monotonic() - before, 1),
        "processor_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "memory_bytes": usage.ru_maxrss * 1024,  # Linux counts in KiB
    }
    times = found["memory_bytes"] / size
    print(f"{words[0]}: {found['seconds']} s, {found['memory_bytes'] / 1e6:.0f} MB, {times:.1f} x")
    return found
