"""Faults that users of other programs reported, as cases with right answers: the binary maps have none of them.

The answers come from closed forms, or from Newton with statsmodels agreeing; each source is named at its test.
"""

from __future__ import annotations

import warnings

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat.exceptions import SeparationWarning

P = np.array([0.02, 0.11, 0.23, 0.42, 0.58, 0.71, 0.86, 0.97])
Y = np.array([0, 0, 1, 0, 1, 0, 1, 1])
P20 = np.array([3, 7, 11, 16, 22, 27, 31, 36, 42, 47, 53, 58, 63, 69, 74, 79, 84, 88, 93, 97]) / 100
SHARP = np.array([0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 1, 1, 0, 1, 1, 1, 1])
BLUNT = np.array([0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0])

ANSWER = 1e-8  # the answers are optima solved to rounding and given to 16 digits


def same(got, want, tol=ANSWER):
    assert np.asarray(got, float) == pytest.approx(np.asarray(want, float), rel=tol, abs=tol)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (0.0, 1e6), (0.0, 1e-6), (1e4, 1.0)])
def test_scores_of_any_size_give_the_same_probabilities(shift, scale):
    # scikit-learn/scikit-learn#26766: scores of size 1e5 gave a constant
    score = shift + scale * np.array([-2.1, -1.0, -0.3, 0.4, 0.9, 1.7])
    res = cs.PlattScaling([0, 0, 1, 0, 1, 1], score).fit()
    wanted = [0.18444286606140312, 0.3342188491502196, 0.4546872150491119, 0.5807043272743211, 0.6655452008827928,
              0.7804015415821517]  # fmt: skip
    same(res.fittedvalues, wanted)
    assert res.converged


def test_log_odds_of_probabilities_are_taken_and_said():
    # scikit-learn/scikit-learn#34312: a sigmoid on probabilities does not contain the identity map
    on_log_odds = cs.PlattScaling(Y, P, scores="probability", target_correction=False).fit()
    same(on_log_odds.params[["slope", "intercept"]], [0.7511346517213896, 0.07426760686852628])
    same(on_log_odds.fittedvalues[[0, -1]], [0.054732334235669235, 0.9361527882446972])
    as_given = cs.PlattScaling(Y, P, target_correction=False).fit()
    same(as_given.params[["slope", "intercept"]], [3.835213728498092, -1.8696607420681277])
    assert "(probabilities)" in str(on_log_odds.summary())
    assert "(margins)" in str(as_given.summary())


def test_recalibrating_a_recalibrated_model_changes_nothing():
    first = cs.LogisticCalibration(Y, P).fit()
    again = cs.LogisticCalibration(Y, first.fittedvalues).fit()
    same(again.params, [0.0, 1.0])
    same(again.fittedvalues, first.fittedvalues)
    same(cs.BetaCalibration(Y, P).fit().fittedvalues.mean(), Y.mean())
    once = cs.TemperatureScaling(Y, P, scores="probability").fit()
    same(cs.TemperatureScaling(Y, once.fittedvalues, scores="probability").fit().temperature, 1.0)


def test_the_beta_map_is_tested_against_the_identity():
    res = cs.BetaCalibration(SHARP, P20).fit()
    lr = res.test_identity()
    same([lr.statistic, lr.df, lr.pvalue], [0.10862792436586943, 3, 0.9907823105570908])
    same(res.bse[["a", "b", "c"]], [1.2239648265632685, 1.4255597201348962, 2.205143703013595])


def test_restricted_beta_maps_are_what_their_names_say():
    # betacal/python#1: its map "a" regresses on ln 2p alone and is not symmetric
    am, ab, a = (cs.BetaCalibration(SHARP, P20, parameters=name).fit() for name in ("am", "ab", "a"))
    same(am.params, [0.9225219678236832, 0.00011951807799172848])
    same(am.fittedvalues[[0, -1]], [0.038915942078812445, 0.9610929972446542])
    same(ab.params, [0.7086854244920925, 1.1571139167933109])
    same(ab.fittedvalues[[0, -1]], [0.05948918345232904, 0.9764563522461456])
    same(a.params, [0.92252208992531])
    same(a.fittedvalues[[0, -1]], [0.038911456297927506, 0.9610885437020724])
    same(a.predict(1 - P20), 1 - a.predict(P20), 1e-12)
    same([a.m, ab.m, ab.predict(0.5)], [0.5, 0.5, 0.5], 1e-12)


def test_a_fit_leaves_every_global_setting_alone():
    # betacal silences all warnings of the program that calls it
    before = list(warnings.filters), np.geterr(), np.random.get_state()[1].copy(), dict(mpl.rcParams)  # noqa: NPY002
    for model in (cs.BetaCalibration, cs.LogisticCalibration, cs.PlattScaling):
        model(SHARP, P20).fit().summary()
    assert list(warnings.filters) == before[0]
    assert np.geterr() == before[1]
    assert np.array_equal(np.random.get_state()[1], before[2])  # noqa: NPY002
    assert dict(mpl.rcParams) == before[3]


def test_temperature_of_a_binary_model():
    # torch-uncertainty/torch-uncertainty#165: the input came back unchanged
    one = cs.TemperatureScaling(Y, P, scores="probability").fit()
    same(one.temperature, 1.333454052815473)
    same(one.fittedvalues[[0, 1, -1]], [0.051241673200777466, 0.1725139902489229, 0.9313003669247331])
    slope = cs.BetaCalibration(Y, P, parameters="a").fit()
    same(1 / slope.params["a"], one.temperature)


