"""Recalibration, Hosmer-Lemeshow and Spiegelhalter tests and the validation indexes, against R and statsmodels."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import stats

from calstat._arrays import statistics
from calstat.diagnostics import hosmer_lemeshow, recalibration_test, spiegelhalter, val_prob
from calstat.exceptions import InputError, NotEstimableWarning

REFERENCE = json.loads((Path(__file__).parent / "reference" / "inference" / "binary.json").read_text())
R_SETS = ["pima_train", "syn_bin", "syn_ties"]
ALL_SETS = [*R_SETS, "syn_small"]
MODELS = ["in_the_large", "temperature", "logistic", "beta"]
PARTS = {
    "in_the_large": lambda p: (np.ones((p.size, 1)), np.log(p / (1 - p)), np.zeros(1)),
    "temperature": lambda p: (np.log(p / (1 - p))[:, None], None, np.ones(1)),
    "logistic": lambda p: (np.column_stack([np.ones_like(p), np.log(p / (1 - p))]), None, np.array([0.0, 1.0])),
    "beta": lambda p: (np.column_stack([np.ones_like(p), np.log(p), -np.log1p(-p)]), None, np.array([0.0, 1.0, 1.0])),
}


def arrays(name):
    data = REFERENCE[name]["data"]
    return np.array(data["y"]), np.array(data["p"])


def glm(y, p, against, weights=None):
    x, offset, _ = PARTS[against](p)
    model = sm.GLM(y, x, family=sm.families.Binomial(), offset=offset, freq_weights=weights)
    return model.fit(tol=1e-14, maxiter=100)


def random_sample(seed, n=300):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.5, 2, n).round(2).clip(0.01, 0.99)
    return (rng.random(n) < p**1.3).astype(float), p, rng.integers(0, 4, n)


# -- recalibration -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_SETS)
def test_recalibration_is_rs_glm(name):
    y, p = arrays(name)
    g = REFERENCE[name]["glm"]
    # tolerances: see the README of the reference numbers; abs for the training data, where statistics vanish
    for against, method, key in [
        ("logistic", "lr", "lrt_overall"),
        ("in_the_large", "lr", "lrt_citl"),
        ("logistic", "wald", "wald_joint"),
        ("logistic", "score", "score_joint"),
        ("in_the_large", "score", "score_citl"),
    ]:
        test = recalibration_test(y, p, against=against, method=method)
        assert test.statistic == pytest.approx(g[key]["chisq"], rel=1e-9, abs=1e-9)
        assert test.pvalue == pytest.approx(g[key].get("p", np.nan), rel=1e-8)
        assert test.df == (1 if against == "in_the_large" else 2)
    joint = recalibration_test(y, p, method="lr").details
    large = recalibration_test(y, p, against="in_the_large", method="lr").details
    assert joint["intercept"] == pytest.approx(g["recal_intercept"]["est"], rel=1e-9, abs=1e-12)
    assert joint["slope"] == pytest.approx(g["recal_slope"]["est"], rel=1e-9)
    assert joint["se_slope"] == pytest.approx(g["recal_slope"]["se"], rel=1e-7)
    assert large["intercept"] == pytest.approx(g["citl"]["est"], rel=1e-9, abs=1e-12)
    assert large["se_intercept"] == pytest.approx(g["citl"]["se"], rel=1e-7)


@pytest.mark.parametrize("name", R_SETS)
def test_recalibration_is_that_of_other_packages(name):
    y, p = arrays(name)
    overall = recalibration_test(y, p, method="lr")
    assert overall.statistic == pytest.approx(REFERENCE[name]["BRcal"]["chisq"], rel=1e-7, abs=1e-7)
    miller = REFERENCE[name]["pmcalibration"]
    large = recalibration_test(y, p, method="lr", against="in_the_large")
    assert [overall.statistic, large.statistic] == pytest.approx(miller["statistic"][:2], rel=1e-7, abs=1e-7)
    assert overall.statistic - large.statistic == pytest.approx(miller["statistic"][2], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("name", ["b1_p", "b4_p"])
def test_recalibration_is_the_independent_computation(name):
    y, p = arrays(name)
    cox = REFERENCE[name]["cox_recalibration"]
    test = recalibration_test(y, p, method="lr")
    assert test.statistic == pytest.approx(cox["lr_both"], rel=1e-9)
    assert test.pvalue == pytest.approx(cox["lr_both_p"], rel=1e-8)
    assert test.details["slope"] == pytest.approx(cox["slope"], rel=1e-9)
    assert test.details["se_intercept"] == pytest.approx(cox["se_intercept"], rel=1e-7)


@pytest.mark.parametrize("against", MODELS)
@pytest.mark.parametrize("seed", [1, 2])
def test_recalibration_is_statsmodels(against, seed):
    y, p, w = random_sample(seed)
    x, _, identity = PARTS[against](p)
    fit = glm(y, p, against, w)
    as_is = np.sum(w * stats.bernoulli.logpmf(y, p))
    lr = recalibration_test(y, p, against=against, method="lr", freq_weights=w)
    wald = recalibration_test(y, p, against=against, method="wald", freq_weights=w)
    score = recalibration_test(y, p, against=against, method="score", freq_weights=w)
    # two optima of the same likelihood, each to about 1e-12 in the gradient
    assert lr.statistic == pytest.approx(2 * (fit.llf - as_is), rel=1e-8)
    d = fit.params - identity
    assert wald.statistic == pytest.approx(d @ np.linalg.solve(fit.cov_params(), d), rel=1e-6)
    u, i = x.T @ (w * (y - p)), x.T @ ((w * p * (1 - p))[:, None] * x)
    assert score.statistic == pytest.approx(u @ np.linalg.solve(i, u), rel=1e-9)
    assert lr.nobs == w.sum()


@pytest.mark.parametrize("method", ["lr", "wald", "score", "pseudo_label"])
def test_recalibration_weights_are_copies(method):
    y, p, w = random_sample(5)
    weighted = recalibration_test(y, p, method=method, freq_weights=w, rng=1)
    repeated = recalibration_test(np.repeat(y, w), np.repeat(p, w), method=method, rng=1)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-9)
    assert weighted.nobs == repeated.nobs


def test_recalibration_cluster_is_the_sandwich_of_r():
    data = REFERENCE["syn_clu"]["data"]
    test = recalibration_test(data["y"], data["p"], groups=data["cluster"])
    wanted = REFERENCE["syn_clu"]["sandwich"]["sandwich_vcovCL_HC1_cadjustTRUE"]
    assert test.method == "wald"
    assert [test.details["se_intercept"], test.details["se_slope"]] == pytest.approx(wanted["se"], rel=1e-7)
    large = recalibration_test(data["y"], data["p"], groups=data["cluster"], against="in_the_large")
    assert large.details["se_intercept"] == pytest.approx(wanted["citl_se"], rel=1e-7)
    assert "24 clusters" in test.note


def test_recalibration_cluster_ignores_rows_of_weight_zero():
    data = REFERENCE["syn_clu"]["data"]
    y, p, c = (np.array(data[k]) for k in ("y", "p", "cluster"))
    keep = (c != 3) & (np.arange(y.size) % 5 > 0)
    weighted = recalibration_test(y, p, groups=c, freq_weights=keep.astype(int))
    dropped = recalibration_test(y[keep], p[keep], groups=c[keep])
    assert tuple(weighted) == pytest.approx(tuple(dropped), rel=1e-10)


def test_pseudo_label_law_is_enumeration():
    # all 2^8 label vectors with their probabilities; Monte Carlo error of p at 20,000 draws is at most 0.0035
    p = np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.95])
    y = np.array([1, 0, 0, 1, 1, 0, 1, 1])
    x = np.column_stack([np.ones(8), np.log(p / (1 - p))])
    inverse = np.linalg.inv(x.T @ ((p * (1 - p))[:, None] * x))
    labels = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    chance = np.prod(np.where(labels == 1, p, 1 - p), axis=1)
    u = (labels - p) @ x
    statistic = np.einsum("ij,jk,ik->i", u, inverse, u)
    observed = ((y - p) @ x) @ inverse @ ((y - p) @ x)
    test = recalibration_test(y, p, method="pseudo_label", n_resamples=20_000, rng=3)
    assert test.statistic == pytest.approx(observed, rel=1e-10)
    assert test.pvalue == pytest.approx(chance[statistic >= observed - 1e-9].sum(), abs=4 * 0.0035)
    assert test.details["mc_error"] < 0.0036


def test_default_method_goes_by_the_expected_events():
    rng = np.random.default_rng(8)
    p = rng.beta(1, 3, 1000)
    y = rng.random(1000) < p
    assert recalibration_test(y, p).method == "lr"
    few = recalibration_test(y[:60], p[:60], rng=1)
    assert few.method == "pseudo_label"
    assert "chi-square" in few.note
    assert few.details["pvalue_chi2"] == pytest.approx(recalibration_test(y[:60], p[:60], method="score").pvalue)


def test_separated_outcomes():
    p = np.linspace(0.05, 0.95, 100)
    y = (p > 0.5).astype(int)
    for method in ("lr", "wald"):
        with pytest.warns(NotEstimableWarning, match="separate") as caught:
            test = recalibration_test(y, p, method=method)
        assert len(caught) == 1
        assert Path(caught[0].filename).name == "test_diagnostics.py"
        assert np.isnan(test.statistic)
        assert np.isnan(test.pvalue)
        assert "method='score'" in test.note or method == "wald"
    default = recalibration_test(y, p, rng=1)
    assert default.method == "pseudo_label"
    assert default.pvalue < 0.01


def test_constant_probability_leaves_one_degree_of_freedom():
    y = np.r_[np.zeros(40), np.ones(60)]
    p = np.full(100, 0.5)
    lr = recalibration_test(y, p, method="lr")
    assert lr.df == 1
    assert "1 of 2" in lr.note
    assert np.isnan(lr.details["slope"])
    assert lr.statistic == pytest.approx(recalibration_test(y, p, method="lr", against="in_the_large").statistic)
    assert recalibration_test(y, p, method="score").df == 1
    assert recalibration_test(y, p, method="wald").df == 1


def test_certain_predictions_are_clipped_and_counted():
    y, p, _ = random_sample(6)
    p[:3], y[:3] = [0.0, 1.0, 1.0], [0, 1, 1]
    assert "3 of 300" in recalibration_test(y, p, method="lr").note
    assert recalibration_test(y, p, method="lr", eps=1e-6).statistic != recalibration_test(y, p, method="lr").statistic


def test_a_temperature_does_not_change_one_half():
    for method in ("score", "pseudo_label"):
        with pytest.warns(NotEstimableWarning, match="1/2") as caught:
            test = recalibration_test([0, 1, 1, 0], np.full(4, 0.5), against="temperature", method=method)
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert np.isnan(test.pvalue)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"against": "platt"}, "against"),
        ({"method": "chi2"}, "method"),
        ({"method": "lr", "groups": np.arange(4)}, "wald"),
        ({"groups": np.zeros(4)}, "two clusters"),
        ({"freq_weights": [1.5, 1, 1, 1]}, "whole numbers"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"p": [0.0, 0.4, 0.6, 1.0], "eps": 0}, "eps"),
    ],
)
def test_recalibration_errors_name_the_argument(options, words):
    with pytest.raises(InputError, match=words):
        recalibration_test([0, 1, 1, 0], **{"p": [0.2, 0.4, 0.6, 0.7], **options})


def test_recalibration_takes_frames_and_named_events():
    y, p, _ = random_sample(7)
    words = pd.Series(np.where(y == 1, "yes", "no"), index=np.arange(300) + 5)
    shuffled = pd.Series(p, index=words.index).sample(frac=1, random_state=1)
    assert tuple(recalibration_test(words, shuffled, event="yes", method="lr")) == pytest.approx(
        tuple(recalibration_test(y, p, method="lr")), rel=1e-10
    )


# -- Spiegelhalter -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL_SETS)
def test_spiegelhalter_is_r(name):
    wanted = REFERENCE[name]["glm"]["spiegelhalter"]
    test = spiegelhalter(*arrays(name))
    assert test.statistic == pytest.approx(wanted["z"], rel=1e-12, abs=1e-12)
    assert test.pvalue == pytest.approx(wanted["p"], rel=1e-10)


@pytest.mark.parametrize("name", ["b1_p", "b2_p", "b4_p", "b4_p_rf"])
def test_spiegelhalter_is_the_independent_computation(name):
    test = spiegelhalter(*arrays(name))
    assert test.statistic == pytest.approx(REFERENCE[name]["spiegelhalter_z"], rel=1e-12)
    assert test.pvalue == pytest.approx(REFERENCE[name]["spiegelhalter_p_two_sided"], rel=1e-10)
    assert test.details["brier"] == pytest.approx(REFERENCE[name]["brier"], rel=1e-13)


# -- Hosmer-Lemeshow ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", R_SETS)
@pytest.mark.parametrize("groups", [5, 8, 10, 20])
def test_hosmer_lemeshow_is_r(name, groups):
    y, p = arrays(name)
    wanted = REFERENCE[name]["hosmer_lemeshow"][f"ResourceSelection_g{groups}"]
    external = hosmer_lemeshow(y, p, groups=groups, method="chi2")
    internal = hosmer_lemeshow(y, p, groups=groups, method="chi2", df="internal")
    assert external.statistic == pytest.approx(wanted["chisq"], rel=1e-12)
    assert external.pvalue == pytest.approx(wanted["p_df_eq_g"], rel=1e-8)
    assert internal.pvalue == pytest.approx(wanted["p"], rel=1e-6)
    assert (external.df, internal.df) == (len(wanted["n"]), len(wanted["n"]) - 2)
    np.testing.assert_array_equal(external.details["groups"]["observed"], wanted["obs1"])


@pytest.mark.parametrize("groups", [5, 8, 10, 20])
def test_equal_freq_groups_are_cut2_where_there_are_no_ties(groups):
    y, p = arrays("syn_bin")
    wanted = REFERENCE["syn_bin"]["hosmer_lemeshow"][f"cut2_groups_g{groups}"]
    test = hosmer_lemeshow(y, p, groups=groups, grouping="equal_freq", method="chi2")
    assert test.statistic == pytest.approx(wanted["chisq"], rel=1e-12)
    assert test.pvalue == pytest.approx(wanted["p_df_g"], rel=1e-8)


@pytest.mark.parametrize("name", ["b1_p", "b4_p"])
def test_hosmer_lemeshow_is_the_independent_computation(name):
    wanted = REFERENCE[name]["hosmer_lemeshow_deciles_type7"]
    test = hosmer_lemeshow(*arrays(name), method="chi2")
    assert test.statistic == pytest.approx(wanted["statistic"], rel=1e-10)
    assert test.pvalue == pytest.approx(wanted["p_df_groups"], rel=1e-8)


def test_hosmer_lemeshow_draws_where_cells_are_small():
    y, p = arrays("b4_p")
    test = hosmer_lemeshow(y, p, rng=1)
    assert test.method == "pseudo_label"
    assert test.df is None
    assert "smallest cell expects 0.56" in test.note
    assert "0.102" in test.note
    assert test.details["pvalue_chi2"] == pytest.approx(0.10228274710702812, rel=1e-8)
    assert hosmer_lemeshow(y, p, df="internal").method == "chi2"
    assert hosmer_lemeshow(*arrays("syn_bin"), groups=5).method == "chi2"


def test_hosmer_lemeshow_draws_are_enumeration():
    p = np.array([0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 0.8, 0.95])
    y = np.array([1, 0, 0, 1, 1, 0, 1, 1])
    test = hosmer_lemeshow(y, p, groups=2, n_resamples=20_000, rng=3)
    labels = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(float)
    chance = np.prod(np.where(labels == 1, p, 1 - p), axis=1)
    value = np.zeros(256)
    for part in (slice(0, 4), slice(4, 8)):
        o, e = labels[:, part].sum(axis=1), p[part].sum()
        value += (o - e) ** 2 / e + (o - e) ** 2 / (4 - e)
    assert test.pvalue == pytest.approx(chance[value >= test.statistic - 1e-9].sum(), abs=4 * 0.0035)


@pytest.mark.parametrize("method", ["chi2", "pseudo_label"])
def test_hosmer_lemeshow_weights_are_copies(method):
    y, p, w = random_sample(9)
    weighted = hosmer_lemeshow(y, p, method=method, freq_weights=w, rng=1)
    repeated = hosmer_lemeshow(np.repeat(y, w), np.repeat(p, w), method=method, rng=1)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-9)


def test_hosmer_lemeshow_without_degrees_of_freedom():
    y = np.r_[np.zeros(50), np.ones(50)]
    with pytest.warns(NotEstimableWarning, match="degrees of freedom") as caught:
        test = hosmer_lemeshow(y, np.full(100, 0.4), df="internal")
    assert len(caught) == 1
    assert np.isnan(test.pvalue)
    assert test.statistic == pytest.approx((50 - 40) ** 2 / 40 + (50 - 40) ** 2 / 60)
    assert hosmer_lemeshow(y, np.full(100, 0.4)).df == 1


def test_hosmer_lemeshow_size_of_both_degrees_of_freedom():
    # 2000 calibrated samples; the Monte Carlo error of a size of 5% is 0.5%, of 10% 0.7%
    rng = np.random.default_rng(12)
    p = rng.beta(2, 3, 500)
    external, internal = [], []
    for _ in range(2000):
        y = (rng.random(500) < p).astype(float)
        test = hosmer_lemeshow(y, p, method="chi2")
        external.append(test.pvalue)
        internal.append(stats.chi2.sf(test.statistic, 8))
    assert np.mean(np.array(external) < 0.05) == pytest.approx(0.05, abs=4 * 0.005)
    assert np.mean(np.array(internal) < 0.05) > 0.08


# -- val.prob ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", R_SETS)
def test_val_prob_is_rms(name):
    table = val_prob(*arrays(name))["estimate"]
    wanted = REFERENCE[name]["rms8"]
    for row in set(wanted) - {"D:p", "U:p"}:
        # D:p and U:p are computed in R as 1 - cdf, which is 0 or noise in the far tail
        assert table[row] == pytest.approx(wanted[row], rel=1e-8, abs=1e-9), row
    glm_reference = REFERENCE[name]["glm"]
    assert table["D:p"] == pytest.approx(glm_reference["lrt_discrimination_D"]["p"], rel=1e-8)
    assert table["U:p"] == pytest.approx(glm_reference["lrt_overall"]["p"], rel=1e-8)
    assert table["O/E"] == pytest.approx(glm_reference["OE_ratio"], rel=1e-12)
    assert table["Brier scaled"] == pytest.approx(REFERENCE[name]["riskRegression"]["IPA"], rel=1e-12)


@pytest.mark.parametrize("name", R_SETS)
def test_val_prob_limits(name):
    table = val_prob(*arrays(name))
    limits = REFERENCE[name]["CalibrationCurves"]["limits"]
    for row, key in [("Intercept (slope 1)", "Intercept"), ("Slope", "Slope")]:
        # glm there stops at 1e-8, which moves standard errors by up to 1e-7
        assert table.loc[row, ["estimate", "ci_low", "ci_high"]].tolist() == pytest.approx(
            limits[key], rel=1e-6, abs=1e-8
        )
    # R's limits are normal; ours share the standard error only
    z, risk = stats.norm.isf(0.025), REFERENCE[name]["riskRegression"]
    for row, wanted in [
        ("C (ROC)", limits["Cindex_delong"]),
        ("Brier", [risk["brier_lower"] / 2 + risk["brier_upper"] / 2, risk["brier_lower"], risk["brier_upper"]]),
    ]:
        estimate, se = table.loc[row, ["estimate", "se"]]
        assert [estimate, estimate - z * se, estimate + z * se] == pytest.approx(wanted, rel=1e-10)
        # with several hundred rows the two kinds of limits are close
        assert table.loc[row, ["ci_low", "ci_high"]].tolist() == pytest.approx(wanted[1:], abs=0.5 * se)


@pytest.mark.parametrize("name", R_SETS)
def test_val_prob_with_robust_standard_errors_is_statsmodels(name):
    y, p = arrays(name)
    table, z = val_prob(y, p, cov_type="HC0", alpha=0.1), np.log(p) - np.log1p(-p)
    options = {"cov_type": "HC0", "tol": 1e-12}
    joint = sm.GLM(y, sm.add_constant(z), sm.families.Binomial()).fit(**options)
    shift = sm.GLM(y, np.ones((len(y), 1)), sm.families.Binomial(), offset=z).fit(**options)
    for row, fit, k in [("Intercept", joint, 0), ("Slope", joint, 1), ("Intercept (slope 1)", shift, 0)]:
        assert table.loc[row, ["estimate", "se", "ci_low", "ci_high"]].tolist() == pytest.approx(
            [fit.params[k], fit.bse[k], *fit.conf_int(0.1)[k]], rel=1e-8, abs=1e-10
        )
    w = np.arange(len(y)) % 3
    pd.testing.assert_frame_equal(
        val_prob(y, p, cov_type="HC0", freq_weights=w),
        val_prob(np.repeat(y, w), np.repeat(p, w), cov_type="HC0"),
        rtol=1e-8,
    )


def test_val_prob_limits_with_few_events():
    # three events that outrank all others: DeLong's variance is 0
    p = np.linspace(0.01, 0.4, 60)
    y = (p > p[-4]).astype(int)
    table = val_prob(y, p)
    low, high = table.loc["C (ROC)", ["ci_low", "ci_high"]]
    assert (table.loc["C (ROC)", "se"], high) == (0, 1)
    spread = 1 + (30 - 1) * ((1 - low) / (2 - low) + low / (1 + low))
    assert (1 - low) ** 2 == pytest.approx(stats.chi2.isf(0.05, 1) * low * (1 - low) * spread / (3 * 57), rel=1e-9)
    assert table.loc["Dxy", ["ci_low", "ci_high"]].tolist() == pytest.approx([2 * low - 1, 1])
    # no event: the score is known, how much it varies is not
    none = val_prob(np.zeros(60, dtype=int), p)
    assert none.loc["Brier", "estimate"] == pytest.approx(np.mean(p**2))
    assert none.loc["Brier", ["ci_low", "ci_high"]].isna().all()


def test_limits_of_a_mean_solve_the_cubic_of_its_skewness():
    x = np.random.default_rng(5).exponential(size=40)
    low, high = statistics.mean_limits(x, 0.1)
    mean, se = statistics.mean_and_error(x)
    g = stats.skew(x) / np.sqrt(40)
    for limit, z in [(low, stats.norm.isf(0.05)), (high, -stats.norm.isf(0.05))]:
        t = (mean - limit) / se
        assert t + g * t**2 / 3 + g**2 * t**3 / 27 + g / 6 == pytest.approx(z, rel=1e-10)
    assert high - mean > mean - low
    even = np.array([-2.0, -1, 1, 2])
    assert statistics.mean_limits(even, 0.05)[1] == pytest.approx(stats.norm.isf(0.025) * np.sqrt(10 / 3 / 4))
    w = np.array([1.0, 3, 0, 2])
    repeated = np.repeat(even, w.astype(int))
    assert statistics.mean_limits(even, 0.05, w) == pytest.approx(statistics.mean_limits(repeated, 0.05))


@pytest.mark.parametrize("n", [100, 300])
def test_val_prob_limits_cover_for_rare_events(n):
    # 2% events; the normal limits of C cover 71% and 81% here. 400 samples: a share of 95% is known to 1.1 points
    rng = np.random.default_rng(n)
    p = rng.beta(0.5, 24.5, 200_000)
    order = np.sort(p)
    below = np.cumsum(1 - order) - (1 - order) / 2
    truth = order @ below / (order.sum() * (1 - order).sum())
    brier = np.mean(p * (1 - p))
    held = []
    while len(held) < 400:
        p = rng.beta(0.5, 24.5, n)
        y = (rng.random(n) < p).astype(float)
        if y.any():
            c = statistics.concordance_limits(statistics.concordance(y, p), 0.05)
            score = statistics.mean_limits((y - p) ** 2, 0.05)
            held.append([c[0] <= truth <= c[1], score[0] <= brier <= score[1]])
    assert np.all(np.mean(held, axis=0) >= 0.93)


def test_val_prob_weights_are_copies():
    y, p, w = random_sample(3)
    pd.testing.assert_frame_equal(val_prob(y, p, freq_weights=w), val_prob(np.repeat(y, w), np.repeat(p, w)), rtol=1e-9)


def test_val_prob_of_one_class_and_of_a_constant():
    one = val_prob(np.zeros(20), np.linspace(0.1, 0.5, 20))["estimate"]
    assert one[["C (ROC)", "R2", "D", "U", "Slope", "Intercept (slope 1)", "Brier scaled"]].isna().all()
    assert one["O/E"] == 0
    constant = val_prob(np.r_[np.zeros(30), np.ones(10)], np.full(40, 0.3))["estimate"]
    assert constant["C (ROC)"] == 0.5
    assert constant[["U", "Slope", "Q"]].isna().all()
    assert constant["Intercept (slope 1)"] == pytest.approx(np.log(10 / 30) - np.log(0.3 / 0.7))


def test_val_prob_alpha():
    y, p, _ = random_sample(4)
    wide, narrow = (val_prob(y, p, alpha=a).loc["Slope"] for a in (0.01, 0.2))
    assert wide.ci_high - wide.ci_low == pytest.approx(
        (narrow.ci_high - narrow.ci_low) * stats.norm.isf(0.005) / stats.norm.isf(0.1)
    )
