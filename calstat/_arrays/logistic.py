"""The binomial likelihood with fractional targets: optimum, information, profile limits, score statistic.

One model serves every binary map: ``logit q = X b + offset`` with targets ``t`` in [0, 1] and frequency
weights ``w``; its log-likelihood is ``sum w [t ln q + (1 - t) ln(1 - q)]``. No gamma terms are added for
fractional targets and nothing is rounded.

How it is solved
----------------
- Above ``_LARGE`` rows a fit of some thirty thousand evenly spaced rows gives the starting point.
- Inside, columns are centred and scaled (see `_binomial`); the gradient that is reported is that of the
  mean log-likelihood in these working units.
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
- Firth's penalised likelihood may have several maxima when rows have extreme leverage. Newton starts from several
  points, and the highest maximum is returned. Its profile limits follow the maxima continuously from there.

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

from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.linalg import null_space
from scipy.special import chdtri

from calstat._arrays.binomial import (
    BLOCK,
    Design,
    Penalty,
    Point,
    Problem,
    columns_of,
    evaluate,
    free_basis,
    make_problem,
    recession,
    residual_parts,
)
from calstat._typing import BoolArray, FloatArray
from calstat.exceptions import InputError

_FIRST = 4 * BLOCK  # rows of the subsample whose fit is the starting point ...
_LARGE = 4 * _FIRST  # ... when there are this many
_VANISHED = 1e-13  # a gradient this small beside a long step: overlaps below 1e-13 of the range are not seen
_SHORT = 1e-7  # a Newton step this short, relative to 1 + |gamma|, squares to rounding error


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
class _Optimum:
    """Where Newton stopped; `gradient` is the largest entry per unit of weight over free directions."""

    point: Point
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
    problem = make_problem(design, target, weights, offset, penalty)
    k = len(problem.columns)
    held, values = _held(problem, fixed)
    gamma = np.zeros(k) if start is None else problem.to_work @ np.asarray(start, dtype=np.float64)
    if start is None:
        gamma = _start(problem, held, values)
    bounds = np.full(k, -np.inf) if lower is None else np.asarray(lower, dtype=np.float64)
    if penalty is not None:
        gamma = _penalized_start(problem, held, values, gamma)
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


def _model_covariance(problem: Problem, best: _Optimum, known: BoolArray) -> FloatArray:
    """Inverse information of the `known` coefficients given the rest, NaN elsewhere."""
    inside = free_basis(problem, problem.to_params[~known])
    inner = inside.T @ best.point.information @ inside
    if best.separated or not inside.shape[1] or not np.linalg.eigvalsh(inner)[0] > 0:
        return np.full((known.size, known.size), np.nan)
    inside = problem.to_params @ inside
    with np.errstate(over="ignore", invalid="ignore"):  # far out, the information is as small as numbers get
        cov = inside @ np.linalg.inv(inner) @ inside.T
    if not np.isfinite(cov).all():
        return np.full(cov.shape, np.nan)
    unknown = ~known | ~_estimable(problem)
    cov[unknown], cov[:, unknown] = np.nan, np.nan
    return cov


def _estimable(problem: Problem) -> BoolArray:
    """Coefficients, (k,), to which no undetermined direction contributes."""
    blind = np.abs(problem.to_params @ problem.undetermined).max(axis=1, initial=0.0)
    return np.asarray(blind <= 1e-8 * np.abs(problem.to_params).max(axis=1))


def score_rows(
    design: Design, target: FloatArray, params: FloatArray, *, offset: FloatArray | None = None
) -> FloatArray:
    """Score ``(t - q) x`` of one copy of each row, (n, k): what a sandwich covariance needs."""
    columns = columns_of(design)
    eta = sum((b * x for b, x in zip(params, columns, strict=True)), 0.0 if offset is None else offset)
    residual = residual_parts(np.asarray(eta, dtype=np.float64), np.asarray(target, dtype=np.float64))[0]
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
    columns, target = columns_of(design), np.asarray(target, dtype=np.float64)
    llf = 0.0
    for begin in range(0, target.size, BLOCK):
        rows = slice(begin, begin + BLOCK)
        eta = np.zeros(target[rows].size) if offset is None else offset[rows].astype(np.float64)
        for b, x in zip(params, columns, strict=True):
            eta += b * x[rows]
        gain = target[rows] * eta - np.maximum(eta, 0.0) - np.log1p(np.exp(-np.abs(eta)))
        llf += float(gain.sum() if weights is None else gain @ weights[rows])
    return llf


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
    problem = make_problem(design, target, weights, offset, None)
    held, values = _held(problem, params0)
    gamma = np.zeros(params0.size)
    point = _maximize(problem, held, values, gamma, 100, 1e-10).point
    inside = free_basis(problem, np.empty((0, params0.size)))
    score = inside.T @ point.gradient
    statistic = float(score @ np.linalg.pinv(inside.T @ point.information @ inside, hermitian=True) @ score)
    return statistic, inside.shape[1] - free_basis(problem, held).shape[1]


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
    problem = make_problem(design, target, weights, offset, fit.penalty)
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
        floor = _floor(contrast, bounds) / length if side < 0 else -np.inf
        if fit.separated and recession(problem, np.eye(k), bounds, side * row) is not None:
            limits.append(float(side * np.inf))
        else:
            limits.append(length * _profile_limit(problem, row, side, bounds, floor, fit, float(chdtri(1, alpha))))
    return limits[0], limits[1]


def _profile_limit(
    problem: Problem,
    row: FloatArray,
    side: float,
    bounds: FloatArray,
    floor: float,
    fit: LogisticFit,
    level: float,
) -> float:
    """One limit, not below `floor`: safeguarded Newton on the root of the fall, which is nearly linear."""
    gamma = problem.to_work @ fit.params
    center = float(row @ gamma)
    goal = float(np.sqrt(level))
    spread = float(np.sqrt(abs(row @ np.linalg.pinv(evaluate(problem, gamma).curvature, hermitian=True) @ row)))
    spread = min(spread, 1.0 + abs(center)) if spread > 0 else 1.0
    value = max(center + side * goal * spread, floor)
    inner, outer = center, float(side * np.inf)
    for _ in range(200):
        best, at_bound = _maximize_bounded(problem, row[None], np.array([value]), bounds, gamma, 100, 1e-10)
        gamma = best.point.gamma
        root = float(np.sqrt(max(2.0 * (fit.penalized_llf - best.point.value), 0.0)))
        if root >= goal:
            outer = value
        elif value <= floor:
            return floor
        else:
            inner = value
        active = np.vstack([row, problem.to_params[at_bound]])
        slope = -float(np.linalg.lstsq(active.T, best.point.gradient, rcond=None)[0][0]) / max(root, 1e-3)
        step = (goal - root) / slope if slope * side > 0 else float(side * np.inf)
        if abs(step) <= 1e-12 * (1.0 + abs(value)):
            return max(value + step, floor)
        if not min(inner, outer) < value + step < max(inner, outer) or abs(step) > 4 * abs(value - center):
            outside = inner + 2.0 * (inner - center) + side * spread
            step = (0.5 * (inner + outer) if np.isfinite(outer) else outside) - value
        value = max(value + step, floor)
    return value if np.isfinite(outer) else float(side * np.inf)


def _floor(contrast: FloatArray, bounds: FloatArray) -> float:
    """Lower bound of ``contrast' b`` if that is one coefficient, else -inf."""
    picked = np.flatnonzero(contrast)
    return float(contrast[picked[0]] * bounds[picked[0]]) if picked.size == 1 and contrast[picked[0]] > 0 else -np.inf


