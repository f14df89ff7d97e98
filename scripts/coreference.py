#!/usr/bin/env python
"""How a phrasebook run resolves "it": scripts/coreference.py RUN

Translates the held-out coreference sentences and counts the German pronouns that are right; looks on the validation
sentences for the attention head that resolves the pronoun, in the encoder "it", in cross-attention its translation, and
measures it on the held-out ones; draws that head's view of the two most famous of them into RUN/it.png and
RUN/it_wide.png. The last line is JSON.
"""

import json
import sys
from pathlib import Path

from tfformer.cli.verbs import import_tensorflow

import_tensorflow()

from tfformer import Translator, attention, phrasebook  # noqa: E402
from tfformer.explain.attention import find_coreference_head, print_head_scores  # noqa: E402
from tfformer.explain.attention_pictures import draw_word  # noqa: E402

FAMOUS = {
    "it.png": "The animal didn't cross the street because it was too tired.",
    "it_wide.png": "The animal didn't cross the street because it was too wide.",
}


def coreference_pairs(split: str) -> list[phrasebook.Pair]:
    return [pair for pair in phrasebook.pairs(split) if pair.pronoun is not None]


def pronoun_of(german: str) -> str:
    """The word behind the conjunction: "..., weil sie zu breit war." -> "sie"."""
    return " ".join(german.rpartition(", ")[2].split()[1:2])


def main(run: str) -> None:
    translator, held_out = Translator.load(run), coreference_pairs("test")
    translations = translator.translate([pair.source for pair in held_out])
    right = [
        pronoun_of(text) == pronoun_of(pair.target)
        for text, pair in zip(translations, held_out, strict=True)
    ]

    found = find_coreference_head(translator, coreference_pairs("valid"))
    measured = {(s.kind, s.layer, s.head): s for s in find_coreference_head(translator, held_out)}
    best = measured[found[0].kind, found[0].layer, found[0].head]
    print(
        f'Heads that look from "it" (cross: from er, sie or es) at its noun, {len(held_out)} held-out sentences:'
    )
    print_head_scores([measured[s.kind, s.layer, s.head] for s in found[:6]])

    for name, sentence in FAMOUS.items():
        [translation], picture = translator.translate([sentence]), Path(run) / name
        maps = getattr(attention(translator, sentence, translation), best.kind).words()
        word = "it" if best.kind == "encoder" else pronoun_of(translation)
        draw_word(maps, word, picture, best.layer, best.head)
        print(f"{sentence}\n{translation}\n{picture}")
    print(
        json.dumps(
            {
                "pronouns_right": sum(right) / len(right),
                "sentences": len(right),
                "head": best._asdict(),
            }
        )
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
