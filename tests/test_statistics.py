"""Array statistics: closed forms, brute force, weights as repetition."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calstat._arrays import statistics

REFERENCE = json.loads((Path(__file__).parent / "reference" / "inference" / "binary.json").read_text())
R_SETS = ["pima_train", "syn_bin", "syn_ties"]


def arrays(name):
    data = REFERENCE[name]["data"]
    return np.array(data["y"]), np.array(data["p"])


def sums(y, p, index):
    """Rows, events and expected events by group, and Pearson's statistic over groups and outcomes."""
    nobs, observed, expected = (np.bincount(index, weights=v) for v in (np.ones(y.size), y, p))
    return nobs, observed, expected, pearson(observed, expected, nobs)


def pearson(observed, expected, nobs):
    return statistics.pearson(observed, expected, nobs) + statistics.pearson(nobs - observed, nobs - expected, nobs)


def random_sample(seed, n=60, levels=12):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, levels, n) / levels
    return (rng.random(n) < p).astype(float), p, rng.integers(0, 4, n).astype(float)


@pytest.mark.parametrize("name", R_SETS)
def test_concordance_is_proc(name):
    # closed forms on both sides: rounding only
    c = statistics.concordance(*arrays(name))
    assert c.estimate == pytest.approx(REFERENCE[name]["pROC"]["auc"], rel=1e-13)
    assert c.variance == pytest.approx(REFERENCE[name]["pROC"]["var_delong"], rel=1e-12)
    assert np.sqrt(c.variance) == pytest.approx(REFERENCE[name]["riskRegression"]["auc"]["se"], rel=1e-12)


def test_concordance_is_the_count_of_pairs():
    y, p, _ = random_sample(3)
    pairs = [(a > b) + 0.5 * (a == b) for a, b in itertools.product(p[y == 1], p[y == 0])]
    assert statistics.concordance(y, p).estimate == pytest.approx(np.mean(pairs), rel=1e-14)


def test_concordance_without_pairs_is_nan():
    one = statistics.concordance(np.ones(3), np.array([0.2, 0.3, 0.4]))
    assert np.isnan(one.estimate)
    assert np.isnan(one.variance)
    two = statistics.concordance(np.array([1.0, 0, 0]), np.array([0.9, 0.3, 0.4]))
    assert two.estimate == 1.0
    assert np.isnan(two.variance)


@pytest.mark.parametrize("name", [*R_SETS, "syn_small"])
def test_spiegelhalter_is_the_formula_in_r(name):
    wanted = REFERENCE[name]["glm"]["spiegelhalter"]
    got = statistics.spiegelhalter(*arrays(name))
    assert got.z == pytest.approx(wanted["z"], rel=1e-12, abs=1e-12)
    assert got.expected == pytest.approx(wanted["brier_expected"], rel=1e-13)
    assert got.std == pytest.approx(wanted["brier_se_H0"], rel=1e-13)


def test_spiegelhalter_of_an_impossible_outcome_is_infinite():
    assert statistics.spiegelhalter(np.array([1.0, 0.0]), np.array([0.0, 0.5])).z == np.inf


@pytest.mark.parametrize("name", R_SETS)
@pytest.mark.parametrize("groups", [5, 8, 10, 20])
def test_quantile_groups_are_those_of_r(name, groups):
    y, p = arrays(name)
    wanted = REFERENCE[name]["hosmer_lemeshow"][f"ResourceSelection_g{groups}"]
    edges, index = statistics.quantile_groups(p, groups)
    nobs, _, expected, statistic = sums(y, p, index)
    np.testing.assert_allclose(edges, wanted["breaks"], rtol=1e-14)
    np.testing.assert_array_equal(nobs, wanted["n"])
    np.testing.assert_allclose(expected, wanted["exp1"], rtol=1e-12)
    assert statistic == pytest.approx(wanted["chisq"], rel=1e-12)


def test_heavy_ties_group_as_in_r():
    y, p = arrays("b2_p")
    wanted = REFERENCE["b2_p"]["hosmer_lemeshow_deciles_type7"]
    edges, index = statistics.quantile_groups(p, 10)
    nobs, observed, _, statistic = sums(y, p, index)
    # R's own edges are an ulp off the observed values (0.82 becomes 0.8200000000000004)
    np.testing.assert_allclose(edges, wanted["edges"], atol=1e-14)
    np.testing.assert_array_equal(nobs, wanted["n"])
    np.testing.assert_array_equal(observed, wanted["observed"])
    # the last group expects no non-event and holds two: R's sum has 0/0 in the first group and gives NaN
    assert statistic == np.inf


def test_constant_scores_make_one_group():
    edges, index = statistics.quantile_groups(np.full(7, 0.3), 10)
    np.testing.assert_array_equal(edges, [0.3, 0.3])
    assert index.max() == 0


def test_hosmer_lemeshow_of_certain_cells():
    n = np.array([4.0, 4.0])
    assert pearson(np.array([0.0, 2.0]), np.array([0.0, 2.0]), n) == 0
    assert pearson(np.array([1.0, 2.0]), np.array([0.0, 2.0]), n) == np.inf
    assert pearson(np.array([3.0, 2.0]), np.array([4.0, 2.0]), n) == np.inf


