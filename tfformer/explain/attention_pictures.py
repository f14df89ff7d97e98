"""Pictures of attention maps: heat maps, the look of one word, a page to explore. Knows no model.

Layers and heads are counted from 1; head "mean" is the mean of a layer's heads. Files are written whole or not at all.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tfformer.explain.attention import Attention, AttentionMaps
from tfformer.explain.figures import BLUE, GREY, INK, LINE_GREY, PAPER, empty_figure, save
from tfformer.files import write_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Head = int | str | None  # a number from 1, "mean", or None for every head

KINDS = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
PICTURES = (".png", ".svg")
PAGE = ".html"
TEMPLATE = Path(__file__).with_name("attention.html")
FAMOUS_WORD = "it"  # of "The animal did not cross the street because it was too tired."
DATA_PLACE = "{data}"  # what stands in the template where the data go

MUTED = (
    "#332288",
    "#cc6677",
    "#117733",
    "#ddaa33",
    "#88ccee",
    "#882255",
    "#44aa99",
    "#aa4499",
    "#999933",
)  # after Tol
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
    """Draw from word to word what the suffix of `path` asks for.

    .html: a page to explore, which opens at this kind, word, layer and head. .png and .svg: what `word` looks at, or
    heat maps where no word is given.
    """
    path = _known_suffix(path, (*PICTURES, PAGE))
    if path.suffix == PAGE:
        draw_page(attention, path, kind, word, layer, head, languages)
    elif word is None:
        draw_heads(_word_maps(attention, kind), path, layer, head)
    else:
        draw_word(_word_maps(attention, kind), word, path, layer, head)


# --- Heat maps ------------------------------------------------------------------------------------------------------


def draw_heads(
    maps: AttentionMaps, path: str | Path, layer: int | None = None, head: Head = None
) -> None:
    """Heat maps, to .png or .svg: of one head or, by default, of every head, a layer a row."""
    path = _known_suffix(path, PICTURES)
    layers = [_layer(maps, layer)] if layer is not None else range(1, len(maps.weights) + 1)
    heads = range(1, maps.weights.shape[1] + 1) if head is None else [head]
    panels = {(layer, head): _head_weights(maps, layer, head) for layer in layers for head in heads}
    cell = min(0.5, max(16 / (len(heads) * len(maps.columns)), 0.05))  # inches
    width, height = (
        (len(maps.columns) + 1) * len(heads) - 1,
        (len(maps.rows) + 2) * len(layers) - 2,
    )  # cells
    figure = empty_figure((width * cell, height * cell))
    axes = figure.subplots(len(layers), len(heads), squeeze=False, sharex=True, sharey=True)
    figure.subplots_adjust(
        left=0, right=1, bottom=0, top=1, wspace=1 / len(maps.columns), hspace=2 / len(maps.rows)
    )
    for ax, ((layer, head), weights) in zip(axes.flat, panels.items(), strict=True):
        _heat_map(ax, weights, cell)
        ax.set_title(f"layer {layer}, {_head_name(head)}", fontsize=max(_font(cell), 7), color=INK)
    _label(axes, maps, cell)
    if len(panels) == 1:
        _write_percentages(axes[0, 0], weights, cell)
    title = {"fontsize": _font(cell) + 5, "fontweight": "bold", "color": INK}
    figure.suptitle(KINDS[maps.kind], y=1 + 1.3 / height, verticalalignment="bottom", **title)
    save(figure, path)


def _heat_map(ax: Axes, weights: np.ndarray, cell: float) -> None:
    """(R, C) as an image, white for 0 and dark for 1."""
    ax.imshow(weights, cmap="Blues", vmin=0, vmax=1)
    ax.set_xticks(np.arange(weights.shape[1]) - 0.5, minor=True)
    ax.set_yticks(np.arange(weights.shape[0]) - 0.5, minor=True)
    ax.grid(which="minor", color=LINE_GREY, linewidth=cell)
    ax.tick_params(which="both", length=0)
    for spine in ax.spines.values():
        spine.set_color(LINE_GREY)


def _label(axes: np.ndarray, maps: AttentionMaps, cell: float) -> None:
    """The words beside the first column and below the last row of panels."""
    text = {"fontsize": _font(cell), "color": INK, "parse_math": False}
    for ax in axes[:, 0]:
        ax.set_yticks(range(len(maps.rows)), maps.rows, **text)
    for ax in axes[-1]:
        ax.set_xticks(
            range(len(maps.columns)),
            maps.columns,
            rotation=60,
            ha="right",
            rotation_mode="anchor",
            **text,
        )


def _write_percentages(ax: Axes, weights: np.ndarray, cell: float) -> None:
    for (row, column), weight in np.ndenumerate(weights):
        if weight >= 0.05:
            colour = PAPER if weight > 0.6 else INK
            look = {"fontsize": _font(cell, 0.8), "color": colour}
            ax.text(column, row, f"{100 * weight:.0f}", ha="center", va="center", **look)


def _font(cell: float, factor: float = 1.0) -> float:
    """Points, for text that is read along with cells of `cell` inches."""
    return max(30 * cell, 3) * factor


# --- One word -------------------------------------------------------------------------------------------------------

LINE = 0.46  # inches from word to word
TEXT = 18  # points
CURVE_WIDTH, BAR_LENGTH = 2.2, 1.8  # inches
BAR_WORTH_A_NUMBER = 0.02


def draw_word(
    maps: AttentionMaps,
    word: str | int,
    path: str | Path,
    layer: int | None = None,
    head: Head = None,
) -> None:
    """What one word looks at, to .png or .svg: a curve to every word, as wide as the weight is large.

    `word` is a text, with or without its punctuation, or the number of a row. Without a layer it is the last one;
    without a head it is every head, each in a colour of its own.
    """
    path = _known_suffix(path, PICTURES)
    layer, row = _layer(maps, layer), _row(maps, word)
    heads = range(1, maps.weights.shape[1] + 1) if head is None else [head]
    weights = np.stack([_head_weights(maps, layer, head)[row] for head in heads])
    colours = _colours(len(heads))
    ax = _word_axes(max(len(maps.rows), len(maps.columns)))
    left = _write_words(ax, maps.rows, 0.0, "right", {row})
    right = _write_words(
        ax, maps.columns, CURVE_WIDTH, "left", {int(weights.mean(axis=0).argmax())}
    )
    _draw_curves(ax, weights, row, colours)
    _draw_bars(ax, weights, right + 0.25, colours)
    where = f"{KINDS[maps.kind]}, layer {layer} of {len(maps.weights)},"
    _write_title(
        ax, f"What “{maps.rows[row].strip(PUNCTUATION)}” looks at", where, left, heads, colours
    )
    ax.set_xlim(left - 0.2, right + 0.25 + BAR_LENGTH + 0.8)
    ax.figure.set_size_inches(np.ptp(ax.get_xlim()), np.ptp(ax.get_ylim()))
    save(ax.figure, path)


def _word_axes(lines: int) -> Axes:
    """Axes that fill a figure, with inches for units and the first line of words at y = 0."""
    ax = empty_figure((8, 8)).add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set_ylim((lines - 1) * LINE + 0.45, -1.6)
    return ax


def _write_words(ax: Axes, words: Sequence[str], x: float, align: str, bold: set[int]) -> float:
    """One word a line; returns the x at which the longest one ends, on the side away from the curves."""
    ends = [x]
    for line, word in enumerate(words):
        style = {"color": INK, "fontweight": "bold"} if line in bold else {"color": GREY}
        text = ax.text(
            x, line * LINE, word, ha=align, va="center", fontsize=TEXT, parse_math=False, **style
        )
        width = text.get_window_extent().width / ax.figure.dpi
        ends.append(x - width if align == "right" else x + width)
    return min(ends) if align == "right" else max(ends)


def _draw_curves(ax: Axes, weights: np.ndarray, row: int, colours: Sequence[str]) -> None:
    """From the word to every word, for each head: (heads, C)."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Curve

    start, end, middle = 0.15, CURVE_WIDTH - 0.15, CURVE_WIDTH / 2
    spread = np.linspace(-0.5, 0.5, len(weights)) * 0.15 if len(weights) > 1 else [0.0]
    for colour, shift, head in zip(colours, spread, weights, strict=True):
        for column, weight in enumerate(head):
            y, target = row * LINE + shift, column * LINE + shift
            curve = Curve([(start, y), (middle, y), (middle, target), (end, target)], [1, 4, 4, 4])
            look = {
                "linewidth": 0.5 + 13 * weight,
                "alpha": min(1.0, 0.25 + weight),
                "capstyle": "round",
            }
            ax.add_patch(PathPatch(curve, fill=False, edgecolor=colour, **look))


