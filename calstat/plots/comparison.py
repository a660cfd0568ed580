"""Pictures that help to choose: the path of a penalty, and the ranks of several methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calstat._typing import ArrayLike, FloatArray
from calstat.plots._style import (
    BLUE,
    GREY,
    LINES,
    MARKERS,
    ORANGE,
    SERIES,
    Axes,
    Figure,
    floats,
    font_size,
    label_axes,
    legend,
    new_axes,
    scale_of,
    tidy,
)


def penalty_path(
    strength: ArrayLike,
    mean: ArrayLike,
    se: ArrayLike | None = None,
    *,
    series: Sequence[str] | None = None,
    chosen: float | None = None,
    title: str | None = None,
    xlabel: str = "Penalty strength",
    ylabel: str = "Held-out log-loss",
    ax: Axes | None = None,
) -> Figure:
    """
    Draw the held-out loss against the strength of a penalty, with its standard error.

    Parameters
    ----------
    strength : array_like, shape (M,)
        Penalty strengths; a strength of 0 is put one step to the left of the others, since the axis is logarithmic.
    mean, se : array_like, shape (M,) or (S, M)
        Mean loss over the folds, and its standard error. Several rows are several lines.
    series : sequence of str, optional
        Names of the S lines.
    chosen : float, optional
        The chosen strength, marked by a vertical line.
    title, xlabel, ylabel : str, optional
        Texts.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Strengths whose error bars overlap with the lowest point's do about as well on these folds.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.penalty_path([0.0, 0.01, 1.0], [0.52, 0.50, 0.55], [0.01, 0.01, 0.01], chosen=0.01)
    >>> [text.get_text() for text in figure.axes[0].get_xticklabels()][0]
    '0'
    """
    figure, ax = new_axes(ax, (4.6, 3.4))
    scale = scale_of(ax)
    tidy(ax)
    power = _log_strength(floats(strength))
    order = np.argsort(power)
    lines = np.atleast_2d(floats(mean))
    errors = np.zeros_like(lines) if se is None else np.atleast_2d(floats(se))
    for place, (line, error) in enumerate(zip(lines, errors, strict=True)):
        look = place % len(SERIES)
        # Several lines at one strength step aside a little, so that their bars stay apart.
        aside = 0.06 * (place - (len(lines) - 1) / 2)
        ax.errorbar(
            power[order] + aside, line[order], yerr=None if se is None else error[order], color=SERIES[look],
            ls=LINES[look], marker=MARKERS[look], ms=4.5 * scale, lw=1.3 * scale, elinewidth=1.0 * scale,
            label=None if series is None else series[place],
        )  # fmt: skip
    if chosen is not None:
        at = power[np.argmin(np.abs(floats(strength) - chosen))]
        ax.axvline(at, color=ORANGE, ls="--", lw=1.2 * scale, zorder=0.5, label=f"chosen: {chosen:.3g}")
    ticks, texts = _strength_ticks(floats(strength), power)
    ax.set_xticks(ticks, texts)
    label_axes(ax, x=xlabel, y=ylabel, title=title)
    legend(ax)
    return figure


def _log_strength(strength: FloatArray) -> FloatArray:
    """Place strengths on a logarithmic axis, zero one step to the left of the smallest positive one."""
    positive = strength[strength > 0.0]
    left = np.log10(positive.min()) - 1.0 if positive.size else 0.0
    return np.where(strength > 0.0, np.log10(np.where(strength > 0.0, strength, 1.0)), left)


def _strength_ticks(strength: FloatArray, power: FloatArray) -> tuple[FloatArray, list[str]]:
    """Ticks at whole powers of ten, at most eight, and at zero if it is there."""
    positive = power[strength > 0.0]
    low, high = (
        (int(np.ceil(positive.min() - 1e-9)), int(np.floor(positive.max() + 1e-9))) if positive.size else (0, -1)
    )
    step = max(1, -(-(high - low + 1) // 8))
    places = [float(tick) for tick in range(low, high + 1, step)]
    texts = [rf"$10^{{{tick:.0f}}}$" for tick in places]
    if (strength == 0.0).any():
        places, texts = [float(power[strength == 0.0][0]), *places], ["0", *texts]
    return np.array(places), texts


def critical_difference(
    ranks: ArrayLike,
    names: Sequence[str],
    distance: float,
    *,
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw mean ranks on a line and join the methods whose ranks do not differ by the critical distance.

    Parameters
    ----------
    ranks : array_like, shape (M,)
        Mean rank of each method over the data sets; 1 is best.
    names : sequence of str
        Names of the methods.
    distance : float
        The critical difference of mean ranks at the chosen level.
    title : str, optional
        Title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    Methods joined by a bar cannot be told apart on these data sets [1]_; that does not show them to be equal.

    References
    ----------
    .. [1] Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
       Learning Research 7, 1-30.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.critical_difference([1.2, 1.9, 2.9], ["a", "b", "c"], 1.0)
    >>> [text.get_text() for text in figure.axes[0].texts][-3:]
    ['a  1.20', 'b  1.90', '2.90  c']
    """
    place = floats(ranks)
    methods = place.size
    groups = _joined(np.sort(place), distance)
    rows = -(-methods // 2)
    figure, ax = new_axes(ax, (6.4, 1.1 + 0.24 * (rows + len(groups))))
    scale = scale_of(ax)
    lowest, highest = 1.0, float(methods)
    reach = 0.35 * (highest - lowest)
    depth = len(groups) + 1
    ax.set(xlim=(lowest - reach, highest + reach), ylim=(depth + rows + 0.5, -2.6))
    ax.axis("off")
    ax.plot([lowest, highest], [0, 0], color="black", lw=scale)
    for tick in range(1, methods + 1):
        ax.plot([tick, tick], [0, -0.25], color="black", lw=scale)
        ax.text(tick, -0.4, str(tick), ha="center", va="bottom", fontsize=font_size(ax, "small"))
    shown = min(distance, highest - lowest)
    ax.plot([lowest, lowest + shown], [-1.6, -1.6], color=ORANGE, lw=2.5 * scale, solid_capstyle="butt")
    text = f"critical difference {distance:.2f}"
    ax.text(lowest, -1.85, text, va="bottom", fontsize=font_size(ax, "small"))
    for level, (start, stop) in enumerate(groups, start=1):
        ends = [start - 0.03, stop + 0.03]
        ax.plot(ends, [level, level], color=BLUE, lw=3.5 * scale, solid_capstyle="butt")
    order = np.argsort(place, kind="stable")
    for position, method in enumerate(order):
        left = position < rows
        row = depth + (position if left else methods - 1 - position) + 0.5
        edge = lowest - 0.1 * reach if left else highest + 0.1 * reach
        value = f"{place[method]:.2f}"
        text = f"{names[method]}  {value}" if left else f"{value}  {names[method]}"
        ax.plot([place[method], place[method], edge], [0, row, row], color=GREY, lw=0.9 * scale, zorder=0.5)
        ax.text(
            edge + (-0.015 if left else 0.015) * reach,
            row,
            text,
            ha="right" if left else "left",
            va="center",
            fontsize=font_size(ax, "small"),
        )
    label_axes(ax, x=None, y=None, title=title)
    return figure


def _joined(ranks: FloatArray, distance: float) -> list[tuple[float, float]]:
    """Longest runs of sorted ranks within the critical distance, as pairs of their ends."""
    last = np.searchsorted(ranks, ranks + distance, side="right") - 1
    runs: list[tuple[float, float]] = []
    furthest = -1
    for first, end in enumerate(last):
        if end > first and end > furthest:
            runs.append((float(ranks[first]), float(ranks[end])))
            furthest = int(end)
    return runs


__all__ = ["critical_difference", "penalty_path"]
