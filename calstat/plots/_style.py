"""Colours, sizes and small helpers that every picture shares.

The colours are taken from the palette of Okabe and Ito, which people with any of the common colour deficiencies
can tell apart; where two series share an axis they differ in marker and line as well, so that a grey copy
can be read. Text keeps the colour of the user's own settings; nothing here changes ``rcParams``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any, TypeAlias

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot as plt
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.font_manager import font_scalings
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from calstat._typing import ArrayLike, FloatArray

Axes: TypeAlias = Any
"""A ``matplotlib.axes.Axes``; matplotlib's annotations are too loose to be of use under strict typing."""
Figure: TypeAlias = Any
"""A ``matplotlib.figure.Figure``."""

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREY = "#6E7781"
BAND = "#9AA4B2"
SERIES = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#4D4D4D")
MARKERS = ("o", "s", "^", "D", "v", "P")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))

SEQUENTIAL = LinearSegmentedColormap.from_list("calstat_sequential", ["#FFFFFF", "#9CC4DE", BLUE, "#00304F"])
# Below zero ends in a dark blue and above zero in a middling orange: the two ends stay apart in grey.
DIVERGING = LinearSegmentedColormap.from_list(
    "calstat_diverging", ["#00304F", "#5B9CC4", "#FFFFFF", "#F4B183", "#D0660F"]
)

_FULL_WIDTH = 3.2
_SMALLEST = 0.68


def new_axes(ax: Axes | None, size: tuple[float, float]) -> tuple[Figure, Axes]:
    """Give the figure and the axes to draw on: the caller's, or new ones of `size` inches."""
    if ax is None:
        figure, ax = plt.subplots(figsize=size, layout="compressed")
        return figure, ax
    # The canvas knows the whole figure, also when the axes sit in a subfigure.
    return ax.figure.canvas.figure, ax


