"""The quickstart reaches its scores and translates the examples in the documentation correctly."""

import json
import re
import subprocess
import sys

import pytest
import sacrebleu
from support.documentation import ALL_BLOCKS, ROOT

from tfformer.data import phrasebook
from tfformer.inference.translator import Translator

ANSWERS = {  # page: source -> translation, both printed there
    "export/README.md": {"The animal is tired.": "Das Tier ist müde."},
    "export/serving/README.md": {"Good morning.": "Guten Morgen."},
    "docs/translating.md": {"The animal is tired.": "Das Tier ist müde."},
}

EXAMPLES = {  # of the quickstart, by a person who knows both languages
    "Good morning.": "Guten Morgen.",
    "How are you?": "Wie geht es Ihnen?",
    "Thank you very much.": "Vielen Dank.",
    "You're welcome.": "Gern geschehen.",
    "I don't understand.": "Ich verstehe nicht.",
    "I love you.": "Ich liebe dich.",
    "When does the train to Munich arrive?": "Wann kommt der Zug nach München an?",
    "Could you bring us two glasses of water, please?": (
        "Könnten Sie uns bitte zwei Gläser Wasser bringen?"
    ),
    "We are waiting for the bus.": "Wir warten auf den Bus.",
    "My brother doesn't work today.": "Mein Bruder arbeitet heute nicht.",
    "The animal didn't cross the street because it was too tired.": (
        "Das Tier überquerte die Straße nicht, weil es zu müde war."
    ),
    "The animal didn't cross the street because it was too wide.": (
        "Das Tier überquerte die Straße nicht, weil sie zu breit war."
    ),
}
HELD_OUT = list(EXAMPLES)[6:]


def side_by_side(text: str) -> dict[str, str]:
    """Return the sources and translations that are printed in two columns."""
    columns = [re.split(" {2,}", line.strip()) for line in text.splitlines()]
    return {line[0]: line[1] for line in columns if len(line) == 2}


def printed_answers() -> dict[str, str]:
    """Return the columns of README's output."""
    (text,) = (
        block.text for block in ALL_BLOCKS if (block.page, block.language) == ("README.md", "text")
    )
    return side_by_side(text)


def test_readme_shows_lines_of_the_quickstart():
    assert printed_answers()
    assert printed_answers().items() <= EXAMPLES.items()


def test_the_examples_are_learned_or_held_out():
    train = {pair.source: pair.target for pair in phrasebook.pairs("train")}
    learned = {source: train[source] for source in EXAMPLES if source in train}
    assert learned.items() <= EXAMPLES.items()
    assert [source for source in EXAMPLES if source not in train] == HELD_OUT


@pytest.mark.nightly
def test_the_quickstart_reaches_its_scores(quickstart):
    """BLEU and pronouns of at least 95 on held-out text.

    The right nouns decide the pronouns, and the pictures exist.
    """
    run, _ = quickstart
    assert json.loads((run / "scores.json").read_text())["bleu"] >= 95
    coreference = json.loads((run / "coreference.json").read_text())
    assert coreference["pronouns_right"] >= 0.95
    assert min(coreference["influence"]["first"], coreference["influence"]["second"]) >= 0.95
    for name in ("it.png", "it_wide.png"):
        assert (run / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_every_example_of_the_quickstart_is_right(quickstart):
    printed = side_by_side(quickstart[1])
    assert {source: printed[source] for source in EXAMPLES} == EXAMPLES


@pytest.mark.nightly
def test_every_phrase_of_small_talk_is_learned(quickstart):
    """A few of 315 may be wrong. Without punctuation they look like the beginning of another."""
    phrases = {
        pair.source: pair.target
        for pair in phrasebook.pairs("train")
        if pair.family == "small talk"
    }
    translations = Translator.load(quickstart[0]).translate(list(phrases))
    wrong = [s for s, t in zip(phrases, translations, strict=True) if phrases[s] != t]
    assert len(wrong) <= 0.02 * len(phrases), wrong


@pytest.mark.nightly
@pytest.mark.parametrize("change", [str.lower, str.title, str.upper])
def test_other_cases_cost_at_most_two_bleu(quickstart, change):
    """The references are in the same case."""
    pairs = phrasebook.pairs("test")[:100]
    translator = Translator.load(quickstart[0])
    scores = []
    for case in (str, change):
        translations = translator.translate([case(pair.source) for pair in pairs], beam_size=1)
        references = [case(pair.target) for pair in pairs]
        scores.append(sacrebleu.corpus_bleu(translations, [references], force=True).score)
    assert scores[1] >= scores[0] - 2


@pytest.mark.nightly
def test_the_phrasebooks_words_are_aligned(quickstart):
    run, _ = quickstart
    command = [sys.executable, "scripts/alignment_error_rate.py", run]
    aligned = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    assert json.loads(aligned.stdout.splitlines()[-1])["alignment_error_rate"] < 0.05


@pytest.mark.nightly
def test_every_printed_answer_is_the_models_own(quickstart):
    translator = Translator.load(quickstart[0])
    for source, translation in printed_answers().items():
        assert translator.translate([source]) == [translation]
    for page, answers in ANSWERS.items():
        text = (ROOT / page).read_text(encoding="utf-8")
        for source, translation in answers.items():
            assert source in text
            assert translation in text
            assert translator.translate([source], beam_size=1) == [translation]
