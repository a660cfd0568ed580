"""The calibration belt: a polynomial of the log odds, its test, and the confidence band that inverts the test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import optimize, special, stats

from calstat import plots
from calstat._arrays.logistic import LogisticFit, fit_logistic, profile_interval
from calstat._arrays.math import clip_probabilities
from calstat._arrays.statistics import log_likelihood
from calstat._input.validation import (
    BinarySample,
    check_binary,
    check_choice,
    check_count,
    check_eps,
    check_fraction,
    positive_weight_rows,
)
from calstat._results import CalibrationTest, format_pvalue
from calstat._typing import ArrayLike, FloatArray, Label
from calstat.exceptions import InputError, NotEstimableWarning

_HIGHEST_DEGREE = 4
_POINTS = 26
# Above this many rows the likelihood is quadratic over the region to within the width of a line.
_QUADRATIC = 20_000
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(64)
_STEPS, _STEP_WEIGHTS = (_NODES + 1) / 2, _NODE_WEIGHTS / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationBelt:
    """
    A calibration belt with the test that it inverts; made by `calibration_belt`.

    Attributes
    ----------
    test : CalibrationTest
        Likelihood ratio of the polynomial against the identity, with the law that allows for the choice of degree.
    degree : int
        Degree of the polynomial in logit p.
    params : ndarray of shape (degree + 1,)
        Its coefficients, the constant first; (0, 1, 0, ...) is calibrated.
    bands : pandas.DataFrame
        Indexed by p, with two columns for each confidence level: ``low_0.8``, ``high_0.8`` and so on.
    levels : tuple of float
        The confidence levels, rising.
    histogram : tuple of ndarray
        Edges and counts of the predictions.
    """

    test: CalibrationTest
    degree: int
    params: FloatArray
    bands: pd.DataFrame
    levels: tuple[float, ...]
    histogram: tuple[FloatArray, FloatArray]

    def departures(self) -> pd.DataFrame:
        """
        Return where the belt leaves the diagonal.

        Returns
        -------
        pandas.DataFrame
            One row for each level and stretch of p: columns level, side ("above": events more frequent than
            predicted, or "below"), lower, upper. The ends are points at which the belt is known.
        """
        p = self.bands.index.to_numpy(dtype=float)
        rows = []
        for level in self.levels:
            low, high = self._band(level)
            for side, outside in (("above", low > p), ("below", high < p)):
                ends = np.flatnonzero(np.diff(np.concatenate(([False], outside, [False]))))
                rows += [(level, side, p[a], p[b - 1]) for a, b in zip(ends[::2], ends[1::2], strict=True)]
        return pd.DataFrame(rows, columns=["level", "side", "lower", "upper"])

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the belt.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
        """
        p = self.bands.index.to_numpy(dtype=float)
        bands = [(level, *self._band(level)) for level in self.levels]
        p_text = format_pvalue(self.test.pvalue)
        p_text = f"p {p_text}" if p_text.startswith("<") else f"p = {p_text}"
        title = f"Calibration belt of degree {self.degree}\n{p_text} (H0: calibrated)"
        return plots.calibration_belt(p, bands, histogram=self.histogram, title=title, ax=ax)

    def _band(self, level: float) -> tuple[FloatArray, FloatArray]:
        return self.bands[f"low_{level:g}"].to_numpy(), self.bands[f"high_{level:g}"].to_numpy()

    def __str__(self) -> str:
        lines = [str(self.test), f"Degree of the polynomial in logit p: {self.degree}"]
        for level, side, lower, upper in self.departures().itertuples(index=False):
            meaning = "more" if side == "above" else "less"
            lines.append(
                f"{100 * level:g}% belt {side} the diagonal for p from {lower:.3g} to {upper:.3g}: "
                f"events {meaning} frequent than predicted"
            )
        return "\n".join(lines)

    __repr__ = __str__


