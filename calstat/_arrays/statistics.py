"""Test statistics of calibration as functions of plain arrays.

``y`` holds 0 and 1, ``p`` probabilities, ``weights`` counts of repeated rows (None for one each). Nothing here
checks its input or knows a name: that is done above.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from calstat._typing import FloatArray, IntArray

# A residual variance below this share of what full-sized terms would give is rounding noise: a true 0/0.
DEGENERATE = 1e-24


@dataclass(frozen=True, slots=True, kw_only=True)
class BrierTest:
    """Spiegelhalter's comparison of the Brier score with its law under calibration.

    Attributes
    ----------
    z : float
        Standardised difference; NaN where every p is 0, 1/2 or 1, so that the score does not vary.
    brier, expected, std : float
        Mean score, its mean and its standard deviation when the labels are draws from p.
    """

    z: float
    brier: float
    expected: float
    std: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Concordance:
    """Probability that an event outranks a non-event.

    Attributes
    ----------
    estimate : float
        C statistic, ties counted half.
    variance : float
        DeLong's variance; NaN with fewer than two events or two non-events.
    events, others : float
        Number of events and of non-events.
    """

    estimate: float
    variance: float
    events: float
    others: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedErrors:
    """Squared binned calibration errors of two forecasts of the same rows.

    Attributes
    ----------
    first, second : float
        Unbiased estimates; they may be negative.
    se : float
        Standard error of their difference.
    """

    first: float
    second: float
    se: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _BinnedError:
    """One of the two: its estimate, row parts and centred residuals (n,), variance of the pairs, pair weights (B,)."""

    estimate: float
    rows: FloatArray
    centred: FloatArray
    pairs: float
    weight: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreTest:
    """A score statistic at the null.

    Attributes
    ----------
    statistic : float
        U' I^- U.
    rank : int
        Rank of the information: the degrees of freedom.
    score : ndarray of shape (k,)
        U, the gradient of the log likelihood at the null.
    factor : ndarray of shape (k, rank)
        A matrix F with F F' = I^-, so that the statistic is the squared length of F' U.
    """

    statistic: float
    rank: int
    score: FloatArray
    factor: FloatArray


def counts(n: int, weights: FloatArray | None) -> FloatArray:
    """Give the number of copies of each of n rows."""
    return np.ones(n) if weights is None else weights


def spiegelhalter(y: FloatArray, p: FloatArray, weights: FloatArray | None = None) -> BrierTest:
    """Compare the Brier score with its mean and standard deviation when the labels are draws from p."""
    w = counts(y.size, weights)
    total = w.sum()
    variance = p * (1 - p)
    spread = float(w @ ((1 - 2 * p) ** 2 * variance))
    numerator = float(w @ ((y - p) * (1 - 2 * p)))
    # p = 0 with an event is an impossible outcome, not a 0/0: the statistic is infinite.
    if spread > DEGENERATE * total:
        z = numerator / np.sqrt(spread)
    else:
        z = np.inf if abs(numerator) > np.sqrt(DEGENERATE) * total else np.nan
    return BrierTest(
        z=float(z),
        brier=float(w @ (y - p) ** 2 / total),
        expected=float(w @ variance / total),
        std=float(np.sqrt(spread) / total),
    )


def paired_squared_errors(
    outcome: tuple[FloatArray, FloatArray],
    p: tuple[FloatArray, FloatArray],
    index: tuple[IntArray, IntArray],
    weights: FloatArray | None = None,
) -> PairedErrors:
    """Estimate the squared binned errors of two forecasts without bias, and the standard error of their difference.

    `outcome`, `p` and the bin `index` are pairs of (n,). Each estimate is a mean of e_i e_j over pairs of rows of a
    bin. The variance is that of the row parts 2 g e - g^2 (g the gap of the bin), which vanishes when both are
    calibrated, and that of the pairs, which remains, less what pairs of rows that share both bins have in common.
    """
    w = counts(p[0].size, weights)
    total = float(w.sum())
    one, two = (_binned_error(y, q, b, w) for y, q, b in zip(outcome, p, index, strict=True))
    joint, cell = np.unique(index[0] * two.weight.size + index[1], return_inverse=True)
    shared = np.bincount(cell, weights=w * one.centred * two.centred)
    common = shared**2 @ (one.weight[joint // two.weight.size] * two.weight[joint % two.weight.size])
    difference = one.rows - two.rows
    rows = float(w @ (difference - w @ difference / total) ** 2) / total**2
    pairs = 2 * max(one.pairs + two.pairs - 2 * float(common), 0.0) / total**2
    return PairedErrors(first=one.estimate, second=two.estimate, se=float(np.sqrt(rows + pairs)))


def _binned_error(y: FloatArray, p: FloatArray, b: IntArray, w: FloatArray) -> _BinnedError:
    e = y - p
    m, difference, square, variance = (np.bincount(b, weights=v) for v in (w, w * e, w * e**2, w * p * (1 - p)))
    # A bin of one row holds no pair.
    weight = np.where(m > 1, 1 / np.maximum(m - 1, 1), 0.0)
    gap = difference / np.maximum(m, 1)
    # Residuals are not taken to vary less than under calibration: a bin without events would not seem to vary.
    spread = np.maximum((square - m * gap**2) * m * weight, variance)
    return _BinnedError(
        estimate=float((difference**2 - square) @ weight / w.sum()),
        rows=2 * gap[b] * e - gap[b] ** 2,
        centred=e - gap[b],
        pairs=float((spread * weight) ** 2 @ (1 - 1 / np.maximum(m, 1))),
        weight=weight,
    )


def weighted_order_quantile(p: FloatArray, q: FloatArray, weights: FloatArray | None) -> FloatArray:
    """Type-7 quantiles of the sample in which row i occurs ``weights[i]`` times."""
    order = np.argsort(p, kind="stable")
    reached = np.cumsum(counts(p.size, weights)[order])
    position = (reached[-1] - 1) * q
    below = np.floor(position)
    # Ranks are counted from 0; the guard keeps a position of 2.9999999996 at rank 3, where it belongs.
    below = np.where(position - below > 1 - 1e-9, below + 1, below)
    share = np.clip(position - below, 0, None)
    values = p[order]
    last = p.size - 1
    low = values[np.minimum(np.searchsorted(reached, below, side="right"), last)]
    high = values[np.minimum(np.searchsorted(reached, below + 1, side="right"), last)]
    return np.where(low == high, low, (1 - share) * low + share * high)


def quantile_groups(p: FloatArray, groups: int, weights: FloatArray | None = None) -> tuple[FloatArray, IntArray]:
    """Group rows as R's ``cut`` on the unique type-7 quantiles: closed on the right, the lowest value included.

    Returns the edges, of shape (G + 1,), and the group of each row. Equal values share a group, so G may be
    smaller than asked for; one single value makes one group.
    """
    edges = np.unique(weighted_order_quantile(p, np.arange(groups + 1) / groups, weights))
    if edges.size == 1:
        return np.repeat(edges, 2), np.zeros(p.size, dtype=np.int64)
    return edges, np.searchsorted(edges[1:-1], p, side="left").astype(np.int64)


def pearson(observed: FloatArray, expected: FloatArray, nobs: FloatArray) -> FloatArray:
    """Sum (O - E)^2 / E over cells (last axis) of groups with `nobs` rows.

    A cell that expects nothing and holds nothing adds 0; one that expects nothing and holds something makes the
    statistic infinite.
    """
    difference = observed - expected
    # Sums of products such as 7 * (1 - 1) may leave 1e-16 behind, and 1e-32 / 1e-16 must not count.
    noise = 1e-12 * np.maximum(nobs, 1)
    empty = np.broadcast_to(expected <= noise, difference.shape)
    term = np.divide(difference**2, expected, out=np.zeros_like(difference), where=~empty)
    return np.where(empty & (np.abs(difference) > noise), np.inf, term).sum(axis=-1)


def concordance(y: FloatArray, p: FloatArray, weights: FloatArray | None = None) -> Concordance:
    """C statistic with DeLong's variance in O(n log n), from the placements of events among non-events."""
    w = counts(y.size, weights)
    values, index = np.unique(p, return_inverse=True)
    events = np.bincount(index, weights=w * y, minlength=values.size)
    others = np.bincount(index, weights=w * (1 - y), minlength=values.size)
    n1, n0 = events.sum(), others.sum()
    if n1 == 0 or n0 == 0:
        return Concordance(estimate=np.nan, variance=np.nan, events=n1, others=n0)
    place1 = (np.cumsum(others) - others / 2) / n0
    place0 = (n1 - np.cumsum(events) + events / 2) / n1
    c = float(events @ place1 / n1)
    if min(n1, n0) < 2:
        return Concordance(estimate=c, variance=np.nan, events=n1, others=n0)
    spread1 = events @ (place1 - c) ** 2 / (n1 - 1)
    spread0 = others @ (place0 - c) ** 2 / (n0 - 1)
    return Concordance(estimate=c, variance=float(spread1 / n1 + spread0 / n0), events=n1, others=n0)


