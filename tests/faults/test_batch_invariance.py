"""A text has the same translation alone and in any batch, in every engine."""

import itertools
import random
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from support.faults import record, size
from support.hostile_requests import text

from tfformer.data.sources import read_pairs
from tfformer.export import ctranslate2 as ctranslate2_export
from tfformer.export.litert import writer as litert_writer
from tfformer.export.saved_model import writer as saved_model_writer
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID

Translate = Callable[[Sequence[str]], list[str]]
SENTENCES = [source for source, _ in itertools.islice(read_pairs("phrasebook:test"), 500)]


def keras_model(translator: Translator, folder: Path) -> Translate:
    return lambda texts: translator.translate(texts, beam_size=1)


def beam_search(translator: Translator, folder: Path) -> Translate:
    return lambda texts: translator.translate(texts, beam_size=3)


def saved_model(translator: Translator, folder: Path) -> Translate:
    saved_model_writer.write(folder, translator, "float32", with_text=True)
    loaded = tf.saved_model.load(str(folder))

    def translate(texts: Sequence[str]) -> list[str]:
        found = loaded.signatures["serving_default"](tf.constant(list(texts)))["translation"]
        return [one.decode() for one in found.numpy()]

    return translate


def litert(own: Translator, folder: Path) -> Translate:
    from ai_edge_litert.interpreter import Interpreter

    translator = own.with_search(own.decoding.replace(beam_size=1))
    litert_writer.write(folder / "model.tflite", translator, "none", static=False)
    interpreter = Interpreter(model_path=str(folder / "model.tflite"))
    source, target = translator.tokenizers.source, translator.tokenizers.target

    def translate(texts: Sequence[str]) -> list[str]:
        rows = [row[: translator.max_length - 1] for row in source.encode(texts)]
        ids = np.full((len(rows), max(map(len, rows)) + 1), END_ID, np.int32)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        lengths = np.array([len(row) for row in rows], np.int32)
        found = interpreter.get_signature_runner("translate")(ids=ids, lengths=lengths)
        return target.decode(found["ids"])

    return translate


def ctranslate2(own: Translator, folder: Path) -> Translate:
    import ctranslate2

    ctranslate2_export.write(folder, own.model, own.tokenizers, own.max_length)
    engine = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    source = own.tokenizers.source

    def translate(texts: Sequence[str]) -> list[str]:
        rows = [source.pieces(row[: own.max_length - 1]) for row in source.encode(texts)]
        found = engine.translate_batch(rows, beam_size=1, max_decoding_length=own.max_length)
        return [" ".join(one.hypotheses[0]) for one in found]

    return translate


@pytest.mark.slow
@pytest.mark.parametrize("engine", [keras_model, beam_search, saved_model, litert, ctranslate2])
def test_a_text_alone_is_translated_as_in_any_batch(translator, tmp_path, engine):
    """Random batches contain texts that were first translated alone."""
    if engine in (saved_model, litert) and not size("texts", 0):
        pytest.skip("only scripts/faults.sh tries every engine; tests/export have a batch of each")
    draw, wanted = random.Random(25), size("texts", 100)
    distinct = [draw.choice(SENTENCES) for _ in range(max(20, wanted // 50))]
    distinct += [text(draw).replace("\n", " ") for _ in range(len(distinct) // 4)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a text was truncated
        translate = engine(translator, tmp_path)
        alone = {one: translate([one])[0] for one in distinct}
        compared, different = 0, []
        while compared < wanted:
            batch = draw.choices(distinct, k=draw.choice((2, 3, 16, 64)))
            found = translate(batch)
            different += [one for one, new in zip(batch, found, strict=True) if new != alone[one]]
            compared += len(batch)
    record(f"texts that differ by batch, {engine.__name__}", f"{len(different)} of {compared:,}")
    assert different == []
