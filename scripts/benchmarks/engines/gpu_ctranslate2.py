"""Measure CTranslate2's search. Arguments: PRESET DTYPE VOCABULARY BATCHES, such as 32x4."""

import functools
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import process  # noqa: E402
import tensorflow as tf  # noqa: E402
from benchmarks._random_models import random_sentences, random_translator  # noqa: E402
from benchmarks.decode import load_ctranslate2  # noqa: E402

from tfformer.export import ctranslate2  # noqa: E402


def prepare(preset: str, dtype: str, vocab_size: int) -> Callable[[int, int], object]:
    """Export a random model, and return a function that decodes with it."""
    tf.config.set_visible_devices([], "GPU")  # TensorFlow only writes the model
    translator = random_translator(preset, vocab_size)
    with tempfile.TemporaryDirectory() as folder:
        ctranslate2.write(Path(folder), translator.model, translator.tokenizers, process.TOKENS)
        decode = load_ctranslate2(Path(folder), dtype, device="auto")
    sentences = random_sentences(vocab_size, 512)
    return lambda rows, beams: decode(sentences[:rows], beams)


preset, dtype, vocab_size, *batches = sys.argv[1:]
process.measure(functools.partial(prepare, preset, dtype, int(vocab_size)), batches)
