"""Binary maps against stored numbers of R programs (origins and tolerances: tests/reference/binary/README.md)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.special import expit

from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.exceptions import CalstatWarning
from calstat.multiclass import TemperatureScaling
from calstat.transforms import inv_logit, logit

FOLDER = Path(__file__).parent / "reference" / "binary"
INPUTS = json.loads((FOLDER / "inputs.json").read_text())
MANUAL = json.loads((FOLDER / "r_manual.json").read_text())
R = json.loads((FOLDER / "r_statistics.json").read_text())

OPTIMUM = 1e-9  # the stored optima have gradients of 1e-15: what is left is conditioning
SE = 1e-7  # standard errors of the stored optima
TIGHT = 1e-8  # R's glm with a convergence tolerance of 1e-15
LOOSE = 1e-4  # R's glm with default tolerance: its weights are those of the last step but one
R_COEF = 1e-7  # coefficients of R's glm with default tolerance, as seen at the stored optima
SPLINE = 5e-4  # R's profile limits interpolate the profile with a spline: errors of up to 4e-4 standard errors
EXACT = 1e-12


def arrays(name, *columns):
    return tuple(np.array(INPUTS[name][c]) for c in columns)


def close(got, want, tol, scale=None):
    """Relative to the largest entry (at least 1, or `scale`): small entries of a vector carry its rounding."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    assert got.shape == want.shape
    assert np.abs(got - want).max() <= tol * (max(1.0, np.abs(want).max()) if scale is None else scale)


def relative(got, want, tol):
    assert np.asarray(got, float) == pytest.approx(np.asarray(want, float), rel=tol, abs=0)


def against_zero(table, stored):
    """A row of the coefficient table; estimates and limits on the scale of the standard error.

    (pima_train was calibrated on itself: its intercept is 1e-14, its slope 1.)
    """
    relative(table["se"], stored["se"], TIGHT)
    close(table[["coef", "lower", "upper"]], [stored["est"], *stored["wald95"]], TIGHT, stored["se"])
    close(table["z"], stored["z"], TIGHT)
    assert table["pvalue"] == pytest.approx(stored["p"], rel=1e-6, abs=1e-12)


def tails(got, want, tol):
    """P-values of z have a relative error of z times that of z."""
    relative(got, want, tol)


# -- logit and its inverse -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", MANUAL["logit"]["values"])
def test_logit(key):
    eps = (
        MANUAL["logit"]["default_eps"]
        if key == "eps_default"
        else float(key.removeprefix("eps_").replace("0_01", "0.01").replace("1e_", "1e-"))
    )
    assert logit(MANUAL["logit"]["p"], eps) == pytest.approx(
        np.array(MANUAL["logit"]["values"][key]), rel=EXACT, abs=1e-15
    )


def test_inverse_logit():
    x = np.array(MANUAL["inv_logit"]["x"], float)
    # R returns 0 below -709.78, where the true value is denormal
    assert inv_logit(x) == pytest.approx(np.array(MANUAL["inv_logit"]["values"]), rel=EXACT, abs=1e-300)


# -- Platt scaling -------------------------------------------------------------------------------------------


def platt(case, **options):
    ref = MANUAL["platt"][case]
    y, x = arrays(ref["input"]["file"][:-4], "y", ref["input"]["x"])
    return ref, y, x, PlattScaling(y, x, **options).fit()


@pytest.mark.parametrize("case", MANUAL["platt"])
def test_platt(case):
    ref, y, x, res = platt(case)
    optimum, glm, stored = ref["optimum"], ref["glm"], ref["object"]
    close(res.params, optimum["coef"], OPTIMUM)
    close(res.params, [stored["coefficients"]["intercept"], stored["coefficients"]["x"]], R_COEF)
    relative(res.bse, optimum["std_error"], SE)
    relative(res.bse, glm["coefficients_table"]["std_error"], LOOSE * 2)
    relative(res.tvalues, optimum["z_value"], SE)
    tails(res.pvalues, optimum["p_value"], 10 * SE)
    close(res.cov_params(), optimum["vcov"], SE, np.abs(optimum["vcov"]).max())
    assert -res.llf == pytest.approx(optimum["nll_sum"], rel=1e-12)
    assert res.deviance == pytest.approx(optimum["deviance"], rel=1e-11)
    assert res.deviance == pytest.approx(glm["deviance"], rel=1e-11)
    robust = PlattScaling(y, x).fit(cov_type="HC0").cov_params()
    close(robust, optimum["vcov_hc0_sandwich"], SE, np.abs(optimum["vcov_hc0_sandwich"]).max())
    assert np.isnan(res.aic)  # R rounds the fractional targets for its AIC; there is none for corrected targets
    assert res.df_resid == glm["df_residual"]
    # R's stored coefficients are up to 1e-9 off: predictions move by that times a score of up to 800
    close(res.predict(x[: ref["predictions"]["train"]["rows"]]), ref["predictions"]["train"]["values"], R_COEF)
    for grid in ("grid_binary_score", "grid_binary_p"):
        close(res.predict(np.array(INPUTS[grid], float)), ref["predictions"][grid], R_COEF)


