r"""Covariances, score statistics and derived forms of softmax maps, on plain arrays.

Everything is worked out in the free parameters of a design (contrasts with class 0) and carried over to the reported
representative, whose covariance is singular by construction. J is the information of the likelihood and P that of the
penalty, both on the sum scale.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg, special

from calstat._arrays.covariance import sandwich
from calstat._arrays.softmax import (
    Design,
    FullDesign,
    QuadraticPenalty,
    evaluate,
    penalty_gradient,
    penalty_hessian,
    row_scores,
    row_slices,
    total_weight,
)
from calstat._typing import BoolArray, FloatArray, IntArray

# Mean information along a direction, with features of unit mean square. On separated data it falls with the
# distance to the infimum (1e-13); what is determined keeps far more.
_SEPARATED = 1e-10
_NOT_ESTIMABLE = 1e-6
# A profile limit has settled when the last step, in standard errors squared, is this small.
_PROFILE_TOLERANCE, _PROFILE_STEPS = 1e-12, 60
# Rows of a large matrix that are mirrored at once.
_MIRRORED = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Information:
    """Information of a fit in its free parameters, sum scale.

    `likelihood` J and `penalty` P (f, f); `inverse` pseudo-inverse of J + P (f, f); `lost` directions in which the
    data and the penalty say nothing (f, d); `rank` f - d; `edf` trace of ``inverse @ J``; `nobs` sum of weights.
    """

    likelihood: FloatArray
    penalty: FloatArray
    inverse: FloatArray
    lost: FloatArray
    rank: int
    edf: float
    nobs: float


def information_at(
    design: Design,
    penalty: QuadraticPenalty | None,
    probabilities: FloatArray,
    *,
    null: FloatArray | None = None,
    separated: bool = False,
) -> Information:
    """Information at the given class probabilities (K, n); `null` are directions known to be without information."""
    nobs = total_weight(design)
    # In place: at 100 classes each of these takes 0.8 GB.
    likelihood, fixed = design.information(probabilities), penalty_hessian(design, penalty)
    likelihood *= nobs
    fixed *= nobs
    total = likelihood + fixed
    lost = np.zeros((design.n_free, 0)) if null is None else null
    if separated:
        scale = 1.0 / _feature_scale(design)
        values, vectors = np.linalg.eigh(total * scale[:, None] * scale / nobs)
        kept = values > _SEPARATED
        lost = vectors[:, ~kept] * scale[:, None]
        if lost.shape[1]:
            lost = np.linalg.qr(lost)[0]
        half = vectors[:, kept] * scale[:, None] / np.sqrt(values[kept] * nobs)
        inverse = half @ half.T
    else:
        inverse = _inverse(total, lost)
    return Information(
        likelihood=likelihood,
        penalty=fixed,
        inverse=inverse,
        lost=lost,
        rank=design.n_free - lost.shape[1],
        edf=float(np.vdot(inverse, likelihood)),
        nobs=nobs,
    )


def _feature_scale(design: Design) -> FloatArray:
    """Root mean square of the feature that belongs to each free parameter (f,)."""
    squares = (design.features**2).mean(axis=1)
    if isinstance(design, FullDesign):
        scale = np.tile(squares, design.n_classes - 1)
    else:
        slopes = {"class": squares, "common": squares.mean(keepdims=True), "fixed": squares[:0]}[design.slopes]
        scale = np.concatenate([slopes, np.ones(design.n_free - design.n_slopes)])
    return np.sqrt(np.where(scale > 0.0, scale, 1.0))


def _inverse(matrix: FloatArray, lost: FloatArray) -> FloatArray:
    """Inverse on the complement of `lost` (orthonormal columns), scaled to unit diagonal before it is factored."""
    if lost.shape[1]:
        matrix = matrix + float(np.trace(matrix)) / len(matrix) * (lost @ lost.T)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(np.float64).tiny))
    scaled = matrix * scale[:, None]
    scaled *= scale
    # LAPACK works on columns: those of the transpose are at hand, so that nothing is copied.
    inverse, failed = linalg.lapack.dpotrf(scaled.T, lower=1, clean=0, overwrite_a=1)
    if failed:
        inverse = np.linalg.pinv(matrix * scale[:, None] * scale, hermitian=True)
    else:
        inverse, _ = linalg.lapack.dpotri(inverse, lower=1, overwrite_c=1)
    inverse *= scale[:, None]
    inverse *= scale
    _mirror(inverse)
    if lost.shape[1]:
        inverse = inverse - lost @ (lost.T @ inverse)
        inverse = inverse - (inverse @ lost) @ lost.T
        inverse = 0.5 * (inverse + inverse.T)
    return np.asarray(inverse.T)  # rows again, of a symmetric matrix


def _mirror(matrix: FloatArray) -> None:
    """Copy the lower triangle of a square matrix to the upper one, block by block."""
    for start in range(0, len(matrix), _MIRRORED):
        here, after = slice(start, start + _MIRRORED), slice(start + _MIRRORED, None)
        matrix[here, after] = matrix[after, here].T
        block = np.tril(matrix[here, here])
        matrix[here, here] = block + np.tril(block, -1).T


def free_covariance(
    design: Design,
    penalty: QuadraticPenalty | None,
    theta: FloatArray,
    probabilities: FloatArray,
    info: Information,
    kind: str,
    groups: IntArray | None = None,
) -> FloatArray:
    """Covariance of the free parameters (f, f).

    `kind`: "nonrobust" or "bayes" the inverse of J + P, "frequentist" that inverse around J, and the sandwiches
    "HC0", "HC1", "cluster" with scores centred by the penalty's share.
    """
    if kind in {"nonrobust", "bayes"}:
        return info.inverse
    if kind == "frequentist":
        return info.inverse @ info.likelihood @ info.inverse
    scores = row_scores(design, probabilities)
    if penalty is not None:
        scores = scores - design.pull(penalty_gradient(design, penalty, theta))
    size = info.edf if penalty is not None else float(info.rank)
    return sandwich(scores, info.inverse, kind, weights=design.weights, groups=groups, edf=size)  # type: ignore[arg-type]  # checked by the caller


def not_estimable(loadings: FloatArray) -> BoolArray:
    """Which quantities have a loading on one of the lost directions, (m, d) to (m,)."""
    if loadings.shape[1] == 0:
        return np.zeros(len(loadings), dtype=np.bool_)
    size = np.linalg.norm(loadings, axis=1)
    return np.asarray(size > _NOT_ESTIMABLE * max(float(size.max()), np.finfo(np.float64).tiny))


def score_form(
    design: Design, penalty: QuadraticPenalty | None, probabilities: FloatArray, info: Information | None
) -> FloatArray:
    """Matrix of the score statistic: the inverse (f, f) of the information, or without it its blocks' (K, q, q).

    The blocks, one per class, are for so many classes that the whole cannot be inverted; the statistic then has no
    chi-square law, but its law under drawn labels is as good.
    """
    if info is not None:
        return info.inverse
    blocks = total_weight(design) * design.blocks(probabilities)
    where = np.arange(design.shape[1])
    if penalty is not None:
        blocks[:, where, where] += 2.0 * total_weight(design) * penalty.weights
    blocks[:, where, where] += 1e-9 * blocks[:, where, where].mean()
    return np.asarray(np.linalg.inv(blocks))


def score_statistic(design: Design, probabilities: FloatArray, form: FloatArray) -> float:
    """Score statistic ``U' M U`` with the likelihood's gradient U at a map without penalty."""
    residuals = -probabilities
    residuals[design.codes, np.arange(design.codes.size)] += 1.0
    return _quadratic(design, form, _gradient(design, residuals))


def _gradient(design: Design, residuals: FloatArray) -> FloatArray:
    """Gradient of the log-likelihood (K, q) from residuals (K, n) of one copy of each row."""
    total = np.zeros(design.shape)
    for rows in row_slices(design):
        r = residuals[:, rows]
        total += design.adjoint(r if design.weights is None else r * design.weights[rows], rows)
    return total


def _quadratic(design: Design, form: FloatArray, u: FloatArray) -> float:
    if form.ndim == 3:
        return float(np.einsum("kq,kqr,kr->", u, form, u))
    free = design.pull(u)
    return float(free @ form @ free)


def score_statistic_draws(
    design: Design, probabilities: FloatArray, form: FloatArray, n_draws: int, rng: np.random.Generator
) -> FloatArray:
    """Score statistics (n_draws,) of labels drawn from the probabilities; weights count as independent copies.

    The gradient is a sum over rows of the features of the drawn class, less its expectation.
    """
    n = design.codes.size
    cumulative = probabilities.cumsum(axis=0)
    expected = _gradient(design, probabilities)
    out = np.empty(n_draws)
    for b in range(n_draws):
        drawn = design.adjoint(drawn_counts(cumulative, design.weights, rng), slice(0, n))
        out[b] = _quadratic(design, form, drawn - expected)
    return out


def drawn_counts(cumulative: FloatArray, weights: FloatArray | None, rng: np.random.Generator) -> FloatArray:
    """Counts (K, n) of the classes of labels drawn by their cumulative probabilities (K, n), one or `weights` a row."""
    if weights is None:
        label = drawn_labels(cumulative, rng)
        counts = np.zeros(cumulative.shape)
        counts[label, np.arange(label.size)] = 1.0
        return counts
    p = np.maximum(np.diff(cumulative, axis=0, prepend=0.0), 0.0)
    return rng.multinomial(weights.astype(np.int64), (p / p.sum(axis=0)).T).T.astype(np.float64)


def drawn_labels(cumulative: FloatArray, rng: np.random.Generator) -> IntArray:
    """Labels (n,) drawn by their cumulative probabilities (K, n)."""
    u = rng.random(cumulative.shape[1]) * cumulative[-1]
    return (cumulative[:-1] <= u).sum(axis=0).astype(np.int64)


def score_excess(design: Design, probabilities: FloatArray, info: Information) -> float:
    r"""Excess variance of the score statistic over its chi-square law, relative to the latter's ``2 df``.

    With independent rows, ``Var(U' J^- U) = 2 df + sum_i (E q_i^2 - (E q_i)^2 - 2 tr V_i^2)`` for the share
    ``q_i = s_i' J^- s_i`` of row i; the first term dominates. Large values mean that single rows decide the test.
    """
    total = 0.0
    for rows, spread in logit_covariances(design, info.inverse):
        p = probabilities[:, rows].T
        centre = np.einsum("nk,nkl->nl", p, spread)
        q = np.einsum("nkk->nk", spread) - 2.0 * centre + np.einsum("nl,nl->n", centre, p)[:, None]
        mean = np.einsum("nk,nk->n", p, q)
        share = np.einsum("nk,nk->n", p, q**2) - mean**2
        total += float(share.sum() if design.weights is None else share @ design.weights[rows])
    return total / (2.0 * max(info.rank, 1))


def information_beyond(info: Information, within: FloatArray) -> Information:
    """Information about a larger map that is left when a smaller one is fitted: for the score test of the smaller.

    The columns of `within` (f, g) are the directions in which the smaller map may move; none for the identity.
    """
    if within.shape[1] == 0:
        return info
    own = _inverse(within.T @ info.likelihood @ within, np.zeros((within.shape[1], 0)))
    return replace(info, inverse=info.inverse - within @ own @ within.T, rank=info.rank - within.shape[1])


def logit_covariances(design: Design, free: FloatArray) -> Iterator[tuple[slice, FloatArray]]:
    """Covariance (rows, K, K) of the logits of each row, class 0 held fixed, chunk by chunk."""
    K, q = design.shape
    full = design.push(design.push(free).reshape(K * q, -1).T).reshape(K, q, K, q)
    n, step = design.codes.size, max(16, 2**21 // (K * max(K, q * q)))
    flat = full.transpose(1, 3, 0, 2).reshape(q * q, K * K)
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        x = design.features[:, rows]
        if isinstance(design, FullDesign):
            products = (x[:, None, :] * x[None, :, :]).reshape(q * q, -1)
            yield rows, (products.T @ flat).reshape(-1, K, K)
        else:
            f = np.stack([x, np.ones_like(x)], axis=1)
            yield rows, np.einsum("kan,kalb,lbn->nkl", f, full, f, optimize=True)


def logit_standard_errors(probabilities: FloatArray, covariances: FloatArray) -> FloatArray:
    """Standard errors (rows, K) of the log odds of each class from covariances (rows, K, K) of the logits."""
    centre = np.einsum("nk,nkl->nl", probabilities, covariances)
    middle = np.einsum("nl,nl->n", centre, probabilities)
    variance = np.einsum("nkk->nk", covariances) - 2.0 * centre + middle[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Where a class has all the probability its log odds are infinite, and so is their standard error.
        return np.sqrt(np.maximum(variance, 0.0)) / (1.0 - probabilities)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanonicalForm:
    """Canonical form of a Dirichlet map: each column of W less its minimum, and the image of the uniform distribution.

    `A` (K, K) with limits `A_low`, `A_high`; `c` (K,) with limits; `log_c` (K,) centred log of c and its standard
    errors `log_c_se`. `A_se` is NaN in the minimum's row and where the minimum is not clear at the given level.
    """

    A: FloatArray
    A_se: FloatArray
    A_low: FloatArray
    A_high: FloatArray
    c: FloatArray
    c_low: FloatArray
    c_high: FloatArray
    log_c: FloatArray
    log_c_se: FloatArray


def canonical_form(W: FloatArray, b: FloatArray, cov: FloatArray, alpha: float) -> CanonicalForm:
    r"""Canonical form from W (K, K), b (K,) and their covariance (K, K + 1, K, K + 1), constant last.

    ``a_ij = max_k (w_ij - w_kj)`` gets the limits ``max_k (delta_k -+ z se_k)`` with z at level alpha / (K - 1).
    """
    K = len(b)
    z = -special.ndtri(0.5 * alpha / max(K - 1, 1))
    columns = np.einsum("ijkj->jik", cov[:, :K, :, :K])
    variance = np.einsum("jii->ji", columns)
    se = np.sqrt(np.maximum(variance[:, :, None] + variance[:, None, :] - 2.0 * columns, 0.0))
    delta = W.T[:, :, None] - W.T[:, None, :]
    A = W - W.min(axis=0)
    low = (delta - z * se).max(axis=2).T
    high = (delta + z * se).max(axis=2).T
    lowest = W.argmin(axis=0)
    A_se = np.take_along_axis(se, lowest[:, None, None], axis=2)[:, :, 0].T.copy()
    # The delta method holds where the minimum of the column is clear: its rivals lie above it at the same level.
    rivals = np.take_along_axis(delta - z * se, lowest[:, None, None], axis=2)[:, :, 0].copy()
    rivals[np.arange(K), lowest] = np.inf
    A_se[:, rivals.min(axis=1) <= 0.0] = np.nan
    A_se[lowest, np.arange(K)] = np.nan
    # c = softmax(W u + b) with u_j = ln(1 / K); centring removes the shift.
    x = np.append(np.full(K, -np.log(K)), 1.0)
    logits = W @ x[:-1] + b
    centring = np.eye(K) - 1.0 / K
    log_c = centring @ logits
    log_c_se = np.sqrt(np.maximum(np.diag(centring @ np.einsum("iajb,a,b->ij", cov, x, x) @ centring.T), 0.0))
    z1 = -special.ndtri(0.5 * alpha)
    c = special.softmax(logits)
    c_low, c_high = centred_limits(log_c, log_c_se, z1)
    return CanonicalForm(
        A=A,
        A_se=A_se,
        A_low=np.maximum(low, 0.0),
        A_high=high,
        c=c,
        c_low=c_low,
        c_high=c_high,
        log_c=log_c,
        log_c_se=log_c_se,
    )


def centred_limits(log_c: FloatArray, se: FloatArray, z: float) -> tuple[FloatArray, FloatArray]:
    """Limits of softmax(log_c)_k when its own centred log moves by z standard errors and the others make room.

    With log_c centred, moving entry k by d moves each other entry by ``-d / (K - 1)``, so that the sum stays 0.
    """
    K = len(log_c)
    limits = []
    for sign in (-1.0, 1.0):
        move = sign * z * se
        shifted = log_c[None, :] - move[:, None] / (K - 1) + np.diag(move * K / (K - 1))
        limits.append(np.diag(special.softmax(shifted, axis=1)).copy())
    return limits[0], limits[1]


def profile_limits(
    design: Design,
    penalty: QuadraticPenalty | None,
    theta: FloatArray,
    loading: FloatArray,
    alpha: float,
    info: Information,
) -> tuple[float, float]:
    """Profile-likelihood limits of ``loading @ free`` around the optimum `theta`, as changes from it.

    The limit is where the functional is extreme among the maps whose (penalised) log-likelihood is within half the
    chi-square quantile of the largest (Venzon and Moolgavkar 1988, https://doi.org/10.2307/2347496). Infinite where it
    runs away.
    """
    drop = 0.5 * float(special.chdtri(1, alpha))
    low, high = (_profile_limit(design, penalty, theta, loading, drop, info, sign) for sign in (-1.0, 1.0))
    return low, high


def _profile_limit(
    design: Design,
    penalty: QuadraticPenalty | None,
    theta: FloatArray,
    loading: FloatArray,
    drop: float,
    info: Information,
    sign: float,
) -> float:
    nobs = info.nobs
    best = nobs * evaluate(design, penalty, theta).objective
    current, free = theta, np.zeros(design.n_free)
    size = float(loading @ info.inverse @ loading)
    step = sign * np.sqrt(2.0 * drop / size) * (info.inverse @ loading)
    for _ in range(_PROFILE_STEPS):
        shrink = 1.0
        while nobs * evaluate(design, penalty, current + design.push(shrink * step)).objective - best > 4.0 * drop:
            shrink *= 0.5
        free = free + shrink * step
        current = theta + design.push(free)
        state = evaluate(design, penalty, current)
        matrix = nobs * design.information(state.probabilities) + info.penalty
        gradient = nobs * design.pull(state.slope)
        inverse = _inverse(matrix, info.lost)
        along, back = inverse @ loading, inverse @ gradient
        room = 2.0 * (best + drop - nobs * state.objective) + float(gradient @ back)
        step = sign * np.sqrt(max(room, 0.0) / float(loading @ along)) * along - back
        if float(step @ matrix @ step) <= _PROFILE_TOLERANCE:
            return float(loading @ (free + step))
    return sign * np.inf
