"""Score Marian's translations of the validation text, model by model.

Usage: scripts/open_en_de/marian_curve.py DATA MODELS

MODELS contains a file `started`, models and their translations, such as model.iter400.npz and
model.iter400.de. Prints JSON: pairs of minutes since the start and BLEU (13a).
"""

import json
import sys
from pathlib import Path

from tfformer.data.sources import read_lines, read_pairs
from tfformer.inference.evaluation import scores


def main(data: str, models: str) -> None:
    """Print the curve."""
    references = [target for _, target in read_pairs("valid.tsv.gz", data)]
    started = Path(models, "started").stat().st_mtime
    curve = []
    for translation in Path(models).glob("*.de"):
        minutes = (translation.with_suffix(".npz").stat().st_mtime - started) / 60
        bleu = float(scores(list(read_lines(translation)), references)["bleu"])
        curve.append((round(minutes, 1), round(bleu, 1)))
    print(json.dumps(sorted(curve)))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
