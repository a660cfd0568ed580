"""The binomial likelihood with fractional targets: optimum, information, profile limits, score statistic.

One model serves every binary map: ``logit q = X b + offset`` with targets ``t`` in [0, 1] and frequency
weights ``w``; its log-likelihood is ``sum w [t ln q + (1 - t) ln(1 - q)]``. No gamma terms are added for
fractional targets and nothing is rounded.

How it is solved
----------------
- Rows are read in blocks that stay in the processor's cache, so that a fit needs no array as long as the
  data. Above ``_LARGE`` rows a fit of a few thousand evenly spaced rows gives the starting point.
- Inside, columns are centred (when the design holds a constant column) and divided by their largest
  absolute value: the working coefficients are ``gamma = S b``. The gradient that is reported is that of the
  mean log-likelihood in these units.
- Newton's method with the exact Hessian and step halving. It stops when the gradient and the step are both
  small, and takes that last step as well.
- Separation. If a direction ``d`` exists along which no observation loses likelihood, then at *any* point
  the Newton step moves some ``eta_i`` by more than 1. (With ``m_i >= 0`` the gain in margin of row i along
  ``d``, ``r_i`` its absolute residual and ``h_i = r_i (1 - r_i)``: ``sum r_i m_i = score' d = d' H step =
  sum h_i m_i (+-x_i' step) <= max |x_i' step| sum h_i m_i < max |x_i' step| sum r_i m_i``.) So a short step
  proves that the optimum is finite, however extreme it is; and where the gradient vanishes while the step
  stays long, a small linear programme decides. No threshold on coefficients or probabilities is involved.
- Rank. Directions that the design does not determine keep the value they have in the starting point, 0 by
  default: the solution of minimum norm in the working coefficients. A constant score, beside an intercept,
  so gets the slope 0.
- Firth's penalty is ``0.5 ln det I(b)``; its gradient and Hessian follow from third and fourth moments of
  the columns, which the same pass over the data collects, so that this fit is a full Newton as well.

References
----------
Albert, A. and Anderson, J. A. (1984). On the existence of maximum likelihood estimates in logistic
regression models. Biometrika 71. https://doi.org/10.1093/biomet/71.1.1
Firth, D. (1993). Bias reduction of maximum likelihood estimates. Biometrika 80.
https://doi.org/10.1093/biomet/80.1.27
Heinze, G. and Schemper, M. (2002). A solution to the problem of separation in logistic regression.
Statistics in Medicine 21. https://doi.org/10.1002/sim.1047
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, TypeAlias

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog
from scipy.special import chdtri

from calstat._typing import BoolArray, FloatArray, IntArray
from calstat.exceptions import InputError

Design: TypeAlias = FloatArray | Sequence[FloatArray]
"""A matrix (n, k), or its k columns, each (n,): a list saves the copy that stacking would make."""
Penalty: TypeAlias = Literal["firth"] | None

_BLOCK = 8192  # rows per block: k + 10 arrays of 64 kB, which second-level caches hold
_LARGE = 65536  # from here on a subsample of _BLOCK rows pays for itself as a starting point
_FLAT = 1e-12  # a column whose spread is below this share of its size is constant up to rounding
_SINGULAR = 1e-13  # eigenvalues of the scaled Gram matrix below this share of the largest are rounding noise
_VANISHED = 1e-13  # a gradient this small beside a long step: overlaps below 1e-13 of the range are not seen
_SHORT = 1e-7  # a Newton step this short, relative to 1 + |gamma|, squares to rounding error
_MARGIN = 1e-9  # a margin above minus this (columns have size 1) satisfies the linear programme


@dataclass(frozen=True, slots=True, kw_only=True)
class LogisticFit:
    """What `fit_logistic` found.

    Attributes
    ----------
    params : (k,) coefficients of the columns as given.
    information : (k, k) ``sum w q (1 - q) x x'`` at `params`; the plain information under a penalty as well.
    covariance : (k, k) inverse of the information, taken in the working units, so that neither scale nor shift
        of a column harms it; NaN for what is not estimable, held, at its bound, or, under separation, for all.
    llf : log-likelihood at `params`, without the penalty.
    penalized_llf : `llf` plus the penalty; equal to `llf` without one.
    converged : the gradient test was met at a finite optimum.
    n_iter : passes over the data (starting point, Newton steps and halvings).
    gradient : largest absolute entry of the gradient of the mean log-likelihood in the working units, over
        the directions that were free.
    separated : the supremum lies at infinity; `params` are then the last, finite, iterate.
    rank : rank of the design.
    estimable : (k,) the design determines the coefficient.
    at_bound : (k,) the coefficient is held at its lower bound.
    penalty : None or "firth".
    """

    params: FloatArray
    information: FloatArray
    covariance: FloatArray
    llf: float
    penalized_llf: float
    converged: bool
    n_iter: int
    gradient: float
    separated: bool
    rank: int
    estimable: BoolArray
    at_bound: BoolArray
    penalty: Penalty


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """Data, working units and rank. `to_work` is S (k, k): gamma = S b; `to_params` is its inverse.

    `undetermined` (k, k - rank) spans the directions of gamma that change no prediction.
    """

    columns: tuple[FloatArray, ...]
    target: FloatArray
    weights: FloatArray | None
    offset: FloatArray | None
    center: FloatArray
    scale: FloatArray
    total: float
    to_work: FloatArray
    to_params: FloatArray
    undetermined: FloatArray
    penalty: Penalty


@dataclass(frozen=True, slots=True, kw_only=True)
class _Point:
    """The likelihood at one gamma.

    `value` is what is maximised, `gradient` (k,) and `curvature` (k, k) are its derivative and minus its
    Hessian; `information` (k, k) is that of the plain likelihood.
    """

    gamma: FloatArray
    value: float
    llf: float
    gradient: FloatArray
    curvature: FloatArray
    information: FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class _Optimum:
    """Where Newton stopped; `gradient` is the largest entry per unit of weight over free directions."""

    point: _Point
    converged: bool
    n_iter: int
    gradient: float
    separated: bool


def fit_logistic(
    design: Design,
    target: FloatArray,
    *,
    weights: FloatArray | None = None,
    offset: FloatArray | None = None,
    start: FloatArray | None = None,
    fixed: FloatArray | None = None,
    lower: FloatArray | None = None,
    penalty: Penalty = None,
    max_iter: int = 100,
    tol: float = 1e-10,
) -> LogisticFit:
    """Maximise the binomial likelihood, or Firth's penalised one.

    Parameters
    ----------
    design : (n, k) or k columns (n,).
    target : (n,) in [0, 1].
    weights : (n,) frequency weights >= 0; rows of weight 0 are as if absent.
    offset : (n,) added to the linear predictor.
    start : (k,) starting coefficients.
    fixed : (k,) values at which coefficients are held; NaN where they are free.
    lower : (k,) lower bounds, -inf where there is none. The constrained optimum is exact: the sets of active
        bounds are tried until the optimality conditions of the concave problem hold.
    penalty : None or "firth".
    max_iter : Newton steps.
    tol : bound on the gradient of the mean log-likelihood in working units.
    """
    problem = _problem(design, target, weights, offset, penalty)
    k = len(problem.columns)
    held, values = _held(problem, fixed)
    gamma = np.zeros(k) if start is None else problem.to_work @ np.asarray(start, dtype=np.float64)
    first = None if start is not None else _start(problem, held, values, tol)
    if first is not None:
        gamma = first.point.gamma
    bounds = np.full(k, -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
    best, at_bound = _maximize_bounded(problem, held, values, bounds, gamma, max_iter, tol)
    params = problem.to_params @ best.point.gamma
    if fixed is not None:
        params = np.where(np.isnan(fixed), params, fixed)
    params[at_bound] = bounds[at_bound]
    known = ~at_bound if fixed is None else ~at_bound & np.isnan(fixed)
    return LogisticFit(
        params=params,
        information=problem.to_work.T @ best.point.information @ problem.to_work,
        covariance=_model_covariance(problem, best, known),
        llf=best.point.llf,
        penalized_llf=best.point.value,
        converged=best.converged,
        n_iter=best.n_iter,
        gradient=best.gradient,
        separated=best.separated,
        rank=k - problem.undetermined.shape[1],
        estimable=_estimable(problem),
        at_bound=at_bound,
        penalty=penalty,
    )


def _model_covariance(problem: _Problem, best: _Optimum, known: BoolArray) -> FloatArray:
    """Inverse information of the `known` coefficients given the rest, NaN elsewhere."""
    inside = _free(problem, problem.to_params[~known])
    inner = inside.T @ best.point.information @ inside
    if best.separated or not inside.shape[1] or not np.linalg.eigvalsh(inner)[0] > 0:
        return np.full((known.size, known.size), np.nan)
    inside = problem.to_params @ inside
    cov = inside @ np.linalg.inv(inner) @ inside.T
    unknown = ~known | ~_estimable(problem)
    cov[unknown], cov[:, unknown] = np.nan, np.nan
    return cov


def _estimable(problem: _Problem) -> BoolArray:
    """Coefficients, (k,), to which no undetermined direction contributes."""
    blind = np.abs(problem.to_params @ problem.undetermined).max(axis=1, initial=0.0)
    return np.asarray(blind <= 1e-8 * np.abs(problem.to_params).max(axis=1))


def score_rows(
    design: Design, target: FloatArray, params: FloatArray, *, offset: FloatArray | None = None
) -> FloatArray:
    """Score ``(t - q) x`` of one copy of each row, (n, k): what a sandwich covariance needs."""
    columns = _columns(design)
    eta = sum((b * x for b, x in zip(params, columns, strict=True)), 0.0 if offset is None else offset)
    residual = _residual(np.asarray(eta, dtype=np.float64), np.asarray(target, dtype=np.float64))[0]
    return np.stack([residual * x for x in columns], axis=1)


def loglikelihood(
    design: Design,
    target: FloatArray,
    params: FloatArray,
    *,
    weights: FloatArray | None = None,
    offset: FloatArray | None = None,
) -> float:
    """Log-likelihood at given coefficients."""
    problem = _problem(design, target, weights, offset, None)
    return _evaluate(problem, problem.to_work @ params).llf


def score_statistic(
    design: Design,
    target: FloatArray,
    params0: FloatArray,
    *,
    weights: FloatArray | None = None,
    offset: FloatArray | None = None,
) -> tuple[float, int]:
    """Rao's score statistic of H0: ``b = params0``; entries NaN are free and are fitted under H0.

    ``U' I^{-1} U`` with score and information at the null point, and its degrees of freedom: the number of
    hypotheses that the design can tell apart.
    """
    params0 = np.asarray(params0, dtype=np.float64)
    problem = _problem(design, target, weights, offset, None)
    held, values = _held(problem, params0)
    gamma = np.zeros(params0.size)
    point = _maximize(problem, held, values, gamma, 100, 1e-10).point
    inside = _free(problem, np.empty((0, params0.size)))
    score = inside.T @ point.gradient
    statistic = float(score @ np.linalg.pinv(inside.T @ point.information @ inside, hermitian=True) @ score)
    return statistic, inside.shape[1] - _free(problem, held).shape[1]


def profile_interval(
    design: Design,
    target: FloatArray,
    index: int | FloatArray,
    fit: LogisticFit,
    alpha: float = 0.05,
    *,
    weights: FloatArray | None = None,
    offset: FloatArray | None = None,
    lower: FloatArray | None = None,
) -> tuple[float, float]:
    """Profile-likelihood limits of one coefficient, or of ``r' b`` if `index` is a vector r (k,).

    The limits are the values at which twice the fall of the (penalised) log-likelihood, maximised over all
    else, reaches the chi-square quantile of 1 degree of freedom. A side on which it never gets there, as
    under separation, is infinite. Under bounds no limit passes the bound of the coefficient itself. What is
    not estimable gets NaN. `fit` must be the fit of the same data (its penalty is taken over).
    """
    problem = _problem(design, target, weights, offset, fit.penalty)
    k = len(problem.columns)
    contrast = np.eye(k)[index] if isinstance(index, int | np.integer) else np.asarray(index, np.float64)
    row = contrast @ problem.to_params
    length = float(np.linalg.norm(row))
    row = row / length
    bounds = np.full(k, -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
    if np.linalg.norm(row @ problem.undetermined) > 1e-8:
        return np.nan, np.nan
    limits: list[float] = []
    for side in (-1.0, 1.0):
        if fit.separated and _recession(problem, np.eye(k), bounds, side * row) is not None:
            limits.append(float(side * np.inf))
        else:
            limits.append(length * _profile_limit(problem, row, side, bounds, fit, float(chdtri(1, alpha))))
    return limits[0], limits[1]


def _profile_limit(
    problem: _Problem, row: FloatArray, side: float, bounds: FloatArray, fit: LogisticFit, level: float
) -> float:
    """One limit: safeguarded Newton on the signed root of the fall, which is nearly linear."""
    gamma = problem.to_work @ fit.params
    center = float(row @ gamma)
    floor = _floor(problem, row, bounds) if side < 0 else -np.inf
    top, goal = fit.penalized_llf, np.sqrt(level)
    information = problem.to_work.T @ _evaluate(problem, gamma).curvature @ problem.to_work
    contrast = row @ problem.to_work
    spread = float(np.sqrt(abs(contrast @ np.linalg.pinv(information, hermitian=True) @ contrast)))
    value = max(center + side * goal * (spread if spread > 0 else 1.0), floor)
    inner, outer = center, side * np.inf
    for _ in range(100):
        best, _ = _maximize_bounded(problem, row[None], np.array([value]), bounds, gamma, 100, 1e-10)
        gamma = best.point.gamma
        root = np.sqrt(max(2.0 * (top - best.point.value), 0.0))
        if root < goal:
            inner = value
            if value <= floor:
                return floor
        else:
            outer = value
        slope = -float(row @ best.point.gradient) / float(row @ row) / max(root, 1e-3)
        step = (goal - root) / slope if slope * side > 0 else side * np.inf
        proposal = value + step
        if abs(step) <= 1e-11 * (1.0 + abs(value)):
            return max(proposal, floor)
        if not min(inner, outer) < proposal < max(inner, outer) or abs(step) > 4 * abs(value - center):
            far = inner + 2.0 * (inner - center) + side * spread
            proposal = 0.5 * (inner + outer) if np.isfinite(outer) else far
        value = max(proposal, floor)
    return value if np.isfinite(outer) else float(side * np.inf)


def _floor(problem: _Problem, row: FloatArray, bounds: FloatArray) -> float:
    """Lower bound of the coefficient that `row` picks out; -inf for contrasts of several."""
    contrast = row @ problem.to_work
    picked = np.flatnonzero(np.abs(contrast) > 1e-12 * np.abs(contrast).max())
    if picked.size != 1 or contrast[picked[0]] < 0:
        return -np.inf
    return float(contrast[picked[0]] * bounds[picked[0]])


def _columns(design: Design) -> tuple[FloatArray, ...]:
    """Columns of the design, as float64 views where possible."""
    if isinstance(design, np.ndarray):
        design = list(np.asarray(design, dtype=np.float64).T)
    return tuple(np.asarray(column, dtype=np.float64) for column in design)


def _problem(
    design: Design,
    target: FloatArray,
    weights: FloatArray | None,
    offset: FloatArray | None,
    penalty: Penalty,
) -> _Problem:
    """Drop rows of weight 0, choose the working units, find the rank."""
    columns = _columns(design)
    target = np.asarray(target, dtype=np.float64)
    if weights is not None:
        weights = np.asarray(weights, dtype=np.float64)
        if not weights.all():
            present = weights > 0
            columns = tuple(column[present] for column in columns)
            target, weights = target[present], weights[present]
            offset = None if offset is None else np.asarray(offset)[present]
    if target.size == 0:
        raise InputError("`target` must hold at least one row with positive weight; it holds none.")
    total = float(target.size if weights is None else weights.sum())
    low = np.array([column.min() for column in columns])
    high = np.array([column.max() for column in columns])
    size = np.maximum(np.abs(low), np.abs(high))
    constant = np.flatnonzero((low == high) & (size > 0))
    k = len(columns)
    center = np.zeros(k)
    to_work = np.eye(k)
    if constant.size:
        mean = [float(c.mean() if weights is None else c @ weights / total) for c in columns]
        center = np.clip(mean, low, high)
        center[constant[0]] = 0.0
        to_work[constant[0]] = center
        to_work[constant[0], constant[0]] = low[constant[0]]
    scale = np.maximum(high - center, center - low)
    scale = np.where(scale > _FLAT * size, scale, np.where(size > 0, size, 1.0))
    rest = np.setdiff1d(np.arange(k), constant[:1])
    to_work[rest, rest] = scale[rest]
    if constant.size:
        scale[constant[0]] = low[constant[0]]
    problem = _Problem(
        columns=columns,
        target=target,
        weights=weights,
        offset=None if offset is None else np.asarray(offset, dtype=np.float64),
        center=center,
        scale=scale,
        total=total,
        to_work=to_work,
        to_params=np.asarray(np.linalg.inv(to_work), dtype=np.float64),
        undetermined=np.empty((k, 0)),
        penalty=penalty,
    )
    values, vectors = np.linalg.eigh(_gram(problem))
    return replace(problem, undetermined=vectors[:, values <= _SINGULAR * max(values[-1], 1e-300)])


def _blocks(
    problem: _Problem,
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]]:
    """Blocks of rows: columns in working units (k, m), targets, weights, offset."""
    weights, offset = problem.weights, problem.offset
    for begin in range(0, problem.target.size, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        target = problem.target[rows]
        z = np.empty((len(problem.columns), target.size))
        for j, column in enumerate(problem.columns):
            np.subtract(column[rows], problem.center[j], out=z[j])
            z[j] /= problem.scale[j]
        yield (
            z,
            target,
            None if weights is None else weights[rows],
            None if offset is None else offset[rows],
        )


def _gram(problem: _Problem) -> FloatArray:
    """Unweighted cross products of the working columns, (k, k)."""
    k = len(problem.columns)
    gram = np.zeros((k, k))
    for z, _, _, _ in _blocks(problem):
        gram += z @ z.T
    return gram


def _residual(eta: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Residual t - q, variance q (1 - q), and exp(-|eta|), all without cancellation in the tails."""
    decay = np.abs(eta)
    np.negative(decay, out=decay)
    np.exp(decay, out=decay)
    larger = decay + 1.0
    np.reciprocal(larger, out=larger)
    smaller = decay * larger
    larger *= smaller
    residual = target - ~np.signbit(eta)
    residual += np.copysign(smaller, eta, out=smaller)
    return residual, larger, decay


