#!/usr/bin/env python
"""Shows how a phrasebook run knows the noun that "it" stands for.

Usage: scripts/coreference.py RUN

Translates the held-out sentences with "it" and counts the correct German pronouns. Hides each of
the two noun phrases, in both languages, and measures how much the pronoun depends on it. Draws the
words that decide the pronoun of two famous sentences into RUN/it.png and RUN/it_wide.png. The last
line is JSON.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from command_line import run as run_script

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

import numpy as np  # noqa: E402

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.explain.influence import Decision, Hidden, influences, log_odds  # noqa: E402
from tfformer.explain.pictures import draw_influences  # noqa: E402

FAMOUS = {
    "it.png": "The animal didn't cross the street because it was too tired.",
    "it_wide.png": "The animal didn't cross the street because it was too wide.",
}
PRONOUNS = ("er", "sie", "es")


class NounInfluence(NamedTuple):
    """The influence of two noun phrases on a pronoun, over many sentences.

    Attributes:
        antecedent: Mean influence of the noun phrase that "it" stands for, in nats.
        distractor: Mean influence of the other noun phrase.
        first: Share of the sentences beginning with the antecedent in which it has more influence.
        second: The same share for the sentences in which the antecedent comes second.
    """

    antecedent: float
    distractor: float
    first: float
    second: float


def pronoun_of(german: str) -> str:
    """Return the word after the conjunction, the pronoun of a sentence such as "..., weil sie"."""
    return " ".join(german.rpartition(", ")[2].split()[1:2])


def pronoun_decision(sentence: str, translation: str) -> Decision:
    """Return the decision for the pronoun of a translation."""
    pronoun = pronoun_of(translation)
    if pronoun not in PRONOUNS:
        raise ValueError(
            f"{translation!r} must contain one of the pronouns {', '.join(PRONOUNS)} after a "
            "conjunction; pass a run of the phrasebook"
        )
    pronoun_index = len(translation.rpartition(", ")[0].split()) + 1
    alternatives = tuple(candidate for candidate in PRONOUNS if candidate != pronoun)
    return Decision(sentence, translation, pronoun_index, alternatives)


def hidden(pair: phrasebook.Pair, source_words: tuple[int, ...]) -> Hidden:
    """Return source words with the target words that are aligned to them."""
    target_words = {j for i, j in pair.alignment if i in source_words}
    return Hidden(source_words, tuple(sorted(target_words)))


def noun_influence(translator: Translator, pairs: Sequence[phrasebook.Pair]) -> NounInfluence:
    """Measure how much the reference's pronoun depends on each noun phrase."""
    decisions = [pronoun_decision(pair.source, pair.target) for pair in pairs]
    antecedents = [hidden(pair, pair.antecedent) for pair in pairs]
    distractors = [hidden(pair, pair.distractor) for pair in pairs]
    seen = log_odds(translator, decisions, [Hidden()] * len(decisions))  # (N,)
    antecedent = seen - log_odds(translator, decisions, antecedents)
    distractor = seen - log_odds(translator, decisions, distractors)
    right = antecedent > distractor
    comes_first = np.array([pair.antecedent < pair.distractor for pair in pairs])
    means = (antecedent, distractor, right[comes_first], right[~comes_first])
    return NounInfluence(*(float(values.mean()) for values in means))


def main(run: str) -> None:
    """Print how well a run chooses pronouns, and draw the influences."""
    translator = Translator.load(run)
    held_out = [pair for pair in phrasebook.pairs("test") if pair.pronoun]
    translations = translator.translate([pair.source for pair in held_out])
    both = zip(translations, held_out, strict=True)
    right = np.mean([pronoun_of(german) == pronoun_of(pair.target) for german, pair in both])
    print(f'"it": {right:.1%} of the pronouns in {len(held_out)} held-out sentences are right.')

    nouns = noun_influence(translator, held_out)
    print(
        f"Hiding the noun phrase that 'it' stands for lowers the pronoun's log-odds by "
        f"{nouns.antecedent:.2f} nats, hiding the distractor by {nouns.distractor:.2f}.\n"
        f"The antecedent has more influence in {nouns.first:.1%} of the sentences where it comes "
        f"first, and in {nouns.second:.1%} of the sentences where it comes second."
    )
    for name, sentence in FAMOUS.items():
        picture = Path(run) / name
        [translation] = translator.translate([sentence])
        decision = pronoun_decision(sentence, translation)
        draw_influences(influences(translator, decision), picture)
        print(f"{picture}: {translation}")
    result = {"pronouns_right": float(right), "sentences": len(held_out)}
    print(json.dumps(result | {"influence": nouns._asdict()}))


if __name__ == "__main__":
    run_script(main)
