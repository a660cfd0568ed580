"""Covariances from an information matrix and scores, Wald forms, the delta method, tails.

Everything is a function of plain arrays and serves every likelihood map. Frequency weights mean repetition:
a row of weight 3 enters every sum as three rows, and ``n`` is the sum of the weights. The sandwich therefore
takes scores of *one copy* of each row.

========= ==========================================================================================
HC0       ``B (sum w s s') B`` with the bread ``B``, the inverse of the (penalised) information
HC1       HC0 ``* n / (n - k)``
cluster   ``B (sum_g S_g S_g') B * G / (G - 1) * (n - 1) / (n - k)``, with ``S_g`` the sum of w s in a cluster
========= ==========================================================================================

``k`` is the number of parameters that the data determine; penalised fits pass their effective number. These
are the definitions of R's sandwich. statsmodels agrees on HC0 and on unweighted clusters; its weighted
cluster covariance does not treat weights as repetition.

References
----------
White, H. (1982). Maximum likelihood estimation of misspecified models. Econometrica 50.
https://doi.org/10.2307/1912526
Zeileis, A. (2006). Object-oriented computation of sandwich estimators. Journal of Statistical Software 16.
https://doi.org/10.18637/jss.v016.i09
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from calstat._typing import FloatArray, IntArray
from calstat.exceptions import InputError

_RANK = 1e-10  # eigenvalues of scaled R V R' below this share of the largest count as zero


class WaldForm(NamedTuple):
    """Wald statistic of ``R params = q``, its degrees of freedom (rank), and its chi-square p-value."""

    statistic: float
    df: int
    pvalue: float


def sandwich(
    scores: FloatArray,
    bread: FloatArray,
    kind: Literal["HC0", "HC1", "cluster"],
    *,
    weights: FloatArray | None = None,
    groups: IntArray | None = None,
    edf: float | None = None,
) -> FloatArray:
    """Sandwich covariance, (k, k).

    Parameters
    ----------
    scores : (n, k) score of one copy of each row at the estimate (centred, if the fit was penalised).
    bread : (k, k) inverse of the (penalised) information; its NaN rows and columns stay NaN.
    kind : "HC0", "HC1" or "cluster".
    weights : (n,) frequency weights.
    groups : (n,) cluster codes 0, 1, ...; needed for, and used by, "cluster" only. Codes whose rows all have
        weight 0 do not count as clusters.
    edf : effective number of parameters; the number of finite columns of `bread` if None.
    """
    known = np.isfinite(np.diagonal(bread))
    inner = bread[np.ix_(known, known)]
    rows = scores[:, known]
    n = float(rows.shape[0] if weights is None else weights.sum())
    factor = 1.0
    size = float(known.sum()) if edf is None else edf
    if kind == "cluster":
        if groups is None:
            raise InputError('`groups` must name the cluster of each row for `cov_type="cluster"`; it is None.')
        present = groups if weights is None else groups[weights > 0]
        count = np.unique(present).size
        if count < 2:
            raise InputError(f"`groups` must name at least 2 clusters for a covariance; it names {count}.")
        weighted = rows if weights is None else rows * weights[:, None]
        sums = np.empty((int(groups.max()) + 1, weighted.shape[1]))  # no column, where outcomes are separated
        for j, column in enumerate(weighted.T):
            sums[:, j] = np.bincount(groups, weights=column)
        meat = sums.T @ sums
        factor = count / (count - 1.0) * (n - 1.0)
    else:
        meat = rows.T @ (rows if weights is None else rows * weights[:, None])
        factor = n
    if kind == "HC0":
        factor = 1.0
    elif n > size:
        factor /= n - size
    else:
        factor = np.nan  # no degrees of freedom are left
    covariance = np.full(bread.shape, np.nan)
    covariance[np.ix_(known, known)] = factor * (inner @ meat @ inner)
    return covariance


def wald_form(params: FloatArray, cov: FloatArray, R: FloatArray, q: FloatArray | float = 0.0) -> WaldForm:
    """Wald statistic ``(R b - q)' (R V R')^+ (R b - q)`` of the hypotheses ``R b = q``.

    The pseudo-inverse and ``df = rank(R V R')`` serve covariances of over-complete parameters, and redundant
    hypotheses. NaN if a hypothesis involves a parameter whose variance is NaN, or if a hypothesis without
    variance does not hold exactly.
    """
    R = np.atleast_2d(np.asarray(R, dtype=np.float64))
    used = np.any(R != 0, axis=0)
    gap = R[:, used] @ params[used] - q
    middle = R[:, used] @ cov[np.ix_(used, used)] @ R[:, used].T
    if not (np.all(np.isfinite(middle)) and np.all(np.isfinite(gap))):
        return WaldForm(np.nan, R.shape[0], np.nan)
    size = np.sqrt(np.abs(np.diagonal(middle)))
    size = np.where(size > 0, size, 1.0)
    values, vectors = np.linalg.eigh(middle / np.outer(size, size))
    kept = values > _RANK * max(float(values[-1]), 0.0)
    along = vectors.T @ (gap / size)
    rest = np.abs(along[~kept])
    df = int(kept.sum())
    if df == 0 or np.any(rest > 1e-6 * (1.0 + np.abs(along).max())):
        return WaldForm(np.nan, df, np.nan)
    statistic = float(np.sum(along[kept] ** 2 / values[kept]))
    return WaldForm(statistic, df, chi2_sf(statistic, df))


def delta_method(jacobian: FloatArray, cov: FloatArray) -> FloatArray:
    """Covariance ``D V D'`` of smooth functions with Jacobian D (m, k); NaN where V is NaN and D is not 0."""
    jacobian = np.atleast_2d(jacobian)
    unknown = ~np.isfinite(np.diagonal(cov))
    result = jacobian[:, ~unknown] @ cov[np.ix_(~unknown, ~unknown)] @ jacobian[:, ~unknown].T
    touched = np.any(jacobian[:, unknown] != 0, axis=1)
    result[touched, :] = np.nan
    result[:, touched] = np.nan
    return np.asarray(result)


def delta_variance(jacobian: FloatArray, cov: FloatArray) -> FloatArray:
    """Diagonal of `delta_method`, (m,), without the (m, m) matrix: for predictions on many rows."""
    unknown = ~np.isfinite(np.diagonal(cov))
    inner = jacobian[:, ~unknown]
    variance = np.einsum("ij,ij->i", inner @ cov[np.ix_(~unknown, ~unknown)], inner)
    variance[np.any(jacobian[:, unknown] != 0, axis=1)] = np.nan
    return np.asarray(np.maximum(variance, 0.0))


def standard_errors(cov: FloatArray) -> FloatArray:
    """Square roots of the diagonal; NaN stays NaN, and rounding below 0 counts as 0."""
    return np.asarray(np.sqrt(np.maximum(np.diagonal(cov), 0.0)))


def chi2_sf(statistic: float, df: float) -> float:
    """Upper tail of the chi-square law; 1 below 0, NaN for df = 0."""
    return float(special.chdtrc(df, max(statistic, 0.0))) if df > 0 else np.nan


def normal_two_sided(z: FloatArray) -> FloatArray:
    """``P(|Z| >= |z|)`` from the tail itself: accurate down to 1e-300."""
    return np.asarray(2.0 * special.ndtr(-np.abs(z)))


def normal_quantile(alpha: float) -> float:
    """The z with ``P(|Z| > z) = alpha``."""
    return float(-special.ndtri(0.5 * alpha))


def lr_form(llf: float, llf0: float, df: int) -> WaldForm:
    """Likelihood ratio ``2 (llf - llf0)``, not below 0, with its chi-square p-value."""
    statistic = max(2.0 * (llf - llf0), 0.0)
    return WaldForm(statistic, df, chi2_sf(statistic, df))
