"""Bootstrap draws and the intervals made of them, on plain arrays.

A resample is a vector of counts, one per row: weights of k stand for k copies, whole clusters are drawn together,
and every statistic that takes weights can be evaluated on it without copying rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import special, stats

from calstat._arrays.binning import Norm, binned_error
from calstat._typing import FloatArray, IntArray

# Leaving out one of at most this many groups of rows gives the acceleration of BCa.
_JACKKNIFE_GROUPS = 200
# Of the observed error: how well its limits are searched for. 2000 draws give them to about 1%.
_PRECISION = 3e-3
_STEPS = 30
# At which a path between two points is evaluated, to find the place of an error on it.
_PLACES = 65
_QUANTILE_WINDOW = 9.0
# Cells at either end, and in between, of the values whose mean is drawn from cells.
_ENDS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class BinnedSample:
    """What the law of a binned error depends on.

    Attributes
    ----------
    count : ndarray of shape (C,)
        Rows in each non-empty cell (bin, or class by bin).
    mean_p : ndarray of shape (C,)
        Mean probability of each cell.
    events : ndarray of shape (C,)
        Events in each cell.
    square : ndarray of shape (C,)
        Sum of squared residuals, outcome less probability, of each cell.
    variance : ndarray of shape (C,)
        Sum of p (1 - p) of each cell.
    correlation : ndarray of shape (C, C) or None
        Correlation of the event counts; None for independent cells.
    group : ndarray of shape (C,)
        Class that each cell belongs to; all zero for binary data.
    norm : {1, 2, "max", "mean"}
        How the gaps of one class are summed up.
    combine : {"mean", "sum", "max"}
        How the classes are.
    """

    count: FloatArray
    mean_p: FloatArray
    events: FloatArray
    square: FloatArray
    variance: FloatArray
    correlation: FloatArray | None
    group: IntArray
    norm: Norm
    combine: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InvertedInterval:
    """Limits of a binned error by inversion of its test.

    Attributes
    ----------
    low, high : float
        Limits.
    empty : bool
        True where every value was rejected, even 0: the error is smaller than calibrated data would give.
    """

    low: float
    high: float
    empty: bool


def count_blocks(
    n: int,
    n_resamples: int,
    rng: np.random.Generator,
    *,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    max_bytes: int = 1 << 30,
) -> Iterator[FloatArray]:
    """Yield blocks (m, n) with the number of times each row is drawn.

    Without groups the sum of the weights is drawn, one unit at a time; with groups as many clusters as there are,
    each with all its rows and their weights.
    """
    rows = max(1, int(max_bytes // (32 * n)))
    for start in range(0, n_resamples, rows):
        m = min(rows, n_resamples - start)
        if groups is not None:
            drawn = _even_counts(int(groups.max()) + 1, m, rng)[:, groups]
            yield drawn if weights is None else drawn * weights
        elif weights is None:
            yield _even_counts(n, m, rng)
        else:
            total = weights.sum()
            yield rng.multinomial(int(total), weights / total, size=m).astype(np.float64)


def _even_counts(n: int, draws: int, rng: np.random.Generator) -> FloatArray:
    """Counts (draws, n) of n draws with replacement from n equally likely units."""
    units = rng.integers(0, n, size=(draws, n)) + np.arange(draws)[:, None] * n
    return np.bincount(units.ravel(), minlength=draws * n).reshape(draws, n).astype(np.float64)


def cell_sum_draws(
    cell: IntArray, residual: FloatArray, size: int, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Bootstrap draws (B, size) of the rows and of the residual sums of disjoint cells, without drawing rows.

    The number of rows of each cell is multinomial; given m rows, their residual sum has mean m times the cell's and
    variance m times the cell's, and is drawn as normal. Cells should be fine enough (bin by outcome) for that
    variance to be a small part of the whole.
    """
    n = cell.size
    count = np.bincount(cell, minlength=size)
    mean = np.bincount(cell, weights=residual, minlength=size) / np.maximum(count, 1)
    variance = np.bincount(cell, weights=(residual - mean[cell]) ** 2, minlength=size) / np.maximum(count, 1)
    drawn = rng.multinomial(n, count / n, size=n_resamples).astype(np.float64)
    noise = rng.standard_normal((n_resamples, size))
    return drawn, drawn * mean + np.sqrt(drawn * variance) * noise


