"""Which softmax fits have a minimum, and that fits reach it where scores are nearly equal or far off."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import log_softmax

import calstat as cs
from calstat._arrays.softmax import FullDesign, QuadraticPenalty, VectorDesign, evaluate
from calstat._arrays.softmax_separation import is_separated
from calstat._arrays.softmax_solver import minimize, solve_scaled
from calstat.exceptions import SeparationWarning

FOLDER = Path(__file__).parent / "reference" / "multiclass"
TINY = float(np.finfo(float).tiny)
LINE = np.vstack([np.arange(12.0) - 5.5, np.ones(12)])
THIRDS = np.repeat([0, 1, 2], 4)


def told(model: Any) -> tuple[Any, list[type[Warning]]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        results = model.fit(cov=False)
    return results, [w.category for w in caught]


def full(codes: np.ndarray, weights: np.ndarray | None = None) -> FullDesign:
    return FullDesign(features=LINE, codes=codes, weights=weights, n_classes=3)


def no_null(design: FullDesign | VectorDesign) -> np.ndarray:
    return np.zeros((design.n_free, 0))


def test_separation_is_a_direction_that_helps_some_rows_and_harms_none() -> None:
    swapped = THIRDS.copy()
    swapped[[0, 11]] = swapped[[11, 0]]
    for codes, separated in ((THIRDS, True), (swapped, False)):
        design = full(codes)
        assert is_separated(design, None, no_null(design)) is separated
    # The two rows that stand in the way do not count with weight 0.
    weights = np.ones(12)
    weights[[0, 11]] = 0.0
    design = full(swapped, weights)
    assert is_separated(design, None, no_null(design)) is True
    # Class 2 alone is separated: the others overlap.
    partly = np.array([0, 1, 0, 1, 0, 1, 0, 1, 2, 2, 2, 2])
    design = full(partly)
    assert is_separated(design, None, no_null(design)) is True


def test_separation_counts_only_what_no_penalty_holds() -> None:
    design = full(THIRDS)
    weights = np.full((3, 2), 1e-9)
    penalty = QuadraticPenalty(weights=weights, center=np.zeros((3, 2)))
    assert is_separated(design, penalty, no_null(design)) is False
    # Free intercepts alone cannot separate; a free slope of the last class beside them can.
    constants = QuadraticPenalty(weights=weights * [1.0, 0.0], center=np.zeros((3, 2)))
    assert is_separated(design, constants, no_null(design)) is False
    slope = QuadraticPenalty(weights=weights * np.array([[1, 0], [1, 0], [0, 0]]), center=np.zeros((3, 2)))
    assert is_separated(design, slope, no_null(design)) is True


@pytest.mark.parametrize("seed", range(12))
def test_separation_agrees_with_the_whole_linear_programme(seed: int) -> None:
    rng = np.random.default_rng(seed)
    z, codes = rng.normal(size=(3, 14)), rng.integers(0, 3, 14)
    z[codes, np.arange(14)] += 1.5
    design = VectorDesign(features=z, codes=codes, weights=None)
    rows = []
    for i, k in ((i, k) for i in range(14) for k in range(3) if k != codes[i]):
        row = np.zeros((3, 2))
        row[codes[i]] += z[codes[i], i], 1.0
        row[k] -= z[k, i], 1.0
        rows.append(row.ravel())
    margins = np.array(rows)
    answer = optimize.linprog(-margins.sum(axis=0), A_ub=-margins, b_ub=np.zeros(len(rows)), bounds=(-1, 1))
    assert is_separated(design, None, no_null(design)) is (-answer.fun > 1e-6)


def test_a_flat_optimum_under_a_weak_penalty_is_no_separation() -> None:
    """The free weight of class 3 has its optimum far out, where the objective changes by less than 1e-13."""
    data = json.loads((FOLDER / "inputs.json").read_text())["m5_sharp"]
    selection = json.loads((FOLDER / "r_manual.json").read_text())["selection"]["m5_sharp"]
    keep = np.array(selection["fold_id"]) != 3
    y, p = np.array(data["y"])[keep], np.array(data["p"])[keep]
    results, warned = told(cs.DirichletCalibration(y, p, penalty=cs.ODIR(1e-4, normalize=False)))
    assert warned == []
    assert results.converged
    # Newton's method with 50 digits, from these very numbers: W[3,3] = 16.54518789, objective 6.98957084408680e-5. The
    # step that is left there is 3e-5, since residuals of 1e-14 are known to two digits in double precision.
    assert abs(results.weights.to_numpy()[2, 2] - 16.54518789) < 1e-3
    assert np.isclose(-results._estimates.objective / len(y), 6.98957084408680e-5, rtol=1e-11)


@pytest.mark.parametrize("lam", [1e-5, 1e-7])
def test_l2_is_never_told_to_be_separated(lam: float) -> None:
    # One-hot predictions that are always right: the optimum is finite, and far.
    y = np.repeat([0, 1, 2], 10)
    p = np.eye(3)[y]
    results, warned = told(cs.DirichletCalibration(y, p, penalty=cs.L2(lam), eps=TINY))
    assert warned == []
    assert results.converged
    # By symmetry W = a I + const and b = const; the loss of logits a * 708.4 and its penalty have one variable. The
    # penalty is the least over shifts of each column: 3 columns with a^2 (1 - 1/3).
    z = -np.log(TINY)

    def objective(a: float) -> float:
        return float(np.log1p(2.0 * np.exp(-a * z)) + lam * 2.0 * a**2)

    best = optimize.minimize_scalar(objective, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-13})
    W = results.weights.to_numpy()
    assert np.isclose(W[0, 0] - W[1, 0], best.x, rtol=1e-5)  # a search without derivatives


def test_true_separation_under_odir_is_told() -> None:
    y = np.repeat([0, 1, 2], 10)
    p = np.full((30, 3), 0.1) + 0.7 * np.eye(3)[y]
    _, warned = told(cs.DirichletCalibration(y, p, penalty=cs.ODIR(0.1)))
    assert warned == [SeparationWarning]


def test_scores_that_hardly_differ_are_scores() -> None:
    """Vector scaling does not depend on the units of each score: scores within 1e-6 of each other fit as well."""
    rng = np.random.default_rng(3)
    z = rng.normal(size=(400, 4)) * 2.0
    y = np.array([rng.choice(4, p=q) for q in np.exp(log_softmax(z, axis=1))])
    plain, _ = told(cs.VectorScaling(y, z))
    # 1e-6 z - 1 is known to 1e-10 of z.
    narrow, warned = told(cs.VectorScaling(y, 1e-6 * z - 1.0))
    assert warned == []
    assert narrow.converged
    assert np.isclose(narrow.llf, plain.llf, rtol=1e-11)


def far_off() -> tuple[np.ndarray, np.ndarray]:
    """Rows some of which are wrong by hundreds: there the likelihood has a slope but no curvature."""
    rng = np.random.default_rng(4)
    z = rng.normal(size=(300, 4)) * 2.0
    y = np.array([rng.choice(4, p=q) for q in np.exp(log_softmax(z, axis=1))])
    wrong = rng.choice(300, 15, replace=False)
    z[wrong, y[wrong]] = -rng.uniform(50.0, 700.0, 15)
    return y, np.exp(log_softmax(z, axis=1))


@pytest.mark.parametrize("kind", ["vector", "odir"])
def test_far_off_rows_do_not_stop_a_fit_where_it_starts(kind: str) -> None:
    y, p = far_off()
    if kind == "vector":
        model: Any = cs.VectorScaling(y, p, scores="probability", eps=TINY)
    else:
        model = cs.DirichletCalibration(y, p, penalty=cs.ODIR(1e-3), eps=TINY)
    results, warned = told(model)
    assert warned == []
    assert results.converged
    assert results.gradient <= 1e-8  # of a convex objective: this is the optimum
    # Neither where it starts nor where all rows are told the frequencies of the classes.
    assert -results.llf / 300 < min(cs.log_loss(y, p, eps=TINY), np.log(4.0))


def test_many_classes_with_many_zeros_are_fitted_to_the_end() -> None:
    """42 classes of a tree: 1763 free parameters, where products with the Hessian alone do not get there."""
    rng = np.random.default_rng(0)
    K, n, leaves = 42, 300, 60
    true = rng.dirichlet(np.full(K, 0.03), size=leaves)
    leaf = rng.integers(0, leaves, n)
    y = np.array([rng.choice(K, p=true[i]) for i in leaf])
    y[:K] = np.arange(K)
    counts = np.zeros((leaves, K))
    for i in range(leaves):
        np.add.at(counts[i], rng.choice(K, size=8, p=true[i]), 1)
    p = (counts / counts.sum(axis=1, keepdims=True))[leaf]
    results, warned = told(cs.DirichletCalibration(y, p, penalty=cs.ODIR(1e-3, 0.1)))
    assert warned == []
    assert results.converged
    assert results.gradient <= 1e-8


def test_what_is_not_reached_is_told() -> None:
    y, p = far_off()
    z = np.log(np.clip(p, TINY, 1.0)).T
    design = VectorDesign(features=z, codes=y, weights=None)
    start = np.column_stack([np.ones(4), np.zeros(4)])
    cut = minimize(design, None, start, max_iter=2)
    assert not cut.converged
    assert not cut.separated
    assert minimize(design, None, start).evaluation.loss < evaluate(design, None, cut.theta).loss


def test_vanished_curvature_does_not_stop_the_solver() -> None:
    # The off-diagonal is rounding: divided by the vanished diagonal it overflows.
    matrix = np.array([[1e-300, 1e-18], [1e-18, 1.0]])
    assert np.isfinite(solve_scaled(matrix, np.ones(2))).all()
