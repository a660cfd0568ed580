"""Pictures of calibration maps: the curve of a binary map, and the simplex of a map for three classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calstat._typing import ArrayLike, FloatArray
from calstat.plots._style import (
    BAND,
    BLUE,
    GREY,
    ORANGE,
    Axes,
    Figure,
    floats,
    font_size,
    label_axes,
    legend,
    new_axes,
    scale_of,
    shorten,
    strip_below,
    tidy,
    unit_square,
)

_CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])


def calibration_map(
    x: ArrayLike,
    y: ArrayLike,
    *,
    band: tuple[ArrayLike, ArrayLike] | None = None,
    points: tuple[ArrayLike, ArrayLike] | None = None,
    histogram: tuple[ArrayLike, ArrayLike] | None = None,
    others: Sequence[ArrayLike] = (),
    identity: bool = True,
    label: str = "calibration map",
    others_label: str = "other maps",
    band_label: str = "95% band",
    limits: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    xlabel: str = "Score",
    ylabel: str = "Calibrated probability",
    ax: Axes | None = None,
) -> Figure:
    """
    Draw the map from scores to calibrated probabilities.

    Parameters
    ----------
    x, y : array_like, shape (M,)
        Scores in rising order, and the map's values there.
    band : (low, high), arrays of shape (M,), optional
        Pointwise interval of the map.
    points : (mean_score, observed frequency), arrays of shape (B,), optional
        Binned data, to see the map against; NaN is left out.
    histogram : (edges, counts), optional
        Histogram of the scores for the strip below.
    others : sequence of arrays of shape (M,), optional
        Further maps at `x`, drawn as thin lines: those of folds or of resamples.
    identity : bool, default True
        Whether `x` is a probability, so that the axes are a unit square with the identity map as its diagonal. With
        False the x axis runs over the range of `x`.
    label, others_label, band_label : str
        Legend texts.
    limits : tuple of float, default (0, 1)
        Range of both axes when `identity` holds.
    title, xlabel, ylabel : str, optional
        Texts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Above the dashed identity map the scores were too low, below it too high. A map flatter than the
    identity shrinks scores that were too extreme.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.calibration_map([0.0, 0.5, 1.0], [0.1, 0.5, 0.9], band=([0.0, 0.4, 0.8], [0.2, 0.6, 1.0]))
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['calibration map', '95% band']
    """
    figure, ax = new_axes(ax, (4.4, 4.9) if histogram is not None else (4.4, 4.5))
    scale = scale_of(ax)
    grid = floats(x)
    if identity:
        unit_square(ax, limits)
    else:
        ax.set(xlim=(grid[0], grid[-1]), ylim=(-0.015, 1.015))
    tidy(ax)
    ax.plot(grid, floats(y), color=BLUE, lw=1.8 * scale, label=label, zorder=3.0)
    for number, other in enumerate(others):
        name = None if number else others_label
        ax.plot(grid, floats(other), color=GREY, lw=0.8 * scale, alpha=0.8, label=name, zorder=2.5)
    if band is not None:
        low, high = (floats(end) for end in band)
        ax.fill_between(grid, low, high, color=BLUE, alpha=0.2, lw=0.0, label=band_label, zorder=2.0)
    if points is not None:
        ax.scatter(
            *points, s=22 * scale**2, color=ORANGE, marker="D", edgecolor="white", lw=0.5, label="data", zorder=3.5
        )
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    if histogram is not None:
        strip_below(ax, *histogram, xlabel)
    legend(ax)
    return figure


def simplex_map(
    start: ArrayLike,
    end: ArrayLike,
    *,
    classes: Sequence[object],
    predictions: ArrayLike | None = None,
    interpretation: tuple[ArrayLike, ArrayLike] | None = None,
    regions: ArrayLike | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw what a map for three classes does to points of the simplex, as arrows.

    Parameters
    ----------
    start, end : array_like, shape (M, 3)
        Probability vectors, and where the map takes them.
    classes : sequence of 3 labels
        The classes, in column order; each is written at its corner.
    predictions : array_like, shape (n, 3), optional
        The predictions the map was fitted on, shown as a density behind the arrows.
    interpretation : (start, end), arrays of shape (4, 3), optional
        The interpretation points of the map: the centre and the middles of the sides, and where they go.
    regions : array_like, shape (4, L, 3), optional
        Outlines of the regions that hold the ends of the interpretation points.
    title : str, optional
        Title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    An arrow points from a prediction to its calibrated value: arrows away from the corners mean that the
    predictions were over-confident, arrows towards one corner that its class was predicted too rarely. Where
    there are no predictions, the map is an extrapolation.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.simplex_map([[0.8, 0.1, 0.1]], [[0.6, 0.2, 0.2]], classes=["a", "b", "c"])
    >>> sorted(text.get_text() for text in figure.axes[0].texts)
    ['a', 'b', 'c']
    """
    figure, ax = new_axes(ax, (4.8, 4.5))
    scale = scale_of(ax)
    ax.set(aspect="equal", xlim=(-0.1, 1.1), ylim=(-0.1, 0.97))
    ax.axis("off")
    if predictions is not None:
        density = _plane(predictions)
        ax.hexbin(
            density[:, 0], density[:, 1], gridsize=28, bins="log", mincnt=1, cmap="Greys", linewidths=0.0,
            alpha=0.55, extent=(0.0, 1.0, 0.0, 0.87), zorder=0.5,
        )  # fmt: skip
    _frame(ax, classes)
    tail, tip = _plane(start), _plane(end)
    ax.quiver(
        *tail.T, *(tip - tail).T, color=BLUE, angles="xy", scale_units="xy", scale=1.0, width=0.0038,
        headwidth=4.5, headlength=5.0, minlength=0.4, zorder=2.0,
    )  # fmt: skip
    if regions is not None:
        for outline in floats(regions):
            ax.fill(*_plane(outline).T, facecolor=ORANGE, edgecolor=ORANGE, alpha=0.3, lw=0.8 * scale, zorder=2.5)
    if interpretation is not None:
        tail, tip = _plane(interpretation[0]), _plane(interpretation[1])
        ax.plot(*np.stack([tail, tip], axis=1).T, color=ORANGE, lw=1.6 * scale, zorder=3.0)
        ax.scatter(*tail.T, s=26 * scale**2, facecolor="white", edgecolor=ORANGE, zorder=3.2)
        ax.scatter(*tip.T, s=34 * scale**2, color=ORANGE, edgecolor="white", lw=0.6, zorder=3.4)
    label_axes(ax, x=None, y=None, title=title)
    return figure


def _frame(ax: Axes, classes: Sequence[object]) -> None:
    """Draw the triangle, its grid of quarters, and the class labels at the corners."""
    scale = scale_of(ax)
    ax.plot(*_CORNERS[[0, 1, 2, 0]].T, color=GREY, lw=1.2 * scale, zorder=1.5)
    for level in (0.25, 0.5, 0.75):
        for corner in range(3):
            first, second = (other for other in range(3) if other != corner)
            ends = np.zeros((2, 3))
            ends[:, corner] = level
            ends[0, first] = ends[1, second] = 1.0 - level
            ax.plot(*_plane(ends).T, color=BAND, lw=0.5 * scale, zorder=1.0)
    places = ((-0.02, -0.03, "center", "top"), (1.02, -0.03, "center", "top"), (0.5, 0.89, "center", "bottom"))
    for name, (x, y, ha, va) in zip(shorten(classes), places, strict=True):
        ax.text(x, y, name, ha=ha, va=va, fontsize=font_size(ax), fontweight="bold")


def _plane(points: ArrayLike) -> FloatArray:
    """Turn probability vectors of three classes into points of the plane."""
    return floats(points) @ _CORNERS


__all__ = ["calibration_map", "simplex_map"]