def mean_draws(
    values: FloatArray, labels: FloatArray | IntArray, n_resamples: int, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Bootstrap draws (B,) of the mean of values (n,), from cells of rows of similar value, without drawing rows.

    Also says how many draws hold one label only: the most common one has its own cells.
    """
    found, times = np.unique(labels, return_counts=True)
    common = labels == found[times.argmax()]
    cell, size = np.empty(values.size, dtype=np.int64), 0
    for rows in (np.flatnonzero(common), np.flatnonzero(~common)):
        ordered = rows[np.argsort(values[rows], kind="stable")]
        cell[ordered] = size + _rank_cells(rows.size)
        size = int(cell[rows].max(initial=size - 1)) + 1
    count, total = cell_sum_draws(cell, values, size, n_resamples, rng)
    others = count[:, int(cell[common].max()) + 1 :].sum(axis=1)
    lost = np.count_nonzero((others == 0) | (others == values.size))
    return total.sum(axis=1) / values.size, int(lost)


def _rank_cells(n: int) -> IntArray:
    """Cells (n,) of ranks: the ends one by one, since far values must be drawn as they are, the rest in equal parts."""
    single = min(_ENDS, n // 2)
    middle = np.linspace(single, n - single, _ENDS, endpoint=False).astype(np.int64)
    starts = np.concatenate((np.arange(single), middle, np.arange(n - single, n)))
    return np.searchsorted(np.unique(starts), np.arange(n), side="right") - 1


def jackknife_counts(n: int, weights: FloatArray | None = None, groups: IntArray | None = None) -> Iterator[FloatArray]:
    """Yield counts (n,) with one group of units left out; at most 200 groups, dealt out like cards."""
    if groups is not None:
        unit_of_row, copies = groups, (np.ones(n) if weights is None else weights)
        size = min(int(groups.max()) + 1, _JACKKNIFE_GROUPS)
        for g in range(size):
            yield np.where(unit_of_row % size == g, 0.0, copies)
        return
    copies = np.ones(n) if weights is None else weights
    ends = np.cumsum(copies)
    size = int(min(ends[-1], _JACKKNIFE_GROUPS))
    for g in range(size):
        # Copies of row i are the units ends[i] - copies[i], ..., ends[i] - 1; those equal to g modulo size go.
        gone = np.floor((ends - 1 - g) / size) - np.floor((ends - copies - 1 - g) / size)
        yield copies - gone


def acceleration(leave_one_out: FloatArray) -> float:
    """Acceleration constant of BCa (Efron 1987) from leave-one-out values."""
    d = leave_one_out.mean() - leave_one_out
    spread = float((d**2).sum())
    return float((d**3).sum() / (6 * spread**1.5)) if spread > 0 else 0.0


def percentile_limits(draws: FloatArray, alpha: float) -> tuple[float, float]:
    """Quantiles alpha/2 and 1 - alpha/2 of the draws."""
    low, high = np.quantile(draws, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def basic_limits(estimate: float, draws: FloatArray, alpha: float) -> tuple[float, float]:
    """Percentile limits mirrored at the estimate."""
    low, high = percentile_limits(draws, alpha)
    return 2 * estimate - high, 2 * estimate - low


def normal_limits(estimate: float, draws: FloatArray, alpha: float) -> tuple[float, float]:
    """Estimate less its bootstrap bias, plus and minus normal quantiles of the bootstrap standard error."""
    centre = 2 * estimate - float(draws.mean())
    half = float(stats.norm.isf(alpha / 2) * draws.std(ddof=1))
    return centre - half, centre + half


def bca_limits(estimate: float, draws: FloatArray, alpha: float, a: float) -> tuple[float, float]:
    """Bias-corrected and accelerated limits; NaN when the estimate lies outside all draws."""
    below = np.count_nonzero(draws < estimate) + 0.5 * np.count_nonzero(draws == estimate)
    share = below / draws.size
    if not 0 < share < 1:
        return np.nan, np.nan
    z0 = special.ndtri(share)
    z = z0 + special.ndtri(np.array([alpha / 2, 1 - alpha / 2]))
    low, high = np.quantile(draws, special.ndtr(z0 + z / (1 - a * z)))
    return float(low), float(high)


def sample_error(sample: BinnedSample, difference: FloatArray) -> FloatArray:
    """Error of event counts minus expectations ``difference`` (..., C), combined over classes."""
    return combined(class_errors(sample.count, difference, sample.group, sample.norm), sample.combine)


def class_errors(count: FloatArray, difference: FloatArray, group: IntArray, norm: Norm) -> FloatArray:
    """Binned error of each class (..., V) from its cells, which `group` (C,) has one class after the other.

    `difference` is (..., C), `count` too, or (C,) where it is always the same.
    """
    ends = (0, *(np.flatnonzero(np.diff(group)) + 1), group.size)
    return np.stack([binned_error(count[..., a:b], difference[..., a:b], norm) for a, b in pairwise(ends)], axis=-1)


def combined(errors: FloatArray, how: str) -> FloatArray:
    """Put the errors of the classes (..., V) together: their mean, sum or maximum."""
    if how == "max":
        return np.asarray(errors.max(axis=-1))
    return np.asarray(errors.sum(axis=-1) if how == "sum" else errors.mean(axis=-1))


def uniform_draws(size: int, correlation: FloatArray | None, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Uniforms (B, size); a correlation (size, size) makes them dependent through a normal copula."""
    if correlation is None:
        return rng.random((n_resamples, size))
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.clip(values, 0, None))
    return special.ndtr(rng.standard_normal((n_resamples, size)) @ root.T)


