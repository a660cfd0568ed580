"""KS, Kuiper, kernel and CORP tests: closed forms, enumeration, stored references."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import isotonic_regression

from calstat._arrays import statistics
from calstat._arrays.pav import explained_square
from calstat.diagnostics import corp_test, kernel_test, ks, kuiper
from calstat.exceptions import InputError, NotEstimableWarning
from calstat.metrics import _kernel, score_decomposition

REFERENCE = json.loads((Path(__file__).parent / "reference" / "inference" / "binary.json").read_text())
P = np.array([0.1, 0.2, 0.2, 0.5, 0.6, 0.7, 0.8, 0.95])
Y = np.array([1, 0, 0, 1, 1, 0, 1, 1])
LABELS = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
CHANCE = np.prod(np.where(LABELS == 1, P, 1 - P), axis=1)


def arrays(name):
    data = REFERENCE[name]["data"]
    return np.array(data["y"]), np.array(data["p"])


def sample(seed, n=80):
    rng = np.random.default_rng(seed)
    p = rng.integers(1, 20, n) / 20
    return (rng.random(n) < p).astype(int), p, rng.integers(0, 4, n)


def naive_kernel(y, r, width):
    e = y - r
    return np.outer(e, e) * np.exp(-np.abs(r[:, None] - r) / width)


# -- KS and Kuiper -----------------------------------------------------------------------------------------------


def test_paths_by_hand():
    # sorted by p: residuals 0.8, -0.5, then the tie (0.2 + 0.2 - 2 * 0.6) read at its end
    y, p = np.array([1, 0, 1, 0]), np.array([0.2, 0.5, 0.6, 0.6])
    scale = np.sqrt(0.16 + 0.25 + 0.24 + 0.24)
    assert ks(y, p, rng=1).statistic == pytest.approx(0.8 / scale)
    assert kuiper(y, p, rng=1).statistic == pytest.approx(0.8 / scale)
    low = np.array([0, 0, 1, 0])
    assert ks(low, p, rng=1).statistic == pytest.approx(0.9 / scale)


def test_order_within_ties_is_void():
    y, p, _ = sample(1)
    for order in (np.argsort(y), np.argsort(-y), np.random.default_rng(1).permutation(80)):
        assert tuple(ks(y[order], p[order], method="asymptotic")) == pytest.approx(tuple(ks(y, p, method="asymptotic")))
        assert kuiper(y[order], p[order], rng=1).statistic == pytest.approx(kuiper(y, p, rng=1).statistic)


def test_laws_of_brownian_motion():
    # known quantiles: P(sup|B| > 2.2414) = 5% (twice the normal tail 1.25%, corrections below 1e-10), and simulation
    assert statistics.brownian_supremum_sf(2.241403) == pytest.approx(0.05, abs=1e-6)
    assert statistics.brownian_supremum_sf(0.5 - 1e-9) == pytest.approx(statistics.brownian_supremum_sf(0.5), rel=1e-6)
    assert statistics.brownian_supremum_sf(12.0) == pytest.approx(4 * stats.norm.sf(12.0), rel=1e-12)
    assert statistics.brownian_range_sf(12.0) == pytest.approx(8 * stats.norm.sf(12.0), rel=1e-12)
    # mean of the range: sqrt(8 / pi), by integrating the survival function
    x = np.linspace(0, 12, 4001)
    assert np.trapezoid([statistics.brownian_range_sf(v) for v in x], x) == pytest.approx(np.sqrt(8 / np.pi), rel=1e-5)
    assert np.trapezoid([statistics.brownian_supremum_sf(v) for v in x], x) == pytest.approx(
        np.sqrt(np.pi / 2), rel=1e-5
    )
    assert statistics.brownian_supremum_sf(0.0) == statistics.brownian_range_sf(0.0) == 1


@pytest.mark.parametrize("test", [ks, kuiper])
def test_cumulative_tests_drawn_are_the_enumeration(test):
    result = test(Y, P, n_resamples=20_000, rng=1)
    values = np.array([test(v, P, method="asymptotic").statistic for v in LABELS])
    # 20,000 draws give a p-value to 0.35%
    assert result.pvalue == pytest.approx(CHANCE[values >= result.statistic - 1e-10].sum(), abs=4 * 0.0035)
    assert result.method == "pseudo_label"


@pytest.mark.parametrize("test", [ks, kuiper])
def test_cumulative_tests_have_their_size(test):
    rng = np.random.default_rng(3)
    p = rng.random(2000)
    rejected = [test(rng.random(2000) < p, p).pvalue <= 0.05 for _ in range(1000)]
    # standard error 0.7%; the discrete path is a little below its limit
    assert 0.02 < np.mean(rejected) < 0.07


@pytest.mark.parametrize("test", [ks, kuiper])
def test_cumulative_tests_have_their_size_with_ties(test):
    # 10 values of p: the law of Brownian motion rejects 1.5% here. 600 samples: standard error 0.9%
    rng = np.random.default_rng(4)
    p = np.repeat(np.linspace(0.05, 0.95, 10), 400)
    results = [test(rng.random(4000) < p, p, n_resamples=199, rng=rng) for _ in range(600)]
    assert {r.method for r in results} == {"pseudo_label"}
    assert 0.03 < np.mean([r.pvalue <= 0.05 for r in results]) < 0.075


@pytest.mark.parametrize("test", [ks, kuiper])
def test_paths_of_rare_events_among_many_rows_are_drawn_by_cells(test):
    # 30,000 rows with 60 events: drawing rows in blocks gives the same law as drawing cells
    p = np.sort(np.random.default_rng(5).beta(0.5, 250, 30_000))
    y = (np.random.default_rng(6).random(30_000) < p).astype(int)
    result = test(y, p, n_resamples=2000, rng=1)
    assert result.method == "pseudo_label"
    rng = np.random.default_rng(7)
    values = [test(rng.random(30_000) < p, p, method="asymptotic").statistic for _ in range(2000)]
    assert stats.ks_2samp(result.draws, values).pvalue > 0.001
    assert np.mean(result.draws) == pytest.approx(np.mean(values), rel=0.03)


@pytest.mark.parametrize("test", [ks, kuiper, corp_test])
def test_cumulative_weights_are_copies(test):
    y, p, w = sample(2)
    options = {"n_resamples": 50, "rng": 1}
    weighted, repeated = test(y, p, freq_weights=w, **options), test(np.repeat(y, w), np.repeat(p, w), **options)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-10)
    assert weighted.nobs == repeated.nobs


@pytest.mark.parametrize("test", [ks, kuiper])
def test_certain_predictions_have_no_path(test):
    with pytest.warns(NotEstimableWarning, match="0 or 1") as caught:
        result = test([0, 1, 1], [0.0, 1.0, 1.0])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isnan(result.pvalue)


# -- CORP --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties", "syn_small"])
def test_corp_is_reliabilitydiag(name):
    y, p = arrays(name)
    wanted = REFERENCE[name]["reliabilitydiag"]
    test = corp_test(y, p, n_resamples=400, rng=1)
    assert test.statistic == pytest.approx(wanted["MCB"], rel=1e-10)
    assert test.statistic == pytest.approx(score_decomposition(y, p)["MCB"], rel=1e-10)
    if name != "syn_small":
        # R draws p again as well, whose ties lower MCB by some percent; at n = 20 that is a different null
        assert test.expected == pytest.approx(wanted["mcb_null_seed321"]["mean"], rel=0.1)


def test_corp_drawn_is_the_enumeration():
    values = np.array([score_decomposition(v, P)["MCB"] for v in LABELS])
    test = corp_test(Y, P, n_resamples=2000, rng=1)
    # 2000 draws give a p-value to 1.1%
    assert test.pvalue == pytest.approx(CHANCE[values >= test.statistic - 1e-10].sum(), abs=4 * 0.011)
    assert test.expected == pytest.approx(CHANCE @ values, abs=5 * test.draws.std() / np.sqrt(2000))


def test_pooled_runs_give_the_isotonic_fit():
    rng = np.random.default_rng(5)
    for count in (np.ones(400), rng.integers(1, 6, 400).astype(float)):
        rates = rng.binomial(count.astype(int), np.sort(rng.random(400))) / count
        fitted = isotonic_regression(rates, weights=count).x
        # sums of 400 terms in another order
        assert explained_square(rates * count, count) == pytest.approx(count @ fitted**2, rel=1e-12)
    assert explained_square(np.array([1.0, 0.0]), np.ones(2)) == 0.5


# -- kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["b1_p", "b2_p", "b4_p", "b4_p_rf"])
@pytest.mark.parametrize("which", ["bandwidth_0.2", "bandwidth_median"])
def test_kernel_estimators_are_the_independent_computation(name, which):
    y, p = arrays(name)
    wanted = REFERENCE[name]["skce_scalar"][which]
    width = 0.2 if which == "bandwidth_0.2" else REFERENCE[name]["skce_scalar"]["median_bandwidth"]
    unbiased = kernel_test(y, p, bandwidth=width, n_resamples=1, rng=1)
    # the sum of n^2 terms of both signs: rounding relative to the size of the terms
    assert unbiased.statistic == pytest.approx(wanted["skce_uq"], rel=1e-9, abs=1e-14)
    linear = kernel_test(y, p, bandwidth=width, estimator="linear", method="asymptotic")
    assert linear.statistic == pytest.approx(wanted["skce_ul"], rel=1e-11)
    assert linear.details["z"] == pytest.approx(wanted["linear_test"]["z_ddof1"], rel=1e-10)
    assert linear.pvalue == pytest.approx(wanted["linear_test"]["p_ddof1"], rel=1e-9)


def test_wild_bootstrap_has_its_conditional_variance():
    y, p = arrays("b1_p")
    h = naive_kernel(y, p, 0.2)
    np.fill_diagonal(h, 0)
    variance = 2 * (h**2).sum() / (400 * 399) ** 2
    wanted = REFERENCE["b1_p"]["skce_scalar"]["bandwidth_0.2"]["wild_bootstrap_moments"]["var"]
    assert variance == pytest.approx(wanted, rel=1e-10)
    strong = kernel_test(y, p, method="wild", rng=1)
    assert strong.pvalue == 0.001
    assert strong.distribution == "wild bootstrap"


@pytest.mark.parametrize("kind", ["wide", "rare"])
def test_draws_for_cells_have_the_law_of_draws_for_rows(kind, monkeypatch):
    rng = np.random.default_rng(3)
    r = np.sort(rng.beta(0.5, 24.5, 12_000) if kind == "rare" else rng.random(12_000))
    starts = _kernel._cells(r, 0.2)
    assert starts.size < r.size / 4
    # The variance of the sum over pairs, 2 Σ v_i v_j k_ij^2 with v = r (1 - r), in closed form for rows and cells.
    count = np.diff(starts, append=r.size)
    mean = np.add.reduceat(r, starts) / count
    rows = 4 * r * (1 - r) @ _kernel.decaying_sums(r, r * (1 - r), 0.1)
    v = count * mean * (1 - mean)
    cells = 4 * v @ _kernel.decaying_sums(mean, v, 0.1) + 2 * (count * (count - 1.0)) @ (mean * (1 - mean)) ** 2
    # the documented bound on the standard deviation is 1e-5, hence 2e-5 on the variance
    assert cells == pytest.approx(rows, rel=2e-5)
    pooled = _kernel.pair_sum_draws(r, 0.2, 3000, rng, 1 << 24)
    monkeypatch.setattr(_kernel, "_LEAST_ROWS", r.size)
    exact = _kernel.pair_sum_draws(r, 0.2, 1500, rng, 1 << 24)
    for a, b in zip(pooled, exact, strict=True):
        assert stats.ks_2samp(a, b).pvalue > 1e-3
    # 3000 draws of a skewed law with this variance: five standard errors of the standard deviation are some 12%
    assert pooled[0].std() == pytest.approx(np.sqrt(rows), rel=0.12)


def test_block_estimator_is_the_mean_over_blocks():
    y, p, _ = sample(4, 83)
    size = 9
    terms = []
    for b in range(9):
        rows = slice(b * size, (b + 1) * size)
        h = naive_kernel(y[rows], p[rows], 0.3)
        terms.append((h.sum() - np.trace(h)) / (size * (size - 1)))
    test = kernel_test(y, p, bandwidth=0.3, estimator="block", method="asymptotic")
    assert test.statistic == pytest.approx(np.mean(terms), rel=1e-10)
    assert test.details["z"] == pytest.approx(3 * np.mean(terms) / np.std(terms, ddof=1), rel=1e-10)
    drawn = kernel_test(y, p, bandwidth=0.3, estimator="block", n_resamples=20, rng=1)
    assert drawn.statistic == test.statistic


@pytest.mark.parametrize("estimator", ["unbiased", "linear", "block"])
def test_kernel_null_is_the_enumeration(estimator):
    values = []
    for v in LABELS:
        h = naive_kernel(v, P, 0.2)
        if estimator == "unbiased":
            values.append((h.sum() - np.trace(h)) / 56)
        else:  # with eight rows blocks hold two, as the linear estimator's pairs do
            values.append(np.mean([h[i, i + 1] for i in (0, 2, 4, 6)]))
    values = np.array(values)
    test = kernel_test(Y, P, estimator=estimator, n_resamples=20_000, rng=1)
    assert test.pvalue == pytest.approx(CHANCE[values >= test.statistic - 1e-10].sum(), abs=4 * 0.0035)
    assert test.expected == pytest.approx(0, abs=5 * test.draws.std() / np.sqrt(20_000))


def test_kernel_weights_are_copies():
    y, p, w = sample(5)
    weighted = kernel_test(y, p, freq_weights=w, n_resamples=50, rng=1)
    repeated = kernel_test(np.repeat(y, w), np.repeat(p, w), n_resamples=50, rng=1)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-9)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"estimator": "biased"}, "estimator"),
        ({"method": "asymptotic"}, "normal law"),
        ({"bandwidth": 0}, "bandwidth"),
        ({"y": [1, 0], "p": [0.4, 0.3], "estimator": "linear"}, "at least 4 rows"),
        ({"y": [1], "p": [0.4]}, "at least 2 rows"),
    ],
)
def test_kernel_errors_name_the_argument(options, words):
    with pytest.raises(InputError, match=words):
        kernel_test(**{"y": Y, "p": P, **options})
