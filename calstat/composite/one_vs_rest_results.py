"""Results of one binary map per class, rows renormalised."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from statsmodels.iolib.summary import Summary

from calstat._data import ScoreReader
from calstat._input.validation import check_alpha
from calstat._results import format_count, format_number, format_pvalue, info_table, make_summary, number_table
from calstat._typing import FloatArray, Label
from calstat.base import CalibrationResults, map_content, read_content
from calstat.exceptions import DataWarning
from calstat.likelihood import LikelihoodResults
from calstat.nonparametric.results import NonparametricResults
from calstat.plots import calibration_map
from calstat.plots._style import font_size, new_panels, scale_of

_GRID = 201
_UNIFORM = "got probability 0 from the map of every class, and the uniform distribution in its place"


def fit_numbers(results: CalibrationResults) -> pd.Series:
    """Coefficients of a fitted map, or the numbers that describe one without coefficients; by class where there are."""
    if isinstance(results, OneVsRestResults):
        parts = {label: fit_numbers(part) for label, part in results.results.items()}
        return pd.concat(parts, names=["class", "number"])
    if isinstance(results, NonparametricResults):
        return results.key_numbers
    assert isinstance(results, LikelihoodResults)  # there is no other kind that goes into a composite
    return results.params


def normalise_rows(q: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Divide rows (n, K) by their sums; rows of zeros become uniform. Also returns which rows those are (n,)."""
    sums = q.sum(axis=1, keepdims=True)
    zero = sums[:, 0] == 0.0
    p = q / np.where(sums == 0.0, 1.0, sums)
    p[zero] = 1.0 / q.shape[1]
    return p, zero


def curve_grid(limits: FloatArray) -> tuple[FloatArray, bool]:
    """Scores to draw a map at, and whether they are those of the unit interval."""
    unit = bool(limits[0] >= 0.0 and limits[1] <= 1.0)
    low, high = (0.0, 1.0) if unit else limits
    return np.linspace(low, high, _GRID), unit


def printed_number(value: float) -> str:
    """A number, without decimals where it is whole."""
    return format_count(value) if float(value).is_integer() else format_number(value)


