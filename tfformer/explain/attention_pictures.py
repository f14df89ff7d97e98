"""Pictures of attention maps: heat maps, the look of one word, a page to explore.

Layers and heads are counted from 1; head "mean" is the mean of a layer's heads. Files are written
whole or not at all.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tfformer.explain.attention import Attention, AttentionMaps
from tfformer.explain.figures import (
    BLUE,
    GREY,
    INK,
    PAPER,
    Style,
    draw_grid,
    empty_figure,
    save,
)
from tfformer.html_page import fill_page
from tfformer.storage.whole_files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Head = int | str | None  # a number from 1, "mean", or None for every head

KINDS = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
NOTE = "Attention shows where a head looks. It is no reason for what the model writes."
PAGE = ".html"
SUFFIXES = (".png", ".svg", PAGE)
TEMPLATE = Path(__file__).with_name("attention.html")
FAMOUS_WORD = "it"  # of "The animal did not cross the street because it was too tired."

MUTED = (  # after Tol
    *("#332288", "#cc6677", "#117733", "#ddaa33", "#88ccee"),
    *("#882255", "#44aa99", "#aa4499", "#999933"),
)
PUNCTUATION = ".,;:!?\"'()[]«»„“”‚‘’¿¡…"


def draw(
    attention: Attention,
    path: str | Path,
    kind: str = "encoder",
    word: str | None = None,
    layer: int | None = None,
    head: Head = None,
    languages: Sequence[str] | None = None,
) -> None:
    """Draw attention from word to word, in the format of `path`'s suffix.

    Args:
        attention: The maps of one sentence, from `tfformer.attention`.
        path: A .html file is an interactive page that opens at this kind, word, layer and head; a
            .png or .svg file shows the attention of `word`, or heat maps without a word.
        kind: "encoder", "decoder" or "cross".
        word: A word of the sentence that attends, with or without its punctuation.
        layer: A number from 1; by default all layers in heat maps, the last one for a word.
        head: A number from 1, or "mean"; every head by default.
        languages: Codes of the source's and the translation's language, for the page's title.

    Raises:
        ValueError: An argument does not exist in these maps; the message lists the choices.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(
            f"{path} does not end in a format that is drawn here; choose {' or '.join(SUFFIXES)}"
        )
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} does not exist; choose one of {', '.join(KINDS)}")
    maps: AttentionMaps = getattr(attention, kind).words()
    _check_layer_and_head(maps, layer, head)
    row = None if word is None else _row(maps, word)
    if path.suffix == PAGE:
        start = {
            "kind": kind,
            "layer": layer or len(maps.weights),
            "head": head or "mean",
            "row": _first_row(maps) if row is None else row,
        }
        _write_page(attention, path, start, languages)
    elif row is None:
        _draw_heads(maps, path, layer, head)
    else:
        _draw_word(maps, row, path, layer or len(maps.weights), head)


# --- Heat maps ----------------------------------------------------------------------------------


def _draw_heads(maps: AttentionMaps, path: Path, layer: int | None, head: Head) -> None:
    """Draw heat maps, a row per layer and a column per head; None draws all."""
    _, all_heads, rows, columns = maps.weights.shape
    layers = range(1, len(maps.weights) + 1) if layer is None else [layer]
    heads = _heads(all_heads, head)
    cell = min(0.5, max(16 / (len(heads) * columns), 0.05))  # inches
    width = (columns + 1) * len(heads) - 1  # cells
    height = (rows + 2) * len(layers) - 2  # cells
    figure = empty_figure((width * cell, height * cell))
    axes = figure.subplots(len(layers), len(heads), squeeze=False, sharex=True, sharey=True)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1, wspace=1 / columns, hspace=2 / rows)
    for row, number in zip(axes, layers, strict=True):
        for ax, one in zip(row, heads, strict=True):
            ax.imshow(_head_weights(maps, number, one), cmap="Blues", vmin=0, vmax=1)
            draw_grid(ax, (rows, columns), cell)
            title = f"layer {number}, {_head_name(one)}"
            ax.set_title(title, fontsize=max(_font(cell), 7), color=INK)
    _label(axes, maps, cell)
    if axes.size == 1:
        _write_percentages(axes[0, 0], _head_weights(maps, layers[0], heads[0]), cell)
    style: Style = {"fontsize": _font(cell) + 5, "fontweight": "bold", "color": INK}
    top = 1 + 1.8 / height
    figure.suptitle(KINDS[maps.kind], y=top, verticalalignment="bottom", **style)
    note: Style = {"fontsize": max(_font(cell, 0.7), 7), "color": GREY, "ha": "center"}
    figure.text(0.5, 1 + 1.2 / height, NOTE, verticalalignment="bottom", **note)
    save(figure, path)


