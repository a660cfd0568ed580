"""Isotonic regression by pooling adjacent violators, on scores whose ties are pooled first."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from calstat._typing import ArrayLike, FloatArray, IntArray

# Runs that do not increase are pooled whole, twice, before the rest is left to scipy: after that it gains no more.
_PASSES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PavFit:
    """A non-decreasing fit, constant on blocks of scores.

    Attributes
    ----------
    lower, upper : (M,) arrays
        Smallest and largest observed score of each block.
    value : (M,) array
        Fitted value (weighted mean outcome) of each block, increasing.
    count : (M,) array
        Sum of the weights (rows, without weights) of each block.
    thresholds, values : (T,) arrays
        The corners of the map: block ends, and the fitted values there. A block of one score has one corner.
    """

    lower: FloatArray
    upper: FloatArray
    value: FloatArray
    count: FloatArray
    thresholds: FloatArray
    values: FloatArray

    def predict(self, x: ArrayLike) -> FloatArray:
        """Return the map at `x`: linear between the corners, constant beyond the ends, NaN where x is NaN."""
        return interpolate(np.asarray(x, dtype=float), self.thresholds, self.values)


def explained_square(total: FloatArray, count: FloatArray) -> float:
    """Return the sum over rows of the squared isotonic fit to the rates ``total / count`` (M,) of ordered scores.

    The fit is constant on any stretch of rates that do not increase, so that such stretches are pooled at once.
    """
    for _ in range(_PASSES):
        rate = total / count
        start = np.concatenate(([0], np.flatnonzero(rate[1:] > rate[:-1]) + 1))
        total, count = np.add.reduceat(total, start), np.add.reduceat(count, start)
    return float(count @ isotonic_regression(total / count, weights=count).x ** 2)


def interpolate(x: FloatArray, thresholds: FloatArray, values: FloatArray) -> FloatArray:
    """Interpolate linearly between increasing `thresholds`, with constant ends.

    The position within a gap is formed before it meets the values, so a gap of one denormal number does no
    harm (``np.interp`` divides the rise by it and overflows).
    """
    if thresholds.size == 1:
        return np.where(np.isnan(x), np.nan, values[0])
    left = np.clip(np.searchsorted(thresholds, x, side="right") - 1, 0, thresholds.size - 2)
    low, high = thresholds[left], thresholds[left + 1]
    share = (np.clip(x, low, high) - low) / (high - low)
    return np.where(share == 1.0, values[left + 1], values[left] + share * (values[left + 1] - values[left]))


def pav(y: ArrayLike, x: FloatArray, weights: FloatArray | None = None) -> PavFit:
    """Fit outcomes (n,) in [0, 1] by a non-decreasing function of scores (n,).

    Rows with equal scores are pooled first, so their order cannot matter; rows of weight 0 are absent.
    """
    scores, total, count = pool_ties(np.asarray(y), x, weights)
    fit = isotonic_regression(total / count, weights=count)
    first = np.asarray(fit.blocks[:-1], dtype=np.intp)
    last = np.asarray(fit.blocks[1:], dtype=np.intp) - 1
    return fit_of_blocks(scores[first], scores[last], fit.x[first], np.asarray(fit.weights))


def fit_of_blocks(lower: FloatArray, upper: FloatArray, value: FloatArray, count: FloatArray) -> PavFit:
    """Return the map of blocks (M,): their ends, values and counts."""
    corner = np.ravel(np.column_stack((np.ones(lower.size, dtype=bool), upper > lower)))
    return PavFit(
        lower=lower,
        upper=upper,
        value=value,
        count=count,
        thresholds=np.ravel(np.column_stack((lower, upper)))[corner],
        values=np.repeat(value, 2)[corner],
    )


def smooth_blocks(fit: PavFit, events: FloatArray, extra: float) -> tuple[PavFit, FloatArray]:
    """Add `extra` events and as many non-events to every block, and pool again where that breaks the order.

    `events` (M,) are those of the blocks of `fit`; they come back for the blocks that remain.
    """
    padded = fit.count + 2.0 * extra
    pooled = isotonic_regression((events + extra) / padded, weights=padded)
    first = np.asarray(pooled.blocks[:-1], dtype=np.intp)
    last = np.asarray(pooled.blocks[1:], dtype=np.intp) - 1
    blocks = fit_of_blocks(fit.lower[first], fit.upper[last], pooled.x[first], np.add.reduceat(fit.count, first))
    return blocks, np.add.reduceat(events, first)


def window_sums(
    scores: FloatArray, total: FloatArray, count: FloatArray, at: FloatArray, size: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return events and rows of the `size` rows up to each point `at` (m,), and of those from it on.

    `scores`, `total` and `count` (M,) are what `pool_ties` gives. Tied rows are taken or left together, so a window
    may hold more rows than `size`; at the ends of the scores it holds fewer, or none.
    """
    rows, events = np.concatenate(([0.0], np.cumsum(count))), np.concatenate(([0.0], np.cumsum(total)))
    end = np.searchsorted(scores, at, side="right")
    begin = np.maximum(np.searchsorted(rows, rows[end] - size, side="right") - 1, 0)
    start = np.searchsorted(scores, at, side="left")
    stop = np.minimum(np.searchsorted(rows, rows[start] + size, side="left"), scores.size)
    return events[end] - events[begin], rows[end] - rows[begin], events[stop] - events[start], rows[stop] - rows[start]


def pool_ties(y: np.ndarray, x: FloatArray, weights: FloatArray | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return distinct scores in order, and the sums of ``w * y`` and of ``w`` at each."""
    if weights is not None:
        kept = weights > 0
        order = np.argsort(x[kept])
        scores, w = x[kept][order], weights[kept][order]
        outcome = w * y[kept][order]
    else:
        scores, outcome = sorted_pairs(y, x)
        w = None
    new = np.empty(scores.size, dtype=bool)
    new[:1] = True
    np.not_equal(scores[1:], scores[:-1], out=new[1:])
    if new.all():
        return scores, outcome, np.ones(scores.size) if w is None else w
    start: IntArray = np.flatnonzero(new)
    count = np.diff(start, append=scores.size).astype(float) if w is None else np.add.reduceat(w, start)
    return scores[start], np.add.reduceat(outcome, start), count


def sorted_pairs(y: np.ndarray, x: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sort scores, and outcomes with them; with 0/1 outcomes those of tied scores are in order as well.

    Non-negative doubles below 2 are ordered as their bit patterns are, and leave two bits free. A 0/1 outcome
    goes into one of them, and one plain sort of integers replaces argsort and two gathers.
    """
    event = y == 1
    if x.size == 0 or x.min() < 0 or x.max() >= 2 or not np.all(event | (y == 0)):
        order = np.argsort(x)
        return x[order], y[order].astype(float)
    key = (x + 0.0).view(np.int64)  # adding 0.0 copies, and turns -0.0 into 0.0
    key <<= 1
    key |= event
    key.sort()
    outcome = (key & 1).astype(float)
    key >>= 1
    return key.view(np.float64), outcome
