"""The text questions, which every engine answers, and the samples in them."""

import random
from collections.abc import Sequence

from tfformer.engines.engine import BEAM, GREEDY
from tfformer.export.parity import Outputs, Question, Scored
from tfformer.inference.text_model import TextModel
from tfformer.inference.translator import Translator
from tfformer.special_ids import END_ID

SAMPLES = 32


def greedy(name: str, model: TextModel, samples: Sequence[str]) -> Question:
    """Return the question for greedy translations, which the manifest calls `name`."""
    expected = best_translations(model, samples, beam_size=1)
    return Question(name, 1, GREEDY, [{"text": samples}], read_greedy, expected)


def beam(name: str, model: TextModel, samples: Sequence[str]) -> Question:
    """Return the question for the best translations by the artifact's beam search."""
    beam_size = model.search_settings()["beam_size"]
    expected = best_translations(model, samples, beam_size)
    return Question(name, beam_size, BEAM, [{"text": samples}], read_beam, expected)


def best_translations(model: TextModel, samples: Sequence[str], beam_size: int) -> list[Scored]:
    """Return the run's translations; samples that are too long are truncated without a warning."""
    assert isinstance(model, Translator)
    return [best for best, *_ in model.n_best(model.encode(samples), beam_size)]


def read_greedy(outputs: Outputs) -> list[Scored]:
    """Return the translations and their scores."""
    return list(zip(outputs["translation"], outputs["score"], strict=True))


def read_beam(outputs: Outputs) -> list[Scored]:
    """Return the best translation of each beam, and its score."""
    rows = zip(outputs["translations"], outputs["scores"], strict=True)
    return [(texts[0], scores[0]) for texts, scores in rows]


def random_samples(model: TextModel) -> list[str]:
    """Return reproducible random sentences of these pieces, up to twice the maximum length."""
    longest = model.max_length
    ids = range(END_ID + 1, model.tokenizers.source.vocab_size)
    dice = random.Random(1)
    lengths = [*(1 + n % longest for n in range(SAMPLES - 1)), 2 * longest]
    rows = [dice.choices(ids, k=length) for length in lengths]
    return [sentence for sentence in model.tokenizers.source.decode(rows) if sentence]