def _label(axes: np.ndarray, maps: AttentionMaps, cell: float) -> None:
    """Write the words and their roles beside the first column and below the last row."""
    text: Style = {"fontsize": _font(cell), "color": INK, "parse_math": False}
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(maps.rows)), maps.rows, **text)
        ax.set_ylabel("looks", fontsize=_font(cell), color=GREY)
    for ax in axes[-1]:
        slanted: Style = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(len(maps.columns)), maps.columns, **slanted, **text)
        ax.set_xlabel("looked at", fontsize=_font(cell), color=GREY)


def _write_percentages(ax: Axes, weights: np.ndarray, cell: float) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.05:
            colour = PAPER if weight > 0.6 else INK
            style: Style = {"fontsize": _font(cell, 0.8), "color": colour}
            ax.text(column, row, f"{100 * weight:.0f}", ha="center", va="center", **style)


def _font(cell: float, factor: float = 1.0) -> float:
    """The size in points of text beside cells of `cell` inches."""
    return max(30 * cell, 3) * factor


# --- One word -----------------------------------------------------------------------------------

LINE = 0.46  # inches from word to word
TEXT = 18  # points
CURVE_WIDTH, BAR_LENGTH = 2.2, 1.8  # inches
BAR_WORTH_A_NUMBER = 0.02


def _draw_word(maps: AttentionMaps, row: int, path: Path, layer: int, head: Head) -> None:
    """Draw the weights of one word: a curve to every word, as wide as the weight is large.

    Without a head every head is drawn, each in another colour.
    """
    heads = _heads(maps.weights.shape[1], head)
    weights = np.stack([_head_weights(maps, layer, one)[row] for one in heads])  # (heads, C)
    colours = _colours(len(heads))
    figure = empty_figure((8, 8))
    ax = figure.add_axes((0, 0, 1, 1))  # in inches; the first line of words is at y = 0
    ax.set_axis_off()
    lines = max(len(maps.rows), len(maps.columns))
    ax.set_ylim((lines - 1) * LINE + 0.9, -1.6)
    most = int(weights.mean(axis=0).argmax())
    left = _write_words(ax, maps.rows, 0.0, "right", {row})
    right = _write_words(ax, maps.columns, CURVE_WIDTH, "left", {most})
    _draw_curves(ax, weights, row, colours)
    _draw_bars(ax, weights, right + 0.25, colours)
    title = f"What “{maps.rows[row].strip(PUNCTUATION)}” looks at"
    where = f"{KINDS[maps.kind]}, layer {layer} of {len(maps.weights)},"
    title_end = _write_title(ax, title, where, left, heads, colours)
    bottom = max(len(maps.rows), len(maps.columns)) * LINE + 0.1
    note = ax.text(left, bottom, NOTE, va="center", fontsize=TEXT - 8, color=GREY)
    longest_bar = weights.mean(axis=0).max() * BAR_LENGTH
    bars_end = right + 0.25 + longest_bar + 0.8
    ax.set_xlim(left - 0.2, max(bars_end, title_end + 0.2, left + _width(note) + 0.2))
    figure.set_size_inches(np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()))
    save(figure, path)


def _write_words(ax: Axes, words: Sequence[str], x: float, align: str, bold: set[int]) -> float:
    """Write one word a line; return the end of the longest one, away from the curves."""
    ends = [x]
    for line, word in enumerate(words):
        style: Style = {"color": INK, "fontweight": "bold"} if line in bold else {"color": GREY}
        style |= {"ha": align, "va": "center", "fontsize": TEXT, "parse_math": False}
        width = _width(ax.text(x, line * LINE, word, **style))
        ends.append(x - width if align == "right" else x + width)
    return min(ends) if align == "right" else max(ends)


def _width(text: Text) -> float:
    """The width of a text in inches."""
    figure = text.get_figure(root=True)
    assert figure is not None
    return text.get_window_extent().width / figure.dpi


