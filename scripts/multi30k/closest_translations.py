#!/usr/bin/env python
"""Keep the translations that are closest to the references.

Usage: scripts/multi30k/closest_translations.py TRANSLATIONS REFERENCES KEPT OUTPUT

Sequence-level interpolation (Kim and Rush 2016, section 3.3): the translation with the highest
sentence BLEU in a beam is the model's output, but closer to the reference than its first one.
TRANSLATIONS contains the beams, the same number of lines for each line of REFERENCES. OUTPUT
contains KEPT times as many lines as REFERENCES: the closest translation of every sentence, then the
second closest of every sentence, and so on. Equal translations count once.
"""

import sys
from pathlib import Path

from sacrebleu import BLEU
from tqdm import tqdm

from tfformer.data.sources import read_lines
from tfformer.storage.whole_files import whole_file


def main(translations: str, references: str, kept: int, output: str) -> None:
    """Write the `kept` closest translations of every sentence to `output`."""
    hypotheses = list(read_lines(translations))
    wanted = list(read_lines(references))
    beam_size = len(hypotheses) // (len(wanted) or 1)
    if beam_size < kept or beam_size * len(wanted) != len(hypotheses):
        sys.exit(
            f"{translations} has {len(hypotheses):,} lines, but needs the same number, at least "
            f"{kept}, for each of the {len(wanted):,} references; translate with --n-best {kept}"
        )
    beams = [
        hypotheses[first : first + beam_size] for first in range(0, len(hypotheses), beam_size)
    ]
    progress = tqdm(wanted, desc=Path(output).name, unit=" sentences")
    bleu = BLEU(effective_order=True)
    chosen = []
    for beam, reference in zip(beams, progress, strict=True):
        chosen.append(closest(bleu, beam, reference, kept))
    by_rank = (line for lines in zip(*chosen, strict=True) for line in lines)
    with whole_file(Path(output)) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in by_rank), "utf-8")


def closest(bleu: BLEU, beam: list[str], reference: str, kept: int) -> list[str]:
    """Return the closest `kept` texts of a beam in order; the last is repeated if it has fewer."""

    def distance(text: str) -> float:
        return -bleu.sentence_score(text, [reference]).score

    ranked = sorted(dict.fromkeys(beam), key=distance)
    return (ranked + [ranked[-1]] * kept)[:kept]


if __name__ == "__main__":
    if len(sys.argv) != 5 or not sys.argv[3].isdecimal() or int(sys.argv[3]) < 1:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
