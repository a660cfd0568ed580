"""Other forms of a Dirichlet map: its canonical one, and an equivalent generative model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from statsmodels.iolib.summary import Summary

from calstat._arrays.covariance import normal_quantile
from calstat._results import format_number, make_summary, number_table
from calstat.plots import matrix_heatmap

# Tables show all entries up to this many classes, beyond it so many of the largest.
_ALL_ROWS, _LARGEST = 5, 15


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CanonicalMap:
    """
    Canonical form of a Dirichlet map, with intervals.

    Attributes
    ----------
    A, A_se, A_lower, A_upper : DataFrame, shape (K, K)
        ``a_ij = w_ij - min_k w_kj``, standard errors (NaN for the minimum itself and in columns whose minimum is tied),
        and limits at the level asked for.
    c, c_lower, c_upper : Series, shape (K,)
        Calibrated probabilities of the uniform prediction, with limits.
    log_c, log_c_se : Series, shape (K,)
        Logarithm of c less its mean, and standard errors.
    alpha : float
        One minus the level of the limits.
    """

    A: pd.DataFrame
    A_se: pd.DataFrame
    A_lower: pd.DataFrame
    A_upper: pd.DataFrame
    c: pd.Series
    c_lower: pd.Series
    c_upper: pd.Series
    log_c: pd.Series
    log_c_se: pd.Series
    alpha: float

    def __str__(self) -> str:
        """The table of the summary."""
        return str(self.summary())

    __repr__ = __str__

    def to_frame(self) -> pd.DataFrame:
        """
        Return all entries, one a line.

        Returns
        -------
        DataFrame
            Index: ``A[i,j]``, ``c[i]`` and ``log c[i]``, the centred logarithm; columns coef, se, lower, upper. c has
            limits but no standard error of its own: they are made on the scale of log c.
        """
        labels = list(self.A.index)
        half = normal_quantile(self.alpha) * self.log_c_se
        none = pd.Series(np.nan, index=self.c.index)
        A = [frame.to_numpy().ravel() for frame in (self.A, self.A_se, self.A_lower, self.A_upper)]
        c = [series.to_numpy() for series in (self.c, none, self.c_lower, self.c_upper)]
        log_c = [series.to_numpy() for series in (self.log_c, self.log_c_se, self.log_c - half, self.log_c + half)]
        names = [f"A[{i},{j}]" for i in labels for j in labels]
        names += [f"c[{i}]" for i in labels] + [f"log c[{i}]" for i in labels]
        return pd.DataFrame(np.hstack([A, c, log_c]).T, index=names, columns=["coef", "se", "lower", "upper"])

    def plot(self, ax: Axes | None = None) -> Figure:
        """
        Draw A and c as a heat map; colours measure the departure from the identity map.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure is made when it is None.

        Returns
        -------
        matplotlib.figure.Figure
            Entries whose interval excludes the identity's value (1 on the diagonal of A, 0 off it, 1/K in c) carry a
            star.
        """
        labels, K = list(self.A.index), len(self.A)
        low, high, values = (
            np.column_stack([a.to_numpy(), c.to_numpy()])
            for a, c in ((self.A_lower, self.c_lower), (self.A_upper, self.c_upper), (self.A, self.c))
        )
        identity = np.column_stack([np.eye(K), np.full(K, 1.0 / K)])
        return matrix_heatmap(
            values,
            rows=labels,
            columns=[*labels, "c"],
            marks=np.where((low > identity) | (high < identity), "*", ""),
            reference=identity,
            label="departure from the identity",
            ax=ax,
        )

    def summary(self) -> Summary:
        """
        Print A and c with their limits.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One line for each entry; with more than 5 classes the largest entries only.
        """
        K = len(self.c)
        limits = [f"[{self.alpha / 2:.4g}", f"{1 - self.alpha / 2:.4g}]"]
        frame = self.to_frame()
        entries, c, log_c = frame.iloc[: K * K], frame.iloc[K * K : K * K + K], frame.iloc[K * K + K :]
        place = np.arange(K * K)
        parts = {"Canonical form: A": place}
        if K > _ALL_ROWS:
            off = place // K != place % K
            parts = {"A off the diagonal": place[off], "A on the diagonal": place[~off]}
        tables = [_largest(entries.iloc[rows], ["coef", "std err", *limits], title, K) for title, rows in parts.items()]
        joined = pd.DataFrame(
            np.column_stack([c[["coef", "lower", "upper"]], log_c[["coef", "se"]]]),
            index=c.index,
            columns=["coef", "lower", "upper", "log c", "se"],
        )
        title = "c: calibrated probabilities of the uniform prediction"
        tables.append(_largest(joined, ["c", *limits, "log c", "std err of log c"], title, K))
        notes = [
            "A: the smallest entry of each column is 0. The limits allow for not knowing which entry that is.",
            "log c is centred: its mean over the classes is 0. The limits of c are made on that scale.",
        ]
        if entries["se"].notna().any():
            notes.append("A has standard errors only where the smallest entry of the column is clear.")
        if K > _ALL_ROWS:
            notes.append("All entries are in to_frame().")
        return make_summary(tables, notes)


def _largest(frame: pd.DataFrame, headers: list[str], title: str, n_classes: int) -> Any:
    """Lines of a table, the largest only where there are many classes; blank where there is no standard error."""
    total = len(frame)
    if n_classes > _ALL_ROWS:
        frame = frame.sort_values("coef", ascending=False, kind="stable").iloc[:_LARGEST]
        title = f"Largest entries of {title} ({len(frame)} of {total})"
    shown = [k for k in range(frame.shape[1]) if frame.iloc[:, k].notna().any()]
    rows = [["" if np.isnan(v) else format_number(v) for v in row[shown]] for row in frame.to_numpy()]
    return number_table(rows, [headers[k] for k in shown], list(frame.index), title=title)


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerativeModel:
    """
    A generative model whose posterior is a Dirichlet calibration map.

    Attributes
    ----------
    alpha : DataFrame, shape (K, K)
        Row j: parameters of the Dirichlet law of the predicted probabilities among cases of class j.
    prior : Series, shape (K,)
        Class frequencies.
    """

    alpha: pd.DataFrame
    prior: pd.Series
