"""The sum over all pairs of rows under a Laplace kernel, in O(n log n)."""

from __future__ import annotations

import numpy as np

from calstat._arrays import pseudo_labels
from calstat._arrays.pav import sorted_pairs
from calstat._arrays.smooth_intervals import PairForm
from calstat._typing import FloatArray, IntArray

# exp(300) squared is far from overflow, and 300 units in the last place of the exponent are an error of 7e-14.
_REACH = 300.0
BANDWIDTH = 0.2
"""Default bandwidth, on the scale of probabilities."""
# With more stretches than this a loop over them is slower than a scan by doubling.
_MAX_STRETCHES = 2000
# Longer stretches are cut, so that their work arrays stay in the second-level cache.
_ROWS = 1 << 15

# Draws for many rows are made for cells of neighbours: at most a 2048th of the rows, over at most a 200th bandwidth.
_CELLS = 2048
_PER_BANDWIDTH = 200
# Cells pay when they hold several rows each.
_LEAST_ROWS = 4


def pair_sum_draws(
    r: FloatArray, bandwidth: float, n_resamples: int, rng: np.random.Generator, max_bytes: int
) -> tuple[FloatArray, FloatArray]:
    """Draw (B,) the sum of e_i e_j exp(-|r_i - r_j| / bandwidth) over i ≠ j, and that of e_i^2, for labels from r.

    `r` (n,) is sorted, e = label - r. Above about 8000 rows neighbours are joined in cells within which the kernel
    is taken as 1 and r as its mean: their events are binomial. That moves the standard deviation of the sum by
    less than 1e-5 of itself, and a draw costs a few thousand numbers, whatever n is.
    """
    starts = _cells(r, bandwidth)
    cross, square = [], []
    if starts.size * _LEAST_ROWS > r.size:
        for labels in pseudo_labels.label_blocks(r, n_resamples, rng, max_bytes):
            e = labels - r
            square.append(np.einsum("ij,ij->i", e, e))
            cross.append(2 * np.einsum("ij,ij->i", e, decaying_sums(r, e, bandwidth)))
        return np.concatenate(cross), np.concatenate(square)
    count = np.diff(starts, append=r.size)
    mean = np.add.reduceat(r, starts) / count
    rows = max(1, int(max_bytes // (40 * count.size)))
    for start in range(0, n_resamples, rows):
        events = rng.binomial(count, mean, size=(min(rows, n_resamples - start), count.size))
        e = events - count * mean
        own = events @ (1 - 2 * mean) + count @ mean**2
        square.append(own)
        cross.append(np.einsum("ij,ij->i", e, e + 2 * decaying_sums(mean, e, bandwidth)) - own)
    return np.concatenate(cross), np.concatenate(square)


def _cells(r: FloatArray, bandwidth: float) -> IntArray:
    """First rows of the cells of sorted r (n,)."""
    with np.errstate(over="ignore"):
        place = np.floor(r * (_PER_BANDWIDTH / bandwidth))
    share = np.arange(r.size) * _CELLS // r.size
    return np.concatenate(([0], np.flatnonzero((np.diff(share) > 0) | (place[1:] != place[:-1])) + 1))


def kernel_error(y: np.ndarray, r: FloatArray, bandwidth: float, weights: FloatArray | None = None) -> float:
    """Return the root of the V-statistic of residuals y - r under the Laplace kernel in r."""
    if weights is None:
        score, outcome = sorted_pairs(y, r)
        residual = np.subtract(outcome, score, out=outcome)
        total = float(r.size)
    else:
        order = np.argsort(r)
        score = r[order]
        residual = weights[order] * (y[order] - score)
        total = float(weights.sum())
    square = float(residual @ residual + 2 * (residual @ decaying_sums(score, residual, bandwidth)))
    return float(np.sqrt(max(square, 0.0)) / total)


def pair_form(y: np.ndarray, r: FloatArray, bandwidth: float, weights: FloatArray | None = None) -> PairForm:
    """Return the mean over pairs of different rows of e_i e_j exp(-|r_i - r_j| / bandwidth), and its variance.

    With g the mean embedding of the residuals and S their covariance operator, the variance is 4 <g, S g> / n, which
    grows with the squared error <g, g>, and 2 tr(S^2) / n^2, which stays: tr(S^2) is a sum over pairs too, under the
    kernel of half the bandwidth. In S a residual is not taken to vary less than its probability says, since a sample
    without events would not seem to vary.
    """
    order = np.argsort(r)
    score, w = r[order], np.ones(r.size) if weights is None else weights[order]
    e = y[order] - score
    n = float(w.sum())
    if n <= 1:
        return PairForm(estimate=np.nan, slope=np.nan, base=np.nan)
    embedding = _pair_sums(score, w * e, bandwidth) / n
    square = float(w * e @ embedding) / n
    estimate = (n * square - float(w @ e**2) / n) / (n - 1)
    along, pairs = 0.0, 0.0
    half = max(bandwidth / 2, float(np.finfo(float).smallest_subnormal))
    for v in (e**2, score * (1 - score)):
        along = max(along, float(w * v @ embedding**2) / n)
        pairs = max(pairs, float(w * v @ (_pair_sums(score, w * v, half) - v)))
    slope = max(along / square - square, 0.0) if square > 0 else 0.0
    return PairForm(estimate=estimate, slope=4 * slope / n, base=2 * pairs / (n * (n - 1)) ** 2)


def _pair_sums(position: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    """Return Σ_j value_j exp(-|position_i - position_j| / bandwidth) for sorted positions (n,)."""
    before = decaying_sums(position, value, bandwidth)
    after = decaying_sums(-position[::-1], value[::-1], bandwidth)[::-1]
    return before + value + after


def decaying_sums(position: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    """Return Σ_{j < i} value_j exp(-(position_i - position_j) / bandwidth) for sorted positions (n,).

    `value` is (n,), or (m, n) for m sums at once.
    Within a stretch of 300 bandwidths the kernel factorises into exp(position) and exp(-position), so that one
    cumulative sum does it, and the sum so far is carried on to the next stretch. For bandwidths so small that
    there would be thousands of stretches, sums over 2, 4, 8, ... neighbours are built until they reach no further.
    """
    span = position[-1] - position[0]
    if span / _MAX_STRETCHES <= _REACH * bandwidth:
        return _sums_by_stretches(position, value, bandwidth)
    return _sums_by_doubling(position, value, bandwidth)


def _sums_by_stretches(position: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    result = np.empty_like(value)
    carried, reached = np.zeros(value.shape[:-1]), float(position[0])
    start = 0
    while start < position.size:
        origin = float(position[start])
        stop = int(np.searchsorted(position, origin + _REACH * bandwidth, side="right"))
        stop = min(stop, start + _ROWS)
        growth = (position[start:stop] - origin) / bandwidth
        np.exp(growth, out=growth)
        terms = value[..., start:stop] * growth
        cumulated = np.cumsum(terms, axis=-1)
        carried = carried * float(np.exp((reached - origin) / bandwidth))
        result[..., start:stop] = (cumulated - terms + carried[..., None]) / growth
        carried = (carried + cumulated[..., -1]) / growth[-1]
        reached, start = float(position[stop - 1]), stop
    return result


def _sums_by_doubling(position: FloatArray, value: FloatArray, bandwidth: float) -> FloatArray:
    # gap / bandwidth overflows to infinity for bandwidths near the smallest double: the kernel is 0 there.
    with np.errstate(over="ignore"):
        decay = np.exp(np.diff(position, prepend=-np.inf) / -bandwidth)
    sums, lag = value.copy(), 1
    while lag < position.size and decay[lag:].any():
        sums[..., lag:] += decay[lag:] * sums[..., :-lag]
        decay[lag:] *= decay[:-lag].copy()
        decay[:lag] = 0.0
        lag *= 2
    return sums - value
