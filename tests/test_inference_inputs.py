"""What inference does with rows, clusters, columns and options: never a number for other ones than were meant."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat.exceptions import InputError

RNG = np.random.default_rng(0)
N = 300
P = RNG.random(N)
Y = (RNG.random(N) < P).astype(int)
BLUNT = 0.9 * P + 0.05
CLUSTER = RNG.integers(0, 30, N)
SITE = np.where(P < 0.5, "A", "B")
SHUFFLED = RNG.permutation(N)
MATRIX = RNG.dirichlet([1, 1, 1], N)
LABEL = (RNG.random((N, 1)) > np.cumsum(MATRIX, axis=1)[:, :-1]).sum(axis=1)

WITH_GROUPS = {
    "bootstrap": lambda y, p, g: cs.bootstrap("brier_score", y, p, groups=g, n_resamples=99, rng=1).bse,
    "recalibration_test": lambda y, p, g: cs.recalibration_test(y, p, groups=g).pvalue,
    "compare_forecasts": lambda y, p, g: cs.compare_forecasts(y, p, 0.9 * p + 0.05, groups=g).statistic,
    "calibration_by": lambda y, p, g: cs.calibration_by(y, p, g, rng=1).test.statistic,
}


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_groups_follow_the_index(name) -> None:
    call, groups = WITH_GROUPS[name], pd.Series(CLUSTER % 3)
    wanted = call(Y, P, CLUSTER % 3)
    assert call(pd.Series(Y), pd.Series(P), groups.iloc[SHUFFLED]) == wanted
    assert call(Y, pd.Series(P), groups.iloc[SHUFFLED]) == wanted
    with pytest.raises(InputError, match=r"`groups` .*different index labels"):
        call(pd.Series(Y), pd.Series(P), groups.set_axis(np.arange(N) + 5000))


def test_forecasts_are_paired_by_their_index_even_if_the_outcome_has_none() -> None:
    wanted = cs.compare_forecasts(Y, P, BLUNT).statistic
    assert cs.compare_forecasts(Y, pd.Series(P), pd.Series(BLUNT).iloc[SHUFFLED]).statistic == wanted
    with pytest.raises(InputError, match=r"`p2` .*different index labels"):
        cs.compare_forecasts(Y, pd.Series(P), pd.Series(BLUNT, index=np.arange(N) + 1))


def test_models_of_a_report_are_paired_by_their_index_even_if_the_outcome_has_none() -> None:
    table = cs.report(Y, P, models={"blunt": BLUNT}, n_resamples=19).models.frame
    shuffled = {"blunt": pd.Series(BLUNT).iloc[SHUFFLED]}
    pd.testing.assert_frame_equal(cs.report(Y, pd.Series(P), models=shuffled, n_resamples=19).models.frame, table)
    with pytest.raises(InputError, match=r"`models\['blunt'\]` .*different index labels"):
        cs.report(Y, pd.Series(P), models={"blunt": pd.Series(BLUNT, index=np.arange(N) + 1)})


def test_folds_follow_the_index() -> None:
    folds = pd.Series(CLUSTER % 3)
    grid = [cs.L2(0.01), cs.L2(1.0)]
    wanted = cs.MatrixScaling(LABEL, MATRIX).fit_cv(grid, folds=folds.to_numpy()).selection.table
    model = cs.MatrixScaling(pd.Series(LABEL), pd.DataFrame(MATRIX))
    pd.testing.assert_frame_equal(model.fit_cv(grid, folds=folds.iloc[SHUFFLED]).selection.table, wanted)


def test_forecasts_of_different_classes_are_not_compared() -> None:
    with pytest.raises(InputError, match=r"`p1` and `p2` .*\(300,\) and \(300, 3\)"):
        cs.compare_forecasts(Y, P, np.column_stack([1 - P, 0.7 * P, 0.3 * P]))


def test_the_difference_is_told_with_its_direction() -> None:
    test = cs.compare_forecasts(Y, P, BLUNT, alpha=0.1)
    low, high = (f"{test.details[name]:.3g}" for name in ("ci_low", "ci_high"))
    gap = cs.brier_score(Y, P) - cs.brier_score(Y, BLUNT)
    assert f"difference {gap:.3g}, 90% interval {low} to {high}; below 0 p1 is better" in str(test)


@pytest.mark.parametrize(
    ("columns", "y"),
    [
        ([1, 0], Y),
        ([True, False], Y.astype(bool)),
        (["p_1", "p_0"], Y),
        ([2, 1], Y + 1),
        ([1, -1], 2 * Y - 1),
        ([1, 0], pd.Categorical(Y)),
        (["1", "0"], Y.astype(float)),
    ],
)
def test_the_column_of_the_event_is_found_by_its_name(columns, y) -> None:
    table = pd.DataFrame(np.column_stack([P, 1 - P]), columns=columns)
    assert cs.brier_score(y, table) == pytest.approx(np.mean((Y - P) ** 2))
    assert cs.brier_score(y, table.iloc[:, ::-1]) == pytest.approx(np.mean((Y - P) ** 2))


def test_clusters_of_weight_0_are_absent() -> None:
    groups = np.repeat(np.arange(10), 30)
    w = (groups < 5).astype(int)
    k = w > 0
    for matrix, y in ((P, Y), (MATRIX, LABEL)):
        weighted = cs.bootstrap("brier_score", y, matrix, groups=groups, freq_weights=w, n_resamples=99, rng=1)
        kept = cs.bootstrap("brier_score", y[k], matrix[k], groups=groups[k], n_resamples=99, rng=1)
        assert weighted.bse == pytest.approx(kept.bse)
        assert weighted.conf_int() == pytest.approx(kept.conf_int())
    weighted = cs.compare_forecasts(Y, P, BLUNT, groups=groups, freq_weights=w)
    assert weighted.statistic == pytest.approx(cs.compare_forecasts(Y[k], P[k], BLUNT[k], groups=groups[k]).statistic)


@pytest.mark.parametrize("name", WITH_GROUPS)
def test_one_cluster_is_refused(name) -> None:
    with pytest.raises(InputError, match=r"`groups` must name at least two"):
        WITH_GROUPS[name](Y, P, np.ones(N))


def test_groups_keep_their_names_and_their_order() -> None:
    def index(groups):
        return cs.calibration_by(Y, P, groups, rng=1).table.index.tolist()

    assert index(np.tile([10, 9, 2], 100)) == [2, 9, 10]
    assert index(pd.Categorical(np.tile(["low", "mid", "high"], 100), ["low", "mid", "high"])) == ["low", "mid", "high"]
    assert index([1] * 150 + ["1"] * 150) == [1, "1"]
    dates = pd.Series(pd.to_datetime(["2020-02-01", "2020-01-01"] * 150))
    assert index(dates) == [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-02-01")]
    table = cs.calibration_by(Y, P, [("b", 2)] * 100 + [("a", 1)] * 200, rng=1).table
    assert table["nobs"].to_dict() == {("a", 1): 200, ("b", 2): 100}


def test_table_and_test_of_groups_clip_alike() -> None:
    p = np.where(np.arange(N) < 3, 0.0, P)
    table = cs.calibration_by(Y, p, SITE, eps=0.01, rng=1).table
    inside = SITE == "A"
    assert table.loc["A", "Slope"] == cs.val_prob(Y[inside], p[inside], eps=0.01).loc["Slope", "estimate"]


@pytest.mark.parametrize(
    ("y", "p", "options"),
    [
        (Y, P, {"statistic": "ece", "bin": 5}),
        (Y, P, {"statistic": "ece", "norm": 3}),
        (Y, P, {"statistic": "brier_score", "nonsense": 5}),
        (Y, P, {"statistic": "log_loss", "eps": 0.9}),
        (LABEL, MATRIX, {"average": "largest"}),
        (LABEL, MATRIX, {"statistic": "confidence_ece", "average": "sum"}),
        (LABEL, MATRIX, {"statistic": "classwise_ece", "type": "confidence"}),
        (Y, P, {"statistic": lambda y, p: np.mean((y - p) ** 2), "bins": 5}),
    ],
)
def test_an_option_that_the_statistic_does_not_have_is_refused(y, p, options) -> None:
    with pytest.raises((InputError, TypeError), match=r"`|unexpected keyword argument"):
        cs.pseudo_label_test(y, p, n_resamples=9, **options)


def test_a_callable_gets_the_bins_that_it_asks_for() -> None:
    def error(y, p, bins=10):
        return cs.ece(y, p, bins=bins)

    assert cs.pseudo_label_test(Y, P, error, bins=2, n_resamples=9).statistic == cs.ece(Y, P, bins=2)
    assert cs.pseudo_label_test(Y, P, error, n_resamples=9).statistic == cs.ece(Y, P)


def test_a_callable_with_any_keywords_is_resampled_by_rows() -> None:
    def plain(y, p):
        return np.mean((y - p) ** 2)

    wanted = cs.bootstrap(plain, Y, P, n_resamples=99, rng=1)
    found = cs.bootstrap(lambda y, p, **_: plain(y, p), Y, P, n_resamples=99, rng=1)
    assert found.bse == wanted.bse > 0.005


def test_the_classwise_error_by_name_and_by_function() -> None:
    wanted = cs.bootstrap("ece", LABEL, MATRIX, type="classwise", n_resamples=9, rng=1).estimate
    for metric in ("classwise_ece", cs.classwise_ece):
        assert cs.bootstrap(metric, LABEL, MATRIX, n_resamples=9, rng=1).estimate == wanted
        test = cs.pseudo_label_test(LABEL, MATRIX, metric, n_resamples=9)
        assert (test.statistic, test.method) == (pytest.approx(wanted), "classwise_ece")


def test_values_that_are_missing_are_left_out_and_told() -> None:
    def undefined(y, p):
        return np.nan if y[0] == 0 else cs.ece(y, p)

    y = np.where(np.arange(N) == 0, 1, Y)
    p = np.where(np.arange(N) == 0, 0.5, P)
    test = cs.pseudo_label_test(y, p, undefined, n_resamples=99, rng=1)
    assert 20 < test.details["n_resamples"] < 80
    assert f"{99 - test.details['n_resamples']} draws without a value" in str(test)
    assert np.isfinite(test.expected)
    result = cs.bootstrap(undefined, y, p, n_resamples=99, rng=1)
    assert any("have no value" in note for note in result.notes)
    with pytest.raises(InputError, match="NaN for all of them"):
        cs.pseudo_label_test(y, p, lambda *_: np.nan, n_resamples=9)


def test_a_metric_must_return_a_number() -> None:
    with pytest.raises(InputError, match="must return one number; nothing returned NoneType"):
        cs.bootstrap(nothing, Y, P)


def nothing(y, p):
    return None


def test_classes_and_events_that_do_not_apply_are_refused() -> None:
    with pytest.raises(InputError, match="`classes` names 3 classes"):
        cs.evaluate(Y, P, classes=["a", "b", "c"])
    with pytest.raises(InputError, match="`event` is for"):
        cs.bootstrap("confidence_ece", LABEL, MATRIX, event=1)
    with pytest.raises(InputError, match="`event` is for"):
        cs.recalibration_test(LABEL, MATRIX, against="vector", event=1)
