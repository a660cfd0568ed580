"""Metrics: closed forms, brute force, invariances, and what they say when something is odd."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.proportion import proportion_confint

from calstat.exceptions import DataWarning, InputError, NotEstimableWarning, SeparationWarning
from calstat.metrics import (
    accuracy,
    ace,
    adjust_prevalence,
    brier_score,
    calibration_curve,
    classwise_ece,
    confidence_ece,
    e50,
    e90,
    ece,
    emax,
    evaluate,
    ici,
    log_loss,
    mce,
    mmce,
    reliability_table,
    score_decomposition,
    smooth_ece,
    squared_ece,
)
from calstat.metrics._kernel import kernel_error

BOTH = {  # metrics of binary and multiclass predictions, with the options a matrix needs
    "ece": (ece, {"type": "classwise"}),
    "ece_freq": (lambda y, p, **o: ece(y, p, strategy="equal_freq", bins=4, **o), {"type": "classwise"}),
    "ece2": (lambda y, p, **o: ece(y, p, norm=2, **o), {"type": "classwise"}),
    "ace": (ace, {"type": "classwise"}),
    "mce": (mce, {"type": "classwise"}),
    "squared": (squared_ece, {"type": "classwise"}),
    "squared_u": (lambda y, p, **o: squared_ece(y, p, debias="u", bins=3, **o), {"type": "classwise"}),
    "squared_kumar": (lambda y, p, **o: squared_ece(y, p, debias="kumar", bins=3, **o), {"type": "classwise"}),
    "mmce": (mmce, {}),
    "smooth_ece": (smooth_ece, {}),
    "brier": (brier_score, {}),
    "log_loss": (log_loss, {}),
    "accuracy": (accuracy, {}),
}
EVENT = {
    "corp": lambda y, p, **o: score_decomposition(y, p, **o).to_numpy(),
    "corp_log": lambda y, p, **o: score_decomposition(y, p, score="log", **o).to_numpy(),
    "murphy": lambda y, p, **o: score_decomposition(y, p, method="bins", **o).to_numpy(),
    "murphy_log": lambda y, p, **o: score_decomposition(y, p, method="bins", score="log", **o).to_numpy(),
    "table": lambda y, p, **o: reliability_table(y, p, **o).to_numpy(),
    "ici": ici,
    "e50": e50,
    "e90": e90,
    "emax": emax,
    "ici_logistic": lambda y, p, **o: ici(y, p, smoother="logistic", **o),
    "emax_spline": lambda y, p, **o: emax(y, p, smoother="spline", **o),
}
# Sums in another order: 1e-12 for means, and its root for errors that are roots of sums that may cancel to 0.
CLOSE = {"rtol": 1e-9, "atol": 1e-8}


@st.composite
def binary(draw, smallest=12):
    """Rows with ties and edge values; from 12 rows on both outcomes at six scores, so that nothing separates."""
    n = draw(st.integers(smallest, 30))
    fixed = [0.05, 0.1, 0.35, 0.6, 0.7, 0.95]
    levels = st.sampled_from([*fixed, 0.3])
    p = draw(arrays(float, n, elements=st.one_of(levels, st.floats(0.01, 0.99))))
    y = draw(arrays(np.int64, n, elements=st.integers(0, 1)))
    w = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    p[:6] = fixed
    y[:6] = [0, 1, 0, 1, 0, 1]
    if n >= 12:
        p[6:12], y[6:12] = fixed, [1, 0, 1, 0, 1, 0]
    w[:12] += 1
    return y, p, w


@st.composite
def multiclass(draw):
    n, K = draw(st.integers(8, 25)), draw(st.integers(3, 5))
    raw = draw(arrays(float, (n, K), elements=st.sampled_from([0.0, 1.0, 2.0, 3.0, 7.0])))
    raw[:, 0] += raw.sum(axis=1) == 0
    y = draw(arrays(np.int64, n, elements=st.integers(0, K - 1)))
    y[:K] = np.arange(K)
    w = draw(arrays(np.int64, n, elements=st.integers(0, 3)))
    w[:K] += 2
    return y, raw / raw.sum(axis=1, keepdims=True), w


@pytest.mark.parametrize("name", [*BOTH, *EVENT])
@settings(max_examples=25, deadline=None)
@given(sample=binary(), seed=st.integers(0, 99))
def test_row_order_is_nothing_and_weights_are_repetitions(name, sample, seed):
    y, p, w = sample
    metric = EVENT[name] if name in EVENT else BOTH[name][0]
    value = metric(y, p, freq_weights=w)
    np.testing.assert_allclose(metric(np.repeat(y, w), np.repeat(p, w)), value, **CLOSE)
    order = np.random.default_rng(seed).permutation(y.size)
    np.testing.assert_allclose(metric(y[order], p[order], freq_weights=w[order]), value, **CLOSE)


@pytest.mark.parametrize("name", BOTH)
@settings(max_examples=25, deadline=None)
@given(sample=multiclass(), seed=st.integers(0, 99))
def test_matrices_row_order_weights_and_class_order(name, sample, seed):
    y, P, w = sample
    metric, options = BOTH[name]
    value = metric(y, P, freq_weights=w, **options)
    rng = np.random.default_rng(seed)
    np.testing.assert_allclose(metric(np.repeat(y, w), np.repeat(P, w, axis=0), **options), value, **CLOSE)
    order = rng.permutation(y.size)
    np.testing.assert_allclose(metric(y[order], P[order], freq_weights=w[order], **options), value, **CLOSE)
    if name in {"accuracy", "mmce", "smooth_ece"}:
        # The top label of tied columns is the first, so these depend on the order where there are ties.
        P = P * (1 + 1e-3 * rng.random(P.shape))
        P /= P.sum(axis=1, keepdims=True)
        value = metric(y, P, freq_weights=w, **options)
    relabel = rng.permutation(P.shape[1])
    moved = np.empty_like(P)
    moved[:, relabel] = P
    np.testing.assert_allclose(metric(relabel[y], moved, freq_weights=w, **options), value, **CLOSE)


@settings(max_examples=60, deadline=None)
@given(sample=binary(smallest=6), log_h=st.floats(-3, 1))
def test_mmce_equals_the_double_sum(sample, log_h):
    y, p, w = sample
    h = 10.0**log_h
    kernel = np.exp(-np.abs(p[:, None] - p) / h)
    for weights in (np.ones(y.size), w.astype(float)):
        e = weights * (y - p)
        expected = e @ kernel @ e / weights.sum() ** 2
        # Compared as squares: the root magnifies rounding where the sum cancels.
        assert mmce(y, p, bandwidth=h, freq_weights=weights) ** 2 == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("h", [1e-320, 1e-12, 1e-7, 1e-5, 1e-3, 0.2, 10.0, 1e300])
def test_mmce_at_any_bandwidth(h):
    rng = np.random.default_rng(0)
    r = np.concatenate([rng.random(600), rng.random(200).round(2), 0.5 + 1e-9 * rng.random(200)])
    y = (rng.random(r.size) < r).astype(float)
    with np.errstate(over="ignore"):
        kernel = np.exp(np.abs(r[:, None] - r) / -h)
    e = y - r
    assert kernel_error(y, r, h) == pytest.approx(np.sqrt(e @ kernel @ e) / r.size, abs=1e-12)


def test_mmce_limits():
    y, p = np.array([0, 1, 1, 0]), np.array([0.1, 0.6, 0.7, 0.4])
    # All pairs count alike for a wide kernel, only the diagonal for a narrow one.
    assert mmce(y, p, bandwidth=1e12) == pytest.approx(abs(np.mean(y - p)))
    assert mmce(y, p, bandwidth=1e-12) == pytest.approx(np.sqrt(np.sum((y - p) ** 2)) / 4)


@settings(max_examples=40, deadline=None)
@given(binary(smallest=6))
def test_debiased_square_is_the_mean_over_pairs_of_different_rows(sample):
    y, p, w = sample
    y, p = np.repeat(y, w), np.repeat(p, w)
    e, index = y - p, np.minimum((p * 4).astype(int), 3)
    expected = 0.0
    for b in range(4):
        g = e[index == b]
        if g.size > 1:
            pairs = sum(a * c for a, c in itertools.permutations(g, 2)) / (g.size * (g.size - 1))
            expected += g.size / e.size * pairs
    assert squared_ece(y, p, bins=4, debias="u") == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("debias", ["u", "kumar"])
def test_debiased_squares_have_no_bias(debias):
    # All outcomes of four rows with one score: the mean of the corrected value is the squared true gap.
    rate, p = 0.3, 0.45
    mean = plain = 0.0
    for y in itertools.product([0, 1], repeat=4):
        probability = rate ** sum(y) * (1 - rate) ** (4 - sum(y))
        labels, scores = np.array(y), np.full(4, p)
        mean += probability * squared_ece(labels, scores, debias=debias)
        plain += probability * squared_ece(labels, scores)
    assert mean == pytest.approx((rate - p) ** 2, abs=1e-14)
    assert plain == pytest.approx((rate - p) ** 2 + rate * (1 - rate) / 4, abs=1e-14)


def test_debiasing_needs_norm_2_whole_weights_and_a_bin_of_two_rows():
    y, p = [1, 0, 1], [0.1, 0.5, 0.9]
    with pytest.raises(InputError, match="`debias`='u' corrects the square and goes with `norm`=2"):
        ece(y, p, debias="u")
    with pytest.raises(InputError, match="`freq_weights` must be whole numbers"):
        squared_ece(y, p, debias="kumar", freq_weights=[0.5, 1, 1])
    with pytest.warns(NotEstimableWarning, match="every bin holds a single row"):
        assert np.isnan(squared_ece(y, p, bins=3, debias="kumar"))
    with pytest.warns(NotEstimableWarning, match="every bin holds a single row"):
        assert np.isnan(ece(y, p, bins=3, norm=2, debias="u"))
    assert ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], norm=2, debias="u") == 0.0
    assert squared_ece([0, 1, 0, 1], [0.5, 0.5, 0.5, 0.5], debias="u") == pytest.approx(-1 / 12)


@pytest.mark.parametrize("method", ["wilson", "jeffreys"])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_are_those_of_statsmodels(method, alpha):
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p**2).astype(int)
    table = reliability_table(y, p, bins=20, ci_method=method, alpha=alpha).query("count > 0")
    events = table["count"] * table["mean_y"]
    low, high = proportion_confint(events.round(), table["count"], alpha=alpha, method=method)
    inner = (table["mean_y"] > 0) & (table["mean_y"] < 1)
    assert inner.sum() >= 10
    np.testing.assert_allclose(table["ci_low"][inner], low[inner], rtol=1e-9)
    np.testing.assert_allclose(table["ci_high"][inner], high[inner], rtol=1e-9)
    ends = table[~inner]
    assert len(ends) >= 1
    assert (ends["ci_low"][ends["mean_y"] == 0] == 0).all()
    assert (ends["ci_high"][ends["mean_y"] == 1] == 1).all()


def test_table_of_empty_bins_classes_and_weights():
    y, P = ["a", "b", "b", "c"], pd.DataFrame({"a": [0.8, 0.1, 0.1, 0.2], "b": [0.1, 0.8, 0.5, 0.2]})
    P["c"] = 1 - P["a"] - P["b"]
    table = reliability_table(y, P, type="classwise", bins=2)
    assert table.index.names == ["class", "bin"]
    assert table.index.tolist() == [(k, b) for k in "abc" for b in (0, 1)]
    assert table.loc[("a", 1), "mean_p"] == pytest.approx(0.8)
    assert list(table.columns) == ["lower", "upper", "count", "mean_p", "mean_y", "gap", "ci_low", "ci_high"]
    empty = reliability_table([0, 1], [0.1, 0.2], bins=2).loc[1]
    assert empty["count"] == 0
    assert empty[["mean_p", "mean_y", "gap", "ci_low", "ci_high"]].isna().all()
    weighted = reliability_table([0, 1], [0.1, 0.2], bins=2, freq_weights=[0.5, 1.5])
    assert weighted.loc[0, "mean_y"] == 0.75
    assert weighted[["ci_low", "ci_high"]].isna().all(axis=None)


def test_equal_freq_table_reports_the_bins_there_are():
    table = reliability_table([0, 1, 0, 1, 1], [0.2, 0.2, 0.2, 0.8, 0.8], bins=5, strategy="equal_freq")
    assert len(table) < 5
    assert table["count"].sum() == 5
    assert table["lower"].iloc[0] == 0
    assert table["upper"].iloc[-1] == 1


def test_a_matrix_needs_a_type_and_a_vector_has_none():
    y, P = [0, 1, 2], np.eye(3)
    for metric in (ece, ace, mce, squared_ece, reliability_table):
        with pytest.raises(InputError, match=r"`type` must be said.*'classwise'.*'confidence'"):
            metric(y, P)
        with pytest.raises(InputError, match="`type`='classwise' is for matrices"):
            metric([0, 1, 1], [0.1, 0.2, 0.3], type="classwise")
        with pytest.raises(InputError, match="`type` must be one of"):
            metric(y, P, type="bogus")
    for metric in (score_decomposition, ici, calibration_curve):
        with pytest.raises(InputError, match="one class at a time"):
            metric(y, P)
    with pytest.raises(InputError, match="`event` is for a binary outcome"):
        brier_score(y, P, event=1)


def test_averages_over_classes():
    y, P = np.array([0, 1, 2, 1]), np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6], [0.4, 0.4, 0.2]])
    per_class = classwise_ece(y, P)
    assert per_class.index.tolist() == [0, 1, 2]
    assert ece(y, P, type="classwise") == pytest.approx(per_class.mean())
    assert ece(y, P, type="classwise", average="sum") == pytest.approx(per_class.sum())
    assert ace(y, P, type="classwise", average="sum") == pytest.approx(classwise_ece(y, P, norm="mean").sum())
    assert mce(y, P, type="classwise") == classwise_ece(y, P, norm="max").max()
    assert confidence_ece(y, P) == ece(y, P, type="confidence")
    with pytest.raises(InputError, match="`average`='sum' is for `type`='classwise'"):
        ece(y, P, type="confidence", average="sum")
    with pytest.raises(InputError, match="`average` must be one of"):
        ece(y, P, type="classwise", average="median")


def test_brier_scalings():
    y, P = [0, 2], np.array([[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    rows = np.mean(np.sum((np.eye(3)[y] - P) ** 2, axis=1))
    assert brier_score(y, P) == pytest.approx(rows)
    assert brier_score(y, P, average="rows") == pytest.approx(rows)
    assert brier_score(y, P, average="classes") == pytest.approx(rows / 3)
    two = np.array([[0.3, 0.7], [0.6, 0.4]])
    assert brier_score([1, 0], two) == pytest.approx((0.09 + 0.16) / 2)
    assert brier_score([1, 0], two, average="rows") == pytest.approx(0.09 + 0.16)


@pytest.mark.parametrize("metric", [ece, ace, mce, squared_ece, reliability_table])
def test_a_class_without_rows_is_counted_and_told(metric):
    P = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6]])
    with pytest.warns(DataWarning, match="1 of 3 classes do not occur in `y`: 1") as record:
        metric([0, 2], P, type="classwise")
    assert len(record) == 1
    assert record[0].filename == __file__
    metric([0, 2], P, type="confidence")


def test_a_class_of_weight_zero_is_absent():
    P = np.array([[0.6, 0.3, 0.1], [0.2, 0.2, 0.6], [0.2, 0.2, 0.6]])
    with pytest.warns(DataWarning, match="1 of 3 classes"):
        value = classwise_ece([0, 2, 1], P, freq_weights=[1, 1, 0])
    assert value[1] == pytest.approx(0.25)
    with pytest.warns(DataWarning, match="1 of 3 classes") as record:
        evaluate([0, 2, 1], P, freq_weights=[1, 1, 0])
    assert len(record) == 1
    assert record[0].filename == __file__


def test_log_loss_at_the_ends():
    assert log_loss([0, 1], [0.0, 1.0]) == pytest.approx(0, abs=1e-14)
    assert log_loss([0, 1], [0.0, 1.0], eps=0) == 0
    assert log_loss([1], [0.0], eps=0) == np.inf
    assert log_loss([1], [0.0]) == pytest.approx(-np.log(1e-15))
    assert log_loss([1], [0.0], eps=1e-6) == pytest.approx(-np.log(1e-6))
    assert log_loss([1, 0, 2], [[1, 0, 0], [1, 0, 0], [0, 0, 1]], eps=0) == np.inf
    assert log_loss([0, 2], [[1, 0, 0], [0, 0, 1]], eps=0) == 0
    with pytest.raises(InputError, match="`eps`"):
        log_loss([1], [0.4], eps=0.6)


def test_accuracy_ties():
    assert accuracy([0, 1], [0.5, 0.5]) == 0.5
    assert accuracy([0, 1], [[0.5, 0.5], [0.5, 0.5]]) == 0.5
    assert accuracy([0, 1, 2], np.full((3, 3), 1 / 3)) == pytest.approx(1 / 3)


@settings(max_examples=50, deadline=None)
@given(binary(smallest=6), st.sampled_from(["brier", "log"]), st.sampled_from(["corp", "bins"]))
def test_decompositions_add_up(sample, score, method):
    y, p, w = sample
    parts = score_decomposition(y, p, score=score, method=method, freq_weights=w)
    whole = brier_score(y, p, freq_weights=w) if score == "brier" else log_loss(y, p, freq_weights=w)
    assert parts["score"] == pytest.approx(whole, rel=1e-12)
    total = parts["MCB"] - parts["DSC"] + parts["UNC"] + parts["remainder"]
    assert total == pytest.approx(whole, abs=1e-12)
    assert parts[["MCB", "DSC", "UNC"]].min() > -1e-12


def test_bins_that_hold_one_score_leave_no_remainder():
    y, p = [0, 1, 0, 1, 1], [0.1, 0.1, 0.6, 0.6, 0.6]
    for score in ("brier", "log"):
        parts = score_decomposition(y, p, method="bins", score=score)
        assert parts["remainder"] == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize("seed", range(3))
def test_smooth_ece_is_where_the_integral_equals_the_bandwidth(seed):
    rng = np.random.default_rng(seed)
    p = np.concatenate([rng.random(200), [0, 1]])
    y = (rng.random(p.size) < p**1.6).astype(float)
    sigma = smooth_ece(y, p)
    t = (np.arange(20_000) + 0.5) / 20_000
    smoothed = np.zeros_like(t)
    for center, e in zip(p, y - p, strict=True):
        for image in (center, -center, 2 - center, 2 + center, center - 2):
            smoothed += e * np.exp(-0.5 * ((t - image) / sigma) ** 2)
    integral = np.abs(smoothed).mean() / (sigma * np.sqrt(2 * np.pi)) / p.size
    # Two grids: cells of 6e-5 against points 5e-5 apart.
    assert integral == pytest.approx(sigma, abs=1e-7)


def test_smooth_ece_at_its_ends():
    assert smooth_ece([0, 1], [0.0, 1.0]) == 0.0
    assert smooth_ece([1, 1, 1], [0.0, 0.0, 0.0]) == 1.0
    # One score: the reflected kernel integrates to 1, whatever its width.
    assert smooth_ece([1, 0, 0, 0], [0.45] * 4) == pytest.approx(0.2, abs=1e-9)


def test_smooth_ece_hardly_moves_with_the_scores():
    rng = np.random.default_rng(5)
    p = rng.integers(1, 10, 500) / 10
    y = (rng.random(500) < p).astype(int)
    moved = np.clip(p + 1e-9 * np.where(y == 1, 1, -1), 0, 1)
    assert abs(smooth_ece(y, moved) - smooth_ece(y, p)) < 1e-8
    assert abs(ece(y, moved) - ece(y, p)) > 1e-3


def test_evaluate_holds_what_the_functions_give():
    rng = np.random.default_rng(0)
    p = rng.random(80)
    y = (rng.random(80) < p).astype(int)
    w = rng.integers(0, 3, 80)
    table = evaluate(y, p, bins=7, freq_weights=w)["value"]
    for metric in (ece, ace, mce):
        assert table[metric.__name__] == metric(y, p, bins=7, freq_weights=w)
    assert table["rms_ce"] == ece(y, p, bins=7, norm=2, freq_weights=w)
    for metric in (mmce, smooth_ece, brier_score, log_loss, accuracy, ici, e50, e90, emax):
        assert table[metric.__name__] == metric(y, p, freq_weights=w)
    parts = score_decomposition(y, p, freq_weights=w)
    assert table[["MCB", "DSC", "UNC"]].tolist() == parts[["MCB", "DSC", "UNC"]].tolist()
    assert table.index.name == "metric"
    assert evaluate(y, p, freq_weights=w / 2)["value"][["ici", "e50", "e90", "emax"]].isna().all()


def test_evaluate_of_a_matrix():
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(3), 60)
    y = rng.integers(0, 3, 60)
    table = evaluate(y, P, strategy="equal_freq", bins=4)["value"]
    for metric in (ece, ace, mce):
        for type_ in ("classwise", "confidence"):
            expected = metric(y, P, type=type_, strategy="equal_freq", bins=4)
            assert table[f"{metric.__name__}[{type_}]"] == expected
    assert table["brier_score[classes]"] == pytest.approx(table["brier_score"] / 3)
    assert table["mmce"] == mmce(y, P)
    assert table["smooth_ece"] == smooth_ece(y, P)


def test_edges_may_be_given():
    rng = np.random.default_rng(2)
    p = rng.random(100)
    y = rng.integers(0, 2, 100)
    assert ece(y, p, bins=np.arange(11) / 10) == ece(y, p)
    P = np.column_stack([p, 0.5 * (1 - p), 0.5 * (1 - p)])
    k = rng.integers(0, 3, 100)
    edges = [0, 0.2, 0.7, 1]
    expected = [ece(k == j, P[:, j], bins=edges) for j in range(3)]
    np.testing.assert_allclose(classwise_ece(k, P, bins=edges), expected, rtol=1e-12)


@pytest.mark.parametrize("smoother", ["lowess", "logistic", "spline"])
def test_one_score_has_the_event_rate(smoother):
    curve = calibration_curve([0, 1, 1], [0.4, 0.4, 0.4], smoother=smoother)
    assert curve["calibrated"].tolist() == pytest.approx([2 / 3])
    assert curve.attrs["smoother"] == "constant"
    assert ici([0, 1, 1], [0.4, 0.4, 0.4], smoother=smoother) == pytest.approx(2 / 3 - 0.4)


@pytest.mark.parametrize(("y", "p"), [([0], [0.3]), ([0, 1], [0.2, 0.7]), ([0, 1, 1], [0.2, 0.2, 0.8])])
def test_lowess_of_few_rows_is_finite(y, p):
    assert np.isfinite(calibration_curve(y, p)["calibrated"]).all()


def test_curve_names_its_smoother():
    rng = np.random.default_rng(3)
    p = rng.random(60)
    y = (rng.random(60) < p).astype(int)
    assert calibration_curve(y, p).attrs == {
        "smoother": "lowess (span 2/3, no robustness iterations, delta 1% of the range)",
        "scale": "probability",
    }
    spline = calibration_curve(y, p, smoother="spline")
    assert spline.attrs == {"smoother": "spline (natural cubic, 5 knots, logistic)", "scale": "logit"}
    # Two distinct scores leave no room for a curve.
    few = calibration_curve([0, 1, 0, 1], [0.2, 0.2, 0.8, 0.8], smoother="spline")
    assert few.attrs["smoother"] == "logistic (a straight line on the logit scale)"


def test_separated_curves_are_told():
    with pytest.warns(SeparationWarning, match="smoother='logistic' has no finite optimum") as record:
        ici([0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9], smoother="logistic")
    assert record[0].filename == __file__
    with pytest.raises(InputError, match="smoother='lowess' counts neighbours"):
        ici([0, 1, 1], [0.1, 0.2, 0.7], freq_weights=[0.5, 1, 1])
    for wrong in ({"smoother": "loess"}, {"scale": "log"}):
        with pytest.raises(InputError, match=f"`{next(iter(wrong))}` must be one of"):
            emax([0, 1, 1], [0.1, 0.2, 0.7], **wrong)


def test_prevalence_by_bayes():
    p = pd.Series([0.1, 0.5, 0.0, 1.0], index=list("abcd"), name="risk")
    adjusted = adjust_prevalence(p, train=0.4, target=0.1)
    ratio = p / (1 - p) * (0.1 / 0.9) / (0.4 / 0.6)
    expected = ratio[:2] / (1 + ratio[:2])
    np.testing.assert_allclose(adjusted[:2], expected, rtol=1e-14)
    assert adjusted[2:].tolist() == [0, 1]
    assert adjusted.index.equals(p.index)
    back = adjust_prevalence(adjusted, train=0.1, target=0.4)
    np.testing.assert_allclose(back, p, rtol=1e-14)
    matrix = pd.DataFrame({"no": 1 - p, "yes": p})
    both = adjust_prevalence(matrix, train=[0.6, 0.4], target=[0.9, 0.1])
    np.testing.assert_allclose(both["yes"], adjusted, rtol=1e-14)
    assert both.columns.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("train", "target", "message"),
    [
        (0, 0.5, "`train` must lie strictly between 0 and 1"),
        (0.5, 1, "`target` must lie strictly between 0 and 1"),
        ([0.5, 0.5], 0.5, "`train` must be one number"),
    ],
)
def test_prevalence_refusals(train, target, message):
    with pytest.raises(InputError, match=message):
        adjust_prevalence([0.2, 0.4], train, target)


def test_prevalence_refusals_for_a_matrix():
    with pytest.raises(InputError, match="one rate for each of the 3 columns"):
        adjust_prevalence(np.full((2, 3), 1 / 3), 0.5, [0.2, 0.3, 0.5])
    with pytest.raises(InputError, match="`target` must sum to 1"):
        adjust_prevalence(np.full((2, 3), 1 / 3), [0.2, 0.3, 0.5], [0.2, 0.3, 0.4])


def test_floats_are_python_floats():
    y, p = [0, 1, 1, 0, 1], [0.1, 0.8, 0.4, 0.3, 0.6]
    for metric, _ in BOTH.values():
        assert type(metric(y, p)) is float
    for name in ("ici", "e50", "e90", "emax"):
        assert type(EVENT[name](y, p)) is float


@pytest.mark.parametrize("name", [*BOTH, *EVENT])
def test_float32_and_nullable_columns_give_the_answer_of_their_float64_values(name):
    rng = np.random.default_rng(4)
    p = np.concatenate([rng.random(40), np.arange(11) / 10]).astype(np.float32)
    y = (rng.random(51) < p).astype(int)
    metric = EVENT[name] if name in EVENT else BOTH[name][0]
    expected = metric(y, p.astype(float))
    np.testing.assert_array_equal(metric(y, p), expected)
    frame = pd.DataFrame({"y": pd.array(y, dtype="Int8"), "p": pd.array(p, dtype="Float32")})
    np.testing.assert_array_equal(metric(frame["y"], frame["p"]), expected)
    np.testing.assert_array_equal(metric(frame["y"], frame["p"].sample(frac=1, random_state=0)), expected)


def test_float32_softmax_rows_are_probabilities():
    rng = np.random.default_rng(5)
    P = np.exp(rng.normal(0, 3, (200, 7))).astype(np.float32)
    P /= P.sum(axis=1, keepdims=True)
    y = rng.integers(0, 7, 200)
    assert ece(y, P, type="classwise") == ece(y, P.astype(float), type="classwise")
