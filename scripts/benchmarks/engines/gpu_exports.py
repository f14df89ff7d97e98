"""Measure the search of an export.

Arguments: FORMAT PRESET DTYPE VOCABULARY BATCHES, such as saved_model base float32 32000 32x4.
"""

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import process  # noqa: E402
import tensorflow as tf  # noqa: E402
from benchmarks import decode  # noqa: E402
from benchmarks._random_models import random_sentences, random_translator  # noqa: E402

from tfformer.export import ctranslate2  # noqa: E402
from tfformer.export.saved_model import writer  # noqa: E402


def saved_model(folder: Path, preset: str, dtype: str, vocab_size: int) -> decode.Decode:
    """Export a random model as a SavedModel and load it."""
    writer.write(folder / dtype, random_translator(preset, vocab_size), dtype, with_text=True)
    return decode.load_saved_model(folder / dtype)


def for_ctranslate2(folder: Path, preset: str, dtype: str, vocab_size: int) -> decode.Decode:
    """Export a random model for CTranslate2 and load it."""
    tf.config.set_visible_devices([], "GPU")  # TensorFlow only writes the model
    translator = random_translator(preset, vocab_size)
    ctranslate2.write(folder, translator.model, translator.tokenizers, process.TOKENS)
    return decode.load_ctranslate2(folder, dtype, device="auto")


def prepare() -> Callable[[int, int], object]:
    """Export a random model, and return a function that decodes with it."""
    export = {"saved_model": saved_model, "ctranslate2": for_ctranslate2}[format]
    with tempfile.TemporaryDirectory() as folder:
        translate = export(Path(folder), preset, dtype, int(vocab_size))
    largest = max(int(batch.partition("x")[0]) for batch in batches)
    sentences = random_sentences(int(vocab_size), largest)
    return lambda rows, beams: translate(sentences[:rows], beams)


format, preset, dtype, vocab_size, *batches = sys.argv[1:]
process.measure(prepare, batches)
