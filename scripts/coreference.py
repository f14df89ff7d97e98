#!/usr/bin/env python
"""Shows how a phrasebook run knows the noun that "it" stands for.

Usage: scripts/coreference.py RUN

Translates the held-out sentences with "it" and counts the German pronouns that are right. Hides
either noun phrase and measures how much the pronoun depends on it. Looks on the validation
sentences for the attention heads that resolve the pronoun and measures them on the held-out ones.
Draws the words that decide the pronoun of two famous sentences into RUN/it.png and RUN/it_wide.png.
The last line is JSON.
"""

import json
import sys
from pathlib import Path

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.explain import coreference  # noqa: E402

FAMOUS = {
    "it.png": "The animal didn't cross the street because it was too tired.",
    "it_wide.png": "The animal didn't cross the street because it was too wide.",
}
HEADS = 3  # of the table


def main(run: str) -> None:
    """Print the pronouns and heads of a run, and draw."""
    translator = Translator.load(run)
    held_out = [pair for pair in phrasebook.pairs("test") if pair.pronoun]
    translations = translator.translate([pair.source for pair in held_out])
    right = coreference.pronoun_accuracy(translations, held_out)
    print(f'"it": {right:.1%} of the pronouns in {len(held_out)} held-out sentences are right.')

    nouns = coreference.noun_influence(translator, held_out)
    print(
        "Hiding the noun phrase that is meant lowers the pronoun's log-odds by "
        f"{nouns.antecedent:.2f} nats, hiding the other one by {nouns.distractor:.2f}.\nThe right "
        f"one counts for more in {nouns.first:.1%} of the sentences where it comes first, in "
        f"{nouns.second:.1%} where it comes second."
    )

    found = coreference.find_coreference_head(translator, phrasebook.pairs("valid"))
    measured = coreference.find_coreference_head(translator, held_out)
    by_place = {score[:3]: score for score in measured}
    chosen = [by_place[score[:3]] for score in found[:HEADS]]
    print("The heads that look most at the noun that is meant, on these sentences:")
    print(coreference.table(chosen))
    for name, sentence in FAMOUS.items():
        picture = Path(run) / name
        translation = coreference.draw_pronoun(translator, sentence, picture)
        print(f"{picture}: {translation}")
    result = {
        "pronouns_right": right,
        "sentences": len(held_out),
        "influence": nouns._asdict(),
        "head": chosen[0]._asdict() | {"balanced": chosen[0].balanced},
    }
    print(json.dumps(result))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    try:
        main(sys.argv[1])
    except (ValueError, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
