"""Pictures of a run: its training, learning rate, positional encoding and masks."""

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
    ORANGE,
    PAPER,
    PINK,
    Style,
    draw_grid,
    empty_figure,
    open_axes,
    save,
)
from tfformer.model.masks import look_ahead_mask, padding_mask
from tfformer.model.positions import positional_encoding
from tfformer.run_directory import Run
from tfformer.special_ids import END_ID, PAD_ID, START_ID
from tfformer.training.history import History
from tfformer.training.optimizer import learning_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = ("training.png", "positions.png", "masks.png")

# The padded sentence of the picture of the masks, and its translation.
SOURCE = ("The", "animal", "sleeps", "</s>", "<pad>", "<pad>")
TARGET = ("<s>", "Das", "Tier", "schläft", "<pad>", "<pad>")


def draw(run: Run, folder: str | Path) -> Iterator[Path]:
    """Draw the pictures of a run, finished or not, and yield the path of each.

    Before the end of the first epoch there is no picture of training.

    Raises:
        FileExistsError: Before the first picture: `folder` has one of the files of NAMES.
        ValueError: Matplotlib is not installed.
    """
    folder = Path(folder)
    paths = [folder / name for name in NAMES]
    for path in paths:
        if path.exists():
            raise FileExistsError(f"{path} exists already; choose another --output, or delete it")
    config = run.config
    history = run.history()
    empty_figure((1, 1))  # without matplotlib there is no folder either
    folder.mkdir(parents=True, exist_ok=True)
    training, positions, masks = paths
    if history:
        draw_training(config, history, training)
        yield training
    model = config.model
    draw_positions(
        config.data.max_length,
        model.d_model,
        model.dialect.position_layout,
        positions,
        model.dialect.position_timescale,
        model.dialect.position_offset,
    )
    yield positions
    draw_masks(masks, config.model.has_encoder)
    yield masks


# --- The training -------------------------------------------------------------------------------


def draw_training(config: Config, history: History, path: Path) -> None:
    """Draw loss, validation and learning rate over the steps, one below the other."""
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
    _draw_schedule(rate, config, history)
    rate.set(xlim=(0, None), ylim=(0, None))
    for ax in (loss, score, rate):
        if ax.lines:
            ax.legend(framealpha=1, edgecolor=PAPER)
    last = history[-1]
    counts = f"{last['epoch']} epochs, {last['step']:,} steps, {last['minutes']:.0f} minutes"
    figure.suptitle(f"Training: {counts}", fontsize=14, fontweight="bold", color=INK)
    save(figure, path)


def _curve(ax: Axes, history: History, name: str, label: str, colour: str) -> None:
    """Draw one figure over the epochs that have it; the legend shows its last value."""
    epochs = [epoch for epoch in history if name in epoch]
    if not epochs:
        return
    steps = [epoch["step"] for epoch in epochs]
    values = [epoch[name] for epoch in epochs]
    label = f"{label}: {values[-1]:.2f} at the end"
    ax.plot(steps, values, "o-", color=colour, markersize=3.5, linewidth=1.6, label=label)


def _draw_schedule(ax: Axes, config: Config, history: History) -> None:
    """Draw the schedule of a recipe, and the learning rates that the run recorded."""
    epoch_steps = history[0]["step"]
    schedule = learning_rate(config, epoch_steps)
    peak = schedule.warmup_steps
    highest = float(schedule(peak - 1))
    ends = [epoch["step"] for epoch in history]
    rates = [epoch["learning_rate"] for epoch in history]
    steps = np.arange(max(peak, ends[-1], config.training.epochs * epoch_steps))
    label = f"{config.training.schedule}: {highest:.2g} at step {peak:,}"
    ax.plot(steps + 1, schedule(steps), color=BLUE, linewidth=1.6, label=label)
    label = f"recorded: {rates[-1]:.3g} at the end"
    ax.plot(ends, rates, "o", color=ORANGE, markersize=3.5, label=label)


# --- Positions ----------------------------------------------------------------------------------


