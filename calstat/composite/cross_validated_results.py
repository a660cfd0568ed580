"""Results of a cross-validated map: one map per fold, out-of-fold predictions, and a final map."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from statsmodels.iolib.summary import Summary

from calstat._binary_map import BinaryMap
from calstat._data import ModelData, ScoreReader
from calstat._input.validation import check_sample
from calstat._results import format_count, format_number, info_table, make_summary, number_table
from calstat._typing import FloatArray, IntArray, Label
from calstat.base import CalibrationResults, map_content, read_content
from calstat.composite.one_vs_rest_results import (
    OneVsRestResults,
    curve_grid,
    fit_numbers,
    printed_name,
    printed_number,
)
from calstat.exceptions import NotDefinedError
from calstat.metrics._scores import LOG_EPS, brier_rows, log_rows
from calstat.metrics.evaluate import evaluate
from calstat.plots import calibration_map

_PRINTED = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldRows:
    """Rows of a cross-validated fit.

    `rows` as the maps take them, `y` their labels with the event last or in the order of the columns, `labels` these
    labels, `codes` (n,) the number of each row's fold, `oof` (n,) or (n, K) its out-of-fold prediction.
    """

    rows: ModelData
    y: pd.Categorical
    labels: tuple[Label, ...]
    codes: IntArray
    oof: FloatArray


def dressed(template: Any, values: FloatArray) -> Any:
    """Values in the shape of `template`, with its index and columns when it has them."""
    if isinstance(template, pd.DataFrame):
        return pd.DataFrame(values, index=template.index, columns=template.columns)
    if isinstance(template, pd.Series):
        return pd.Series(values, index=template.index, name=template.name)
    return values


def predict_rows(results: CalibrationResults, rows: ModelData) -> FloatArray:
    """Predictions (n,) or (n, K) of rows as they were read for a fit."""
    scores = rows.scores if rows.reader.plain else np.asarray(rows.scores, dtype=np.float64)
    if isinstance(results, BinaryMap) and np.ndim(scores) == 2 and np.shape(scores)[1] == 2:
        return results.get_prediction(scores).predicted
    predicted = np.asarray(results.predict(scores))
    return predicted[:, 0] if predicted.ndim == 2 and predicted.shape[1] == 1 else predicted


class CrossValidatedResults(CalibrationResults, kind="CrossValidatedCalibration"):
    """
    Results of `CrossValidatedCalibration`: a map for each fold, out-of-fold predictions, and a final map.

    Attributes
    ----------
    oof_predictions : ndarray, Series or DataFrame
        Prediction of each row by the map that was fitted without its fold, with the caller's index.
    folds : ndarray or Series
        Fold of each row.
    fold_results : dict
        The results object of each fold, fitted to all other folds, by the fold's label.
    final : CalibrationResults
        The map fitted to all rows.
    ensemble : bool
        Whether `predict` averages the maps of the folds, or takes the final map.
    n_zero : float
        Observations to whose outcome the out-of-fold prediction gave probability 0.
    """

    def __init__(
        self,
        *,
        fold_results: dict[Label, CalibrationResults],
        final: CalibrationResults,
        ensemble: bool,
        how: str,
        outcome: str,
        rows: FoldRows | None = None,
        stored: tuple[pd.DataFrame, pd.DataFrame, float] | None = None,
    ) -> None:
        self.fold_results = fold_results
        self.final = final
        self.ensemble = ensemble
        self.outcome = outcome
        self.nobs = final.nobs
        self._how = how
        self._reader = ScoreReader(names=()) if rows is None else rows.rows.reader
        self._rows = rows
        self._stored = stored

    # -- prediction ----------------------------------------------------------------------------------

    def predict(self, new: Any = None) -> Any:
        """
        Calibrated probabilities, by the final map, or with ``ensemble=True`` by the mean over the maps of the folds.

        Parameters
        ----------
        new : array_like, Series, DataFrame or dict of columns, optional
            Scores as the maps take them. Without it, the rows of the fit (which the maps have seen;
            `oof_predictions` are the honest ones).

        Returns
        -------
        float, ndarray, Series or DataFrame
            In the shape and with the index of `new`.
        """
        if not self.ensemble:
            return self.final.predict(new)
        if new is None:
            rows = self._data("The mean over folds on the rows of the fit").rows
            parts = [predict_rows(part, rows) for part in self.fold_results.values()]
            return dressed(self.final.predict(), np.mean(parts, axis=0))
        parts = [part.predict(new) for part in self.fold_results.values()]
        return dressed(parts[0], np.mean([np.asarray(part) for part in parts], axis=0))

    @property
    def oof_predictions(self) -> Any:
        """Prediction of each row by the map that was fitted without its fold."""
        return dressed(self.final.predict(), self._data("Out-of-fold predictions").oof.copy())

    @property
    def folds(self) -> Any:
        """Fold of each row."""
        data = self._data("Folds")
        labels = np.asarray(list(self.fold_results))[data.codes]
        return labels if data.rows.index is None else pd.Series(labels, index=data.rows.index, name="fold")

    def _data(self, what: str) -> FoldRows:
        if self._rows is None:
            raise self._needs_data(what)
        return self._rows

    # -- tables --------------------------------------------------------------------------------------

    @property
    def metrics(self) -> pd.DataFrame:
        """
        Metrics of the out-of-fold predictions, beside those of `predict` on the same rows.

        Columns out_of_fold and same_rows, indexed as in `calstat.evaluate`, with its defaults. What the second
        column shows better than the first is the optimism of judging a map on the rows that it was fitted to.
        """
        return self._tables[0].copy()

    @property
    def fold_metrics(self) -> pd.DataFrame:
        """Observations, out-of-fold log-loss (clipped at 1e-15) and Brier score by fold; after `fit_cv` the penalty."""
        return self._tables[1].copy()

    @property
    def n_zero(self) -> float:
        """Observations to whose outcome the out-of-fold prediction gave probability 0."""
        return self._tables[2]

    @cached_property
    def _tables(self) -> tuple[pd.DataFrame, pd.DataFrame, float]:
        if self._stored is not None:
            return self._stored
        data = self._data("Metrics")
        options: dict[str, Any] = {"freq_weights": data.rows.weights}
        if data.oof.ndim == 2:
            options["classes"] = data.labels
        shown = {"out_of_fold": data.oof, "same_rows": np.asarray(self.predict())}
        whole = pd.DataFrame({name: evaluate(data.y, p, **options)["value"] for name, p in shown.items()})
        sample = check_sample(data.y, data.oof, type="classwise" if data.oof.ndim == 2 else None, **options)
        loss, brier = log_rows(sample, LOG_EPS), brier_rows(sample)
        w = np.ones(loss.size) if sample.weights is None else sample.weights
        count = np.bincount(data.codes, weights=w)
        with np.errstate(invalid="ignore"):  # a fold of weights 0 has no mean
            by_fold = {"n": count, **{
                name: np.bincount(data.codes, weights=w * rows) / count
                for name, rows in (("log_loss", loss), ("brier_score", brier))
            }}  # fmt: skip
        table = pd.DataFrame(by_fold, index=pd.Index(list(self.fold_results), name="fold"))
        chosen = [getattr(part, "selection", None) for part in self.fold_results.values()]
        if all(one is not None for one in chosen):
            table["penalty"] = ["none" if one.chosen is None else str(one.chosen) for one in chosen]  # type: ignore[union-attr]  # asked before
        zero = float(w[np.exp(-log_rows(sample, 0.0)) == 0.0].sum())
        return whole, table, zero

    def fold_table(self) -> pd.DataFrame:
        """
        Coefficients of the maps of all folds side by side.

        Returns
        -------
        DataFrame
            One row per coefficient, or per number that describes a map without coefficients; one column per fold,
            then "mean" and "sd" over folds, and "final", the map of all rows. The standard deviation shows how far
            the maps differ; it is no standard error, as the folds' maps share most of their rows.
        """
        table = pd.DataFrame({label: fit_numbers(part) for label, part in self.fold_results.items()})
        final = fit_numbers(self.final)
        table = table.reindex(final.index)
        mean, sd = table.mean(axis=1), table.std(axis=1, ddof=1)
        return table.assign(mean=mean, sd=sd, final=final)

    def summary(self) -> Summary:
        """
        Tables that describe the fits.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            Metrics out of fold and on the rows of the fit, the folds, and the spread of the coefficients over folds.
        """
        what = self.final.kind
        if isinstance(self.final, OneVsRestResults):
            what += f", {self.final.base} for each class"
        entries = [
            ("Outcome", self.outcome),
            ("Observations", format_count(self.nobs)),
            ("Folds", f"{len(self.fold_results)} ({self._how})"),
            ("Prediction", "mean over folds" if self.ensemble else "map of all rows"),
            ("Out of fold p = 0, yet occurred", format_count(self.n_zero)),
        ]
        metrics, folds, _ = self._tables
        cells = [[format_number(v) for v in row] for row in metrics.to_numpy()]
        tables = [
            info_table(f"CrossValidatedCalibration of {what}", entries),
            number_table(cells, ["out of fold", "same rows"], list(metrics.index), title="Metrics"),
        ]
        rows = [
            [format_count(n), format_number(loss), format_number(brier), *map(str, rest)]
            for n, loss, brier, *rest in folds.itertuples(index=False)
        ]
        names = ["n", "log-loss", "Brier score", *folds.columns[3:]]
        tables.append(number_table(rows, names, [str(k) for k in folds.index], title="Folds, held out"))
        spread, notes = self._spread()
        notes.insert(0, "Out-of-fold predictions are by the map that was fitted without the row's fold.")
        if self.n_zero:
            notes.append(
                f"{format_count(self.n_zero)} observations had an outcome that their out-of-fold prediction gave "
                "probability 0; the log-loss shown is clipped at 1e-15. smoothing=1 keeps isotonic and histogram maps "
                "off 0 and 1."
            )
        return make_summary([*tables, spread], notes)

    def _spread(self) -> tuple[Any, list[str]]:
        """Table of the coefficients' spread over folds, and remarks on it."""
        table = self.fold_table()
        by_fold = table[list(self.fold_results)]
        lowest, highest = by_fold.min(axis=1), by_fold.max(axis=1)
        columns = pd.DataFrame({0: table["final"], 1: table["mean"], 2: table["sd"], 3: lowest, 4: highest})
        cells = [[printed_number(v) for v in row] for row in columns.to_numpy()[:_PRINTED]]
        names = [printed_name(name) for name in table.index[:_PRINTED]]
        remark = (
            "The standard deviation over folds shows how far the maps differ. It is no standard error: the folds' maps "
            "share most of their rows."
        )
        notes = [remark]
        if len(table) > _PRINTED:
            notes.append(f"The first {_PRINTED} of {len(table)} coefficients; `fold_table()` has them all.")
        headers = ["final", "mean", "sd", "lowest", "highest"]
        return number_table(cells, headers, names, title="Spread over folds"), notes

    def plot(self, **options: Any) -> Figure:
        """
        Draw the final map; for one score, with the maps of the folds as thin lines.

        Parameters
        ----------
        **options
            Arguments of the final map's own `plot`; for one score, `ax`.

        Returns
        -------
        matplotlib.figure.Figure

        Raises
        ------
        NotDefinedError
            If the kind of map has no picture.
        """
        rows = self._data("The picture").rows if isinstance(self.final, BinaryMap) else None
        if rows is None:
            if not hasattr(self.final, "plot"):
                raise NotDefinedError(
                    f"{self.final.kind} has no picture of its map; draw reliability_diagram(y, res.oof_predictions)."
                )
            return self.final.plot(**options)
        scores = np.asarray(rows.scores, dtype=np.float64)
        grid, unit = curve_grid(np.array([scores.min(), scores.max()]))
        return calibration_map(
            grid,
            self.final.predict(grid),
            others=[part.predict(grid) for part in self.fold_results.values()],
            identity=unit,
            label="all rows",
            others_label="without one fold",
            xlabel="Score",
            **options,
        )

    # -- storage -------------------------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        metrics, folds, n_zero = self._tables
        return {
            "labels": list(self.fold_results),
            "maps": [map_content(part) for part in self.fold_results.values()],
            "final": map_content(self.final),
            "ensemble": self.ensemble,
            "how": self._how,
            "outcome": self.outcome,
            "metrics": {name: metrics[name].to_list() for name in metrics},
            "metric_names": list(metrics.index),
            "fold_metrics": {name: folds[name].to_list() for name in folds},
            "n_zero": n_zero,
        }

    @classmethod
    def _from_state(cls, state: Mapping[str, Any]) -> Self:
        labels = list(state["labels"])
        metrics = pd.DataFrame(state["metrics"], index=pd.Index(state["metric_names"], name="metric"))
        folds = pd.DataFrame(state["fold_metrics"], index=pd.Index(labels, name="fold"))
        return cls(
            fold_results=dict(zip(labels, map(read_content, state["maps"]), strict=True)),
            final=read_content(state["final"]),
            ensemble=state["ensemble"],
            how=state["how"],
            outcome=state["outcome"],
            stored=(metrics, folds, state["n_zero"]),
        )