@pytest.mark.parametrize("case", MANUAL["platt"])
def test_platt_targets(case):
    ref, y, x, _ = platt(case)
    target = PlattScaling(y, x).endog
    assert target[y == 1] == pytest.approx(ref["object"]["target_pos"], rel=1e-15)
    assert target[y == 0] == pytest.approx(ref["object"]["target_neg"], rel=1e-15)


# -- beta calibration ----------------------------------------------------------------------------------------


def beta(case, **options):
    ref = MANUAL["beta"][case]
    y, p = arrays(ref["input"]["file"][:-4], "y", ref["input"]["p"])
    return ref, y, p, BetaCalibration(y, p, eps=ref["args"]["eps"]).fit(**options)


@pytest.mark.parametrize("case", MANUAL["beta"])
def test_beta(case):
    ref, y, p, res = beta(case)
    optimum, glm, stored = ref["optimum"], ref["glm"], ref["object"]["coefficients"]
    size = np.abs(optimum["coef"]).max()
    close(res.params[["a", "b", "c"]], [optimum[name] for name in "abc"], OPTIMUM, max(size, 1.0))
    close(res.params[["c", "a", "b"]] * [1, 1, -1], list(stored.values()), R_COEF, max(size, 1.0))
    close(res.params[["c", "a", "b"]] * [1, 1, -1], optimum["coef"], OPTIMUM, max(size, 1.0))
    relative(res.bse[["c", "a", "b"]], optimum["std_error"], SE)
    relative(res.bse[["c", "a", "b"]], glm["coefficients_table"]["std_error"], 1e-3)
    relative(np.abs(res.tvalues[["c", "a", "b"]]), np.abs(optimum["z_value"]), SE)
    tails(res.pvalues[["c", "a", "b"]], optimum["p_value"], 10 * SE)
    names = ["a", "b", "c"]
    relative(res.cov_params().loc[names, names], optimum["vcov_abc"], SE)
    robust = BetaCalibration(y, p, eps=ref["args"]["eps"]).fit(cov_type="HC0").cov_params()
    flip = np.array([1, 1, -1])
    names = ["c", "a", "b"]
    wanted = np.array(optimum["vcov_hc0_sandwich"])
    close(robust.loc[names, names] * np.outer(flip, flip), wanted, SE, np.abs(wanted).max())
    assert -res.llf == pytest.approx(optimum["nll_sum"], rel=1e-12)
    assert res.deviance == pytest.approx(optimum["deviance"], rel=1e-12)
    assert res.aic == pytest.approx(glm["aic"], rel=1e-10)
    assert res.llf == pytest.approx(glm["logLik"], rel=1e-10)
    assert -2 * res.llf_null == pytest.approx(glm["null_deviance"], rel=1e-10)
    assert res.df_resid == glm["df_residual"]


@pytest.mark.parametrize("case", MANUAL["beta"])
def test_beta_against_the_identity_map(case):
    ref, _, _, res = beta(case)
    optimum = ref["optimum"]
    lr, wald = res.test_identity("lr"), res.test_identity("wald")
    assert lr.statistic == pytest.approx(optimum["lr_vs_identity"], rel=OPTIMUM)
    assert lr.df == optimum["lr_vs_identity_df"] == 3
    assert lr.pvalue == pytest.approx(optimum["lr_vs_identity_p"], rel=1e-7)
    assert wald.statistic == pytest.approx(optimum["wald_vs_identity"], rel=SE)
    assert wald.pvalue == pytest.approx(optimum["wald_vs_identity_p"], rel=1e-6)
    named = res.wald_test("a = 1, b = 1, c = 0")
    assert named.statistic == pytest.approx(wald.statistic, rel=1e-10)


