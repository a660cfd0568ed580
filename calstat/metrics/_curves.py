"""Smoothed calibration curves, and the bandwidth at which the smoothed error equals itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from patsy import cr
from scipy import fft, optimize, special
from statsmodels.nonparametric.smoothers_lowess import lowess

from calstat._arrays.logistic import fit_logistic
from calstat._arrays.math import clip_probabilities
from calstat._arrays.pav import pool_ties, sorted_pairs
from calstat._arrays.statistics import weighted_order_quantile
from calstat._input.validation import BinarySample, positive_weight_rows
from calstat._typing import FloatArray, Scale
from calstat.exceptions import InputError, SeparationWarning

Smoother: TypeAlias = Literal["lowess", "logistic", "spline"]

# Harrell's places for five knots (Regression Modeling Strategies, 2nd ed., table 2.3).
_KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
_LOGIT_EPS = 1e-15
# Cells of the grid for the smooth calibration error: 16,384 of them are 6e-5 wide, far below any bandwidth
# that the definition selects in practice.
_CELLS = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True)
class SmoothCurve:
    """A calibration curve at the distinct probabilities.

    `p`, `value` (the smoothed event rate) and `count` (sum of the weights) are (m,); the strings say how the
    curve was made. `se` (m,) is the standard error of the log odds of `value`, None for lowess, which has none.
    """

    p: FloatArray
    value: FloatArray
    count: FloatArray
    smoother: str
    scale: str
    se: FloatArray | None = None

    def quantile(self, q: float) -> float:
        """Return a quantile (type 7) over rows of the absolute difference of curve and diagonal."""
        return float(weighted_order_quantile(np.abs(self.value - self.p), np.array([q]), self.count)[0])

    def mean(self) -> float:
        """Return the mean over rows of the absolute difference of curve and diagonal."""
        return float(self.count @ np.abs(self.value - self.p) / self.count.sum())


def smooth_curve(sample: BinarySample, smoother: Smoother, scale: Scale | None) -> SmoothCurve:
    """Smooth outcomes over probabilities; rows of weight 0 are absent."""
    sample = positive_weight_rows(sample)
    if scale is None:
        scale = "probability" if smoother == "lowess" else "logit"
    p, events, count = pool_ties(sample.y, sample.p, sample.weights)
    if p.size == 1:
        return SmoothCurve(p=p, value=events / count, count=count, smoother="constant", scale=scale)
    x = p if scale == "probability" else special.logit(clip_probabilities(p, _LOGIT_EPS)[0])
    se = None
    if smoother == "lowess":
        value = _lowess(sample, x, events / count)
        name = "lowess (span 2/3, no robustness iterations, delta 1% of the range)"
    else:
        columns, name = _logistic_columns(x, count, smoother)
        fit = fit_logistic(columns, events / count, weights=count)
        value = special.expit(columns @ fit.params)
        se = np.sqrt(np.einsum("ij,jk,ik->i", columns, fit.covariance, columns))
        if fit.separated:
            warnings.warn(
                f"smoother='{smoother}' has no finite optimum: the probabilities separate the outcomes, or one outcome "
                "does not occur. The curve is drawn towards 0 and 1; use smoother='lowess'.",
                SeparationWarning,
                stacklevel=3,
            )
    return SmoothCurve(p=p, value=value, count=count, smoother=name, scale=scale, se=se)


def _lowess(sample: BinarySample, x: FloatArray, rate: FloatArray) -> FloatArray:
    """Return Cleveland's lowess at the distinct values x (m,), averaged over rows that share one."""
    y, p = sample.y, sample.p
    if sample.weights is not None:
        if np.any(sample.weights != np.round(sample.weights)):
            raise InputError(
                "smoother='lowess' counts neighbours, so `freq_weights` must be whole numbers; with other weights use "
                "smoother='logistic' or 'spline'."
            )
        copies = sample.weights.astype(np.int64)
        y, p = np.repeat(y, copies), np.repeat(p, copies)
    score, outcome = sorted_pairs(y, p)
    row = np.cumsum(np.diff(score, prepend=-1.0) > 0) - 1
    # Where all neighbours share one probability no line is determined (0 / 0): the rate there is the answer.
    with np.errstate(invalid="ignore", divide="ignore"):
        fitted = lowess(
            outcome,
            x[row],
            frac=2 / 3,
            it=0,
            delta=0.01 * (x[-1] - x[0]),
            is_sorted=True,
            return_sorted=False,
        )
    mean = np.bincount(row, weights=fitted) / np.bincount(row)
    return np.where(np.isfinite(mean), mean, rate)


def _logistic_columns(x: FloatArray, count: FloatArray, smoother: Smoother) -> tuple[FloatArray, str]:
    """Return the design of the curve on the logit scale, and its name: a line or a natural cubic spline."""
    knots = np.unique(weighted_order_quantile(x, np.array(_KNOTS), count))
    if smoother == "logistic" or min(knots.size, x.size) < 3:
        return np.column_stack((np.ones(x.size), x)), "logistic (a straight line on the logit scale)"
    basis = cr(x, knots=knots[1:-1], lower_bound=knots[0], upper_bound=knots[-1])
    return np.asarray(basis), f"spline (natural cubic, {knots.size} knots, logistic)"


def smooth_error(y: np.ndarray, r: FloatArray, weights: FloatArray | None = None) -> float:
    """Return the σ in (0, 1] at which the error smoothed with σ equals σ; 0 if there is no error at all."""
    residual = y - r if weights is None else weights * (y - r)
    spectrum = fft.dct(_on_grid(r, residual) / (r.size if weights is None else weights.sum()))
    if not spectrum.any():
        return 0.0
    frequency = np.pi * np.arange(_CELLS)

    def excess(sigma: float) -> float:
        damped = spectrum * np.exp(-0.5 * (frequency * sigma) ** 2)
        return float(np.abs(fft.idct(damped)).sum()) - sigma

    # The smoothed error never grows with σ, so there is one root; it is 1 when all is wrong with certainty.
    if excess(1.0) >= 0:
        return 1.0
    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-12))


def _on_grid(r: FloatArray, residual: FloatArray) -> FloatArray:
    """Share each residual between the two cells whose centres enclose its position, reflecting at 0 and 1."""
    place = r * _CELLS - 0.5
    left = np.floor(place).astype(np.int64)
    share = place - left
    grid = np.bincount(left + 1, residual * (1 - share), _CELLS + 2).astype(float)
    grid += np.bincount(left + 2, residual * share, _CELLS + 2)
    grid[1] += grid[0]
    grid[-2] += grid[-1]
    return grid[1:-1]
