"""Pictures of a run: its training, learning rate, positional encoding and masks. Knows no attention weights."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tfformer.config import Config
from tfformer.explain.figures import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LINE_GREY,
    ORANGE,
    PAPER,
    PINK,
    empty_figure,
    open_axes,
    save,
)
from tfformer.model.layers import positional_encoding
from tfformer.model.masks import look_ahead_mask, padding_mask
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID, PAD_ID, START_ID
from tfformer.training.optimizer import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("training.png", "learning_rate.png", "positions.png", "masks.png")

SOURCE = (
    "The",
    "animal",
    "sleeps",
    "</s>",
    "<pad>",
    "<pad>",
)  # what the picture of the masks is drawn of
TARGET = ("<s>", "Das", "Tier", "schläft", "<pad>", "<pad>")


def draw(run: Run, folder: str | Path, overwrite: bool = False) -> Iterator[Path]:
    """Write NAMES into `folder`, one after the other.

    FileExistsError before the first if one is there already and `overwrite` is false.

    A run that has not ended an epoch has no picture of its training.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(f"{folder} is a file, not a folder; choose another --output")
    paths = [folder / name for name in NAMES]
    for path in paths:
        if path.exists() and not overwrite:
            raise FileExistsError(
                f"{path} exists already; choose another --output, or replace it with --overwrite"
            )
    config, history = run.config, run.history()
    empty_figure((1, 1))  # without matplotlib there is no folder either
    folder.mkdir(parents=True, exist_ok=True)
    training, rate, positions, masks = paths
    if history:
        draw_training(history, training)
        yield training
    draw_learning_rate(config, history, rate)
    yield rate
    draw_positions(
        config.data.max_length,
        config.model.d_model,
        config.model.position_layout,
        positions,
        config.model.position_timescale,
    )
    yield positions
    draw_masks(masks, config.model.architecture)
    yield masks


# --- The training ---------------------------------------------------------------------------------------------------


def draw_training(history: Sequence[dict], path: Path) -> None:
    """Loss, what the validation measured and learning rate over the steps, one below the other."""
    figure = empty_figure((8, 9), layout="constrained")
    loss, score, rate = figure.subplots(3, sharex=True, height_ratios=(3, 3, 2))
    open_axes(loss, ylabel="loss (nats per token)")
    _curve(loss, history, "loss", "training, regularised", BLUE)
    _curve(loss, history, "val_loss", "validation", ORANGE)
    open_axes(score, ylabel="validation")
    _curve(score, history, "val_bleu", "BLEU", BLUE)
    _curve(score, history, "val_chrf", "chrF", ORANGE)
    _curve(score, history, "val_bits_per_byte", "bits per byte", BLUE)
    score.set_ylim(0, 105 if any("val_bleu" in epoch for epoch in history) else None)
    open_axes(rate, ylabel="learning rate", xlabel="step")
    _curve(rate, history, "learning_rate", "epoch by epoch", BLUE)
    rate.set(xlim=(0, None), ylim=(0, None))
    for ax in (loss, score, rate):
        if ax.lines:
            ax.legend(framealpha=1, edgecolor=PAPER)
    last = history[-1]
    title = (
        f"Training: {last['epoch']} epochs, {last['step']:,} steps, {last['minutes']:.0f} minutes"
    )
    figure.suptitle(title, fontsize=14, fontweight="bold", color=INK)
    save(figure, path)


def _curve(ax: Axes, history: Sequence[dict], name: str, label: str, colour: str) -> None:
    """The epochs that have a figure of this name; the last one in digits in the legend."""
    points = [(epoch["step"], epoch[name]) for epoch in history if name in epoch]
    if not points:
        return
    last = f"{points[-1][1]:.3g}" if name == "learning_rate" else f"{points[-1][1]:.2f}"
    label = f"{label}: {last} at the end"
    ax.plot(
        *zip(*points, strict=True),
        color=colour,
        marker="o",
        markersize=3.5,
        linewidth=1.6,
        label=label,
    )


# --- The learning rate ----------------------------------------------------------------------------------------------


def draw_learning_rate(config: Config, history: Sequence[dict], path: Path) -> None:
    """The schedule, with what the run recorded; a plateau schedule is known from what was recorded alone."""
    settings, schedule = config.training, learning_rate(config)
    figure = empty_figure((8, 4.5), layout="constrained")
    ax = open_axes(figure.subplots(), xlabel="step", ylabel="learning rate")
    if settings.schedule == "plateau":
        ax.axhline(schedule, color=BLUE, linewidth=1.8, label=f"the first one, {schedule:g}")
    else:
        peak = schedule.warmup_steps
        steps = np.arange(
            max(settings.total_steps or 4 * peak, history[-1]["step"] if history else 0)
        )
        ax.plot(steps + 1, schedule(steps), color=BLUE, linewidth=1.8, label="the schedule")
        highest = float(schedule(peak - 1))
        ax.annotate(
            f"{highest:.2g} at step {peak:,}",
            (peak, highest),
            (8, 2),
            textcoords="offset points",
            color=INK,
        )
    recorded = [(epoch["step"], epoch["learning_rate"]) for epoch in history]
    if recorded:
        ax.plot(
            *zip(*recorded, strict=True),
            "o",
            color=ORANGE,
            markersize=4,
            label="recorded, epoch by epoch",
        )
    ax.set(xlim=(0, None), ylim=(0, None))
    ax.margins(y=0.12)
    ax.legend(framealpha=1, edgecolor=PAPER)
    ax.set_title(
        f"Learning rate: {settings.schedule}", fontsize=12, fontweight="bold", color=INK, loc="left"
    )
    save(figure, path)