@pytest.mark.parametrize("case", MANUAL["beta"])
def test_beta_predictions(case):
    ref, _, p, res = beta(case)
    train, grid = ref["predictions"]["train"], ref["predictions"]["grid_binary_p"]
    # at eps = 1e-15 ln(1 - (1 - eps)) has a relative rounding error of 1e-2, but the same one in R and here
    close(res.predict(p[: train["rows"]]), train["values"], R_COEF)
    close(res.predict(np.array(INPUTS["grid_binary_p"], float)), grid, R_COEF)


# -- binary temperature --------------------------------------------------------------------------------------


def temperature(case):
    ref = MANUAL["temperature"][case]
    name = ref["input"]["file"][:-4]
    if case == "m6_k2":
        y, z1, z2 = arrays(name, "y", "z1", "z2")
        return ref, TemperatureScaling(y, np.column_stack([z1, z2]), scores="logit").fit()
    if case == "b2_logit_p":
        y, p = arrays(name, "y", "p")
        return ref, TemperatureScaling(y, logit(p), scores="logit").fit()
    y, score = arrays(name, "y", "score")
    return ref, TemperatureScaling(y, score, scores="logit").fit()


@pytest.mark.parametrize("case", MANUAL["temperature"])
def test_temperature(case):
    ref, res = temperature(case)
    optimum = ref["optimum"]
    assert res.temperature == pytest.approx(optimum["temperature"], rel=OPTIMUM)
    assert res.temperature == pytest.approx(ref["object"]["temperature"], rel=1e-6)
    assert -res.llf == pytest.approx(optimum["value_sum"], rel=1e-12)
    se = res.bse.iloc[0]
    assert se == pytest.approx(optimum["se_temperature"], rel=SE)
    assert se / res.temperature == pytest.approx(optimum["se_log_temperature"], rel=SE)
    new = np.array(INPUTS[ref["predictions"]["grid_name"]], float)
    close(res.predict(new), ref["predictions"]["grid_at_optimum"], OPTIMUM)


@pytest.mark.parametrize("case", MANUAL["temperature_degenerate"], ids=lambda c: c["case"])
def test_temperature_without_an_optimum_stops_at_its_bound_and_says_so(case):
    with pytest.warns(CalstatWarning):
        res = TemperatureScaling(case["y"], np.array(case["logits"], float), scores="logit").fit()
    assert not res.converged or res.bse.isna().all()
    assert -res.llf <= case["value_R_sum"] + 1e-10  # the likelihood is not below R's
    assert res.bse.isna().all()


# -- cross-validation and one-vs-rest: the maps of each part ------------------------------------------------------


@pytest.mark.parametrize("case", MANUAL["cross_validation"])
def test_maps_of_each_fold(case):
    ref = MANUAL["cross_validation"][case]
    method = ref["args"]["method"]
    y, x = arrays(ref["input"]["file"][:-4], "y", ref["input"]["x"])
    fold = np.array(ref["object"]["fold_id"])

    def fit(rows):
        if method == "platt":
            res = PlattScaling(y[rows], x[rows]).fit()
            return res, dict(zip(("intercept", "x"), res.params, strict=True))
        if method == "beta":
            res = BetaCalibration(y[rows], x[rows]).fit()
            return res, res.params.to_dict()
        res = TemperatureScaling(y[rows], x[rows], scores="logit").fit()
        return res, {"temperature": res.temperature}

    out_of_fold = np.empty(y.size)
    for k, stored in enumerate(ref["object"]["fold_calibrators"], start=1):
        res, params = fit(fold != k)
        for name, value in params.items():
            assert value == pytest.approx(stored[name], rel=1e-6, abs=1e-6)  # R's temperature search: 1e-7
        out_of_fold[fold == k] = res.predict(x[fold == k])
    close(out_of_fold, ref["oof_at_tight_optimum"], OPTIMUM)
    res, params = fit(np.ones(y.size, bool))
    for name, value in params.items():
        assert value == pytest.approx(ref["object"]["final_calibrator"][name], rel=1e-6, abs=1e-6)
    close(res.predict(np.array(INPUTS[ref["predict_grid_name"]], float)), ref["predict_grid"], 1e-6)


