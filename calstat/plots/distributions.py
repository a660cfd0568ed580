"""Histograms of simulated values: null distributions and bootstrap distributions."""

from __future__ import annotations

import numpy as np

from calstat._typing import ArrayLike
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
    tidy,
)


def null_distribution(
    values: ArrayLike,
    observed: float,
    *,
    expected: float | None = None,
    label: str = "Statistic",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw the simulated distribution of a statistic under its null hypothesis, with the observed value.

    Parameters
    ----------
    values : array_like, shape (B,)
        Simulated values; NaN is left out.
    observed : float
        The value on the data.
    expected : float, optional
        Mean of the null distribution, drawn as a dotted line.
    label : str
        Name of the statistic, written below the axis.
    title : str, optional
        Title, such as the p-value.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    An observed value far out in the tail would be rare if the null hypothesis held.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.null_distribution([0.01, 0.02, 0.02, 0.03], 0.05, label="ECE")
    >>> figure.axes[0].get_xlabel()
    'ECE'
    """
    figure, ax = new_axes(ax, (4.6, 3.2))
    top = _histogram(ax, values, "under the null")
    scale = scale_of(ax)
    if expected is not None:
        text = f"expected {expected:.3g}"
        ax.plot([expected] * 2, [0.0, top], color=GREY, ls=":", lw=1.6 * scale, label=text)
    ax.plot([observed] * 2, [0.0, top], color=ORANGE, lw=2.0 * scale, label=f"observed {observed:.3g}")
    label_axes(ax, x=label, y="Draws", title=title)
    legend(ax, loc="upper right")
    return figure


def bootstrap_distribution(
    values: ArrayLike,
    estimate: float,
    low: float,
    high: float,
    *,
    label: str = "Statistic",
    title: str | None = None,
    ax: Axes | None = None,
) -> Figure:
    """
    Draw the bootstrap distribution of a statistic with its estimate and interval.

    Parameters
    ----------
    values : array_like, shape (B,)
        Values on the resamples; NaN is left out.
    estimate : float
        The value on the data.
    low, high : float
        Ends of the interval; NaN draws none.
    label : str
        Name of the statistic, written below the axis.
    title : str, optional
        Title.
    ax : matplotlib Axes, optional
        Where to draw; a new figure is made when it is None.

    Returns
    -------
    matplotlib.figure.Figure

    Notes
    -----
    A histogram whose bulk lies to one side of the estimate shows bias: of binned errors, which are at least zero,
    the resampled values lie above the estimate, and the interval is not read off the histogram.

    Examples
    --------
    >>> from calstat import plots
    >>> figure = plots.bootstrap_distribution([0.02, 0.03, 0.04], 0.03, 0.02, 0.04, label="ECE")
    >>> figure.axes[0].get_xlabel()
    'ECE'
    """
    figure, ax = new_axes(ax, (4.6, 3.2))
    top = _histogram(ax, values, "resamples")
    scale = scale_of(ax)
    ax.plot([estimate] * 2, [0.0, top], color=BLUE, lw=2.0 * scale, label=f"estimate {estimate:.3g}")
    if np.isfinite(low) and np.isfinite(high):
        text = f"interval [{low:.3g}, {high:.3g}]"
        ax.axvspan(low, high, color=BLUE, alpha=0.15, lw=0.0, zorder=0.5, label=text)
    label_axes(ax, x=label, y="Resamples", title=title)
    legend(ax, loc="upper right")
    return figure


def _histogram(ax: Axes, values: ArrayLike, label: str) -> float:
    """Draw the finite values in at most sixty bars and give the height to which a marking line may reach."""
    finite = floats(values)
    finite = finite[np.isfinite(finite)]
    tidy(ax)
    bars = int(np.clip(np.sqrt(finite.size), 5, 60))
    ax.hist(finite, bins=bars, color=BAND, edgecolor="white", linewidth=0.3, label=label)
    ax.margins(x=0.04)
    top = max(ax.get_ylim()[1], 1.0)
    # Room for the legend above the bars and the lines.
    ax.set_ylim(0.0, 1.32 * top)
    ax.locator_params(axis="both", nbins=6)
    ax.xaxis.get_offset_text().set_fontsize(font_size(ax, "small"))
    return float(top)


__all__ = ["bootstrap_distribution", "null_distribution"]
