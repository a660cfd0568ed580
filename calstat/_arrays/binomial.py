"""The binomial likelihood of blocks of rows: value, gradient, information, Firth's penalty, separation.

Columns are centred (when the design holds a constant column) and divided by their largest absolute value:
the working coefficients are ``gamma = S b``, and every working column lies within [-1, 1]. Rows are read in
blocks that stay in the processor's cache, so that no array as long as the data is made.

Firth's penalty is ``0.5 ln det I(b)``. Its gradient and Hessian follow from third and fourth moments of the
columns, which the same pass over the data collects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from scipy.linalg import null_space
from scipy.optimize import linprog

from calstat._typing import FloatArray, IntArray
from calstat.exceptions import InputError

Design: TypeAlias = FloatArray | Sequence[FloatArray]
"""A matrix (n, k), or its k columns, each (n,): a list saves the copy that stacking would make."""
Penalty: TypeAlias = Literal["firth"] | None

BLOCK = 8192  # rows per block: k + 10 arrays of 64 kB, which second-level caches hold
_FLAT = 1e-12  # a column whose spread is below this share of its size is constant up to rounding
_SINGULAR = 1e-13  # eigenvalues of the scaled Gram matrix below this share of the largest are rounding noise
_FAR = -250.0  # log determinants below this (no optimum is there) leave no digits for the inverse
_MARGIN = 1e-9  # a margin above minus this (columns have size 1) satisfies the linear programme


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
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
class Point:
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


def columns_of(design: Design) -> tuple[FloatArray, ...]:
    """Columns of the design, as float64 views where possible."""
    if isinstance(design, np.ndarray):
        design = list(np.asarray(design, dtype=np.float64).T)
    return tuple(np.asarray(column, dtype=np.float64) for column in design)


def make_problem(
    design: Design,
    target: FloatArray,
    weights: FloatArray | None,
    offset: FloatArray | None,
    penalty: Penalty,
) -> Problem:
    """Drop rows of weight 0, choose the working units, find the rank."""
    columns = columns_of(design)
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
    problem = Problem(
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


def blocks(
    problem: Problem,
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray | None, FloatArray | None]]:
    """Blocks of rows: columns in working units (k, m), targets, weights, offset."""
    weights, offset = problem.weights, problem.offset
    for begin in range(0, problem.target.size, BLOCK):
        rows = slice(begin, begin + BLOCK)
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


def _gram(problem: Problem) -> FloatArray:
    """Unweighted cross products of the working columns, (k, k)."""
    k = len(problem.columns)
    gram = np.zeros((k, k))
    for z, _, _, _ in blocks(problem):
        gram += z @ z.T
    return gram


def residual_parts(eta: FloatArray, target: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
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


def evaluate(problem: Problem, gamma: FloatArray) -> Point:
    """Value, gradient and curvature in one pass over the data."""
    k = gamma.size
    firth = problem.penalty == "firth"
    left, right = np.triu_indices(k)
    llf = 0.0
    gradient, information = np.zeros(k), np.zeros((k, k))
    third, fourth = np.zeros((left.size, k)), np.zeros((left.size, left.size))
    for z, target, weights, offset in blocks(problem):
        eta = gamma @ z
        if offset is not None:
            eta += offset
        residual, variance, decay = residual_parts(eta, target)
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
        return Point(gamma=gamma, value=llf, llf=llf, gradient=gradient, curvature=information, information=information)
    bonus, slope, bend = _jeffreys(problem, information, third, fourth)
    return Point(
        gamma=gamma,
        value=llf + bonus,
        llf=llf,
        gradient=gradient + slope,
        curvature=information - bend,
        information=information,
    )


def _jeffreys(
    problem: Problem, information: FloatArray, third: FloatArray, fourth: FloatArray
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
    inside = free_basis(problem, np.empty((0, k)))
    inner = inside.T @ information @ inside
    with np.errstate(divide="ignore", invalid="ignore"):  # far out, every variance underflows
        sign, logdet = np.linalg.slogdet(inner)
    if sign <= 0 or not logdet > _FAR:
        return -np.inf, np.zeros(k), np.zeros((k, k))
    inverse = inside @ np.linalg.inv(inner) @ inside.T
    cube = third[place]  # (k, k, k)
    slope = 0.5 * np.einsum("ab,abc->c", inverse, cube)
    turned = np.einsum("ab,bdc->adc", inverse, cube)
    bend = np.einsum("ab,abcd->cd", inverse, fourth[place][:, :, place])
    bend -= np.einsum("abc,bad->cd", turned, turned)
    change = float(np.log(abs(np.linalg.det(problem.to_work)))) if inside.shape[1] == k else 0.0
    return 0.5 * float(logdet) + change, slope, 0.5 * bend


def free_basis(problem: Problem, held: FloatArray) -> FloatArray:
    """Orthonormal basis (k, f) of the directions that are determined by the design and not held."""
    rows = np.vstack([held, problem.undetermined.T])
    k = len(problem.columns)
    return null_space(rows) if rows.shape[0] else np.eye(k)


def recession(problem: Problem, basis: FloatArray, bounds: FloatArray, goal: FloatArray | None) -> FloatArray | None:
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
    for z, target, _, _ in blocks(problem):
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
        for z, target, _, _ in blocks(problem):
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