@pytest.mark.parametrize("method", ["platt_prob", "beta"])
def test_one_against_rest_at_two_classes(method):
    ref = MANUAL["one_vs_rest"][method]
    y, p = arrays("b1", "y", "p")
    model = PlattScaling if method == "platt_prob" else BetaCalibration
    maps = [model(1 - y, 1 - p).fit(), model(y, p).fit()]
    for res, stored in zip(maps, ref["object"]["calibrators"], strict=True):
        names = ("intercept", "x") if method == "platt_prob" else ("a", "b", "c")
        close(res.params, [stored[name] for name in names], R_COEF)
    grid = np.array(INPUTS["grid_prob_k2"], float)
    q = np.column_stack([res.predict(grid[:, j]) for j, res in enumerate(maps)])
    close(q / q.sum(axis=1, keepdims=True), ref["grid_at_tight_optimum"], OPTIMUM)


# -- Cox recalibration ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MANUAL["cox"])
def test_cox_recalibration(case):
    ref = MANUAL["cox"][case]
    y, p = arrays(case[:2], "y", case[3:])
    res = LogisticCalibration(y, p).fit()
    large = res.in_the_large
    relative(res.params, [ref["intercept"], ref["slope"]], TIGHT)
    relative(res.bse, [ref["se_intercept"], ref["se_slope"]], SE)
    close(res.cov_params(), ref["vcov"], SE, np.abs(ref["vcov"]).max())
    assert -res.llf == pytest.approx(ref["nll"], rel=1e-12)
    assert -res.llf_identity == pytest.approx(ref["nll_identity"], rel=1e-12)
    lr = res.test_identity("lr")
    assert (lr.statistic, lr.df) == (pytest.approx(ref["lr_both"], rel=TIGHT), ref["lr_both_df"])
    assert lr.pvalue == pytest.approx(ref["lr_both_p"], rel=1e-6)
    assert large.params.iloc[0] == pytest.approx(ref["calibration_in_the_large"]["intercept"], rel=TIGHT)
    assert large.bse.iloc[0] == pytest.approx(ref["calibration_in_the_large"]["se"], rel=SE)
    assert -large.llf == pytest.approx(ref["calibration_in_the_large"]["nll"], rel=1e-12)
    assert large.test_identity("lr").statistic == pytest.approx(ref["lr_intercept_given_slope1"], rel=TIGHT)
    assert 2 * (res.llf - large.llf) == pytest.approx(ref["lr_slope_given_intercept"], rel=TIGHT)


@pytest.mark.parametrize("name", R)
def test_logistic_recalibration_against_glm(name):
    ref = R[name]["glm"]
    y, p = arrays(name, "y", "p")
    res = LogisticCalibration(y, p).fit()
    large = res.in_the_large
    for row, (fit, key) in {"intercept": (res, "recal_intercept"), "slope": (res, "recal_slope")}.items():
        stored = ref[key]
        table = fit.coefficient_table(method="wald").loc[row]
        against_zero(table, stored)
        profile = fit.conf_int(method="profile").loc[row]
        close(profile, stored["profile95"], SPLINE, stored["se"])
    slope = res.coefficient_table().loc["slope"]
    close(slope["z_identity"], ref["recal_slope"]["z_vs_1"], TIGHT)
    assert slope["pvalue_identity"] == pytest.approx(ref["recal_slope"]["p_vs_1"], rel=1e-6)
    citl = large.coefficient_table(method="wald").iloc[0]
    against_zero(citl, ref["citl"])
    close(large.conf_int(method="profile").iloc[0], ref["citl"]["profile95"], SPLINE, ref["citl"]["se"])
    close(res.cov_params(), ref["recal_vcov"], TIGHT, np.abs(ref["recal_vcov"]).max())
    robust = LogisticCalibration(y, p).fit(cov_type="HC0").cov_params()
    close(robust, ref["recal_vcov_HC0"], TIGHT, np.abs(ref["recal_vcov_HC0"]).max())