def concordance_limits(c: Concordance, alpha: float) -> tuple[float, float]:
    """Limits of C by Newcombe's method 5: the values t with (C - t)^2 <= z^2 V(t).

    V(t) = t (1 - t) (1 + (N - 1) ((1 - t) / (2 - t) + t / (1 + t))) / (m n), N = (m + n) / 2, is the variance for
    exponential scores. It does not rest on the few events there are, as an estimated one does.
    """
    if np.isnan(c.estimate):
        return np.nan, np.nan
    m, n, z = c.events, c.others, stats.norm.isf(alpha / 2)

    def excess(t: float) -> float:
        spread = 1 + ((m + n) / 2 - 1) * ((1 - t) / (2 - t) + t / (1 + t))
        return float((c.estimate - t) ** 2 - z**2 * t * (1 - t) * spread / (m * n))

    low = optimize.brentq(excess, 0.0, c.estimate, xtol=1e-14) if c.estimate > 0 else 0.0
    high = optimize.brentq(excess, c.estimate, 1.0, xtol=1e-14) if c.estimate < 1 else 1.0
    return float(low), float(high)


def score_test(score: FloatArray, information: FloatArray) -> ScoreTest:
    """U' I^- U with the pseudo-inverse, on k coefficients.

    The information is scaled to unit diagonal first, so that its rank does not depend on the units of the
    features.
    """
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    kept = values > 1e-10 * max(values.max(initial=0.0), 1e-300)
    factor = (vectors[:, kept] / np.sqrt(values[kept])) / scale[:, None]
    return ScoreTest(
        statistic=float(np.sum((factor.T @ score) ** 2)),
        rank=int(kept.sum()),
        score=score,
        factor=factor,
    )


