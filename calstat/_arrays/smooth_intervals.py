"""Intervals for errors that have no bins: of pairs of rows, of smoothed curves, of smoothed residuals.

None of these errors has a law that is free of the truth near 0, so that every interval here asks which truths do
not contradict the sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import numpy as np
from scipy import fft, optimize, stats

from calstat._arrays.resampling import BinomialQuantiles, InvertedInterval, tail_margins
from calstat._arrays.statistics import weighted_order_quantile
from calstat._typing import FloatArray, IntArray

# Limits on the path of the gaps are found to this, on the scale of probabilities.
_PATH_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class PairForm:
    """A mean over pairs of different rows of e_i e_j k_ij, whose expectation is a squared error.

    Attributes
    ----------
    estimate : float
        The mean over pairs: unbiased, and negative about half of the time under calibration.
    slope : float
        Variance of the mean that grows with the squared error, per unit of it.
    base : float
        Variance of the mean under calibration.
    """

    estimate: float
    slope: float
    base: float


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveCells:
    """A linear smoother of event rates, on cells of neighbouring rows.

    Attributes
    ----------
    count, mean_p, events : ndarray of shape (C,)
        Rows, mean probability and events of each cell.
    smoother : ndarray of shape (C, C)
        Takes event rates of the cells to the curve at the cells; straight lines pass unchanged.
    share : float or None
        The error is this quantile over rows of the distance of the curve from the diagonal; None for the mean.
    """

    count: FloatArray
    mean_p: FloatArray
    events: FloatArray
    smoother: FloatArray
    share: float | None

    def gap(self) -> FloatArray:
        """Return the curve less the diagonal (C,)."""
        return self.smoother @ (self.events / self.count - self.mean_p)

    def errors(self, excess: FloatArray) -> FloatArray:
        """Return the mean distance (B,) for events less their expectation (B, C)."""
        distance = np.abs(excess / self.count @ self.smoother.T)
        return np.asarray(distance @ self.count / self.count.sum())

    def observed(self) -> float:
        """Return the value that the draws of `errors` are compared with."""
        return float(self.errors(self.events - self.count * self.mean_p))

    def level(self, gap: FloatArray) -> float:
        """Return the error of a population with these gaps (C,)."""
        return float(self.errors(self.count * gap))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelCells:
    """Residuals on a regular grid of [0, 1], and the bandwidth at which their smoothed error equals it.

    Attributes
    ----------
    count, mean_p, events : ndarray of shape (C,)
        Rows, mean probability and events of each cell of the grid that holds rows.
    place : ndarray of shape (C,)
        Its number on the grid.
    size : int
        Cells of the grid.
    bandwidth : float
        The smooth calibration error of the sample.
    """

    count: FloatArray
    mean_p: FloatArray
    events: FloatArray
    place: IntArray
    size: int
    bandwidth: float

    def gap(self) -> FloatArray:
        """Return local means of the residuals (C,), a row without residual added to each window."""
        residual = self._smoothed(self.events - self.count * self.mean_p)
        row = 1 / (max(self.bandwidth * self.size, 1) * np.sqrt(4 * np.pi))
        return np.asarray((residual / (self._smoothed(self.count) + row))[self.place])

    def errors(self, excess: FloatArray) -> FloatArray:
        """Return the error (B,) smoothed with the bandwidth of the sample, for residual sums (B, C).

        A set of labels has a smooth calibration error above that of the sample if and only if this exceeds the
        bandwidth, since the smoothed error never grows with the bandwidth.
        """
        return np.asarray(np.abs(self._smoothed(excess)).sum(axis=-1) / self.count.sum())

    def observed(self) -> float:
        """Return the value that the draws of `errors` are compared with."""
        return float(self.errors(self.events - self.count * self.mean_p))

    def level(self, gap: FloatArray) -> float:
        """Return the smooth calibration error of a population with these gaps (C,)."""
        return fixed_bandwidth(self._spectrum(self.count * gap) / self.count.sum())

    def _spectrum(self, values: FloatArray) -> FloatArray:
        grid = np.zeros((*values.shape[:-1], self.size))
        grid[..., self.place] = values
        return np.asarray(fft.dct(grid, overwrite_x=True))

    def _smoothed(self, values: FloatArray) -> FloatArray:
        return np.asarray(fft.idct(damped(self._spectrum(values), self.bandwidth), overwrite_x=True))


Smoothed: TypeAlias = PairForm | CurveCells | KernelCells
"""What the law of an error without bins depends on."""


def damped(spectrum: FloatArray, bandwidth: float) -> FloatArray:
    """Cosine transform (..., G) of what is smoothed by a Gaussian kernel that is reflected at 0 and 1."""
    frequency = np.pi * np.arange(spectrum.shape[-1])
    return spectrum * np.exp(-0.5 * (frequency * bandwidth) ** 2)


def fixed_bandwidth(spectrum: FloatArray) -> float:
    """Return the bandwidth in (0, 1] that the smoothed error equals, for the cosine transform (G,) of residuals."""
    if not spectrum.any():
        return 0.0

    def excess(bandwidth: float) -> float:
        return float(np.abs(fft.idct(damped(spectrum, bandwidth))).sum()) - bandwidth

    # The smoothed error never grows with the bandwidth, so there is one root; it is 1 when all is wrong with certainty.
    if excess(1.0) >= 0:
        return 1.0
    return float(optimize.brentq(excess, 0.0, 1.0, xtol=1e-12))


def pair_limits(form: PairForm, alpha: float) -> tuple[float, float]:
    """Limits of the squared error: the values from which the estimate is at most z standard errors away.

    The standard error is the one that it has at the value in question, which makes the ends roots of a quadratic.
    Values above 1 do not exist. (0, 0) where every value is rejected: then the estimate is smaller than calibrated
    data would give.
    """
    z = float(stats.norm.isf(alpha / 2))
    half = z**2 * form.slope / 2
    square = half**2 + 2 * half * form.estimate + z**2 * form.base
    if square < 0:
        return 0.0, 0.0
    centre, reach = form.estimate + half, float(np.sqrt(square))
    return max(centre - reach, 0.0), min(max(centre + reach, 0.0), 1.0)


def invert_smoothed_error(cells: CurveCells | KernelCells, uniform: FloatArray, alpha: float) -> InvertedInterval:
    """Limits of a mean error along paths of the gaps, by binomial draws from uniforms (B, C).

    Towards smaller errors all gaps g shrink: sign(g) max(abs(g) + t, 0) for t < 0. Towards larger ones the curve is
    moved as a whole, up or down, from where it is and from the diagonal, and the farthest of the four limits holds.
    Stretching gaps of both signs would reject too early, since errors of a curve that crosses the diagonal vary less
    than those of one that does not; so would moving the curve of the sample alone, whose bends are chance in part, and
    moving the diagonal alone where gaps are so large that its rates would end at 0 or 1.
    """
    mean_p = cells.mean_p
    gap = np.clip(cells.gap(), -mean_p, 1 - mean_p)
    quantiles = BinomialQuantiles(cells.count, uniform)
    observed = cells.observed()

    def moved(t: float, start: int, direction: int) -> FloatArray:
        """Gaps on a path that starts at those of the sample (1) or at none (0) and goes up, down or (0) to none."""
        if direction == 0:
            return np.sign(gap) * np.maximum(np.abs(gap) + t, 0)
        return np.clip(start * gap + direction * t, -mean_p, 1 - mean_p)

    @cache
    def beyond(t: float, start: int, direction: int) -> tuple[float, float]:
        draws = cells.errors(quantiles.at(mean_p + moved(t, start, direction)) - cells.count * mean_p)
        return tail_margins(draws, observed, alpha)

    def limit(side: int, inside: float, outside: float, start: int, direction: int) -> tuple[float, float]:
        t = _crossing(lambda t: beyond(t, start, direction)[side], inside, outside)
        return t, cells.level(moved(t, start, direction))

    bottom = -float(np.abs(gap).max())
    if beyond(bottom, 1, 0)[1] < 0:
        return InvertedInterval(low=0.0, high=0.0, empty=True)
    _, low = limit(0, 0.0, bottom, 1, 0)
    reached, shrunk = limit(1, bottom, 0.0, 1, 0)
    paths = [(start, direction) for start in ((0, 1) if reached == 0 else (0,)) for direction in (1, -1)]
    high = max(shrunk, *(limit(1, 0.0, 1.0, *path)[1] for path in paths))
    return InvertedInterval(low=min(low, high), high=high, empty=False)


def _crossing(kept: Callable[[float], float], inside: float, outside: float) -> float:
    """Return where `kept` turns negative between two ends, or the end that says there is no such place."""
    if kept(outside) >= 0:
        return outside
    if kept(inside) < 0:
        return inside
    return float(optimize.brentq(kept, inside, outside, xtol=_PATH_TOLERANCE))


def band_limits(cells: CurveCells, normal: FloatArray, alpha: float) -> tuple[float, float]:
    """Limits for the mean and every quantile of the distance from a band around the whole curve, by normals (B, C).

    The band is as many standard errors wide as 1 - alpha of the draws need for all cells at once. Where it holds the
    smoothed truth, the nearest and the farthest distances in it have a mean and quantiles that enclose the true ones.
    A rate is taken to vary as much as the curve or p says, whichever says more: a curve at 0 would not seem to vary.
    """
    gap = cells.gap()
    rate = np.clip(cells.mean_p + gap, 0, 1)
    sd = np.sqrt(np.maximum(rate * (1 - rate), cells.mean_p * (1 - cells.mean_p)) / cells.count)
    se = np.sqrt(cells.smoother**2 @ sd**2)
    noise = np.abs((normal * sd) @ cells.smoother.T) / np.where(se > 0, se, 1.0)
    reach = np.quantile(noise.max(axis=1), 1 - alpha) * se
    distance = np.abs(gap)
    nearest, farthest = np.maximum(distance - reach, 0), np.minimum(distance + reach, 1)
    if cells.share is None:
        return tuple(np.average([nearest, farthest], axis=1, weights=cells.count).tolist())
    share = np.array([cells.share])
    low, high = (weighted_order_quantile(d, share, cells.count)[0] for d in (nearest, farthest))
    return float(low), float(high)
