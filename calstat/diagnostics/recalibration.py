"""Tests of the identity map against recalibration maps."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from calstat._arrays import pseudo_labels, statistics
from calstat._arrays.covariance import chi2_sf, lr_form, sandwich, standard_errors, wald_form
from calstat._arrays.linear_maps import linear_map
from calstat._arrays.logistic import LogisticFit, fit_logistic, score_rows
from calstat._arrays.math import clip_probabilities
from calstat._input.validation import (
    BinarySample,
    align,
    check_binary,
    check_choice,
    check_clusters,
    check_count,
    check_eps,
    check_multiclass,
    check_rng,
    positive_weight_rows,
)
from calstat._results import CalibrationTest
from calstat._typing import ArrayLike, FloatArray, IntArray, Label, RNGLike
from calstat.diagnostics.class_recalibration import KINDS, class_recalibration_test
from calstat.exceptions import InputError, NotEstimableWarning

Against: TypeAlias = Literal["in_the_large", "temperature", "logistic", "beta", "vector", "dirichlet"]
Method: TypeAlias = Literal["lr", "wald", "score", "pseudo_label"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Alternative:
    """A map that contains the identity: its title, the null hypothesis in words, and the options that make it."""

    title: str
    null: str
    kind: str
    options: dict[str, Any]


_ALTERNATIVES: dict[str, _Alternative] = {
    "in_the_large": _Alternative(
        title="Calibration in the large",
        null="the intercept is 0 when the slope is 1: events are as frequent as predicted",
        kind="LogisticCalibration",
        options={"slope": 1.0},
    ),
    "temperature": _Alternative(
        title="Recalibration by temperature",
        null="the slope of logit p, without an intercept, is 1 (temperature 1)",
        kind="BetaCalibration",
        options={"parameters": "a"},
    ),
    "logistic": _Alternative(
        title="Logistic recalibration",
        null="intercept 0 and slope 1 on logit p",
        kind="LogisticCalibration",
        options={},
    ),
    "beta": _Alternative(
        title="Beta recalibration",
        null="a = 1, b = 1 and c = 0 in logit q = a ln p - b ln(1 - p) + c",
        kind="BetaCalibration",
        options={},
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """The data of one recalibration test: arrays of one row per observation with positive weight."""

    y: FloatArray
    p: FloatArray
    weights: FloatArray | None
    columns: list[FloatArray]
    offset: FloatArray | None
    names: tuple[str, ...]
    identity: FloatArray
    alternative: _Alternative

    @property
    def nobs(self) -> float:
        return float(self.y.size) if self.weights is None else float(self.weights.sum())


def recalibration_test(
    y: ArrayLike,
    p: ArrayLike,
    *,
    against: Against = "logistic",
    method: Method | None = None,
    groups: ArrayLike | None = None,
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    classes: Sequence[Label] | None = None,
    eps: float = 1e-15,
    n_resamples: int = 9999,
    rng: RNGLike = None,
) -> CalibrationTest:
    r"""
    Test predictions against a recalibration map that contains the identity.

    A map :math:`q = \operatorname{expit}(x(p)'b)` is compared with :math:`q = p`, which is one of its members:

    ================ ============================================ =====================
    `against`        map                                          identity
    ================ ============================================ =====================
    ``in_the_large`` logit q = a + logit p                        a = 0
    ``temperature``  logit q = b logit p                          b = 1
    ``logistic``     logit q = a + b logit p (Cox)                a = 0, b = 1
    ``beta``         logit q = a ln p - b ln(1 - p) + c           a = 1, b = 1, c = 0
    ================ ============================================ =====================

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome; see `event` for labels other than 0 and 1.
    p : array_like of shape (n,) or (n, K)
        Predicted probability of the event, or one column for each class.
    against : {"logistic", "in_the_large", "temperature", "beta", "vector", "dirichlet"}
        The map of the alternative. For a matrix: softmax(ln p / T), softmax(s ln p + b) with a slope and a constant for
        each class, or softmax(W ln p + b) with a full matrix, by "score" or "pseudo_label" (the default where the
        variance of the score statistic is more than 10% above that of its chi-square law, or beyond 20 classes).
    method : {"lr", "wald", "score", "pseudo_label"}, optional
        Likelihood ratio, Wald or score statistic with its chi-square law, or the score statistic with the law it has
        when labels are drawn from p. By default "lr"; "wald" when `groups` are given; and "pseudo_label" where the
        chi-square law is in doubt: fewer than 10 events or non-events are expected per coefficient, or the
        map has no finite maximum of its likelihood.
    groups : array_like of shape (n,), optional
        Clusters of rows that are not independent. The Wald statistic then takes the cluster-robust covariance
        (factor G / (G - 1) (n - 1) / (n - rank)); the other methods are refused.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    classes : sequence of K labels, optional
        The class of each column of a matrix.
    eps : float, default 1e-15
        p is clipped to [eps, 1 - eps] before logarithms; the note says how many values that touched.
    n_resamples : int, default 9999
        Draws for "pseudo_label".
    rng : None, int or numpy.random.Generator
        Source of randomness for "pseudo_label".

    Returns
    -------
    CalibrationTest
        `details` holds the estimates and standard errors of the map where it was fitted. The degrees of freedom are
        the rank of the information: a constant p determines an intercept but no slope. What cannot be
        computed is NaN with the reason in `note`, and one `NotEstimableWarning` is given.

    Raises
    ------
    InputError
        For a bad argument, `groups` with a method other than "wald", or ``eps=0`` where p holds 0 or 1.

    Notes
    -----
    The test is for predictions that were not fitted on these rows. With many rows a negligible miscalibration is
    significant: read the estimates too.

    References
    ----------
    Cox, D. R. (1958). Two further applications of a model for binary regression. Biometrika 45.
    https://doi.org/10.1093/biomet/45.3-4.562
    Miller, M. E., Hui, S. L., Tierney, W. M. (1991). Validation techniques for logistic regression models.
    Statistics in Medicine 10. https://doi.org/10.1002/sim.4780100805

    Examples
    --------
    >>> import numpy as np
    >>> import calstat as cs
    >>> p = np.linspace(0.02, 0.98, 400)
    >>> y = np.random.default_rng(1).random(400) < p**2
    >>> test = cs.recalibration_test(y, p, method="score")
    >>> print(test)
    Logistic recalibration (method: score)
    H0: intercept 0 and slope 1 on logit p
    chi2(2) = 60.1383, p < 0.001, n = 400

    The predictions are refuted: no intercept 0 and slope 1 would give labels like these.
    """
    check_choice("against", against, tuple(dict.fromkeys((*_ALTERNATIVES, *KINDS))))
    check_choice("method", method, (None, "lr", "wald", "score", "pseudo_label"))
    n_resamples, eps = check_count("n_resamples", n_resamples), check_eps(eps)
    generator = check_rng(rng)
    if _is_matrix(p, against):
        if event is not None:
            raise InputError(
                f"`event` is for one event; against={against!r} tests all classes. Pass `classes` to name the columns."
            )
        return _matrix_test(y, p, against, method, groups, freq_weights, classes, eps, n_resamples, generator)
    _, (y, p, freq_weights, groups) = align(y=y, p=p, freq_weights=freq_weights, groups=groups)
    given = check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True)
    codes = _codes(groups, given, method)
    sample = positive_weight_rows(given)
    clipped, touched = clip_probabilities(sample.p, eps)
    alternative = _ALTERNATIVES[against]
    form = linear_map(alternative.kind, eps=eps, **alternative.options)
    columns, offset = form.design(clipped)
    problem = _Problem(
        y=sample.y,
        p=clipped,
        weights=sample.weights,
        columns=columns,
        offset=offset,
        names=form.names,
        identity=np.asarray(form.identity, dtype=np.float64),
        alternative=alternative,
    )
    notes = [f"{touched} of {sample.p.size} probabilities were clipped to [{eps:g}, 1 - {eps:g}]"] if touched else []
    if codes is not None:
        return _wald(problem, codes, notes)
    if method in {None, "lr", "wald"}:
        chosen = _fitted(problem, method, notes)
        if chosen is not None:
            return chosen
    return _score(problem, "score" if method == "score" else "pseudo_label", n_resamples, generator, notes)


def _is_matrix(p: ArrayLike, against: str) -> bool:
    """Tell whether p is read as a matrix of classes; two columns are, where the map has more than one event."""
    shape = np.shape(p)
    matrix = len(shape) == 2 and (shape[1] > 2 or against not in _ALTERNATIVES)
    if matrix and against not in KINDS:
        raise InputError(
            f"`against` must be 'temperature', 'vector' or 'dirichlet' for a matrix of probabilities; {against!r} is "
            "for one event: pass `y == label` and its column."
        )
    if not matrix and against not in _ALTERNATIVES:
        raise InputError(f"`against`={against!r} needs a matrix with one column per class; `p` has shape {shape}.")
    return matrix


def _matrix_test(
    y: ArrayLike,
    p: ArrayLike,
    against: str,
    method: str | None,
    groups: ArrayLike | None,
    freq_weights: ArrayLike | None,
    classes: Sequence[Label] | None,
    eps: float,
    n_resamples: int,
    rng: np.random.Generator,
) -> CalibrationTest:
    if groups is not None:
        raise InputError(
            f"`groups` is for binary predictions here; {KINDS[against]}(y, p, groups=...).fit(cov_type='cluster') and "
            "its test_identity('wald') take clusters of a matrix into account."
        )
    sample = check_multiclass(y, p, freq_weights=freq_weights, classes=classes, integer_weights=True)
    return class_recalibration_test(sample, against, method, eps, n_resamples, rng)


def _codes(groups: ArrayLike | None, sample: BinarySample, method: str | None) -> IntArray | None:
    """Cluster codes of the rows with positive weight."""
    if groups is not None and method not in {None, "wald"}:
        raise InputError(
            f"`groups` goes with method='wald', whose covariance can be made cluster-robust; method={method!r} takes "
            "rows as independent."
        )
    return check_clusters(groups, sample.weights, sample.y.size)


def _fit(problem: _Problem) -> LogisticFit:
    return fit_logistic(
        problem.columns, problem.y, weights=problem.weights, offset=problem.offset, start=problem.identity
    )


def _fitted(problem: _Problem, method: str | None, notes: list[str]) -> CalibrationTest | None:
    """LR or Wald test; None where no method was asked for and the chi-square law is in doubt."""
    copies = statistics.counts(problem.y.size, problem.weights)
    scarce = min(copies @ problem.p, copies @ (1 - problem.p)) < 10 * len(problem.columns)
    if method is None and scarce:
        notes.append(
            "fewer than 10 events or non-events are expected per coefficient, too few for the chi-square law: labels "
            "were drawn from p instead"
        )
        return None
    fit = _fit(problem)
    if fit.separated and method is None:
        notes.append("the likelihood of the map has no finite maximum: the score statistic was taken")
        return None
    if fit.separated:
        reason = (
            "the scores separate the outcomes, so the map has no finite maximum of its likelihood; method='score' and "
            "'pseudo_label' need none"
        )
        return _not_estimable(problem, method or "lr", reason, notes)
    if method == "wald":
        return _wald(problem, None, notes, fit)
    form = lr_form(fit.llf, statistics.log_likelihood(problem.y, problem.p, problem.weights), fit.rank)
    return _result(problem, "lr", form.statistic, form.df, _estimates(problem, fit, fit.covariance), notes)


def _wald(
    problem: _Problem, codes: IntArray | None, notes: list[str], fit: LogisticFit | None = None
) -> CalibrationTest:
    """Wald test with the model's or the cluster-robust covariance, of the coefficients that the data determine."""
    fit = _fit(problem) if fit is None else fit
    if fit.separated:
        return _not_estimable(problem, "wald", "the scores separate the outcomes: the map has no finite fit", notes)
    covariance = fit.covariance
    if codes is not None:
        rows = score_rows(problem.columns, problem.y, fit.params, offset=problem.offset)
        covariance = sandwich(rows, covariance, "cluster", weights=problem.weights, groups=codes)
        notes = [*notes, f"covariance robust to correlation within {int(codes.max()) + 1} clusters"]
    known = np.isfinite(np.diagonal(covariance))
    if not known.any():
        return _not_estimable(problem, "wald", "no coefficient is determined by the data", notes)
    form = wald_form(fit.params, covariance, np.eye(known.size)[known], problem.identity[known])
    return _result(problem, "wald", form.statistic, form.df, _estimates(problem, fit, covariance), notes)


