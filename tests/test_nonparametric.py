"""Isotonic calibration and histogram binning: closed forms, properties, intervals, storage, errors."""

from __future__ import annotations

import copy
import importlib.util
import pickle
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import calstat as cs
from calstat.exceptions import InputError, LabelError, MissingDataError, NotEstimableError, ProbabilityError
from calstat.nonparametric.isotonic_results import one_sided_limits

BOTH = [cs.IsotonicCalibration, cs.HistogramBinning]


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(2)
    return (rng.random(n) < p**1.5).astype(int), p


@st.composite
def rows(draw, weighted=False):
    """Outcomes of both classes, scores with ties and with ends, and whole weights."""
    n = draw(st.integers(2, 40))
    y = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    y[:2] = [0, 1]
    score = st.one_of(st.integers(0, 16).map(lambda i: i / 16), st.floats(0, 1))
    p = draw(st.lists(score, min_size=n, max_size=n))
    if not weighted:
        return np.array(y), np.array(p)
    w = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    w[:2] = [1, 2]
    return np.array(y), np.array(p), np.array(w)


# -- isotonic: closed forms and reported cases ---------------------------------------------------------


def test_ties_are_one_point_whatever_the_order_of_rows():
    p = np.array([0.1, 0.1, 0.2, 0.3, 0.3, 0.5, 0.7, 0.7])
    y = np.array([1, 0, 0, 1, 0, 1, 1, 0])
    expected = np.array([1 / 3, 1 / 3, 1 / 3, 0.5, 0.5, 2 / 3, 2 / 3, 2 / 3])
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(8)
        res = cs.IsotonicCalibration(y[order], p[order]).fit()
        np.testing.assert_allclose(res.predict(p), expected, rtol=1e-12)
        np.testing.assert_allclose(res.fittedvalues, expected[order], rtol=1e-12)


@pytest.mark.parametrize(
    ("p", "y", "new"),
    [
        ([0.0, 4.1e-320, 4.4e-314, 1.0], [0, 0, 1, 1], [0.0, 2.1e-319, 5.4e-316, 1e-10, 1.0]),
        ([0.0, 0.0, 1.0], [0, 0, 1], [0.0, 1.0]),
    ],
)
def test_scores_that_differ_by_denormals_give_finite_rising_probabilities(p, y, new):
    q = cs.IsotonicCalibration(y, p).fit().predict(new)
    assert np.isfinite(q).all()
    assert q.min() >= 0
    assert q.max() <= 1
    assert (np.diff(q) >= 0).all()


def test_scores_that_point_the_wrong_way_give_the_rate():
    res = cs.IsotonicCalibration([1, 1, 0, 0], [0.1, 0.2, 0.3, 0.4]).fit()
    assert res.predict([0.1, 0.2, 0.3, 0.4, 0.0, 1.0]).tolist() == [0.5] * 6
    assert res.n_blocks == 1


def test_lines_between_blocks_and_constant_ends():
    res = cs.IsotonicCalibration([0, 1, 0, 1], [0.2, 0.4, 0.5, 0.8]).fit()
    assert res.thresholds.tolist() == [0.2, 0.4, 0.5, 0.8]
    assert res.values.tolist() == [0.0, 0.5, 0.5, 1.0]
    np.testing.assert_allclose(res.predict([0.0, 0.3, 0.45, 0.65, 1.0]), [0.0, 0.25, 0.5, 0.75, 1.0], rtol=1e-12)


def test_exact_zeros_and_ones_are_counted_and_smoothing_avoids_them():
    y, p = [0, 0, 1, 1], [0.1, 0.2, 0.6, 0.9]
    res = cs.IsotonicCalibration(y, p).fit()
    assert res.predict([0.05, 0.95]).tolist() == [0.0, 1.0]
    assert (res.n_zero, res.n_one) == (2.0, 2.0)
    assert "4 of 4 observations are fitted with exactly 0 or 1" in " ".join(res.summary().as_text().split())
    smooth = cs.IsotonicCalibration(y, p, smoothing=1).fit()
    assert smooth.predict([0.05, 0.95]).tolist() == [0.25, 0.75]
    assert (smooth.n_zero, smooth.n_one) == (0.0, 0.0)
    assert np.isfinite(smooth.llf)