def calibration_belt(
    y: ArrayLike,
    p: ArrayLike,
    *,
    levels: tuple[float, ...] = (0.8, 0.95),
    max_degree: int = 4,
    threshold: float = 0.95,
    df: Literal["external", "internal"] = "external",
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    eps: float = 1e-15,
) -> CalibrationBelt:
    r"""
    Calibration belt: a band for the calibration curve that comes with a test of calibration.

    The curve is :math:`\operatorname{logit} q = \sum_{j=0}^m b_j (\operatorname{logit} p)^j`. Its degree m
    grows from 1 while the likelihood ratio of one more term exceeds the `threshold` quantile of its
    chi-square law.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    levels : tuple of float, default (0.8, 0.95)
        Confidence levels of the nested bands.
    max_degree : int, default 4
        Highest degree, at most 4.
    threshold : float, default 0.95
        Confidence needed for one more degree.
    df : {"external", "internal"}, default "external"
        "external": predictions that were not fitted on these rows. "internal": those of a logistic regression that
        was, whose straight line is the identity by construction; the degree then starts at 2.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    eps : float, default 1e-15
        p is clipped to [eps, 1 - eps] before the logit.

    Returns
    -------
    CalibrationBelt
        It prints; ``plot()`` draws it. Where the polynomial has no finite fit (one outcome only, outcomes
        separated by p, fewer distinct p than coefficients) the test and the belt are NaN, with the reason and one
        `NotEstimableWarning`.

    Raises
    ------
    InputError
        For a bad argument.

    Notes
    -----
    Given that m was chosen, twice the log likelihood ratio T against the identity is a chi-square variable with
    2 degrees of freedom (1 if internal) plus one for each step taken, with 1 degree of freedom and conditioned to
    exceed the threshold. The belt at a level is the range of the curve over all coefficients whose likelihood
    ratio stays below that quantile of T: if the level's belt contains the whole diagonal, the test does not
    reject at one minus the level. Above 20,000 rows the likelihood is taken as quadratic in that region.

    References
    ----------
    Nattino, G., Finazzi, S. and Bertolini, G. (2014). A new calibration test and a reappraisal of the calibration belt
    for the assessment of prediction models based on dichotomous outcomes. Statistics in Medicine 33.
    https://doi.org/10.1002/sim.6100

    Examples
    --------
    >>> import calstat as cs
    >>> df = cs.datasets.load_heart_disease()
    >>> print(cs.calibration_belt(df["disease"], df["p_logistic"]))
    Calibration belt (method: lr)
    H0: ...
    statistic = 5.2722, p = 0.072 (chi2 given the chosen degree reference), n = 297
    Degree of the polynomial in logit p: 1
    80% belt above the diagonal for p from ...

    The narrower belt leaves the diagonal at the ends, the wider one does not.
    """
    check_choice("df", df, ("external", "internal"))
    threshold, eps = check_fraction("threshold", threshold), check_eps(eps)
    first = 1 if df == "external" else 2
    highest = check_count("max_degree", max_degree, minimum=first, maximum=_HIGHEST_DEGREE)
    if not levels:
        raise InputError("`levels` must hold at least one confidence level.")
    known = tuple(sorted(check_fraction("levels", level) for level in levels))
    sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
    clipped, _ = clip_probabilities(sample.p, eps)
    columns = [special.logit(clipped) ** power for power in range(highest + 1)]
    fit, degree = _choose(columns, sample, first, stats.chi2.isf(1 - threshold, 1))
    grid = _grid(clipped)
    counts, edges = np.histogram(sample.p, bins=50, range=(0.0, 1.0), weights=sample.weights)
    steps = degree - first
    test = _test(fit, sample, clipped, 3 - first, steps, threshold)
    bands: dict[str, FloatArray] = {}
    for level in known:
        limit = null_quantile(1 - level, 3 - first, steps, threshold)
        low, high = _envelope(columns[: degree + 1], sample, fit, grid, limit)
        bands |= {f"low_{level:g}": low, f"high_{level:g}": high}
    return CalibrationBelt(
        test=test,
        degree=degree,
        params=fit.params,
        bands=pd.DataFrame(bands, index=pd.Index(grid, name="p")),
        levels=known,
        histogram=(edges, counts.astype(np.float64)),
    )


def _choose(columns: list[FloatArray], sample: BinarySample, first: int, needed: float) -> tuple[LogisticFit, int]:
    """Fit polynomials while one more degree raises the likelihood by enough; give the last fit and its degree."""

    def fit_of(degree: int) -> LogisticFit:
        return fit_logistic(columns[: degree + 1], sample.y, weights=sample.weights)

    degree, fit = first, fit_of(first)
    while degree + 1 < len(columns):
        wider = fit_of(degree + 1)
        if not _usable(wider) or 2 * (wider.llf - fit.llf) <= needed:
            break
        degree, fit = degree + 1, wider
    return fit, degree


def _usable(fit: LogisticFit) -> bool:
    return fit.converged and not fit.separated and fit.rank == fit.params.size


