"""Which epoch of a training run is the best, and whether the training should end."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfformer.config import Config

History = list[dict[str, Any]]  # one epoch, a line of metrics.jsonl

NOT_VALIDATED = (-math.inf, -math.inf)


class SelectionMetric(NamedTuple):
    """A figure that decides which weights are kept."""

    label: str
    sign: int  # 1 if higher is better, -1 if lower is better
    tie_breaker: str | None = None  # breaks ties between equal figures: higher is better


SELECTION_METRICS = {
    "val_bleu": SelectionMetric("BLEU", 1, tie_breaker="val_chrf"),
    "val_bits_per_byte": SelectionMetric("bits per byte", -1),
}


def is_validated(epoch: Mapping[str, Any]) -> bool:
    """Return whether the epoch ended with a validation."""
    return any(name in epoch for name in SELECTION_METRICS)


def quality(epoch: Mapping[str, Any]) -> tuple[float, float]:
    """Return the figures that decide which weights are kept: higher is better.

    They are the selection metric, with its sign adjusted, and its tie-breaker; both -inf without a
    validation.

    Example:
        >>> quality({"val_bleu": 0.0, "val_chrf": 31.5})
        (0.0, 31.5)
        >>> quality({"loss": 1.0})
        (-inf, -inf)
    """
    for name, metric in SELECTION_METRICS.items():
        if name in epoch:
            tie_breaker = epoch.get(metric.tie_breaker, 0.0) if metric.tie_breaker else 0.0
            return metric.sign * epoch[name], tie_breaker
    return NOT_VALIDATED


def best_epoch(history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the epoch whose weights are kept: the best, and of equal epochs the first."""
    return max(history, key=quality)


def validations_since_best(history: Sequence[dict[str, Any]]) -> int:
    """Count the validations since the best one.

    Example:
        >>> validations_since_best([{"val_bleu": 9.0}, {}, {"val_bleu": 7.0}, {"val_bleu": 8.0}])
        2
    """
    validated = list(filter(is_validated, history))
    if not validated:
        return 0
    best = validated.index(best_epoch(validated))
    return len(validated) - 1 - best


def is_over(config: Config, history: History) -> bool:
    """Return whether the epochs, the minutes or the patience are used up."""
    if not history:
        return False
    settings = config.training
    last = history[-1]
    return (
        last["epoch"] >= settings.epochs
        or last["minutes"] >= (settings.max_minutes or math.inf)
        or validations_since_best(history) >= (settings.patience or math.inf)
    )


def result_of(history: History) -> dict[str, Any]:
    """Return the content of result.json: the duration and the best figures."""
    best, last = best_epoch(history), history[-1]
    return {
        "epochs": last["epoch"],
        "steps": last["step"],
        "minutes": round(last["minutes"], 2),
        "best_epoch": best["epoch"],
    } | {name: round(value, 4) for name, value in best.items() if name.startswith("val_")}