class BinomialQuantiles:
    """Binomial quantiles of uniforms (B, C) that stay the same while the rates of the C cells change."""

    def __init__(self, count: FloatArray, uniform: FloatArray) -> None:
        self.count = count
        cells, draws = uniform.shape[::-1]
        order = np.argsort(uniform, axis=0)
        self.cell = np.arange(cells)[:, None]
        # The uniforms of cell c lie between c and c + 1, so that one search serves all cells.
        self.keys = (np.take_along_axis(uniform, order, axis=0).T + self.cell).ravel()
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(draws)[:, None], axis=0)
        self.place = place.T + self.cell * draws

    def at(self, rate: FloatArray) -> FloatArray:
        """Quantiles (B, C) at the rates (C,)."""
        n, r = self.count[:, None], rate[:, None]
        half = _QUANTILE_WINDOW * np.sqrt(n * r * (1 - r)) + 10
        first = np.maximum(np.floor(n * r - half), 0)
        k = first + np.arange(int(np.minimum(2 * half + 2, n + 1).max()))
        # From each count to the next the probability grows by (n - k) / (k + 1) times the odds.
        with np.errstate(divide="ignore"):
            step = np.log(np.maximum(n - k, 0) / (k + 1)) + np.clip(special.logit(r), -700, 700)
        law = np.zeros_like(k)
        np.cumsum(step[:, :-1], axis=1, out=law[:, 1:])
        law = np.exp(law - law.max(axis=1, keepdims=True))
        cumulated = np.cumsum(law, axis=1)
        cumulated /= cumulated[:, -1:]
        size, draws = self.place.shape
        ends = np.searchsorted(self.keys, (cumulated + self.cell).ravel(), side="right").reshape(k.shape)
        # A uniform of almost 1 is, after adding c, the 0 of the next cell.
        ends = np.clip(ends, draws * self.cell, draws * (self.cell + 1))
        ends[:, -1] = draws * np.arange(1, size + 1)
        times = np.diff(ends.ravel(), prepend=0)
        return np.repeat(k.ravel(), times)[self.place].T


