"""Binned calibration errors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from calstat._arrays.binning import BinTable, Norm, Strategy, assign_bins, bin_edges, bin_table
from calstat._input.validation import MetricType, check_choice
from calstat._typing import FloatArray, Label
from calstat.exceptions import InputError, NotEstimableWarning
from calstat.metrics._common import (
    Average,
    Edges,
    averaged,
    read_matrix,
    read_sample,
    tables,
    views,
    warn_absent,
)

Debias: TypeAlias = Literal[False, "u", "kumar"]

_NORMS = (1, 2, "max")
_DEBIAS = (False, "u", "kumar")


def ece(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    type: MetricType | None = None,  # noqa: A002
    strategy: Strategy = "equal_width",
    norm: Literal[1, 2, "max"] = 1,
    debias: Debias = False,
    average: Average = "mean",
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Expected calibration error.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{n} \lvert \bar y_b - \bar p_b \rvert

    with the event rate and the mean probability of the rows in bin b. ``norm=2`` is the root of the weighted
    mean square gap, ``norm="max"`` the largest gap.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities: of the event, or one column for each class. Two columns are read as binary, with the second
        as the event's, unless `type` is given. 0 and 1 are allowed.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges, increasing from 0 to 1. Bins are closed on the left, the last one on both
        sides. Empty bins do not count.
    type : {"classwise", "confidence"}, optional
        Needed for a matrix, and only there. "classwise": each column against its class, then `average`;
        "confidence": the top label's probability against its being right, ties going to the first class.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8 of the probabilities (of each column, if classwise). Equal
        probabilities always share a bin, so that ties may leave fewer bins than asked for: `reliability_table`
        shows those that there are.
    norm : {1, 2, "max"}, default 1
        How gaps are put together.
    debias : {False, "u", "kumar"}, default False
        For ``norm=2``: the root of `squared_ece` with this correction, 0 where that is negative.
    average : {"mean", "sum"}, default "mean"
        Over classes, for ``type="classwise"``. The tables of Kull et al. (2019) hold the sum.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row. Weights that are not whole numbers are those of a weighted mean.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Between 0 and 1 (K with ``average="sum"``).

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y` and ``type="classwise"``.

    See Also
    --------
    reliability_table : The bins behind the number.
    smooth_ece : An error without bins.

    Notes
    -----
    Even for a calibrated model the plug-in value is above 0, the more so the fewer rows and the more bins there
    are: compare it with its value under calibration before reading it as a fault.

    References
    ----------
    Naeini, M. P., Cooper, G. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI. https://doi.org/10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.ece([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], bins=2), 4)
    0.29

    On average the probabilities are 29 percentage points away from the event rate of their bin.
    """
    check_choice("norm", norm, _NORMS)
    if debias is not False and norm != 2:
        raise InputError(f"`debias`={debias!r} corrects the square and goes with `norm`=2; `norm` is {norm!r}.")
    sample = read_sample(y, p, type, freq_weights, event, classes, integer_weights=debias is not False)
    warn_absent(sample, type)
    if debias is False:
        values = [table.error(norm) for table in tables(sample, type, bins, strategy)]
    else:
        check_choice("debias", debias, _DEBIAS)
        squares = [
            _squared(outcome, score, bins, strategy, sample.weights, debias) for outcome, score in views(sample, type)
        ]
        _warn_singletons(squares)
        values = np.sqrt(np.maximum(squares, 0.0)).tolist()
    return averaged(values, type, average)


