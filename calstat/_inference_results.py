"""Results of the bootstrap and of the pseudo-label test: numbers that answer later questions without new draws."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary

from calstat import plots
from calstat._arrays import resampling, smooth_intervals
from calstat._arrays.smooth_intervals import CurveCells, KernelCells, PairForm, Smoothed
from calstat._input.validation import check_alpha, check_choice
from calstat._results import CalibrationTest, format_number, info_table, make_summary, number_table
from calstat._typing import FloatArray
from calstat.exceptions import NotDefinedError

Interval: TypeAlias = Literal["inversion", "ustatistic", "band", "percentile", "basic", "normal", "bca"]
INTERVALS = get_args(Interval)

# Draws at each step of an inversion: the tail of 2.5% is then known to 0.35%.
INVERSION_DRAWS = 2000
# Errors without bins have more cells, and a draw costs more.
SMOOTH_DRAWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BootstrapResult:
    """
    A metric with its bootstrap distribution and intervals.

    Attributes
    ----------
    metric : str
        Name of the metric.
    estimate : float
        Its value on the sample.
    distribution : ndarray of shape (B,)
        Its values on the resamples; NaN where one could not be computed.
    ci_method : str or None
        The interval that `conf_int` gives unless told otherwise; None where no interval is known to cover.
    nobs : float
        Number of observations, weights counted.
    target : str
        What the interval is an interval for.
    acceleration : float or None
        Acceleration constant of BCa.
    binned : BinnedSample or None
        Sums that the intervals of a binned error need.
    smoothed : PairForm, CurveCells, KernelCells or None
        What those of an error without bins need.
    power : float
        Exponent from the binned error to the metric: 2 for the squared error, else 1.
    seed : int
        Seed of the draws of an inversion, so that `conf_int` always gives the same limits.
    notes : tuple of str
        Remarks that the reader has to know.

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.05, 0.95, 300)
    >>> y = np.random.default_rng(1).random(300) < p
    >>> result = cs.bootstrap(cs.brier_score, y, p, rng=1)
    >>> low, high = result.conf_int()
    >>> bool(low < result.estimate < high)
    True

    The interval holds the values of the metric in the population that agree with this sample.
    """

    metric: str
    estimate: float
    distribution: FloatArray
    ci_method: Interval | None
    nobs: float
    target: str
    acceleration: float | None = None
    binned: resampling.BinnedSample | None = None
    smoothed: Smoothed | None = None
    power: float = 1.0
    seed: int
    notes: tuple[str, ...] = ()

    @property
    def _finite(self) -> FloatArray:
        return self.distribution[np.isfinite(self.distribution)]

    @property
    def bias(self) -> float:
        """Mean of the bootstrap values less the estimate."""
        return float(self._finite.mean() - self.estimate) if self._finite.size else float("nan")

    @property
    def debiased(self) -> float:
        """Estimate less its bootstrap bias; an error may come out negative, which means none beyond noise."""
        return self.estimate - self.bias

    @property
    def bse(self) -> float:
        """Bootstrap standard error."""
        return float(self._finite.std(ddof=1)) if self._finite.size > 1 else float("nan")

    def conf_int(self, alpha: float = 0.05, method: Interval | None = None) -> tuple[float, float]:
        """
        Return the confidence limits, without resampling again.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.
        method : {"inversion", "ustatistic", "band", "percentile", "basic", "normal", "bca"}, optional
            By default the method of the result, `ci_method`. "inversion" is for binned errors, the ICI and the smooth
            ECE, "ustatistic" for the MMCE and binned errors of norm 2 of an event or of the top label, "band" for
            ICI, E50, E90 and Emax.

        Returns
        -------
        tuple of two floats
            (NaN, NaN) where the result has no method that is known to cover and none is asked for.

        Raises
        ------
        NotDefinedError
            For a method that this metric does not have.
        """
        alpha = check_alpha(alpha)
        check_choice("method", method, (None, *INTERVALS))
        chosen = method or self.ci_method
        draws = self._finite
        if chosen is None or np.isnan(self.estimate) or draws.size < 2:
            return float("nan"), float("nan")
        if chosen == "inversion":
            return self._inverted(alpha)
        if chosen == "ustatistic":
            return self._around_the_debiased(alpha)
        if chosen == "band":
            return self._within_the_band(alpha)
        if chosen == "percentile":
            return resampling.percentile_limits(draws, alpha)
        if chosen == "basic":
            return resampling.basic_limits(self.estimate, draws, alpha)
        if chosen == "normal":
            return resampling.normal_limits(self.estimate, draws, alpha)
        if self.acceleration is None:
            raise NotDefinedError(
                f"method='bca' needs leave-one-out values, which were not taken for {self.metric}: "
                "pass ci_method='bca' to bootstrap."
            )
        return resampling.bca_limits(self.estimate, draws, alpha, self.acceleration)

    def _inverted(self, alpha: float) -> tuple[float, float]:
        cells = self.smoothed
        if isinstance(cells, KernelCells) or (isinstance(cells, CurveCells) and cells.share is None):
            uniform = np.random.default_rng(self.seed).random((SMOOTH_DRAWS, cells.count.size))
            interval = smooth_intervals.invert_smoothed_error(cells, uniform, alpha)
            return interval.low, interval.high
        if self.binned is None:
            raise NotDefinedError(
                "method='inversion' is for binned errors on fixed edges, the ICI with lowess and the smooth ECE, of "
                f"independent rows; {self.metric} is none here."
            )
        uniform = resampling.uniform_draws(
            self.binned.count.size, self.binned.correlation, INVERSION_DRAWS, np.random.default_rng(self.seed)
        )
        interval = resampling.invert_binned_error(self.binned, uniform, alpha)
        return interval.low**self.power, interval.high**self.power

    def _around_the_debiased(self, alpha: float) -> tuple[float, float]:
        if isinstance(self.smoothed, PairForm):
            low, high = smooth_intervals.pair_limits(self.smoothed, alpha)
            return low**0.5, high**0.5
        if self.binned is None or self.binned.norm != 2 or self.binned.correlation is not None:
            raise NotDefinedError(
                "method='ustatistic' is for the MMCE and binned errors of norm 2, of an event or of the top label, of "
                f"independent rows on fixed edges; {self.metric} is none here."
            )
        low, high = resampling.ustatistic_limits(self.binned, alpha)
        return low ** (self.power / 2), high ** (self.power / 2)

    def _within_the_band(self, alpha: float) -> tuple[float, float]:
        if not isinstance(self.smoothed, CurveCells):
            raise NotDefinedError(
                "method='band' is for ICI, E50, E90 and Emax of independent rows with lowess on the scale of p; "
                f"{self.metric} is none here."
            )
        normal = np.random.default_rng(self.seed).standard_normal((SMOOTH_DRAWS, self.smoothed.count.size))
        return smooth_intervals.band_limits(self.smoothed, normal, alpha)

    def to_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """
        Return the result as a data frame of one row.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        pandas.DataFrame
            Columns estimate, bias, debiased, bse, ci_low, ci_high, ci_method, n_resamples, nobs, by metric.
        """
        low, high = self.conf_int(alpha)
        row = {
            "estimate": self.estimate,
            "bias": self.bias,
            "debiased": self.debiased,
            "bse": self.bse,
            "ci_low": low,
            "ci_high": high,
            "ci_method": self.ci_method,
            "n_resamples": self.distribution.size,
            "nobs": self.nobs,
        }
        return pd.DataFrame([row], index=pd.Index([self.metric], name="metric"))

    def summary(self, alpha: float = 0.05) -> Summary:
        """
        Return the result as a table with text, HTML and LaTeX forms.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        statsmodels.iolib.summary.Summary
        """
        frame = self.to_frame(alpha).iloc[0]
        info = info_table(
            f"Bootstrap of {self.metric}",
            [
                ("Observations", f"{self.nobs:g}"),
                ("Resamples", f"{self.distribution.size}"),
                ("Interval", self.ci_method or "none"),
                ("Level", f"{100 * (1 - alpha):g}%"),
            ],
        )
        names = ["estimate", "bias", "debiased", "bse", "ci_low", "ci_high"]
        headers = ["estimate", "bias", "debiased", "std err", f"[{alpha / 2:g}", f"{1 - alpha / 2:g}]"]
        table = number_table([[format_number(float(frame[c])) for c in names]], headers, [self.metric])
        return make_summary([info, table], [f"Target: {self.target}.", *self.notes])

    def __str__(self) -> str:
        """Return the summary as text."""
        return self.summary().as_text()

    __repr__ = __str__

    def plot(self, alpha: float = 0.05, *, ax: Any = None) -> Any:
        """
        Draw the bootstrap distribution with the estimate and the interval.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
        """
        low, high = self.conf_int(alpha)
        return plots.bootstrap_distribution(self.distribution, self.estimate, low, high, label=self.metric, ax=ax)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PseudoLabelTest(CalibrationTest):
    """
    A test whose null law is that of labels drawn from the predicted probabilities.

    Besides what a `CalibrationTest` has:

    Attributes
    ----------
    draws : ndarray of shape (B,)
        The statistic on the drawn labels.
    expected : float
        Mean of the draws: what to expect of calibrated predictions.
    mc_error : float
        Standard error of the p-value that comes from the number of draws.
    by_class : pandas.DataFrame or None
        For class-wise errors, a row for each class: statistic, expected, pvalue and pvalue_holm.
    """

    draws: FloatArray
    expected: float
    mc_error: float
    by_class: pd.DataFrame | None = None

    def __str__(self) -> str:
        """Add what is expected under calibration to the lines of the test."""
        lines = CalibrationTest.__str__(self).split("\n")
        place = (
            f"expected under calibration: {format_number(self.expected)}; {self.draws.size} draws, "
            f"Monte Carlo error of p {self.mc_error:.1g}"
        )
        return "\n".join([*lines[:3], place, *lines[3:]])

    __repr__ = __str__

    def plot(self, *, ax: Any = None) -> Any:
        """
        Draw the null distribution with the observed value.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plots.null_distribution(
            self.draws, self.statistic, expected=self.expected, label=str(self.details["statistic"]), ax=ax
        )
