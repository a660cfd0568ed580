"""The array solver of the binomial likelihood: closed forms, statsmodels, brute force, hard cases."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit, xlog1py, xlogy
from scipy.stats import chi2

from calstat._arrays.logistic import (
    fit_logistic,
    loglikelihood,
    profile_interval,
    score_rows,
    score_statistic,
)
from calstat.exceptions import InputError

ROUNDING = 1e-12  # what a handful of float64 operations of size 1 may lose
ENGINE = 1e-8  # two independent solvers, each at its own convergence tolerance


def sample(n=800, seed=3, slope=0.7):
    rng = np.random.default_rng(seed)
    score = rng.normal(-0.4, 1.6, n)
    y = (rng.random(n) < expit(-0.3 + slope * score)).astype(float)
    p = expit(score)
    return y, np.column_stack([np.log(p), -np.log1p(-p), np.ones(n)])


def glm(y, X, **kwargs):
    return sm.GLM(y, X, family=sm.families.Binomial(), **kwargs).fit(tol=1e-15, maxiter=200, tol_criterion="params")


def brute_loglik(X, t, b, w=1.0, offset=0.0):
    q = expit(X @ b + offset)
    return np.sum(w * (xlogy(t, q) + xlog1py(1 - t, -q)))


# -- closed forms --------------------------------------------------------------------------------------------


def test_intercept_only_is_the_logit_of_the_mean():
    fit = fit_logistic([np.ones(10)], np.array([1.0] * 3 + [0.0] * 7))
    assert fit.params[0] == pytest.approx(np.log(3 / 7), abs=ROUNDING)
    assert fit.covariance[0, 0] == pytest.approx(1 / (10 * 0.3 * 0.7), rel=ROUNDING)
    assert fit.llf == pytest.approx(3 * np.log(0.3) + 7 * np.log(0.7), rel=ROUNDING)


@pytest.mark.parametrize("penalty", [None, "firth"])
def test_two_by_two_table(penalty):
    cells = np.array([7.0, 3.0, 4.0, 11.0])  # (x, y) = (1, 1), (1, 0), (0, 1), (0, 0)
    x, y = np.array([1.0, 1, 0, 0]), np.array([1.0, 0, 1, 0])
    fit = fit_logistic([np.ones(4), x], y, weights=cells, penalty=penalty)
    a, b, c, d = cells + (0.5 if penalty else 0.0)  # Firth's penalty adds half an observation to each cell
    assert fit.params == pytest.approx([np.log(c / d), np.log(a * d / (b * c))], abs=ROUNDING)
    if penalty is None:
        assert fit.covariance[1, 1] == pytest.approx(np.sum(1 / cells), rel=ROUNDING)


def test_firth_of_an_empty_cell_is_finite_and_in_closed_form():
    fit = fit_logistic(
        [np.ones(4), np.array([1.0, 1, 0, 0])],
        np.array([1.0, 0, 1, 0]),
        weights=np.array([6.0, 0.0, 4.0, 9.0]),
        penalty="firth",
    )
    assert fit.params == pytest.approx([np.log(4.5 / 9.5), np.log(6.5 * 9.5 / (0.5 * 4.5))], abs=1e-11)
    assert fit.converged
    assert not fit.separated


# -- statsmodels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [[0, 1, 2], [0, 1], [2], [0, 2]])
def test_agrees_with_statsmodels_glm(columns):
    y, X = sample()
    X = X[:, columns]
    fit, ref = fit_logistic(X, y), glm(y, X)
    assert fit.params == pytest.approx(ref.params, abs=ENGINE)
    assert np.sqrt(np.diag(fit.covariance)) == pytest.approx(ref.bse, rel=ENGINE)
    assert fit.llf == pytest.approx(ref.llf, rel=ROUNDING)
    assert np.linalg.inv(fit.information) == pytest.approx(ref.cov_params(), rel=1e-7)  # R-type last weights
    assert fit.gradient < 1e-15
    assert fit.converged


def test_offset_agrees_with_statsmodels_and_lists_with_matrices():
    y, X = sample()
    offset = X[:, 0] + X[:, 1]
    fit = fit_logistic([X[:, 2]], y, offset=offset)
    assert fit.params == pytest.approx(glm(y, X[:, 2:], offset=offset).params, abs=ENGINE)
    assert fit_logistic(X, y).params == pytest.approx(fit_logistic(list(X.T), y).params, abs=0)


def test_many_rows_use_a_subsample_only_as_a_start():
    y, X = sample(200_000)
    fit = fit_logistic(X, y)
    assert fit.params == pytest.approx(glm(y, X).params, abs=ENGINE)
    assert fit.n_iter < fit_logistic(X, y, start=np.zeros(3)).n_iter
    assert fit_logistic(X, y, start=np.zeros(3)).params == pytest.approx(fit.params, abs=ROUNDING)


def test_rare_events_beyond_the_subsample():
    y = np.zeros(200_000)
    y[[13, 777, 150_001]] = 1.0  # none of them in the evenly spaced rows
    fit = fit_logistic([np.ones(y.size)], y)
    assert fit.params[0] == pytest.approx(logit(3 / 200_000), abs=1e-11)
    assert fit.converged


# -- targets and weights -------------------------------------------------------------------------------------


def test_fractional_targets_against_a_general_optimiser():
    rng = np.random.default_rng(5)
    _, X = sample(60)
    t, w = rng.random(60), rng.integers(1, 5, 60).astype(float)
    fit = fit_logistic(X, t, weights=w)
    assert fit.llf == pytest.approx(brute_loglik(X, t, fit.params, w), rel=ROUNDING)
    best = minimize(lambda b: -brute_loglik(X, t, b, w), np.zeros(3), method="BFGS", options={"gtol": 1e-9})
    assert fit.params == pytest.approx(best.x, abs=1e-5)  # BFGS with numerical gradients is no better
    assert fit.llf >= -best.fun - 1e-12 * abs(best.fun)
    score = X.T @ (w * (t - expit(X @ fit.params)))
    assert np.abs(score).max() < 1e-11


@pytest.mark.parametrize("penalty", [None, "firth"])
def test_weights_are_repetition_and_zero_is_absence(penalty):
    y, X = sample(80)
    w = np.random.default_rng(0).integers(0, 4, 80).astype(float)
    X[w == 0] = 1e6  # what is absent must not even influence the scaling
    fit = fit_logistic(X, y, weights=w, penalty=penalty)
    rows = np.repeat(np.arange(80), w.astype(int))
    twin = fit_logistic(X[rows], y[rows], penalty=penalty)
    for name in ("params", "information", "covariance", "llf", "penalized_llf"):
        assert getattr(fit, name) == pytest.approx(getattr(twin, name), rel=1e-11)
    limits = profile_interval(X, y, 0, fit, weights=w)
    assert limits == pytest.approx(profile_interval(X[rows], y[rows], 0, twin), rel=1e-9)


def test_no_rows_left_is_an_error():
    with pytest.raises(InputError, match="positive weight"):
        fit_logistic([np.ones(3)], np.zeros(3), weights=np.zeros(3))


# -- conditioning --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "scale"), [(0, 1e5), (1e5, 1), (-3e4, 1e-5), (0, 1e-150), (0, 1e150)])
def test_scale_and_shift_of_a_score_do_not_hurt(shift, scale):
    y, X = sample()
    s = X[:, 0] + X[:, 1]
    plain = fit_logistic([np.ones_like(s), s], y)
    s_moved = shift + scale * s
    moved = fit_logistic([np.ones_like(s), s_moved], y)
    s_seen = (s_moved - shift) / scale  # the shift rounds the score itself: 1e-16 * |shift| / scale
    rounding = ROUNDING + 10 * np.abs(s_seen - s).max()
    assert moved.converged
    assert moved.params[1] * scale == pytest.approx(plain.params[1], rel=rounding)
    assert moved.covariance[1, 1] * scale * scale == pytest.approx(plain.covariance[1, 1], rel=rounding)
    assert moved.llf == pytest.approx(plain.llf, rel=rounding)


def test_bad_starting_points_are_recovered_from():
    y, X = sample()
    right = fit_logistic(X, y).params
    for start in ([50.0, -50.0, 0.0], [0.0, 0.0, 40.0], [-300.0, 800.0, 1000.0]):
        fit = fit_logistic(X, y, start=np.array(start))
        assert fit.converged, start
        assert fit.params == pytest.approx(right, abs=1e-10)


def test_extreme_linear_predictors_stay_finite():
    rng = np.random.default_rng(1)
    offset = np.concatenate([np.full(50, 800.0), np.full(50, -800.0), rng.normal(size=100)])
    y = np.concatenate([np.ones(50), np.zeros(50), rng.integers(0, 2, 100)])
    fit = fit_logistic([np.ones(200)], y, offset=offset)
    part = fit_logistic([np.ones(100)], y[100:], offset=offset[100:])
    assert fit.params == pytest.approx(part.params, abs=ROUNDING)
    assert fit.llf == pytest.approx(part.llf, rel=ROUNDING)


def test_tails_of_the_likelihood_have_no_cancellation():
    eta = np.array([-750.0, -40.0, 40.0, 750.0])
    for t in (0.0, 1.0):
        got = [loglikelihood([np.array([e])], np.array([t]), np.ones(1)) for e in eta]
        with np.errstate(under="ignore"):
            assert got == pytest.approx(-np.logaddexp(0, eta if t == 0 else -eta), rel=1e-14)


# -- separation and rank -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "y", "separated"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1], True),
        ([1, 2, 3, 4], [1, 1, 0, 0], True),
        ([1, 2, 2, 3], [0, 0, 1, 1], True),  # quasi: a tie across the boundary
        ([1, 3, 2, 4], [0, 0, 1, 1], False),
        ([1, 2 + 1e-9, 2, 3], [0, 0, 1, 1], False),  # overlap of a billionth: an extreme but finite slope
        ([1, 2, 3, 4], [1, 1, 1, 1], True),  # one class only
        ([1, 2, 3, 1e6], [0, 1, 0, 1], False),
        ([0, 0, 0, 1], [0, 1, 0, 1], True),  # quasi: a group in which all have the event
    ],
)
def test_separation_is_found_where_it_is_and_only_there(x, y, separated):
    x, y = np.array(x, float), np.array(y, float)
    for scale in (1.0, 1e6):
        fit = fit_logistic([np.ones(x.size), scale * x], y)
        assert fit.separated is separated
        assert fit.converged is not separated
        assert np.all(np.isfinite(fit.params))
        assert np.all(np.isnan(fit.covariance)) == separated


@pytest.mark.parametrize("seed", range(6))
def test_separation_in_two_dimensions_against_a_search_over_directions(seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        X = np.column_stack([rng.integers(-3, 4, (9, 2)), np.ones(9)]).astype(float)
        y = rng.integers(0, 2, 9).astype(float)
        m = X * (2 * y - 1)[:, None]
        # every extreme ray of the cone {d: m d >= 0} is orthogonal to two independent rows
        rays = [np.cross(m[i], m[j]) * sign for i in range(9) for j in range(i) for sign in (1, -1)]
        rank = np.linalg.matrix_rank(X)
        if rank < 3:
            continue
        exists = any(np.all(m @ d >= 0) and np.any(m @ d > 0) for d in rays)
        assert fit_logistic(X, y).separated is exists


def test_separation_of_many_rows_is_found_by_few_of_them():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=(100_000, 2)), np.ones(100_000)])
    y = (X @ [1.0, 2.0, 0.3] > 0).astype(float)
    assert fit_logistic(X, y).separated
    nearest = np.argmin(np.abs(X @ [1.0, 2.0, 0.3]))
    X[nearest], y[nearest] = [0.5, -2.0, 1.0], 1.0  # one row deep on the wrong side
    fit = fit_logistic(X, y)
    assert fit.converged
    assert not fit.separated


def test_fractional_targets_are_never_separated():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    t = np.array([1, 1, 3, 3]) / 4  # Platt's targets of a separated sample
    assert fit_logistic([np.ones(4), x], t).converged


@pytest.mark.parametrize("penalty", [None, "firth"])
def test_constant_score_leaves_the_slope_at_zero_and_says_so(penalty):
    y = np.array([1.0, 0, 0, 1, 0, 0, 0])
    fit = fit_logistic([np.ones(7), np.full(7, 0.3)], y, penalty=penalty)
    assert fit.rank == 1
    assert not fit.estimable.any()
    rate = (2.5 / 8) if penalty else 2 / 7
    assert fit.params == pytest.approx([logit(rate), 0.0], abs=ROUNDING)
    assert np.isnan(fit.covariance).all()
    assert np.isnan(profile_interval([np.ones(7), np.full(7, 0.3)], y, 1, fit)).all()


def test_duplicated_column_leaves_the_rest_estimable():
    y, X = sample()
    fit = fit_logistic([X[:, 0], X[:, 0], X[:, 2]], y)
    twin = fit_logistic([X[:, 0], X[:, 2]], y)
    assert fit.rank == 2
    assert fit.estimable.tolist() == [False, False, True]
    assert fit.params[:2].sum() == pytest.approx(twin.params[0], abs=1e-11)
    assert fit.params[2] == pytest.approx(twin.params[1], abs=1e-11)
    assert fit.covariance[2, 2] == pytest.approx(twin.covariance[1, 1], rel=1e-10)
    assert np.isnan(fit.covariance[:2]).all()


# -- bounds --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_bounds_give_the_constrained_optimum(seed):
    rng = np.random.default_rng(seed)
    _, X = sample(50, seed=seed)
    y = (rng.random(50) < expit(rng.normal() * X[:, 0] + rng.normal() * X[:, 1] + rng.normal())).astype(float)
    lower = np.array([0.0, 0.0, -np.inf])
    fit = fit_logistic(X, y, lower=lower)
    best = minimize(
        lambda b: -brute_loglik(X, y, b),
        np.array([0.5, 0.5, 0.0]),
        jac=lambda b: -X.T @ (y - expit(X @ b)),
        bounds=[(0, None), (0, None), (None, None)],
        method="L-BFGS-B",
        options={"ftol": 1e-15, "gtol": 1e-9},
    )
    assert fit.converged
    assert fit.llf >= -best.fun - 1e-9
    assert fit.params == pytest.approx(best.x, abs=2e-4)  # the accuracy of L-BFGS-B on a flat likelihood
    assert np.all(fit.params[:2] >= 0)
    assert np.all(fit.params[fit.at_bound] == 0)
    assert np.isnan(np.diag(fit.covariance)).tolist() == fit.at_bound.tolist()


def test_dropping_a_negative_term_once_is_not_enough():
    # freely a < 0; without a, b < 0 as well: both have to be held
    rng = np.random.default_rng(4)
    _, X = sample(300)
    y = (rng.random(300) < expit(-0.8 * (X[:, 0] + X[:, 1]))).astype(float)
    fit = fit_logistic(X, y, lower=np.array([0.0, 0.0, -np.inf]))
    assert fit.params == pytest.approx([0, 0, logit(y.mean())], abs=1e-12)
    assert fit.at_bound.tolist() == [True, True, False]


def test_data_that_separate_against_the_bound_have_a_finite_answer():
    x, y = np.arange(6.0), np.array([1.0, 1, 1, 0, 0, 0])
    fit = fit_logistic([np.ones(6), x], y, lower=np.array([-np.inf, 0.0]))
    assert fit.converged
    assert not fit.separated
    assert fit.params == pytest.approx([0.0, 0.0], abs=ROUNDING)
    along = fit_logistic([np.ones(6), x], 1 - y, lower=np.array([-np.inf, 0.0]))
    assert along.separated
    assert not along.converged


def test_inconsistent_bounds_are_an_error():
    y, X = sample(50)
    with pytest.raises(InputError, match="contradict"):
        fit_logistic(X, y, fixed=np.array([-1.0, np.nan, np.nan]), lower=np.array([0.0, 0.0, -np.inf]))


# -- Firth ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_firth_solves_the_modified_score_equations(seed):
    y, X = sample(40, seed=seed)
    w = np.random.default_rng(seed).integers(1, 4, 40).astype(float)
    fit = fit_logistic(X, y, weights=w, penalty="firth")
    q = expit(X @ fit.params)
    v = w * q * (1 - q)
    hat = v * np.einsum("ij,jk,ik->i", X, np.linalg.inv(X.T @ (v[:, None] * X)), X)
    assert X.T @ (w * (y - q) + hat * (0.5 - q)) == pytest.approx(0, abs=1e-10)  # Firth's own form
    assert fit.llf == pytest.approx(brute_loglik(X, y, fit.params, w), rel=ROUNDING)
    bonus = 0.5 * np.linalg.slogdet(X.T @ (v[:, None] * X))[1]
    assert fit.penalized_llf == pytest.approx(fit.llf + bonus, rel=1e-11)
    assert fit.information == pytest.approx(X.T @ (v[:, None] * X), rel=1e-11)
    assert fit.n_iter < 8  # a full Newton, from a good start


def test_firth_of_separated_data():
    x, y = np.arange(10.0), np.repeat([0.0, 1.0], 5)
    X = np.column_stack([np.ones(10), x])

    def objective(b):
        q = expit(X @ b)
        return -brute_loglik(X, y, b) - 0.5 * np.linalg.slogdet((X * (q * (1 - q))[:, None]).T @ X)[1]

    fit = fit_logistic(X, y, penalty="firth")
    best = minimize(objective, fit.params + 0.3, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-13})
    assert fit.params == pytest.approx(best.x, abs=1e-6)  # Nelder-Mead stops near the square root of eps
    assert fit.converged
    assert all(np.isfinite(profile_interval(X, y, j, fit)).all() for j in (0, 1))


@pytest.mark.parametrize("seed", [4, 17, 20, 32])
def test_firth_takes_the_highest_of_several_maxima(seed):
    p = np.clip(np.round(expit(np.linspace(-8, 8, 40)), 1), 1e-15, 1 - 1e-15)  # leverages 1 : 35^2
    X = np.column_stack([np.log(p), -np.log1p(-p)])
    rng = np.random.default_rng(seed)
    y = (rng.random(40) < (0.9 if seed % 2 else expit(0.3 * logit(p)))).astype(float)
    fit = fit_logistic(X, y, penalty="firth")
    sizes = np.geomspace(0.01, 4, 60)
    a, b = (axis.ravel() for axis in np.meshgrid(np.r_[-sizes, sizes], np.r_[-sizes, sizes]))
    eta = np.outer(a, X[:, 0]) + np.outer(b, X[:, 1])
    v = expit(eta) * expit(-eta)
    det = (v @ X[:, 0] ** 2) * (v @ X[:, 1] ** 2) - (v @ (X[:, 0] * X[:, 1])) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        heights = (y * eta - np.logaddexp(0, eta)).sum(axis=1) + 0.5 * np.log(det)
    assert fit.converged
    assert fit.penalized_llf >= np.nanmax(heights)
    assert fit.penalized_llf <= np.nanmax(heights) + 0.5  # the grid comes near


# -- score statistic -----------------------------------------------------------------------------------------


def test_score_statistics_by_hand_and_against_statsmodels():
    y, X = sample()
    s = X[:, 0] + X[:, 1]
    design = np.column_stack([np.ones_like(s), s])
    p = expit(s)
    u = design.T @ (y - p)
    by_hand = u @ np.linalg.solve((design * (p * (1 - p))[:, None]).T @ design, u)
    assert score_statistic(design, y, np.array([0.0, 1.0])) == (pytest.approx(by_hand, rel=1e-12), 2)
    one, df = score_statistic([np.ones_like(s)], y, np.zeros(1), offset=s)
    assert (one, df) == (pytest.approx((y - p).sum() ** 2 / (p * (1 - p)).sum(), rel=1e-12), 1)
    got, df = score_statistic(design, y, np.array([np.nan, 0.0]))
    null = glm(y, design[:, :1])
    ref = null.score_test(exog_extra=s[:, None])[0]
    assert (got, df) == (pytest.approx(float(np.squeeze(ref)), rel=1e-8), 1)


def test_fixed_coefficients_are_an_offset():
    y, X = sample()
    held = fit_logistic(X, y, fixed=np.array([1.0, np.nan, np.nan]))
    free = fit_logistic(X[:, 1:], y, offset=X[:, 0])
    assert held.params == pytest.approx([1.0, *free.params], abs=1e-12)
    assert held.covariance[1:, 1:] == pytest.approx(free.covariance, rel=1e-11)
    assert np.isnan(held.covariance[0]).all()


def test_score_rows_add_up_to_zero_at_the_optimum():
    y, X = sample()
    fit = fit_logistic(X, y)
    rows = score_rows(X, y, fit.params)
    assert rows == pytest.approx((y - expit(X @ fit.params))[:, None] * X, abs=1e-14)
    assert rows.sum(axis=0) == pytest.approx(0, abs=1e-10)


# -- profile limits ------------------------------------------------------------------------------------------


def fall(X, y, index, value, top, offset=0.0):
    rest = np.delete(X, index, axis=1)
    return 2 * (top - glm(y, rest, offset=offset + value * X[:, index]).llf)


@pytest.mark.parametrize("alpha", [0.05, 0.32])
@pytest.mark.parametrize("n", [40, 600])
def test_profile_limits_have_the_right_fall(n, alpha):
    y, X = sample(n)
    fit = fit_logistic(X, y)
    for index in range(3):
        low, high = profile_interval(X, y, index, fit, alpha)
        assert low < fit.params[index] < high
        for limit in (low, high):
            assert fall(X, y, index, limit, fit.llf) == pytest.approx(chi2.isf(alpha, 1), abs=1e-8)


def test_profile_of_a_contrast_mirrors_and_agrees_with_another_parametrisation():
    y, X = sample(100)
    fit = fit_logistic(X, y)
    low, high = profile_interval(X, y, 1, fit)
    assert profile_interval(X, y, np.array([0.0, -1.0, 0.0]), fit) == pytest.approx((-high, -low), rel=1e-10)
    turned = np.column_stack([X[:, 0], X[:, 1] - X[:, 0], X[:, 2]])  # second coefficient the same, first a + b
    other = fit_logistic(turned, y)
    assert profile_interval(X, y, np.array([1.0, 1.0, 0.0]), fit) == pytest.approx(
        profile_interval(turned, y, 0, other), rel=1e-9
    )


def test_profile_of_separated_data_is_infinite_on_one_side_only():
    x, y = np.arange(8.0), np.repeat([0.0, 1.0], 4)
    X = np.column_stack([np.ones(8), x])
    fit = fit_logistic(X, y)
    low, high = profile_interval(X, y, 1, fit)
    assert high == np.inf
    assert brentq(lambda b: fall(X, y, 1, b, 0.0) - chi2.isf(0.05, 1), 0.1, 3) == pytest.approx(low, abs=1e-7)
    assert profile_interval(X, 1 - y, 1, fit_logistic(X, 1 - y))[0] == -np.inf


def test_profile_of_firth_is_penalised():
    y, X = sample(30)
    fit = fit_logistic(X, y, penalty="firth")
    for index in range(3):
        for limit in profile_interval(X, y, index, fit):
            fixed = np.full(3, np.nan)
            fixed[index] = limit
            held = fit_logistic(X, y, fixed=fixed, penalty="firth")
            drop = 2 * (fit.penalized_llf - held.penalized_llf)
            assert drop == pytest.approx(chi2.isf(0.05, 1), abs=1e-8)


def test_profile_under_bounds_stops_at_the_bound():
    rng = np.random.default_rng(7)
    _, X = sample(300)
    y = (rng.random(300) < 0.4).astype(float)
    lower = np.array([0.0, 0.0, -np.inf])
    fit = fit_logistic(X, y, lower=lower)
    low, high = profile_interval(X, y, 0, fit, lower=lower)
    assert low == 0.0
    held = fit_logistic(X, y, fixed=np.array([high, np.nan, np.nan]), lower=lower)
    assert 2 * (fit.llf - held.llf) == pytest.approx(chi2.isf(0.05, 1), abs=1e-8)


def test_profile_of_an_intercept_at_its_bound():
    rng = np.random.default_rng(0)
    s = 1e5 + 1e4 * rng.normal(size=40)
    y = (rng.random(40) < 0.7).astype(float)
    lower = np.array([0.0, -np.inf])
    fit = fit_logistic([np.ones(40), -s], y, lower=lower)
    low, high = profile_interval([np.ones(40), -s], y, 0, fit, lower=lower)
    assert fit.params[0] >= low >= 0.0
    assert high > fit.params[0]


# -- manners -------------------------------------------------------------------------------------------------


def test_inputs_are_left_alone_and_rows_may_come_in_any_order():
    y, X = sample(500)
    w = np.random.default_rng(0).integers(0, 3, 500).astype(float)
    before = X.copy(), y.copy(), w.copy()
    fit = fit_logistic(X, y, weights=w)
    profile_interval(X, y, 0, fit, weights=w)
    for now, then in zip((X, y, w), before, strict=True):
        assert np.array_equal(now, then)
    order = np.random.default_rng(1).permutation(500)
    assert fit_logistic(X[order], y[order], weights=w[order]).params == pytest.approx(fit.params, abs=ROUNDING)


def test_stopping_early_is_told():
    y, X = sample()
    fit = fit_logistic(X, y, max_iter=2)
    assert not fit.converged
    assert not fit.separated


def test_blocks_do_not_change_the_answer(monkeypatch):
    y, X = sample(1000)
    whole = fit_logistic(X, y, penalty="firth")
    monkeypatch.setattr("calstat._arrays.binomial.BLOCK", 37)
    assert fit_logistic(X, y, penalty="firth").params == pytest.approx(whole.params, abs=ROUNDING)