def ace(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    type: MetricType | None = None,  # noqa: A002
    strategy: Strategy = "equal_width",
    average: Average = "mean",
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Average calibration error: the plain mean of the gaps of the bins that hold rows.

    .. math:: \mathrm{ACE} = \frac{1}{B} \sum_b \lvert \bar y_b - \bar p_b \rvert

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class, as in `ece`.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1.
    type : {"classwise", "confidence"}, optional
        How to read a matrix; needed for one. See `ece`.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    average : {"mean", "sum"}, default "mean"
        Over classes, for ``type="classwise"``.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Between 0 and 1. B counts the bins that are not empty.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y` and ``type="classwise"``.

    See Also
    --------
    ece : Weighs bins by the rows in them.

    Notes
    -----
    A bin of one row weighs as much as a bin of a thousand. ``strategy="equal_freq"`` gives the adaptive
    calibration error of Nixon et al.

    References
    ----------
    Neumann, L., Zisserman, A. and Vedaldi, A. (2018). Relaxed softmax: efficient confidence auto-calibration for
    safe pedestrian detection. NeurIPS workshop.
    Nixon, J. et al. (2019). Measuring calibration in deep learning. CVPR workshops.

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.ace([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], bins=3), 4)
    0.3167

    The three bins are off by 0.32 on average, each counted once.
    """
    sample = read_sample(y, p, type, freq_weights, event, classes)
    warn_absent(sample, type)
    return averaged([table.error("mean") for table in tables(sample, type, bins, strategy)], type, average)


def mce(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    type: MetricType | None = None,  # noqa: A002
    strategy: Strategy = "equal_width",
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Maximum calibration error: the largest gap of a bin.

    .. math:: \mathrm{MCE} = \max_b \lvert \bar y_b - \bar p_b \rvert

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class, as in `ece`.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1.
    type : {"classwise", "confidence"}, optional
        How to read a matrix; needed for one. See `ece`.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Between 0 and 1; with ``type="classwise"`` the largest over the classes.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y` and ``type="classwise"``.

    See Also
    --------
    ece : The weighted mean of the gaps.

    References
    ----------
    Naeini, M. P., Cooper, G. and Hauskrecht, M. (2015). Obtaining well calibrated probabilities using Bayesian
    binning. AAAI. https://doi.org/10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.mce([0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75], bins=3), 4)
    0.45

    In the worst bin the event rate is 45 percentage points away from the mean probability; that bin may hold
    a single row.
    """
    sample = read_sample(y, p, type, freq_weights, event, classes)
    warn_absent(sample, type)
    return max(table.error("max") for table in tables(sample, type, bins, strategy))


def classwise_ece(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    norm: Norm = 1,
    freq_weights: Any = None,
    classes: Sequence[Label] | None = None,
) -> pd.Series:
    """
    Calibration error of each class: its column against its indicator.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n, K)
        Probabilities, one column for each class.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    norm : {1, 2, "max", "mean"}, default 1
        How the gaps of a class are put together: 1 and 2 weigh bins by their rows, as `ece` does, "max" takes
        the largest gap (`mce`), "mean" counts each bin once (`ace`).
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    Series of length K
        Indexed by class. Its mean is ``ece(y, p, type="classwise")``.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Warns
    -----
    DataWarning
        If a class does not occur in `y`.

    References
    ----------
    Kull, M. et al. (2019). Beyond temperature scaling: obtaining well-calibrated multi-class probabilities with
    Dirichlet calibration. NeurIPS. https://arxiv.org/abs/1910.12656

    Examples
    --------
    >>> import calstat as cs
    >>> P = [[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.5, 0.4], [0.5, 0.3, 0.2]]
    >>> cs.classwise_ece([0, 1, 2, 0], P, bins=2)
    class
    0    0.275
    1    0.150
    2    0.025
    Name: ece, dtype: float64

    The probabilities of class 0 are the farthest from its frequencies.
    """
    check_choice("norm", norm, (*_NORMS, "mean"))
    sample = read_matrix(y, p, freq_weights, classes)
    warn_absent(sample, "classwise")
    values = [table.error(norm) for table in tables(sample, "classwise", bins, strategy)]
    name = {1: "ece", 2: "rms_ce", "max": "mce", "mean": "ace"}[norm]
    return pd.Series(values, index=pd.Index(sample.classes, name="class"), name=name)


def confidence_ece(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    norm: Literal[1, 2, "max"] = 1,
    freq_weights: Any = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    Calibration error of the top label: its probability against its being right.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n, K)
        Probabilities, one column for each class.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    norm : {1, 2, "max"}, default 1
        How gaps are put together, as in `ece`.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Between 0 and 1; equal to ``ece(y, p, type="confidence")``. Of tied columns the first is the top label.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    See Also
    --------
    classwise_ece : Looks at all classes, not only at the most probable one.

    References
    ----------
    Guo, C. et al. (2017). On calibration of modern neural networks. ICML. https://arxiv.org/abs/1706.04599

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.confidence_ece([0, 1, 2], [[0.7, 0.2, 0.1], [0.3, 0.6, 0.1], [0.1, 0.8, 0.1]]), 4)
    0.5

    The confidence in the predicted class is off by 0.5 on average.
    """
    check_choice("norm", norm, _NORMS)
    sample = read_matrix(y, p, freq_weights, classes)
    (table,) = tables(sample, "confidence", bins, strategy)
    return table.error(norm)