def invert_binned_error(sample: BinnedSample, uniform: FloatArray, alpha: float) -> InvertedInterval:
    """Values of the binned error that its test does not reject, along two paths of gaps from none to the largest.

    At each point of a path the counts are drawn as binomial, and the point is kept while the observed error lies in
    neither tail of alpha/2. How much noise adds to an error depends on how gaps are spread: most when a few cells
    have them all, least when they are in proportion to the noise. The lower limit therefore comes from the path of
    soft thresholds, max(|d| + t, 0), which thins gaps out; the upper one from multiples of v |d| + (1 - v) s, with
    the gaps d, their standard errors s, and the share v of the squares of d that is not noise.

    Event rates are kept in [0, 1]. Observed rates are first shrunk by one pseudo-row at the cell's mean probability,
    so that cells without events have a variance.
    """
    if sample.norm == "max":
        return _largest_gap_limits(sample, alpha)
    n, mean_p = sample.count, sample.mean_p
    expected = n * mean_p
    observed = float(sample_error(sample, sample.events - expected))
    gap = (sample.events - expected) / (n + 1)
    sign = np.where(gap != 0, np.sign(gap), np.where(mean_p <= 0.5, 1.0, -1.0))
    size = np.abs(gap)
    room = np.where(sign > 0, 1 - mean_p, mean_p)
    quantiles = BinomialQuantiles(n, uniform)

    def moved(sizes: FloatArray) -> FloatArray:
        return sign * np.clip(sizes, 0, room)

    def beyond(sizes: FloatArray) -> tuple[float, float]:
        draws = sample_error(sample, quantiles.at(mean_p + moved(sizes)) - expected)
        return tail_margins(draws, observed, alpha)

    def limit(path: Callable[[FloatArray], FloatArray], side: int, inside: _Point, outside: _Point) -> float:
        """Error at the first point of a path that is rejected, or at its end."""

        def error(t: FloatArray) -> FloatArray:
            return sample_error(sample, n * moved(path(t[:, None])))

        if outside.margin >= 0:
            return float(error(np.array([outside.t]))[0])
        return _root(lambda t: beyond(path(np.array(t)))[side], error, inside, outside, _PRECISION * observed)

    above, below = beyond(np.zeros_like(size))
    if below < 0:
        return InvertedInterval(low=0.0, high=0.0, empty=True)
    inside = _Point(0.0, beyond(size)[0])
    if inside.margin < 0:
        # At the end every rate is 0 or 1, and no draw falls short of the observed error.
        inside = _Point(float((room - size).max()), 0.0)
    low = limit(lambda t: size + t, 0, inside, _Point(-float(size.max()), above))
    spread = _spread_path(sample, size)
    inside, outside = _Point(0.0, below), _Point(1.0, beyond(spread)[1])
    while outside.margin >= 0 and np.any(outside.t * spread < room):
        t = 2 * outside.t
        inside, outside = outside, _Point(t, beyond(t * spread)[1])
    high = limit(lambda t: t * spread, 1, inside, outside)
    return InvertedInterval(low=min(low, high), high=max(low, high), empty=False)


def tail_margins(draws: FloatArray, observed: float, alpha: float) -> tuple[float, float]:
    """How far the upper tail of draws (B,) lies above the observed error, and the lower tail below it.

    Each is negative where at most alpha / 2 of the draws reach the observed error. The draws are put in another order.
    """
    rank = int(np.floor(draws.size * alpha / 2))
    last = draws.size - 1 - rank
    draws.partition((rank, last))
    margin = 1e-12 * max(observed, 1e-300)
    return float(draws[last]) - observed + margin, observed + margin - float(draws[rank])


class _Point(NamedTuple):
    """A point of a path and its margin, which is negative where the point is rejected."""

    t: float
    margin: float


