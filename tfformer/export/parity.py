"""Compares an artefact's texts and scores with the run's own."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

SCORE_TOLERANCE = 1e-3  # of the score, or in nats below 1: 60 sums in another order differ by 1e-5

Scored = tuple[str, float]  # a text and its score in nats


class Hypotheses(NamedTuple):
    """The best texts that a signature gives for the samples, one each."""

    beam_size: int
    texts: Sequence[Scored]


Reference = Callable[[str, int], Sequence[Scored]]  # signature, beam size -> the run's own texts


def compare(
    reference: Reference, *hypotheses: Mapping[str, Hypotheses]
) -> dict[str, dict[str, Any]]:
    """Measure how many texts are the run's own.

    Args:
        reference: It gives the run's own texts for the same samples.
        hypotheses: The artefact's texts, by the name of a signature or search. Where several
            runtimes have read the artefact, a mapping for each.

    Returns:
        By the same names: `beam_size`, `sentences`, how many are `identical`, and of these the
        `largest_score_difference`, relative to the score where that is beyond 1. A score that is no
        number differs by infinity. Of several runtimes the one with the fewest identical texts
        counts, and the largest score difference of all.
    """
    measured = {}
    for name, (beam_size, _) in hypotheses[0].items():
        own = reference(name, beam_size)
        each = [_measured(own, found[name].texts, beam_size) for found in hypotheses]
        fewest = min(each, key=lambda one: one["identical"])
        largest = max(one["largest_score_difference"] for one in each)
        measured[name] = fewest | {"largest_score_difference": largest}
    return measured


def _measured(
    reference: Sequence[Scored], hypotheses: Sequence[Scored], beam_size: int
) -> dict[str, Any]:
    pairs = zip(reference, hypotheses, strict=True)
    differences = [
        _difference(score, measured)
        for (text, score), (hypothesis, measured) in pairs
        if text == hypothesis
    ]
    return {
        "beam_size": beam_size,
        "sentences": len(hypotheses),
        "identical": len(differences),
        "largest_score_difference": max(differences, default=0.0),
    }


def _difference(score: float, measured: float) -> float:
    difference = abs(score - measured) / max(1.0, abs(score))
    return math.inf if math.isnan(difference) else difference


def check(parity: Mapping[str, Mapping[str, Any]]) -> None:
    """Refuse an artefact that differs from its run.

    Args:
        parity: The measurements of `compare`.

    Raises:
        ValueError: A text is not the run's own, or a score differs beyond `SCORE_TOLERANCE`.
    """
    for name, measured in parity.items():
        is_same = measured["identical"] == measured["sentences"]
        if not is_same or measured["largest_score_difference"] > SCORE_TOLERANCE:
            raise ValueError(
                f"{name} gave the run's translation for {measured['identical']} of "
                f"{measured['sentences']} samples, with scores up to "
                f"{measured['largest_score_difference']:.2g} apart; what was written is not kept"
            )
