"""Comparison of nested calibration maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from statsmodels.iolib.summary import Summary

from calstat._arrays.covariance import chi2_sf
from calstat._arrays.pseudo_labels import monte_carlo
from calstat._arrays.softmax import QuadraticPenalty, probabilities_of
from calstat._arrays.softmax_inference import drawn_labels
from calstat._arrays.softmax_maps import FULL, SoftmaxMap, fit_map
from calstat._input.validation import check_count, check_rng
from calstat._results import format_count, format_number, format_pvalue, make_summary, number_table
from calstat._typing import FloatArray, RNGLike
from calstat.exceptions import InputError
from calstat.multiclass.parts import MulticlassData
from calstat.multiclass.results import SoftmaxResults

# Maps by size: each contains those before it, on the same features. Temperature is one slope without constants, and
# constants alone (slopes fixed at 1) do not contain it.
_LEVELS = {"temperature": 1, "fixed": 1, "common": 2, "class": 3, "full": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelComparison:
    """
    Nested maps on the same rows, from the identity upwards.

    Attributes
    ----------
    table : DataFrame
        A line for each map: `df` (effective parameters of penalised maps), `llf`, `aic`, `bic`; and against the line
        before: `df_diff`, `lr` (twice the gain of the log-likelihood), `pvalue`, and `reference`, the law that the
        p-value comes from: "chi2", "simulated", or "" where there is none.
    nobs : float
        Number of observations.
    n_resamples : int
        Draws of each simulated p-value; 0 if none was asked for.
    """

    table: pd.DataFrame
    nobs: float
    n_resamples: int

    def __str__(self) -> str:
        """The table as text."""
        return str(self.summary())

    def summary(self) -> Summary:
        """
        Print the comparison.

        Returns
        -------
        statsmodels.iolib.summary.Summary
            One line for each map.
        """
        rows = [
            [
                format_count(round(row["df"], 2)),
                format_number(row["llf"], 3),
                "" if first else format_number(row["lr"], 3),
                "" if first else format_pvalue(row["pvalue"]),
                format_number(row["aic"], 2),
                format_number(row["bic"], 2),
            ]
            for first, (_, row) in zip([True] + [False] * len(self.table), self.table.iterrows(), strict=False)
        ]
        headers = ["df", "log-lik.", "LR", "p", "AIC", "BIC"]
        notes = ["LR and p compare each map with the one before it."]
        references = set(self.table["reference"])
        if "simulated" in references:
            notes.append(f"Simulated p-values: labels drawn {self.n_resamples} times from the fitted smaller map.")
        if self.table["pvalue"].iloc[1:].isna().any():
            notes.append(
                "The LR of a penalised map has no chi-square law: pass n_resamples for a p-value simulated under the "
                "smaller map."
            )
        table = number_table(rows, headers, [str(i) for i in self.table.index], title="Nested calibration maps")
        return make_summary([table], notes)


def compare_models(
    results: Sequence[SoftmaxResults], *, n_resamples: int | None = None, rng: RNGLike = None
) -> ModelComparison:
    """
    Compare nested softmax maps that were fitted to the same rows.

    Parameters
    ----------
    results : sequence of SoftmaxResults
        Fitted maps in any order, for instance temperature, vector and Dirichlet calibration on the same scores. The
        identity map is added as the smallest.
    n_resamples : int, optional
        Take p-values from this many sets of labels drawn from the fitted smaller map, both maps being fitted anew to
        each. Without it chi-square p-values are given for pairs without a penalty, and NaN for the others.
    rng : None, int or Generator
        Source of the draws.

    Returns
    -------
    ModelComparison
        df, log-likelihood, LR against the map before, p, AIC and BIC; prints as a table.

    Raises
    ------
    InputError
        If the maps are not nested, or were not fitted to the same rows and features.

    Notes
    -----
    A robust covariance plays no part here. The LR of a penalised map compares log-likelihoods without the penalty.

    Examples
    --------
    >>> import calstat as cs
    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]] * 9
    >>> y = [0, 1, 2, 1, 2, 0] * 6 + [0, 1, 2, 0, 1, 2] * 3
    >>> maps = [cs.TemperatureScaling(y, p, scores="probability"), cs.VectorScaling(y, p, scores="probability")]
    >>> table = cs.compare_models([m.fit() for m in maps]).table
    >>> table["df"].to_dict()
    {'identity': 0.0, 'TemperatureScaling': 1.0, 'VectorScaling': 5.0}

    A small p-value says that the larger map fits better than chance allows; AIC and BIC are best where smallest.
    """
    if len(results) == 0 or not all(isinstance(r, SoftmaxResults) for r in results):
        raise InputError(
            "`results` must be a sequence of fitted softmax maps (temperature, vector, matrix, Dirichlet)."
        )
    ordered = sorted(results, key=lambda r: (_LEVELS[_level(r.form)], r.edf))
    for below, above in pairwise(ordered):
        _check_nested(below, above)
    generator = check_rng(rng)
    count = 0 if n_resamples is None else check_count("n_resamples", n_resamples)
    first = ordered[0]
    lines = [_line(0.0, first.llf_identity, first.nobs)]
    smaller_of: list[SoftmaxResults | None] = [None, *ordered[:-1]]
    for smaller, larger in zip(smaller_of, ordered, strict=True):
        line = _line(larger.edf, larger.llf, larger.nobs)
        line |= {"df_diff": line["df"] - lines[-1]["df"], "lr": 2.0 * (line["llf"] - lines[-1]["llf"])}
        lines.append(line | _pvalue(smaller, larger, float(line["lr"]), count, generator))
    table = pd.DataFrame(lines, index=["identity", *_names(ordered)])
    return ModelComparison(table=table, nobs=first.nobs, n_resamples=count)


def _line(df: float, llf: float, nobs: float) -> dict[str, Any]:
    line: dict[str, Any] = {"df": df, "llf": llf, "df_diff": np.nan, "lr": np.nan, "pvalue": np.nan}
    return line | {"reference": "", "aic": -2.0 * llf + 2.0 * df, "bic": -2.0 * llf + np.log(nobs) * df}


def _names(results: Sequence[SoftmaxResults]) -> list[str]:
    names = []
    for r in results:
        name = r.kind if r.penalty is None else f"{r.kind}, {r.penalty}"
        if r.form.kind == "VectorScaling" and r.form.slopes != "class":
            name += f" ({r.form.slopes} slopes)" if r.form.slopes == "common" else " (slopes 1)"
        names.append(name)
    return names


def _level(form: SoftmaxMap) -> str:
    if form.kind in FULL:
        return "full"
    return form.slopes if form.kind == "VectorScaling" else "temperature"


def _check_nested(smaller: SoftmaxResults, larger: SoftmaxResults) -> None:
    a, b = smaller.fitted_rows, larger.fitted_rows
    same_rows = a.codes.shape == b.codes.shape and np.array_equal(a.codes, b.codes)
    if not same_rows or not _equal(a.weights, b.weights) or smaller.classes != larger.classes:
        raise InputError(f"{smaller.kind} and {larger.kind} were not fitted to the same rows, weights and classes.")
    if not np.allclose(a.features, b.features, rtol=1e-12, atol=1e-12) and not _same_up_to_shift(smaller, larger, a, b):
        low, high = smaller.form.eps, larger.form.eps
        clip = f" They clip probabilities at {low:g} and {high:g}: pass the same eps= to both." if low != high else ""
        raise InputError(
            f"{smaller.kind} and {larger.kind} do not have the same features (logits or logarithms of probabilities, "
            f"clip, centring), so that one does not contain the other.{clip} Fit both to the same scores and options."
        )
    levels = _level(smaller.form), _level(larger.form)
    if _LEVELS[levels[0]] == _LEVELS[levels[1]] and (levels[0] != levels[1] or smaller.penalty == larger.penalty):
        raise InputError(f"neither of {smaller.kind} and {larger.kind} contains the other: they are not nested.")


def _same_up_to_shift(smaller: SoftmaxResults, larger: SoftmaxResults, a: MulticlassData, b: MulticlassData) -> bool:
    """Temperature does not see a constant added to a row, so it is contained in maps on any shift of its logits."""
    if smaller.form.kind != "TemperatureScaling" or a.features.shape != b.features.shape:
        return False
    gap = a.features - b.features
    return bool(np.allclose(gap, gap.mean(axis=0), rtol=1e-12, atol=1e-10)) and larger.form.kind != smaller.form.kind


def _equal(a: FloatArray | None, b: FloatArray | None) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and np.array_equal(a, b))


def _pvalue(
    smaller: SoftmaxResults | None, larger: SoftmaxResults, lr: float, count: int, rng: np.random.Generator
) -> dict[str, Any]:
    if count:
        draws = _simulate(smaller, larger, count, rng)
        return {"pvalue": monte_carlo(lr, draws).pvalue, "reference": "simulated"}
    if larger.penalty is not None or (smaller is not None and smaller.penalty is not None):
        return {}
    df = larger.rank - (0 if smaller is None else smaller.rank)
    return {"pvalue": chi2_sf(lr, df), "reference": "chi2"}


def _simulate(
    smaller: SoftmaxResults | None, larger: SoftmaxResults, count: int, rng: np.random.Generator
) -> FloatArray:
    """LR (count,) of labels drawn from the smaller map; weighted rows are drawn as their copies."""
    big = larger.fitted_rows
    small = big if smaller is None else smaller.fitted_rows
    features, below = big.features, small.features
    if big.weights is not None:
        copies = big.weights.astype(np.int64)
        features, below = np.repeat(features, copies, axis=1), np.repeat(below, copies, axis=1)
    n, K = features.shape[1], len(features)
    form = larger.form if smaller is None else smaller.form
    theta = form.identity(K) if smaller is None else smaller.theta
    p = probabilities_of(form.design(below, np.zeros(n, dtype=np.int64), None), theta)
    cumulative = p.cumsum(axis=0)
    penalties = [_quadratic(r, K) for r in (smaller, larger)]
    draws = np.empty(count)
    for b in range(count):
        codes = drawn_labels(cumulative, rng)
        high = fit_map(larger.form, features, codes, None, penalties[1], start=larger.theta, rtol=big.rtol).loss
        if smaller is None:
            low = -float(np.log(np.maximum(p[codes, np.arange(n)], np.finfo(np.float64).tiny)).mean())
        else:
            low = fit_map(form, below, codes, None, penalties[0], start=theta, rtol=small.rtol).loss
        draws[b] = 2.0 * n * (low - high)
    return draws


def _quadratic(results: SoftmaxResults | None, n_classes: int) -> QuadraticPenalty | None:
    if results is None or results.penalty is None:
        return None
    return results.penalty.quadratic(n_classes)
