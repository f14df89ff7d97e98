#!/usr/bin/env python
"""Print what the runs of variants.sh have measured.

Usage: scripts/multi30k/variants_table.py table FOLDER
       scripts/multi30k/variants_table.py rate RUN...
       scripts/multi30k/variants_table.py updates TRIAL MINUTES

`table` prints a Markdown table of a folder's finished runs, and JSON as its last line; `rate` the
learning rate of the run with the best BLEU on the validation text; `updates` the number of updates,
a multiple of 10, that a training does in MINUTES.
"""

import itertools
import json
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

HEADER = """\
| Optimizer | Rate | Positions | Norm | Activation | val BLEU | Test BLEU | val loss | Seeds \
| Updates | ms per update | Parameters |
|---|---|---|---|---|---|---|---|---|---|---|---|"""


def table(folder: str) -> None:
    """Print the table of the runs in a folder of variants.sh."""
    rows = [_row(Path(folder), *runs) for runs in _runs_by_settings(Path(folder, "runs")).values()]
    print(HEADER)
    for row in rows:
        print(
            f"| {row['optimizer']} | {row['rate']} | {row['positions']} | {row['norm']} "
            f"| {row['activation']} | {_mean_and_range(row['val_bleu'])} "
            f"| {_mean_and_range(row['test_bleu'])} | {statistics.mean(row['val_loss']):.3f} "
            f"| {len(row['seeds'])} | {statistics.mean(row['updates']):,.0f} "
            f"| {row['ms_per_update']:.0f} | {row['parameters']:,} |"
        )
    print(json.dumps(rows))


def _runs_by_settings(folder: Path) -> dict[str, list[Path]]:
    """Group the finished runs that differ only in their seed."""
    groups: dict[str, list[Path]] = {}
    for result in sorted(folder.glob("*/result.json")):
        groups.setdefault(result.parent.name.rpartition("-")[0], []).append(result.parent)
    return groups


def _row(folder: Path, *runs: Path) -> dict[str, Any]:
    from tfformer.runtime.tensorflow import import_tensorflow

    import_tensorflow()
    from tfformer.run_directory import Run

    optimizer, rate, *variant, _ = runs[0].name.split("-")
    results = [json.loads((run / "result.json").read_text()) for run in runs]
    tests = [run.with_name(f"{run.name}.test.json") for run in runs]
    first = Run.open(runs[0])
    trial = folder / "trials" / "-".join((optimizer, *variant))
    return {
        "optimizer": optimizer,
        "rate": rate,
        **dict(zip(("positions", "norm", "activation"), variant, strict=True)),
        "seeds": [run.name.rpartition("-")[2] for run in runs],
        "val_bleu": [result["val_bleu"] for result in results],
        "test_bleu": [json.loads(test.read_text())["bleu"] for test in tests if test.exists()],
        "val_loss": [result["val_loss"] for result in results],
        "updates": [result["steps"] for result in results],
        "minutes": [result["minutes"] for result in results],
        "ms_per_update": 1000 * _seconds_per_update(trial),
        "parameters": first.kind.parameters(first.config.model, first.tokenizers),
    }


def _mean_and_range(scores: list[float]) -> str:
    if len(scores) < 2:
        return "".join(f"{score:.2f}" for score in scores)
    return f"{statistics.mean(scores):.2f} ({min(scores):.2f} to {max(scores):.2f})"


def rate(*runs: str) -> None:
    """Print the learning rate of the run with the best validation."""
    results = {run: json.loads(Path(run, "result.json").read_text()) for run in runs}
    best = max(runs, key=lambda run: results[run]["val_bleu"])
    print(json.loads(Path(best, "config.json").read_text())["training"]["learning_rate"])


def updates(trial: str, minutes: str) -> None:
    """Print the number of updates that fit into a number of minutes."""
    print(10 * max(1, round(6 * float(minutes) / _seconds_per_update(Path(trial)))))


def _seconds_per_update(trial: Path) -> float:
    """Return the least of the trial's epochs, which other processes disturb least.

    The first epoch traces the training step, and the last one ends with a validation; they do not
    count. All trials have the same batches.
    """
    epochs = [json.loads(line) for line in (trial / "metrics.jsonl").read_text().splitlines()]
    return min(
        60 * (end["minutes"] - begin["minutes"]) / (end["step"] - begin["step"])
        for begin, end in itertools.pairwise(epochs[:-1])
    )


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"table": table, "rate": rate, "updates": updates}
    name, *words = sys.argv[1:] or [""]
    if name not in commands or not words:
        sys.exit(__doc__)
    try:
        commands[name](*words)
    except (ValueError, OSError) as error:
        sys.exit(f"{sys.argv[0]}: {error}")
