"""What every picture shares: colours, an empty figure, a file that appears whole. Knows nothing of what is drawn."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tfformer.files import whole_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, GREY, PAPER, LINE_GREY = "#1b1f24", "#6e7781", "#ffffff", "#d8dee4"
BLUE, ORANGE, GREEN, PINK = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
)  # Okabe and Ito: safe for every colour vision


def empty_figure(size: tuple[float, float], **settings) -> Figure:
    """A figure of `size` inches on white; ValueError, with the remedy, where matplotlib is not installed."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError(
            "pictures need matplotlib; pip install 'tfformer[plot]' (text and .html pages do without)"
        ) from error
    figure = Figure(size, dpi=150, facecolor=PAPER, **settings)
    FigureCanvasAgg(figure)
    return figure


def open_axes(ax: Axes, **labels) -> Axes:
    """Axes with a light grid and without a frame."""
    ax.set(**labels)
    ax.grid(color=LINE_GREY, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    ax.tick_params(color=GREY, labelcolor=INK)
    return ax


def save(figure: Figure, path: Path) -> None:
    """Write the figure in the format that the suffix of `path` names."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], bbox_inches="tight", pad_inches=0.2)
