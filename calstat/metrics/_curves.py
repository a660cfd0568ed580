"""Smoothed calibration curves, and the bandwidth at which the smoothed error equals itself."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from patsy import cr
from scipy import fft, special
from statsmodels.nonparametric.smoothers_lowess import lowess

from calstat._arrays.logistic import fit_logistic
from calstat._arrays.math import clip_probabilities
from calstat._arrays.pav import pool_ties
from calstat._arrays.smooth_intervals import CurveCells, KernelCells, fixed_bandwidth
from calstat._arrays.statistics import weighted_order_quantile
from calstat._input.validation import BinarySample, positive_weight_rows
from calstat._typing import FloatArray, IntArray, Scale
from calstat.exceptions import InputError, SeparationWarning

Smoother: TypeAlias = Literal["lowess", "logistic", "spline"]

# Harrell's places for five knots (Regression Modeling Strategies, 2nd ed., table 2.3).
_KNOTS = (0.05, 0.275, 0.5, 0.725, 0.95)
_LOGIT_EPS = 1e-15
_SPAN = 2 / 3
# Cells of the grid for the smooth calibration error: 16,384 of them are 6e-5 wide, far below any bandwidth
# that the definition selects in practice.
_CELLS = 1 << 14

# For intervals neighbours are joined in cells: at most a 32nd of the rows over at most a 32nd of the range. The
# smoother is taken from as many rows, spread evenly; with a span of 2/3 it changes little from cell to cell.
_CURVE_CELLS = 32
_CURVE_ROWS = 2000
# Four cells in a bandwidth change the variance of the kernel by half a percent.
_PER_BANDWIDTH = 4
_GRID_CELLS = (64, 1024)


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
        value = _lowess(sample, x, events / count, count)
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


def _lowess(sample: BinarySample, x: FloatArray, rate: FloatArray, count: FloatArray) -> FloatArray:
    """Return Cleveland's lowess at x (m,), from the event rate and the number of rows at each."""
    if sample.weights is not None and np.any(sample.weights != np.round(sample.weights)):
        raise InputError(
            "smoother='lowess' counts neighbours, so `freq_weights` must be whole numbers; with other weights use "
            "smoother='logistic' or 'spline'."
        )
    copies = count.astype(np.int64)
    return _local_lines(np.repeat(rate, copies), np.repeat(x, copies))[np.cumsum(copies) - 1]


def _local_lines(outcome: FloatArray, x: FloatArray) -> FloatArray:
    """Return Cleveland's lowess at sorted x (n,); where all neighbours share one x, the mean outcome of the tie."""
    tie = np.cumsum(np.diff(x, prepend=-np.inf) > 0) - 1
    count = np.bincount(tie)
    # No line depends on how outcomes are spread over a tie: its rows weigh the same, or nothing if a window cuts it.
    outcome = (np.bincount(tie, outcome) / count)[tie]
    with np.errstate(invalid="ignore", divide="ignore"):
        fitted = np.array(
            lowess(outcome, x, frac=_SPAN, it=0, delta=0.01 * (x[-1] - x[0]), is_sorted=True, return_sorted=False)
        )
    # A window without width determines no line. What statsmodels makes of it depends on its version; if it is NaN, so
    # is what was interpolated towards it. A tie that `delta` skips has most of the rows, and must not hang on the
    # outcome of a row beside it.
    flat = (count >= max(int(_SPAN * x.size + 1e-10), 2))[tie]
    fitted[flat] = outcome[flat]
    known = np.isfinite(fitted)
    return fitted if known.all() else np.interp(x, x[known], fitted[known])


def curve_cells(sample: BinarySample, share: float | None) -> CurveCells:
    """Return the lowess smoother of a sample on cells of neighbours; `share` is the quantile of the error, or None."""
    sample = positive_weight_rows(sample)
    p, events, count = pool_ties(sample.y, sample.p, sample.weights)
    total = count.sum()
    middle = (np.cumsum(count) - count / 2) / total
    width = max(float(p[-1] - p[0]), np.finfo(float).tiny)
    ranks = np.floor(np.stack((_CURVE_CELLS * middle, _CURVE_CELLS * ((p - p[0]) / width))))
    starts = np.concatenate(([0], np.flatnonzero((np.diff(ranks) != 0).any(axis=0)) + 1))
    cell = np.repeat(np.arange(starts.size), np.diff(starts, append=p.size))
    rows = np.add.reduceat(count, starts)
    return CurveCells(
        count=rows,
        mean_p=(np.add.reduceat(p * count, starts) / rows).clip(0, 1),
        events=np.add.reduceat(events, starts),
        smoother=_cell_smoother(p, count, cell, starts),
        share=share,
    )


def _cell_smoother(p: FloatArray, count: FloatArray, cell: IntArray, starts: IntArray) -> FloatArray:
    """Return the curve (C, C) at each cell that an event rate of 1 in one cell and 0 elsewhere has."""
    ends, total = np.cumsum(count), int(count.sum())
    taken = min(total, _CURVE_ROWS)
    row = np.searchsorted(ends, (np.arange(taken) + 0.5) * (total / taken), side="right")
    missed = starts[np.bincount(cell[row], minlength=starts.size) == 0]
    row = np.sort(np.concatenate((row, missed)))
    x, home = p[row], cell[row]
    inside = np.bincount(home)
    smoother = np.empty((starts.size, starts.size))
    for c in range(starts.size):
        smoother[:, c] = np.bincount(home, _local_lines((home == c).astype(np.float64), x)) / inside
    return smoother


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
    return fixed_bandwidth(fft.dct(_on_grid(r, residual) / (r.size if weights is None else weights.sum())))


def kernel_cells(y: np.ndarray, r: FloatArray, weights: FloatArray | None = None) -> KernelCells:
    """Return residuals on a grid that is fine for the bandwidth at which the error smoothed with it equals it."""
    bandwidth = smooth_error(y, r, weights)
    fewest, most = _GRID_CELLS
    size = int(np.clip(np.ceil(_PER_BANDWIDTH / max(bandwidth, _PER_BANDWIDTH / most)), fewest, most))
    place = np.minimum((r * size).astype(np.int64), size - 1)
    w = np.ones(r.size) if weights is None else weights
    count, score, events = (np.bincount(place, v, size).astype(np.float64) for v in (w, w * r, w * y))
    used = np.flatnonzero(count)
    return KernelCells(
        count=count[used],
        mean_p=(score[used] / count[used]).clip(0, 1),
        events=events[used],
        place=used,
        size=size,
        bandwidth=bandwidth,
    )


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
