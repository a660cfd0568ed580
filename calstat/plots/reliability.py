"""Reliability diagrams: one, many side by side, several forecasters in one, and the calibration belt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calstat._typing import ArrayLike
from calstat.plots._style import (
    BAND,
    BLUE,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    SERIES,
    Axes,
    Figure,
    columns_for,
    floats,
    font_size,
    label_axes,
    legend,
    legend_below,
    new_axes,
    new_panels,
    scale_of,
    shorten,
    strip_below,
    tidy,
    unit_square,
)

PREDICTED = "Predicted probability"
OBSERVED = "Observed frequency"


def reliability(
    mean_p: ArrayLike,
    mean_y: ArrayLike,
    *,
    interval: tuple[ArrayLike, ArrayLike] | None = None,
    count: ArrayLike | None = None,
    consistency: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    curve: tuple[ArrayLike, ArrayLike] | None = None,
    curve_band: tuple[ArrayLike, ArrayLike, ArrayLike] | None = None,
    histogram: tuple[ArrayLike, ArrayLike] | None = None,
    labels: Mapping[str, str] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    xlabel: str | None = PREDICTED,
    ylabel: str | None = OBSERVED,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw a reliability diagram from a table of bins.

    Parameters
    ----------
    mean_p, mean_y : array_like, shape (B,)
        Mean prediction and observed frequency of each bin. Bins with NaN (empty ones) are left out.
    interval : (low, high), arrays of shape (B,), optional
        Ends of the interval of each observed frequency, drawn as a bar.
    count : array_like, shape (B,), optional
        Number of rows in each bin; the area of a point grows with it.
    consistency : (x, low, high), arrays of shape (M,), optional
        Where the frequencies would lie if the forecast were calibrated; drawn as a grey band.
    curve : (x, y), arrays of shape (C,), optional
        A curve through the data, such as the isotonic (CORP) or a smooth one.
    curve_band : (x, low, high), arrays of shape (C,), optional
        Pointwise band of the curve.
    histogram : (edges, counts), arrays of shape (H + 1,) and (H,), optional
        Histogram of the predictions, drawn in a strip below the diagram.
    labels : mapping, optional
        Legend texts under the keys "points", "consistency", "curve", "curve_band"; what has no text is not listed.
    limits : tuple of float, default (0, 1)
        Range of both axes; a narrower one serves rare events.
    title, xlabel, ylabel : str, optional
        Texts. None leaves one out.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Points on the dashed diagonal are calibrated; above it, events occur more often than predicted. A point outside
    the consistency band would be a surprise if the forecast were calibrated.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.reliability([0.1, 0.5, 0.9], [0.2, 0.5, 0.8], count=[50, 20, 30])
    >>> [round(float(x), 1) for x in figure.axes[0].collections[0].get_offsets()[:, 0]]
    [0.1, 0.5, 0.9]
    """
    own = ax is None
    figure, ax = new_axes(ax, (4.4, 5.4) if histogram is not None else (4.4, 5.0))
    scale = scale_of(ax)
    names = {} if labels is None else labels
    unit_square(ax, limits)
    tidy(ax)
    if consistency is not None:
        x, low, high = (floats(part) for part in consistency)
        style: dict[str, Any] = {"color": BAND, "alpha": 0.4, "linewidth": 0.0, "zorder": 1.0}
        ax.fill_between(x, low, high, label=names.get("consistency"), **style)
    if curve_band is not None:
        x, low, high = (floats(part) for part in curve_band)
        style = {"color": ORANGE, "alpha": 0.2, "linewidth": 0.0, "zorder": 1.2}
        ax.fill_between(x, low, high, label=names.get("curve_band"), **style)
    if curve is not None:
        ax.plot(*curve, color=ORANGE, lw=1.6 * scale, zorder=2.0, label=names.get("curve"))
    _points(ax, floats(mean_p), floats(mean_y), interval, count, names.get("points"))
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    lowest = ax if histogram is None else strip_below(ax, *histogram, xlabel)
    # Only a figure of our own is known to have room below the axes.
    if own:
        legend_below(ax, lowest)
    else:
        legend(ax)
    return figure


