"""Results of isotonic calibration: the blocks, the map through them, and its pointwise intervals."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special

from calstat._arrays.pav import PavFit, fit_of_blocks, pav, pool_ties, smooth_blocks, window_sums
from calstat._arrays.resampling import count_blocks
from calstat._binary_map import BinaryData
from calstat._input.validation import check_alpha, check_choice, check_count, check_rng
from calstat._results import format_count, format_number
from calstat._typing import FloatArray, IntArray, RNGLike
from calstat.exceptions import InputError
from calstat.nonparametric.results import IntervalPrediction, NonparametricResults

_GRID = 201
_MAX_DRAWN = 50_000_000  # numbers kept by a bootstrap: 400 MB
_BLOCK_BYTES = 1 << 27


def one_sided_limits(sums: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Clopper-Pearson lower limits from rows on the left, upper ones from rows on the right, at alpha / 2 each.

    `sums` (4, n) are events and rows on the left, events and rows on the right of each point; NaN for no point.
    """
    left_events, left_count, right_events, right_count = sums
    has_low, has_high = left_events > 0, right_events < right_count
    low, high = np.where(np.isnan(left_events), np.nan, 0.0), np.where(np.isnan(right_events), np.nan, 1.0)
    k, n = left_events[has_low], left_count[has_low]
    low[has_low] = special.betaincinv(k, n - k + 1.0, alpha / 2)
    k, n = right_events[has_high], right_count[has_high]
    high[has_high] = special.betainccinv(k + 1.0, n - k, alpha / 2)
    return low, high


