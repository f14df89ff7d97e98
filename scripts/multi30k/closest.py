#!/usr/bin/env python
"""Keep the translations that are closest to the references: closest.py TRANSLATIONS REFERENCES KEPT OUTPUT

Sequence-level interpolation (Kim and Rush 2016, section 3.3): of a beam's translations the one of the highest sentence
BLEU is still what the translator would say, and nearer to what is right than its first. TRANSLATIONS holds the beams,
the same number of lines for each line of REFERENCES. OUTPUT is as many times as long as REFERENCES as are KEPT: the
closest of every sentence, then the second closest of every sentence, and so on. Equal translations count once.
"""

import sys
from pathlib import Path

from sacrebleu.metrics import BLEU
from tqdm import tqdm

from tfformer.data.sources import read_lines
from tfformer.files import whole_file


def main(translations: str, references: str, kept: int, output: str) -> None:
    found, wanted = list(read_lines(translations)), list(read_lines(references))
    beam_size = len(found) // (len(wanted) or 1)
    if beam_size < kept or beam_size * len(wanted) != len(found):
        sys.exit(
            f"{translations} has {len(found):,} lines: {kept} or more for each of {len(wanted):,} are needed"
        )
    beams = zip(*(found[rank::beam_size] for rank in range(beam_size)), strict=True)
    progress = tqdm(wanted, desc=Path(output).name, unit=" sentences")
    bleu = BLEU(effective_order=True)
    chosen = [
        closest(bleu, beam, reference, kept)
        for beam, reference in zip(beams, progress, strict=True)
    ]
    with whole_file(Path(output)) as temporary:
        temporary.write_text(
            "".join(f"{line}\n" for lines in zip(*chosen, strict=True) for line in lines), "utf-8"
        )


def closest(bleu: BLEU, beam: tuple[str, ...], reference: str, kept: int) -> list[str]:
    """The best of a beam, best first; where it has fewer different ones, the last of them fills up."""
    ranked = sorted(
        dict.fromkeys(beam), key=lambda text: -bleu.sentence_score(text, [reference]).score
    )
    return (ranked + [ranked[-1]] * kept)[:kept]


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
