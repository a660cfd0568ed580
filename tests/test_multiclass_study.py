"""Seeded simulations: coverage of intervals and size of tests of softmax maps.

The short form runs with every change; ``pytest -m slow`` runs the long one. The figures of
docs/explanation/softmax_inference.md are printed by ``python tests/test_multiclass_study.py``, those of one table by
adding ``coverage``, ``sizes`` or ``penalised``. A cell fails when it is off by more than its Monte Carlo error allows.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy import special

from calstat._arrays.softmax import QuadraticPenalty, probabilities_of
from calstat._arrays.softmax_inference import (
    canonical_form,
    free_covariance,
    information_at,
    score_excess,
    score_form,
    score_statistic,
    score_statistic_draws,
)
from calstat._arrays.softmax_maps import SoftmaxMap, fit_map, reported
from calstat._arrays.softmax_selection import selected_gain, selected_gain_draws
from calstat.multiclass.results import EXCESS_LIMIT, ROWS_PER_PARAMETER
from calstat.penalties import L2, ODIR

DIRICHLET = SoftmaxMap(kind="DirichletCalibration", scores="probability", eps=1e-12)
TEMPERATURE = SoftmaxMap(kind="TemperatureScaling", scores="probability", eps=1e-15)
VECTOR = SoftmaxMap(kind="VectorScaling", scores="probability", eps=1e-15)
TRUTH = np.array([[0.7, 0.05, 0.0, 0.2], [0.0, 0.9, 0.1, -0.2], [0.1, 0.0, 0.8, 0.0]])


def smooth(n: int, rng: np.random.Generator, K: int = 3) -> np.ndarray:
    """Probabilities (n, K) as a well-behaved classifier gives them."""
    return np.maximum(rng.dirichlet(np.full(K, 1.5), size=n), 1e-9)


def sharp(n: int, rng: np.random.Generator, K: int = 3) -> np.ndarray:
    """Probabilities (n, K) as a network gives them: most rows almost sure, a few in doubt."""
    z = rng.normal(size=(n, K)) + 9.0 * rng.beta(4.0, 1.0, size=(n, 1)) * np.eye(K)[rng.integers(0, K, n)]
    return special.softmax(z, axis=1)


def draw(p: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels (n,) drawn from probabilities (n, K)."""
    return (p.cumsum(axis=1)[:, :-1] < rng.random((len(p), 1))).sum(axis=1)


def mapped(p: np.ndarray, theta: np.ndarray) -> np.ndarray:
    return special.softmax(np.log(p) @ theta[:, :-1].T + theta[:, -1], axis=1)


