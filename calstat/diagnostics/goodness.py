"""Goodness-of-fit tests: Hosmer-Lemeshow and Spiegelhalter."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from calstat._arrays import pseudo_labels, statistics
from calstat._arrays.binning import assign_bins, equal_freq_edges
from calstat._input.validation import (
    BinarySample,
    MulticlassSample,
    check_binary,
    check_choice,
    check_count,
    check_rng,
    check_sample,
    positive_weight_rows,
)
from calstat._results import CalibrationTest
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.exceptions import NotEstimableWarning

# Cochran's rule: below this expectation in a cell the chi-square law is not trusted.
_SMALL_CELL = 5.0


def spiegelhalter(
    y: ArrayLike, p: ArrayLike, *, freq_weights: ArrayLike | None = None, event: Label | None = None
) -> CalibrationTest:
    r"""
    Spiegelhalter's test of the Brier score, without bins.

    .. math:: z = \frac{\sum_i (y_i - p_i)(1 - 2 p_i)}{\sqrt{\sum_i (1 - 2 p_i)^2 p_i (1 - p_i)}}

    which is the Brier score less its mean under calibration, in units of its standard deviation there.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.

    Returns
    -------
    CalibrationTest
        z with its two-sided normal p-value; `details` hold the Brier score, its mean and its standard deviation under
        calibration. z is NaN, with the reason and one `NotEstimableWarning`, where every p is 0, 1/2 or 1: the
        score has no variance then. An outcome that p says is impossible makes z infinite in that case.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    The test sees whether predictions are too extreme or not extreme enough around 1/2; errors above and below 1/2
    can cancel, and those near p = 1/2 count for nothing.

    References
    ----------
    Spiegelhalter, D. J. (1986). Probabilistic prediction in patient management and clinical trials. Statistics in
    Medicine 5. https://doi.org/10.1002/sim.4780050506

    Examples
    --------
    >>> import calstat as cs
    >>> print(cs.spiegelhalter([0, 0, 1, 1], [0.2, 0.4, 0.6, 0.9]))
    Spiegelhalter (method: normal)
    H0: E[y | p] = p, by the Brier score
    z = -0.9820, p = 0.326, n = 4

    A positive z says that the Brier score is worse than p promises, a negative one that it is better.
    """
    sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
    result = statistics.spiegelhalter(sample.y, sample.p, sample.weights)
    note = None
    if np.isnan(result.z):
        note = "every p is 0, 1/2 or 1, so that the Brier score has no variance and z is undefined (0/0)"
        warnings.warn(f"Spiegelhalter: {note}.", NotEstimableWarning, stacklevel=2)
    return CalibrationTest(
        name="Spiegelhalter",
        null="E[y | p] = p, by the Brier score",
        statistic=result.z,
        pvalue=float(2 * stats.norm.sf(abs(result.z))),
        distribution="normal",
        method="normal",
        nobs=sample.nobs,
        details={"brier": result.brier, "brier_expected": result.expected, "brier_std": result.std},
        note=note,
    )


def hosmer_lemeshow(
    y: ArrayLike,
    p: ArrayLike,
    *,
    groups: int = 10,
    df: Literal["external", "internal"] = "external",
    grouping: Literal["quantile7", "equal_freq"] = "quantile7",
    method: Literal["chi2", "scaled_chi2", "pseudo_label"] | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    n_resamples: int = 9999,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Hosmer-Lemeshow test on groups of rows with similar p.

    .. math:: H = \sum_g \frac{(O_g - E_g)^2}{E_g} + \frac{(O_g - E_g)^2}{n_g - E_g}

    over the groups g, with O events among n rows and E = sum of p. For a matrix the sum of (O - E)^2 / E goes over
    groups and classes, and rows are grouped by their top label and its probability: the order of the classes does
    not matter.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,), (n, 1), (n, 2) or (n, K)
        Predicted probability of the event, or one column for each class.
    groups : int, default 10
        Number of groups asked for. Equal p share a group, so there may be fewer; the number realised is used. For
        K classes each top label has groups / K of them, at least two.
    df : {"external", "internal"}
        Degrees of freedom: the number of groups, for predictions that were not fitted on these rows; or less 2, for a
        logistic model assessed on its own training rows; for K classes times K - 1. Taking 2 off for external
        predictions, as many packages do, rejects about 10% of calibrated predictions at the 5% level.
    grouping : {"quantile7", "equal_freq"}
        Cut at the unique type-7 quantiles of p, groups closed on the right (R's usual rule), or the package's
        equal-frequency bins: type-8 quantiles, closed on the left.
    method : {"chi2", "scaled_chi2", "pseudo_label"}, optional
        Reference law: chi-square; chi-square scaled to the mean and the variance that the statistic has when labels are
        drawn from p; or the law of such labels by simulation. For external df the default is the third where a cell
        expects fewer than 5 rows, else the first for one event and the second for classes: there p differs much
        within a group, counts vary less than the first allows, and it rejects less than 1% at the 5% level.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    n_resamples : int, default 9999
        Draws for "pseudo_label".
    rng : None, int or numpy.random.Generator
        Source of randomness for "pseudo_label".

    Returns
    -------
    CalibrationTest
        `details` hold the table of groups, the chi-square p-value beside the one drawn, and the mean absolute gap. A
        group that expects no event (p = 0) adds nothing while it holds none, and makes the statistic infinite, with p
        = 0, when it does; so does a group with p = 1. With internal df and fewer than three groups, p is NaN with the
        reason and one `NotEstimableWarning`.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    The answer depends on the grouping, and with many rows a negligible gap is significant: the note gives the mean
    absolute gap next to the p-value.

    References
    ----------
    Hosmer, D. W., Lemeshow, S. (1980). Goodness of fit tests for the multiple logistic regression model.
    Communications in Statistics 9. https://doi.org/10.1080/03610928008827941
    Fagerland, M. W., Hosmer, D. W., Bofin, A. M. (2008). Multinomial goodness-of-fit tests for logistic regression
    models. Statistics in Medicine 27. https://doi.org/10.1002/sim.3202

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.05, 0.95, 500)
    >>> y = np.random.default_rng(5).random(500) < p
    >>> statistic, pvalue = cs.hosmer_lemeshow(y, p, groups=5)
    >>> pvalue > 0.05
    True

    A large p-value says that the gaps between observed and expected events are of the size that chance makes.
    """
    check_choice("df", df, ("external", "internal"))
    check_choice("grouping", grouping, ("quantile7", "equal_freq"))
    check_choice("method", method, (None, "chi2", "scaled_chi2", "pseudo_label"))
    count, n_resamples = check_count("groups", groups, 2), check_count("n_resamples", n_resamples)
    generator = check_rng(rng)
    sample = check_sample(y, p, freq_weights=freq_weights, event=event, classes=classes, integer_weights=True)
    grouped = _grouped(sample, count, grouping)
    statistic = float(grouped.statistic(grouped.observed))
    degrees: float = (grouped.nobs.size - (2 if df == "internal" else 0)) * (grouped.observed.shape[1] - 1)
    chi2 = float(stats.chi2.sf(statistic, degrees)) if degrees > 0 else np.nan
    gap = float(np.abs(grouped.observed - grouped.expected).sum() / grouped.observed.shape[1] / grouped.nobs.sum())
    details: dict[str, Any] = {"groups": grouped.frame(), "mean_absolute_gap": gap, "pvalue_chi2": chi2}
    notes = [f"{grouped.nobs.size} groups with a mean absolute gap of {gap:.4f}"]
    smallest = float(grouped.expected.min())
    if smallest < _SMALL_CELL:
        notes.append(f"the smallest cell expects {smallest:.2g} rows, too few for the chi-square law")
    chosen = method or _default_law(grouped, smallest, df)
    pvalue = chi2
    if chosen == "scaled_chi2":
        notes.append(f"the chi-square law with {degrees} df would give p = {chi2:.3g}, but rows of a group differ")
        degrees, pvalue = _scaled_law(grouped, statistic)
    elif chosen == "pseudo_label":
        place = pseudo_labels.monte_carlo(statistic, grouped.draws(n_resamples, generator))
        # An outcome that p says is impossible never occurs among the draws: the p-value is exactly 0.
        pvalue = 0.0 if np.isinf(statistic) else place.pvalue
        details |= {"mc_error": place.error, "n_resamples": n_resamples, "df": degrees}
        notes.append(f"labels were drawn from p; the chi-square law with {degrees} df would give p = {chi2:.3g}")
    elif degrees < 1:
        notes.append("fewer than three groups leave no degrees of freedom for df='internal'")
        warnings.warn(f"Hosmer-Lemeshow: {notes[-1]}.", NotEstimableWarning, stacklevel=2)
    what = "events are as frequent" if grouped.labels is None else "every class is as frequent"
    return CalibrationTest(
        name="Hosmer-Lemeshow",
        null=f"{what} as predicted in every group of p",
        statistic=statistic,
        pvalue=pvalue,
        df=None if chosen == "pseudo_label" else degrees,
        distribution={"chi2": "chi2", "scaled_chi2": "scaled chi2"}.get(chosen, "pseudo-label"),
        method=chosen,
        nobs=sample.nobs,
        details=details,
        note="; ".join(notes),
    )