def _draw_curves(ax: Axes, weights: np.ndarray, row: int, colours: Sequence[str]) -> None:
    """Draw the weights (heads, C) as curves from the word to every word."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    start = 0.15
    middle = CURVE_WIDTH / 2
    end = CURVE_WIDTH - 0.15
    spread = np.linspace(-0.5, 0.5, len(weights)) * 0.15 if len(weights) > 1 else [0.0]
    for colour, shift, head in zip(colours, spread, weights, strict=True):
        for column, weight in enumerate(head):
            y = row * LINE + shift
            target = column * LINE + shift
            points = [(start, y), (middle, y), (middle, target), (end, target)]
            curve = Curve(points, [Curve.MOVETO, *[Curve.CURVE4] * 3])
            style: Style = {"linewidth": 0.5 + 13 * weight, "alpha": min(1.0, 0.25 + weight)}
            patch = PathPatch(curve, fill=False, edgecolor=colour, capstyle="round", **style)
            ax.add_patch(patch)


def _draw_bars(ax: Axes, weights: np.ndarray, x: float, colours: Sequence[str]) -> None:
    """Draw beside each word the mean of its weights (heads, C), a part for each head."""
    parts = weights / len(weights) * BAR_LENGTH
    lines = np.arange(weights.shape[1]) * LINE
    starts = np.cumsum(parts, axis=0) - parts
    for part, before, colour in zip(parts, starts, colours, strict=True):
        ax.barh(lines, part, height=0.24, left=x + before, color=colour)
    for line, share in zip(lines, weights.mean(axis=0), strict=True):
        if share >= BAR_WORTH_A_NUMBER:
            end = x + share * BAR_LENGTH + 0.1
            ax.text(end, line, f"{share:.0%}", va="center", fontsize=TEXT - 4, color=INK)


def _write_title(
    ax: Axes, title: str, where: str, x: float, heads: Sequence[int | str], colours: Sequence[str]
) -> float:
    """Write the title in two lines above the words, and the heads in their colours.

    Return the end of the longer line, in inches.
    """
    first = ax.text(x, -1.2, title, va="center", fontsize=TEXT + 4, color=INK, parse_math=False)
    first.set_fontweight("bold")
    ends = [x + _width(first)]
    names = [_head_name(heads[0])] if len(heads) == 1 else list(map(str, heads))
    where = where if len(heads) == 1 else f"{where} heads"
    styles: list[Style] = [{"color": colour, "fontweight": "bold"} for colour in colours]
    for name, style in zip([where, *names], [{"color": GREY}, *styles], strict=True):
        x += _width(ax.text(x, -0.75, name, va="center", fontsize=TEXT - 4, **style))
        ends.append(x)
        x += 0.1
    return max(ends)


def _colours(heads: int) -> list[str]:
    from matplotlib import colormaps, colors

    if heads == 1:
        return [BLUE]
    if heads <= len(MUTED):
        return list(MUTED[:heads])
    return [colors.to_hex(colour) for colour in colormaps["viridis"](np.linspace(0, 0.95, heads))]


# --- The page -----------------------------------------------------------------------------------


def _write_page(
    attention: Attention, path: Path, start: dict[str, Any], languages: Sequence[str] | None
) -> None:
    """Write a page to explore every kind, layer and head, by words and pieces."""
    data = {
        "start": start,
        "languages": list(languages or []),
        "kinds": {kind: _page_data(getattr(attention, kind)) for kind in KINDS},
    }
    write_text(path, fill_page(TEMPLATE, data))


def _page_data(maps: AttentionMaps) -> dict[str, Any]:
    """A kind's maps for the page, by words and by pieces."""
    layers, heads, *_ = maps.weights.shape
    return {
        "title": KINDS[maps.kind],
        "layers": layers,
        "heads": heads,
        "words": _view(maps.words()),
        "pieces": _view(maps),
    }


def _view(maps: AttentionMaps) -> dict[str, Any]:
    """Return names and weights of the maps.

    A weight is a byte, 255 for 1, in the order (layers, heads, rows, columns).
    """
    content = np.round(255 * maps.weights).astype(np.uint8).tobytes()
    weights = base64.b64encode(content).decode("ascii")
    return {"rows": maps.rows, "columns": maps.columns, "weights": weights}


# --- The caller's choices --------------------------------------------------------------------


def _check_layer_and_head(maps: AttentionMaps, layer: int | None, head: Head) -> None:
    layers, heads, *_ = maps.weights.shape
    name = KINDS[maps.kind].lower()
    if layer is not None and layer not in range(1, layers + 1):
        raise ValueError(f"layer={layer!r} does not exist; {name} has the layers 1 to {layers}")
    if head not in (None, "mean", *range(1, heads + 1)):
        raise ValueError(
            f"head={head!r} does not exist; {name} has the heads 1 to {heads} and 'mean'"
        )


def _heads(count: int, head: Head) -> list[int | str]:
    """The heads to draw: the given one, or all for None."""
    return list(range(1, count + 1)) if head is None else [head]


def _head_weights(maps: AttentionMaps, layer: int, head: int | str) -> np.ndarray:
    """The map (R, C) of one head, or the mean of the layer's."""
    weights = maps.weights[layer - 1]  # (H, R, C)
    return weights[head - 1] if isinstance(head, int) else weights.mean(axis=0)


def _head_name(head: int | str) -> str:
    return "mean of heads" if head == "mean" else f"head {head}"


def _first_row(maps: AttentionMaps) -> int:
    """The row of the famous word, or the first."""
    words = [row.strip(PUNCTUATION).casefold() for row in maps.rows]
    return words.index(FAMOUS_WORD) if FAMOUS_WORD in words else 0


def _row(maps: AttentionMaps, word: str) -> int:
    """Return the first row with this word, or with it apart from punctuation and case."""
    plain = tuple(row.strip(PUNCTUATION).casefold() for row in maps.rows)
    for words in (maps.rows, plain):
        for wanted in (word, word.casefold()):
            if wanted in words:
                return words.index(wanted)
    raise ValueError(f"word={word!r} is not in the sentence; choose one of {' '.join(maps.rows)}")