def quantile_limits(draws: FloatArray, place: IntArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Percentile limits (n,) of the draws (B, m) in column `place` (n,); NaN for the column m, which is none."""
    limits = np.quantile(draws, [alpha / 2, 1.0 - alpha / 2], axis=0)
    low, high = np.column_stack((limits, [np.nan, np.nan]))[:, place]
    return low, high


def pav_draws(
    data: BinaryData, at: FloatArray, smoothing: float, n_resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Isotonic fits of bootstrap samples of rows, at points `at` (m,): (B, m)."""
    scores, total, count = pool_ties(data.target, data.scores, data.weights)
    x, y = np.tile(scores, 2), np.repeat([1.0, 0.0], scores.size)
    copies = np.concatenate((total, count - total))
    x, y, copies = x[copies > 0], y[copies > 0], copies[copies > 0]
    weights = None if copies.max() == 1.0 else copies
    draws = np.empty((n_resamples, at.size))
    done = 0
    for block in count_blocks(x.size, n_resamples, rng, weights=weights, max_bytes=_BLOCK_BYTES):
        for drawn in block:
            fit = pav(y, x, drawn)
            if smoothing:
                fit, _ = smooth_blocks(fit, fit.value * fit.count, smoothing)
            draws[done] = fit.predict(at)
            done += 1
    return draws


class IsotonicCalibrationResults(NonparametricResults, kind="IsotonicCalibration"):
    """
    Results of `IsotonicCalibration`: a non-decreasing map, constant on blocks of scores and linear between them.

    Beside what all maps without coefficients have:

    Attributes
    ----------
    thresholds, values : ndarray, shape (T,)
        The corners of the map: the ends of the blocks, and the calibrated probabilities there.
    n_blocks : int
        Number of blocks, which is also the number of degrees of freedom of the fit (Meyer and Woodroofe 2000).
    """

    def __init__(
        self, *, lower: FloatArray, upper: FloatArray, value: FloatArray, count: FloatArray, events: FloatArray,
        **shared: Any,
    ) -> None:  # fmt: skip
        super().__init__(**shared)
        self._fit: PavFit = fit_of_blocks(lower, upper, value, count)
        self._events = events

    @property
    def thresholds(self) -> FloatArray:
        """Scores at the corners of the map, increasing."""
        return self._fit.thresholds.copy()

    @property
    def values(self) -> FloatArray:
        """Calibrated probabilities at the corners of the map."""
        return self._fit.values.copy()

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return self._fit.value.size

    @property
    def key_numbers(self) -> pd.Series:
        """Blocks, calibrated probabilities at the ends, Brier score, and counts of exact 0 and 1."""
        return pd.Series(
            {
                "blocks": self.n_blocks,
                "lowest": self._fit.value[0],
                "highest": self._fit.value[-1],
                "brier": self.brier,
                "n_zero": self.n_zero,
                "n_one": self.n_one,
            }
        )

    def _cells(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._fit.count, self._events, self._fit.value

    def _map(self, scores: FloatArray) -> FloatArray:
        return self._fit.predict(scores)

    def table(self) -> pd.DataFrame:
        """
        The blocks of the fit.

        Returns
        -------
        DataFrame, one row per block
            Columns lower and upper (smallest and largest score), count (weights counted), events, rate, and value,
            the calibrated probability, which is the rate unless `smoothing` was asked for.
        """
        f = self._fit
        columns = {"lower": f.lower, "upper": f.upper, "count": f.count, "events": self._events}
        return pd.DataFrame(
            {**columns, "rate": self._events / f.count, "value": f.value},
            index=pd.RangeIndex(f.value.size, name="block"),
        )

    def get_prediction(
        self,
        new: Any = None,
        *,
        method: Literal["monotone", "bootstrap"] = "monotone",
        n_resamples: int = 999,
        rng: RNGLike = None,
    ) -> IntervalPrediction:
        r"""
        Calibrated probabilities with pointwise intervals.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as in `predict`, one per row. Without it, the rows of the fit.
        method : {"monotone", "bootstrap"}, default "monotone"
            "monotone" takes the lower limit from the :math:`n^{2/3}` rows with the nearest scores from below and the
            upper one from as many above (Clopper-Pearson, level alpha/2 each). If the event's probability does not
            fall with the score, such an interval covers it with at least the stated probability in every sample
            size. "bootstrap" gives percentiles of isotonic fits to resampled rows, a narrower interval
            that does not hold its level: see Notes.
        n_resamples : int, default 999
            Bootstrap samples.
        rng : None, int or Generator
            Randomness of the bootstrap.

        Returns
        -------
        IntervalPrediction
            ``summary_frame(alpha)`` gives mean, mean_se (of the bootstrap, else NaN), mean_ci_lower, mean_ci_upper.

        Raises
        ------
        NotEstimableError
            For a map loaded from JSON, which does not hold the data.
        InputError
            If the bootstrap would have to keep more than 5e7 numbers; pass fewer scores, for instance a grid.

        Notes
        -----
        The interval holds the event's probability at one score, not at all scores at once. The bootstrap of an isotonic
        fit is not consistent (Kosorok 2008). In 100 to 1000 simulated samples of 300 rows its 95% intervals covered 93
        to 99% at the median score, but only 2 to 89% at the worst of five scores, least where the true map is steep and
        the fit exactly 0 or 1. The monotone ones covered 96 to 100%, at one and a half to two and a half times the
        width.

        References
        ----------
        Kosorok, M. R. (2008). Bootstrapping the Grenander estimator. IMS Collections 1, 282-292.
        https://doi.org/10.1214/193940307000000202
        Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of
        the binomial. Biometrika 26. https://doi.org/10.1093/biomet/26.4.404
        """
        check_choice("method", method, ("monotone", "bootstrap"))
        scores, index = self._new_scores(new, "A prediction of the rows of the fit")
        data = self._data("An interval")
        points, place = np.unique(scores, return_inverse=True)  # NaN, if any, comes last and once
        points = points[~np.isnan(points)]
        predicted = self._map(scores)
        if method == "monotone":
            pooled = pool_ties(data.target, data.scores, data.weights)
            sums = window_sums(*pooled, points, np.ceil(self.nobs ** (2 / 3)))
            spread = np.stack([np.append(part, np.nan)[place] for part in sums])
            return IntervalPrediction(
                predicted=predicted,
                se=np.full(scores.size, np.nan),
                limits=partial(one_sided_limits, spread),
                index=index,
            )
        if check_count("n_resamples", n_resamples, minimum=2) * points.size > _MAX_DRAWN:
            raise InputError(
                f"`n_resamples` ({n_resamples}) times the number of distinct scores ({points.size}) must not exceed "
                f"{_MAX_DRAWN:.0e}; pass fewer scores, for instance a grid, or take method='monotone'."
            )
        draws = pav_draws(data, points, self._options["smoothing"], n_resamples, check_rng(rng))
        return IntervalPrediction(
            predicted=predicted,
            se=np.append(draws.std(axis=0, ddof=1), np.nan)[place],
            limits=partial(quantile_limits, draws, place),
            index=index,
        )

    def _group_information(self) -> list[tuple[str, str]]:
        return [("Blocks", str(self.n_blocks))]

    def _group_table(self, alpha: float) -> tuple[list[list[str]], list[str], list[str], str]:
        del alpha
        rows = [
            [format_number(low), format_number(high), format_count(n), format_count(k), format_number(rate),
             format_number(value)]
            for low, high, n, k, rate, value in self.table().to_numpy()
        ]  # fmt: skip
        headers = ["lowest", "highest score", "n", "events", "rate", "value"]
        return rows, headers, [str(i) for i in range(len(rows))], "Blocks of scores"

    def _remarks(self) -> list[str]:
        text = (
            "Pooled adjacent violators; tied scores are one point. The map is constant on a block, linear between "
            "blocks, and constant beyond the ends. The blocks were chosen by the outcomes, so their rates have no "
            "simple intervals; `get_prediction` gives pointwise ones."
        )
        return [text]

    def plot(self, alpha: float = 0.05, ax: Axes | None = None) -> Figure:
        """
        Draw the calibration map with its pointwise band.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the band.
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            Map and monotone band over the scores, with observed frequencies in ten bins when the data are at hand.
        """
        check_alpha(alpha)
        corners = self._fit.thresholds
        low, high = (0.0, 1.0) if self._scale == "probability" else (float(corners[0]), float(corners[-1]))
        grid = np.unique(np.concatenate((np.linspace(low, high, _GRID), corners)))
        frame = None if self._sample is None else self.get_prediction(grid).summary_frame(alpha)
        return self._picture(grid, frame, self._map(grid), alpha, ax)

    def _arrays(self) -> dict[str, FloatArray]:
        f = self._fit
        return {"lower": f.lower, "upper": f.upper, "value": f.value, "count": f.count, "events": self._events}
