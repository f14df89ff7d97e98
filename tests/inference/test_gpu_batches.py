"""On a GPU, batches are limited by tokens, with the same translations."""

import itertools

import pytest
from support.untrained_models import untrained_translator

from tfformer.engines import keras as keras_engine
from tfformer.inference import translator as module

SENTENCES = ["a b c", "d", "e f"] * 50
TOKENS = 1_200


@pytest.mark.parametrize(("is_gpu", "beam_size"), [(False, 2), (True, 1), (True, 4)])
def test_the_device_decides_how_many_sentences_are_decoded_together(
    monkeypatch, tmp_path, is_gpu, beam_size
):
    translator = untrained_translator()
    wanted = translator.translate(SENTENCES[:3], beam_size)
    shapes = []

    def seen(rows):
        ids = pad(rows)
        shapes.append(ids.shape)
        return ids

    pad = module.pad
    monkeypatch.setattr(module, "pad", seen)
    monkeypatch.setattr(module, "GPU_TOKENS", TOKENS)
    for reader in (module, keras_engine):
        monkeypatch.setattr(reader, "has_gpu", lambda: is_gpu)
    engine = keras_engine.KerasEngine(translator.save(tmp_path / "run"))
    chunks = engine.stream(SENTENCES, beam_size)
    assert [best.text for chunk in chunks for best, *_ in chunk] == wanted * 50
    if not is_gpu:
        assert [rows for rows, _ in shapes] == [64, 64, 22]
        return
    for (rows, width), (_, next_width) in itertools.pairwise([*shapes, (0, TOKENS)]):
        assert rows * (width + 16) * beam_size <= TOKENS  # 16 positions of each cache
        assert (rows + 1) * (next_width + 16) * beam_size > TOKENS