@pytest.mark.parametrize("name", R)
def test_likelihoods_and_tests_against_glm(name):
    ref = R[name]["glm"]
    y, p = arrays(name, "y", "p")
    res = LogisticCalibration(y, p).fit()
    large = res.in_the_large
    slope_only = BetaCalibration(y, p, parameters="a").fit()
    stored = ref["loglik"]
    relative(
        [res.llf_identity, large.llf, res.llf, slope_only.llf, res.llf_null],
        [stored[k] for k in ("as_is", "intercept_only_offset", "intercept_slope", "slope_only", "null")],
        1e-12,
    )
    assert (res.nobs, ref["n"]) == (ref["n"], y.size)
    only = ref["slope_only"]
    table = slope_only.coefficient_table(method="wald").iloc[0]
    against_zero(table, only)
    assert TemperatureScaling(y, logit(p), scores="logit").fit().temperature == pytest.approx(
        1 / only["est"], rel=TIGHT
    )
    for got, want in (
        (res.test_identity("lr"), ref["lrt_overall"]),
        (large.test_identity("lr"), ref["lrt_citl"]),
        (res.test_identity("wald"), ref["wald_joint"]),
        (res.test_identity("score"), ref["score_joint"]),
    ):
        close(got.statistic, want["chisq"], TIGHT)  # pima_train was calibrated on itself: 0 is rounding there
        assert got.df == want["df"]
        assert got.pvalue == pytest.approx(want["p"], rel=1e-6)
    close(large.test_identity("score").statistic, ref["score_citl"]["chisq"], OPTIMUM)
    assert large.test_identity("score").pvalue == pytest.approx(ref["score_citl"]["p"], rel=1e-7)
    close(2 * (res.llf - large.llf), ref["lrt_slope_given_intercept"]["chisq"], TIGHT)


@pytest.mark.parametrize("name", [n for n in R if "rms" in R[n]])
def test_recalibration_against_rms(name):
    ref = R[name]["rms"]
    res = LogisticCalibration(*arrays(name, "y", "p")).fit()
    close(res.params, ref["coef"], EXACT)
    relative(res.bse, ref["se"], EXACT)
    assert 2 * (res.llf - res.llf_null) == pytest.approx(ref["stats"]["Model L.R."], rel=1e-9)
    assert res.nobs == ref["stats"]["Obs"]
    assert np.mean((res.fittedvalues - arrays(name, "y")[0]) ** 2) == pytest.approx(ref["stats"]["Brier"], rel=1e-7)


@pytest.mark.parametrize("name", [n for n in R if "pmcalibration" in R[n]])
def test_recalibration_against_pmcalibration(name):
    ref = R[name]["pmcalibration"]
    res = LogisticCalibration(*arrays(name, "y", "p")).fit()
    rows = np.array(ref["logistic_cal"]["values"])
    for fit, row, which in ((res.in_the_large, rows[0], 0), (res, rows[1], 1)):
        table = fit.coefficient_table(method="profile").iloc[which]
        close(table[["coef", "se", "z_identity"]], row[:3], 1e-6)  # of z, since its standard error is R's default
        assert table["pvalue_identity"] == pytest.approx(row[3], rel=1e-3)  # z^2 times the error of z
        close(table[["lower", "upper"]], row[4:], SPLINE, row[1])
    large = res.in_the_large
    got = [res.test_identity("lr").statistic, large.test_identity("lr").statistic, 2 * (res.llf - large.llf)]
    close(got, ref["miller"]["statistic"], EXACT)


@pytest.mark.parametrize("name", [n for n in R if "CalibrationCurves" in R[n]])
def test_recalibration_against_calibration_curves(name):
    ref = R[name]["CalibrationCurves"]
    res = LogisticCalibration(*arrays(name, "y", "p")).fit()
    large = res.in_the_large
    for method, source in (("wald", ref), ("profile", ref["genCalCurve_binomial"])):
        for fit, which, key in ((large, 0, "Intercept"), (res, 1, "Slope")):
            table = fit.coefficient_table(method=method).iloc[which]
            close(table[["coef", "lower", "upper"]], source[key], SPLINE, table["se"])