def _test(
    fit: LogisticFit, sample: BinarySample, p: FloatArray, df: int, steps: int, threshold: float
) -> CalibrationTest:
    """Compare the polynomial with the identity."""
    statistic, note = np.nan, None
    if _usable(fit):
        statistic = max(0.0, 2 * (fit.llf - log_likelihood(sample.y, p, sample.weights)))
    else:
        note = "the polynomial has no finite fit: one outcome only, outcomes separated by p, or too few distinct p"
        warnings.warn(f"Calibration belt: {note}.", NotEstimableWarning, stacklevel=3)
    return CalibrationTest(
        name="Calibration belt",
        null="the log odds of the event are logit p, against a polynomial of logit p",
        statistic=statistic,
        pvalue=null_sf(statistic, df, steps, threshold),
        distribution="chi2 given the chosen degree",
        method="lr",
        nobs=sample.nobs,
        note=note,
    )


def null_sf(t: float, df: int, steps: int, threshold: float) -> float:
    """Tail at t of chi2(df) plus `steps` chi2(1), each conditioned to exceed its `threshold` quantile."""
    if np.isnan(t):
        return np.nan
    return float(_tail(np.array([t]), df, steps, float(stats.chi2.isf(1 - threshold, 1)))[0])


def _tail(t: FloatArray, df: int, steps: int, least: float) -> FloatArray:
    """Tail of the sum at t (m,): each conditioned term is the square of a normal x beyond sqrt(least)."""
    if steps == 0:
        return np.asarray(stats.chi2.sf(t, df))
    root = np.sqrt(least)
    # Beyond `last` the square alone, with the least that the other terms can be, exceeds t.
    last = np.sqrt(np.maximum(t - (steps - 1) * least, least))
    # The tail of chi2(1) starts like a root: squared steps from `last` make the integrand smooth.
    x = last[:, None] - (last - root)[:, None] * _STEPS**2
    inner = _tail((t[:, None] - x**2).ravel(), df, steps - 1, least).reshape(x.shape)
    inside = (last - root) * ((inner * stats.norm.pdf(x)) @ (2 * _STEPS * _STEP_WEIGHTS))
    return np.asarray(np.minimum((inside + stats.norm.sf(last)) / stats.norm.sf(root), 1.0))


def null_quantile(tail: float, df: int, steps: int, threshold: float) -> float:
    """Return the value that the sum of `null_sf` exceeds with probability `tail`."""
    least = steps * float(stats.chi2.isf(1 - threshold, 1))
    # Each conditioned term lies below the chi2(1) quantile at tail times the chance of its condition.
    most = stats.chi2.isf(tail / (steps + 1), df) + steps * stats.chi2.isf(tail * (1 - threshold) / (steps + 1), 1)
    return float(optimize.brentq(lambda t: null_sf(t, df, steps, threshold) - tail, least, 1.01 * most, xtol=1e-10))


def _grid(p: FloatArray) -> FloatArray:
    """Points between the extreme predictions, even in p and even in logit p."""
    low, high = float(p.min()), float(p.max())
    even = np.linspace(low, high, _POINTS)
    inner = special.expit(np.linspace(special.logit(low), special.logit(high), _POINTS)[1:-1])
    return np.unique(np.concatenate((even, np.clip(inner, low, high))))


def _envelope(
    columns: list[FloatArray], sample: BinarySample, fit: LogisticFit, grid: FloatArray, limit: float
) -> tuple[FloatArray, FloatArray]:
    """Range of the curve at the points of `grid` over coefficients with a likelihood ratio of at most `limit`."""
    if not _usable(fit):
        return np.full(grid.size, np.nan), np.full(grid.size, np.nan)
    rows = special.logit(grid)[:, None] ** np.arange(len(columns))
    if sample.y.size > _QUADRATIC:
        half = np.sqrt(limit * np.einsum("ij,jk,ik->i", rows, fit.covariance, rows))
        return special.expit(rows @ fit.params - half), special.expit(rows @ fit.params + half)
    # The extremes of a linear form over a likelihood region are its profile limits at that fall of the likelihood.
    alpha = float(stats.chi2.sf(limit, 1))
    ends = [profile_interval(columns, sample.y, row, fit, alpha, weights=sample.weights) for row in rows]
    low, high = special.expit(np.array(ends)).T
    return low, high


__all__ = ["CalibrationBelt", "calibration_belt"]
