"""One other text, or one other score, is enough to refuse an artefact."""

import math

import pytest

from tfformer.export import parity

OWN = [("a", -2.0), ("b", -0.5)]


def measured(found):
    """The measurements of an artefact whose greedy search finds these texts."""
    return parity.compare(lambda signature, beam_size: OWN, {"greedy": parity.Hypotheses(1, found)})


def test_equal_texts_with_nearly_equal_scores_pass():
    """A score of -2 may be 0.002 off, one of -0.5 half of that."""
    parity.check(measured([("a", -2.001), ("b", -0.5005)]))


@pytest.mark.parametrize(
    ("found", "identical", "difference"),
    [
        ([("a", -2.0), ("x", -0.5)], 1, 0.0),
        ([("a", -2.01), ("b", -0.5)], 2, 0.005),
        ([("a", -2.0), ("b", -0.502)], 2, 0.002),
        ([("a", -2.0), ("b", math.nan)], 2, math.inf),
        ([("a", math.nan), ("b", -0.5)], 2, math.inf),
        ([("a", -math.inf), ("b", -0.5)], 2, math.inf),
    ],
)
def test_one_other_text_or_score_is_refused(found, identical, difference):
    values = measured(found)
    assert values["greedy"]["largest_score_difference"] == pytest.approx(difference)
    message = f"greedy gave the run's translation for {identical} of 2 samples"
    with pytest.raises(ValueError, match=message):
        parity.check(values)
