"""Comparison of nested calibration maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import linalg
from statsmodels.iolib.summary import Summary

from calstat._arrays.covariance import chi2_sf
from calstat._arrays.pseudo_labels import monte_carlo
from calstat._arrays.softmax import Design, QuadraticPenalty, probabilities_of
from calstat._arrays.softmax_inference import (
    Information,
    drawn_labels,
    information_at,
    information_beyond,
    score_excess,
    score_statistic,
)
from calstat._arrays.softmax_maps import FULL, SoftmaxMap, embedding, fit_map, widen
from calstat._arrays.softmax_solver import null_directions
from calstat._input.validation import check_choice, check_count, check_rng
from calstat._results import format_count, format_number, format_pvalue, make_summary, number_table
from calstat._typing import FloatArray, IntArray, RNGLike
from calstat.exceptions import InputError
from calstat.multiclass.parts import MulticlassData
from calstat.multiclass.results import EXCESS_LIMIT, LARGE, ROWS_PER_PARAMETER, SoftmaxResults

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
        p-values come from: "chi2", "simulated", or "" where there is none. `score` is the score statistic of the same
        step, made at the smaller map, with `pvalue_score`; `excess` is the excess variance of that statistic over the
        chi-square's, relative to the latter: chi-square p-values are good where it is below 0.05. These three are NaN
        for penalised maps, and for full maps of more than 20 classes.
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
        table, count = self.table, len(self.table)
        columns = {
            "df": [format_count(round(df, 2)) for df in table["df"]],
            "log-lik.": [format_number(llf, 3) for llf in table["llf"]],
            "LR": ["", *(format_number(lr, 3) for lr in table["lr"].iloc[1:])],
            "p": ["", *(format_pvalue(p) for p in table["pvalue"].iloc[1:])],
            "score": ["", *("" if np.isnan(s) else format_number(s, 3) for s in table["score"].iloc[1:])],
            "p (score)": ["", *("" if np.isnan(p) else format_pvalue(p) for p in table["pvalue_score"].iloc[1:])],
            "AIC": [format_number(aic, 2) for aic in table["aic"]],
            "BIC": [format_number(bic, 2) for bic in table["bic"]],
        }
        shown = [name for name, texts in columns.items() if any(texts)]
        rows = [[columns[name][i] for name in shown] for i in range(count)]
        printed = number_table(rows, shown, [str(i) for i in table.index], title="Nested calibration maps")
        return make_summary([printed], self._notes())

    def _notes(self) -> list[str]:
        table = self.table.iloc[1:]
        notes = ["LR (twice the gain in log-likelihood), score test and p compare each map with the one before it."]
        if "simulated" in set(table["reference"]):
            notes.append(f"Simulated p-values: labels drawn {self.n_resamples} times from the fitted smaller map.")
        if "simulated" not in set(table["reference"]) and table["pvalue"].isna().any():
            notes.append(
                "The LR of a penalised map has no chi-square law: pass n_resamples for a p-value simulated under the "
                "smaller map."
            )
        good = (table["excess"] <= EXCESS_LIMIT) & (self.nobs >= ROWS_PER_PARAMETER * table["df"])
        poor = [str(name) for name in table.index[(table["reference"] == "chi2") & ~good]]
        if poor:
            notes.append(
                f"The chi-square law is a poor reference for {' and '.join(poor)} on these data (sharp probabilities, "
                "many classes or few rows): pass n_resamples for p-values simulated under the smaller map."
            )
        return notes


def compare_models(
    results: Sequence[SoftmaxResults],
    *,
    n_resamples: int | None = None,
    simulate: Literal["both", "score"] = "both",
    rng: RNGLike = None,
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
    simulate : {"both", "score"}, default "both"
        Which p-values are simulated. The score test needs no fit of the larger map, so that alone it takes a small part
        of the time where there are many classes; the p-value of LR is then NaN.
    rng : None, int or Generator
        Source of the draws.

    Returns
    -------
    ModelComparison
        df, log-likelihood, LR and score test against the map before, AIC and BIC; prints as a table.

    Raises
    ------
    InputError
        If the maps are not nested, or were not fitted to the same rows and features.

    Notes
    -----
    A robust covariance plays no part here. The LR of a penalised map compares log-likelihoods without the penalty.

    The score test asks whether the gradient of the larger map is 0 at the fitted smaller one,
    :math:`U' (J^{-} - J_0^{-}) U` with the information J of the larger and :math:`J_0` of the smaller map. Under the
    smaller map it has the law of LR in large samples. It stays well defined where the larger fit is separated.

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
    check_choice("simulate", simulate, ("both", "score"))
    count = 0 if n_resamples is None else check_count("n_resamples", n_resamples)
    first = ordered[0]
    lines = [_line(0.0, first.llf_identity, first.nobs)]
    smaller_of: list[SoftmaxResults | None] = [None, *ordered[:-1]]
    for smaller, larger in zip(smaller_of, ordered, strict=True):
        line = _line(larger.edf, larger.llf, larger.nobs)
        line |= {"df_diff": line["df"] - lines[-1]["df"], "lr": 2.0 * (line["llf"] - lines[-1]["llf"])}
        lines.append(line | _tests(smaller, larger, float(line["lr"]), count, simulate == "both", generator))
    table = pd.DataFrame(lines, index=["identity", *_names(ordered)])
    return ModelComparison(table=table, nobs=first.nobs, n_resamples=count)


def _line(df: float, llf: float, nobs: float) -> dict[str, Any]:
    line: dict[str, Any] = {"df": df, "llf": llf, "df_diff": np.nan, "lr": np.nan, "pvalue": np.nan}
    line |= {"reference": "", "score": np.nan, "pvalue_score": np.nan, "excess": np.nan}
    return line | {"aic": -2.0 * llf + 2.0 * df, "bic": -2.0 * llf + np.log(nobs) * df}


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


def _tests(
    smaller: SoftmaxResults | None,
    larger: SoftmaxResults,
    lr: float,
    count: int,
    both: bool,
    rng: np.random.Generator,
) -> dict[str, Any]:
    """Score test of the smaller map, and p-values of both tests."""
    found: dict[str, Any] = {"score": np.nan}
    within = _within(smaller, larger)
    if within is not None:
        rows = larger.fitted_rows
        p = _probabilities(smaller, larger, rows if smaller is None else smaller.fitted_rows)
        design, info = _beyond(larger, rows.features, rows.codes, rows.weights, p, within)
        found["score"] = score_statistic(design, p, info.inverse)
        found |= {"pvalue_score": chi2_sf(found["score"], info.rank), "excess": score_excess(design, p, info)}
    if count:
        draws = _simulate(smaller, larger, within, count, both, rng)
        found |= {"pvalue": monte_carlo(lr, draws[0]).pvalue if both else np.nan, "reference": "simulated"}
        found["pvalue_score"] = monte_carlo(found["score"], draws[1]).pvalue
    elif larger.penalty is None and (smaller is None or smaller.penalty is None):
        df = larger.rank - (0 if smaller is None else smaller.rank)
        found |= {"pvalue": chi2_sf(lr, df), "reference": "chi2"}
    return found


def _probabilities(smaller: SoftmaxResults | None, larger: SoftmaxResults, rows: MulticlassData) -> FloatArray:
    """Fitted probabilities (K, n) of the smaller map, or those of the identity."""
    form = larger.form if smaller is None else smaller.form
    theta = form.identity(len(rows.features)) if smaller is None else smaller.theta
    return probabilities_of(form.design(rows.features, rows.codes, rows.weights), theta)


def _within(smaller: SoftmaxResults | None, larger: SoftmaxResults) -> FloatArray | None:
    """Directions (f, g) of the smaller map in the free parameters of the larger; None if there is no score test."""
    K = larger.n_classes
    if larger.penalty is not None or (larger.form.kind in FULL and K > LARGE):
        return None
    if smaller is None:
        return np.zeros((larger.form.shape_only(K).n_free, 0))
    if smaller.penalty is not None or not smaller.converged:
        return None
    rows = smaller.fitted_rows
    lost = null_directions(smaller.form.design(rows.features, rows.codes, rows.weights), None, rows.rtol)
    determined = linalg.null_space(lost.T) if lost.shape[1] else np.eye(lost.shape[0])
    return embedding(smaller.form, larger.form, K) @ determined


def _beyond(
    larger: SoftmaxResults,
    features: FloatArray,
    codes: IntArray,
    weights: FloatArray | None,
    p: FloatArray,
    within: FloatArray,
) -> tuple[Design, Information]:
    """Design of the larger map, and what is known of it beyond the smaller map, whose probabilities are p (K, n)."""
    design = larger.form.design(features, codes, weights)
    info = information_at(design, None, p, null=null_directions(design, None, larger.fitted_rows.rtol))
    return design, information_beyond(info, within)


def _simulate(
    smaller: SoftmaxResults | None,
    larger: SoftmaxResults,
    within: FloatArray | None,
    count: int,
    both: bool,
    rng: np.random.Generator,
) -> FloatArray:
    """LR and score statistics (2, count) of labels drawn from the smaller map; weighted rows are drawn as copies."""
    big = larger.fitted_rows
    small = big if smaller is None else smaller.fitted_rows
    features, below = big.features, small.features
    p = _probabilities(smaller, larger, small)
    if big.weights is not None:
        features, below, p = (np.repeat(a, big.weights.astype(np.int64), axis=1) for a in (features, below, p))
    n, K = features.shape[1], len(features)
    cumulative = p.cumsum(axis=0)
    penalties = [_quadratic(r, K) for r in (smaller, larger)]
    draws = np.full((2, count), np.nan)
    for b in range(count):
        codes, refitted, start = drawn_labels(cumulative, rng), p, larger.form.identity(K)
        low = -float(np.log(np.maximum(p[codes, np.arange(n)], np.finfo(np.float64).tiny)).mean())
        if smaller is not None:
            fit = fit_map(smaller.form, below, codes, None, penalties[0], start=smaller.theta, rtol=small.rtol)
            low, refitted, start = fit.loss, fit.probabilities, widen(smaller.form, larger.form, fit.theta)
        if both:
            # These labels come from the smaller map, so that the larger one's optimum is near it.
            high = fit_map(larger.form, features, codes, None, penalties[1], start=start, rtol=big.rtol).loss
            draws[0, b] = 2.0 * n * (low - high)
        if within is not None:
            design, info = _beyond(larger, features, codes, None, refitted, within)
            draws[1, b] = score_statistic(design, refitted, info.inverse)
    return draws


def _quadratic(results: SoftmaxResults | None, n_classes: int) -> QuadraticPenalty | None:
    if results is None or results.penalty is None:
        return None
    return results.penalty.quadratic(n_classes)
