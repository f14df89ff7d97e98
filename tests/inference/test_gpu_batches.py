"""On a GPU more sentences are decoded together, with the same translations."""

import pytest
from support.untrained import untrained_translator

from tfformer.inference import translator as module

SENTENCES = ["a b c", "d", "e f"] * 50


@pytest.mark.parametrize(
    ("is_gpu", "beam_size", "sizes"),
    [(False, 2, [64, 64, 22]), (True, 1, [150]), (True, 4, [128, 22])],
)
def test_the_device_decides_how_many_sentences_are_decoded_together(
    monkeypatch, is_gpu, beam_size, sizes
):
    translator = untrained_translator()
    monkeypatch.setattr(module, "has_gpu", lambda: is_gpu)
    asked = []
    batches = module.like_length_batches

    def seen(rows, batch_size):
        for numbers, ids in batches(rows, batch_size):
            asked.append(len(numbers))
            yield numbers, ids

    monkeypatch.setattr(module, "like_length_batches", seen)
    found = translator.translate(SENTENCES, beam_size)
    assert asked == sizes
    assert found == translator.translate(SENTENCES[:3], beam_size) * 50
