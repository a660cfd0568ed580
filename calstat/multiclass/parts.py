"""The parts that results of softmax maps are made of: the map, what is known of the data, named estimates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from calstat._arrays.softmax_maps import SoftmaxMap, reported
from calstat._results import format_number, format_pvalue, number_table
from calstat._typing import FloatArray, IntArray, Label
from calstat.likelihood import Estimates
from calstat.penalties import Penalty

COV_NAMES = {
    "nonrobust": "model-based (inverse information)",
    "bayes": "inverse of information plus penalty; intervals cover on average over the coefficients, not each one",
    "frequentist": "sampling variance of the penalised estimate; it leaves the bias of the penalty out",
    "HC0": "robust sandwich (HC0)",
    "HC1": "robust sandwich with n/(n - k) (HC1)",
    "cluster": "cluster-robust sandwich",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticlassDescription:
    """What is known of the data of a fit: classes, counts, columns, and how rows were read."""

    classes: tuple[Label, ...]
    counts: FloatArray
    binary: bool
    clipped: int
    n_dropped: int
    n_groups: int
    formula: str | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MulticlassData:
    """Arrays of a fit: `scores` (n, K) or (n,), `features` (K, n), `codes` (n,), weights, the rows' index."""

    scores: FloatArray
    features: FloatArray
    codes: IntArray
    weights: FloatArray | None
    index: pd.Index | None
    rtol: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MapState:
    """The fitted map: `theta` (K, q), covariance (f, f) of its free parameters or None, lost directions (f, d)."""

    theta: FloatArray
    free_cov: FloatArray | None
    lost: FloatArray
    penalty: Penalty | None = None
    rank: int
    notes: tuple[str, ...] = field(default=())


def rows_table(table: pd.DataFrame, alpha: float, title: str | None = None) -> Any:
    """Print lines of a coefficient table, tested against the identity; without standard errors only the estimates."""
    stubs = [str(i) for i in table.index]
    if table["se"].isna().all():
        rows = [[format_number(c), f"{i:.4g}"] for c, i in table[["coef", "identity"]].to_numpy()]
        return number_table(rows, ["coef", "identity"], stubs, title=title)
    headers = ["coef", "std err", f"[{alpha / 2:.4g}", f"{1 - alpha / 2:.4g}]", "identity", "z", "P>|z|"]
    columns = ["coef", "se", "lower", "upper", "identity", "z_identity", "pvalue_identity"]
    rows = [
        [*(format_number(v) for v in values[:4]), f"{values[4]:.4g}", format_number(values[5], 2), format_pvalue(p)]
        for *values, p in table[columns].to_numpy()
    ]
    return number_table(rows, headers, stubs, title=title)


def estimates_of(
    form: SoftmaxMap, fitted: MapState, classes: tuple[Label, ...], statistics: Mapping[str, Any]
) -> Estimates:
    """Named estimates of a fitted map; `statistics` are the other fields of `Estimates`."""
    penalty = None if fitted.penalty is None else fitted.penalty.quadratic(len(classes))
    others: dict[str, Any] = {**statistics, "at_bound": np.asarray(statistics["at_bound"], dtype=bool)}
    numbers = reported(form, fitted.theta, penalty, fitted.free_cov, fitted.lost)
    return Estimates(
        names=form.names(classes),
        params=numbers.params,
        cov=numbers.cov,
        identity=numbers.identity,
        **others,
    )