def draw_positions(
    length: int,
    d_model: int,
    layout: str,
    path: Path,
    timescale: str = "paper",
    offset: int = 0,
) -> None:
    """Draw the positional encoding as stripes, some of its waves, and the similarity of positions.

    The settings are those of `tfformer.PositionalEncoding`.
    """
    positions = offset + tf.range(length)
    encoding = positional_encoding(positions, d_model, layout, timescale).numpy()  # (length, D)
    figure = empty_figure((12, 8), layout="constrained")
    mosaic = figure.subplot_mosaic([["stripes", "waves"], ["stripes", "alike"]])
    stripes = mosaic["stripes"]
    colours: Style = {"cmap": "RdBu", "vmin": -1, "vmax": 1}
    extent = (-0.5, d_model - 0.5, offset + length - 0.5, offset - 0.5)
    image = stripes.imshow(
        encoding, aspect="auto", interpolation="nearest", extent=extent, **colours
    )
    stripes.set(xlabel="dimension", ylabel="position")
    _write_title(stripes, f"{length} positions in {d_model} dimensions, {layout}")
    figure.colorbar(image, ax=stripes, shrink=0.5, label="value")
    _draw_waves(mosaic["waves"], (offset, length), d_model, layout, timescale)
    _draw_likeness(mosaic["alike"], encoding, offset)
    figure.suptitle("Positional encoding (section 3.5)", fontsize=15, fontweight="bold", color=INK)
    save(figure, path)


def _draw_waves(
    ax: Axes, offset_and_length: tuple[int, int], d_model: int, layout: str, timescale: str
) -> None:
    """Draw the sines of four frequencies, each slower than the previous; a dot is a position."""
    first, length = offset_and_length
    last = first + min(length, 64) - 1
    places = np.arange(first, last + 0.05, 0.1)
    encoding = positional_encoding(tf.constant(places), d_model, layout, timescale).numpy()
    open_axes(ax, xlabel="position", ylabel="value", xlim=(first, last), ylim=(-1.1, 1.1))
    dots: Style = {"marker": "o", "markersize": 3, "markevery": 10}
    steps = d_model / 2 if timescale == "paper" else max(d_model / 2 - 1, 1)
    pairs = sorted({round(d_model / 2 * share) for share in (0, 0.1, 0.2, 0.3)})
    for pair, colour in zip(pairs, (BLUE, ORANGE, GREEN, PINK), strict=False):
        column = pair if layout == "halves" else 2 * pair
        wavelength = 2 * np.pi * 10000 ** (pair / steps)
        label = f"dimension {column}: wavelength {wavelength:.3g}"
        ax.plot(places, encoding[:, column], color=colour, linewidth=1.4, label=label, **dots)
    ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)


def _draw_likeness(ax: Axes, encoding: np.ndarray, offset: int) -> None:
    """Draw the scalar product of the middle position with every other, over their distance."""
    middle = len(encoding) // 2
    open_axes(ax, xlabel="distance", ylabel=f"scalar product with position {offset + middle}")
    distances = np.arange(len(encoding)) - middle
    ax.plot(distances, encoding @ encoding[middle], color=BLUE, linewidth=1.6)
    _write_title(ax, "Likeness depends on the distance alone")


def _write_title(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=12, color=INK, loc="left")


# --- Masks --------------------------------------------------------------------------------------


def draw_masks(path: Path, has_encoder: bool) -> None:
    """Draw the masks of a padded sentence and its translation; a language model has one mask."""
    special = {"</s>": END_ID, "<pad>": PAD_ID, "<s>": START_ID}
    source = tf.constant([[special.get(token, END_ID + 1) for token in SOURCE]])
    real = padding_mask(source)[0, 0]  # (1, S)
    padding = np.broadcast_to(real, (len(SOURCE), len(SOURCE)))
    memory = np.broadcast_to(real, (len(TARGET), len(SOURCE)))
    ahead = look_ahead_mask(len(TARGET))[0, 0].numpy()  # (T, T)
    panels = [("Decoder: look-ahead mask", ahead, TARGET, TARGET)]
    if has_encoder:
        panels.insert(0, ("Encoder: padding mask", padding, SOURCE, SOURCE))
        panels.append(("Cross-attention: padding mask", memory, TARGET, SOURCE))
    figure = empty_figure((4.5 * len(panels), 5), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        _draw_mask(ax, *panel)
    title = "Masks: a blue place may be attended to"
    figure.suptitle(title, fontsize=15, fontweight="bold", color=INK)
    save(figure, path)


def _draw_mask(
    ax: Axes, title: str, mask: np.ndarray, rows: Sequence[str], columns: Sequence[str]
) -> None:
    from matplotlib.colors import ListedColormap

    ax.imshow(mask, cmap=ListedColormap([PAPER, BLUE]), vmin=0, vmax=1)
    slanted: Style = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    ax.set_xticks(range(len(columns)), columns, fontsize=12, **slanted)
    ax.set_yticks(range(len(rows)), rows, fontsize=12)
    draw_grid(ax, mask.shape, width=1)
    ax.set_title(title, fontsize=13, color=INK)
    ax.set_xlabel("attended to", fontsize=12, color=GREY)
    ax.set_ylabel("attends", fontsize=12, color=GREY)