def _estimates(problem: _Problem, fit: LogisticFit, covariance: FloatArray) -> dict[str, Any]:
    """Coefficients and standard errors by name; NaN for those that the data do not determine."""
    params = np.where(fit.estimable, fit.params, np.nan)
    return {
        **{name: float(value) for name, value in zip(problem.names, params, strict=True)},
        **{f"se_{name}": float(value) for name, value in zip(problem.names, standard_errors(covariance), strict=True)},
    }


def _score(
    problem: _Problem, method: str, n_resamples: int, rng: np.random.Generator, notes: list[str]
) -> CalibrationTest:
    """Score test with its chi-square law, or with the law it has when labels are draws from p."""
    features = np.stack(problem.columns, axis=1)
    test = statistics.binary_score_test(problem.y, problem.p, features, problem.weights)
    if test.rank == 0:
        return _not_estimable(problem, method, "every p is 1/2, which a temperature does not change", notes)
    chi2 = chi2_sf(test.statistic, test.rank)
    if method == "score":
        return _result(problem, "score", test.statistic, test.rank, {}, notes)
    p, x = problem.p, features
    if problem.weights is not None:
        copies = problem.weights.astype(np.int64)
        p, x = np.repeat(p, copies), np.repeat(x, copies, axis=0)
    residual = np.stack([-p, 1 - p], axis=1)
    projected = x @ test.factor
    draws = pseudo_labels.linear_draws(
        np.stack([1 - p, p], axis=1), residual[:, :, None] * projected[:, None, :], n_resamples, rng
    )
    place = pseudo_labels.monte_carlo(test.statistic, (draws**2).sum(axis=1))
    details = {"pvalue_chi2": chi2, "df": test.rank, "mc_error": place.error, "n_resamples": n_resamples}
    notes = [*notes, f"the chi-square law with {test.rank} df would give p = {chi2:.3g}"]
    return _result(problem, "pseudo_label", test.statistic, None, details, notes, place.pvalue)


def _result(
    problem: _Problem,
    method: str,
    statistic: float,
    df: int | None,
    details: dict[str, Any],
    notes: list[str],
    pvalue: float | None = None,
) -> CalibrationTest:
    if df is not None and df < len(problem.columns):
        notes = [*notes, f"the data determine {df} of {len(problem.columns)} coefficients"]
    return CalibrationTest(
        name=problem.alternative.title,
        null=problem.alternative.null,
        statistic=statistic,
        pvalue=chi2_sf(statistic, df or 0) if pvalue is None else pvalue,
        df=df,
        distribution="pseudo-label" if method == "pseudo_label" else "chi2",
        method=method,
        nobs=problem.nobs,
        details=details,
        note="; ".join(notes) or None,
    )


def _not_estimable(problem: _Problem, method: str, reason: str, notes: list[str]) -> CalibrationTest:
    # Levels up to the user's line: this function, its caller, recalibration_test.
    warnings.warn(f"{problem.alternative.title}: {reason}.", NotEstimableWarning, stacklevel=4)
    return _result(problem, method, np.nan, None, {}, [*notes, reason], np.nan)
