"""Measure tfformer's exported search. Arguments: PRESET DTYPE VOCABULARY BATCHES, such as 32x4."""

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import process  # noqa: E402
from benchmarks._random_models import random_sentences, random_translator  # noqa: E402
from benchmarks.decode import load_saved_model  # noqa: E402

from tfformer.export.saved_model import writer  # noqa: E402


def prepare(preset: str, dtype: str, vocab_size: int) -> Callable[[int, int], object]:
    """Export a random model, and return a function that decodes with it."""
    translator = random_translator(preset, vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        writer.write(Path(folder, dtype), translator, dtype, with_text=True)
        decode = load_saved_model(Path(folder, dtype))
    sentences = random_sentences(vocab_size, 512)
    return lambda rows, beams: decode(sentences[:rows], beams)


preset, dtype, vocab_size, *batches = sys.argv[1:]
process.measure(functools.partial(prepare, preset, dtype, int(vocab_size)), batches)
