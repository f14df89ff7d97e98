"""Pictures of attention and of influences, and a page to explore attention.

Files are written whole or not at all.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfformer.explain.attention_maps import Attention, AttentionMaps
from tfformer.explain.influence import Influences
from tfformer.html_page import fill_page
from tfformer.storage.whole_files import whole_file, write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Style = dict[str, Any]  # arguments of matplotlib's functions

KINDS = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
NOTE = "Attention shows where a head looks. It does not explain why the model chose a word."
PAGE = ".html"

TEMPLATE = Path(__file__).with_name("attention.html")
FAMOUS_WORD = "it"  # in "The animal did not cross the street because it was too tired."
PUNCTUATION = ".,;:!?\"'()[]«»„“”‚‘’¿¡…"

INK = "#1b1f24"
GREY = "#6e7781"
LINE_GREY = "#d8dee4"
PAPER = "#ffffff"
BLUE = "#0072b2"


def draw_attention(
    attention: Attention,
    path: str | Path,
    kind: str = "encoder",
    word: str | None = None,
    languages: Sequence[str] | None = None,
) -> None:
    """Draw attention from word to word, in the format of `path`'s suffix.

    Args:
        attention: The maps of one sentence, from `tfformer.attention`.
        path: A .html file is an interactive page that opens at this kind and word; a .png or .svg
            file has a heat map for each layer and head.
        kind: "encoder", "decoder" or "cross".
        word: A word of the attending sentence, with or without its punctuation; heat maps then show
            only its row.
        languages: Codes of the source's and the translation's language, for the page's title.

    Raises:
        ValueError: The word does not occur in these maps; the message lists the words.
    """
    path = Path(path)
    maps: AttentionMaps = getattr(attention, kind).words()
    row = None if word is None else _row(maps, word)
    if path.suffix == PAGE:
        if row is None:
            words = [word.strip(PUNCTUATION).casefold() for word in maps.rows]
            row = words.index(FAMOUS_WORD) if FAMOUS_WORD in words else 0
        _write_page(attention, path, kind, row, languages)
        return
    if row is not None:
        weights = maps.weights[:, :, row : row + 1]
        maps = maps._replace(rows=maps.rows[row : row + 1], weights=weights)
    _draw_heat_maps(maps, path)


# --- Heat maps ----------------------------------------------------------------------------------


def _draw_heat_maps(maps: AttentionMaps, path: Path) -> None:
    layers, heads, rows, columns = maps.weights.shape
    cell = min(0.5, max(16 / (heads * columns), 0.05))  # inches
    width = (columns + 1) * heads - 1  # cells
    height = (rows + 2) * layers - 2  # cells
    figure = _empty_figure((width * cell, height * cell))
    axes = figure.subplots(layers, heads, squeeze=False, sharex=True, sharey=True)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=1 / columns, hspace=2 / rows)
    font = max(30 * cell, 3)  # points, for text beside the cells
    for (layer, head), ax in np.ndenumerate(axes):
        ax.imshow(maps.weights[layer, head], cmap="Blues", vmin=0, vmax=1)
        _draw_grid(ax, (rows, columns), cell)
        ax.set_title(f"layer {layer + 1}, head {head + 1}", fontsize=max(font, 7), color=INK)
    _label(axes, maps, font)
    style: Style = {"fontsize": font + 5, "fontweight": "bold", "color": INK}
    top = 1 + 1.8 / height
    figure.suptitle(KINDS[maps.kind], y=top, verticalalignment="bottom", **style)
    note: Style = {"fontsize": max(0.7 * font, 7), "color": GREY, "ha": "center"}
    figure.text(0.5, 1 + 1.2 / height, NOTE, verticalalignment="bottom", **note)
    _save(figure, path)


def _draw_grid(ax: Axes, shape: tuple[int, int], width: float) -> None:
    """Draw thin lines, but no ticks, between the cells (rows, columns) of a heat map."""
    rows, columns = shape
    ax.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=LINE_GREY, linewidth=width)
    ax.tick_params(which="both", length=0)
    for spine in ax.spines.values():
        spine.set_color(LINE_GREY)


def _label(axes: np.ndarray, maps: AttentionMaps, font: float) -> None:
    """Write the words and their roles beside the first column and below the last row."""
    text: Style = {"fontsize": font, "color": INK, "parse_math": False}
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(maps.rows)), maps.rows, **text)
        ax.set_ylabel("looks", fontsize=font, color=GREY)
    for ax in axes[-1]:
        slanted: Style = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(maps.columns)), maps.columns, **slanted, **text)
        ax.set_xlabel("attended to", fontsize=font, color=GREY)


# --- The page -----------------------------------------------------------------------------------


def _write_page(
    attention: Attention, path: Path, kind: str, row: int, languages: Sequence[str] | None
) -> None:
    """Write a page to explore every kind, layer and head, by words and pieces."""
    kinds = {}
    for maps in attention:
        layers, heads, *_ = maps.weights.shape
        kinds[maps.kind] = {
            "title": KINDS[maps.kind],
            "layers": layers,
            "heads": heads,
            "words": _view(maps.words()),
            "pieces": _view(maps),
        }
    start = {"kind": kind, "layer": len(attention.encoder.weights), "head": "mean", "row": row}
    data = {"start": start, "languages": list(languages or []), "kinds": kinds}
    write_text(path, fill_page(TEMPLATE, data))


def _view(maps: AttentionMaps) -> dict[str, Any]:
    """Return names and weights of the maps.

    A weight is a byte, 255 for 1, in the order (layers, heads, rows, columns).
    """
    content = np.round(255 * maps.weights).astype(np.uint8).tobytes()
    weights = base64.b64encode(content).decode("ascii")
    return {"rows": maps.rows, "columns": maps.columns, "weights": weights}


def _row(maps: AttentionMaps, word: str) -> int:
    """Return the first row with this word; if there is none, ignore punctuation and case."""
    plain = tuple(row.strip(PUNCTUATION).casefold() for row in maps.rows)
    for words in (maps.rows, plain):
        for wanted in (word, word.casefold()):
            if wanted in words:
                return words.index(wanted)
    raise ValueError(f"word={word!r} is not in the sentence; choose one of {' '.join(maps.rows)}")


# --- Influences ---------------------------------------------------------------------------------

LINE = 0.42  # inches from word to word
COLUMN = 4.2  # inches for the words of a language and their bars
WORDS_END = 1.65  # inches from the left of a column, where the words end and the bars begin
LONGEST_BAR = 1.7  # inches
TEXT = 16  # points
WORTH_A_NUMBER = 0.05  # share of the largest influence


def draw_influences(measured: Influences, path: str | Path) -> None:
    """Draw the words of both languages with a bar for each word's influence."""
    columns = {
        "Sentence": (measured.source_words, measured.source),
        "Translation before this word": (measured.target_words, measured.target),
    }
    lines = max(len(words) for words, _ in columns.values())
    height = (lines + 4) * LINE
    figure = _empty_figure((2 * COLUMN + 0.4, height))
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, 2 * COLUMN + 0.4), ylim=(height - 2.9 * LINE, -2.9 * LINE))
    decided = measured.decided.strip(".,!?")
    title = f"How much each word contributes to “{decided}”"
    ax.text(0.3, -2.1 * LINE, title, fontsize=TEXT + 6, fontweight="bold", color=INK, va="center")
    unit = "Drop in its log-odds, in nats, when the word is hidden from the model"
    ax.text(0.3, -1.25 * LINE, unit, fontsize=TEXT - 3, color=GREY, va="center")
    largest = max([0.0, *measured.source.tolist(), *measured.target.tolist()]) or 1.0
    for number, (heading, (words, values)) in enumerate(columns.items()):
        left = number * COLUMN
        ax.text(left + 0.3, -0.1 * LINE, heading, fontsize=TEXT - 4, color=GREY, va="center")
        ax.plot([left + 0.3, left + COLUMN - 0.2], [0.35 * LINE] * 2, color=LINE_GREY)
        for line, (word, value) in enumerate(zip(words, values, strict=True), start=1):
            _draw_influence(ax, word, float(value) / largest, float(value), left, line * LINE)
    _save(figure, Path(path))


