#!/usr/bin/env python
"""Measures the confidences of a run.

Usage: scripts/confidence.py RUN [SOURCES REFERENCES]

Reads held-out sentences, by default the phrasebook's first 1,000 test pairs, and prints JSON:

  temperature   that of the run, or fitted to its validation text as `tfformer export` fits it
  error_before  expected calibration error of the reference's tokens at temperature 1
  error_after   the same, with the temperature
  auc           area under the ROC curve for one word of each reference, replaced by a random word:
                how often its confidence is below that of a word that was not replaced
  correlation   Pearson's r of the confidences of greedy translations with their chrF
"""

import json
import random
from collections.abc import Sequence

from command_line import run as run_script

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import numpy as np  # noqa: E402
from sacrebleu import CHRF  # noqa: E402

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.data.sources import SentencePair, read_aligned  # noqa: E402
from tfformer.export.format import check_validation_text, validation_pairs  # noqa: E402
from tfformer.export.pipeline import CALIBRATED  # noqa: E402
from tfformer.inference.calibration import (  # noqa: E402
    Measure,
    calibration_error,
    fit,
    measuring,
)
from tfformer.run_directory import Run  # noqa: E402

SENTENCES = 1_000


def main(path: str, sources_file: str = "", references_file: str = "") -> None:
    """Print the figures of a run."""
    pairs = [(pair.source, pair.target) for pair in phrasebook.pairs("test")[:SENTENCES]]
    if sources_file:
        pairs = list(read_aligned(sources_file, references_file))
    run = Run.open(path)
    translator = Translator.of(run)
    if not run.calibration:
        check_validation_text(run)
        pairs_to_fit = validation_pairs(run, CALIBRATED)
        translator.calibration = fit(measured_on(pairs_to_fit, translator))
    measure = measured_on(pairs, translator)
    figures = {"temperature": translator.temperature}
    for name, temperature in (("before", 1.0), ("after", translator.temperature)):
        figures[f"error_{name}"] = calibration_error(*measure(1 / temperature)[:, 2:].T)
    sources, references = (list(side) for side in zip(*pairs, strict=True))
    damaged, replaced = damage(references, random.Random(1))
    whole, wrong = [], []
    for pair, word in zip(translator.aligned(sources, damaged), replaced, strict=True):
        confidences = pair.word_confidences().tolist()
        wrong.append(confidences.pop(word))
        whole += confidences
    figures["auc"] = area_under_curve(wrong, whole)
    translations = translator.translate(sources, beam_size=1)
    confidences = [pair.confidence for pair in translator.aligned(sources, translations)]
    chrf = CHRF()
    scores = [
        chrf.sentence_score(translation, [reference]).score
        for translation, reference in zip(translations, references, strict=True)
    ]
    figures["correlation"] = np.corrcoef(confidences, scores)[0, 1]
    figures = {name: round(float(value), 4) for name, value in figures.items()}
    print(json.dumps({"sentences": len(pairs)} | figures))


def measured_on(pairs: Sequence[SentencePair], translator: Translator) -> Measure:
    """Return the function that `calibration.measuring` makes of the pairs."""
    parts = translator.model, translator.tokenizers
    measure = measuring(*parts, pairs, translator.max_length)
    if measure is None:
        raise ValueError("all sentences are blank or too long for the model; use another text")
    return measure


def damage(sentences: Sequence[str], dice: random.Random) -> tuple[list[str], list[int]]:
    """Replace one word of each sentence by another word; also return the words' numbers."""
    words = sorted({word for sentence in sentences for word in sentence.split()})
    damaged, numbers = [], []
    for sentence in sentences:
        kept = sentence.split()
        number = dice.randrange(len(kept))
        kept[number] = dice.choice([word for word in dice.sample(words, 2) if word != kept[number]])
        damaged.append(" ".join(kept))
        numbers.append(number)
    return damaged, numbers


def area_under_curve(low: Sequence[float], high: Sequence[float]) -> float:
    """Return how often a value of `low` is below one of `high`; equal values count half."""
    ordered = np.sort(high)
    below = len(high) - np.searchsorted(ordered, low, side="right")
    equal = len(high) - np.searchsorted(ordered, low, side="left") - below
    return float((below + equal / 2).mean() / len(high))


if __name__ == "__main__":
    run_script(main)
