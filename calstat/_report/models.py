"""Several predictions of the same outcomes, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from calstat import plots
from calstat._arrays.statistics import mean_and_error
from calstat._input.validation import BinarySample, check_binary, positive_weight_rows
from calstat._report.layout import Table, level_text, limits_text, number_text, pvalue_text
from calstat._report.options import Options
from calstat._typing import FloatArray, Label
from calstat.diagnostics import val_prob
from calstat.exceptions import InputError
from calstat.metrics import ece, pseudo_label_test, reliability_table
from calstat.metrics._scores import LOG_EPS, log_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SideBySide:
    """
    Predictions of the same outcomes, side by side.

    Attributes
    ----------
    frame : pandas.DataFrame
        A row for each model. Columns: Brier, log_loss, difference (of the log loss, row by row, from the first
        model), ci_low, ci_high, C (ROC), O/E, Intercept (slope 1), Slope, ECE and pvalue (of the ECE's test).
    points : dict
        Mean prediction and observed frequency of the bins of each model, arrays of shape (B,).
    alpha : float
        One minus the confidence level of the differences.
    """

    frame: pd.DataFrame
    points: dict[str, tuple[FloatArray, FloatArray]]
    alpha: float

    def plot(self, ax: Any = None) -> Any:
        """
        Draw the models in one reliability diagram.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
        """
        return plots.reliability_overlay(self.points, ax=ax)

    def tables(self) -> tuple[Table, Table]:
        """Lay out the models, and the paired differences from the first of them."""
        headers = ["Brier", "log loss", "C", "O/E", "slope", "ECE", "p (ECE)"]
        columns = ["Brier", "log_loss", "C (ROC)", "O/E", "Slope", "ECE", "pvalue"]
        names = [str(name) for name in self.frame.index]
        rows = [
            [*map(number_text, numbers), pvalue_text(p)] for *numbers, p in self.frame[columns].to_numpy(dtype=float)
        ]
        changes = [
            [number_text(difference), limits_text(low, high)]
            for difference, low, high in self.frame[["difference", "ci_low", "ci_high"]].to_numpy(dtype=float)[1:]
        ]
        title = f"Log loss less that of {names[0]}, on the same rows"
        return (
            Table(title="Models", headers=headers, stubs=names, rows=rows),
            Table(title=title, headers=["difference", level_text(self.alpha)], stubs=names[1:], rows=changes),
        )


def compare(
    y: Any,
    models: Mapping[str, Any],
    *,
    freq_weights: Any,
    event: Label | None,
    options: Options,
) -> SideBySide:
    """Compare predictions of the same outcomes; differences are taken from the first of them."""
    rows: dict[str, dict[str, float]] = {}
    points: dict[str, tuple[FloatArray, FloatArray]] = {}
    baseline: FloatArray | None = None
    for name, p in models.items():
        sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
        values: dict[str, Any] = {"y": sample.y, "p": sample.p, "freq_weights": sample.weights, "event": 1.0}
        losses = log_rows(sample, LOG_EPS)
        baseline = losses if baseline is None else baseline
        if losses.size != baseline.size:
            raise InputError(f"`models`[{name!r}] has {losses.size} rows; the first model has {baseline.size}.")
        rows[name] = _row(sample, values, losses, baseline, options)
        table = reliability_table(**values, **options.binned)
        points[name] = (table["mean_p"].to_numpy(), table["mean_y"].to_numpy())
    frame = pd.DataFrame.from_dict(rows, orient="index").rename_axis("model")
    return SideBySide(frame=frame, points=points, alpha=options.alpha)


def _row(
    sample: BinarySample,
    values: dict[str, Any],
    losses: FloatArray,
    baseline: FloatArray,
    options: Options,
) -> dict[str, float]:
    """Measure one model; the first one has no difference from itself."""
    indexes = val_prob(**values)["estimate"]
    loss, _ = mean_and_error(losses, sample.weights)
    first = losses is baseline
    difference, _, low, high = options.mean_row(losses - baseline, sample.weights, (-np.inf, np.inf))
    test = pseudo_label_test(**values, statistic="ece", **options.binned, **options.drawn)
    return {
        "Brier": indexes["Brier"],
        "log_loss": loss,
        "difference": difference,
        "ci_low": np.nan if first else low,
        "ci_high": np.nan if first else high,
        **{name: indexes[name] for name in ("C (ROC)", "O/E", "Intercept (slope 1)", "Slope")},
        "ECE": ece(**values, **options.binned),
        "pvalue": test.pvalue,
    }


__all__ = ["SideBySide", "compare"]
