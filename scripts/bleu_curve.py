#!/usr/bin/env python
"""Draw the validation BLEU of trainings over their minutes.

Usage: scripts/bleu_curve.py PICTURE.png CURVE ...

A CURVE is a run, or a JSON file with pairs of minutes and BLEU. Each line is labelled with the name
of its file or folder, and its best BLEU.
"""

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt

from tfformer.run_directory import Run
from tfformer.storage.whole_files import whole_file

COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")


def main(picture: str, *sources: str) -> None:
    """Draw a line per training."""
    curves = {Path(source).name.removesuffix(".json"): curve_of(Path(source)) for source in sources}
    if len(curves) < len(sources):
        sys.exit("two curves have the same name; rename one of them")
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for number, (name, curve) in enumerate(curves.items()):
        color = COLORS[number % len(COLORS)]
        axes.plot(*zip(*curve, strict=True), marker="o", markersize=4, color=color)
        minutes, bleu = max(curve, key=lambda point: point[1])  # the run keeps these weights
        axes.annotate(
            f"{name} {bleu:.1f}",
            (minutes, bleu),
            xytext=(0, 8),
            textcoords="offset points",
            ha="right",
            color=color,
        )
    highest = max(bleu for curve in curves.values() for _, bleu in curve)
    axes.set(
        xlabel="minutes of training, validation included", ylabel="validation BLEU (13a, greedy)"
    )
    axes.set(xlim=(0, None), ylim=(0, highest * 1.12))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    with whole_file(Path(picture)) as temporary:
        figure.savefig(temporary, format=Path(picture).suffix[1:], dpi=150)


def curve_of(source: Path) -> list[tuple[float, float]]:
    """Return the minutes and the BLEU of each validation of a run or a JSON file."""
    if source.is_file():
        return [(minutes, bleu) for minutes, bleu in json.loads(source.read_text(encoding="utf-8"))]
    epochs = Run.open(source).history()
    curve = [(epoch["minutes"], epoch["val_bleu"]) for epoch in epochs if "val_bleu" in epoch]
    if not curve:
        sys.exit(f"{source} has no validation yet; draw it after the first one")
    return curve


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