def new_panels(count: int, ncols: int, panel: tuple[float, float], margin: float = 0.0) -> tuple[Figure, list[Axes]]:
    """Make a figure with `count` axes in rows of `ncols`, each of `panel` inches, and `margin` inches for its texts."""
    nrows = -(-count // ncols)
    size = (panel[0] * ncols, panel[1] * nrows + margin)
    figure, grid = plt.subplots(nrows, ncols, figsize=size, layout="compressed", squeeze=False)
    flat = list(grid.ravel())
    for unused in flat[count:]:
        unused.remove()
    return figure, flat[:count]


def scale_of(ax: Axes) -> float:
    """How much smaller than on a full-size axes text, markers and lines are to be drawn."""
    width = ax.get_window_extent().width / ax.figure.dpi
    return float(np.clip(width / _FULL_WIDTH, _SMALLEST, 1.0))


def font_size(ax: Axes, relative: str = "medium") -> float:
    """Font size in points that suits the width of the axes."""
    return float(mpl.rcParams["font.size"] * 0.92 * font_scalings[relative] * scale_of(ax))


def tidy(ax: Axes) -> None:
    """Take off the frame's upper and right side and size the tick labels."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=font_size(ax, "small"), length=3 * scale_of(ax))


def label_axes(ax: Axes, *, x: str | None, y: str | None, title: str | None) -> None:
    """Write axis labels and a left-aligned title in sizes that suit the axes."""
    if x is not None:
        ax.set_xlabel(x, fontsize=font_size(ax))
    if y is not None:
        ax.set_ylabel(y, fontsize=font_size(ax))
    if title is not None:
        ax.set_title(_wrapped(ax, title), fontsize=font_size(ax), loc="left")


def _wrapped(ax: Axes, text: str) -> str:
    """Break the lines of a title that are wider than its axes."""
    letters = 72.0 * ax.get_window_extent().width / ax.figure.dpi / (0.56 * font_size(ax))
    return "\n".join(textwrap.fill(line, max(int(letters), 12)) for line in text.splitlines())


def unit_square(ax: Axes, limits: tuple[float, float] = (0.0, 1.0)) -> None:
    """Make a square axes over `limits` in both directions, with the line of perfect calibration."""
    low, high = limits
    pad = 0.015 * (high - low)
    ax.set(xlim=(low - pad, high + pad), ylim=(low - pad, high + pad), aspect="equal")
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(nbins=5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.10g}"))
    ax.plot([low, high], [low, high], color=GREY, lw=scale_of(ax), ls=(0, (4, 3)), zorder=1.5)


def legend(ax: Axes, **options: Any) -> None:
    """Draw a small legend if anything carries a label; none on axes too small to hold it."""
    handles, _ = ax.get_legend_handles_labels()
    if handles and scale_of(ax) > _SMALLEST:
        options = {"loc": "best", "frameon": True, "framealpha": 0.85, "edgecolor": "none"} | options
        ax.legend(fontsize=font_size(ax, "small"), **options)


def legend_below(ax: Axes, lowest: Axes) -> None:
    """Draw the legend under the label of the x axis, where it hides nothing, on a figure that has room for it.

    `lowest` is the axes that carries the label: a strip, or `ax` itself.
    """
    _, labels = ax.get_legend_handles_labels()
    if not labels:
        return
    # A letter takes about 0.55 of the font size, the handle and the gaps of a column about four letters.
    columns = 2.0 * (max(map(len, labels)) + 4) * 0.55 * font_size(ax, "small")
    width = 72.0 * ax.get_window_extent().width / ax.figure.dpi
    # Tick labels and axis label, with the gaps that matplotlib leaves between them.
    depth = 1.3 * font_size(ax, "small") + 6.0 + (1.3 * font_size(ax) + 5.0 if lowest.get_xlabel() else 0.0)
    shift = ScaledTranslation(0.0, -depth / 72.0, ax.figure.dpi_scale_trans)
    ax.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        bbox_transform=lowest.transAxes + shift,
        ncols=2 if columns < width else 1,
        frameon=False,
        columnspacing=1.2,
        handlelength=1.6,
        fontsize=font_size(ax, "small"),
    )


def strip_below(ax: Axes, edges: ArrayLike, counts: ArrayLike, xlabel: str | None) -> Axes:
    """Hang a strip with the histogram of the predictions under the axes, and return it; the x labels move to it."""
    height = 0.17
    strip = ax.inset_axes([0.0, -height - 0.04, 1.0, height], sharex=ax)
    edges, counts = floats(edges), floats(counts)
    strip.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=BAND, edgecolor="white", linewidth=0.4)
    strip.set_ylim(0.0, 1.05 * max(float(counts.max(initial=0.0)), 1.0))
    strip.spines[["left"]].set_visible(False)
    strip.set_yticks([])
    tidy(strip)
    ax.tick_params(labelbottom=False)
    ax.set_xlabel("")
    strip.tick_params(labelsize=font_size(ax, "small"))
    if xlabel is not None:
        strip.set_xlabel(xlabel, fontsize=font_size(ax))
    return strip


def floats(values: ArrayLike) -> FloatArray:
    """Give the values as an array of float64."""
    return np.asarray(values, dtype=np.float64)


def columns_for(count: int, widest: int) -> int:
    """Columns for `count` panels: up to three in one row, then as near to a square as `widest` allows."""
    return count if count <= 3 else min(widest, int(np.ceil(np.sqrt(count))))


def shorten(labels: Sequence[object], length: int = 14) -> list[str]:
    """Class labels as text, the long ones cut so that they fit beside an axis."""
    texts = [str(label) for label in labels]
    return [text if len(text) <= length else text[: length - 1] + "…" for text in texts]


__all__ = [
    "BAND",
    "BLUE",
    "DIVERGING",
    "GREY",
    "LINES",
    "MARKERS",
    "ORANGE",
    "SEQUENTIAL",
    "SERIES",
    "Axes",
    "Figure",
    "columns_for",
    "floats",
    "font_size",
    "label_axes",
    "legend",
    "legend_below",
    "new_axes",
    "new_panels",
    "scale_of",
    "shorten",
    "strip_below",
    "tidy",
    "unit_square",
]
