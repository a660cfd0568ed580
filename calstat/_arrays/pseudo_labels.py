"""Draws of labels from predicted probabilities, as the sums that statistics need.

The null hypothesis of a pseudo-label test is that the labels are independent draws from p. Nothing here draws
n labels where less will do: bin counts come from their Poisson-binomial law, and for matrices only the rows whose
label departs from the most probable class are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from calstat._typing import BoolArray, FloatArray, IntArray

# Values closer than this, relative, count as equal: sums taken in another order differ by rounding.
TIE = 1e-12
# Convolutions are exact to about 1e-16; a window of 9 standard deviations leaves out less than 1e-17.
_WINDOW = 9.0
MAX_BYTES = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class MonteCarlo:
    """Place of an observed value among draws of the null.

    Attributes
    ----------
    pvalue : float
        (r + 1) / (B + 1) with r draws at least as extreme; NaN when the observed value is NaN.
    error : float
        Standard error of the p-value that comes from drawing B times only.
    mean : float
        Mean of the draws: what to expect under calibration.
    """

    pvalue: float
    error: float
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """Rows whose drawn label is not the most probable class.

    Attributes
    ----------
    start, stop : int
        The draws that this block covers.
    draw : ndarray of shape (m,)
        Draw of each departure, counted from `start`.
    row, label : ndarray of shape (m,)
        Row that departs and the class drawn for it.
    """

    start: int
    stop: int
    draw: IntArray
    row: IntArray
    label: IntArray


def at_least(observed: float, draws: FloatArray) -> BoolArray:
    """Say which draws (B,) are as large as the observed value; equal ones (to 1e-12 relative) are."""
    return draws >= observed - TIE * max(abs(observed), np.finfo(float).tiny)


def monte_carlo(
    observed: float, draws: FloatArray, *, two_sided: bool = False, stop_after: int | None = None
) -> MonteCarlo:
    """Monte Carlo p-value of an observed statistic; equal values (to 1e-12 relative) count as extreme.

    With `stop_after` the draws were to end at that many values as large as the observed one (see `stopped`). If they
    did, p is `stop_after` / B (Besag and Clifford 1991).
    """
    size = draws.size
    mean = float(draws.mean())
    if np.isnan(observed):
        return MonteCarlo(pvalue=np.nan, error=np.nan, mean=mean)
    above = int(np.count_nonzero(at_least(observed, draws)))
    if above == stop_after:
        share = above / size
        return MonteCarlo(pvalue=share, error=float(share * np.sqrt((1 - share) / above)), mean=mean)
    upper = (above + 1) / (size + 1)
    p = upper
    if two_sided:
        lower = (np.count_nonzero(at_least(-observed, -draws)) + 1) / (size + 1)
        p = min(1.0, 2 * min(upper, lower))
    side = p / 2 if two_sided else p
    error = float(np.sqrt(side * (1 - side) / size)) * (2 if two_sided else 1)
    return MonteCarlo(pvalue=p, error=error, mean=mean)


def stopped(observed: float, draws: FloatArray, stop_after: int) -> FloatArray:
    """Return the draws up to the `stop_after`-th that is as large as the observed value, or all of them."""
    reached = np.flatnonzero(at_least(observed, draws))
    return draws if reached.size < stop_after else draws[: reached[stop_after - 1] + 1]


def collected(parts: Iterable[FloatArray], observed: float, stop_after: int | None) -> FloatArray:
    """Join draws that are made part by part, until `stop_after` of them are as large as the observed value."""
    made, above = [], 0
    for part in parts:
        made.append(part)
        if stop_after is not None:
            above += int(np.count_nonzero(at_least(observed, part)))
            if above >= stop_after:
                return stopped(observed, np.concatenate(made), stop_after)
    return np.concatenate(made)


def poisson_binomial(p: FloatArray) -> tuple[int, FloatArray]:
    """Law of the number of events among independent rows with probabilities p.

    Returns the first count of the window and the probabilities from there on. Rows are convolved in pairs, then
    pairs of pairs, and so on by FFT; each law is cut to nine standard deviations around its mean, so that a
    million rows stay cheap.
    """
    if p.size == 0:
        return 0, np.ones(1)
    rows = 1 << int(np.ceil(np.log2(p.size)))
    q = np.zeros(rows)
    # Sorted, so that each pair joins a smaller with a larger probability: the windows stay equally wide.
    q[: p.size] = np.sort(p)
    pmf = np.stack([1 - q, q], axis=1)
    first = np.zeros(rows, dtype=np.int64)
    mean, variance = q, q * (1 - q)
    while pmf.shape[0] > 1:
        half = pmf.shape[0] // 2
        pmf = _convolve(pmf[:half], pmf[half:])
        first, mean, variance = (
            first[:half] + first[half:],
            mean[:half] + mean[half:],
            variance[:half] + variance[half:],
        )
        width = 2 * int(np.ceil(_WINDOW * np.sqrt(variance.max()) + 20)) + 1
        if pmf.shape[1] > width:
            cut = np.clip(np.round(mean).astype(np.int64) - width // 2 - first, 0, pmf.shape[1] - width)
            pmf = np.take_along_axis(pmf, cut[:, None] + np.arange(width), axis=1)
            first = first + cut
    law = np.clip(pmf[0][: p.size + 1 - int(first[0])], 0, None)
    return int(first[0]), law / law.sum()


def _convolve(a: FloatArray, b: FloatArray) -> FloatArray:
    """Convolve the rows of a (m, k) with those of b (m, k)."""
    k = a.shape[1]
    if k <= 16:
        out = np.zeros((a.shape[0], 2 * k - 1))
        for j in range(k):
            out[:, j : j + k] += a[:, j : j + 1] * b
        return out
    size = 1 << int(np.ceil(np.log2(2 * k - 1)))
    return np.fft.irfft(np.fft.rfft(a, size) * np.fft.rfft(b, size), size)[:, : 2 * k - 1]


def bin_counts(p: FloatArray, index: IntArray, size: int, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    """Draw the number of events in each of `size` bins (B, size) when labels are draws from p (n,)."""
    return count_quantiles(p, index, rng.random((size, n_resamples)))


def count_quantiles(p: FloatArray, index: IntArray, uniform: FloatArray) -> FloatArray:
    """Numbers of events (B, C) of C bins at the levels `uniform` (C, B) of their laws when labels are draws from p.

    Uniforms that depend on each other give counts that do, each with its exact law.
    """
    size, draws = uniform.shape
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index, minlength=size))
    out = np.empty((draws, size))
    for b, rows in enumerate(np.split(order, ends[:-1])):
        first, law = poisson_binomial(p[rows])
        cumulated = np.cumsum(law)
        level = uniform[b] * cumulated[-1]
        out[:, b] = first + np.minimum(np.searchsorted(cumulated, level, side="right"), law.size - 1)
    return out


def label_blocks(
    p: FloatArray, n_resamples: int, rng: np.random.Generator, max_bytes: int = MAX_BYTES
) -> Iterator[FloatArray]:
    """Yield blocks (m, n) of binary labels 0.0 and 1.0 drawn from p (n,)."""
    rows = max(1, int(max_bytes // (24 * p.size)))
    for start in range(0, n_resamples, rows):
        m = min(rows, n_resamples - start)
        yield (rng.random((m, p.size)) < p).astype(np.float64)


def departures(
    P: FloatArray, n_resamples: int, rng: np.random.Generator, max_bytes: int = MAX_BYTES
) -> Iterator[Departures]:
    """Yield, block by block of draws, the rows of P (n, K) that do not get their most probable class.

    Rows are put in groups whose chance of departing differs at most by a factor of two. Candidates within a
    group of rows x draws are a Bernoulli process at the group's largest chance, walked by geometric steps, and kept
    with the ratio of the row's chance to it: the draws are exact and cost as much as there are departures.
    """
    n = P.shape[0]
    top = P.argmax(axis=1)
    others = P.copy()
    others[np.arange(n), top] = 0.0
    table = np.cumsum(others, axis=1)
    chance = table[:, -1]
    octave = np.where(chance > 0, np.floor(-np.log2(np.maximum(chance, 1e-300))), np.inf)
    groups = [np.flatnonzero(octave == g) for g in np.unique(octave[np.isfinite(octave)])]
    # A candidate takes about ten numbers of eight bytes on its way.
    block = max(1, min(n_resamples, 1024, int(max_bytes / (80 * (2 * chance.sum() + 10)))))
    for start in range(0, n_resamples, block):
        stop = min(start + block, n_resamples)
        parts = [_walk(rows, chance, table, stop - start, rng) for rows in groups]
        draw, row, label = (
            (np.concatenate(c) for c in zip(*parts, strict=True)) if parts else (np.empty(0, dtype=np.int64),) * 3
        )
        yield Departures(start=start, stop=stop, draw=draw, row=row, label=label)


def _walk(
    rows: IntArray, chance: FloatArray, table: FloatArray, draws: int, rng: np.random.Generator
) -> tuple[IntArray, IntArray, IntArray]:
    """Draw, row and label of the departures of one group of rows."""
    largest = min(float(chance[rows].max()), 1.0)
    cells = rows.size * draws
    place = np.arange(cells) if largest > 0.5 else _bernoulli_places(cells, largest, rng)
    i = place // draws
    row = rows[i]
    u = rng.random(place.size) * (1.0 if largest > 0.5 else largest)
    kept = u < chance[row]
    row, u = row[kept], u[kept]
    draw = (place - i * draws)[kept]
    # Bisection in the cumulated chances of the other classes: the smallest k with u < table[row, k].
    K = table.shape[1]
    flat, base = table.ravel(), row * K
    low, high = np.zeros(row.size, dtype=np.int64), np.full(row.size, K - 1, dtype=np.int64)
    for _ in range(int(np.ceil(np.log2(K)))):
        middle = (low + high) >> 1
        above = u < flat[base + middle]
        np.copyto(high, middle, where=above)
        np.copyto(low, np.minimum(middle + 1, high), where=~above)
    return draw, row, high


def _bernoulli_places(cells: int, rate: float, rng: np.random.Generator) -> IntArray:
    """Places of the successes among `cells` independent trials, by geometric steps."""
    if cells * rate < 1e-30:
        return np.empty(0, dtype=np.int64)  # none in any run; the step of a denormal rate would overflow
    step = -1.0 / np.log1p(-rate)
    found: list[IntArray] = []
    last = -1
    while last < cells:
        left = (cells - last) * rate
        size = int(left + 4 * np.sqrt(left) + 16)
        jumps = np.floor(rng.standard_exponential(size) * step)
        # Rare successes may jump past any integer; such a jump ends the walk all the same.
        places = last + np.cumsum(np.minimum(jumps, 2.0 * cells).astype(np.int64) + 1)
        found.append(places)
        last = int(places[-1])
    places = np.concatenate(found)
    return places[: np.searchsorted(places, cells)]


def cell_counts(
    P: FloatArray, cells: IntArray, size: int, n_resamples: int, rng: np.random.Generator, max_bytes: int = MAX_BYTES
) -> Iterator[FloatArray]:
    """Yield blocks (m, size) of event counts by cell when labels are draws from the rows of P (n, K).

    `cells` (n, K) names the cell in which row i counts when its label is k.
    """
    n = P.shape[0]
    top = P.argmax(axis=1)
    home = cells[np.arange(n), top]
    base = np.bincount(home, minlength=size).astype(float)
    for part in departures(P, n_resamples, rng, min(max_bytes, max_bytes // 2 + 8 * size)):
        m = part.stop - part.start
        offset = part.draw * size
        moved = np.bincount(offset + cells[part.row, part.label], minlength=m * size)
        moved -= np.bincount(offset + home[part.row], minlength=m * size)
        yield base + moved.reshape(m, size)


def linear_draws(
    P: FloatArray, values: FloatArray, n_resamples: int, rng: np.random.Generator, max_bytes: int = MAX_BYTES
) -> FloatArray:
    """Draws (B, d) of the sum over rows of ``values[row, label]``, for values of shape (n, K, d)."""
    n = P.shape[0]
    top = P.argmax(axis=1)
    home = values[np.arange(n), top]
    out = np.empty((n_resamples, values.shape[2]))
    for part in departures(P, n_resamples, rng, max_bytes):
        change = values[part.row, part.label] - home[part.row]
        for d in range(values.shape[2]):
            out[part.start : part.stop, d] = np.bincount(
                part.draw, weights=change[:, d], minlength=part.stop - part.start
            )
    return out + home.sum(axis=0)