def _evaluate(problem: _Problem, gamma: FloatArray) -> _Point:
    """Value, gradient and curvature in one pass over the data."""
    k = gamma.size
    firth = problem.penalty == "firth"
    left, right = np.triu_indices(k)
    llf = 0.0
    gradient, information = np.zeros(k), np.zeros((k, k))
    third, fourth = np.zeros((left.size, k)), np.zeros((left.size, left.size))
    for z, target, weights, offset in _blocks(problem):
        eta = gamma @ z
        if offset is not None:
            eta += offset
        residual, variance, decay = _residual(eta, target)
        gain = np.log1p(decay)
        np.subtract(target * eta - np.maximum(eta, 0.0), gain, out=gain)
        if weights is not None:
            residual *= weights
            variance_w = variance * weights
            gain *= weights
        else:
            variance_w = variance
        llf += float(gain.sum())
        gradient += z @ residual
        information += (z * variance_w) @ z.T
        if firth:
            pairs = z[left] * z[right]
            # -tanh(eta / 2) = 1 - 2q
            third += (pairs * (variance_w * -np.tanh(0.5 * eta))) @ z.T
            fourth += (pairs * (variance_w * (1.0 - 6.0 * variance))) @ pairs.T
    if not firth:
        return _Point(
            gamma=gamma, value=llf, llf=llf, gradient=gradient, curvature=information, information=information
        )
    bonus, slope, bend = _jeffreys(problem, information, third, fourth)
    return _Point(
        gamma=gamma,
        value=llf + bonus,
        llf=llf,
        gradient=gradient + slope,
        curvature=information - bend,
        information=information,
    )


