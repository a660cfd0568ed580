"""The softmax likelihood and its minimisers, on arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import optimize, special

from calstat._arrays.softmax import (
    FullDesign,
    QuadraticPenalty,
    VectorDesign,
    evaluate,
    hessian_product,
    penalty_hessian,
    penalty_value,
    probabilities_of,
    represent,
    representative,
    row_scores,
    vector_product,
)
from calstat._arrays.softmax_inference import (
    canonical_form,
    information_at,
    logit_covariances,
    logit_standard_errors,
    profile_limits,
    score_excess,
    score_form,
    score_statistic,
    score_statistic_draws,
)
from calstat._arrays.softmax_solver import fit_temperature, minimize, null_directions

K, Q, N = 4, 3, 60  # three features for four classes: a square case would hide a transpose


def sample(seed: int = 0, n: int = N) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.vstack([rng.normal(size=(Q - 1, n)), np.ones(n)])
    return x, rng.integers(0, K, n), rng.integers(0, 4, n).astype(float)


def designs(weighted: bool) -> list[FullDesign | VectorDesign]:
    x, y, w = sample()
    z = np.random.default_rng(1).normal(size=(K, N)) * 2
    weights = w if weighted else None
    vector = {"features": z, "codes": y, "weights": weights}
    return [
        FullDesign(features=x, codes=y, weights=weights, n_classes=K),
        VectorDesign(**vector),
        VectorDesign(**vector, slopes="common"),
        VectorDesign(**vector, slopes="fixed"),
        VectorDesign(**vector, slopes="common", constants=False),
    ]


def random_penalty(design: FullDesign | VectorDesign) -> QuadraticPenalty:
    rng = np.random.default_rng(2)
    return QuadraticPenalty(weights=rng.random(design.shape), center=rng.normal(size=design.shape))


def brute_loss(design: FullDesign | VectorDesign, theta: np.ndarray) -> float:
    n = design.codes.size
    if isinstance(design, FullDesign):
        eta = design.features.T @ theta.T
    else:
        eta = design.features.T * theta[:, 0] + theta[:, 1]
    w = np.ones(n) if design.weights is None else design.weights
    return float(w @ -special.log_softmax(eta, axis=1)[np.arange(n), design.codes] / w.sum())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("which", range(5))
def test_loss_gradient_and_hessian_agree_with_finite_differences(which: int, weighted: bool) -> None:
    design = designs(weighted)[which]
    rng = np.random.default_rng(3)
    theta = design.push(rng.normal(size=design.n_free))
    assert np.isclose(evaluate(design, None, theta).loss, brute_loss(design, theta), rtol=1e-13)

    def loss(free: np.ndarray) -> float:
        return brute_loss(design, theta + design.push(free))

    at = evaluate(design, None, theta)
    # Central differences of step 1e-5 are good to about 1e-10 in the gradient, and to 1e-6 in second differences.
    numeric = optimize.approx_fprime(np.zeros(design.n_free), loss, 1e-7)
    np.testing.assert_allclose(design.pull(at.gradient), numeric, atol=1e-6)
    hessian = design.information(at.probabilities)
    for j in range(design.n_free):
        h = np.eye(design.n_free)[j] * 1e-5
        up = design.pull(evaluate(design, None, theta + design.push(h)).gradient)
        down = design.pull(evaluate(design, None, theta - design.push(h)).gradient)
        np.testing.assert_allclose(hessian[j], (up - down) / 2e-5, atol=1e-9)
        product = design.pull(hessian_product(design, None, at.probabilities, design.push(h * 1e5)))
        np.testing.assert_allclose(product, hessian[j], atol=1e-14)
        if isinstance(design, VectorDesign):
            means = design.weighted_blocks(at.probabilities)
            product = design.pull(vector_product(design, at.probabilities, means, design.push(h * 1e5)))
            np.testing.assert_allclose(product, hessian[j], atol=1e-14)


def test_chunks_do_not_change_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y, w = sample(4, n=2000)
    design = FullDesign(features=x, codes=y, weights=w, n_classes=K)
    theta = np.random.default_rng(5).normal(size=(K, Q))
    whole = evaluate(design, None, theta)
    information = design.information(whole.probabilities)
    monkeypatch.setattr("calstat._arrays.softmax._CHUNK", 1)
    parts = evaluate(design, None, theta)
    np.testing.assert_allclose(parts.gradient, whole.gradient, atol=1e-15)
    np.testing.assert_allclose(design.information(parts.probabilities), information, atol=1e-14)


def test_weights_are_copies() -> None:
    x, y, w = sample()
    copies = w.astype(int)
    design = FullDesign(features=x, codes=y, weights=w, n_classes=K)
    repeated = FullDesign(features=np.repeat(x, copies, axis=1), codes=np.repeat(y, copies), weights=None, n_classes=K)
    theta = np.random.default_rng(6).normal(size=(K, Q))
    a, b = evaluate(design, None, theta), evaluate(repeated, None, theta)
    assert np.isclose(a.loss, b.loss, rtol=1e-14)
    np.testing.assert_allclose(a.gradient, b.gradient, atol=1e-15)
    np.testing.assert_allclose(design.information(a.probabilities), repeated.information(b.probabilities), atol=1e-14)
    # The preconditioner's blocks are made in single precision.
    np.testing.assert_allclose(design.blocks(a.probabilities), repeated.blocks(b.probabilities), rtol=1e-5)


def test_penalty_is_the_least_over_shifts() -> None:
    design = designs(False)[0]
    penalty = random_penalty(design)
    theta = np.random.default_rng(7).normal(size=design.shape)

    def cost(shift: np.ndarray) -> float:
        return float((penalty.weights * (theta + shift - penalty.center) ** 2).sum())

    best = optimize.minimize(cost, np.zeros(Q), tol=1e-14)
    assert np.isclose(penalty_value(design, penalty, theta), best.fun, rtol=1e-12)
    np.testing.assert_allclose(representative(design, penalty, theta), theta + best.x, atol=1e-6)
    assert np.isclose(penalty_value(design, penalty, theta + 3.7), penalty_value(design, penalty, theta), rtol=1e-12)


def test_penalty_hessian_and_representative_are_derivatives() -> None:
    design = designs(False)[0]
    penalty = random_penalty(design)
    hessian = penalty_hessian(design, penalty)
    theta = np.zeros(design.shape)
    for free in np.eye(design.n_free)[:4]:
        step = design.push(free)
        second = (
            penalty_value(design, penalty, theta + step)
            - 2 * penalty_value(design, penalty, theta)
            + penalty_value(design, penalty, theta - step)
        )
        assert np.isclose(free @ hessian @ free, second, rtol=1e-10)  # exact for a quadratic
        moved = representative(design, penalty, theta + step) - representative(design, penalty, theta)
        np.testing.assert_allclose(represent(design, penalty, free[:, None])[:, 0], moved.ravel(), atol=1e-14)


@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("weighted", [False, True])
def test_push_and_free_are_inverse(which: int, weighted: bool) -> None:
    design = designs(weighted)[which]
    free = np.random.default_rng(8).normal(size=design.n_free)
    np.testing.assert_allclose(design.free(design.push(free)), free, atol=1e-15)
    theta = design.push(free)
    scores = row_scores(design, probabilities_of(design, theta))
    w = np.ones(N) if design.weights is None else design.weights
    gradient = design.pull(evaluate(design, None, theta).gradient)
    np.testing.assert_allclose(-(w @ scores) / w.sum(), gradient, atol=1e-14)


@pytest.mark.parametrize("which", range(2))
@pytest.mark.parametrize("weighted", [False, True])
def test_exact_and_truncated_newton_agree_with_an_independent_optimiser(which: int, weighted: bool) -> None:
    design = designs(weighted)[which]
    penalty = random_penalty(design) if which == 0 else None
    start = np.zeros(design.shape)

    def objective(free: np.ndarray) -> tuple[float, np.ndarray]:
        at = evaluate(design, penalty, start + design.push(free))
        return at.objective, design.pull(at.slope)

    reference = optimize.minimize(objective, np.zeros(design.n_free), jac=True, method="BFGS", options={"gtol": 1e-10})
    for exact in (True, False):
        fit = minimize(design, penalty, start, exact=exact)
        assert fit.converged
        assert fit.gradient_norm <= 1e-8
        assert fit.evaluation.objective <= reference.fun + 1e-14
        np.testing.assert_allclose(design.free(fit.theta), reference.x, atol=1e-6)  # BFGS stops at 1e-10 in the slope


def test_collinear_features_are_left_where_they_start() -> None:
    x, y, _ = sample(9)
    doubled = np.vstack([x, 2 * x[0] - x[1]])
    design = FullDesign(features=doubled, codes=y, weights=None, n_classes=K)
    null = null_directions(design, None, 1e-10)
    assert null.shape == (design.n_free, K - 1)
    for exact in (True, False):
        fit = minimize(design, None, np.zeros(design.shape), null=null, exact=exact)
        assert fit.converged
        assert np.abs(null.T @ design.free(fit.theta)).max() < 1e-10
    full = FullDesign(features=x, codes=y, weights=None, n_classes=K)
    assert np.isclose(fit.evaluation.loss, minimize(full, None, np.zeros((K, Q))).evaluation.loss, rtol=1e-13)
    # A ridge on all entries determines them.
    ridge = QuadraticPenalty(weights=np.full(design.shape, 0.1), center=np.zeros(design.shape))
    assert null_directions(design, ridge, 1e-10).shape[1] == 0


def test_separation_is_told_and_predictions_stay_finite() -> None:
    x = np.vstack([np.arange(12.0), np.ones(12)])
    y = np.repeat([0, 1, 2], 4)
    design = FullDesign(features=x, codes=y, weights=None, n_classes=3)
    for exact in (True, False):
        fit = minimize(design, None, np.zeros((3, 2)), exact=exact)
        assert fit.separated
        assert not fit.converged
        assert fit.evaluation.loss < 1e-12  # the infimum is 0
        assert np.isfinite(fit.theta).all()
        info = information_at(design, None, fit.evaluation.probabilities, separated=True)
        assert info.rank == 0


def test_prediction_errors_are_the_delta_method() -> None:
    for design in designs(False):
        info = information_at(design, None, probabilities_of(design, design.push(np.zeros(design.n_free))))
        theta = design.push(np.random.default_rng(10).normal(size=design.n_free) * 0.5)
        rows, spread = next(iter(logit_covariances(design, info.inverse)))
        p = probabilities_of(design, theta)
        se = logit_standard_errors(p[:, rows].T, spread)

        def odds(free: np.ndarray, design: FullDesign | VectorDesign = design, theta: np.ndarray = theta) -> np.ndarray:
            return special.logit(probabilities_of(design, theta + design.push(free))[:, 5])

        jacobian = np.array(
            [(odds(h) - odds(-h)) / 2e-6 for h in np.eye(design.n_free) * 1e-6]
        ).T  # central differences, good to 1e-9
        expected = np.sqrt(np.diag(jacobian @ info.inverse @ jacobian.T))
        np.testing.assert_allclose(se[5], expected, rtol=1e-6)


def test_score_statistic_has_the_moments_of_its_exact_law() -> None:
    # Three rows and three classes: all 27 outcomes can be listed.
    rng = np.random.default_rng(11)
    x = np.vstack([rng.normal(size=3), np.ones(3)])
    p = special.softmax(rng.normal(size=(3, 3)), axis=0)
    values, chances = [], []
    info = None
    for codes in itertools.product(range(3), repeat=3):
        design = FullDesign(features=x, codes=np.array(codes), weights=None, n_classes=3)
        info = information_at(design, None, p)
        values.append(score_statistic(design, p, score_form(design, None, p, info)))
        chances.append(np.prod(p[list(codes), range(3)]))
    mean = np.average(values, weights=chances)
    assert np.isclose(sum(chances), 1.0)
    assert np.isclose(mean, info.rank, rtol=1e-10)  # E U' J^- U = rank, exactly
    draws = score_statistic_draws(design, p, info.inverse, 4000, np.random.default_rng(12))
    spread = np.sqrt(np.average((np.array(values) - mean) ** 2, weights=chances))
    assert abs(draws.mean() - mean) < 4 * spread / np.sqrt(4000)
    assert set(np.round(draws, 8)) <= set(np.round(values, 8))


def test_excess_variance_of_the_score_statistic() -> None:
    x, _, _ = sample(13, n=40)
    p = special.softmax(np.random.default_rng(14).normal(size=(K, 40)) * 2, axis=0)
    design = FullDesign(features=x, codes=np.zeros(40, dtype=np.int64), weights=None, n_classes=K)
    info = information_at(design, None, p)
    draws = score_statistic_draws(design, p, info.inverse, 40_000, np.random.default_rng(15))
    measured = draws.var() / (2.0 * info.rank) - 1.0
    # The formula leaves out -2 tr(V_i^2), a share of order f / n.
    assert abs(score_excess(design, p, info) - measured) < 0.3
    weighted = FullDesign(features=x, codes=design.codes, weights=np.full(40, 100.0), n_classes=K)
    assert score_excess(weighted, p, information_at(weighted, None, p)) < 0.02


@pytest.mark.parametrize("strength", [None, 0.05])
def test_profile_limits_are_where_the_likelihood_ratio_rejects(strength: float | None) -> None:
    design = designs(False)[0]
    penalty = None
    if strength is not None:
        center = np.linspace(-1.0, 1.0, design.shape[0] * design.shape[1]).reshape(design.shape)
        penalty = QuadraticPenalty(weights=np.full(design.shape, strength), center=center)
    fit = minimize(design, penalty, np.zeros(design.shape))
    info = information_at(design, penalty, fit.evaluation.probabilities)
    loading = np.eye(design.n_free)[1]
    low, high = profile_limits(design, penalty, fit.theta, loading, 0.05, info)
    best = fit.evaluation.objective
    for limit in (low, high):

        def constrained(others: np.ndarray, limit: float = limit) -> float:
            free = np.insert(others, 1, limit)
            return evaluate(design, penalty, fit.theta + design.push(free)).objective

        found = optimize.minimize(constrained, np.zeros(design.n_free - 1), tol=1e-12)
        # The likelihood ratio at the limit is the 95% quantile; BFGS finds the profile to about 1e-8.
        assert np.isclose(2 * N * (found.fun - best), special.chdtri(1, 0.05), atol=1e-5)


def test_canonical_limits_by_hand() -> None:
    W = np.array([[2.0, 0.1], [0.5, 1.0]])
    b = np.array([0.3, -0.3])
    cov = np.zeros((2, 3, 2, 3))
    cov[0, 0, 0, 0], cov[1, 1, 1, 1], cov[0, 2, 0, 2] = 0.04, 0.09, 0.01
    form = canonical_form(W, b, cov, 0.05)
    np.testing.assert_allclose(form.A, [[1.5, 0.0], [0.0, 0.9]])
    z = 1.959963984540054  # one rival: no correction at K = 2
    np.testing.assert_allclose(form.A_low, [[1.5 - 0.2 * z, 0.0], [0.0, 0.9 - 0.3 * z]])
    np.testing.assert_allclose(form.A_high, [[1.5 + 0.2 * z, 0.0], [0.0, 0.9 + 0.3 * z]])
    np.testing.assert_allclose(form.c, special.softmax(W.sum(axis=1) * -np.log(2) + b))
    assert form.c_low[0] < form.c[0] < form.c_high[0]


@pytest.mark.parametrize("weighted", [False, True])
def test_temperature_is_the_minimum(weighted: bool) -> None:
    rng = np.random.default_rng(16)
    z = rng.normal(size=(5, 3000)) * 3
    y = np.array([rng.choice(5, p=special.softmax(column / 2)) for column in z.T])
    w = rng.integers(0, 3, 3000).astype(float) if weighted else None
    fit = fit_temperature(z, y, w)
    rows = np.repeat(np.arange(3000), 1 if w is None else w.astype(int))

    def loss(t: float) -> float:
        return float(-special.log_softmax(z[:, rows] * t, axis=0)[y[rows], np.arange(rows.size)].mean())

    best = optimize.minimize_scalar(loss, bounds=(0.1, 3), method="bounded", options={"xatol": 1e-12})
    assert np.isclose(fit.loss, best.fun, rtol=1e-13)
    assert np.isclose(fit.inverse, best.x, rtol=1e-6)  # a search without derivatives
    assert abs(fit.slope) < 1e-13


def test_temperature_at_its_ends() -> None:
    z = np.array([[0.0, -2.0], [0.0, -1.0], [0.0, 1.0], [0.0, 2.0]]).T
    right = fit_temperature(z, np.array([0, 0, 1, 1]), None)
    assert (right.separated, right.bound, right.inverse) == (True, "lower", 1000.0)
    wrong = fit_temperature(z, np.array([1, 1, 0, 0]), None)
    assert (wrong.separated, wrong.bound, wrong.inverse) == (False, "upper", 0.001)
    flat = fit_temperature(np.zeros((2, 4)), np.array([0, 0, 1, 1]), None)
    assert flat.flat
    assert flat.bound is None
    # Separation is seen although the slope has underflowed to exactly 0 at the bound.
    huge = fit_temperature(z * 1e6, np.array([0, 0, 1, 1]), None)
    assert huge.separated
    assert huge.slope == 0.0


def test_temperature_of_extreme_logits() -> None:
    z = np.array([[800.0, -800.0, 0.0], [-700.0, 900.0, 800.0]])
    fit = fit_temperature(np.concatenate([z, z[:, :1]], axis=1), np.array([0, 1, 1, 1]), None)
    assert np.isfinite([fit.inverse, fit.loss, fit.curvature]).all()
