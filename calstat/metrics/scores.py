"""Proper scores, their decomposition, and the correction for another prevalence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from calstat._arrays.binning import Strategy
from calstat._input.validation import (
    as_float,
    check_choice,
    check_eps,
    check_multiclass,
    check_probabilities,
    check_sample,
)
from calstat._typing import ArrayLike, FloatArray, Label
from calstat.exceptions import InputError
from calstat.metrics._common import Edges, Sample, read_event
from calstat.metrics._scores import LOG_EPS, bins_decomposition, brier_rows, corp_decomposition, hits, log_rows


def brier_score(
    y: Any,
    p: Any,
    *,
    average: Literal["rows", "classes"] | None = None,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Brier score: the mean squared difference between outcome and probability.

    Binary: mean of (y - p)². Matrix: mean over rows of :math:`\sum_k (1[y=k] - p_k)^2`.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class. Two columns are read as binary, unless `average`
        is given.
    average : {"rows", "classes"}, optional
        The scaling for a matrix. "rows" (what None means for one): the sum over classes, from 0 to 2. "classes":
        its K-th part.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        0 is perfect.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    See Also
    --------
    score_decomposition : How much of it is miscalibration.

    References
    ----------
    Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather Review 78.
    https://doi.org/10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.brier_score([0, 1, 1], [0.2, 0.7, 0.6]), 4)
    0.0967

    A forecast of the event rate alone, 2/3, would score 0.2222.
    """
    check_choice("average", average, (None, "rows", "classes"))
    if average is not None:
        sample: Sample = check_multiclass(y, p, freq_weights=freq_weights, classes=classes)
    else:
        sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes)
    return float(np.average(brier_rows(sample, average), weights=sample.weights))


def log_loss(
    y: Any,
    p: Any,
    *,
    eps: float = LOG_EPS,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    r"""
    Logarithmic score: minus the mean log probability of what happened, natural logarithm.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class.
    eps : float, default 1e-15
        Probabilities are clipped to [eps, 1 - eps] first, so that one impossible outcome costs 34.5 / n and not
        infinity. This is a choice that can dominate the score; ``eps=0`` gives the exact value.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        0 is perfect; infinity for an outcome of probability 0 with ``eps=0``.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    References
    ----------
    Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14.
    https://doi.org/10.1111/j.2517-6161.1952.tb00104.x

    Examples
    --------
    >>> import calstat as cs
    >>> round(cs.log_loss([0, 1, 1], [0.2, 0.7, 0.6]), 4)
    0.3635

    exp(-0.3635) = 0.70 is the geometric mean of the probabilities given to what happened.
    """
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes)
    eps = 0.0 if eps == 0 else check_eps(eps)
    return float(np.average(log_rows(sample, eps), weights=sample.weights))


def accuracy(
    y: Any,
    p: Any,
    *,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> float:
    """
    Share of rows whose most probable label is right.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcomes.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Probabilities of the event, or one column for each class.
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of K labels, optional
        The class of each column of a matrix.

    Returns
    -------
    float
        Of tied columns the first is the label, so that a binary p of exactly 0.5 stands for the non-event.

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    Examples
    --------
    >>> import calstat as cs
    >>> cs.accuracy([0, 1, 1, 0], [0.2, 0.7, 0.4, 0.5])
    0.75

    Three of four labels are right; the row with p = 0.4 is not.
    """
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes)
    return float(np.average(hits(sample), weights=sample.weights))