def _jeffreys(
    problem: _Problem, information: FloatArray, third: FloatArray, fourth: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Half the log determinant of the information in the coefficients, its gradient and Hessian in gamma.

    `third` and `fourth` hold the sums of the first and second derivative of w q (1 - q) times products of
    three and four columns, the pairs of columns in upper-triangle order. Over directions the design does not
    determine the determinant is left out.
    """
    k = information.shape[0]
    left, right = np.triu_indices(k)
    place = np.empty((k, k), dtype=np.intp)
    place[left, right] = place[right, left] = np.arange(left.size)
    inside = _free(problem, np.empty((0, k)))
    inner = inside.T @ information @ inside
    sign, logdet = np.linalg.slogdet(inner)
    if sign <= 0 or not np.isfinite(logdet):
        return -np.inf, np.zeros(k), np.zeros((k, k))
    inverse = inside @ np.linalg.inv(inner) @ inside.T
    cube = third[place]  # (k, k, k)
    slope = 0.5 * np.einsum("ab,abc->c", inverse, cube)
    turned = np.einsum("ab,bdc->adc", inverse, cube)
    bend = np.einsum("ab,abcd->cd", inverse, fourth[place][:, :, place])
    bend -= np.einsum("abc,bad->cd", turned, turned)
    change = float(np.log(abs(np.linalg.det(problem.to_work)))) if inside.shape[1] == k else 0.0
    return 0.5 * float(logdet) + change, slope, 0.5 * bend


def _free(problem: _Problem, held: FloatArray) -> FloatArray:
    """Orthonormal basis (k, f) of the directions that are determined by the design and not held."""
    rows = np.vstack([held, problem.undetermined.T])
    k = len(problem.columns)
    return null_space(rows) if rows.shape[0] else np.eye(k)


def _held(problem: _Problem, fixed: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Rows and values of the linear constraints ``rows @ gamma = values``."""
    k = len(problem.columns)
    if fixed is None:
        return np.empty((0, k)), np.empty(0)
    which = ~np.isnan(fixed)
    return _unit_rows(problem.to_params[which], np.asarray(fixed, dtype=np.float64)[which])


def _start(problem: _Problem, held: FloatArray, values: FloatArray, tol: float) -> _Optimum | None:
    """Fit of evenly spaced rows, when there are many; None if it did not converge."""
    n = problem.target.size
    if n < _LARGE:
        return None
    pick = slice(None, None, n // _BLOCK)
    part = replace(
        problem,
        columns=tuple(column[pick] for column in problem.columns),
        target=problem.target[pick],
        weights=None if problem.weights is None else problem.weights[pick],
        offset=None if problem.offset is None else problem.offset[pick],
        total=float(problem.target[pick].size if problem.weights is None else problem.weights[pick].sum()),
    )
    first = _maximize(part, held, values, np.zeros(len(problem.columns)), 25, max(tol, 1e-6))
    return first if first.converged else None


def _maximize_bounded(
    problem: _Problem,
    held: FloatArray,
    values: FloatArray,
    bounds: FloatArray,
    gamma: FloatArray,
    max_iter: int,
    tol: float,
) -> tuple[_Optimum, BoolArray]:
    """Optimum under lower bounds: the set of active bounds that satisfies the optimality conditions.

    The problem is concave, so the first set that satisfies them is the answer. If none does, the supremum
    lies at infinity within the bounds, and the best feasible fit found is returned as it stands.
    """
    k = gamma.size
    bounded = np.flatnonzero(np.isfinite(bounds))
    fallback: tuple[_Optimum, BoolArray] | None = None
    passes = 0
    for active in (list(set_) for size in range(bounded.size + 1) for set_ in combinations(bounded, size)):
        rows, aims = _unit_rows(np.vstack([held, problem.to_params[active]]), np.concatenate([values, bounds[active]]))
        if rows.shape[0] and np.linalg.matrix_rank(rows) < rows.shape[0]:
            continue  # the bound is on a coefficient that is held already
        best = _maximize(problem, rows, aims, gamma, max_iter, tol)
        at_bound = np.isin(np.arange(k), active)
        if not bounded.size:
            return best, at_bound
        passes += best.n_iter
        best = replace(best, n_iter=passes)
        params = problem.to_params @ best.point.gamma
        feasible = bool(np.all(at_bound | (params >= bounds - 1e-12 * (1.0 + np.abs(bounds)))))
        # above 0, the likelihood pulls away from the bound
        pull = np.linalg.lstsq(rows.T, best.point.gradient, rcond=None)[0][held.shape[0] :] / problem.total
        if feasible and best.converged and np.all(pull <= 10 * tol):
            return best, at_bound
        if feasible and (fallback is None or best.point.value > fallback[0].point.value):
            fallback = best, at_bound
    if fallback is None:
        raise InputError("`lower` and `fixed` contradict each other: no coefficients satisfy both.")
    ray = _recession(problem, _null(held, k), bounds, None)
    return replace(fallback[0], separated=ray is not None, converged=False), fallback[1]


def _unit_rows(rows: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Constraints scaled to rows of length 1."""
    norms = np.linalg.norm(rows, axis=1)
    return rows / norms[:, None], values / norms


def _null(held: FloatArray, k: int) -> FloatArray:
    """Orthonormal basis of the directions that are not held."""
    return null_space(held) if held.shape[0] else np.eye(k)


def _maximize(
    problem: _Problem, held: FloatArray, values: FloatArray, gamma: FloatArray, max_iter: int, tol: float
) -> _Optimum:
    """Newton's method with step halving from `gamma`, moved first onto ``held @ gamma = values``."""
    if held.shape[0]:
        gamma = gamma + np.linalg.lstsq(held, values - held @ gamma, rcond=None)[0]
    basis = _free(problem, held)
    point = _evaluate(problem, gamma)
    if basis.shape[1] == 0:
        return _Optimum(point=point, converged=True, n_iter=1, gradient=0.0, separated=False)
    unbounded = np.full(gamma.size, -np.inf)
    reach = np.sqrt(basis.shape[0])  # |x_i' step| <= reach * |step|, since working columns are within 1
    passes, length, separated, finite = 1, np.inf, False, problem.penalty is not None
    for _ in range(max_iter):
        slope = basis.T @ point.gradient
        step = basis @ _newton_step(basis.T @ point.curvature @ basis, slope)
        before, length = length, float(np.linalg.norm(step))
        flat = float(np.abs(slope).max()) <= tol * problem.total
        if flat and reach * length < 1.0:
            settled = length <= _SHORT * (1.0 + float(np.linalg.norm(point.gamma)))
            # not shrinking any more: the step is the rounding error of an ill-conditioned design
            if settled or length >= 0.5 * before:
                return _finish(problem, basis, _evaluate(problem, point.gamma + step), passes + 1)
        elif not finite and float(np.abs(slope).max()) <= _VANISHED * problem.total:
            separated = _recession(problem, basis, unbounded, None) is not None
            finite = not separated
        moved, tried = _line_search(problem, point, step)
        passes += tried
        if separated or moved is None:
            break
        point = moved
    if not (separated or finite):
        separated = _recession(problem, basis, unbounded, None) is not None
    return replace(_finish(problem, basis, point, passes), converged=False, separated=separated)


def _finish(problem: _Problem, basis: FloatArray, point: _Point, passes: int) -> _Optimum:
    """Describe the optimum at `point`."""
    gradient = float(np.abs(basis.T @ point.gradient).max()) / problem.total
    return _Optimum(point=point, converged=True, n_iter=passes, gradient=gradient, separated=False)


def _newton_step(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """Ascent step: the curvature's eigenvalues are made positive, and kept off zero by rounding error."""
    values, vectors = np.linalg.eigh(curvature)
    largest = float(np.abs(values).max())
    values = np.maximum(np.abs(values), max(largest * np.finfo(np.float64).eps, 1e-100))
    return np.asarray(vectors @ ((vectors.T @ slope) / values))


def _line_search(problem: _Problem, point: _Point, step: FloatArray) -> tuple[_Point | None, int]:
    """First of the halved steps that raises the value, up to rounding error of the sum."""
    rise = float(step @ point.gradient)
    noise = 1e-13 * (1.0 + abs(point.value))
    # far outside the data's range every variance underflows and the step knows no length
    share = min(1.0, 1e3 * (1.0 + float(np.linalg.norm(point.gamma))) / float(np.linalg.norm(step)))
    for tried in range(1, 60):
        moved = _evaluate(problem, point.gamma + share * step)
        if moved.value >= point.value + 1e-4 * share * rise - noise:
            return moved, tried
        share *= 0.5
    return None, 59


def _recession(problem: _Problem, basis: FloatArray, bounds: FloatArray, goal: FloatArray | None) -> FloatArray | None:
    """A direction in the span of `basis` along which no row loses likelihood, or None.

    At least one row must gain; or, with `goal` (k,), ``goal @ direction`` must be positive. Coefficients with
    a finite lower bound must not fall. Linear programme over a working set of rows, to which the rows that
    its solution violates are added until there are none.
    """
    cone = -(problem.to_params[np.isfinite(bounds)])
    cone /= np.maximum(np.abs(cone).max(axis=1, keepdims=True, initial=0.0), 1e-300)
    ceiling = [cone @ basis]
    total = np.zeros(basis.shape[0])
    stride = max(1, problem.target.size // 500)
    for z, target, _, _ in _blocks(problem):
        total += z @ _sides(target)
        ceiling.append(_losses(z, target, np.arange(0, target.size, stride)) @ basis)
    aim = basis.T @ (total if goal is None else goal)
    aim = aim / max(float(np.abs(aim).max()), 1e-300)
    while True:
        rows = np.vstack(ceiling)
        answer = linprog(-aim, A_ub=rows, b_ub=np.zeros(rows.shape[0]), bounds=(-1.0, 1.0), method="highs")
        if answer.x is None or -answer.fun <= _MARGIN:
            return None
        direction = basis @ answer.x
        violated, best = [], 0.0
        for z, target, _, _ in _blocks(problem):
            gain = direction @ z
            loss = np.where((target > 0) & (target < 1), np.abs(gain), -gain * _sides(target))
            best = max(best, float(-loss.min()))
            worst = np.argsort(loss)[-20:]
            violated.append(_losses(z, target, worst[loss[worst] > 1e2 * _MARGIN]) @ basis)
        if not sum(rows.shape[0] for rows in violated):
            return direction if goal is not None or best > 1e4 * _MARGIN else None
        ceiling += violated


def _sides(target: FloatArray) -> FloatArray:
    """+1 for targets of 1, -1 for 0, and 0 for targets between, which lose on both sides."""
    return np.where(target == 1.0, 1.0, np.where(target == 0.0, -1.0, 0.0))


def _losses(z: FloatArray, target: FloatArray, rows: IntArray) -> FloatArray:
    """Rows (m, k) whose product with a direction must not be positive."""
    picked, side = z[:, rows].T, _sides(target[rows])
    mixed = picked[side == 0.0]
    return np.vstack([-picked[side != 0.0] * side[side != 0.0, None], mixed, -mixed])
