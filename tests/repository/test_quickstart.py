"""The quickstart reaches its scores, and every example answer in the documentation is the model's own."""

import json
import subprocess
import sys

import pytest
from support.documentation import ALL_BLOCKS, ROOT

from tfformer.inference.translator import Translator

ANSWERS = {  # page: source -> translation, both printed there
    "export/README.md": {"The animal is tired.": "Das Tier ist müde."},
}


def printed_answers() -> list[tuple[str, str]]:
    """Return the lines of README's output: sources and translations in turn."""
    (text,) = (
        block.text for block in ALL_BLOCKS if (block.page, block.language) == ("README.md", "text")
    )
    lines = text.splitlines()
    return list(zip(lines[::2], lines[1::2], strict=True))


@pytest.mark.slow
def test_the_quickstart_reaches_its_scores(quickstart):
    """BLEU and pronouns of at least 95 on held-out text, and a picture."""
    run, printed = quickstart
    results = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    assert next(result["bleu"] for result in results if "bleu" in result) >= 95
    assert next(r["pronouns_right"] for r in results if "pronouns_right" in r) >= 0.95
    for name in ("it.png", "it_wide.png"):
        assert (run / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_phrasebooks_words_are_aligned(quickstart):
    run, _ = quickstart
    aligned = subprocess.run(
        [sys.executable, "scripts/alignments.py", run], cwd=ROOT, capture_output=True, check=True
    )
    assert min(json.loads(aligned.stdout.splitlines()[-1])["alignment_error_rate"].values()) < 0.25


@pytest.mark.slow
def test_every_printed_answer_is_the_models_own(quickstart):
    translator = Translator.load(quickstart[0])
    for source, translation in printed_answers():
        assert translator.translate([source]) == [translation]
    for page, answers in ANSWERS.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for source, translation in answers.items():
            assert source in text
            assert translation in text
            assert translator.translate([source], beam_size=1) == [translation]