def _held(problem: Problem, fixed: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Rows and values of the linear constraints ``rows @ gamma = values``."""
    k = len(problem.columns)
    if fixed is None:
        return np.empty((0, k)), np.empty(0)
    which = ~np.isnan(fixed)
    return _unit_rows(problem.to_params[which], np.asarray(fixed, dtype=np.float64)[which])


def _subsample(problem: Problem) -> Problem:
    """Evenly spaced rows when there are many, else all."""
    n = problem.target.size
    if n < _LARGE:
        return problem
    pick = slice(None, None, n // _FIRST)
    weights = None if problem.weights is None else problem.weights[pick]
    target = problem.target[pick]
    return replace(
        problem,
        columns=tuple(column[pick] for column in problem.columns),
        target=target,
        weights=weights,
        offset=None if problem.offset is None else problem.offset[pick],
        total=float(target.size if weights is None else weights.sum()),
    )


def _start(problem: Problem, held: FloatArray, values: FloatArray) -> FloatArray:
    """Estimate (k,) of a subsample when there are many rows; 0 when there are not, or it did not converge."""
    zero = np.zeros(len(problem.columns))
    part = _subsample(replace(problem, penalty=None))
    if part.target.size == problem.target.size:
        return zero
    first = _maximize(part, held, values, zero, 25, 1e-6)
    return first.point.gamma if first.converged else zero


def _penalized_start(problem: Problem, held: FloatArray, values: FloatArray, gamma: FloatArray) -> FloatArray:
    """Highest maximum (k,) of Firth's objective, of a subsample when there are many rows.

    With rows of extreme leverage, such as probabilities clipped at 1e-15, there may be several, at which single
    coefficients differ in size. Newton starts at `gamma`, at the unpenalised optimum, and at the best points at which
    one coefficient is an eighth or a sixty-fourth of it.
    """
    part = _subsample(problem)
    last = _maximize(replace(part, penalty=None), held, values, gamma, 40, 1e-6).point.gamma
    starts = [gamma, last]
    for row in problem.to_params:
        rows, aims = _unit_rows(np.vstack([held, row]), np.append(values, row @ last))
        if np.linalg.matrix_rank(rows) < rows.shape[0]:
            continue
        for share in (1 / 8, 1 / 64):
            aim = np.append(aims[:-1], share * aims[-1])
            starts.append(_maximize(part, rows, aim, last, 30, 1e-3).point.gamma)
    found = [_maximize(part, held, values, start, 50, 1e-6).point for start in starts]
    return max(found, key=lambda point: point.value).gamma


def _maximize_bounded(
    problem: Problem,
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
        rounding = 1e-12 * (1.0 + np.abs(problem.to_params) @ np.abs(best.point.gamma))
        feasible = bool(np.all(at_bound | (params >= bounds - rounding)))
        # above 0, the likelihood pulls away from the bound
        pull = np.linalg.lstsq(rows.T, best.point.gradient, rcond=None)[0][held.shape[0] :] / problem.total
        if feasible and best.converged and np.all(pull <= 10 * tol):
            return best, at_bound
        if feasible and (fallback is None or best.point.value > fallback[0].point.value):
            fallback = best, at_bound
    if fallback is None:
        raise InputError("`lower` and `fixed` contradict each other: no coefficients satisfy both.")
    separated = problem.penalty is None and recession(problem, _null(held, k), bounds, None) is not None
    return replace(fallback[0], separated=separated, converged=False), fallback[1]


def _unit_rows(rows: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Constraints scaled to rows of length 1."""
    norms = np.linalg.norm(rows, axis=1)
    return rows / norms[:, None], values / norms


def _null(held: FloatArray, k: int) -> FloatArray:
    """Orthonormal basis of the directions that are not held."""
    return null_space(held) if held.shape[0] else np.eye(k)


def _maximize(
    problem: Problem, held: FloatArray, values: FloatArray, gamma: FloatArray, max_iter: int, tol: float
) -> _Optimum:
    """Newton's method with step halving from `gamma`, moved first onto ``held @ gamma = values``."""
    if held.shape[0]:
        gamma = gamma + np.linalg.lstsq(held, values - held @ gamma, rcond=None)[0]
    basis = free_basis(problem, held)
    point = evaluate(problem, gamma)
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
                return _finish(problem, basis, evaluate(problem, point.gamma + step), passes + 1)
        elif not finite and float(np.abs(slope).max()) <= _VANISHED * problem.total:
            separated = recession(problem, basis, unbounded, None) is not None
            finite = not separated
        moved, tried = _line_search(problem, point, step)
        passes += tried
        if separated or moved is None:
            break
        point = moved
    if not (separated or finite):
        separated = recession(problem, basis, unbounded, None) is not None
    return replace(_finish(problem, basis, point, passes), converged=False, separated=separated)


def _finish(problem: Problem, basis: FloatArray, point: Point, passes: int) -> _Optimum:
    """Describe the optimum at `point`."""
    gradient = float(np.abs(basis.T @ point.gradient).max()) / problem.total
    return _Optimum(point=point, converged=True, n_iter=passes, gradient=gradient, separated=False)


def _newton_step(curvature: FloatArray, slope: FloatArray) -> FloatArray:
    """Ascent step: the curvature's eigenvalues are made positive, and kept off zero by rounding error."""
    values, vectors = np.linalg.eigh(curvature)
    largest = float(np.abs(values).max())
    values = np.maximum(np.abs(values), max(largest * np.finfo(np.float64).eps, 1e-100))
    return np.asarray(vectors @ ((vectors.T @ slope) / values))


def _line_search(problem: Problem, point: Point, step: FloatArray) -> tuple[Point | None, int]:
    """First of the halved steps that raises the value, up to rounding error of the sum."""
    rise = float(step @ point.gradient)
    noise = 1e-13 * (1.0 + abs(point.value))
    # far outside the data's range every variance underflows and the step knows no length
    share = min(1.0, 1e3 * (1.0 + float(np.linalg.norm(point.gamma))) / float(np.linalg.norm(step)))
    for tried in range(1, 60):
        moved = evaluate(problem, point.gamma + share * step)
        if moved.value >= point.value + 1e-4 * share * rise - noise:
            return moved, tried
        share *= 0.5
    return None, 59
