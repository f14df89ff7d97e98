"""Draw the validation BLEU of tfformer and Marian over the minutes of training.

Usage: scripts/open_en_de/curve.py DATA FOLDER PICTURE.png

FOLDER contains the run tfformer and, in marian, a file `started`, models and their translations of
the validation text, such as model.iter400.npz and model.iter400.de. The last line is JSON.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from tfformer.data.sources import read_lines, read_pairs
from tfformer.inference.evaluation import scores
from tfformer.run_directory import Run
from tfformer.storage.whole_files import whole_file

Curve = list[tuple[float, float]]  # minutes, BLEU


def main(data: str, folder: str, picture: str) -> None:
    """Score Marian's translations, print both curves and draw them."""
    references = [target for _, target in read_pairs("valid.tsv.gz", data)]
    epochs = Run.open(Path(folder, "tfformer")).history()
    curves = {
        "tfformer": [(epoch["minutes"], epoch["val_bleu"]) for epoch in epochs],
        "Marian": marian_curve(Path(folder, "marian"), references),
    }
    draw(curves, Path(picture))
    rounded = {name: [(round(x, 1), round(y, 1)) for x, y in c] for name, c in curves.items()}
    print(json.dumps(rounded))


def marian_curve(models: Path, references: list[str]) -> Curve:
    """Return the minutes since the start, and the BLEU, of each model."""
    started = (models / "started").stat().st_mtime
    curve = []
    for translation in models.glob("*.de"):
        hypotheses = list(read_lines(translation))
        minutes = (translation.with_suffix(".npz").stat().st_mtime - started) / 60
        curve.append((minutes, float(scores(hypotheses, references)["bleu"])))
    return sorted(curve)


def draw(curves: dict[str, Curve], picture: Path) -> None:
    """Draw a line per trainer, with its name at the end."""
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for (name, curve), color in zip(curves.items(), ("#0072b2", "#d55e00"), strict=True):
        axes.plot(*zip(*curve, strict=True), marker="o", markersize=4, color=color)
        minutes, bleu = curve[-1]
        axes.annotate(
            f"{name} {bleu:.1f}",
            (minutes, bleu),
            xytext=(0, 8),
            textcoords="offset points",
            ha="right",
            color=color,
        )
    highest = max(bleu for curve in curves.values() for _, bleu in curve)
    axes.set(xlabel="minutes of training on one core", ylabel="validation BLEU (13a, greedy)")
    axes.set(xlim=(0, None), ylim=(0, highest * 1.15))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    with whole_file(picture) as temporary:
        figure.savefig(temporary, format=picture.suffix[1:], dpi=150)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