def _draw_bars(ax: Axes, weights: np.ndarray, x: float, colours: Sequence[str]) -> None:
    """Beside each word the mean of its weights (heads, C), each head's part in its colour, and the percentage."""
    parts = weights / len(weights) * BAR_LENGTH
    lines = np.arange(weights.shape[1]) * LINE
    for part, before, colour in zip(parts, np.cumsum(parts, axis=0) - parts, colours, strict=True):
        ax.barh(lines, part, height=0.24, left=x + before, color=colour)
    for line, share in zip(lines, weights.mean(axis=0), strict=True):
        if share >= BAR_WORTH_A_NUMBER:
            end = x + share * BAR_LENGTH + 0.1
            ax.text(end, line, f"{share:.0%}", va="center", fontsize=TEXT - 4, color=INK)


def _write_title(
    ax: Axes, title: str, where: str, x: float, heads: Sequence[Head], colours: Sequence[str]
) -> None:
    """Two lines over the words: what is seen, and in which layer and heads, the heads in their colours."""
    ax.text(
        x,
        -1.2,
        title,
        va="center",
        fontsize=TEXT + 4,
        fontweight="bold",
        color=INK,
        parse_math=False,
    )
    names = [_head_name(heads[0])] if len(heads) == 1 else map(str, heads)
    looks = [{"color": colour, "fontweight": "bold"} for colour in colours]
    start = (where if len(heads) == 1 else f"{where} heads", {"color": GREY})
    for name, look in (start, *zip(names, looks, strict=True)):
        text = ax.text(x, -0.75, name, va="center", fontsize=TEXT - 4, **look)
        x += text.get_window_extent().width / ax.figure.dpi + 0.1


