"""Other forms of a Dirichlet map: its canonical one, and an equivalent generative model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary

from calstat._results import format_number, make_summary, number_table


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
            Index: ``A[i,j]`` and ``c[i]``; columns coef, se, lower, upper. The standard errors of c are those of log c.
        """
        labels = list(self.A.index)
        names = [f"A[{i},{j}]" for i in labels for j in labels] + [f"c[{i}]" for i in labels]
        matrix = {"coef": self.A, "se": self.A_se, "lower": self.A_lower, "upper": self.A_upper}
        vector = {"coef": self.c, "se": self.log_c_se, "lower": self.c_lower, "upper": self.c_upper}
        columns = {k: np.concatenate([matrix[k].to_numpy().ravel(), vector[k].to_numpy()]) for k in matrix}
        return pd.DataFrame(columns, index=names)

    def summary(self) -> Summary:
        """
        Print A and c with their limits.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One line for each entry.
        """
        frame = self.to_frame()
        rows = [[format_number(v) for v in row] for row in frame.to_numpy()]
        headers = ["coef", "std err", f"[{self.alpha / 2:.4g}", f"{1 - self.alpha / 2:.4g}]"]
        notes = [
            "A: the minimum of each column is 0; limits allow for not knowing which entry that is.",
            "c: calibrated probabilities of the uniform prediction; standard errors are those of log c, centred.",
        ]
        return make_summary([number_table(rows, headers, list(frame.index), title="Canonical form")], notes)


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
