"""Isotonic, histogram, one-vs-rest and cross-validated maps against stored numbers (tests/reference/nonparametric)."""

from __future__ import annotations

import json
import math
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import calstat as cs
from calstat.exceptions import CalstatWarning

FOLDER = Path(__file__).parent / "reference"


def read(name):
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


MAPS, OVR, CV = (read(f"nonparametric/{name}.json") for name in ("maps", "one_vs_rest", "cross_validated"))
STATISTICS = read("nonparametric/statistics.json")
BINARY, MULTI = read("binary/inputs.json"), read("multiclass/inputs.json")
BASES = {
    "platt": cs.PlattScaling,
    "beta": cs.BetaCalibration,
    "isotonic": cs.IsotonicCalibration,
    "histogram": cs.HistogramBinning,
    "temperature": cs.TemperatureScaling,
}
MODELS = {**BASES, "vector": cs.VectorScaling, "dirichlet": cs.DirichletCalibration, "ovr": cs.OneVsRest}


def close(ours, theirs, tolerance=1e-12):
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs, dtype=float), rtol=0, atol=tolerance)


def quietly(fit):
    """Fit without our warnings: separated and constant columns are part of the stored cases."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalstatWarning)
        return fit()


# -- isotonic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MAPS["isotonic"])
def test_isotonic_is_rs(case):
    expected = MAPS["isotonic"][case]
    name, column = case.split("_", 1)
    y, p = BINARY[name]["y"], BINARY[name][column]
    res = cs.IsotonicCalibration(y, p).fit()
    close(res.predict(expected["thresholds"]), expected["optimum"])
    close(res.predict(expected["thresholds"]), expected["calibrated"])
    close(np.asarray(res.predict(p))[: len(expected["train"])], expected["train"])
    close(res.predict(BINARY["grid_binary_p"]), expected["grid"])
    assert res.n_blocks == expected["n_blocks"]


@pytest.mark.parametrize("name", STATISTICS)
def test_blocks_are_those_of_the_corp_diagram(name):
    bins = STATISTICS[name]["pav_bins"]
    table = cs.IsotonicCalibration(BINARY[name]["y"], BINARY[name]["p"]).fit().table()
    close(table["lower"], bins["x_min"])
    close(table["upper"], bins["x_max"])
    close(table["count"], bins["n"])
    close(table["value"], bins["CEP"])


@pytest.mark.parametrize("name", [k for k, v in STATISTICS.items() if "isotonic" in v])
def test_isotonic_on_a_grid(name):
    expected = STATISTICS[name]
    res = cs.IsotonicCalibration(BINARY[name]["y"], BINARY[name]["p"]).fit()
    close(res.predict(expected["grid"]), expected["isotonic"]["pred"])


# -- histogram -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", MAPS["histogram"])
def test_histogram_is_rs_on_the_edges_that_r_builds(case):
    """R multiplies j by 1/bins, so that some edges are one unit in the last place too large."""
    expected = MAPS["histogram"][case]
    y, p = BINARY[expected["input"]]["y"], BINARY[expected["input"]][expected["column"]]
    res = cs.HistogramBinning(y, p, bins=expected["breaks"]).fit()
    close(res.values, expected["values"])
    close(res.table()["count"], expected["counts"], 0)
    close(np.asarray(res.predict(p))[: len(expected["train"])], expected["train"])
    close(res.predict(BINARY["grid_binary_p"]), expected["grid"])
    assert res.n_bins == expected["actual_bins"]
    events = float(res.table()["events"].sum())
    assert events / res.nobs == pytest.approx(expected["global_rate"], rel=1e-15)


def exact_quantiles(p, bins):
    """Quantiles of type 8 in exact fractions, rounded once."""
    ordered, n, inner = sorted(map(Fraction, p)), len(p), []
    for j in range(1, bins):
        position = (n + Fraction(1, 3)) * Fraction(j, bins) + Fraction(1, 3)
        rank = math.floor(position)
        low, high = ordered[max(rank, 1) - 1], ordered[min(rank + 1, n) - 1]
        inner.append(float(low + (position - rank) * (high - low)))
    return np.unique([0.0, *inner, 1.0])


@pytest.mark.parametrize("case", MAPS["histogram"])
def test_own_edges_differ_from_rs_by_rounding_alone(case):
    expected = MAPS["histogram"][case]
    y, p = BINARY[expected["input"]]["y"], BINARY[expected["input"]][expected["column"]]
    res = cs.HistogramBinning(y, p, bins=expected["bins"], strategy=expected["strategy"]).fit()
    close(res.edges, expected["breaks"], 1e-15)
    if expected["strategy"] == "equal_freq":
        close(res.edges, exact_quantiles(p, expected["bins"]), 2e-16)
        close(res.values, expected["values"])
        close(res.predict(BINARY["grid_binary_p"]), expected["grid"])
    elif (expected["input"], expected["column"]) in {("b2", "p"), ("b4", "p_rf")}:
        # These scores are hundredths: whole numbers tell the bin without any rounding.
        hundredths = np.rint(100 * np.array(p)).astype(int)
        bins = np.minimum(hundredths * expected["bins"] // 100, expected["bins"] - 1)
        assert res.table()["count"].tolist() == np.bincount(bins, minlength=expected["bins"]).tolist()


# -- one-vs-rest ---------------------------------------------------------------------------------------


def one_vs_rest(case, **changed):
    args = OVR[case]["args"]
    name = next(name for name in MULTI if case.startswith(name))
    scores = MULTI[name][args["x"][0]]
    options = {k: args[k] for k in ("bins", "strategy") if k in args} | changed
    model = cs.OneVsRest(
        MULTI[name]["y"], scores, BASES[args["method"]], classes=range(1, len(scores[0]) + 1), **options
    )
    return quietly(model.fit), scores


OVR_CASES = [k for k in OVR if k != "uniform_fallback"]
NO_OPTIMUM = ["m5_sharp_beta"]  # three of its classes are separated
CONSTANT = [k for k in OVR_CASES if k.startswith(("m3_vehicle", "m6_k2")) and k.endswith(("logit", "temperature"))]
ROUNDED = ["m4_histogram_10", "m3_vehicle_histogram_equal_freq_5"]  # rows lie on edges that R's rounding moves
PLAIN = [k for k in OVR_CASES if k not in NO_OPTIMUM + CONSTANT + ROUNDED]


@pytest.mark.parametrize("case", PLAIN)
def test_one_vs_rest_is_rs(case):
    expected = OVR[case]
    res, scores = one_vs_rest(case)
    grid = quietly(lambda: res.predict(MULTI[expected["grid_name"]]))
    assert int((np.ptp(grid, axis=1) < 1e-12).sum()) == expected["n_uniform"]
    tolerance = 1e-12
    if expected["tight"] is not None:
        close(grid, expected["tight"], 1e-9)
        tolerance = 1e-6 if case.endswith("temperature") else 1e-7  # how far R's own search stops from the optimum
    close(grid, expected["grid"], tolerance)
    close(np.asarray(res.predict(scores))[: len(expected["train"])], expected["train"], tolerance)
    assert res.n_uniform == 0


@pytest.mark.parametrize("case", [k for k in PLAIN if k.endswith(("platt_prob", "platt_logit", "beta"))])
def test_one_vs_rest_coefficients_are_rs(case):
    res, _ = one_vs_rest(case)
    names = ["a", "b", "c"] if case.endswith("beta") else ["intercept", "x"]
    for part, theirs in zip(res.results.values(), OVR[case]["calibrators"], strict=True):
        np.testing.assert_allclose(part.params, [theirs[k] for k in names], rtol=1e-6, atol=1e-7)


def test_one_vs_rest_histograms_on_the_edges_that_r_builds():
    expected = OVR["m4_histogram_10"]
    res, scores = one_vs_rest("m4_histogram_10", bins=expected["calibrators"][0]["breaks"], strategy="equal_width")
    close(res.predict(MULTI[expected["grid_name"]]), expected["grid"])
    close(np.asarray(res.predict(scores))[: len(expected["train"])], expected["train"])


def test_one_vs_rest_quantile_bins_at_whole_positions():
    """With 423 rows and 5 bins two positions are whole numbers: the edges are order statistics, R's miss them."""
    case = "m3_vehicle_histogram_equal_freq_5"
    expected = OVR[case]
    res, scores = one_vs_rest(case)
    p = np.array(scores)
    columns = []
    for k, theirs in enumerate(expected["calibrators"]):
        ours = res.results[k + 1]
        np.testing.assert_allclose(ours.edges, theirs["breaks"], rtol=1e-13)
        ordered = np.sort(p[:, k])
        assert ours.edges[[1, 4]].tolist() == ordered[[84, 338]].tolist()
        y = (np.array(MULTI["m3_vehicle"]["y"]) == k + 1).astype(int)
        on_theirs = cs.HistogramBinning(y, p[:, k], bins=theirs["breaks"]).fit()
        close(on_theirs.values, theirs["bin_values"])
        columns.append(on_theirs.predict(np.array(MULTI[expected["grid_name"]])[:, k]))
    stacked = np.stack(columns, axis=1)
    close(stacked / stacked.sum(axis=1, keepdims=True), expected["grid"])


