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
        outputs = loaded.signatures["serving_default"](tf.constant(list(texts)))
        return [text.decode() for text in outputs["translation"].numpy()]

    return translate


def litert(run: Translator, folder: Path) -> Translate:
    from ai_edge_litert.interpreter import Interpreter

    translator = run.with_search(run.decoding.replace(beam_size=1))
    litert_writer.write(folder / "model.tflite", translator, "none", static=False)
    interpreter = Interpreter(model_path=str(folder / "model.tflite"))
    source, target = translator.tokenizers.source, translator.tokenizers.target

    def translate(texts: Sequence[str]) -> list[str]:
        rows = [row[: translator.max_length - 1] for row in source.encode(texts)]
        ids = np.full((len(rows), max(map(len, rows)) + 1), END_ID, np.int32)
        for number, row in enumerate(rows):
            ids[number, : len(row)] = row
        lengths = np.array([len(row) for row in rows], np.int32)
        outputs = interpreter.get_signature_runner("translate")(ids=ids, lengths=lengths)
        return target.decode(outputs["ids"])

    return translate


def ctranslate2(run: Translator, folder: Path) -> Translate:
    import ctranslate2

    ctranslate2_export.write(folder, run.model, run.tokenizers, run.max_length)
    engine = ctranslate2.Translator(str(folder), device="cpu", intra_threads=1)
    source = run.tokenizers.source

    def translate(texts: Sequence[str]) -> list[str]:
        rows = [source.pieces(row[: run.max_length - 1]) for row in source.encode(texts)]
        results = engine.translate_batch(rows, beam_size=1, max_decoding_length=run.max_length)
        return [" ".join(result.hypotheses[0]) for result in results]

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
        alone = {t: translate([t])[0] for t in distinct}
        compared, different = 0, []
        while compared < wanted:
            batch = draw.choices(distinct, k=draw.choice((2, 3, 16, 64)))
            again = translate(batch)
            different += [t for t, new in zip(batch, again, strict=True) if new != alone[t]]
            compared += len(batch)
    record(f"texts that differ by batch, {engine.__name__}", f"{len(different)} of {compared:,}")
    assert different == []
