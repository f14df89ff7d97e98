"""Measure tfformer's exported search. Arguments: PRESET DTYPE VOCABULARY BATCHES, such as 32x4."""

import json
import sys
import tempfile
import time
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import numpy as np  # noqa: E402
from benchmarks.decode import (  # noqa: E402
    END_ID,
    TOKENS,
    load_saved_model,
    random_sentences,
    vocabulary,
)

from tfformer import Transformer  # noqa: E402
from tfformer.config import PRESETS  # noqa: E402
from tfformer.data.tokenizers import Tokenizer  # noqa: E402
from tfformer.export.saved_model import writer  # noqa: E402
from tfformer.inference.translator import Translator  # noqa: E402

ROUNDS = 3


def main() -> None:
    """Write the export of a random model, and print a line of JSON for each batch."""
    preset, dtype, vocab_size, *batches = sys.argv[1:]
    start = time.perf_counter()
    size = int(vocab_size)
    shape = PRESETS[preset] | {"tie_embeddings": "all", "dialect": {"output_bias": True}}
    model = Transformer(size, size, **shape)
    model.output_bias.assign(-1e9 * np.eye(size)[END_ID])
    translator = Translator(
        model, Tokenizer(vocabulary(size)), length_penalty=0.0, max_length=TOKENS
    )
    with tempfile.TemporaryDirectory() as folder:
        writer.write(Path(folder, dtype), translator, dtype, with_text=True)
        decode = load_saved_model(Path(folder, dtype))
    loaded = time.perf_counter() - start
    print(json.dumps({"written_and_loaded_seconds": round(loaded, 1)}), flush=True)
    sys.stdin.readline()  # until the other programs are ready
    sentences = random_sentences(size, 512)
    for batch in batches:
        rows, beams = map(int, batch.split("x"))
        seconds = []
        for _ in range(1 + ROUNDS):
            start = time.perf_counter()
            decode(sentences[:rows], beams)
            seconds.append(time.perf_counter() - start)
        speed = round(rows * TOKENS / min(seconds[1:]))
        figures = {"batch": batch, "first_seconds": round(seconds[0], 1)}
        print(json.dumps(figures | {"tokens_per_second": speed}), flush=True)


main()