def test_smoothing_keeps_the_order_of_blocks():
    # 99 of 100 becomes 100/102, above the 2/3 of the single event behind it: the two are pooled again.
    y = np.r_[np.zeros(1), np.ones(99), 1].astype(int)
    p = np.r_[np.full(100, 0.5), 0.9]
    res = cs.IsotonicCalibration(y, p, smoothing=1).fit()
    np.testing.assert_allclose(res.values, (100 + 2) / (101 + 4), rtol=1e-14)
    assert res.table()["count"].tolist() == [101.0]
    assert res.table()["events"].tolist() == [100.0]


def test_fit_statistics_are_those_of_the_fitted_values():
    y, p = sample()
    for model in (cs.IsotonicCalibration(y, p, smoothing=0.5), cs.HistogramBinning(y, p, smoothing=0.5)):
        res = model.fit()
        q = np.asarray(res.predict(p))
        assert res.brier == pytest.approx(cs.brier_score(y, q), rel=1e-12)
        assert res.llf == pytest.approx(-300 * cs.log_loss(y, q), rel=1e-12)
        assert res.brier_identity == pytest.approx(cs.brier_score(y, p), rel=1e-12)


def test_log_odds_are_taken_and_give_the_same_blocks():
    y, p = sample()
    p = np.clip(p, 0.01, 0.99)
    on_p = cs.IsotonicCalibration(y, p).fit()
    on_z = cs.IsotonicCalibration(y, special.logit(p), scores="logit").fit()
    np.testing.assert_allclose(on_z.fittedvalues, on_p.fittedvalues, rtol=1e-12)
    assert np.isnan(on_z.brier_identity)
    pair = np.column_stack([np.zeros(3), [-1.0, 0.0, 2.0]])
    np.testing.assert_allclose(np.asarray(on_z.predict(pair))[:, 1], on_z.predict([-1.0, 0.0, 2.0]), rtol=1e-15)


@given(rows())
@settings(max_examples=60, deadline=None)
def test_isotonic_is_monotone_idempotent_and_keeps_the_mean(data):
    y, p = data
    res = cs.IsotonicCalibration(y, p).fit()
    grid = np.unique(np.r_[p, np.linspace(0, 1, 50)])
    q = np.asarray(res.predict(grid))
    assert (np.diff(q) >= 0).all()
    assert 0 <= q.min() <= q.max() <= 1
    fitted = np.asarray(res.fittedvalues)
    assert fitted.mean() == pytest.approx(y.mean(), rel=1e-12)
    again = cs.IsotonicCalibration(y, fitted).fit()
    np.testing.assert_allclose(again.predict(fitted), fitted, rtol=1e-12, atol=1e-14)


# -- histogram -----------------------------------------------------------------------------------------


def test_quantile_bins_with_ties_are_fewer_and_said_to_be():
    p, y = [0.2] * 5 + [0.6, 0.6, 0.9], [0, 1, 0, 0, 0, 1, 0, 1]
    res = cs.HistogramBinning(y, p, bins=4, strategy="equal_freq").fit()
    q = res.predict([0.2, 0.6, 0.9, 0.4])
    assert np.isfinite(q).all()
    assert res.n_bins < 4
    assert f"{res.n_bins} of 4 asked for" in res.summary().as_text()
    assert "fewer bins" in res.summary().as_text()


def test_an_empty_bin_takes_the_nearest_value_the_lower_one_of_two():
    # Bins of width 0.2: rows in the first, the third (half) and the last.
    res = cs.HistogramBinning([0, 0, 1, 0, 1], [0.1, 0.1, 0.5, 0.5, 0.9], bins=5).fit()
    assert res.values.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0]
    assert res.n_empty == 2
    table = res.table()
    assert table.loc[1, ["rate", "se", "ci_low", "ci_high", "mean_p"]].isna().all()
    assert table.loc[1, ["count", "events", "value"]].tolist() == [0.0, 0.0, 0.0]
    assert "nearest" in res.summary().as_text()


def test_the_table_has_rates_standard_errors_and_wilson_limits():
    y, p = sample()
    table = cs.HistogramBinning(y, p, bins=4).fit().table(alpha=0.1)
    for i, row in table.iterrows():
        inside = (p >= i / 4) & ((p < (i + 1) / 4) | (i == 3))
        n, k = inside.sum(), y[inside].sum()
        limits = stats.binomtest(int(k), int(n)).proportion_ci(0.9, method="wilson")
        assert (row["count"], row["events"], row["rate"]) == (n, k, k / n)
        assert row["se"] == pytest.approx(np.sqrt(k / n * (1 - k / n) / n), rel=1e-12)
        assert (row["ci_low"], row["ci_high"]) == pytest.approx(limits, rel=1e-9)


