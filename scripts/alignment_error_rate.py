#!/usr/bin/env python
"""Measures how well a phrasebook run's cross-attention aligns words.

Usage: scripts/alignment_error_rate.py RUN

Aligns 50 held-out sentences with their known translations and prints the alignment error rate
against the grammar's alignment. The last line is JSON.
"""

import json
from collections.abc import Sequence

from command_line import run as run_script

from tfformer.runtime.tensorflow import import_tensorflow

import_tensorflow()

from tfformer import Translator  # noqa: E402
from tfformer.data import phrasebook  # noqa: E402
from tfformer.inference.alignment import Alignment, alignments, pharaoh  # noqa: E402

SENTENCES = 50


def main(run: str) -> None:
    """Print the error rate of a run."""
    translator, pairs = Translator.load(run), phrasebook.pairs("test")[:SENTENCES]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    known = [pair.alignment for pair in pairs]
    links = alignments(translator, sources, targets)
    rate = alignment_error_rate(links, known)
    print(f"{sources[0]}\n{targets[0]}\n{pharaoh(links[0])}   (the grammar: {pharaoh(known[0])})")
    print(json.dumps({"sentences": len(pairs), "alignment_error_rate": round(rate, 4)}))


def alignment_error_rate(predicted: Sequence[Alignment], known: Sequence[Alignment]) -> float:
    """Return 1 - 2 |A and S| / (|A| + |S|) over all sentences (Och and Ney 2003).

    A are the predicted links, S the known links, which all count as sure.
    """
    pairs = [(set(a), set(s)) for a, s in zip(predicted, known, strict=True)]
    total = sum(len(a) + len(s) for a, s in pairs)
    return 1 - 2 * sum(len(a & s) for a, s in pairs) / total


if __name__ == "__main__":
    run_script(main)