def _draw_influence(ax: Axes, word: str, share: float, value: float, left: float, y: float) -> None:
    """Draw a word and its bar, whose length is `share` of the longest bar."""
    is_large = share >= WORTH_A_NUMBER
    weight = "bold" if share > 0.5 else "normal"
    style: Style = {"fontsize": TEXT, "va": "center", "fontweight": weight, "parse_math": False}
    bars = left + WORDS_END
    ax.text(bars, y, word, ha="right", color=INK if is_large else GREY, **style)
    ax.barh(y, max(share, 0) * LONGEST_BAR, height=0.5 * LINE, left=bars + 0.15, color=BLUE)
    if is_large:
        end = bars + 0.25 + share * LONGEST_BAR
        ax.text(end, y, f"{value:.1f}", fontsize=TEXT - 4, va="center", color=INK)


# --- Figures ------------------------------------------------------------------------------------


def _empty_figure(size: tuple[float, float]) -> Figure:
    """Return an empty white figure of a size in inches.

    Without Matplotlib, a ValueError states the command that installs it.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ValueError(
            "pictures need matplotlib; pip install -e '.[plot]' (text and .html pages do not need "
            "it)"
        ) from error
    figure = Figure(size, dpi=150, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def _save(figure: Figure, path: Path) -> None:
    """Write the figure, whole or not at all, in the format of `path`'s suffix."""
    with whole_file(path) as temporary:
        figure.savefig(temporary, format=path.suffix[1:], bbox_inches="tight", pad_inches=0.2)