@given(rows(), st.integers(1, 12), st.sampled_from(["equal_width", "equal_freq"]))
@settings(max_examples=60, deadline=None)
def test_histogram_has_no_error_on_its_own_bins(data, bins, strategy):
    y, p = data
    res = cs.HistogramBinning(y, p, bins=bins, strategy=strategy).fit()
    q = np.asarray(res.predict(p))
    table = res.table()
    index = np.minimum(np.searchsorted(res.edges, p, side="right") - 1, res.n_bins - 1)
    gap = np.bincount(index, weights=y - q, minlength=res.n_bins)
    assert np.abs(gap).max() < 1e-12
    values = np.unique(q)
    edges = np.unique(np.r_[0.0, (values[1:] + values[:-1]) / 2, 1.0])
    assert cs.ece(y, q, bins=edges) < 1e-12
    assert table["count"].sum() == y.size


# -- what both share -----------------------------------------------------------------------------------


@given(rows(weighted=True), st.sampled_from(["isotonic", "width", "freq"]), st.sampled_from([0.0, 1.0]))
@settings(max_examples=60, deadline=None)
def test_weights_are_repetition(data, kind, smoothing):
    y, p, w = data

    def fit(y, p, **weights):
        if kind == "isotonic":
            return cs.IsotonicCalibration(y, p, smoothing=smoothing, **weights).fit()
        return cs.HistogramBinning(y, p, bins=4, strategy=f"equal_{kind}", smoothing=smoothing, **weights).fit()

    weighted, repeated = fit(y, p, freq_weights=w), fit(np.repeat(y, w), np.repeat(p, w))
    pd.testing.assert_frame_equal(weighted.table(), repeated.table(), rtol=1e-12)
    assert weighted.nobs == repeated.nobs
    assert weighted.llf == pytest.approx(repeated.llf, rel=1e-12)
    assert weighted.brier_identity == pytest.approx(repeated.brier_identity, rel=1e-12)
    grid = np.linspace(0, 1, 9)
    pd.testing.assert_frame_equal(
        weighted.get_prediction(grid).summary_frame(), repeated.get_prediction(grid).summary_frame(), rtol=1e-12
    )


@pytest.mark.parametrize("model", BOTH)
def test_formula_index_names_and_missing_scores(model):
    y, p = sample(60)
    frame = pd.DataFrame({"died": np.where(y == 1, "yes", "no"), "risk": p}, index=np.arange(60) + 500)
    frame.loc[[503, 510], "risk"] = np.nan
    res = model.from_formula("died ~ risk", frame, event="yes").fit()
    assert (res.event, res.nonevent, res.nobs) == ("yes", "no", 58.0)
    assert "Rows dropped (missing)" in res.summary().as_text()
    q = res.predict(frame)
    assert q.index.equals(frame.index)
    assert q.index[q.isna()].tolist() == [503, 510]
    assert res.fittedvalues.index.equals(frame.index.drop([503, 510]))
    bands = res.get_prediction(frame["risk"]).summary_frame()
    assert bands.index.equals(frame.index)
    assert bands["mean"].isna().sum() == 2
    assert bands["mean_ci_lower"].isna().sum() == 2


@pytest.mark.parametrize("model", BOTH)
def test_two_columns_and_relabelling(model):
    y, p = sample()
    res = model(y, p).fit()
    pair = model(y, np.column_stack([1 - p, p])).fit()
    np.testing.assert_array_equal(res.fittedvalues, pair.fittedvalues)
    both = np.asarray(res.predict(np.column_stack([1 - p, p])))
    np.testing.assert_allclose(both[:, 1], res.predict(p))
    np.testing.assert_allclose(both.sum(axis=1), 1.0)
    assert model(2 * y - 1, p).fit().event == 1
    np.testing.assert_array_equal(model(y, p.astype(np.float32)).fit().predict(p.astype(np.float32)).shape, (300,))


@pytest.mark.parametrize("options", [{}, {"smoothing": 1.0}])
@pytest.mark.parametrize("model", BOTH)
def test_storage_and_copies_give_the_same_map(model, options):
    y, p = sample()
    res = model(pd.Categorical(np.where(y == 1, "b", "a")), p, **options).fit()
    for other in (cs.from_json(res.to_json()), pickle.loads(pickle.dumps(res)), copy.deepcopy(res)):
        np.testing.assert_array_equal(other.predict(p), res.predict(p))
        assert other.summary().as_text() == res.summary().as_text()
        assert repr(other) == repr(res)
        pd.testing.assert_frame_equal(other.table(), res.table())
    loaded = cs.from_json(res.to_json())
    with pytest.raises(NotEstimableError, match="JSON"):
        loaded.predict()
    assert loaded.plot().axes
    assert "tabular" in res.summary().as_latex()
    assert "<table" in res.summary().as_html()


