"""Cases on which metrics are known to go wrong: crashes, silent misreadings, values that depend on row order."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from calstat.exceptions import DataWarning, InputError, LabelError, NotEstimableWarning, ProbabilityError
from calstat.metrics import (
    ace,
    adjust_prevalence,
    brier_score,
    classwise_ece,
    confidence_ece,
    ece,
    evaluate,
    log_loss,
    mce,
    mmce,
    reliability_table,
    score_decomposition,
    squared_ece,
)


def errors(y, p, **options):
    return [ece(y, p, **options), ece(y, p, norm=2, **options), mce(y, p, **options)]


def close(value, expected, tolerance=1e-12):
    np.testing.assert_allclose(value, expected, rtol=0, atol=tolerance)


# --- the value of the error -------------------------------------------------------------------------------------


def test_probabilities_of_exactly_0_and_1():
    # 4/5 |1 - 1/2| + 1/5 |0 - 1|
    close(errors([0, 0, 1, 1, 1], [1.0, 1.0, 1.0, 1.0, 0.0], bins=2), [0.6, np.sqrt(0.4), 1.0])


def test_a_hand_calculation_with_2_and_with_3_bins():
    y, p = [0, 0, 1, 1, 1], [0.25, 0.25, 0.55, 0.75, 0.75]
    close(errors(y, p, bins=2), [0.29, 0.2918332857414772, 0.95 / 3])
    close(errors(y, p, bins=3), [0.29, 0.30083217912982646, 0.45])


def test_the_norms_are_not_mixed_up():
    y, p = [0, 1, 1, 0, 1, 0], [0.05, 0.35, 0.62, 0.71, 0.93, 0.48]
    value = errors(y, p, bins=5)
    close(value, [0.2633333333333333, 0.3451448971084463, 0.65])
    assert value[0] <= value[1] <= value[2] <= 1


def test_a_constant_base_rate_forecast_has_no_error_and_no_skill():
    y, p = [0, 1, 0, 1], [0.5] * 4
    assert ece(y, p) == 0
    for method in ("corp", "bins"):
        parts = score_decomposition(y, p, method=method)
        close(parts, [0.25, 0, 0, 0.25, 0], 1e-15)


def test_always_certain_means_one_minus_accuracy():
    P = np.eye(2)[[0, 0, 1, 0, 1]]
    assert confidence_ece([0, 1, 1, 0, 1], P) == pytest.approx(0.2)


# --- bins -------------------------------------------------------------------------------------------------------


def test_0_15_is_in_the_fourth_of_20_bins():
    y, p = [0, 0, 1, 1, 0, 1, 1, 1], [0.05, 0.15, 0.35, 0.55, 0.7, 0.85, 0.9, 0.95]
    count = reliability_table(y, p, bins=20)["count"]
    # Closed on the left, as documented: 0.05 j is in bin j.
    assert count.tolist() == [0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 1, 1]


def test_empty_bins_hold_nothing():
    y, p = [1, 1, 0], [0.9, 0.8, 0.2]
    table = reliability_table(y, p, bins=3)
    assert table["count"].tolist() == [1, 0, 2]
    close(table["mean_p"], [0.2, np.nan, 0.85])
    close(table["mean_y"], [0, np.nan, 1])
    close([ece(y, p, bins=3), mce(y, p, bins=3)], [0.5 / 3, 0.2])


def test_quantile_bins_of_a_constant():
    y, p = [1] * 3 + [0] * 7, [0.7] * 10
    close(errors(y, p, strategy="equal_freq"), [0.4, 0.4, 0.4])


def test_quantile_bins_never_cut_ties():
    y, p = np.array([1, 1, 1, 0, 0, 0, 1, 1]), np.array([0.2] * 6 + [0.8] * 2)
    # 6/8 |1/2 - 0.2| + 2/8 |1 - 0.8|
    for seed in range(6):
        order = np.random.default_rng(seed).permutation(8)
        close(ece(y[order], p[order], bins=4, strategy="equal_freq"), 0.275)


def test_the_last_quantile_bin_counts():
    y, p = [0, 0, 1, 0, 1, 1, 0, 1], [0.04, 0.11, 0.19, 0.33, 0.52, 0.61, 0.77, 0.92]
    close(errors(y, p, bins=4, strategy="equal_freq"), [0.27375, 0.3047437448086507, 0.435])


def test_uneven_quantile_bins_are_weighted_by_their_rows():
    y, p = [0, 1, 0, 1, 1], [0.1, 0.3, 0.5, 0.6, 0.9]
    # The median is the edge; bins are closed on the left, so its row is in the upper one.
    close(errors(y, p, bins=2, strategy="equal_freq"), [0.12, 0.18973665961010275, 0.3])


@pytest.mark.parametrize("options", [{"bins": 0}, {"bins": -3}, {"bins": 2.5}, {"strategy": "unifrom"}])
def test_wrong_bins_are_refused(options):
    with pytest.raises(InputError, match=r"bins|strategy"):
        ece([0, 1], [0.2, 0.7], **options)


# --- classes ----------------------------------------------------------------------------------------------------


def test_a_class_that_never_occurs():
    P = [[0.9, 0.1], [0.8, 0.2]]
    close(confidence_ece([0, 0], P), 0.15)
    with pytest.warns(DataWarning, match="1 of 2 classes do not occur"):
        close(ece([0, 0], P, type="classwise"), 0.15)


def test_adaptive_error_of_three_classes():
    P = [
        [0.7, 0.21, 0.09],
        [0.15, 0.6, 0.25],
        [0.05, 0.17, 0.78],
        [0.42, 0.34, 0.24],
        [0.3, 0.44, 0.26],
        [0.12, 0.33, 0.55],
    ]
    y = [0, 1, 2, 1, 0, 2]
    options = {"bins": 3, "strategy": "equal_freq"}
    close(classwise_ece(y, P, norm="mean", **options), [0.14, 0.125, 0.755 / 3])
    close(ace(y, P, type="classwise", **options), 0.1722222222222222)


def test_tied_top_labels_are_the_first_column():
    P = [[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.1, 0.1, 0.8]]
    close(confidence_ece([0, 1, 2, 2], P, bins=5), 0.1)


def test_mmce_is_the_root_with_the_width_on_the_scale_of_the_confidence():
    hit, confidence = [1, 0, 1, 1, 0, 1], np.array([0.55, 0.62, 0.81, 0.93, 0.7, 0.88])
    close(mmce(hit, confidence, bandwidth=0.4), 0.12324607997433895)
    # The same as the top label of two columns: correct where the label is column 0.
    P = np.column_stack([confidence, 1 - confidence])
    close(mmce(1 - np.array(hit), P, type="confidence", bandwidth=0.4), 0.12324607997433895)


def test_columns_are_matched_to_labels_by_name():
    y = ["cat", "dog", "bird", "dog"]
    P = pd.DataFrame({"cat": [0.7, 0.2, 0.1, 0.52], "dog": [0.2, 0.7, 0.3, 0.28], "bird": [0.1, 0.1, 0.6, 0.2]})
    close(confidence_ece(y, P, bins=8), 0.18)
    close(confidence_ece(y, P[["bird", "cat", "dog"]], bins=8), 0.18)


def test_a_level_without_rows_keeps_its_place():
    y = pd.Categorical(["lo", "hi", "lo", "hi"], categories=["lo", "mid", "hi"])
    P = pd.DataFrame({"lo": [0.6, 0.2, 0.5, 0.1], "mid": [0.3, 0.2, 0.2, 0.3], "hi": [0.1, 0.6, 0.3, 0.6]})
    with pytest.warns(DataWarning, match="'mid'"):
        per_class = classwise_ece(y, P, bins=5)
    assert per_class.index.tolist() == ["lo", "mid", "hi"]
    close(per_class, [0.3, 0.25, 0.3])


# --- labels -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "p", "expected"),
    [
        ([1], [0.4], 0.36),
        ([1, 1, 1], [1.0, 1.0, 1.0], 0.0),
        ([0], [0.5], 0.25),
        ([1, 1, 1, 1], [0.0, 0.0, 0.0, 0.0], 1.0),
        ([True, True], [0.9, 0.7], 0.05),
    ],
)
def test_one_outcome_in_the_sample(y, p, expected):
    close(brier_score(y, p), expected, 1e-15)


def test_strings_need_an_event():
    y, p = ["spam", "eggs", "spam", "eggs"], [0.9, 0.25, 0.65, 0.45]
    with pytest.raises(LabelError, match=r"'eggs', 'spam'.*event"):
        ece(y, p, bins=5)
    close([ece(y, p, bins=5, event="spam"), mce(y, p, bins=5, event="spam")], [0.2875, 0.45])
    assert ece(y, p, bins=5, event="spam") == ece([1, 0, 1, 0], p, bins=5)


@pytest.mark.parametrize("y", [[-1, 1, -1, 1], [1, 2, 1, 2], [False, True, False, True]])
def test_other_codings_of_a_binary_outcome(y):
    close(brier_score(y, [0.1, 0.8, 0.3, 0.6]), 0.075, 1e-15)


# --- probabilities ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "P"), [([1], [[0.2, 0.3]]), ([0, 1], [[0.9, 0.095], [0.3, 0.7]]), ([1, 0], [[0.2, 0.3, 0.1]] * 2)]
)
def test_rows_that_do_not_sum_to_1(y, P):
    with pytest.raises(ProbabilityError, match="sum to 1"):
        log_loss(y, P)


@pytest.mark.parametrize(
    ("p", "message"),
    [
        ([-1.3, 0.4, 2.2], r"must lie in \[0, 1\].*logits"),
        ([12.0, 40.0, 93.0], r"must lie in \[0, 1\].*percentages"),
        ([0.1, np.nan, 0.9], "missing"),
        ([0.1, np.inf, 0.9], "missing or infinite"),
    ],
)
def test_what_is_no_probability(p, message):
    with pytest.raises(ValueError, match=message):
        ece([0, 1, 1], p)


def test_rounding_beyond_the_ends_is_accepted():
    assert brier_score([1, 0], [1.0000000000000002, -1e-17]) == 0


@pytest.mark.parametrize("y_type", [list, tuple, np.array, pd.Series])
def test_arguments_are_not_changed(y_type):
    p = np.array([0.0, 0.35, 1.0, 0.44, 0.67, 0.23])
    y = np.array([0, 1, 1, 0, 1, 0])
    before = p.tobytes(), y.tobytes()
    for writeable in (True, False):
        p.flags.writeable = y.flags.writeable = writeable
        for metric in (ece, ace, mce, log_loss, brier_score, mmce, evaluate, reliability_table):
            metric(y, p)
            metric(y_type(y), y_type(p))
    assert (p.tobytes(), y.tobytes()) == before


def test_equal_indexes_with_repeated_labels_are_paired_by_position():
    index = [0, 0, 1, 1]
    y, p = pd.Series([1, 0, 1, 0], index=index), pd.Series([0.9, 0.2, 0.8, 0.1], index=index)
    close(brier_score(y, p), 0.025)


# --- scores -----------------------------------------------------------------------------------------------------


def test_log_loss_of_certainties():
    assert log_loss([0, 1], [0, 1]) == pytest.approx(0, abs=1e-12)
    # An impossible outcome costs -ln(1e-15): finite, large, and said so.
    assert log_loss([0, 1], [0.0, 0.0]) == pytest.approx(-np.log(1e-15) / 2)


def test_murphys_parts_and_their_remainder():
    y, p = [0, 1, 0, 1, 1, 0, 1, 1, 0, 1], [0.07, 0.14, 0.28, 0.33, 0.41, 0.52, 0.66, 0.71, 0.88, 0.93]
    parts = score_decomposition(y, p, method="bins", bins=5)
    # Remainder: within-bin variance of p minus twice its covariance with y (Stephenson et al. 2008).
    close(parts, [0.28693, 0.091705, 0.04, 0.24, 0.001225 - 2 * 0.003], 1e-12)


def test_corp_parts():
    y, p = [0, 1, 0, 1, 1, 0, 1, 1, 0, 1], [0.07, 0.14, 0.28, 0.33, 0.41, 0.52, 0.66, 0.71, 0.88, 0.93]
    close(score_decomposition(y, p), [0.28693, 0.10359666666666667, 0.0566666666666667, 0.24, 0], 1e-12)


def test_debiased_square_may_be_negative_and_is_shown_so():
    y = [1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0]
    p = [0.15] * 4 + [0.5] * 5 + [0.82] * 6
    close(squared_ece(y, p, bins=3), 0.0060711111111111105)
    close(squared_ece(y, p, bins=3, debias="kumar"), -0.04170666666666666)
    assert ece(y, p, bins=3, norm=2, debias="kumar") == 0
    with pytest.warns(NotEstimableWarning, match="single row"):
        assert np.isnan(squared_ece([1, 0, 1], [0.1, 0.5, 0.9], bins=3, debias="kumar"))


def test_undersampled_training_data():
    # 0.2% events, 1% of the non-events kept: the odds of the training data are 100 times too high.
    odds = 0.002 / 0.998
    train = odds * 100 / (1 + odds * 100)
    close(adjust_prevalence([0.5, 0.0, 1.0], train=train, target=0.002), [0.01 / 1.01, 0, 1], 1e-12)


# --- weights ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", [ece, ace, mce, brier_score, log_loss, mmce, squared_ece])
def test_weight_0_is_absence_and_weight_k_is_k_copies(metric):
    y, p = np.array([0, 1, 1, 0, 1, 0, 1, 0]), np.array([0.12, 0.35, 0.81, 0.44, 0.67, 0.23, 0.58, 0.71])
    w = np.array([1, 2, 0, 3, 1, 1, 2, 1])
    close(metric(y, p, freq_weights=w), metric(np.repeat(y, w), np.repeat(p, w)), 1e-14)
