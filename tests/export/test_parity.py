"""One different text, one different score or a process without an answer refuses an artifact."""

import math
import sys
from pathlib import Path

import pytest

from tfformer.export import parity

OWN = [("a", -2.0), ("b", -0.5)]


def measured(answers):
    """Return the measurements of an artifact whose greedy search finds these texts."""
    question = parity.Question("greedy", 1, "serving_default", [], dict, OWN)
    return {"greedy": parity.compared(question, answers)}


def test_equal_texts_with_nearly_equal_scores_pass():
    """A score of -2 may differ by 0.002, a score of -0.5 by half as much."""
    parity.check(measured([("a", -2.001), ("b", -0.5005)]))


@pytest.mark.parametrize(
    ("answers", "identical", "difference"),
    [
        ([("a", -2.0), ("x", -0.5)], 1, 0.0),
        ([("a", -2.01), ("b", -0.5)], 2, 0.005),
        ([("a", -2.0), ("b", -0.502)], 2, 0.002),
        ([("a", -2.0), ("b", math.nan)], 2, math.inf),
        ([("a", math.nan), ("b", -0.5)], 2, math.inf),
        ([("a", -math.inf), ("b", -0.5)], 2, math.inf),
    ],
)
def test_one_other_text_or_score_is_refused(answers, identical, difference):
    values = measured(answers)
    assert values["greedy"]["largest_score_difference"] == pytest.approx(difference)
    message = f"greedy returned the run's translation for {identical} of 2 samples"
    with pytest.raises(ValueError, match=message):
        parity.check(values)


def test_of_several_loaders_the_worst_counts(monkeypatch):
    """The first loader lacks a text; the second has a score that differs more."""
    loaders = [[("a", -2.0), ("x", -0.5)], [("a", -2.0), ("b", -0.7)]]
    monkeypatch.setattr(parity, "ask", lambda folder, requests: [[loader] for loader in loaders])
    question = parity.Question("greedy", 1, "serving_default", [{}], list, OWN)
    values = parity.compare(Path("folder"), [question])["greedy"]
    assert (values["identical"], values["sentences"]) == (1, 2)
    assert values["largest_score_difference"] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("true", "its last line is not an answer: ''"),
        ("echo '[1, 2'", r"its last line is not an answer: '\[1, 2'"),
        ("exit 3", "exit code 3"),
        ("echo 'KeyError: lost' >&2; exit 1", "KeyError: lost"),
    ],
)
def test_a_process_without_an_answer_is_one_line(program, reason, tmp_path, monkeypatch):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\ncat > /dev/null\n{program}\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ValueError, match=f"another process cannot run the export.*: {reason}$"):
        parity.ask(tmp_path, [])