def _root(
    margin: Callable[[float], float],
    error: Callable[[FloatArray], FloatArray],
    inside: _Point,
    outside: _Point,
    tolerance: float,
) -> float:
    """Error where a margin becomes negative: that of the nearest point found that is rejected.

    False position, on the scale of the errors, which margins are nearly straight lines of. Each step goes past the
    place it expects, into the larger part, so that both ends come close and not only one: by half of the tolerance,
    and by four times as much again after a step that did not halve the gap, since margins of draws have jumps.
    """
    past = 0.5
    for _ in range(_STEPS):
        places = np.linspace(inside.t, outside.t, _PLACES)
        levels = error(places)
        gap = float(levels[-1] - levels[0])
        if abs(gap) <= tolerance:
            break
        unit = tolerance / abs(gap)
        share = inside.margin / max(inside.margin - outside.margin, 1e-300)
        share += past * unit if share < 0.5 else -past * unit
        share = min(max(share, unit / 2), 1 - unit / 2)
        t = float(np.interp(share, (levels - levels[0]) / gap, places))
        value = margin(t)
        inside, outside = (_Point(t, value), outside) if value >= 0 else (inside, _Point(t, value))
        left = 1 - share if value >= 0 else share
        past = 0.5 if left < 0.5 else 4 * past
    return float(error(np.array([outside.t]))[0])


def _spread_path(sample: BinnedSample, size: FloatArray) -> FloatArray:
    """Sizes of gaps (C,) that are spread as the observed ones are, as far as these are more than noise."""
    # Half a pseudo-event: no cell is free of noise.
    rate = (sample.events + 0.5) / (sample.count + 1)
    noise = np.sqrt(rate * (1 - rate) / sample.count)
    real = max(0.0, 1 - size.size / float(((size / noise) ** 2).sum())) if size.any() else 0.0
    return real * size + (1 - real) * noise


def ustatistic_limits(sample: BinnedSample, alpha: float) -> tuple[float, float]:
    """Normal limits of the squared error (norm 2) around its unbiased estimate, a U-statistic over pairs in a cell.

    The variance has two parts: that of the means of rows, which vanishes under calibration, and that of the pairs,
    which remains. Residuals of a cell are not taken to vary less than under calibration: a cell without events
    would not seem to vary. Cells of one row hold no pair and are left out of the estimate; NaN if all are such.
    """
    pairs = sample.count > 1
    if not pairs.any():
        return np.nan, np.nan
    n, square, variance = sample.count[pairs], sample.square[pairs], sample.variance[pairs]
    total = sample.count.sum()
    difference = (sample.events - sample.count * sample.mean_p)[pairs]
    gap = difference / n
    estimate = float(((difference**2 - square) / (n - 1)).sum() / total)
    # A row of a cell adds 2 g e - g^2 to the mean whose variance is the first part.
    rows = (4 * gap**2 * square - 3 * n * gap**4).sum() / total - ((n * gap**2).sum() / total) ** 2
    spread = np.maximum((square - n * gap**2) / (n - 1), variance / n)
    se = np.sqrt(max(rows, 0.0) / total + 2 * (spread**2 * n / (n - 1)).sum() / total**2)
    half = float(stats.norm.isf(alpha / 2) * se)
    return max(estimate - half, 0.0), max(estimate + half, 0.0)


def _largest_gap_limits(sample: BinnedSample, alpha: float) -> InvertedInterval:
    """Limits of the largest gap of the cells that hold rows, from exact (Clopper-Pearson) limits of their rates.

    The path of `invert_binned_error` moves all gaps alike and does not hold its level for the one that is largest.
    The lower limit must hold for all cells at once (Sidak's correction). The upper one needs to hold for the cell whose
    true gap is the largest only, whichever it is.
    """
    n, k, p = sample.count, sample.events, sample.mean_p

    def rates(tail: float) -> tuple[FloatArray, FloatArray]:
        low = np.where(k > 0, special.betaincinv(np.maximum(k, 1), n - k + 1, tail), 0.0)
        high = np.where(k < n, special.betainccinv(k + 1, np.maximum(n - k, 1), tail), 1.0)
        return low, high

    low, high = rates(-float(np.expm1(np.log1p(-alpha / 2) / n.size)) / 2)
    nearest = np.maximum(np.maximum(low - p, p - high), 0.0)
    low, high = rates(alpha / 2)
    farthest = np.maximum(high - p, p - low)
    return InvertedInterval(low=float(nearest.max()), high=float(farthest.max()), empty=False)
