"""Heat maps: the coefficients of a multiclass map, and the change of a confusion matrix."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from calstat._typing import ArrayLike, FloatArray
from calstat.plots._style import (
    DIVERGING,
    SEQUENTIAL,
    Axes,
    Figure,
    floats,
    font_size,
    label_axes,
    new_axes,
    shorten,
)

_MOST_NUMBERS = 12
_MOST_LABELS = 40


def matrix_heatmap(
    values: ArrayLike,
    *,
    rows: Sequence[object],
    columns: Sequence[object],
    marks: ArrayLike | None = None,
    reference: ArrayLike | None = None,
    label: str | None = None,
    title: str | None = None,
    xlabel: str | None = "Input class",
    ylabel: str | None = "Output class",
    ax: Axes | None = None,
) -> Figure:
    """
    Draw a coefficient matrix as a heat map, with its numbers where they fit.

    Parameters
    ----------
    values : array_like, shape (R, C)
        The coefficients. A bias vector is drawn by appending it as one more column.
    rows, columns : sequence of labels
        Names of the rows (R) and columns (C).
    marks : array_like of str, shape (R, C), optional
        A mark for each cell, such as "*" where the coefficient differs from the identity map's.
    reference : array_like, shape (R, C), optional
        What the colour is measured from: with the identity matrix the colours show the departure from the identity
        map, while the numbers stay those of `values`.
    label : str, optional
        Text of the colour bar.
    title, xlabel, ylabel : str, optional
        Texts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Blue cells lie below the reference, orange ones above it. Numbers are written up to 12 columns, labels up
    to 40.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.matrix_heatmap([[1.0, 0.1], [0.0, 0.9]], rows=["a", "b"], columns=["a", "b"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['1.00', '0.10', '0.00', '0.90']
    """
    matrix = floats(values)
    shift = np.zeros_like(matrix) if reference is None else floats(reference)
    figure, ax = new_axes(ax, _size(matrix.shape))
    signs = np.full(matrix.shape, "") if marks is None else np.asarray(marks)
    texts = np.array([[_number(value) for value in row] for row in matrix])
    texts = np.char.add(texts, signs.astype(str))
    _heat(figure, ax, matrix - shift, texts, label)
    _names(ax, rows, columns)
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    return figure


def confusion_change(
    before: ArrayLike,
    after: ArrayLike,
    *,
    classes: Sequence[object],
    label: str = "Change in count",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    r"""
    Draw how a confusion matrix changed by calibration.

    Parameters
    ----------
    before, after : array_like, shape (K, K)
        Counts with the observed class in rows and the predicted class in columns.
    classes : sequence of K labels
        The classes.
    label : str
        Text of the colour bar.
    title : str, optional
        Title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    The colour is the change; the text of a cell gives the count after calibration and the change. Orange on the
    diagonal and blue off it mean more right answers.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.confusion_change([[8, 2], [1, 9]], [[9, 1], [1, 9]], classes=["a", "b"])
    >>> [text.get_text() for text in figure.axes[0].texts]
    ['9\n(+1)', '1\n(−1)', '1', '9']
    """
    old, new = floats(before), floats(after)
    change = new - old
    figure, ax = new_axes(ax, _size(new.shape))
    texts = np.array(
        [
            [f"{n:g}" if d == 0 else f"{n:g}\n({'+' if d > 0 else '−'}{abs(d):g})" for n, d in zip(*pair, strict=True)]
            for pair in zip(new, change, strict=True)
        ]
    )
    _heat(figure, ax, change, texts, label, signed=True)
    _names(ax, classes, classes)
    label_axes(ax, x="Predicted class", y="Observed class", title=title)
    return figure


def _number(value: float) -> str:
    """Write a coefficient with two decimals, a proper minus, and no minus before zero."""
    if not np.isfinite(value):
        return "–"
    return f"{round(value, 2) + 0.0:.2f}".replace("-", "−")


def _heat(
    figure: Figure, ax: Axes, matrix: FloatArray, texts: NDArray[np.str_], label: str | None, *, signed: bool = False
) -> None:
    """Draw the cells, the colour bar, and the texts if there is room for them."""
    largest = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    signed = signed or bool(np.nanmin(matrix, initial=0.0) < 0.0)
    scheme = {"cmap": DIVERGING if signed else SEQUENTIAL, "vmin": -largest if signed else 0.0, "vmax": largest}
    image = ax.imshow(matrix, aspect="equal", interpolation="nearest", **scheme)
    bar = figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=font_size(ax, "small"))
    if label is not None:
        bar.set_label(label, fontsize=font_size(ax))
    if max(matrix.shape) > _MOST_NUMBERS:
        return
    cell = 72.0 * ax.get_window_extent().width / ax.figure.dpi / matrix.shape[1]
    longest = max(len(line) for text in texts.ravel() for line in str(text).split("\n"))
    size = min(font_size(ax, "small"), 1.5 * cell / max(longest, 4))
    for (row, column), text in np.ndenumerate(texts):
        red, green, blue, _ = image.cmap(image.norm(matrix[row, column]))
        dark = 0.2126 * red**2.2 + 0.7152 * green**2.2 + 0.0722 * blue**2.2 < 0.18
        ax.text(column, row, text, ha="center", va="center", fontsize=size, color="white" if dark else "black")


def _names(ax: Axes, rows: Sequence[object], columns: Sequence[object]) -> None:
    """Write class names at the cells, or every so many when there are too many to read."""
    for axis, names in ((ax.yaxis, rows), (ax.xaxis, columns)):
        step = -(-len(names) // _MOST_LABELS)
        axis.set_ticks(np.arange(0, len(names), step), shorten(names)[::step])
    longest = max(len(text) for text in shorten(columns))
    width = 72.0 * ax.get_window_extent().width / ax.figure.dpi / len(columns)
    if 0.6 * longest * font_size(ax, "small") > width:
        ax.tick_params(axis="x", labelrotation=90)
    ax.tick_params(labelsize=font_size(ax, "small") * (0.8 if len(rows) > 20 else 1.0), length=0)
    ax.spines[:].set_visible(False)


def _size(shape: tuple[int, ...]) -> tuple[float, float]:
    """Inches of a figure in which cells with numbers can be read, up to a page's width."""
    side = float(np.clip(0.62 * max(shape), 3.6, 7.0))
    return side + 1.4, side + 0.6


__all__ = ["confusion_change", "matrix_heatmap"]