@pytest.mark.parametrize("model", [cs.TemperatureScaling, cs.LogisticCalibration, cs.BetaCalibration])
def test_two_columns_in_are_two_columns_out(model):
    # EFS-OpenSource/calibration-framework#10: one column came back, of the other class
    options = {"scores": "probability"} if model is not cs.BetaCalibration else {}
    pair = np.column_stack([1 - P, P])
    two, one = model(Y, pair, **options).fit(), model(Y, P, **options).fit()
    same(two.params, one.params)
    out = two.predict(pair)
    assert out.shape == (8, 2)
    same(out[:, 1], one.predict(P))
    same(out.sum(axis=1), np.ones(8))
    assert one.predict(P).shape == (8,)
    index = pd.Index(list("abcdefgh"))
    framed = two.predict(pd.DataFrame(pair, index=index, columns=["p_0", "p_1"]))
    assert framed.index.equals(index)
    same(framed, out)


def test_temperature_of_separated_scores_is_told():
    with pytest.warns(SeparationWarning, match="(?i)separat|bound"):
        res = cs.TemperatureScaling([0, 0, 1, 1], [-2.0, -1.0, 1.0, 2.0]).fit()
    assert not res.converged
    assert res.bse.isna().all()


def test_intervals_are_returned_at_the_level_that_was_asked_for():
    # BavoDC/CalibrationCurves#2; statsmodels/statsmodels#3116: drawn only; the level changed nothing
    res = cs.LogisticCalibration(BLUNT, P20).fit()
    for alpha, slope, citl in (
        (0.05, [-0.19791394176255062, 0.9634699920885539], [-1.3964580222099074, 0.7821150322937702]),
        (0.10, [-0.10455403576934519, 0.8701100860953485], [-1.2213295658575316, 0.6069865759413944]),
    ):
        same(res.conf_int(alpha, "wald").loc["slope"], slope)
        same(res.in_the_large.conf_int(alpha, "wald").iloc[0], citl)
        assert f"[{alpha / 2:.4g}" in str(res.summary(alpha))
    # R's profile limits are interpolated by a spline: good to 1e-3 of the standard error 0.3
    same(res.conf_int(method="profile").loc["slope"], [-0.155897007, 1.052525904], 3e-4)
    same(res.in_the_large.conf_int(method="profile").iloc[0], [-1.417160164, 0.7809959651], 3e-4)


def test_joint_test_of_intercept_and_slope():
    # statsmodels/statsmodels#6430: the z of the slope against 0 is no test of calibration
    res = cs.LogisticCalibration(BLUNT, P20).fit()
    joint = res.test_identity("lr")
    same([joint.statistic, joint.df, joint.pvalue], [3.6432064621341382, 2, 0.16176619433651457])
    row = res.coefficient_table().loc["slope"]
    same(row[["identity", "z_identity", "pvalue_identity"]], [1.0, -2.083260850932864, 0.03722745314834208])


def test_true_is_the_event_for_arrays_series_and_formulas():
    # statsmodels/statsmodels#5535: one interface modelled the probability of False
    x = [-2.0, -1.2, -0.8, -0.1, 0.3, 0.9, 1.4, 2.2]
    y = [False, False, True, False, True, False, True, True]
    frame = pd.DataFrame({"y": y, "x": x})
    fits = [
        cs.PlattScaling(y, x, target_correction=False),
        cs.PlattScaling(pd.Series(y, dtype="boolean"), x, target_correction=False),
        cs.PlattScaling([0, 0, 1, 0, 1, 0, 1, 1], x, target_correction=False),
        cs.PlattScaling.from_formula("y ~ x", data=frame, target_correction=False),
        cs.LogisticCalibration(y, x, scores="logit"),
    ]
    for model in fits:
        same(model.fit().params, [-0.08565778601700971, 1.0020287328137958])


def test_labels_of_a_formula_stay_in_the_results():
    # statsmodels/statsmodels#4544: names of classes vanished
    risk = [0.2, 0.7, 0.4, 0.6, 0.9, 0.5, 0.1, 0.3]
    frame = pd.DataFrame({"outcome": ["no", "yes", "no", "yes", "yes", "no", "no", "yes"], "risk": risk})
    res = cs.PlattScaling.from_formula("outcome ~ risk", data=frame, event="yes").fit()
    assert (res.event, res.nonevent) == ("yes", "no")
    assert "yes" in str(res.summary())
    assert res.params["slope"] > 0


@pytest.mark.parametrize("new", [[0.3], pd.Series([0.3]), np.array([0.3]), pd.DataFrame({"score": [0.3], "x": [1]})])
def test_a_formula_map_predicts_from_a_bare_list(new):
    # statsmodels/statsmodels#3987: a NameError from inside the parser
    frame = pd.DataFrame({"y": [0, 1, 0, 1, 1, 0], "score": [-1.0, 0.5, 0.2, 1.0, -0.2, 0.1]})
    res = cs.PlattScaling.from_formula("y ~ score", data=frame).fit()
    same(res.predict(new), [1 / (1 + np.exp(-res.params["intercept"] - 0.3 * res.params["slope"]))])