def binary_score_test(
    y: FloatArray, p: FloatArray, features: FloatArray, weights: FloatArray | None = None
) -> ScoreTest:
    """Score statistic of a logistic map of ``features`` (n, k) at a null whose fitted values are p.

    For features (1, logit p) this is Cox's joint test, for a column of ones the test of calibration in the large.
    """
    w = counts(y.size, weights)
    information = features.T @ ((w * p * (1 - p))[:, None] * features)
    return score_test(features.T @ (w * (y - p)), information)


def log_likelihood(y: FloatArray, p: FloatArray, weights: FloatArray | None = None) -> float:
    """Bernoulli log likelihood of fractional or 0/1 targets; minus infinity for an impossible outcome."""
    return float(counts(y.size, weights) @ (special.xlogy(y, p) + special.xlog1py(1 - y, -p)))


def observed_to_expected(y: FloatArray, p: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    """Ratio of events to expected events and the standard error of its logarithm.

    The error is that of a ratio of two means over the same rows, sum (y - R p)^2 / (sum y)^2: events and
    expectations vary together, and treating the expectation as fixed overstates it.
    """
    w = counts(y.size, weights)
    observed, expected = float(w @ y), float(w @ p)
    if observed == 0 or expected == 0:
        return (np.nan if expected == 0 else 0.0), np.nan
    ratio = observed / expected
    return ratio, float(np.sqrt(w @ (y - ratio * p) ** 2) / observed)


def mean_and_error(values: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    """Mean over rows and its standard error (divisor n - 1)."""
    w = counts(values.size, weights)
    total = w.sum()
    mean = float(w @ values / total)
    if total < 2:
        return mean, np.nan
    return mean, float(np.sqrt(w @ (values - mean) ** 2 / (total - 1) / total))


def mean_limits(values: FloatArray, alpha: float, weights: FloatArray | None = None) -> tuple[float, float]:
    """Limits of a mean over rows that allow for the skewness of the rows, by Hall's cubic transformation.

    With t = (mean - m) / se and g the skewness over sqrt(n), t + g t^2 / 3 + g^2 t^3 / 27 + g / 6 is nearly normal.
    """
    mean, se = mean_and_error(values, weights)
    w = counts(values.size, weights)
    d = values - mean
    variance = float(w @ d**2 / w.sum())
    z = stats.norm.isf(alpha / 2) * np.array([1.0, -1.0])
    if variance > 0:
        g = float(w @ d**3 / w.sum() / variance**1.5 / np.sqrt(w.sum()))
        # Below 1e-7 the cube root rounds to more than the skewness changes.
        z = 3 / g * (np.cbrt(1 + g * (z - g / 6)) - 1) if abs(g) > 1e-7 else z
    low, high = mean - se * z
    return float(low), float(high)


def holm(pvalues: FloatArray) -> FloatArray:
    """Holm's step-down p-values of m tests; NaN stays NaN and does not count."""
    out = np.full(pvalues.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalues))
    order = known[np.argsort(pvalues[known], kind="stable")]
    steps = pvalues[order] * np.arange(order.size, 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return out


def cumulative_range(y: FloatArray, p: FloatArray, ends: IntArray) -> tuple[FloatArray, FloatArray]:
    """Largest and smallest cumulated residual, 0 included, of labels (..., n) on sorted p (n,).

    `ends` are the last rows of each run of equal p: only there is the sum read, so that order within ties is void.
    """
    sums = np.cumsum(y - p, axis=-1)[..., ends]
    return np.maximum(sums.max(axis=-1), 0.0), np.minimum(sums.min(axis=-1), 0.0)


def brownian_supremum_sf(x: float) -> float:
    """P(sup |B(t)| > x) for Brownian motion on [0, 1]."""
    if x < 0.5:
        k = np.arange(4)
        odd = 2 * k + 1
        theta = (-1.0) ** k / odd * np.exp(-(odd**2) * np.pi**2 / (8 * max(x, 1e-6) ** 2))
        return float(1 - 4 / np.pi * theta.sum())
    k = np.arange(int(20 / x) + 2)
    return float(np.clip(4 * np.sum((-1.0) ** k * special.ndtr(-(2 * k + 1) * x)), 0, 1))


def brownian_range_sf(x: float) -> float:
    """P(max B - min B > x) for Brownian motion on [0, 1] (Feller 1951)."""
    if x < 0.25:
        return 1.0
    k = np.arange(1, int(40 / x) + 2)
    return float(np.clip(8 * np.sum((-1.0) ** (k - 1) * k * special.ndtr(-k * x)), 0, 1))
