"""The battery, calibration by groups and the comparison of forecasts."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

import calstat as cs
from calstat._arrays.binning import bin_table, equal_width_edges
from calstat.exceptions import InputError

REFERENCE = json.loads((Path(__file__).parent / "reference" / "inference" / "binary.json").read_text())


def binary(seed, n=400, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 2, n)
    return (rng.random(n) < p**power).astype(int), p


# -- battery -----------------------------------------------------------------------------------------------------


def test_battery_holds_each_test_as_it_stands_alone():
    y, p = binary(1, 800)
    battery = cs.calibration_tests(y, p, n_resamples=99, rng=1)
    frame = battery.to_frame()
    assert len(frame) == 10
    assert frame.index.is_unique
    for name, alone in [
        ("Logistic recalibration", cs.recalibration_test(y, p)),
        ("Spiegelhalter", cs.spiegelhalter(y, p)),
        ("Hosmer-Lemeshow", cs.hosmer_lemeshow(y, p)),
    ]:
        assert frame.loc[name, "statistic"] == pytest.approx(alone.statistic)
        if alone.method != "pseudo_label":
            assert frame.loc[name, "pvalue"] == pytest.approx(alone.pvalue)
    assert frame.loc["CORP miscalibration", "statistic"] == cs.corp_test(y, p, n_resamples=1).statistic
    assert [t.statistic for t in battery] == frame["statistic"].tolist()


def test_battery_holm_is_statsmodels():
    y, p = binary(2, 300, 1.3)
    frame = cs.calibration_tests(y, p, n_resamples=99, rng=1).to_frame()
    wanted = sm.stats.multipletests(frame["pvalue"], method="holm")[1]
    np.testing.assert_allclose(frame["pvalue_holm"], wanted, rtol=1e-12)


def test_battery_stops_the_draws_of_what_is_clearly_calibrated():
    y, p = binary(2, 300)
    tests = {t.name: t for t in cs.calibration_tests(y, p, n_resamples=5000, stop_after=5, rng=1)}
    for name in ("SKCE (unbiased)", "CORP miscalibration", "Pseudo-label test"):
        assert tests[name].details["n_resamples"] < 5000
        assert tests[name].pvalue == 5 / tests[name].details["n_resamples"]
    alone = cs.corp_test(y, p, n_resamples=5000, stop_after=5, rng=3)
    whole = cs.corp_test(y, p, n_resamples=5000, rng=3)
    np.testing.assert_array_equal(alone.draws, whole.draws[: alone.draws.size])


def test_battery_leaves_out_what_cannot_be_computed():
    y = np.r_[np.zeros(30), np.ones(30)]
    with pytest.warns(cs.exceptions.NotEstimableWarning, match="Spiegelhalter"):
        frame = cs.calibration_tests(y, np.full(60, 0.5), n_resamples=99, rng=1).to_frame()
    assert np.isnan(frame.loc["Spiegelhalter", "pvalue_holm"])
    assert frame["pvalue_holm"].notna().sum() == 9


def test_battery_of_a_matrix_does_not_depend_on_the_order_of_classes():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), 200)
    y = np.array(["x", "y", "z"])[(rng.random((200, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)]
    table = pd.DataFrame(P, columns=["x", "y", "z"])
    one = cs.calibration_tests(y, table, n_resamples=99, rng=1).to_frame()
    other = cs.calibration_tests(y, table[["z", "x", "y"]], n_resamples=99, rng=1).to_frame()
    np.testing.assert_allclose(one["statistic"], other["statistic"], rtol=1e-9)
    assert len(one) == 7
    alone = cs.kernel_test(y, table, n_resamples=1, rng=1)
    assert one.loc["SKCE, all classes (unbiased)", "statistic"] == pytest.approx(alone.statistic, rel=1e-12)
    assert "agree among neighbours" in one.loc["SKCE, all classes (unbiased)", "sees"]


def test_battery_of_many_rows_of_a_matrix_takes_pairs_in_blocks():
    rng = np.random.default_rng(31)
    P = rng.dirichlet(np.ones(3), 400)
    y = (rng.random((400, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
    w = np.full(400, 26)
    frame = cs.calibration_tests(y, P, freq_weights=w, n_resamples=19, rng=1).to_frame()
    alone = cs.kernel_test(y, P, freq_weights=w, estimator="block", method="asymptotic")
    assert frame.loc["SKCE, all classes (block)", "pvalue"] == pytest.approx(alone.pvalue)


def test_battery_weights_are_copies_and_it_prints():
    y, p = binary(4, 100)
    w = np.random.default_rng(1).integers(0, 4, 100)
    weighted = cs.calibration_tests(y, p, freq_weights=w, n_resamples=19, rng=1)
    repeated = cs.calibration_tests(np.repeat(y, w), np.repeat(p, w), n_resamples=19, rng=1)
    np.testing.assert_allclose(
        weighted.to_frame()["statistic"], repeated.to_frame()["statistic"], rtol=1e-8, atol=1e-12
    )
    text = str(weighted)
    for word in ("p (Holm)", "Kuiper", "was not fitted on these rows", "SKCE (unbiased) sees"):
        assert word in text
    assert "<table" in weighted.summary().as_html()


def test_battery_rejects_five_percent_of_calibrated_predictions_at_most():
    # 60 samples, family-wise at 5%: standard error 2.8%
    rng = np.random.default_rng(5)
    p = rng.beta(1, 2, 150)
    smallest = [
        cs.calibration_tests(rng.random(150) < p, p, n_resamples=219, rng=rng).to_frame()["pvalue_holm"].min()
        for _ in range(60)
    ]
    assert np.mean(np.array(smallest) <= 0.05) <= 0.05 + 4 * 0.028


# -- by group ----------------------------------------------------------------------------------------------------


def test_by_group_is_each_group_alone():
    y, p = binary(6, 600)
    site = np.random.default_rng(1).choice(["north", "south", "east"], 600)
    result = cs.calibration_by(y, p, site, rng=1)
    assert list(result.table.index) == ["east", "north", "south"]
    inside = site == "north"
    row = result.table.loc["north"]
    alone = cs.val_prob(y[inside], p[inside])
    assert row["nobs"] == inside.sum()
    assert row["events"] == y[inside].sum()
    assert row["Slope"] == pytest.approx(alone.loc["Slope", "estimate"])
    assert row["O/E low"] == pytest.approx(alone.loc["O/E", "ci_low"])
    assert row["ece"] == pytest.approx(cs.ece(y[inside], p[inside]))
    assert row["ece low"] <= row["ece"]
    assert "One map for all groups" in str(result)


def test_by_group_likelihood_ratio_is_statsmodels():
    y, p = binary(7, 500)
    site = np.random.default_rng(2).integers(0, 3, 500)
    x = np.log(p / (1 - p))
    one = sm.Logit(y, np.column_stack([np.ones(500), x])).fit(disp=0, tol=1e-12)
    columns = [(site == k) * c for k in range(3) for c in (np.ones(500), x)]
    each = sm.Logit(y, np.column_stack(columns)).fit(disp=0, tol=1e-12)
    test = cs.calibration_by(y, p, site, rng=1).test
    assert test.statistic == pytest.approx(2 * (each.llf - one.llf), rel=1e-8)
    assert test.df == 4
    assert test.pvalue == pytest.approx(stats.chi2.sf(test.statistic, 4))


def test_by_group_weights_are_copies():
    y, p = binary(8, 200)
    site = np.random.default_rng(3).integers(0, 2, 200)
    w = np.random.default_rng(4).integers(0, 3, 200)
    weighted = cs.calibration_by(y, p, site, freq_weights=w, rng=1)
    repeated = cs.calibration_by(np.repeat(y, w), np.repeat(p, w), np.repeat(site, w), rng=1)
    pd.testing.assert_frame_equal(weighted.table, repeated.table, rtol=1e-8)
    assert weighted.test.statistic == pytest.approx(repeated.test.statistic, rel=1e-8)


def test_by_group_with_a_separated_group():
    y, p = binary(9, 100)
    site = np.repeat(["a", "b"], 50)
    y[50:] = p[50:] > 0.3
    test = cs.calibration_by(y, p, site, rng=1).test
    assert np.isnan(test.pvalue)
    assert "b" in test.note
    with pytest.raises(InputError, match="two groups"):
        cs.calibration_by(y, p, np.zeros(100))


# -- comparison --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", ["brier", "log"])
def test_comparison_is_the_paired_t_test(score):
    y, p = binary(10)
    q = np.full(400, y.mean())
    test = cs.compare_forecasts(y, p, q, score=score)
    rows = (
        [(y - v) ** 2 for v in (p, q)]
        if score == "brier"
        else [-(y * np.log(v) + (1 - y) * np.log(1 - v)) for v in (p, q)]
    )
    wanted = stats.ttest_rel(*rows)
    assert test.statistic == pytest.approx(wanted.statistic, rel=1e-10)
    assert test.details["difference"] == pytest.approx(rows[0].mean() - rows[1].mean())
    assert test.details["ci_high"] - test.details["ci_low"] == pytest.approx(
        2 * 1.959964 * test.details["se"], rel=1e-6
    )
    metric = cs.brier_score if score == "brier" else cs.log_loss
    assert test.details["score1"] == pytest.approx(metric(y, p))
    turned = cs.compare_forecasts(y, q, p, score=score)
    assert turned.statistic == pytest.approx(-test.statistic)


def test_comparison_of_clusters_and_of_weights():
    y, p = binary(11, 100)
    q = np.sqrt(p)
    once = cs.compare_forecasts(y, p, q)
    tiled = cs.compare_forecasts(np.tile(y, 3), np.tile(p, 3), np.tile(q, 3), groups=np.tile(np.arange(100), 3))
    # three copies in one cluster add nothing
    assert tiled.statistic == pytest.approx(once.statistic, rel=1e-10)
    weighted = cs.compare_forecasts(y, p, q, freq_weights=np.full(100, 3))
    repeated = cs.compare_forecasts(np.repeat(y, 3), np.repeat(p, 3), np.repeat(q, 3))
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-10)


def test_comparison_of_equal_forecasts_is_told():
    y, p = binary(12, 50)
    test = cs.compare_forecasts(y, p, p)
    assert np.isnan(test.pvalue)
    assert "same in all rows" in test.note


def test_comparison_of_matrices():
    rng = np.random.default_rng(13)
    P, Q = rng.dirichlet(np.ones(3), (2, 100))
    y = rng.integers(0, 3, 100)
    test = cs.compare_forecasts(y, P, Q, score="log")
    assert test.details["difference"] == pytest.approx(cs.log_loss(y, P) - cs.log_loss(y, Q))


def forecasts(kind, n, rng):
    """True rates and two forecasts of them."""
    q = rng.beta(0.5, 24.5, n) if kind == "rare" else rng.random(n)
    second = {"calibrated": (q > 0.5) / 2 + 0.25, "rare": np.clip(1.5 * q, 0, 1), "off": q**1.4}[kind]
    return q, q, second


@pytest.mark.parametrize("kind", ["calibrated", "rare", "off"])
def test_difference_in_squared_errors_covers(kind):
    rng = np.random.default_rng(23)
    q, *pair = forecasts(kind, 1_000_000, rng)
    # rates in the place of labels: the error of the population
    truth = np.subtract(*(bin_table(q, p, equal_width_edges(10)).error(2) ** 2 for p in pair))
    held, runs = 0, 400
    for _ in range(runs):
        q, p1, p2 = forecasts(kind, 300, rng)
        details = cs.compare_forecasts((rng.random(300) < q).astype(int), p1, p2, score="squared_ece").details
        held += details["ci_low"] - 1e-6 <= truth <= details["ci_high"] + 1e-6
    # four standard errors below 95%
    assert held / runs > 0.95 - 4 * np.sqrt(0.95 * 0.05 / runs)


def test_difference_in_squared_errors_is_that_of_the_metric():
    rng = np.random.default_rng(3)
    q, p1, p2 = forecasts("off", 400, rng)
    y, w = (rng.random(400) < q).astype(int), rng.integers(0, 4, 400)
    test = cs.compare_forecasts(y, p1, p2, score="squared_ece", bins=7)
    assert test.details["score1"] == pytest.approx(cs.squared_ece(y, p1, bins=7, debias="u"), rel=1e-10)
    assert test.details["score2"] == pytest.approx(cs.squared_ece(y, p2, bins=7, debias="u"), rel=1e-10)
    assert test.details["difference"] == test.details["score1"] - test.details["score2"]
    turned = cs.compare_forecasts(y, p2, p1, score="squared_ece", bins=7)
    assert turned.statistic == pytest.approx(-test.statistic)
    weighted = cs.compare_forecasts(y, p1, p2, score="squared_ece", freq_weights=w)
    repeated = cs.compare_forecasts(*(np.repeat(v, w) for v in (y, p1, p2)), score="squared_ece")
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-9)
    # a forecast beside itself: only the pairs vary, and the difference is 0
    assert cs.compare_forecasts(y, p1, p1, score="squared_ece").details["difference"] == 0
    with pytest.raises(InputError, match="groups"):
        cs.compare_forecasts(y, p1, p2, score="squared_ece", groups=np.arange(400) // 4)


def test_standard_error_of_the_difference_is_that_of_draws():
    rng = np.random.default_rng(4)
    q, p1, p2 = forecasts("off", 2000, rng)
    tests = [cs.compare_forecasts((rng.random(2000) < q).astype(int), p1, p2, score="squared_ece") for _ in range(400)]
    drawn = np.std([t.details["difference"] for t in tests])
    # labels vary here, rows do not, whose part is small; 400 draws give a standard deviation to 3.5%
    assert np.mean([t.details["se"] for t in tests]) == pytest.approx(drawn, rel=0.18)


def test_squared_errors_of_top_labels_are_compared():
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.ones(4), 300)
    y = rng.integers(0, 4, 300)
    Q = rng.dirichlet(np.ones(4), 300)
    test = cs.compare_forecasts(y, P, Q, score="squared_ece")
    assert test.details["score2"] == pytest.approx(cs.squared_ece(y, Q, type="confidence", debias="u"), rel=1e-10)
