"""Results of maps that have no coefficients but rates of groups of rows: what they share, and histogram binning."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy import special
from statsmodels.iolib.summary import Summary

from calstat._arrays.binning import BinTable, assign_bins
from calstat._binary_map import BinaryData, BinaryDescription, BinaryMap, observed
from calstat._data import ScoreReader
from calstat._input.validation import check_alpha
from calstat._results import format_count, format_number, info_table, make_summary, number_table
from calstat._typing import FloatArray
from calstat.metrics._intervals import wilson_interval
from calstat.plots import calibration_map

_PRINTED = 25
Limits = Callable[[float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntervalPrediction:
    """
    Calibrated probabilities with pointwise intervals.

    Attributes
    ----------
    predicted : ndarray, shape (n,)
        Calibrated probabilities; NaN where the score is missing.
    se : ndarray, shape (n,)
        Standard errors; NaN where the kind of interval has none.
    limits : callable
        Gives lower and upper limits (n,), (n,) for an alpha.
    index : Index or None
        Index of the rows.
    """

    predicted: FloatArray
    se: FloatArray
    limits: Limits
    index: pd.Index | None

    def summary_frame(self, alpha: float = 0.05) -> pd.DataFrame:
        """
        Return the predictions with standard errors and intervals.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame
            Columns mean, mean_se, mean_ci_lower, mean_ci_upper.
        """
        low, high = self.limits(check_alpha(alpha))
        columns = {"mean": self.predicted, "mean_se": self.se, "mean_ci_lower": low, "mean_ci_upper": high}
        return pd.DataFrame(columns, index=self.index)


def bin_values(count: FloatArray, events: FloatArray, extra: float) -> FloatArray:
    """Event rates (B,) after adding `extra` events and non-events; an empty bin takes the nearest, lower on ties."""
    filled = np.flatnonzero(count > 0)
    nearest = np.abs(np.arange(count.size)[:, None] - filled).argmin(axis=1) if filled.size < count.size else filled
    source = filled[nearest] if filled.size < count.size else filled
    return (events[source] + extra) / (count[source] + 2.0 * extra)


def binomial_se(events: FloatArray, count: FloatArray) -> FloatArray:
    """Standard errors of event rates, NaN where there are no rows."""
    n = np.where(count > 0, count, np.nan)
    return np.sqrt(events * (n - events) / n) / n


class NonparametricResults(BinaryMap):
    """
    A binary map without coefficients, fitted on groups of rows: blocks or bins.

    Attributes
    ----------
    event, nonevent : label
        The label whose probability is calibrated, and the other one.
    fittedvalues : ndarray or Series
        Calibrated probabilities of the rows of the fit.
    nobs : float
        Number of observations, weights counted.
    llf, brier : float
        Log-likelihood and mean squared difference of the map on the rows of the fit, which it was chosen on.
    brier_identity : float
        Mean squared difference of the scores as they are; NaN for log odds.
    n_zero, n_one : float
        Observations whose fitted probability is exactly 0, and exactly 1.
    """

    _options: dict[str, Any]

    def __init__(
        self,
        *,
        options: dict[str, Any],
        brier_identity: float,
        description: BinaryDescription,
        reader: ScoreReader,
        outcome: str,
        data: BinaryData | None = None,
    ) -> None:
        self._options = options
        self.brier_identity = brier_identity
        self._description = description
        self._reader = reader
        self.outcome = outcome
        self.nobs = description.events + description.nonevents
        self._sample = data

    @property
    def _scale(self) -> str:
        return str(self._options.get("scores", "probability"))

    @abstractmethod
    def _cells(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Rows, events and calibrated probability of each group of rows."""

    @property
    def llf(self) -> float:
        """Log-likelihood of the map on the rows of the fit."""
        count, events, value = self._cells()
        return float(special.xlogy(events, value).sum() + special.xlog1py(count - events, -value).sum())

    @property
    def brier(self) -> float:
        """Mean squared difference between outcome and calibrated probability on the rows of the fit."""
        count, events, value = self._cells()
        return float((events * (1.0 - value) ** 2 + (count - events) * value**2).sum() / count.sum())

    @property
    def n_zero(self) -> float:
        """Observations whose fitted probability is exactly 0."""
        count, _, value = self._cells()
        return float(count[value == 0.0].sum())

    @property
    def n_one(self) -> float:
        """Observations whose fitted probability is exactly 1."""
        count, _, value = self._cells()
        return float(count[value == 1.0].sum())

    @property
    @abstractmethod
    def key_numbers(self) -> pd.Series:
        """Numbers that describe the fit in one row of a table of fits."""

    @abstractmethod
    def get_prediction(self, new: Any = None) -> IntervalPrediction:
        """
        Calibrated probabilities with pointwise intervals.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as in `predict`, one per row. Without it, the rows of the fit.

        Returns
        -------
        IntervalPrediction
            ``summary_frame(alpha)`` gives mean, mean_se, mean_ci_lower, mean_ci_upper.
        """

    def _new_scores(self, new: Any, what: str) -> tuple[FloatArray, pd.Index | None]:
        """Scores (n,) with NaN where missing, and their index; without `new` those of the fit."""
        if new is None:
            data = self._data(what)
            return data.scores, data.index
        given = self._read_new(new, two_columns=True)
        return self._event_scores(given)[0], given.index

    # -- printing ------------------------------------------------------------------------------------

    @abstractmethod
    def _group_information(self) -> list[tuple[str, str]]:
        """What is special of this kind of map, as pairs of name and value."""

    @abstractmethod
    def _group_table(self, alpha: float) -> tuple[list[list[str]], list[str], list[str], str]:
        """Rows of cells, headers, names and title of the table of groups."""

    @abstractmethod
    def _remarks(self) -> list[str]:
        """Remarks on how the map is made."""

    def summary(self, alpha: float = 0.05) -> Summary:
        """
        Tables that describe the fit.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of intervals.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            Fit statistics, the groups of rows with their rates, notes; long tables are cut to 25 lines. ``as_html()``
            and ``as_latex()`` give the other forms.
        """
        entries = [
            *self._outcome_information(),
            ("Observations", format_count(self.nobs)),
            *self._group_information(),
            ("Log-likelihood", format_number(self.llf, 3)),
            ("Brier score", format_number(self.brier)),
            ("Brier score, identity map", format_number(self.brier_identity)),
            ("Fitted exactly 0", format_count(self.n_zero)),
            ("Fitted exactly 1", format_count(self.n_one)),
        ]
        rows, headers, names, title = self._group_table(check_alpha(alpha))
        notes = self._remarks()
        if len(rows) > _PRINTED:
            notes.append(f"The table shows the first {_PRINTED} of {len(rows)} lines; `table()` has them all.")
        notes.append(
            "Log-likelihood and Brier score are those of the rows that the map was chosen on, so they flatter it; "
            "CrossValidatedCalibration gives honest ones."
        )
        if self._options["smoothing"]:
            extra = f"{self._options['smoothing']:g}"
            notes.append(f"smoothing={extra}: {extra} events and as many non-events were added to each group of rows.")
        elif self.n_zero or self.n_one:
            notes.append(
                f"{format_count(self.n_zero + self.n_one)} of {format_count(self.nobs)} observations are fitted with "
                "exactly 0 or 1; one contrary outcome among new rows costs an infinite log-loss. smoothing=1 avoids it."
            )
        table = number_table(rows[:_PRINTED], headers, names[:_PRINTED], title=title)
        return make_summary(
            [info_table(f"{self.kind}: calibration map", entries), table], notes + list(self._description.notes)
        )

    def _picture(self, grid: FloatArray, frame: pd.DataFrame | None, y: FloatArray, alpha: float, ax: Any) -> Figure:
        """Draw the map over a grid, with a band where there is one."""
        data = self._sample
        points, histogram = (None, None) if data is None else observed(data, float(grid[0]), float(grid[-1]))
        return calibration_map(
            grid,
            y,
            band=None if frame is None else (frame["mean_ci_lower"], frame["mean_ci_upper"]),
            points=points,
            histogram=histogram,
            identity=self._scale == "probability",
            label=self.kind,
            band_label=f"{100 * (1 - alpha):g}% band",
            xlabel=str(self._reader.names[0]),
            ylabel=f"Calibrated probability of {self.event!r}",
            ax=ax,
        )

    # -- storage -------------------------------------------------------------------------------------

    @abstractmethod
    def _arrays(self) -> dict[str, FloatArray]:
        """Arrays of the map."""

    def _state(self) -> dict[str, Any]:
        d = self._description
        return {
            "options": self._options,
            "brier_identity": self.brier_identity,
            "description": {name: getattr(d, name) for name in d.__slots__},
            "outcome": self.outcome,
            "arrays": self._arrays(),
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        arrays: dict[str, Any] = {
            name: np.asarray(values, dtype=np.float64) for name, values in state["arrays"].items()
        }
        return cls(
            options=dict(state["options"]),
            brier_identity=state["brier_identity"],
            description=BinaryDescription(**{**state["description"], "notes": tuple(state["description"]["notes"])}),
            reader=ScoreReader(names=()),
            outcome=state["outcome"],
            **arrays,
        )


class HistogramBinningResults(NonparametricResults, kind="HistogramBinning"):
    """
    Results of `HistogramBinning`: the event rate of the bin that a score falls in.

    Beside what all maps without coefficients have:

    Attributes
    ----------
    edges : ndarray, shape (B + 1,)
        Edges of the realised bins, which are closed on the left, the last one on both sides.
    values : ndarray, shape (B,)
        Calibrated probability of each bin.
    n_bins, n_empty : int
        Realised bins, and how many of them held no row of the fit.
    """

    def __init__(
        self, *, edges: FloatArray, count: FloatArray, events: FloatArray, sum_p: FloatArray, **shared: Any
    ) -> None:
        super().__init__(**shared)
        self._bins = BinTable(edges=edges, count=count, sum_p=sum_p, sum_y=events)
        self._values = bin_values(count, events, self._options["smoothing"])

    @property
    def edges(self) -> FloatArray:
        """Edges of the realised bins."""
        return self._bins.edges.copy()

    @property
    def values(self) -> FloatArray:
        """Calibrated probability of each bin."""
        return self._values.copy()

    @property
    def n_bins(self) -> int:
        """Number of realised bins."""
        return self._values.size

    @property
    def n_empty(self) -> int:
        """Number of bins without a row."""
        return int((self._bins.count == 0).sum())

    @property
    def key_numbers(self) -> pd.Series:
        """Bins, empty ones, calibrated probabilities at the ends, Brier score, and counts of exact 0 and 1."""
        return pd.Series(
            {
                "bins": self.n_bins,
                "empty": self.n_empty,
                "lowest": self._values.min(),
                "highest": self._values.max(),
                "brier": self.brier,
                "n_zero": self.n_zero,
                "n_one": self.n_one,
            }
        )

    def _cells(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return self._bins.count, self._bins.sum_y, self._values

    def _map(self, scores: FloatArray) -> FloatArray:
        return self._values[assign_bins(scores, self._bins.edges)]

    def table(self, alpha: float = 0.05) -> pd.DataFrame:
        """
        The bins of the fit.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level.

        Returns
        -------
        DataFrame, one row per bin
            Columns lower, upper, count (weights counted), events, mean_p, rate, se (binomial), ci_low, ci_high
            (Wilson's interval for the rate), and value, the calibrated probability. In an empty bin all but lower,
            upper, count, events and value are NaN.
        """
        b = self._bins
        low, high = wilson_interval(b.sum_y, b.count, check_alpha(alpha))
        columns = {"lower": b.edges[:-1], "upper": b.edges[1:], "count": b.count, "events": b.sum_y}
        columns |= {"mean_p": b.mean_p, "rate": b.mean_y, "se": binomial_se(b.sum_y, b.count)}
        columns |= {"ci_low": low, "ci_high": high, "value": self._values}
        return pd.DataFrame(columns, index=pd.RangeIndex(self.n_bins, name="bin"))

    def get_prediction(self, new: Any = None) -> IntervalPrediction:
        """
        Calibrated probabilities with the standard error and Wilson's interval of their bin.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as in `predict`, one per row. Without it, the rows of the fit.

        Returns
        -------
        IntervalPrediction
            ``summary_frame(alpha)`` gives mean, mean_se, mean_ci_lower, mean_ci_upper. They hold the event rate of
            the bin; in an empty bin, whose value is borrowed, there is no standard error and no interval.
        """
        scores, index = self._new_scores(new, "A prediction of the rows of the fit")
        present = ~np.isnan(scores)
        predicted, events, count = (np.full(scores.size, np.nan) for _ in range(3))
        bins = assign_bins(scores[present], self._bins.edges)
        predicted[present] = self._values[bins]
        events[present], count[present] = self._bins.sum_y[bins], self._bins.count[bins]
        return IntervalPrediction(
            predicted=predicted,
            se=binomial_se(events, count),
            limits=partial(wilson_interval, events, count),
            index=index,
        )

    def _group_information(self) -> list[tuple[str, str]]:
        asked = self._options["bins"]
        realised = str(self.n_bins) if asked is None else f"{self.n_bins} of {asked} asked for"
        return [("Bins", f"{realised} ({self._options['strategy']})"), ("Empty bins", str(self.n_empty))]

    def _group_table(self, alpha: float) -> tuple[list[list[str]], list[str], list[str], str]:
        table = self.table(alpha)
        rows = [
            [format_count(n)] + [format_number(v) for v in rest]
            for n, *rest in table[["count", "mean_p", "rate", "se", "ci_low", "ci_high", "value"]].to_numpy()
        ]
        names = [f"[{low:.4g}, {high:.4g})" for low, high in zip(table["lower"], table["upper"], strict=True)]
        names[-1] = names[-1][:-1] + "]"
        headers = ["n", "mean score", "rate", "std err", f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]", "value"]
        return rows, headers, names, "Bins (Wilson intervals)"

    def _remarks(self) -> list[str]:
        notes = []
        if self._options["bins"] is not None and self.n_bins < self._options["bins"]:
            notes.append("Quantiles that coincide are one edge, as tied scores are never split: fewer bins were made.")
        if self.n_empty:
            notes.append("An empty bin takes the value of the nearest one that is not, the lower one of two.")
        return notes

    def plot(self, alpha: float = 0.05, ax: Axes | None = None) -> Figure:
        """
        Draw the calibration map with Wilson's interval of each bin.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            The steps of the map, with observed frequencies in ten bins when the data are at hand.
        """
        steps = self.table(alpha).rename(columns={"ci_low": "mean_ci_lower", "ci_high": "mean_ci_upper"})
        steps = steps.loc[steps.index.repeat(2)]
        grid = np.repeat(self._bins.edges, 2)[1:-1]
        return self._picture(grid, steps, steps["value"].to_numpy(), alpha, ax)

    def _arrays(self) -> dict[str, FloatArray]:
        b = self._bins
        return {"edges": b.edges, "count": b.count, "events": b.sum_y, "sum_p": b.sum_p}