@pytest.mark.parametrize("name", R)
def test_linear_log_odds_against_brcal(name):
    ref = R[name]["BRcal"]
    res = LogisticCalibration(*arrays(name, "y", "p")).fit()
    lr = res.test_identity("lr")
    close(lr.statistic, ref["llo_lrt"]["chisq"], EXACT)
    # BRcal optimises without derivatives: its coefficients are good to the root of what its likelihood is good to
    assert res.params["slope"] == pytest.approx(ref["llo_lrt"]["gamma"], rel=1e-6)
    assert np.exp(res.params["intercept"]) == pytest.approx(ref["llo_lrt"]["delta"], rel=1e-6)
    assert res.bic == pytest.approx(ref["bayes_ms"]["BIC_uncal"], rel=1e-8)
    assert -2 * res.llf_identity == pytest.approx(ref["bayes_ms"]["BIC_cal"], rel=1e-12)


# -- betacal, probcal and probably --------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
@pytest.mark.parametrize("name", R)
def test_beta_against_betacal(name, parameters, recwarn):
    ref = R[name]["betacal"][parameters]
    y, p = arrays(name, "y", "p")
    dropped = len(ref["glm_terms"]) < 3 and parameters == "abm"
    res = BetaCalibration(y, p, parameters=parameters, monotone=dropped).fit()
    assert [w.category.__name__ for w in recwarn] == (["BoundaryWarning"] if dropped else [])
    a, b = res.params["a"], res.params.get("b", res.params["a"])
    close([a, b], [ref["a"], ref["b"]], R_COEF)
    assert res.m == pytest.approx(ref["m"], abs=2e-5)  # betacal's root search has a tolerance of 1.2e-4
    assert res.deviance == pytest.approx(ref["deviance"], rel=1e-12)
    close(res.predict(np.array(ref["grid"])), ref["pred"], R_COEF)
    signs = {"lp": "a", "l1p": "b", "(Intercept)": "c"}
    se = [res.bse[signs[term]] for term in ref["glm_terms"]]
    relative(se, ref["glm_se"], LOOSE)


@pytest.mark.parametrize("name", R)
def test_beta_against_probably(name):
    ref = R[name]["probably"]
    y, p = arrays(name, "y", "p")
    grid = np.array(R[name]["betacal"]["abm"]["grid"])
    for key, parameters in (("beta_2_1", "abm"), ("beta_1_1", "am"), ("beta_2_0", "ab")):
        if name == "syn_small" and key == "beta_2_1":
            continue  # the fit with a dropped term, which is compared with betacal itself
        close(BetaCalibration(y, p, parameters=parameters).fit().predict(grid), ref[key], R_COEF)
    raw = PlattScaling(y, p, target_correction=False).fit()  # "logistic" there is on the raw probability
    close(raw.predict(grid), ref["logistic_linear"], OPTIMUM)
    relative(raw.params, ref["logistic_linear_glm_on_raw_p"]["coef"], OPTIMUM)
    relative(raw.bse, ref["logistic_linear_glm_on_raw_p"]["se"], LOOSE)


@pytest.mark.parametrize("name", [n for n in R if "probcal" in R[n]])
def test_maps_against_probcal(name):
    ref = R[name]["probcal"]
    y, p = arrays(name, "y", "p")
    grid = np.array(ref["platt_on_logit"]["grid"])
    on_logit = PlattScaling(y, p, scores="probability").fit()
    close(on_logit.params, ref["platt_on_logit"]["coef"], R_COEF)
    close(on_logit.predict(grid), ref["platt_on_logit"]["pred"], R_COEF)
    close(PlattScaling(y, logit(p)).fit().params, on_logit.params, 1e-12)
    on_p = PlattScaling(y, p).fit()
    close(on_p.params, ref["platt_on_p"]["coef"], R_COEF)
    close(on_p.predict(grid), ref["platt_on_p"]["pred"], R_COEF)
    stored = ref["beta_unconstrained"]
    res = BetaCalibration(y, p).fit()
    close(res.params, [stored[k] for k in "abc"], R_COEF)
    close(res.predict(grid), stored["pred"], R_COEF)
    stored = ref["temperature_binary"]
    res = TemperatureScaling(y, p, scores="probability").fit()
    assert res.temperature == pytest.approx(stored["temperature"], rel=1e-6)
    assert -res.llf == pytest.approx(stored["sum_logloss"], rel=1e-10)
    close(res.predict(grid), stored["pred"], 1e-6)
    assert expit(logit(grid) / res.temperature) == pytest.approx(res.predict(grid), rel=1e-12)
