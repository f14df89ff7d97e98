"""The examples run and show what they say."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tfformer import phrasebook

EXAMPLES = Path(__file__).parents[1] / "examples"


def output_of(name: str, *arguments) -> list[str]:
    command = [sys.executable, EXAMPLES / name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_the_sentence_classifier_learns_what_a_question_is():
    """Far better than always saying that it is none."""
    right, none = (float(part.rstrip("%")) for part in output_of("sentence_classifier.py")[-1].split() if "%" in part)
    assert right > 95 > none + 10


@pytest.mark.slow
def test_both_arms_of_the_pretrained_encoder_are_trained_and_compared(tmp_path):
    for split, count in (("train", 400), ("val", 40)):
        for number, language in enumerate(("en", "de")):
            lines = [(pair.source, pair.target)[number] for pair in phrasebook.pairs(split.replace("val", "valid"))]
            text = "".join(line + "\n" for line in lines[:count])
            (tmp_path / f"{split}.{language}.gz").write_bytes(gzip.compress(text.encode()))
    small = ["--pairs", 100, "--epochs", 1, "--minutes", 0.05, "--vocab-size", 120]
    printed = output_of("pretrained_encoder.py", "--data", tmp_path, "--output", tmp_path / "runs", *small)
    results = json.loads(printed[-1])
    assert list(results) == ["from nothing", "from the language model"]
    assert np.isfinite([result["val_loss"] for result in results.values()]).all()
    assert [line.split(":")[0] for line in printed[-3:-1]] == list(results)
