#!/usr/bin/env python
"""Draw the validation BLEU of a run over its training time.

Usage: scripts/multi30k/bleu_curve.py RUN PICTURE.png
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

from tfformer.run_directory import Run
from tfformer.storage.whole_files import whole_file


def main(run: str, picture: str) -> None:
    """Draw the curve of a run, labelled with its best BLEU."""
    validated = [epoch for epoch in Run.open(run).history() if "val_bleu" in epoch]
    if not validated:
        sys.exit(f"{run} has no validation yet; draw it after the first one")
    minutes = [epoch["minutes"] for epoch in validated]
    bleu = [epoch["val_bleu"] for epoch in validated]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    axes.plot(minutes, bleu, marker="o", markersize=4, color="#0072b2")
    best = bleu.index(max(bleu))  # the run keeps these weights
    axes.annotate(
        f"{bleu[best]:.1f}",
        (minutes[best], bleu[best]),
        xytext=(0, 8),
        textcoords="offset points",
        ha="center",
    )
    axes.set(
        xlabel="minutes of training, validation included", ylabel="validation BLEU (13a, greedy)"
    )
    axes.set(xlim=(0, None), ylim=(0, max(bleu) * 1.12))
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    with whole_file(Path(picture)) as temporary:
        figure.savefig(temporary, format=Path(picture).suffix[1:], dpi=150)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