def printed_name(name: Any) -> str:
    """Name of a coefficient, or of a coefficient of one class."""
    return f"{name[0]}: {name[1]}" if isinstance(name, tuple) else str(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneVsRestFit:
    """What is known of a fit beside its maps.

    `counts` (K,) observations of each class; `columns` names of the scores; `ranges` (K, 2) smallest and largest
    score of each class; `llf` log-likelihood of the normalised rows; `n_uniform` observations whose row had the sum 0;
    `n_zero` fitted probabilities that are exactly 0.
    """

    base: str
    classes: tuple[Label, ...]
    columns: tuple[Any, ...]
    counts: FloatArray
    llf: float
    ranges: FloatArray
    n_uniform: float
    n_zero: float
    n_dropped: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OneVsRestData:
    """Arrays of a fit: `fitted` (n, K) normalised probabilities, and the rows' index."""

    fitted: FloatArray
    index: pd.Index | None


class OneVsRestResults(CalibrationResults, kind="OneVsRest"):
    """
    Results of `OneVsRest`: one binary map per class, rows renormalised.

    Attributes
    ----------
    results : dict
        The results object of each class, by its label.
    classes : tuple
        Class labels, in the order of the columns.
    base : str
        Kind of the map of each class.
    llf : float
        Log-likelihood of the normalised probabilities on the rows of the fit.
    n_uniform : float
        Observations of the fit whose probabilities were all 0, so that they got the uniform distribution.
    n_zero : float
        Fitted probabilities that are exactly 0, over rows and classes, weights counted.
    """

    def __init__(
        self,
        *,
        results: dict[Label, CalibrationResults],
        fit: OneVsRestFit,
        reader: ScoreReader,
        outcome: str,
        data: OneVsRestData | None = None,
    ) -> None:
        self.results = results
        self._fit = fit
        self._reader = reader
        self.outcome = outcome
        self.nobs = float(fit.counts.sum())
        self._fitted = data

    @property
    def classes(self) -> tuple[Label, ...]:
        """Class labels, in the order of the columns."""
        return self._fit.classes

    @property
    def base(self) -> str:
        """Kind of the map of each class."""
        return self._fit.base

    @property
    def llf(self) -> float:
        """Log-likelihood of the normalised probabilities on the rows of the fit."""
        return self._fit.llf

    @property
    def n_uniform(self) -> float:
        """Observations of the fit that got the uniform distribution."""
        return self._fit.n_uniform

    @property
    def n_zero(self) -> float:
        """Fitted probabilities that are exactly 0."""
        return self._fit.n_zero

    def predict(self, new: Any = None) -> Any:
        """
        Calibrated class probabilities.

        Parameters
        ----------
        new : array_like, DataFrame or dict of columns, optional
            Scores (n, K) on the scale of the fit, columns in the order of `classes`; of a table the columns of the
            fit are taken by name. Without it, the rows of the fit.

        Returns
        -------
        ndarray or DataFrame
            With the index of `new`; rows with a missing score stay NaN. Each column is calibrated by the map of its
            class, and rows are divided by their sums; a row of zeros becomes uniform.

        Raises
        ------
        InputError
            If the table lacks a column, or the shape does not fit.

        Warns
        -----
        DataWarning
            If rows got the uniform distribution.
        """
        if new is None:
            return self.fittedvalues
        given = self._read_new(new)
        present = given.present()
        columns = [self.results[k].predict(given.values[present, j]) for j, k in enumerate(self.classes)]
        normalised, zero = normalise_rows(np.stack(columns, axis=1)) if present.any() else (np.empty((0, 0)), present)
        if present.any() and zero.any():
            rows = np.flatnonzero(present)[zero]
            warnings.warn(
                f"{rows.size} of {present.size} rows, the first is row {rows[0]}, {_UNIFORM}. Maps that are never "
                "exactly 0 avoid it: smoothing=1 for isotonic and histogram maps.",
                DataWarning,
                stacklevel=2,
            )
        p = np.full(given.values.shape, np.nan)
        p[present] = normalised
        return given.restore(p, self.outcome, columns=self.classes)

    @property
    def fittedvalues(self) -> Any:
        """Calibrated probabilities of the rows of the fit, with their index."""
        data = self._fitted
        if data is None:
            raise self._needs_data("Fitted values")
        if data.index is None:
            return data.fitted.copy()
        return pd.DataFrame(data.fitted, index=data.index, columns=list(self.classes))

    def table(self, alpha: float = 0.05) -> pd.DataFrame:
        """
        All maps in one table.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.

        Returns
        -------
        DataFrame
            For maps with coefficients one row per (class, coefficient), with the columns of their
            `coefficient_table`; for the others one row per class, with the numbers that describe the map.
        """
        first = next(iter(self.results.values()))
        if isinstance(first, LikelihoodResults):
            parts = {k: r.coefficient_table(alpha) for k, r in self.results.items()}  # type: ignore[attr-defined]  # one kind
            return pd.concat(parts, names=["class", "coefficient"])
        return pd.DataFrame({k: fit_numbers(r) for k, r in self.results.items()}).T.rename_axis("class")

    def summary(self, alpha: float = 0.05) -> Summary:
        """
        Tables that describe the fit.

        Parameters
        ----------
        alpha : float, default 0.05
            One minus the confidence level of the intervals.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            The classes with their columns and counts, and the maps of all classes in one table. The summary of one
            class is ``results[label].summary()``.
        """
        alpha = check_alpha(alpha)
        f = self._fit
        entries = [
            ("Outcome", self.outcome),
            ("Map of each class", f.base),
            ("Observations", format_count(self.nobs)),
            ("Log-likelihood", format_number(f.llf, 3)),
            ("Rows set to uniform", format_count(f.n_uniform)),
            ("Fitted exactly 0", format_count(f.n_zero)),
        ]
        if f.n_dropped:
            entries.append(("Rows dropped (missing)", str(f.n_dropped)))
        rows = [
            [str(column), format_count(n), f"{100 * n / self.nobs:.1f}%"]
            for column, n in zip(f.columns, f.counts, strict=True)
        ]
        classes = number_table(rows, ["column", "n", "share"], [str(k) for k in f.classes], title="Classes")
        title = f"OneVsRest, {f.base} for each class: calibration map"
        note = (
            "Each class is set against all others; the probabilities of a row are divided by their sum, and a row of "
            "zeros becomes uniform. The table describes the maps before that division."
        )
        return make_summary([info_table(title, entries), classes, self._maps_table(alpha)], [note, *f.notes])

    def _maps_table(self, alpha: float) -> Any:
        table = self.table(alpha)
        if "pvalue_identity" not in table:
            cells = [[printed_number(v) for v in row] for row in table.to_numpy()]
            return number_table(cells, list(table.columns), [str(k) for k in table.index], title="Maps")
        shown = ["coef", "se", "lower", "upper", "z", "pvalue", "identity", "pvalue_identity"]
        cells = [
            [format_number(v) for v in (coef, se, low, high)]
            + [format_number(z, 2), format_pvalue(p), format_number(identity, 0), format_pvalue(p_identity)]
            for coef, se, low, high, z, p, identity, p_identity in table[shown].to_numpy()
        ]
        headers = ["coef", "std err", f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]", "z (0)", "P>|z|"]
        headers += ["identity", "P>|z|"]
        return number_table(cells, headers, [printed_name(name) for name in table.index], title="Maps")

    def plot(self) -> Figure:
        """
        Draw the map of each class.

        Returns
        -------
        matplotlib.figure.Figure
            One panel per class: the map before rows are divided by their sums.
        """
        figure, panels = new_panels(len(self.classes), min(len(self.classes), 4), (2.6, 2.6))
        for (label, part), limits, ax in zip(self.results.items(), self._fit.ranges, panels, strict=True):
            grid, unit = curve_grid(limits)
            y = np.asarray(part.predict(grid))
            calibration_map(grid, y, identity=unit, title=str(label), xlabel="", ylabel="", ax=ax)
        size = font_size(panels[0]) / scale_of(panels[0])
        figure.supxlabel("Score of the class", fontsize=size)
        figure.supylabel("Calibrated probability", fontsize=size)
        return figure

    def _state(self) -> dict[str, Any]:
        return {
            "fit": {name: getattr(self._fit, name) for name in self._fit.__slots__},
            "outcome": self.outcome,
            "maps": [map_content(part) for part in self.results.values()],
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        fit = dict(state["fit"])
        fit |= {name: tuple(fit[name]) for name in ("classes", "columns", "notes")}
        fit |= {name: np.asarray(fit[name], dtype=np.float64) for name in ("counts", "ranges")}
        maps = [read_content(content) for content in state["maps"]]
        return cls(
            results=dict(zip(fit["classes"], maps, strict=True)),
            fit=OneVsRestFit(**fit),
            reader=ScoreReader(names=()),
            outcome=state["outcome"],
        )