@pytest.mark.parametrize("case", CONSTANT)
def test_one_vs_rest_with_a_constant_column(case):
    """A constant score determines no slope; R stores NA or a bound of its search for it. The other classes agree."""
    expected = OVR[case]
    res, scores = one_vs_rest(case)
    name = "temperature" if case.endswith("temperature") else "x"
    for k, theirs in enumerate(expected["calibrators"], start=1):
        if np.ptp(np.array(scores)[:, k - 1]) > 0:
            assert res.results[k].params.iloc[-1] == pytest.approx(theirs[name], rel=1e-6)
    assert np.isfinite(np.asarray(res.predict(scores))).all()
    if "train" in expected:
        close(np.asarray(res.predict(scores))[: len(expected["train"])], expected["train"], 1e-6)


def test_one_vs_rest_of_separated_classes():
    """Three classes have no optimum, and R stops anywhere; the two others agree, and ours is no worse a fit."""
    res, scores = one_vs_rest("m5_sharp_beta")
    y, p = np.array(MULTI["m5_sharp"]["y"]), np.clip(np.array(scores), 1e-15, 1 - 1e-15)
    for k, theirs in enumerate(OVR["m5_sharp_beta"]["calibrators"], start=1):
        part = res.results[k]
        if part.converged:
            np.testing.assert_allclose(part.params, [theirs["a"], theirs["b"], theirs["c"]], rtol=1e-7)
        else:
            eta = theirs["a"] * np.log(p[:, k - 1]) - theirs["b"] * np.log1p(-p[:, k - 1]) + theirs["c"]
            assert part.llf >= -np.logaddexp(0, np.where(y == k, -eta, eta)).sum() - 1e-8
    assert [res.results[k].converged for k in range(1, 6)] == [False, False, False, True, True]