def score_decomposition(
    y: Any,
    p: Any,
    *,
    score: Literal["brier", "log"] = "brier",
    method: Literal["corp", "bins"] = "corp",
    bins: Edges = 10,
    strategy: Strategy = "equal_width",
    eps: float = LOG_EPS,
    freq_weights: Any = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
) -> pd.Series:
    r"""
    Split a mean score into miscalibration (MCB), discrimination (DSC) and uncertainty (UNC).

    .. math:: \bar S = \mathrm{MCB} - \mathrm{DSC} + \mathrm{UNC} + \text{remainder}

    Parameters
    ----------
    y : array_like of shape (n,)
        Binary outcomes.
    p : array_like of shape (n,), (n, 1) or (n, 2)
        Probabilities of the event.
    score : {"brier", "log"}, default "brier"
        Which score.
    method : {"corp", "bins"}, default "corp"
        "corp": MCB is what recalibration by isotonic regression gains, DSC what the recalibrated forecast gains
        over the constant event rate, UNC the score of that constant; nothing is left over, and nothing has to be
        chosen. "bins": Murphy's reliability, resolution and uncertainty of binned forecasts; what varies within
        bins is the remainder.
    bins : int or array_like of shape (B + 1,), default 10
        For ``method="bins"``: number of bins, or their edges from 0 to 1.
    strategy : {"equal_width", "equal_freq"}, default "equal_width"
        For ``method="bins"``: edges j / bins, or quantiles of type 8.
    eps : float, default 1e-15
        For ``score="log"``: probabilities are clipped to [eps, 1 - eps].
    freq_weights : array_like of shape (n,), optional
        Weight k counts as k copies of the row.
    event : label, optional
        The outcome that `p` is the probability of; needed for strings.
    classes : sequence of 2 labels, optional
        The class of each column of `p`; the second is the event.

    Returns
    -------
    Series
        ``score``, ``MCB``, ``DSC``, ``UNC`` and ``remainder`` (0 for "corp").

    Raises
    ------
    InputError
        If an argument is not as described; the message names it and the remedy.

    References
    ----------
    Dimitriadis, T., Gneiting, T. and Jordan, A. I. (2021). Stable reliability diagrams for probabilistic
    classifiers. PNAS 118. https://doi.org/10.1073/pnas.2016191118
    Murphy, A. H. (1973). A new vector partition of the probability score. Journal of Applied Meteorology 12.
    https://doi.org/10.1175/1520-0450(1973)012<0595:ANVPOT>2.0.CO;2
    Stephenson, D. B., Coelho, C. A. S. and Jolliffe, I. T. (2008). Two extra components in the Brier score
    decomposition. Weather and Forecasting 23. https://doi.org/10.1175/2007WAF2006116.1

    Examples
    --------
    >>> import calstat as cs
    >>> cs.score_decomposition([0, 1, 0, 1, 1], [0.1, 0.3, 0.4, 0.8, 0.9]).round(4)
    score        0.142
    MCB          0.042
    DSC          0.140
    UNC          0.240
    remainder    0.000
    dtype: float64

    Recalibration could lower the score by 0.042; the ranking of the rows lowers it by 0.14.
    """
    check_choice("score", score, ("brier", "log"))
    check_choice("method", method, ("corp", "bins"))
    eps = check_eps(eps)
    sample = read_event(y, p, freq_weights, event, classes)
    if method == "corp":
        parts = corp_decomposition(sample, score, eps)
    else:
        parts = bins_decomposition(sample, score, eps, bins, strategy)
    return pd.Series(
        {
            "score": parts.score,
            "MCB": parts.miscalibration,
            "DSC": parts.discrimination,
            "UNC": parts.uncertainty,
            "remainder": parts.remainder,
        }
    )


def adjust_prevalence(p: Any, train: ArrayLike, target: ArrayLike) -> Any:
    r"""
    Correct probabilities for a base rate that differs from that of the training data.

    .. math:: p'_k \propto p_k \, \frac{\text{target}_k}{\text{train}_k}

    This is exact when the classes look the same in both places and only their frequencies differ: non-events
    were undersampled, or another hospital has more patients with the disease.

    Parameters
    ----------
    p : array_like of shape (n,), or (n, K)
        Probabilities of the event; or of all classes, rows summing to 1.
    train : float, or array_like of shape (K,)
        Base rate of the event in the training data, strictly between 0 and 1; one rate per class for a matrix,
        positive, summing to 1.
    target : float, or array_like of shape (K,)
        Base rate where the probabilities will be used.

    Returns
    -------
    ndarray, Series or DataFrame
        Of the shape, and with the index and columns, of `p`. 0 and 1 stay what they are.

    Raises
    ------
    InputError
        If a rate or a probability is out of range, or the shapes do not fit.

    References
    ----------
    Saerens, M., Latinne, P. and Decaestecker, C. (2002). Adjusting the outputs of a classifier to new a priori
    probabilities. Neural Computation 14. https://doi.org/10.1162/089976602753284446
    Elkan, C. (2001). The foundations of cost-sensitive learning. IJCAI.

    Examples
    --------
    >>> import calstat as cs
    >>> cs.adjust_prevalence([0.1, 0.5, 0.9], train=0.5, target=0.02).round(4)
    array([0.0023, 0.02  , 0.1552])

    A score of 0.9 from a balanced training set means a risk of 16% where 2% of people are ill.
    """
    values = check_probabilities(as_float(p, "p"))
    if values.ndim == 2 and values.shape[1] > 1:
        ratio = _rates("target", target, values.shape[1]) / _rates("train", train, values.shape[1])
        raised = values * ratio
        result = raised / raised.sum(axis=1, keepdims=True)
    else:
        before, after = _rates("train", train, 1), _rates("target", target, 1)
        event, other = values * (after / before), (1 - values) * ((1 - after) / (1 - before))
        result = event / (event + other)
    if isinstance(p, pd.Series):
        return pd.Series(result, index=p.index, name=p.name)
    if isinstance(p, pd.DataFrame):
        return pd.DataFrame(result, index=p.index, columns=p.columns)
    return result


def _rates(name: str, rates: ArrayLike, size: int) -> FloatArray:
    """Check base rates: one number, or one for each of several classes."""
    values = as_float(rates, name)
    if values.shape != ((size,) if size > 1 else ()):
        wanted = f"one rate for each of the {size} columns" if size > 1 else "one number, the event's rate"
        raise InputError(f"`{name}` must be {wanted}; got shape {values.shape}.")
    if not (np.all(values > 0) and np.all(values < 1)):
        raise InputError(f"`{name}` must lie strictly between 0 and 1; got {rates!r}.")
    if size > 1 and abs(values.sum() - 1) > 1e-6:
        raise InputError(f"`{name}` must sum to 1; the sum is {values.sum():.6g}.")
    return values