def _points(
    ax: Axes,
    mean_p: ArrayLike,
    mean_y: ArrayLike,
    interval: tuple[ArrayLike, ArrayLike] | None,
    count: ArrayLike | None,
    label: str | None,
) -> None:
    """Draw the bins as points whose area grows with the count, each with its interval bar."""
    x, y = floats(mean_p), floats(mean_y)
    shown = np.isfinite(x) & np.isfinite(y)
    scale = scale_of(ax)
    area = np.full(x.shape, 30.0)
    if count is not None and shown.any():
        area = 14.0 + 46.0 * np.sqrt(floats(count) / floats(count)[shown].max())
    if interval is not None:
        # One broken line, not a collection: the legend looks for a place free of lines.
        ends = np.stack([floats(interval[0]), floats(interval[1]), np.full(x.shape, np.nan)], axis=1)[shown]
        ax.plot(np.repeat(x[shown], 3), ends.ravel(), color=BLUE, lw=1.3 * scale, zorder=2.5)
    ax.scatter(
        x[shown],
        y[shown],
        s=area[shown] * scale**2,
        color=BLUE,
        edgecolor="white",
        linewidth=0.6 * scale,
        zorder=3.0,
        label=label,
        clip_on=False,
    )


def reliability_panels(
    panels: Sequence[Mapping[str, Any]],
    *,
    summary: tuple[Sequence[object], ArrayLike] | None = None,
    summary_label: str = "ECE",
    title: str | None = None,
    ncols: int | None = None,
    xlabel: str = PREDICTED,
    ylabel: str = OBSERVED,
) -> Figure:
    """
    Draw several reliability diagrams as small multiples that share their axes.

    Parameters
    ----------
    panels : sequence of mappings
        The arguments of :func:`reliability` for each panel, `title` among them.
    summary : (labels, values), optional
        One more panel: the values of all classes in falling order, for when not every class has a panel.
    summary_label : str, default "ECE"
        What `values` are.
    title : str, optional
        Title of the whole figure.
    ncols : int, optional
        Panels in a row; by default as near to a square as five a row allow.
    xlabel, ylabel : str
        Labels of the outer axes.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    It makes its own figure: a set of panels does not fit into one axes.

    Examples
    --------
    >>> from calstat import plots
    >>> one = {"mean_p": [0.2, 0.8], "mean_y": [0.3, 0.7], "title": "a"}
    >>> len(plots.reliability_panels([one, {**one, "title": "b"}]).axes)
    2
    """
    total = len(panels) + (summary is not None)
    columns = ncols or columns_for(total, 5)
    side = 2.1 if columns > 3 else 2.6
    figure, axes = new_panels(total, columns, (side, 1.26 * side), margin=0.85)
    for position, (panel, ax) in enumerate(zip(panels, axes, strict=False)):
        reliability(**{**panel, "xlabel": None, "ylabel": None, "ax": ax})
        if position % columns:
            ax.tick_params(labelleft=False)
    if summary is not None:
        _ranking(axes[-1], *summary, summary_label)
    size = font_size(axes[0]) / scale_of(axes[0])
    figure.supxlabel(xlabel, fontsize=size)
    figure.supylabel(ylabel, fontsize=size)
    if title is not None:
        figure.suptitle(title, fontsize=size, x=0.01, ha="left")
    return figure


def _ranking(ax: Axes, labels: Sequence[object], values: ArrayLike, name: str) -> None:
    """Draw the values of all classes in falling order and name the largest."""
    sizes = floats(values)
    order = np.argsort(-sizes, kind="stable")
    tidy(ax)
    ax.plot(np.arange(1, sizes.size + 1), sizes[order], color=BLUE, marker=".", ms=3, lw=0.8)
    ax.annotate(
        shorten(labels)[order[0]],
        (1, sizes[order[0]]),
        xytext=(4, 2),
        textcoords="offset points",
        fontsize=font_size(ax, "small"),
    )
    ax.set_ylim(0.0, 1.2 * max(float(np.nanmax(sizes)), 1e-12))
    ax.set_box_aspect(1.0)
    label_axes(ax, x=None, y=None, title=f"{name} of all {sizes.size}, by rank")


