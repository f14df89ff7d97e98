"""Shared by all pictures: colours, an empty figure, a file that appears whole."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfformer.storage.whole_files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style = dict[str, Any]  # arguments of matplotlib's functions

INK = "#1b1f24"
GREY = "#6e7781"
LINE_GREY = "#d8dee4"
PAPER = "#ffffff"

# Okabe and Ito's colours, safe for every colour vision.
BLUE = "#0072b2"
ORANGE = "#d55e00"
GREEN = "#009e73"
PINK = "#cc79a7"


def empty_figure(size: tuple[float, float], **settings: Any) -> Figure:
    """Return an empty white figure of a size in inches.

    Without Matplotlib the ValueError has the command that installs it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError(
            "pictures need matplotlib; pip install -e '.[plot]' (text and .html pages do without)"
        ) from error
    figure = Figure(size, dpi=150, facecolor=PAPER, **settings)
    FigureCanvasAgg(figure)
    return figure


def open_axes(ax: Axes, **labels: Any) -> Axes:
    """Give axes their labels and a light grid, take their frame, and return them."""
    ax.set(**labels)
    ax.grid(color=LINE_GREY, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    return ax


def draw_grid(ax: Axes, shape: tuple[int, ...], width: float) -> None:
    """Draw thin lines between the cells (rows, columns) of a picture, and no ticks."""
    rows, columns = shape
    ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=LINE_GREY, linewidth=width)
    ax.tick_params(which="both", length=0)
    for spine in ax.spines.values():
        spine.set_color(LINE_GREY)


def save(figure: Figure, path: Path) -> None:
    """Write the figure, whole or not at all, in the format of `path`'s suffix."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], bbox_inches="tight", pad_inches=0.2)