def _default_law(grouped: _Groups, smallest: float, df: str) -> str:
    if df == "internal":
        return "chi2"
    if smallest < _SMALL_CELL:
        return "pseudo_label"
    return "chi2" if grouped.labels is None else "scaled_chi2"


def _scaled_law(grouped: _Groups, statistic: float) -> tuple[float, float]:
    """Degrees of freedom and p-value of the chi-square law with the mean and the variance of the statistic."""
    mean, variance = grouped.moments()
    if variance <= 0:  # every p is 0 or 1: counts do not vary, and only 0 is possible
        return 0.0, float(statistic == 0)
    degrees = 2 * mean**2 / variance
    return degrees, float(stats.chi2.sf(statistic * degrees / mean, degrees))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """Rows, repeated by their weights, in G groups: `P` (N, K) and `index` (N,); binary data have K = 2.

    `lower`, `upper`, `nobs` (G,); `top` (G,), the column of the top label, K where two are; `observed` and `expected`
    (G, K); `labels` of the classes, None if binary.
    """

    P: FloatArray
    index: IntArray
    lower: FloatArray
    upper: FloatArray
    top: IntArray
    nobs: FloatArray
    observed: FloatArray
    expected: FloatArray
    labels: tuple[Label, ...] | None

    def statistic(self, observed: FloatArray) -> FloatArray:
        """Pearson's statistic of counts (..., G, K)."""
        return statistics.pearson(observed, self.expected, self.nobs[:, None]).sum(axis=-1)

    def moments(self) -> tuple[float, float]:
        """Mean and variance of the statistic when labels are drawn from P, of normal counts with the exact covariance.

        Counts of a group have covariance V = diag(E) - P'P, so that their part of the statistic has mean tr(V / E) and
        variance 2 tr((V / E)^2).
        """
        mean, variance = 0.0, 0.0
        order = np.argsort(self.index, kind="stable")
        ends = np.cumsum(np.bincount(self.index))
        for rows, expected in zip(np.split(order, ends[:-1]), self.expected, strict=True):
            P = self.P[rows]
            part = (np.diag(expected) - P.T @ P) / np.where(expected > 0, expected, 1.0)
            mean += float(np.trace(part))
            variance += float(2 * np.einsum("ij,ji->", part, part))
        return mean, variance

    def draws(self, n_resamples: int, rng: np.random.Generator) -> FloatArray:
        """Statistics (B,) of labels drawn from P, groups held fixed."""
        G, K = self.observed.shape
        if K == 2:
            events = pseudo_labels.bin_counts(self.P[:, 1], self.index, G, n_resamples, rng)
            return self.statistic(np.stack([self.nobs - events, events], axis=-1))
        cells = self.index[:, None] * K + np.arange(K)
        blocks = pseudo_labels.cell_counts(self.P, cells, G * K, n_resamples, rng)
        return np.concatenate([self.statistic(block.reshape(-1, G, K)) for block in blocks])

    def frame(self) -> pd.DataFrame:
        """Return the table of groups."""
        columns: dict[str, Any] = {"lower": self.lower, "upper": self.upper, "nobs": self.nobs}
        if self.labels is None:
            return pd.DataFrame(columns | {"observed": self.observed[:, 1], "expected": self.expected[:, 1]})
        names = [*map(str, self.labels), "several"]
        columns = {"top_label": [names[k] for k in self.top], **columns}
        for k, label in enumerate(self.labels):
            columns |= {f"observed[{label}]": self.observed[:, k], f"expected[{label}]": self.expected[:, k]}
        return pd.DataFrame(columns)