def reliability_overlay(
    forecasts: Mapping[str, tuple[ArrayLike, ArrayLike]],
    *,
    intervals: Mapping[str, tuple[ArrayLike, ArrayLike]] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    xlabel: str = PREDICTED,
    ylabel: str = OBSERVED,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw several forecasters in one reliability diagram.

    Parameters
    ----------
    forecasts : mapping of name to (mean_p, mean_y)
        The points of each forecaster, arrays of shape (B,); NaN is left out. Six can be told apart.
    intervals : mapping of name to (low, high), optional
        Interval of each observed frequency.
    limits : tuple of float, default (0, 1)
        Range of both axes.
    title, xlabel, ylabel : str, optional
        Texts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    The forecaster whose line keeps closest to the diagonal is the better calibrated one, where its intervals
    do not overlap the other's; calibration says nothing about how well it separates events from non-events.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.reliability_overlay({"before": ([0.2, 0.8], [0.4, 0.6]), "after": ([0.4, 0.6], [0.4, 0.6])})
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['before', 'after']
    """
    figure, ax = new_axes(ax, (4.4, 4.5))
    scale = scale_of(ax)
    unit_square(ax, limits)
    tidy(ax)
    for place, (name, (mean_p, mean_y)) in enumerate(forecasts.items()):
        x, y = floats(mean_p), floats(mean_y)
        shown = np.isfinite(x) & np.isfinite(y)
        look = place % len(SERIES)
        ax.plot(
            x[shown],
            y[shown],
            color=SERIES[look],
            ls=LINES[look],
            marker=MARKERS[look],
            ms=5.0 * scale,
            lw=1.4 * scale,
            label=name,
            zorder=3.0,
        )
        if intervals is not None and name in intervals:
            low, high = (floats(end)[shown] for end in intervals[name])
            ax.vlines(x[shown], low, high, color=SERIES[look], lw=0.9 * scale, alpha=0.7, zorder=2.0)
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    legend(ax)
    return figure


def calibration_belt(
    x: ArrayLike,
    bands: Sequence[tuple[float, ArrayLike, ArrayLike]],
    *,
    histogram: tuple[ArrayLike, ArrayLike] | None = None,
    limits: tuple[float, float] = (0.0, 1.0),
    title: str | None = None,
    xlabel: str = PREDICTED,
    ylabel: str = OBSERVED,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw a calibration belt: nested confidence bands of the calibration curve.

    Parameters
    ----------
    x : array_like, shape (M,)
        Predicted probabilities at which the belt is known.
    bands : sequence of (level, low, high)
        Confidence level (0.8 for 80%) and ends, arrays of shape (M,), of each band.
    histogram : (edges, counts), optional
        Histogram of the predictions for the strip below.
    limits : tuple of float, default (0, 1)
        Range of both axes.
    title, xlabel, ylabel : str, optional
        Texts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Where the belt leaves the diagonal, the predictions there are too low (belt above) or too high (belt below)
    at the confidence of that band [1]_.

    References
    ----------
    .. [1] Nattino, G., Finazzi, S., Bertolini, G. (2014). A new calibration test and a reappraisal of the
       calibration belt for the assessment of prediction models based on dichotomous outcomes. Statistics in
       Medicine 33, 2390-2407. doi:10.1002/sim.6100

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.calibration_belt([0.1, 0.9], [(0.95, [0.0, 0.7], [0.3, 1.0]), (0.8, [0.1, 0.8], [0.2, 0.9])])
    >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    ['95% belt', '80% belt']
    """
    figure, ax = new_axes(ax, (4.4, 4.9) if histogram is not None else (4.4, 4.5))
    unit_square(ax, limits)
    tidy(ax)
    grid = floats(x)
    widest_first = sorted(bands, key=lambda band: -band[0])
    for place, (level, low, high) in enumerate(widest_first):
        alpha = 0.25 + 0.3 * place / max(len(bands) - 1, 1)
        label = f"{100 * level:g}% belt"
        ax.fill_between(grid, floats(low), floats(high), color=BLUE, alpha=alpha, lw=0.0, label=label, zorder=1.0)
        for end in (low, high):
            ax.plot(grid, floats(end), color=GREY, lw=0.6 * scale_of(ax), zorder=1.2)
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    if histogram is not None:
        strip_below(ax, *histogram, xlabel)
    legend(ax)
    return figure


__all__ = ["calibration_belt", "reliability", "reliability_overlay", "reliability_panels"]