@pytest.mark.parametrize(("method", "options"), [("isotonic", {}), ("histogram_4", {"bins": 4})])
def test_rows_of_zeros_become_uniform_and_are_told(method, options):
    case = OVR["uniform_fallback"]
    base = BASES[method.split("_")[0]]
    res = cs.OneVsRest(case["y"], case["x"], base, **options).fit()
    columns = np.stack([res.results[k].predict(np.array(case["newdata"])[:, k - 1]) for k in (1, 2, 3)], axis=1)
    close(columns, case[f"{method}_columns"])
    with pytest.warns(cs.exceptions.DataWarning, match="2 of 4 rows, the first is row 0.*uniform") as caught:
        close(res.predict(case["newdata"]), case[method])
    assert caught[0].filename == __file__


# -- cross-validation ----------------------------------------------------------------------------------


def cross_validated(case, **changed):
    given = CV[case]
    name, x, args = given["input"]["file"][:-4], given["input"]["x"], given["args"]
    options = {"bins": args["bins"]} if "bins" in args else {}
    if name in BINARY:
        y, scores, grid = BINARY[name]["y"], BINARY[name][x], BINARY[given["grid_name"]]
    else:
        y, scores, grid = MULTI[name]["y"], MULTI[name][x[0]], MULTI[given["grid_name"]]
        options["classes"] = range(1, len(scores[0]) + 1)
    if args["method"] == "ovr":
        options["base"] = BASES[args.get("base_method", "platt")]
    if "lambda" in args:
        options["penalty"] = cs.ODIR(args["lambda"], normalize=False)
    model = cs.CrossValidatedCalibration(y, scores, MODELS[args["method"]], folds=given["folds"], **(options | changed))
    chosen = case.endswith("dirichlet")
    return quietly(lambda: model.fit_cv(penalties="probcal") if chosen else model.fit()), grid


R_STOPS_EARLY = 1e-2  # vector scaling and Dirichlet in R end up to 9e-3 from their optimum: judge by `tight`


@pytest.mark.parametrize("case", [k for k in CV if not k.endswith("histogram") or "ovr" in k])
def test_out_of_fold_predictions_are_rs(case):
    expected = CV[case]
    res, grid = cross_validated(case)
    early = "vector" in case or "dirichlet" in case
    tolerance = R_STOPS_EARLY if early else 1e-12 if "iso" in case or "hist" in case else 1e-7
    if expected["tight"] is not None:
        close(res.oof_predictions, expected["tight"], 1e-7 if early else 1e-9)
    close(res.oof_predictions, expected["oof"], tolerance)
    close(res.predict(grid), expected["grid"], tolerance)
    assert list(res.folds) == expected["folds"]


@pytest.mark.parametrize("case", ["b1_histogram", "b2_histogram", "b4_histogram"])
def test_out_of_fold_histograms_on_the_edges_that_r_builds(case):
    res, grid = cross_validated(case, bins=CV[case]["final"]["breaks"])
    close(res.oof_predictions, CV[case]["oof"])
    close(res.predict(grid), CV[case]["grid"])
    for part, theirs in zip(res.fold_results.values(), CV[case]["fold_calibrators"], strict=True):
        close(part.values, theirs["bin_values"])


def test_penalties_chosen_within_folds_are_rs():
    for case in ("m1_dirichlet", "m3_vehicle_dirichlet"):
        res, _ = cross_validated(case)
        lams = [part.selection.chosen.lam for part in res.fold_results.values()]
        assert lams == [c["lambda"] for c in CV[case]["fold_calibrators"]]


@pytest.mark.parametrize("case", ["b1_platt", "b2_platt", "b4_platt", "b1_beta", "b2_beta", "b4_beta"])
def test_coefficients_by_fold_are_rs(case):
    res, _ = cross_validated(case)
    names = ["a", "b", "c"] if case.endswith("beta") else ["intercept", "x"]
    table = res.fold_table()
    stored = [*CV[case]["fold_calibrators"], CV[case]["final"]]
    for label, theirs in zip([*res.fold_results, "final"], stored, strict=True):
        np.testing.assert_allclose(table[label], [theirs[k] for k in names], rtol=1e-6, atol=1e-7)
