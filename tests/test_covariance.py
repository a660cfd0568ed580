"""Covariances on arrays: statsmodels, R's sandwich, repetition, brute force."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import statsmodels.api as sm
from scipy import stats
from scipy.special import expit, logit

from calstat._arrays.covariance import (
    chi2_sf,
    delta_method,
    delta_variance,
    lr_form,
    normal_quantile,
    normal_two_sided,
    sandwich,
    standard_errors,
    wald_form,
)
from calstat._arrays.logistic import fit_logistic, score_rows
from calstat.exceptions import InputError

REFERENCE = Path(__file__).parent / "reference" / "binary"
ENGINE = 1e-8  # statsmodels and R stop at their own tolerances
ROUNDING = 1e-11


@pytest.fixture(scope="module")
def clustered():
    rng = np.random.default_rng(11)
    n = 900
    groups = rng.integers(0, 30, n)
    s = rng.normal(size=n)
    y = (rng.random(n) < expit(0.8 * s + 0.6 * rng.normal(size=30)[groups])).astype(float)
    X = np.column_stack([np.ones(n), s])
    return y, X, groups, rng.integers(0, 4, n).astype(float)


def test_sandwiches_agree_with_statsmodels(clustered):
    y, X, groups, _ = clustered
    fit = fit_logistic(X, y)
    scores = score_rows(X, y, fit.params)
    model = sm.GLM(y, X, family=sm.families.Binomial())

    def ref(kind, **options):
        return model.fit(tol=1e-15, tol_criterion="params", cov_type=kind, cov_kwds=options or None).cov_params()

    assert sandwich(scores, fit.covariance, "HC0") == pytest.approx(ref("HC0"), rel=ENGINE)
    got = sandwich(scores, fit.covariance, "cluster", groups=groups)
    assert got == pytest.approx(ref("cluster", groups=groups), rel=ENGINE)


def test_sandwiches_agree_with_r():
    data = json.loads((REFERENCE / "clustered.json").read_text())
    y, p, groups = (np.array(data["inputs"][name]) for name in ("y", "p", "cluster"))
    groups = groups.astype(np.int64) - 1
    n, count = y.size, 24
    ones = np.ones(n)
    slope = fit_logistic([ones, logit(p)], y)
    level = fit_logistic([ones], y, offset=logit(p))
    s2 = score_rows([ones, logit(p)], y, slope.params)
    s1 = score_rows([ones], y, level.params, offset=logit(p))
    R = data["outputs"]
    assert slope.params == pytest.approx(R["glm"]["coef"], rel=ENGINE)
    assert standard_errors(slope.covariance) == pytest.approx(R["glm"]["se_model"], rel=ENGINE)
    assert level.params[0] == pytest.approx(R["glm"]["citl"], rel=ENGINE)
    assert standard_errors(level.covariance)[0] == pytest.approx(R["glm"]["citl_se"], rel=ENGINE)
    assert sandwich(s2, slope.covariance, "HC0") == pytest.approx(np.array(R["sandwich_HC0"]["vcov"]), rel=ENGINE)
    assert standard_errors(sandwich(s2, slope.covariance, "HC0")) == pytest.approx(R["sandwich_HC0"]["se"], rel=ENGINE)
    assert standard_errors(sandwich(s2, slope.covariance, "HC1")) == pytest.approx(R["sandwich_HC1"], rel=ENGINE)
    # R's four cluster covariances differ by factors only; ours is HC1 with cadjust
    for scores, fit, k, read in ((s2, slope, 2, "se"), (s1, level, 1, "citl_se")):
        ours = standard_errors(sandwich(scores, fit.covariance, "cluster", groups=groups))
        adjust, small = count / (count - 1), (n - 1) / (n - k)
        for name, factor in (
            ("sandwich_vcovCL_HC1_cadjustTRUE", 1.0),
            ("sandwich_vcovCL_HC0_cadjustTRUE", small),
            ("sandwich_vcovCL_HC1_cadjustFALSE", adjust),
            ("sandwich_vcovCL_HC0_cadjustFALSE", adjust * small),
        ):
            wanted = np.atleast_1d(R[name][read])
            assert ours / np.sqrt(factor) == pytest.approx(wanted, rel=ENGINE)


def test_case_weights_agree_with_r():
    data = json.loads((REFERENCE / "clustered.json").read_text())
    y, p, w, groups = (np.array(data["inputs"][name]) for name in ("y", "p", "w", "cluster"))
    X = [np.ones(y.size), logit(p)]
    fit = fit_logistic(X, y, weights=w)
    R = data["outputs"]
    assert fit.params == pytest.approx(R["glm_weighted"]["coef"], rel=ENGINE)
    assert standard_errors(fit.covariance) == pytest.approx(
        R["glm_weighted"]["se_treating_w_as_case_counts"], rel=ENGINE
    )
    # survey's linearisation sums w s within clusters as we do; factor G / (G - 1) only
    got = sandwich(score_rows(X, y, fit.params), fit.covariance, "cluster", weights=w, groups=groups.astype(int) - 1)
    n = w.sum()
    survey = standard_errors(got / ((n - 1) / (n - 2)))
    assert survey == pytest.approx(R["svyglm_cluster_weights"]["se"], rel=ENGINE)


@pytest.mark.parametrize("kind", ["HC0", "HC1", "cluster"])
def test_weights_are_repetition(clustered, kind):
    y, X, groups, w = clustered
    rows = np.repeat(np.arange(y.size), w.astype(int))
    fit = fit_logistic(X, y, weights=w)
    twin = fit_logistic(X[rows], y[rows])
    got = sandwich(score_rows(X, y, fit.params), fit.covariance, kind, weights=w, groups=groups)
    want = sandwich(score_rows(X[rows], y[rows], twin.params), twin.covariance, kind, groups=groups[rows])
    assert got == pytest.approx(want, rel=ROUNDING)


def test_single_row_clusters_are_hc1_and_absent_clusters_do_not_count(clustered):
    y, X, _, _ = clustered
    fit = fit_logistic(X, y)
    scores = score_rows(X, y, fit.params)
    each = sandwich(scores, fit.covariance, "cluster", groups=np.arange(y.size))
    assert each == pytest.approx(sandwich(scores, fit.covariance, "HC1"), rel=ROUNDING)
    w = np.ones(y.size)
    w[:400] = 0
    part = sandwich(scores, fit.covariance, "cluster", weights=w, groups=np.arange(y.size))
    assert part == pytest.approx(sandwich(scores[400:], fit.covariance, "HC1"), rel=ROUNDING)


def test_sandwich_in_the_open(clustered):
    _, _, groups, w = clustered
    rng = np.random.default_rng(1)
    scores, half = rng.normal(size=(900, 3)), rng.normal(size=(3, 3))
    bread = half @ half.T
    meat = sum(w[i] * np.outer(scores[i], scores[i]) for i in range(900))
    n = w.sum()
    assert sandwich(scores, bread, "HC0", weights=w) == pytest.approx(bread @ meat @ bread, rel=ROUNDING)
    got = sandwich(scores, bread, "HC1", weights=w, edf=1.7)
    assert got == pytest.approx(bread @ meat @ bread * n / (n - 1.7), rel=ROUNDING)
    totals = [sum(w[i] * scores[i] for i in np.flatnonzero(groups == g)) for g in range(30)]
    meat = sum(np.outer(t, t) for t in totals)
    factor = 30 / 29 * (n - 1) / (n - 1.7)
    got = sandwich(scores, bread, "cluster", weights=w, groups=groups, edf=1.7)
    assert got == pytest.approx(bread @ meat @ bread * factor, rel=1e-10)
    bread[1], bread[:, 1] = np.nan, np.nan
    got = sandwich(scores, bread, "HC0")
    assert np.isnan(got[1]).all()
    keep = np.ix_([0, 2], [0, 2])
    assert got[keep] == pytest.approx(bread[keep] @ (scores.T @ scores)[keep] @ bread[keep], rel=ROUNDING)


def test_clusters_must_be_given_and_be_two():
    scores, bread = np.ones((3, 1)), np.ones((1, 1))
    with pytest.raises(InputError, match="groups"):
        sandwich(scores, bread, "cluster")
    with pytest.raises(InputError, match="at least 2 clusters"):
        sandwich(scores, bread, "cluster", groups=np.zeros(3, dtype=int))


def test_no_degrees_of_freedom_left_is_nan():
    assert np.isnan(sandwich(np.ones((1, 1)), np.ones((1, 1)), "HC1")).all()


def test_wald_form_by_hand_and_under_redundancy():
    rng = np.random.default_rng(0)
    half = rng.normal(size=(3, 3))
    V, b = half @ half.T, rng.normal(size=3)
    by_hand = b @ np.linalg.solve(V, b)
    assert wald_form(b, V, np.eye(3)) == (
        pytest.approx(by_hand, rel=1e-10),
        3,
        pytest.approx(stats.chi2.sf(by_hand, 3), rel=1e-9),
    )
    R, q = np.array([[1.0, -1.0, 0.0]]), np.array([0.3])
    by_hand = (b[0] - b[1] - 0.3) ** 2 / (V[0, 0] + V[1, 1] - 2 * V[0, 1])
    assert wald_form(b, V, R, q).statistic == pytest.approx(by_hand, rel=1e-11)
    repeated = wald_form(b, V, np.vstack([R, 5 * R]), np.array([0.3, 1.5]))
    assert (repeated.statistic, repeated.df) == (pytest.approx(by_hand, rel=1e-10), 1)
    assert np.isnan(wald_form(b, V, np.vstack([R, 5 * R]), np.array([0.3, 1.0])).statistic)  # contradiction


def test_wald_form_of_an_overcomplete_covariance():
    # centred parameters: rank 2 of 3
    C = np.eye(3) - 1 / 3
    V, b = C @ np.diag([1.0, 2.0, 3.0]) @ C, C @ np.array([0.5, -0.2, 1.0])
    got = wald_form(b, V, np.eye(3))
    assert got.df == 2
    assert got.statistic == pytest.approx(b @ np.linalg.pinv(V) @ b, rel=1e-10)


def test_wald_form_needs_only_what_the_hypothesis_names():
    V = np.diag([np.nan, 4.0])
    V[0, 1] = V[1, 0] = np.nan
    assert wald_form(np.array([9.0, 2.0]), V, np.array([0.0, 1.0])).statistic == pytest.approx(1.0)
    assert np.isnan(wald_form(np.array([9.0, 2.0]), V, np.array([1.0, 1.0])).statistic)


def test_delta_method():
    rng = np.random.default_rng(0)
    D, half = rng.normal(size=(5, 3)), rng.normal(size=(3, 3))
    V = half @ half.T
    assert delta_method(D, V) == pytest.approx(D @ V @ D.T, rel=ROUNDING)
    assert delta_variance(D, V) == pytest.approx(np.diag(D @ V @ D.T), rel=ROUNDING)
    V[1], V[:, 1] = np.nan, np.nan
    D[2, 1] = 0.0
    assert np.isfinite(delta_variance(D, V)).tolist() == [False, False, True, False, False]
    assert np.isfinite(np.diag(delta_method(D, V))).tolist() == [False, False, True, False, False]


def test_tails_come_from_the_tails():
    assert normal_two_sided(np.array([-1.0, 37.0])) == pytest.approx(2 * stats.norm.sf([1.0, 37.0]), rel=1e-12)
    assert normal_two_sided(np.array([37.0])) > 0
    assert chi2_sf(1400.0, 1) == pytest.approx(stats.chi2.sf(1400.0, 1), rel=1e-10)
    assert chi2_sf(-1e-15, 2) == 1.0
    assert np.isnan(chi2_sf(1.0, 0))
    assert normal_quantile(0.05) == pytest.approx(1.959963984540054, rel=1e-15)
    assert lr_form(-10.0, -10.0 + 1e-12, 1) == (0.0, 1, 1.0)
    assert lr_form(-10.0, -12.0, 1).pvalue == pytest.approx(stats.chi2.sf(4.0, 1), rel=1e-12)