@pytest.mark.parametrize("name", [*R_SETS, "syn_small"])
def test_score_tests_are_those_of_r(name):
    y, p = arrays(name)
    x = np.column_stack([np.ones_like(p), np.log(p / (1 - p))])
    joint = statistics.binary_score_test(y, p, x)
    large = statistics.binary_score_test(y, p, x[:, :1])
    # the scores of a model on its own training data vanish, so the statistics are rounding noise there
    assert joint.statistic == pytest.approx(REFERENCE[name]["glm"]["score_joint"]["chisq"], rel=1e-10, abs=1e-12)
    assert large.statistic == pytest.approx(REFERENCE[name]["glm"]["score_citl"]["chisq"], rel=1e-10, abs=1e-12)
    assert joint.rank == 2
    assert np.sum((joint.factor.T @ joint.score) ** 2) == pytest.approx(joint.statistic, rel=1e-12, abs=1e-20)


def test_score_test_knows_its_rank_in_any_units():
    y, p, _ = random_sample(4)
    x = np.column_stack([np.ones_like(p), p, 2 - 3 * p])
    full = statistics.binary_score_test(y, p, x[:, :2])
    for scale in (1.0, 1e-9, 1e9):
        test = statistics.binary_score_test(y, p, x * np.array([1.0, scale, 1.0]))
        assert test.rank == 2
        assert test.statistic == pytest.approx(full.statistic, rel=1e-8)


def test_score_test_without_variance_has_rank_zero():
    test = statistics.binary_score_test(np.array([0.0, 1.0]), np.array([0.0, 1.0]), np.ones((2, 1)))
    assert test.rank == 0


def test_log_likelihood_of_certain_predictions():
    assert statistics.log_likelihood(np.array([0.0, 1.0]), np.array([0.0, 1.0])) == 0.0
    assert statistics.log_likelihood(np.array([1.0]), np.array([0.0])) == -np.inf


def test_observed_to_expected_error_is_that_of_a_ratio():
    # simulation: the standard deviation of log(O/E) over samples, 4000 draws (1.1% error), n large enough for the delta
    # method to be 2% off at most
    rng = np.random.default_rng(11)
    draws, errors = [], []
    for _ in range(4000):
        p = rng.beta(1, 3, 400)
        ratio, se = statistics.observed_to_expected((rng.random(400) < p).astype(float), p)
        draws.append(np.log(ratio))
        errors.append(se)
    assert np.mean(errors) == pytest.approx(np.std(draws), rel=0.05)


def test_observed_to_expected_without_events():
    ratio, se = statistics.observed_to_expected(np.zeros(3), np.full(3, 0.2))
    assert ratio == 0
    assert np.isnan(se)
    assert np.isnan(statistics.observed_to_expected(np.zeros(3), np.zeros(3))[0])


@pytest.mark.parametrize("name", R_SETS)
def test_mean_and_error_of_the_brier_score(name):
    y, p = arrays(name)
    mean, se = statistics.mean_and_error((y - p) ** 2)
    assert mean == pytest.approx(REFERENCE[name]["riskRegression"]["brier"], rel=1e-13)
    assert se == pytest.approx(REFERENCE[name]["riskRegression"]["brier_se"], rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_weights_are_copies(seed):
    y, p, w = random_sample(seed)
    copies = w.astype(int)
    rows = (np.repeat(y, copies), np.repeat(p, copies))
    x = np.column_stack([np.ones_like(p), p])
    for weighted, repeated in (
        (statistics.concordance(y, p, w), statistics.concordance(*rows)),
        (statistics.spiegelhalter(y, p, w), statistics.spiegelhalter(*rows)),
    ):
        for name in weighted.__slots__:
            assert getattr(weighted, name) == pytest.approx(getattr(repeated, name), rel=1e-9, nan_ok=True)
    np.testing.assert_array_equal(statistics.quantile_groups(p, 7, w)[0], statistics.quantile_groups(rows[1], 7)[0])
    assert statistics.binary_score_test(y, p, x, w).statistic == pytest.approx(
        statistics.binary_score_test(*rows, np.repeat(x, copies, axis=0)).statistic, rel=1e-8, abs=1e-12
    )
    assert statistics.mean_and_error(p, w) == pytest.approx(statistics.mean_and_error(rows[1]), rel=1e-9)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 40))
def test_weighted_quantiles_are_numpys(seed, n):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    q = np.arange(11) / 10
    np.testing.assert_allclose(statistics.weighted_order_quantile(p, q, None), np.quantile(p, q), rtol=1e-9, atol=1e-12)


def test_spiegelhalter_is_normal_under_the_null():
    # 4000 samples of 200: the size at 5% has a Monte Carlo error of 0.35%
    rng = np.random.default_rng(2)
    p = rng.beta(2, 3, 200)
    z = [statistics.spiegelhalter((rng.random(200) < p).astype(float), p).z for _ in range(4000)]
    assert np.mean(np.abs(z) > stats.norm.isf(0.025)) == pytest.approx(0.05, abs=4 * 0.0035)