def coverage_run(n: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Whether 95% intervals of one unpenalised fit hold the truth."""
    p = smooth(n, rng)
    y = draw(mapped(p, TRUTH), rng)
    features, _ = DIRICHLET.features(p)
    fit = fit_map(DIRICHLET, features, y, None)
    design = DIRICHLET.design(features, y, None)
    info = information_at(design, None, fit.probabilities)
    numbers = reported(DIRICHLET, fit.theta, None, info.inverse, fit.null)
    truth = reported(DIRICHLET, TRUTH, None, None, fit.null).params
    inside = np.abs(numbers.params - truth) <= 1.959964 * np.sqrt(np.diag(numbers.cov))
    cov = np.empty((12, 12))
    order = DIRICHLET.order(3)
    cov[np.ix_(order, order)] = numbers.cov
    form = canonical_form(numbers.params[:9].reshape(3, 3), numbers.params[9:], cov.reshape(3, 4, 3, 4), 0.05)
    A = TRUTH[:, :3] - TRUTH[:, :3].min(axis=0)
    log_c = TRUTH[:, :3].sum(axis=1) * -np.log(3.0) + TRUTH[:, 3]
    log_c = log_c - log_c.mean()
    t = np.abs(form.log_c - log_c) <= 1.959964 * form.log_c_se
    y_t = draw(special.softmax(np.log(p) / 1.5, axis=1), rng)
    slope = fit_map(TEMPERATURE, features, y_t, None)
    about = information_at(TEMPERATURE.design(features, y_t, None), None, slope.probabilities)
    beta, se = slope.theta[0, 0], np.sqrt(about.inverse[0, 0])
    return {
        "W": inside[:9],
        "b": inside[9:],
        "T": np.array([abs(np.log(beta * 1.5)) <= 1.959964 * se / beta]),
        "log c": t,
        "A": (form.A_low - 1e-12 <= A) & (form.A_high + 1e-12 >= A),
    }


def coverage(n: int, runs: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    found = [coverage_run(n, rng) for _ in range(runs)]
    return {name: np.mean([f[name] for f in found], axis=0) for name in found[0]}


def check_coverage(found: dict[str, np.ndarray], runs: int) -> None:
    error = 2.0 * np.sqrt(0.95 * 0.05 / runs)
    for name, share in found.items():
        assert share.min() + error >= 0.93, (name, share)
        if name != "A":  # the intervals of A are made to be at least 95%
            # Nine entries are looked at, so the smallest and largest stray further than one would.
            assert share.max() - 1.5 * error <= 0.97, (name, share)


@pytest.mark.parametrize("n", [300, 1000])
def test_coverage(n: int) -> None:
    check_coverage(coverage(n, 250, seed=n), 250)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000, 5000])
def test_coverage_long(n: int) -> None:
    check_coverage(coverage(n, 4000, seed=n), 4000)


def size_run(
    form: SoftmaxMap, p: np.ndarray, penalty: QuadraticPenalty | None, draws: int, rng: np.random.Generator
) -> dict[str, float]:
    """Rejections at 5% of the tests of the identity on one calibrated sample."""
    y = draw(p, rng)
    features, _ = form.features(p)
    design = form.design(features, y, None)
    identity = form.identity(p.shape[1])
    q = probabilities_of(design, identity)
    info = information_at(design, penalty, q)
    statistic = score_statistic(design, q, score_form(design, penalty, q, info))
    excess = 0.0 if penalty is not None else score_excess(design, q, info)
    out = {"excess": excess, "pseudo_label": np.nan}
    draws_needed = penalty is not None or excess > EXCESS_LIMIT or info.nobs < ROWS_PER_PARAMETER * info.rank
    if draws_needed:
        null = score_statistic_draws(design, q, info.inverse, draws, rng)
        out["pseudo_label"] = float(((null >= statistic * (1 - 1e-12)).sum() + 1) / (draws + 1) <= 0.05)
    if penalty is not None:
        return out
    critical = special.chdtri(info.rank, 0.05)
    fit = fit_map(form, features, y, None)
    lr = 2.0 * info.nobs * (-np.log(q[y, np.arange(len(y))]).mean() - fit.loss)
    wald = np.nan
    if not fit.separated and not fit.null.shape[1]:
        at = information_at(design, None, fit.probabilities)
        change = design.free(fit.theta - identity)
        wald = float(change @ at.likelihood @ change > critical)
    out |= {"lr": float(lr > critical), "score": float(statistic > critical), "wald": wald}
    out["default"] = out["pseudo_label"] if draws_needed else out["lr"]
    return out


def size(
    form: SoftmaxMap, kind: Any, n: int, K: int, runs: int, seed: int, *, draws: int = 199, penalty: Any = None
) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    quadratic = None if penalty is None else penalty.quadratic(K)
    found = [size_run(form, kind(n, rng, K), quadratic, draws, rng) for _ in range(runs)]
    columns = {name: np.array([f[name] for f in found]) for name in found[0]}
    return {name: float(np.nanmean(v)) if np.isfinite(v).any() else np.nan for name, v in columns.items()}


def check_size(rate: float, runs: int, low: float = 0.04, high: float = 0.06) -> None:
    error = 2.0 * np.sqrt(0.05 * 0.95 / runs)
    assert low - error <= rate <= high + error, rate


@pytest.mark.parametrize("form", [DIRICHLET, VECTOR, TEMPERATURE], ids=lambda f: f.kind)
@pytest.mark.parametrize("kind", [smooth, sharp], ids=lambda f: f.__name__)
def test_size_of_the_default_test(form: SoftmaxMap, kind: Any) -> None:
    check_size(size(form, kind, 300, 3, 200, seed=5, draws=99)["default"], 200)


@pytest.mark.parametrize("penalty", [ODIR(0.1, 0.1), L2(0.01, center="identity")], ids=str)
def test_size_under_a_penalty(penalty: Any) -> None:
    check_size(size(DIRICHLET, sharp, 300, 3, 200, seed=6, draws=99, penalty=penalty)["pseudo_label"], 200)


def penalised_coverage(n: int, runs: int, seed: int, penalty: Any) -> dict[str, float]:
    """Mean coverage over coefficients of 95% intervals of a penalised fit: of the truth, and of the penalty's target.

    The target is the penalised fit to a sample of 200,000, whose sampling error is small beside that of n rows.
    """
    rng = np.random.default_rng(seed)
    quadratic = penalty.quadratic(3)
    p = smooth(200_000, rng)
    features, _ = DIRICHLET.features(p)
    large = fit_map(DIRICHLET, features, draw(mapped(p, TRUTH), rng), None, quadratic)
    none = np.zeros((8, 0))
    values = {
        "truth": reported(DIRICHLET, TRUTH, quadratic, None, none).params,
        "target": reported(DIRICHLET, large.theta, quadratic, None, none).params,
    }
    found: dict[str, list[float]] = {}
    for _ in range(runs):
        p = smooth(n, rng)
        features, _ = DIRICHLET.features(p)
        y = draw(mapped(p, TRUTH), rng)
        fit = fit_map(DIRICHLET, features, y, None, quadratic)
        design = DIRICHLET.design(features, y, None)
        info = information_at(design, quadratic, fit.probabilities)
        for kind in ("bayes", "frequentist"):
            cov = free_covariance(design, quadratic, fit.theta, fit.probabilities, info, kind)
            numbers = reported(DIRICHLET, fit.theta, quadratic, cov, none)
            half = 1.959964 * np.sqrt(np.diag(numbers.cov))
            for name, value in values.items():
                found.setdefault(f"{kind}, {name}", []).append(float((np.abs(numbers.params - value) <= half).mean()))
    return {name: float(np.mean(v)) for name, v in found.items()}


def test_penalised_intervals_cover_their_target() -> None:
    """Frequentist intervals are made for the penalised target; Bayesian ones are wider, and hold on average."""
    found = penalised_coverage(300, 200, 7, ODIR(0.1, 0.1))
    assert found["frequentist, target"] > 0.93
    assert found["bayes, target"] > 0.95
    assert found["bayes, truth"] > 0.93


def size_with_choice(n: int, runs: int, draws: int, seed: int) -> float:
    """Rejections at 5% where the penalty is chosen by cross-validation on the same rows."""
    rng = np.random.default_rng(seed)
    grid = [ODIR(lam, lam).quadratic(3) for lam in (1e-3, 1e-1, 1e1)]
    rejected = 0
    for _ in range(runs):
        p = sharp(n, rng)
        features, _ = DIRICHLET.features(p)
        y = draw(p, rng)
        fold = np.arange(n) % 3
        gain = selected_gain(DIRICHLET, features, y, None, grid, fold, rtol=1e-10)
        null = selected_gain_draws(DIRICHLET, features, p.T, None, grid, fold, draws, rng, rtol=1e-10)
        rejected += (null >= gain * (1 - 1e-12)).sum() + 1 <= 0.05 * (draws + 1)
    return rejected / runs


@pytest.mark.slow
def test_size_where_the_penalty_is_chosen_on_the_same_rows() -> None:
    check_size(size_with_choice(300, 400, 39, seed=8), 400)


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 1000])
@pytest.mark.parametrize("kind", [smooth, sharp], ids=lambda f: f.__name__)
@pytest.mark.parametrize("form", [DIRICHLET, VECTOR, TEMPERATURE], ids=lambda f: f.kind)
def test_size_of_the_default_test_long(form: SoftmaxMap, kind: Any, n: int) -> None:
    check_size(size(form, kind, n, 3, 2000, seed=1)["default"], 2000)


def print_coverage() -> None:
    for n in (300, 1000, 5000):
        found = coverage(n, 4000, seed=n)
        print(n, {k: (round(float(v.min()), 3), round(float(v.max()), 3)) for k, v in found.items()}, flush=True)


def print_sizes() -> None:
    """Print the lines of the table, two thousand samples each, one thousand for ten classes."""
    names = {DIRICHLET: "dirichlet", VECTOR: "vector", TEMPERATURE: "temperature"}
    for K, rows, runs in ((3, (300, 1000, 5000), 2000), (10, (300, 1000), 1000)):
        for form in (TEMPERATURE, VECTOR, DIRICHLET):
            for kind in (smooth, sharp):
                for n in rows:
                    found = size(form, kind, n, K, runs, seed=1)
                    rates = " | ".join(f"{found[test]:.3f}" for test in ("lr", "score", "wald", "default"))
                    line = f"| {names[form]} | {kind.__name__} | {K} | {n} | {found['excess']:.2f} | {rates} |"
                    print(line, flush=True)


def print_penalised() -> None:
    for penalty in (ODIR(0.1, 0.1), L2(0.01, center="identity")):
        for kind in (smooth, sharp):
            for n in (300, 1000):
                found = size(DIRICHLET, kind, n, 3, 2000, seed=2, penalty=penalty)
                print(penalty, kind.__name__, n, found, flush=True)
    for penalty in (ODIR(0.01, 0.01), ODIR(0.1, 0.1), ODIR(1.0, 1.0)):
        for n in (300, 1000, 5000):
            print(penalty, n, penalised_coverage(n, 1000, 7, penalty), flush=True)
    print("chosen penalty", size_with_choice(300, 400, 39, seed=8), flush=True)


if __name__ == "__main__":
    tables = {"coverage": print_coverage, "sizes": print_sizes, "penalised": print_penalised}
    for table in sys.argv[1:] or tables:
        tables[table]()