def squared_ece(
    y: Any,
    p: Any,
    *,
    bins: Edges = 10,
    type: MetricType | None = None,  # noqa: A002
    strategy: Strategy = "equal_width",
    debias: Debias = False,
    average: Average = "mean",
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Squared binned calibration error, with the bias of its noise taken off on request.

    .. math:: \sum_b \frac{n_b}{n} (\bar y_b - \bar p_b)^2

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class, as in `ece`.
    bins : int or array_like of shape (B + 1,), default 10
        Number of bins, or their edges from 0 to 1.
    type : {"classwise", "confidence"}, optional
        How to read a matrix; needed for one. See `ece`.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        Edges j / bins, or quantiles of type 8.
    debias : {False, "u", "kumar"}, default False
        False: the plug-in value, whose mean is too large by about B / n times a mean variance. "u": the squared
        gap is replaced by the mean of e_i e_j over pairs i ≠ j of its bin, e = y - p. "kumar": ȳ(1 - ȳ) / (n_b - 1)
        is taken off. With either correction a bin of one row adds 0, since it says nothing about its noise.
    average : {"mean", "sum"}, default "mean"
        Over classes, for ``type="classwise"``.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        A corrected value may be negative, which means: no error beyond noise was found. NaN if every bin holds
        a single row.

    Raises
    ------
    InputError
        If an argument is not as described, or the weights are not whole numbers and `debias` is given.

    Warns
    -----
    DataWarning
        If a class does not occur in `y` and ``type="classwise"``.
    NotEstimableWarning
        If the correction is asked for and every bin holds a single row.

    See Also
    --------
    ece : ``ece(norm=2)`` is the root.

    References
    ----------
    Bröcker, J. (2012). Estimating reliability and resolution of probability forecasts through decomposition of
    the empirical score. Climate Dynamics 39. https://doi.org/10.1007/s00382-011-1191-1
    Kumar, A., Liang, P. and Ma, T. (2019). Verified uncertainty calibration. NeurIPS.
    https://arxiv.org/abs/1909.10155

    Examples
    --------
    >>> import calstat as cs
    >>> y, p = [1, 0, 0, 0, 1, 1, 1, 0], [0.2, 0.2, 0.2, 0.2, 0.7, 0.7, 0.7, 0.7]
    >>> round(cs.squared_ece(y, p, bins=2), 4), round(cs.squared_ece(y, p, bins=2, debias="kumar"), 4)
    (0.0025, -0.06)

    The gaps are smaller than chance alone would make them.
    """
    check_choice("debias", debias, _DEBIAS)
    sample = read_sample(y, p, type, freq_weights, event, classes, integer_weights=debias is not False)
    warn_absent(sample, type)
    values = [
        _squared(outcome, score, bins, strategy, sample.weights, debias) for outcome, score in views(sample, type)
    ]
    _warn_singletons(values)
    return averaged(values, type, average)


def _squared(
    y: FloatArray,
    p: FloatArray,
    bins: Edges,
    strategy: Strategy,
    weights: FloatArray | None,
    debias: Debias,
) -> float:
    edges = bin_edges(p, bins, strategy, weights)
    table = bin_table(y, p, edges, weights)
    if debias is False:
        return table.error(2) ** 2
    if not np.any(table.count > 1):
        return float("nan")
    if debias == "kumar":
        noise = table.sum_y * (table.count - table.sum_y) / table.count.clip(1)
    else:
        noise = _within_noise(y, p, edges, weights, table)
    return _debiased(table, noise)


def _within_noise(
    y: FloatArray, p: FloatArray, edges: FloatArray, weights: FloatArray | None, table: BinTable
) -> FloatArray:
    """Return Σ e² - (Σ e)² / n_b by bin, e = y - p: what subtracting makes the U-statistic of the bin."""
    square = (y - p) ** 2 if weights is None else weights * (y - p) ** 2
    total = np.bincount(assign_bins(p, edges), weights=square, minlength=table.count.size)
    return total - (table.sum_y - table.sum_p) ** 2 / table.count.clip(1)


def _debiased(table: BinTable, noise: FloatArray) -> float:
    """Return Σ n_b / n (gap² - noise / (n_b (n_b - 1))) over the bins of two rows or more."""
    rows = table.count > 1
    count = table.count[rows]
    squared_gap = ((table.sum_y - table.sum_p)[rows] / count) ** 2
    return float(np.sum(count * squared_gap - noise[rows] / (count - 1)) / table.count.sum())


def _warn_singletons(values: Sequence[float]) -> None:
    if np.isnan(values).any():
        warnings.warn(
            "every bin holds a single row, so that nothing is known about the noise within bins: the corrected error "
            "is NaN. Take fewer `bins` or `debias`=False.",
            NotEstimableWarning,
            stacklevel=3,
        )
