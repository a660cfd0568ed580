"""Multiclass maps against stored reference numbers; see tests/reference/multiclass/README.md."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special

import calstat as cs
from calstat.exceptions import (
    BoundaryWarning,
    ConvergenceWarning,
    NotEstimableError,
    RankWarning,
    SeparationWarning,
)

FOLDER = Path(__file__).parent / "reference" / "multiclass"
SAMPLES = ["m1", "m3_vehicle", "m3_glass", "m4", "m5_sharp", "m6_k2"]


@functools.cache
def stored(name: str) -> Any:
    return json.loads((FOLDER / name).read_text())


@functools.cache
def inputs(name: str) -> dict[str, np.ndarray]:
    return {k: np.array(v) for k, v in stored("inputs.json")[name].items()}


def manual() -> Any:
    return stored("r_manual.json")


def grid(name: str | None) -> np.ndarray:
    return np.array(stored("inputs.json")[name])


@pytest.mark.parametrize("name", SAMPLES)
def test_temperature(name: str) -> None:
    data, expected = inputs(name), manual()["temperature"][name]
    res = cs.TemperatureScaling(data["y"], data["z"]).fit()
    assert res.converged
    assert abs(res.temperature - expected["temperature"]) <= 1e-9 * expected["temperature"]
    assert abs(-res.llf / res.nobs - expected["value_mean"]) <= 1e-12
    assert np.isclose(res.bse["T"], expected["se_temperature"], rtol=1e-7)
    low, high = np.log(res.conf_int().loc["T"])
    assert np.isclose((high - low) / (2 * 1.959963984540054), expected["se_log_temperature"], rtol=1e-7)
    new = grid(expected["grid_name"])
    np.testing.assert_allclose(res.predict(new), expected["grid"], atol=1e-9)


def test_temperature_of_a_binary_score() -> None:
    data, expected = inputs("b1"), manual()["temperature"]["b1"]
    for res in (
        cs.TemperatureScaling(data["y"], data["score"]).fit(),
        cs.TemperatureScaling(data["y"], data["p"], scores="probability").fit(),
    ):
        assert np.isclose(res.temperature, expected["temperature"], rtol=1e-9)
        assert np.isclose(-res.llf, expected["value_sum"], rtol=1e-12)
        assert np.isclose(res.bse["T"], expected["se_temperature"], rtol=1e-7)


@pytest.mark.parametrize("case", range(7))
def test_temperature_of_rescaled_logits(case: int) -> None:
    expected = manual()["stress"]["temperature_logits_times"][case]
    data = inputs("m1")
    target = expected["temperature_unbounded_optimum"]
    model = cs.TemperatureScaling(data["y"], data["z"] * expected["factor"])
    if 1e-3 < target < 1e3:
        res = model.fit()
        assert np.isclose(res.temperature, target, rtol=1e-9)
        assert np.isclose(-res.llf / res.nobs, expected["value_optimum"], rtol=1e-12)
    else:
        with pytest.warns(BoundaryWarning, match=r"T lies at the (lower|upper) end"):
            res = model.fit()
        assert res.temperature == (1e-3 if target < 1 else 1e3)
        assert np.isnan(res.bse["T"])


@pytest.mark.parametrize("case", range(3))
def test_temperature_without_an_optimum(case: int) -> None:
    expected = manual()["stress"]["temperature_binary_degenerate"][case]
    model = cs.TemperatureScaling(expected["y"], expected["logits"])
    category = {"separable": SeparationWarning, "anti_informative": BoundaryWarning, "all_zero_logits": RankWarning}
    with pytest.warns(category[expected["case"]]):
        res = model.fit()
    assert np.isnan(res.bse["T"])
    assert np.isfinite(res.predict(expected["logits"])).all()


@pytest.mark.parametrize("name", SAMPLES)
def test_vector_scaling(name: str) -> None:
    data, expected = inputs(name), manual()["vector"][name]
    model = cs.VectorScaling(data["y"], data["z"])
    if not expected["finite"]:
        with pytest.warns(SeparationWarning):
            res = model.fit()
        assert not res.converged
        assert abs(-res.llf / res.nobs - expected["value_infimum"]) <= 1e-10
        assert np.isfinite(res.predict(data["z"])).all()
        assert res.bse.isna().any()
        return
    with warnings.catch_warnings():
        # A constant column of logits leaves one direction open (m3_vehicle, m6_k2), which is told.
        warnings.simplefilter("ignore", RankWarning)
        res = model.fit()
    assert -res.llf / res.nobs <= expected["value_R"] + 1e-10
    assert abs(-res.llf / res.nobs - expected["value"]) <= 1e-10
    np.testing.assert_allclose(res.predict(grid(expected["grid_name"])), expected["grid"], atol=1e-7)
    if expected["std_error"] is not None and None not in expected["std_error"]:
        np.testing.assert_allclose(res.scales, expected["scale"], atol=1e-8)
        np.testing.assert_allclose(res.bias, expected["bias_sum_zero"], atol=1e-8)
        K = len(expected["scale"])
        R = np.zeros((2 * K - 1, 2 * K))
        R[:K, :K] = np.eye(K)
        R[K:, K:-1], R[K:, -1] = np.eye(K - 1), -1.0
        cov = R @ res.cov_params().to_numpy() @ R.T
        np.testing.assert_allclose(cov, expected["vcov_reference_last_bias_zero"], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("shift", [0, 5, 20, 50, 100])
def test_vector_scaling_of_shifted_logits(shift: float) -> None:
    data = inputs("m1")
    expected = manual()["stress"]["vector_scaling_column2_shift"][0]
    res = cs.VectorScaling(data["y"], data["z"] + np.array([0.0, shift, 0.0])).fit()
    assert res.converged
    assert abs(-res.llf / res.nobs - expected["value_optimum"]) <= 1e-10
    np.testing.assert_allclose(res.scales, expected["scale_optimum"], atol=1e-7)


@pytest.mark.parametrize("factor", [0.01, 0.1, 10, 100, 1000])
def test_vector_scaling_of_rescaled_logits(factor: float) -> None:
    data = inputs("m1")
    expected = manual()["stress"]["vector_scaling_logits_times"][0]
    res = cs.VectorScaling(data["y"], data["z"] * factor).fit()
    assert res.converged
    assert abs(-res.llf / res.nobs - expected["value_optimum"]) <= 1e-10
    np.testing.assert_allclose(res.scales * factor, expected["scale_optimum_times_factor"], atol=1e-7)


@pytest.mark.parametrize(
    ("name", "key"),
    [(n, k) for n in SAMPLES for k in json.loads((FOLDER / "r_manual.json").read_text())["dirichlet"][n]],
)
def test_dirichlet_at_every_penalty(name: str, key: str) -> None:
    data, expected = inputs(name), manual()["dirichlet"][name][key]
    lam = expected["lambda"]
    penalty = cs.ODIR(lam, normalize=False) if lam else None
    model = cs.DirichletCalibration(data["y"], data["p"], penalty=penalty, eps=expected["eps"])
    if not expected["finite"]:
        with pytest.warns(SeparationWarning):
            res = model.fit()
        assert not res.converged
        assert abs(-res.llf / res.nobs - expected["value_infimum"]) <= 1e-10
        assert np.isfinite(res.predict(data["p"])).all()
        return
    res = model.fit()
    value = -res._estimates.objective / res.nobs
    assert res.converged
    assert res._estimates.gradient <= 1e-8
    assert abs(value - expected["value"]) <= 1e-10
    assert value <= expected["value_R"] + 1e-10
    K = data["p"].shape[1]
    np.testing.assert_allclose(res.predict(grid(f"grid_prob_k{K}")), expected["grid"], atol=1e-7)
    # Under ODIR the reported representative is R's; without a penalty R's is arbitrary. On m5_sharp the objective is
    # so flat (curvature below 1e-8) that weights agree to 1e-3 only.
    if lam and name != "m5_sharp":
        np.testing.assert_allclose(res.weights, expected["weight"], atol=1e-6)
        np.testing.assert_allclose(res.bias, expected["bias"], atol=1e-6)


def converged_folds(y: np.ndarray, p: np.ndarray, fold: np.ndarray, grid: list[Any]) -> np.ndarray:
    """Where the fit to a training part has a minimiser that can be seen; held-out losses are determined only there.

    Where the standard error of a weight is 1e5, moving it by 1 changes the mean objective by 1e-13: R's search stopped
    on the way there (on m5_sharp, fold 3; `test_softmax_separation` knows the weight to ten digits).
    """
    found = np.zeros((len(grid), fold.max()), dtype=bool)
    for i, penalty in enumerate(grid):
        for f in range(fold.max()):
            keep = fold != f + 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SeparationWarning)
                res = cs.DirichletCalibration(y[keep], p[keep], penalty=penalty, classes=range(1, p.shape[1] + 1)).fit()
            found[i, f] = res.converged and res.bse.max() < 1e4
    return found


@pytest.mark.parametrize("name", SAMPLES)
def test_choice_of_the_penalty_as_in_r(name: str) -> None:
    data, expected = inputs(name), manual()["selection"][name]
    fold = np.array(expected["fold_id"])
    model = cs.DirichletCalibration(data["y"], data["p"])
    with warnings.catch_warnings():
        # On m5_sharp the chosen penalty leaves separable diagonals free, which is told.
        warnings.simplefilter("ignore", SeparationWarning)
        res = model.fit_cv("probcal", folds=fold, progress=False)
    by_fold = res.selection.table.filter(like="fold").to_numpy()
    known = converged_folds(data["y"], data["p"], fold, list(res.selection.penalties))
    assert known.any(axis=1).sum() >= 2
    # Both are at the optimum of each training part; held-out losses inherit the tolerance of predictions.
    np.testing.assert_allclose(by_fold[known], np.array(expected["fold_scores_tight"])[known], rtol=1e-6, atol=1e-8)
    # The choice is compared among penalties whose losses are determined (on m5_sharp the weakest are not).
    rows = np.flatnonzero(known.all(axis=1)) if known.all(axis=1).any() else np.array([3, 4])
    best = rows[np.argmin(res.selection.table["mean"].to_numpy()[rows])]
    assert expected["grid"][best] == expected["selected_tight"]
    np.testing.assert_array_equal(model._folds(expected["folds"], False, None) + 1, fold)


def records() -> list[dict[str, Any]]:
    return json.loads((FOLDER / "dirichlet.json").read_text())


@functools.cache
def score_set(name: str) -> tuple[np.ndarray, np.ndarray]:
    if name.startswith("c10"):
        data = np.load(FOLDER / "c10_resnet110.npz")
        return data["val_labels"].astype(int), special.softmax(data["val_logits"].astype(float), axis=1)
    data = np.load(FOLDER / "score_sets.npz")
    return data[f"{name}_y"].astype(int), data[f"{name}_p"]


def penalty_of(record: dict[str, Any]) -> cs.L2 | cs.ODIR:
    if record["penalty"] == "odir":
        return cs.ODIR(record["reg_lambda"], record["reg_mu"])
    if record["penalty"] == "l2":
        return cs.L2(record["reg_lambda"])
    return cs.L2(1.0 / (2.0 * record["C"] * record["n"]), intercept=False)


@pytest.mark.parametrize("record", records(), ids=lambda r: f"{r['score_set']}-{r['penalty']}-{r['clip']:.0e}")
def test_dirichlet_on_real_scores(record: dict[str, Any]) -> None:
    y, p = score_set(record["score_set"])
    model = cs.DirichletCalibration(y, p, penalty=penalty_of(record), eps=record["clip"], classes=range(record["k"]))
    with warnings.catch_warnings():
        # Where a class is separable its free diagonal runs away, which is told: only the objective is compared.
        if not record["coefficients_comparable"]:
            warnings.simplefilter("ignore", SeparationWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
        res = model.fit(cov=False)
    assert res.nobs == record["n"]
    excess = -res._estimates.objective / res.nobs - record["objective"]
    assert abs(excess) <= 1e-10 or (not record["optimum_certified_1e-10"] and excess < 0)
    assert res._estimates.gradient <= 1e-8
    if record["coefficients_comparable"]:
        gap = res.weights.to_numpy() - np.array(record["coef"])
        # The stored rows of an L2 fit without intercept penalty, and of ours, both have least norm.
        np.testing.assert_allclose(gap, 0.0, atol=1e-6)


def test_multinomial_recalibration() -> None:
    data, expected = inputs("syn_tri"), stored("syn_tri.json")
    y, p = data["y"], data["p"]
    common: dict[str, Any] = {"scores": "probability"}
    fixed = cs.VectorScaling(y, p, slopes="fixed", **common).fit()
    assert np.isclose(fixed.llf_identity, expected["loglik_as_is"], rtol=1e-12)
    assert np.isclose(fixed.llf_null, expected["loglik_null"], rtol=1e-12)
    assert np.isclose(fixed.llf, expected["ref1_intercepts_only_offset"]["loglik"], rtol=1e-12)
    np.testing.assert_allclose(
        fixed.bias.to_numpy()[1:] - fixed.bias.to_numpy()[0], expected["ref1_intercepts_only_offset"]["coef"], rtol=1e-8
    )
    R = np.array([[-1.0, 1.0, 0.0], [-1.0, 0.0, 1.0]])
    np.testing.assert_allclose(R @ fixed.cov_params() @ R.T, expected["ref1_intercepts_only_offset"]["vcov"], rtol=1e-8)
    lr = fixed.test_identity("lr")
    assert np.isclose(lr.statistic, expected["ref1_LR"]["intercepts"]["chisq"], rtol=1e-9)
    assert np.isclose(lr.pvalue, expected["ref1_LR"]["intercepts"]["p"], rtol=1e-7)
    one = cs.VectorScaling(y, p, slopes="common", **common).fit()
    assert np.isclose(one.llf, expected["common_slope"]["loglik"], rtol=1e-12)
    # The stored estimate has a gradient of 9e-8 left, ours 1e-17; the log-likelihood is as flat as that.
    assert np.isclose(one.params["s"], expected["common_slope"]["coef"][2], rtol=1e-6)
    assert np.isclose(one.bse["s"], expected["common_slope"]["se"][2], rtol=1e-6)
    temperature = cs.TemperatureScaling(y, p, **common).fit()
    assert np.isclose(temperature.llf, expected["temperature"]["loglik"], rtol=1e-12)
    assert np.isclose(temperature.temperature, expected["temperature"]["temperature"], rtol=1e-7)
    assert np.isclose(temperature.bse["T"], expected["temperature"]["se_temperature_delta"], rtol=1e-7)
    vector = cs.VectorScaling(y, p, **common).fit()
    assert np.isclose(vector.llf, expected["vector_scaling_on_log_p"]["loglik"], rtol=1e-12)
    coef = expected["vector_scaling_on_log_p"]["coef"]
    np.testing.assert_allclose(vector.scales, [-coef[2], coef[3], coef[4]], rtol=1e-8)
    full = cs.MatrixScaling(y, p, center=True, **common)
    with pytest.warns(RankWarning, match="2 direction"):
        centred = full.fit()
    assert np.isclose(centred.llf, expected["ref1_full_cross_slopes"]["loglik"], rtol=1e-12)
    assert centred.df_model == expected["ref1_full_cross_slopes"]["npar"]
    test = centred.test_identity("lr")
    assert np.isclose(test.statistic, expected["ref1_LR"]["overall_full"]["chisq"], rtol=1e-9)
    np.testing.assert_allclose(centred.predict(grid_tri()), expected["pred_full"], rtol=1e-8)


def grid_tri() -> np.ndarray:
    return np.array(stored("syn_tri.json")["grid"])


def test_dirichlet_map_and_nested_tests() -> None:
    data, expected = inputs("syn_tri"), stored("syn_tri.json")
    y, p = data["y"], data["p"]
    res = cs.DirichletCalibration(y, p, eps=1e-15).fit()
    assert np.isclose(res.llf, expected["dirichlet_full"]["loglik"], rtol=1e-12)
    np.testing.assert_allclose(res.predict(grid_tri()), expected["pred_dirichlet"], rtol=1e-8)
    terms = expected["dirichlet_full"]["terms"]
    R = np.zeros((len(terms), 12))
    for row, term in enumerate(terms):
        name, k = term.split(":")
        k = int(k)
        column = [9, 9 + k] if name == "(Intercept)" else [int(name[1]) - 1, 3 * k + int(name[1]) - 1]
        R[row, column] = [-1.0, 1.0]
    np.testing.assert_allclose(R @ res.params.to_numpy(), expected["dirichlet_full"]["coef"], rtol=1e-7)
    cov = R @ res.cov_params().to_numpy() @ R.T
    np.testing.assert_allclose(cov, expected["dirichlet_full"]["vcov"], rtol=1e-7, atol=1e-10)
    maps = [
        res,
        cs.TemperatureScaling(y, p, scores="probability").fit(),
        cs.VectorScaling(y, p, scores="probability").fit(),
    ]
    table = cs.compare_models(maps).table
    nested = expected["LR_nested"]
    assert np.isclose(table.loc["VectorScaling", "lr"], nested["temperature_vs_vector"]["chisq"], rtol=1e-9)
    assert np.isclose(table.loc["DirichletCalibration", "lr"], nested["vector_vs_dirichlet"]["chisq"], rtol=1e-9)
    assert np.isclose(table.loc["DirichletCalibration", "pvalue"], nested["vector_vs_dirichlet"]["p"], rtol=1e-7)
    test = res.test_identity("lr")
    assert (test.statistic, test.df) == (pytest.approx(nested["as_is_vs_dirichlet"]["chisq"], rel=1e-9), 8)


def test_two_classes_are_beta_calibration() -> None:
    data = inputs("m6_k2")
    res = cs.DirichletCalibration(data["y"], data["p"]).fit()
    beta = cs.BetaCalibration(data["y"] - 1, data["p"][:, 1], eps=1e-12).fit()
    assert np.isclose(res.llf, beta.llf, rtol=1e-12)
    np.testing.assert_allclose(res.predict(data["p"])[:, 1], beta.predict(data["p"][:, 1]), atol=1e-10)
    # a = w_11 + ..., in contrasts: ln(q1/q0) = (w11 - w01) ln p + (w10 - w00) ln(1 - p) + b1 - b0.
    W, b = res.weights.to_numpy(), res.bias.to_numpy()
    ours = [W[1, 1] - W[0, 1], -(W[1, 0] - W[0, 0]), b[1] - b[0]]
    np.testing.assert_allclose(ours, beta.params, atol=1e-8)
    assert np.isclose(res.test_identity("lr").statistic, beta.test_identity("lr").statistic, rtol=1e-9)
    assert np.isclose(res.test_identity("wald").statistic, beta.test_identity("wald").statistic, rtol=1e-7)
    assert np.isclose(res.test_identity("score").statistic, beta.test_identity("score").statistic, rtol=1e-7)


@pytest.mark.parametrize("name", ["m3_glass", "m5_sharp"])
def test_an_unseen_class_is_refused_without_a_penalty(name: str) -> None:
    data = inputs(name)
    keep = data["y"] != 1
    classes = range(1, data["p"].shape[1] + 1)
    with pytest.raises(NotEstimableError, match="class 1 does not occur"):
        cs.DirichletCalibration(data["y"][keep], data["p"][keep], classes=classes).fit()


CIFAR = {
    "Uncal": None,
    "TempS": None,
    "Dir-L2": [cs.L2(10.0**k) for k in range(-6, 1)],
    "Dir-ODIR": [cs.ODIR(10.0**lam, 10.0**mu) for lam in range(-3, 3) for mu in range(-5, 2)],
    "VecS": None,
    "MS-ODIR": [cs.ODIR(10.0**lam, 10.0**mu) for lam in range(-3, 3) for mu in range(-5, 2)],
}


def cifar_predictions(method: str) -> tuple[np.ndarray, np.ndarray]:
    data = np.load(FOLDER / "c10_resnet110.npz")
    y, z = data["val_labels"].astype(int), data["val_logits"].astype(float)
    y_test, z_test = data["test_labels"].astype(int), data["test_logits"].astype(float)
    if method == "Uncal":
        return y_test, special.softmax(z_test, axis=1)
    if method in {"TempS", "VecS"}:
        model = {"TempS": cs.TemperatureScaling, "VecS": cs.VectorScaling}[method](y, z)
        return y_test, model.fit().predict(z_test)
    if method == "MS-ODIR":
        full: Any = cs.MatrixScaling(y, z)
    else:
        full = cs.DirichletCalibration(y, z, scores="logit", eps=2.3e-308)
    res = full.fit_cv(CIFAR[method], folds=5, cov=False, progress=False)
    return y_test, res.predict(z_test)


@pytest.mark.parametrize(
    "method",
    ["Uncal", "TempS", "VecS", *(pytest.param(m, marks=pytest.mark.slow) for m in ("Dir-L2", "Dir-ODIR", "MS-ODIR"))],
)
def test_cifar10_row_of_the_paper(method: str) -> None:
    """Tables 3 and 4 of Kull et al. (2019), row c10_resnet110: log-loss to 0.002, class-wise error (sum) to 0.004."""
    error, loss = stored("table34.json")["paper_printed"][method]
    y, p = cifar_predictions(method)
    assert abs(cs.log_loss(y, p) - loss) <= 0.002
    assert abs(cs.classwise_ece(y, p, bins=15).sum() - error) <= 0.004