@pytest.mark.parametrize("model", BOTH)
def test_pictures_show_map_band_and_data(model):
    y, p = sample()
    figure = model(y, p).fit().plot(alpha=0.1)
    legend = [t.get_text() for t in figure.axes[0].get_legend().get_texts()]
    assert legend == [model.__name__, "90% band", "data"]
    figure = cs.IsotonicCalibration(y, special.logit(np.clip(p, 0.01, 0.99)), scores="logit").fit().plot()
    assert figure.axes[0].get_xlim()[0] < -4


@pytest.mark.parametrize("model", BOTH)
def test_errors_name_the_argument_and_the_remedy(model):
    y, p = [0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(ProbabilityError, match=r"p\[3\] = 1.1"):
        model(y, [0.1, 0.2, 0.3, 1.1])
    with pytest.raises(MissingDataError, match=r"p\[1\]"):
        model(y, [0.1, np.nan, 0.3, 0.4])
    with pytest.raises(MissingDataError, match="y"):
        model([0, 1, None, 1], p)
    with pytest.raises(NotEstimableError, match="every outcome is 1"):
        model([1, 1, 1, 1], p)
    with pytest.raises(InputError, match="same length"):
        model(y, [0.1, 0.2])
    with pytest.raises(LabelError, match="event"):
        model(["a", "b", "a", "b"], p)
    with pytest.raises(InputError, match=r"one score.*multiclass"):
        model.from_formula("y ~ a + b", {"y": y, "a": p, "b": p})
    with pytest.raises(InputError, match="smoothing"):
        model(y, p, smoothing=-1)
    with pytest.raises(InputError, match="groups"):
        model.from_formula("y ~ p", {"y": y, "p": p, "g": [1, 1, 2, 2]}, groups="g")
    with pytest.raises(InputError, match="whole numbers"):
        model(y, p, freq_weights=[0.5, 1, 1, 1])
    with pytest.raises(ProbabilityError, match="new"):
        model(y, p).fit().predict([0.5, 1.1])


@pytest.mark.parametrize("bins", [0, 2.5, 10**10, True, [0.0, 0.5, 0.4, 1.0]])
def test_bins_that_cannot_be_made(bins):
    with pytest.raises(InputError, match="bins"):
        cs.HistogramBinning([0, 1], [0.1, 0.9], bins=bins)


def test_strategies_and_constant_scores():
    with pytest.raises(InputError, match="strategy"):
        cs.HistogramBinning([0, 1], [0.1, 0.9], strategy="quantile")
    res = cs.HistogramBinning([0, 1, 1], [0.3, 0.3, 0.3], strategy="equal_freq").fit()
    assert res.edges.tolist() == [0.0, 0.3, 1.0]
    assert cs.HistogramBinning([0, 1, 1], [1.0] * 3, strategy="equal_freq").fit().edges.tolist() == [0.0, 1.0]
    assert cs.IsotonicCalibration([0, 1], [0.5, 0.5]).fit().predict([0.0, 1.0]).tolist() == [0.5, 0.5]
    assert cs.HistogramBinning([0, 1], [0.1, 0.9], bins=100).fit().n_empty == 98


# -- intervals of the isotonic map ---------------------------------------------------------------------


def test_monotone_limits_are_clopper_pearson_of_the_nearest_rows():
    y, p = sample(200)
    res = cs.IsotonicCalibration(y, p).fit()
    frame = res.get_prediction([0.0, 0.37, 0.5, 1.0]).summary_frame(alpha=0.1)
    size = int(np.ceil(200 ** (2 / 3)))
    for x, row in zip([0.0, 0.37, 0.5, 1.0], frame.itertuples(), strict=True):
        # Whole groups of tied scores, nearest first, until there are enough rows.
        left = right = 0
        below, above = np.unique(p[p <= x])[::-1], np.unique(p[p >= x])
        for count in range(1, below.size + 1):
            left = p >= below[count - 1]
            left &= p <= x
            if left.sum() >= size:
                break
        for count in range(1, above.size + 1):
            right = (p <= above[count - 1]) & (p >= x)
            if right.sum() >= size:
                break
        low = high = None
        if below.size:
            low = stats.binomtest(int(y[left].sum()), int(left.sum())).proportion_ci(0.9, method="exact").low
        if above.size:
            high = stats.binomtest(int(y[right].sum()), int(right.sum())).proportion_ci(0.9, method="exact").high
        assert row.mean_ci_lower == pytest.approx(low or 0.0, abs=1e-9)
        assert row.mean_ci_upper == pytest.approx(1.0 if high is None else high, abs=1e-9)


def test_limits_at_the_ends_are_0_and_1():
    low, high = one_sided_limits(np.array([[0.0, 0.0], [0.0, 5.0], [0.0, 5.0], [0.0, 5.0]]), 0.05)
    assert low.tolist() == [0.0, 0.0]
    assert high.tolist() == [1.0, 1.0]


def test_bootstrap_is_percentiles_of_refits_and_repeats_with_its_seed():
    y, p = sample(120)
    res = cs.IsotonicCalibration(y, p).fit()
    frame = res.get_prediction([0.2, 0.5, 0.8], method="bootstrap", n_resamples=400, rng=7).summary_frame()
    again = res.get_prediction([0.2, 0.5, 0.8], method="bootstrap", n_resamples=400, rng=7).summary_frame()
    pd.testing.assert_frame_equal(frame, again)
    rng = np.random.default_rng(1)
    draws = []
    for _ in range(400):
        rows = rng.integers(0, 120, 120)
        draws.append(cs.IsotonicCalibration(y[rows], p[rows]).fit().predict([0.2, 0.5, 0.8]))
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    # Two independent bootstraps of 400: quantiles differ by some 3 sd / sqrt(400) * 2.5 = 0.03, sd by 5% or so.
    np.testing.assert_allclose(frame["mean_ci_lower"], low, atol=0.05)
    np.testing.assert_allclose(frame["mean_ci_upper"], high, atol=0.05)
    np.testing.assert_allclose(frame["mean_se"], np.std(draws, axis=0, ddof=1), rtol=0.25)
    with pytest.raises(InputError, match="distinct scores"):
        res.get_prediction([0.2, 0.5], method="bootstrap", n_resamples=10**8)
    with pytest.raises(InputError, match="method"):
        res.get_prediction(method="bayes")


STUDY = Path(__file__).parents[1] / "studies" / "map_intervals.py"
TRUTHS = ("shrunk", "calibrated", "constant", "steep")


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("map_intervals", STUDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules["map_intervals"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["map_intervals"]


@pytest.mark.parametrize("truth", TRUTHS)
def test_monotone_intervals_cover(study, truth):
    # At least 95% by construction; the least of 5 shares of 300 runs falls below 0.91 once in 1000 times.
    assert study.isotonic(truth, 100, "monotone", 300).coverage.min() >= 0.91


@pytest.mark.slow
@pytest.mark.parametrize("n", [100, 300, 1000])
@pytest.mark.parametrize("truth", TRUTHS)
def test_coverage_of_the_intervals_of_maps(study, truth, n):
    runs = 500
    error = 2 * np.sqrt(0.95 * 0.05 / runs)
    assert study.isotonic(truth, n, "monotone", runs).coverage.min() + error >= 0.93
    assert study.bins(truth, n, runs).coverage[0] + error / np.sqrt(5) >= 0.93
    # The bootstrap does not hold its level; where it is worst it is said to be.
    bootstrap = study.isotonic(truth, n, "bootstrap", runs // 5).coverage
    assert bootstrap[2] >= 0.85
    if truth == "steep":
        assert bootstrap[[0, 4]].max() < 0.5


# -- print ---------------------------------------------------------------------------------------------

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize(
    ("name", "model", "options"),
    [
        ("isotonic", cs.IsotonicCalibration, {}),
        ("isotonic_smoothed", cs.IsotonicCalibration, {"smoothing": 1.0}),
        ("histogram", cs.HistogramBinning, {"bins": 40}),
        ("histogram_quantiles", cs.HistogramBinning, {"bins": 5, "strategy": "equal_freq"}),
    ],
)
def test_summaries_read_as_they_did(name, model, options):
    y, p = sample()
    table = pd.DataFrame({"died": y, "risk": p}, index=np.arange(300))
    text = str(model.from_formula("died ~ risk", table, **options).fit().summary(alpha=0.1)) + "\n"
    assert text == (SNAPSHOTS / f"summary_{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 100
