"""Import Marian's models and score their translations of the validation text.

Usage: scripts/open_en_de/marian_curve.py TEXT MODELS

TEXT contains valid.en, valid.de and the vocabulary vocab.spm; MODELS contains a file `started` and
Marian's models. Each becomes a run in MODELS/runs, such as model.iter400. tfformer translates with
them, as marian-decoder computes pre-norm models differently from Marian in training
(docs/imported_models.md). Prints JSON: pairs of minutes since the start and BLEU (13a, greedy).
"""

import json
import sys
import tempfile
from pathlib import Path

from tfformer import Translator, import_model
from tfformer.data.sources import read_lines
from tfformer.inference.evaluation import scores


def main(text: str, models: str) -> None:
    """Print the curve."""
    sources, references = (list(read_lines(Path(text, f"valid.{code}"))) for code in ("en", "de"))
    started = Path(models, "started").stat().st_mtime
    curve = []
    for model in (Path(models, "model.npz"), *Path(models).glob("model.iter*.npz")):
        minutes = (model.stat().st_mtime - started) / 60
        translations = imported(model, Path(text, "vocab.spm")).translate(sources, beam_size=1)
        bleu = float(scores(translations, references)["bleu"])
        curve.append((round(minutes, 1), round(bleu, 1)))
    print(json.dumps(sorted(curve)))


def imported(model: Path, vocabulary: Path) -> Translator:
    """Import a model of a folder that contains several."""
    run = model.parent / "runs" / model.stem
    with tempfile.TemporaryDirectory() as folder:
        for name, file in (("model.npz", model), ("vocab.spm", vocabulary)):
            Path(folder, name).symlink_to(file.resolve())
        import_model(folder, run)
    return Translator.load(run)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