def _grouped(sample: BinarySample | MulticlassSample, groups: int, grouping: str) -> _Groups:
    """Group rows by the probability of the event, or by the top label and its probability."""
    rows = np.repeat(np.arange(sample.y.size), statistics.counts(sample.y.size, sample.weights).astype(np.int64))
    p = sample.p[rows]
    if isinstance(sample, BinarySample):
        P, score, top = np.stack([1 - p, p], axis=1), p, np.zeros(p.size, dtype=np.int64)
    else:
        P, score = p, p.max(axis=1)
        # Rows with two top labels are a kind of their own: which column comes first must not matter.
        top = np.where((p == score[:, None]).sum(axis=1) == 1, p.argmax(axis=1), p.shape[1])
        groups = max(2, round(groups / p.shape[1]))
    K = P.shape[1]
    index, first = np.empty(p.shape[0], dtype=np.int64), 0
    lower, upper, labels = [], [], []
    for label in np.unique(top):
        own = np.flatnonzero(top == label)
        edges, place = _cut(score[own], groups, grouping)
        used, place = np.unique(place, return_inverse=True)
        index[own] = first + place
        first += used.size
        lower.append(edges[:-1][used])
        upper.append(edges[1:][used])
        labels += [label] * used.size
    observed = np.bincount(index * K + sample.y[rows].astype(np.int64), minlength=first * K)
    expected = np.stack([np.bincount(index, weights=column) for column in P.T], axis=1).astype(np.float64)
    return _Groups(
        P=P,
        index=index,
        lower=np.concatenate(lower),
        upper=np.concatenate(upper),
        top=np.array(labels),
        nobs=np.bincount(index).astype(np.float64),
        observed=observed.reshape(-1, K).astype(np.float64),
        expected=expected,
        labels=None if isinstance(sample, BinarySample) else sample.classes,
    )


def _cut(score: FloatArray, groups: int, grouping: str) -> tuple[FloatArray, IntArray]:
    """Edges of groups of about equal size, and the group of each row."""
    if grouping == "quantile7":
        return statistics.quantile_groups(score, groups)
    edges = equal_freq_edges(score, groups)
    return edges, assign_bins(score, edges)
