"""The reliability table: what the bins hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from calstat._arrays.binning import BinTable, Strategy
from calstat._input.validation import MetricType, check_alpha, check_choice
from calstat._typing import Label
from calstat.metrics._common import Edges, read_sample, tables, warn_absent
from calstat.metrics._intervals import jeffreys_interval, wilson_interval


def reliability_table(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    type: MetricType | None = None,  # noqa: A002
    strategy: Strategy = "equal_width",
    ci_method: Literal["wilson", "jeffreys"] = "wilson",
    alpha: float = 0.05,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> pd.DataFrame:
    """
    Event rate against mean probability in bins.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class, as in `ece`.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1. Bins are closed on the left, the last one on both sides.
    type : {"classwise", "confidence"}, optional
        How to read a matrix; needed for one. See `ece`.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8 with the ends set to 0 and 1; quantiles that coincide are one edge,
        so that there may be fewer bins than asked for.
    ci_method : {"wilson", "jeffreys"}, default "wilson"
        Interval for the event rate: Wilson's score interval, or Jeffreys' equal-tailed one, whose limits are set
        to 0 and 1 where no row and where every row has the event.
    alpha : float, default 0.05
        One minus the confidence level.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. With weights that are not whole numbers the limits are NaN: such
        weights do not tell how many rows there were.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    DataFrame
        One row per bin, empty ones included, with columns ``lower``, ``upper``, ``count`` (sum of the weights),
        ``mean_p``, ``mean_y``, ``gap`` (``mean_y - mean_p``), ``ci_low``, ``ci_high``; all but the first three
        are NaN where the bin is empty. The index is ``bin`` = 0, 1, ...; for ``type="classwise"`` it is
        (``class``, ``bin``).

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y` and ``type="classwise"``.

    References
    ----------
    Brown, L. D., Cai, T. T. and DasGupta, A. (2001). Interval estimation for a binomial proportion. Statistical
    Science 16. https://doi.org/10.1214/ss/1009213286

    Examples
    --------
    >>> import calstat as cs
    >>> table = cs.reliability_table([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], bins=2)
    >>> table[["count", "mean_p", "mean_y", "gap"]].round(3)
         count  mean_p  mean_y    gap
    bin
    0      2.0   0.250     0.0 -0.250
    1      3.0   0.683     1.0  0.317

    Below one half the probabilities are too high, above it they are too low.
    """
    check_choice("ci_method", ci_method, ("wilson", "jeffreys"))
    alpha = check_alpha(alpha)
    sample = read_sample(y, p, type, freq_weights, event, classes)
    warn_absent(sample, type)
    whole = sample.weights is None or bool(np.all(sample.weights == np.round(sample.weights)))
    frames = [_frame(table, ci_method, alpha, whole) for table in tables(sample, type, bins, strategy)]
    if type != "classwise":
        return frames[0]
    return pd.concat(frames, keys=sample.classes, names=["class", "bin"])  # type: ignore[union-attr]  # a matrix


def _frame(table: BinTable, ci_method: str, alpha: float, whole: bool) -> pd.DataFrame:
    interval = wilson_interval if ci_method == "wilson" else jeffreys_interval
    low, high = interval(table.sum_y, table.count if whole else np.full(table.count.size, np.nan), alpha)
    columns = {
        "lower": table.edges[:-1],
        "upper": table.edges[1:],
        "count": table.count,
        "mean_p": table.mean_p,
        "mean_y": table.mean_y,
        "gap": table.gap,
        "ci_low": low,
        "ci_high": high,
    }
    return pd.DataFrame(columns, index=pd.RangeIndex(table.count.size, name="bin"))
