"""The validation indexes of ``val.prob`` with standard errors and intervals, for binary predictions."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit, logit

from calstat._arrays import statistics
from calstat._arrays.covariance import sandwich
from calstat._arrays.logistic import LogisticFit, fit_logistic
from calstat._arrays.math import clip_probabilities
from calstat._input.validation import (
    BinarySample,
    check_alpha,
    check_binary,
    check_choice,
    check_eps,
    positive_weight_rows,
)
from calstat._typing import ArrayLike, FloatArray, Label
from calstat.metrics._curves import smooth_curve

_Row: TypeAlias = tuple[float, float, float, float]
_COLUMNS = ["estimate", "se", "ci_low", "ci_high"]


def val_prob(
    y: ArrayLike,
    p: ArrayLike,
    *,
    alpha: float = 0.05,
    cov_type: Literal["nonrobust", "HC0"] = "nonrobust",
    freq_weights: ArrayLike | None = None,
    event: Label | None = None,
    eps: float = 1e-15,
) -> pd.DataFrame:
    r"""
    Validation indexes of binary predictions, by the names that R's ``val.prob`` gives them.

    Parameters
    ----------
    y : array_like of shape (n,)
        Outcome.
    p : array_like of shape (n,)
        Predicted probability of the event.
    alpha : float, default 0.05
        One minus the confidence level of the intervals.
    cov_type : {"nonrobust", "HC0"}, default "nonrobust"
        Standard errors of the intercepts and the slope: of the model, as in R, or the sandwich. The model of "Intercept
        (slope 1)" is wrong where the slope is not 1: its limits covered 92.4% for over-confident predictions, those of
        the sandwich 94.4%. With fewer than some twenty events the sandwich misleads for the slope.
    freq_weights : array_like of shape (n,), optional
        Whole numbers: a row of weight k counts as k rows.
    event : label, optional
        The label of the event where it is not clear from the labels.
    eps : float, default 1e-15
        p is clipped to [eps, 1 - eps] for everything that takes a logarithm.

    Returns
    -------
    pandas.DataFrame
        Columns estimate, se, ci_low, ci_high; NaN where an index has no interval or the data do not determine it (one
        class only, a constant p, separated outcomes). Rows, with L the log likelihood:

        - Dxy, C (ROC): Dxy = 2C - 1; ties count half; DeLong's standard error, limits by Newcombe's method 5, which
          hold their level for few events too.
        - R2: Nagelkerke's R2 of the predictions as they are; D = (chi2 - 1)/n with chi2 = 2(L(p) - L(rate)), D:Chi-sq
          and D:p (1 df).
        - U = (chi2 - 2)/n with chi2 = 2(L(recalibrated) - L(p)), U:Chi-sq and U:p (2 df); Q = D - U.
        - Brier, with Hall's limits, which allow for its skewness, and Brier scaled = 1 - Brier/(rate (1 - rate)).
        - O/E: events over expected events; limits on the log scale, from the variance of a ratio of means.
        - Intercept and Slope: of the joint logistic recalibration; Intercept (slope 1): calibration in the large. The
          two intercepts answer different questions. Wald limits.
        - Emax, E90, Eavg: largest, 0.9 quantile and mean over rows of the distance between p and the lowess curve of y
          on p (span 2/3, no robustness iterations). They have no interval here; `bootstrap` gives them one.
        - S:z and S:p: Spiegelhalter's test.

    Raises
    ------
    InputError
        For a bad argument.

    References
    ----------
    Harrell, F. E. (2015). Regression Modeling Strategies, 2nd ed. https://doi.org/10.1007/978-3-319-19425-7
    DeLong, E. R., DeLong, D. M., Clarke-Pearson, D. L. (1988). Comparing the areas under correlated ROC curves.
    Biometrics 44. https://doi.org/10.2307/2531595
    Newcombe, R. G. (2006). Confidence intervals for an effect size measure based on the Mann-Whitney statistic. Part 2.
    Statistics in Medicine 25. https://doi.org/10.1002/sim.2324
    Hall, P. (1992). On the removal of skewness by transformation. JRSS B 54.
    https://doi.org/10.1111/j.2517-6161.1992.tb01876.x

    Examples
    --------
    >>> import calstat as cs
    >>> y = [0, 0, 1, 0, 1, 0, 1, 1]
    >>> p = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    >>> table = cs.val_prob(y, p)
    >>> table.loc[["C (ROC)", "Slope"], ["estimate", "ci_low", "ci_high"]].round(2)
             estimate  ci_low  ci_high
    C (ROC)      0.81    0.40     0.96
    Slope        1.07   -0.42     2.57

    A slope below 1 would say that the predictions are too extreme; with eight rows the interval says little.
    """
    level = check_alpha(alpha)
    check_choice("cov_type", cov_type, ("nonrobust", "HC0"))
    sample = positive_weight_rows(check_binary(y, p, freq_weights=freq_weights, event=event, integer_weights=True))
    return pd.DataFrame.from_dict(index_rows(sample, level, check_eps(eps), cov_type), orient="index", columns=_COLUMNS)


def index_rows(sample: BinarySample, alpha: float, eps: float, cov_type: str = "nonrobust") -> dict[str, _Row]:
    """Rows of `val_prob` by name: estimate, standard error and limits."""
    clipped, _ = clip_probabilities(sample.p, eps)
    return {**_discrimination(sample, alpha), **_likelihood(sample, clipped, alpha, cov_type), **_scores(sample, alpha)}


def _plain(value: float) -> _Row:
    return float(value), np.nan, np.nan, np.nan


def _normal(estimate: float, se: float, alpha: float, bounds: tuple[float, float] = (-np.inf, np.inf)) -> _Row:
    half = stats.norm.isf(alpha / 2) * se
    low, high = np.clip([estimate - half, estimate + half], *bounds)
    return float(estimate), float(se), float(low), float(high)


def _discrimination(sample: BinarySample, alpha: float) -> dict[str, _Row]:
    c = statistics.concordance(sample.y, sample.p, sample.weights)
    se = float(np.sqrt(c.variance))
    low, high = statistics.concordance_limits(c, alpha)
    return {
        "Dxy": (2 * c.estimate - 1, 2 * se, 2 * low - 1, 2 * high - 1),
        "C (ROC)": (c.estimate, se, low, high),
    }


def _likelihood(sample: BinarySample, p: FloatArray, alpha: float, cov_type: str) -> dict[str, _Row]:
    """Indexes made of log likelihoods and of the two recalibration fits."""
    y, w, n = sample.y, sample.weights, sample.nobs
    scores = logit(p)
    joint = fit_logistic([np.ones_like(p), scores], y, weights=w, start=np.array([0.0, 1.0]))
    shift = fit_logistic([np.ones_like(p)], y, weights=w, offset=scores)
    joint_cov, shift_cov = joint.covariance, shift.covariance
    if cov_type == "HC0":
        design = np.column_stack((np.ones_like(p), scores))
        joint_cov = _sandwich(design, y - expit(design @ joint.params), joint_cov, w)
        shift_cov = _sandwich(design[:, :1], y - expit(scores + shift.params[0]), shift_cov, w)
    rate = float(statistics.counts(y.size, w) @ y / n)
    as_is = statistics.log_likelihood(y, p, w)
    null = statistics.log_likelihood(y, np.full_like(p, rate), w)
    d2 = 2 * (as_is - null) if 0 < rate < 1 else np.nan
    u2 = 2 * (joint.llf - as_is) if joint.converged and not joint.separated and joint.rank == 2 else np.nan
    return {
        "R2": _plain(-np.expm1(-d2 / n) / -np.expm1(2 * null / n) if 0 < rate < 1 else np.nan),
        "D": _plain((d2 - 1) / n),
        "D:Chi-sq": _plain(d2),
        "D:p": _plain(stats.chi2.sf(d2, 1)),
        "U": _plain((u2 - 2) / n),
        "U:Chi-sq": _plain(u2),
        "U:p": _plain(stats.chi2.sf(u2, 2)),
        "Q": _plain((d2 - 1) / n - (u2 - 2) / n),
        "Intercept": _coefficient(joint, joint_cov, 0, alpha),
        "Slope": _coefficient(joint, joint_cov, 1, alpha),
        "Intercept (slope 1)": _coefficient(shift, shift_cov, 0, alpha),
    }


def _sandwich(design: FloatArray, residual: FloatArray, bread: FloatArray, w: FloatArray | None) -> FloatArray:
    return sandwich(residual[:, None] * design, bread, "HC0", weights=w)


def _coefficient(fit: LogisticFit, cov: FloatArray, index: int, alpha: float) -> _Row:
    if fit.separated or not fit.estimable[index]:
        return _plain(np.nan)
    return _normal(float(fit.params[index]), float(np.sqrt(cov[index, index])), alpha)


def _scores(sample: BinarySample, alpha: float) -> dict[str, _Row]:
    y, p, w = sample.y, sample.p, sample.weights
    brier, se = statistics.mean_and_error((y - p) ** 2, w)
    low, high = np.clip(statistics.mean_limits((y - p) ** 2, alpha, w), 0.0, 1.0)
    rate = float(statistics.counts(y.size, w) @ y / sample.nobs)
    ratio, log_se = statistics.observed_to_expected(y, p, w)
    factor = np.exp(stats.norm.isf(alpha / 2) * log_se)
    s = statistics.spiegelhalter(y, p, w)
    curve = smooth_curve(sample, "lowess", None)
    return {
        # An outcome that is the same in all rows does not tell how much the score varies.
        "Brier": (brier, se, float(low), float(high)) if 0 < rate < 1 else _plain(brier),
        "Brier scaled": _plain(1 - brier / (rate * (1 - rate)) if 0 < rate < 1 else np.nan),
        "O/E": (ratio, ratio * log_se, float(ratio / factor), float(ratio * factor)),
        "Emax": _plain(curve.quantile(1.0)),
        "E90": _plain(curve.quantile(0.9)),
        "Eavg": _plain(curve.mean()),
        "S:z": _plain(s.z),
        "S:p": _plain(2 * stats.norm.sf(abs(s.z))),
    }