# --- Positions ------------------------------------------------------------------------------------------------------


def draw_positions(
    length: int, d_model: int, layout: str, path: Path, timescale: str = "paper"
) -> None:
    """The positional encoding as stripes, some of its waves, and how alike positions are."""
    encoding = positional_encoding(tf.range(length), d_model, layout, timescale).numpy()
    figure = empty_figure((12, 8), layout="constrained")
    stripes, waves, alike = figure.subplot_mosaic(
        [["stripes", "waves"], ["stripes", "alike"]]
    ).values()
    image = stripes.imshow(
        encoding, cmap="RdBu", vmin=-1, vmax=1, aspect="auto", interpolation="nearest"
    )
    stripes.set(xlabel="dimension", ylabel="position")
    stripes.set_title(
        f"{length} positions in {d_model} dimensions, {layout}", fontsize=12, color=INK, loc="left"
    )
    figure.colorbar(image, ax=stripes, shrink=0.5, label="value")
    _draw_waves(waves, length, d_model, layout, timescale)
    _draw_likeness(alike, encoding)
    figure.suptitle("Positional encoding (section 3.5)", fontsize=15, fontweight="bold", color=INK)
    save(figure, path)


def _draw_waves(ax: Axes, length: int, d_model: int, layout: str, timescale: str) -> None:
    """The sines of four frequencies, each slower than the one before: a dot is a position."""
    last = min(length, 64) - 1
    places = np.arange(0, last + 0.05, 0.1)
    encoding = positional_encoding(tf.constant(places), d_model, layout, timescale).numpy()
    open_axes(ax, xlabel="position", ylabel="value", xlim=(0, last), ylim=(-1.1, 1.1))
    pairs = sorted({round(d_model / 2 * share) for share in (0, 0.1, 0.2, 0.3)})
    for pair, colour in zip(pairs, (BLUE, ORANGE, GREEN, PINK), strict=False):
        column = pair if layout == "halves" else 2 * pair
        label = f"dimension {column}: wavelength {2 * np.pi * 10000 ** (2 * pair / d_model):.3g}"
        ax.plot(
            places,
            encoding[:, column],
            color=colour,
            linewidth=1.4,
            marker="o",
            markersize=3,
            markevery=10,
            label=label,
        )
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_likeness(ax: Axes, encoding: np.ndarray) -> None:
    """The scalar product of the middle position with every other: it depends on their distance alone."""
    middle = len(encoding) // 2
    open_axes(ax, xlabel="distance", ylabel=f"scalar product with position {middle}")
    ax.plot(
        np.arange(len(encoding)) - middle, encoding @ encoding[middle], color=BLUE, linewidth=1.6
    )
    ax.set_title(
        "How alike two positions are depends on their distance alone",
        fontsize=12,
        color=INK,
        loc="left",
    )


# --- Masks ----------------------------------------------------------------------------------------------------------


def draw_masks(path: Path, architecture: str) -> None:
    """Who may attend to whom in a padded sentence of six places and its translation: from `masks.py` itself.

    A language model, `architecture` "decoder", has the look-ahead mask alone.
    """
    real = {"</s>": END_ID, "<pad>": PAD_ID, "<s>": START_ID}
    source = tf.constant([[real.get(token, END_ID + 1) for token in SOURCE]])
    queries = len(SOURCE)
    padding = np.broadcast_to(padding_mask(source)[0, 0], (queries, queries))
    ahead = look_ahead_mask(len(TARGET))[0, 0].numpy()
    memory = np.broadcast_to(padding_mask(source)[0, 0], (len(TARGET), queries))
    panels = [("Decoder: look-ahead mask", ahead, TARGET, TARGET)]
    if architecture == "encoder-decoder":
        panels.insert(0, ("Encoder: padding mask", padding, SOURCE, SOURCE))
        panels.append(("Cross-attention: padding mask", memory, TARGET, SOURCE))
    figure = empty_figure((4.5 * len(panels), 5), layout="constrained")
    for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        _draw_mask(ax, *panel)
    figure.suptitle(
        "Masks: a blue place may be attended to", fontsize=15, fontweight="bold", color=INK
    )
    save(figure, path)


def _draw_mask(
    ax: Axes, title: str, mask: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> None:
    from matplotlib.colors import ListedColormap

    ax.imshow(mask, cmap=ListedColormap([PAPER, BLUE]), vmin=0, vmax=1)
    ax.set_xticks(
        range(len(columns)), columns, rotation=45, ha="right", rotation_mode="anchor", fontsize=12
    )
    ax.set_yticks(range(len(rows)), rows, fontsize=12)
    ax.set_xticks(np.arange(len(columns) + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(len(rows) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=LINE_GREY, linewidth=1)
    ax.tick_params(which="both", length=0)
    ax.set_title(title, fontsize=13, color=INK)
    ax.set_xlabel("attended to", fontsize=12, color=GREY)
    ax.set_ylabel("attends", fontsize=12, color=GREY)
    for spine in ax.spines.values():
        spine.set_color(LINE_GREY)