def _colours(heads: int) -> list[str]:
    from matplotlib import colormaps, colors

    if heads == 1:
        return [BLUE]
    if heads <= len(MUTED):
        return list(MUTED[:heads])
    return [colors.to_hex(colour) for colour in colormaps["viridis"](np.linspace(0, 0.95, heads))]


# --- The page -------------------------------------------------------------------------------------------------------


def draw_page(
    attention: Attention,
    path: str | Path,
    kind: str = "encoder",
    word: str | None = None,
    layer: int | None = None,
    head: Head = None,
    languages: Sequence[str] | None = None,
) -> None:
    """One self-contained .html file to explore: every kind, layer and head, by words and by pieces.

    Without a word it opens at the famous one, "it", if the sentence has it. Languages are codes, such as en and de, of
    source and translation.
    """
    path = _known_suffix(path, (PAGE,))
    maps = _word_maps(attention, kind)
    layer, head = _layer(maps, layer), "mean" if head is None else head
    _head_weights(maps, layer, head)
    start = {
        "kind": kind,
        "layer": layer,
        "head": head,
        "row": _first_row(maps) if word is None else _row(maps, word),
    }
    data = {
        "start": start,
        "languages": list(languages or []),
        "kinds": {kind: _page_data(getattr(attention, kind)) for kind in KINDS},
    }
    text = json.dumps(data, ensure_ascii=False).replace(
        "<", "\\u003c"
    )  # no text can end the page's script element
    write_text(path, TEMPLATE.read_text(encoding="utf-8").replace(DATA_PLACE, text, 1))


def _page_data(maps: AttentionMaps) -> dict:
    """A kind's maps for the page; weights are bytes, 255 for 1, in the order (layers, heads, rows, columns)."""
    views = {"words": maps.words(), "pieces": maps}
    return {
        "title": KINDS[maps.kind],
        "layers": maps.weights.shape[0],
        "heads": maps.weights.shape[1],
        **{
            name: {
                "rows": view.rows,
                "columns": view.columns,
                "weights": base64.b64encode(
                    np.round(255 * view.weights).astype(np.uint8).tobytes()
                ).decode("ascii"),
            }
            for name, view in views.items()
        },
    }


# --- What the caller may choose -------------------------------------------------------------------------------------


def _known_suffix(path: str | Path, known: tuple[str, ...]) -> Path:
    path = Path(path)
    if path.suffix not in known:
        raise ValueError(
            f"{path} does not end in a format that is drawn here; choose {' or '.join(known)}"
        )
    return path


def _word_maps(attention: Attention, kind: str) -> AttentionMaps:
    if kind not in KINDS:
        raise ValueError(f"kind={kind!r} does not exist; choose one of {', '.join(KINDS)}")
    return getattr(attention, kind).words()


def _layer(maps: AttentionMaps, layer: int | None) -> int:
    """The layer's number; the last one for None."""
    layers = len(maps.weights)
    if layer is not None and layer not in range(1, layers + 1):
        raise ValueError(
            f"layer={layer!r} does not exist; {KINDS[maps.kind].lower()} has the layers 1 to {layers}"
        )
    return layer or layers


def _head_weights(maps: AttentionMaps, layer: int, head: Head) -> np.ndarray:
    """The map (R, C) of one head, or the mean of the layer's."""
    heads = maps.weights.shape[1]
    if head == "mean":
        return maps.weights[layer - 1].mean(axis=0)
    if head not in range(1, heads + 1):
        known = f"1 to {heads} and 'mean'"
        raise ValueError(
            f"head={head!r} does not exist; {KINDS[maps.kind].lower()} has the heads {known}"
        )
    return maps.weights[layer - 1, head - 1]


def _head_name(head: Head) -> str:
    return "mean of heads" if head == "mean" else f"head {head}"


def _first_row(maps: AttentionMaps) -> int:
    """The row of the famous word, or the first."""
    words = [row.strip(PUNCTUATION).casefold() for row in maps.rows]
    return words.index(FAMOUS_WORD) if FAMOUS_WORD in words else 0


def _row(maps: AttentionMaps, word: str | int) -> int:
    """The row of a word: the first of this spelling, else of this spelling without punctuation and capitals."""
    if isinstance(word, int) and word in range(len(maps.rows)):
        return word
    for words in (maps.rows, [row.strip(PUNCTUATION).casefold() for row in maps.rows]):
        for wanted in (word, str(word).casefold()):
            if wanted in words:
                return words.index(wanted)
    raise ValueError(f"word={word!r} is not in the sentence; choose one of {' '.join(maps.rows)}")
