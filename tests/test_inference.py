"""bootstrap and pseudo_label_test: what they return, against naive resampling, enumeration and each other."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calstat as cs
from calstat._arrays.pseudo_labels import monte_carlo, stopped
from calstat.exceptions import InputError, NotDefinedError, NotEstimableWarning

REFERENCE = json.loads((Path(__file__).parent / "reference" / "inference" / "binary.json").read_text())
BINNED = [(cs.ece, {}), (cs.ece, {"norm": 2}), (cs.ace, {"bins": 5}), (cs.mce, {}), (cs.squared_ece, {})]


def binary(seed=0, n=400):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 2, n)
    return (rng.random(n) < p**1.2).astype(int), p


def matrix(seed=0, n=300, K=4):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, 0.6), n)
    return (rng.random((n, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1), P


def agree(a, b):
    """Two-sample test; values that differ by rounding are the same value."""
    return stats.ks_2samp(np.round(a, 9), np.round(b, 9)).pvalue > 1e-3


def rms_gap(p, rate):
    """Root mean square gap of the rates behind a population, in ten bins."""
    b = np.minimum((p * 10).astype(int), 9)
    rows, gap = np.bincount(b, minlength=10), np.bincount(b, rate - p, 10)
    return float(np.sqrt(np.sum(gap**2 / np.maximum(rows, 1)) / p.size))


def naive(metric, y, p, seed, n_resamples=600, **options):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, y.size, (n_resamples, y.size))
    return np.array([metric(y[r], p[r], **options) for r in rows])


# -- bootstrap ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "options"), [*BINNED, (cs.brier_score, {}), (cs.accuracy, {}), (cs.mmce, {})])
def test_bootstrap_has_the_law_of_resampled_rows(metric, options):
    y, p = binary(1, 150)
    result = cs.bootstrap(metric, y, p, n_resamples=600, rng=1, **options)
    assert result.estimate == pytest.approx(metric(y, p, **options), rel=1e-12)
    wanted = naive(metric, y, p, 2, **options)
    assert agree(result.distribution, wanted)
    assert result.bias == pytest.approx(result.distribution.mean() - result.estimate)
    assert result.debiased == pytest.approx(2 * result.estimate - result.distribution.mean())
    assert result.bse == pytest.approx(result.distribution.std(ddof=1))


@pytest.mark.parametrize(
    ("metric", "options"),
    [
        (cs.ece, {"type": "classwise"}),
        (cs.ece, {"type": "classwise", "strategy": "equal_width", "average": "sum", "norm": 2}),
        (cs.mce, {"type": "classwise"}),
        (cs.confidence_ece, {}),
        (cs.log_loss, {}),
        (cs.brier_score, {"average": "classes"}),
    ],
)
def test_bootstrap_of_matrices_has_the_law_of_resampled_rows(metric, options):
    y, P = matrix(1, 120, 3)
    result = cs.bootstrap(metric, y, P, n_resamples=600, rng=1, **options)
    assert result.estimate == pytest.approx(metric(y, P, **options), rel=1e-12)
    assert agree(result.distribution, naive(metric, y, P, 2, classes=range(3), **options))


def test_bootstrap_keeps_the_edges_unless_told_otherwise():
    y, p = binary(2)
    kept = cs.bootstrap(cs.ece, y, p, strategy="equal_freq", n_resamples=600, rng=1)
    edges = np.r_[0, np.quantile(p, np.arange(1, 10) / 10, method="median_unbiased"), 1]
    assert kept.estimate == pytest.approx(cs.ece(y, p, bins=edges), rel=1e-12)
    assert agree(kept.distribution, naive(cs.ece, y, p, 2, bins=edges))
    moved = cs.bootstrap(cs.ece, y, p, strategy="equal_freq", rebin=True, n_resamples=50, rng=1)
    assert moved.ci_method is None
    assert "move" in moved.notes[0]


@pytest.mark.parametrize(("metric", "options"), [*BINNED, (cs.brier_score, {}), (cs.log_loss, {})])
def test_bootstrap_weights_are_copies(metric, options):
    y, p = binary(3, 60)
    w = np.random.default_rng(1).integers(0, 4, 60)
    weighted = cs.bootstrap(metric, y, p, freq_weights=w, n_resamples=3000, rng=1, **options)
    repeated = cs.bootstrap(metric, np.repeat(y, w), np.repeat(p, w), n_resamples=3000, rng=1, **options)
    assert weighted.nobs == repeated.nobs
    assert weighted.estimate == pytest.approx(repeated.estimate, rel=1e-10)
    assert agree(weighted.distribution, repeated.distribution)
    if weighted.ci_method == "inversion":
        assert weighted.conf_int() == pytest.approx(repeated.conf_int(), rel=1e-9)
    else:
        assert weighted.acceleration == pytest.approx(repeated.acceleration, rel=1e-9)


def test_bootstrap_of_clusters():
    y, p = binary(4, 200)
    groups = np.repeat(np.arange(50), 4)
    y = y[groups * 4]
    p = p[groups * 4]
    rows = cs.bootstrap(cs.brier_score, y, p, rng=1)
    clusters = cs.bootstrap(cs.brier_score, y, p, groups=groups, rng=1)
    # four equal rows in each cluster: the variance of a mean is four times that of independent rows
    assert clusters.bse / rows.bse == pytest.approx(2, rel=0.1)
    low, high = clusters.conf_int()
    assert low < rows.conf_int()[0] < rows.conf_int()[1] < high
    binned = cs.bootstrap(cs.ece, y, p, groups=groups, rng=1)
    assert np.isnan(binned.conf_int()).all()
    assert "clusters" in binned.notes[0]
    assert binned.conf_int(method="percentile")[1] > 0


def test_conf_int_needs_no_new_draws_and_knows_its_methods():
    y, p = binary(5)
    result = cs.bootstrap(cs.brier_score, y, p, rng=1)
    assert result.conf_int() == result.conf_int(method="bca") == result.conf_int(0.05)
    widths = [np.diff(result.conf_int(a))[0] for a in (0.01, 0.1, 0.5)]
    assert widths == sorted(widths, reverse=True)
    for method in ("percentile", "basic", "normal", "bca"):
        low, high = result.conf_int(method=method)
        assert low < result.estimate < high
    with pytest.raises(NotDefinedError, match="inversion"):
        result.conf_int(method="inversion")
    binned = cs.bootstrap(cs.ece, y, p, rng=1)
    assert binned.conf_int() == binned.conf_int()
    with pytest.raises(NotDefinedError, match="bca"):
        binned.conf_int(method="bca")
    low, high = cs.bootstrap(cs.ece, y, p, ci_method="bca", n_resamples=200, rng=1).conf_int()
    assert 0 < low < high


def test_large_samples_draw_cells():
    y, p = binary(14, 5000)
    for metric in (cs.ece, cs.mce):
        fast = cs.bootstrap(metric, y, p, n_resamples=600, rng=1)
        rows = cs.bootstrap(metric, y, p, n_resamples=600, rng=1, freq_weights=np.ones(5000))
        assert agree(fast.distribution, rows.distribution)
        assert fast.conf_int() == rows.conf_int()


def test_squared_error_is_the_square_all_through():
    y, p = binary(6)
    root = cs.bootstrap(cs.ece, y, p, norm=2, rng=1)
    square = cs.bootstrap(cs.squared_ece, y, p, rng=1)
    np.testing.assert_allclose(square.distribution, root.distribution**2, rtol=1e-12)
    assert square.conf_int() == pytest.approx(np.square(root.conf_int()))
    debiased = cs.bootstrap(cs.squared_ece, y, p, debias="u", n_resamples=50, rng=1)
    assert debiased.conf_int() == pytest.approx(cs.bootstrap(cs.squared_ece, y, p, n_resamples=50).conf_int(), rel=0.1)
    assert debiased.estimate == cs.squared_ece(y, p, debias="u")


def test_ustatistic_interval_is_around_the_unbiased_estimate():
    y, p = binary(6, 2000)
    result = cs.bootstrap(cs.squared_ece, y, p, ci_method="ustatistic", n_resamples=50, rng=1)
    low, high = result.conf_int()
    assert low > 0
    assert (low + high) / 2 == pytest.approx(cs.squared_ece(y, p, debias="u"), rel=1e-9)
    root = cs.bootstrap(cs.ece, y, p, norm=2, n_resamples=50, rng=1)
    assert root.conf_int(method="ustatistic") == pytest.approx((low**0.5, high**0.5))
    w = np.arange(2000) % 3
    weighted = cs.bootstrap(cs.ece, y, p, norm=2, freq_weights=w, n_resamples=50, rng=1)
    repeated = cs.bootstrap(cs.ece, np.repeat(y, w), np.repeat(p, w), norm=2, n_resamples=50, rng=1)
    assert weighted.conf_int(method="ustatistic") == pytest.approx(repeated.conf_int(method="ustatistic"))
    for other in (cs.bootstrap(cs.ece, y, p, n_resamples=50), cs.bootstrap(cs.brier_score, y, p, n_resamples=50)):
        with pytest.raises(NotDefinedError, match="norm 2"):
            other.conf_int(method="ustatistic")


@pytest.mark.parametrize(("power", "scale"), [(1.0, 1.0), (1.0, 0.05), (1.4, 1.0)])
def test_ustatistic_interval_covers(power, scale):
    rng = np.random.default_rng(17)
    p = rng.random(1_000_000) * scale
    truth = rms_gap(p, p**power)
    held = 0
    for _ in range(400):
        rows = rng.integers(0, p.size, 300)
        y = (rng.random(300) < p[rows] ** power).astype(int)
        low, high = cs.bootstrap(cs.ece, y, p[rows], norm=2, n_resamples=2, rng=1).conf_int(method="ustatistic")
        held += low <= truth + 1e-9 and truth <= high + 1e-9
    # four standard errors below 95%
    assert held / 400 > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 400)


def test_errors_without_a_known_interval_say_so():
    y, p = binary(7)
    for name in ("ici", "emax"):
        result = cs.bootstrap(name, y, p, smoother="spline", n_resamples=20, rng=1)
        assert np.isnan(result.conf_int()).all()
        assert "pseudo_label_test" in result.notes[0]
        assert np.isfinite(result.conf_int(method="percentile")).all()


def test_bootstrap_without_events():
    p = np.linspace(0.001, 0.05, 80)
    with pytest.warns(NotEstimableWarning, match="same in all rows") as caught:
        result = cs.bootstrap(cs.brier_score, np.zeros(80), p, n_resamples=50, rng=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isnan(result.conf_int()).all()
    binned = cs.bootstrap(cs.ece, np.zeros(80), p, n_resamples=50, rng=1)
    assert binned.conf_int()[1] >= binned.estimate
    assert "50 of 50" in " ".join(binned.notes)


def test_resamples_that_lose_a_class_are_counted():
    y = np.r_[1, np.zeros(29)]
    p = np.linspace(0.01, 0.2, 30)
    result = cs.bootstrap(cs.brier_score, y, p, n_resamples=600, rng=1)
    lost = int(result.notes[-1].split()[0])
    # a draw of 30 misses one row with probability (1 - 1/30)^30; plus and minus 5 standard errors
    assert lost / 600 == pytest.approx((29 / 30) ** 30, abs=0.1)


def test_bootstrap_of_a_callable():
    y, p = binary(8)
    seen = []

    def difference(outcome, probability):
        seen.append(outcome.size)
        return float(np.mean(outcome - probability))

    plain = cs.bootstrap(difference, y, p, n_resamples=50, rng=1)
    assert plain.metric == "difference"
    assert set(seen) == {399, 400} or max(seen) == 400
    weighted = cs.bootstrap(
        lambda y, p, freq_weights=None: float(np.average(y - p, weights=freq_weights)), y, p, n_resamples=50, rng=1
    )
    np.testing.assert_allclose(weighted.distribution, plain.distribution, atol=1e-12)
    strings = np.where(y == 1, "sick", "well")
    named = cs.bootstrap(difference, strings, p, event="sick", n_resamples=50, rng=1)
    np.testing.assert_array_equal(named.distribution, plain.distribution)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"metric": "rmsce"}, "metric"),
        ({"metric": 3}, "metric"),
        ({"metric": cs.classwise_ece}, "binary|matrix|one column"),
        ({"metric": lambda *arrays: arrays[0]}, "one number"),
        ({"ci_method": "studentized"}, "ci_method"),
        ({"metric": cs.brier_score, "ci_method": "inversion"}, "inversion"),
        ({"ci_method": "ustatistic"}, "norm 2"),
        ({"n_resamples": 1}, "n_resamples"),
        ({"freq_weights": np.full(100, 0.5)}, "whole numbers"),
        ({"groups": np.arange(3)}, "groups"),
        ({"rng": -1}, "rng"),
    ],
)
def test_bootstrap_errors_name_the_argument(arguments, words):
    y, p = binary(9, 100)
    with pytest.raises(InputError, match=words):
        cs.bootstrap(**{"metric": cs.ece, "y": y, "p": p, **arguments})


def test_bootstrap_prints_and_pickles():
    y, p = binary(10)
    result = cs.bootstrap(cs.ece, y, p, bins=8, rng=1)
    text = str(result)
    for word in ("Bootstrap of ece", "inversion", "999", "400", "lower bound"):
        assert word in text
    assert "<table" in result.summary().as_html()
    frame = result.to_frame(alpha=0.1)
    assert frame.loc["ece", ["ci_low", "ci_high"]].tolist() == list(result.conf_int(0.1))
    again = pickle.loads(pickle.dumps(result))
    assert again.conf_int() == result.conf_int()
    figure = result.plot()
    assert figure.axes[0].get_xlabel() == "ece"
    plt.close(figure)


def test_evaluate_with_intervals_is_bootstrap():
    y, p = binary(15, 300)
    plain = cs.evaluate(y, p)
    frame = cs.evaluate(y, p, ci=True, alpha=0.1, n_resamples=99, rng=1)
    assert list(plain.columns) == ["value"]
    pd.testing.assert_series_equal(frame["value"], plain["value"])
    for name in frame.index.drop(["MCB", "DSC", "UNC"]):
        assert frame.loc[name, "ci_low"] <= frame.loc[name, "ci_high"]
    assert frame.loc["ece", "ci_high"] == pytest.approx(cs.bootstrap(cs.ece, y, p, rng=3).conf_int(0.1)[1], rel=0.2)
    assert frame.loc[["MCB", "DSC", "UNC"], "ci_low"].isna().all()
    assert frame.loc["mmce", "ci_high"] == cs.bootstrap(cs.mmce, y, p, n_resamples=2).conf_int(0.1)[1]
    codes, P = matrix(15, 150, 3)
    wide = cs.evaluate(codes, P, ci=True, n_resamples=49, rng=1)
    assert wide["ci_high"].notna().all()
    again = cs.evaluate(codes, P, ci=True, n_resamples=49, rng=1)
    pd.testing.assert_frame_equal(wide, again)


# -- pseudo-labels -----------------------------------------------------------------------------------------------


def enumerated(p):
    n = p.size
    labels = ((np.arange(2**n)[:, None] >> np.arange(n)) & 1).astype(int)
    return labels, np.prod(np.where(labels == 1, p, 1 - p), axis=1)


@pytest.mark.parametrize(
    "statistic", ["ece", "mce", "ace", "squared_ece", "mmce", "brier_score", "log_loss", "accuracy"]
)
def test_null_law_is_the_enumeration(statistic):
    # 2^7 label vectors; 1000 draws give a p-value to 1.6%
    p = np.array([0.1, 0.2, 0.3, 0.55, 0.6, 0.7, 0.95])
    y = np.array([1, 0, 0, 1, 0, 1, 1])
    metric = getattr(cs, statistic)
    labels, chance = enumerated(p)
    options = {"bins": 3} if statistic in {"ece", "mce", "ace", "squared_ece"} else {}
    values = np.array([metric(v, p, **options) for v in labels])
    test = cs.pseudo_label_test(y, p, statistic, bins=3, n_resamples=1000, rng=1)
    observed = metric(y, p, **options)
    assert test.statistic == pytest.approx(observed, rel=1e-10)
    upper = chance[values >= observed - 1e-10].sum()
    if statistic in {"brier_score", "log_loss", "accuracy"}:
        upper = min(1, 2 * min(upper, chance[values <= observed + 1e-10].sum()))
    assert test.pvalue == pytest.approx(upper, abs=4 * max(test.mc_error, 0.008))
    assert test.expected == pytest.approx(chance @ values, abs=5 * test.draws.std() / np.sqrt(1000))


@pytest.mark.parametrize(
    ("statistic", "metric", "options"),
    [
        ("classwise_ece", cs.ece, {"type": "classwise"}),
        ("confidence_ece", cs.confidence_ece, {}),
        ("mce", cs.mce, {"type": "classwise"}),
        ("log_loss", cs.log_loss, {}),
        ("brier_score", cs.brier_score, {}),
        ("accuracy", cs.accuracy, {}),
        ("mmce", cs.mmce, {}),
    ],
)
def test_null_law_of_matrices_is_that_of_naive_labels(statistic, metric, options):
    y, P = matrix(2, 40, 3)
    given = {} if statistic == "classwise_ece" else options
    test = cs.pseudo_label_test(y, P, statistic, n_resamples=600, rng=1, **given)
    assert test.statistic == pytest.approx(metric(y, P, **options), rel=1e-10)
    rng = np.random.default_rng(3)
    labels = (rng.random((600, 40, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=2)
    values = [metric(v, P, classes=range(3), **options) for v in labels]
    assert agree(test.draws, values)


def test_classwise_test_has_a_row_for_each_class():
    y, P = matrix(3, 300, 4)
    names = np.array(["a", "b", "c", "d"])
    test = cs.pseudo_label_test(names[y], pd.DataFrame(P, columns=names), n_resamples=600, rng=1)
    assert test.method == "classwise_ece"
    assert list(test.by_class.index) == list(names)
    np.testing.assert_allclose(test.by_class["statistic"], cs.classwise_ece(y, P), rtol=1e-12)
    # each class alone is a binary test
    for k in range(4):
        alone = cs.pseudo_label_test(y == k, P[:, k], n_resamples=600, rng=2)
        assert test.by_class["pvalue"].iloc[k] == pytest.approx(alone.pvalue, abs=5 * 0.02)
        assert test.by_class["expected"].iloc[k] == pytest.approx(alone.expected, rel=0.06)
    raw = test.by_class["pvalue"].to_numpy()
    order = np.argsort(raw)
    holm = np.minimum(np.maximum.accumulate(raw[order] * [4, 3, 2, 1]), 1)
    np.testing.assert_allclose(test.by_class["pvalue_holm"].to_numpy()[order], holm)


@pytest.mark.parametrize("statistic", ["ece", "mmce", "brier_score", "ici"])
def test_pseudo_label_weights_are_copies(statistic):
    y, p = binary(11, 50)
    w = np.random.default_rng(1).integers(0, 3, 50)
    weighted = cs.pseudo_label_test(y, p, statistic, freq_weights=w, n_resamples=40, rng=1)
    repeated = cs.pseudo_label_test(np.repeat(y, w), np.repeat(p, w), statistic, n_resamples=40, rng=1)
    assert weighted.statistic == pytest.approx(repeated.statistic, rel=1e-10)
    np.testing.assert_allclose(weighted.draws, repeated.draws, rtol=1e-9)


def test_pseudo_label_test_of_a_callable():
    y, P = matrix(4, 50, 3)

    def largest_share(labels, _):
        return np.bincount(labels, minlength=3).max()

    test = cs.pseudo_label_test(y, P, largest_share, n_resamples=3000, rng=1)
    rng = np.random.default_rng(2)
    labels = (rng.random((3000, 50, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=2)
    assert agree(test.draws, [largest_share(v, P) for v in labels])
    assert test.method == "largest_share"


def test_underconfident_predictions_are_seen_by_two_sided_scores():
    rng = np.random.default_rng(5)
    p = np.clip(rng.normal(0.5, 0.12, 2000), 0.2, 0.8)
    z = np.log(p) - np.log1p(-p)
    y = rng.random(2000) < 1 / (1 + np.exp(-3 * z))
    test = cs.pseudo_label_test(y, p, "brier_score", rng=1)
    assert test.statistic < test.expected
    assert test.pvalue < 0.01
    assert test.details["two_sided"]


def test_size_of_the_pseudo_label_ece():
    # 500 calibrated samples; standard error of a size of 5%: 1%. The p-value is discrete: at most 5%
    rng = np.random.default_rng(6)
    p = rng.beta(1, 3, 200)
    pvalues = [cs.pseudo_label_test(rng.random(200) < p, p, n_resamples=199, rng=rng).pvalue for _ in range(500)]
    assert np.mean(np.array(pvalues) <= 0.05) == pytest.approx(0.05, abs=4 * 0.01)
    assert min(pvalues) > 0


def test_stopping_is_the_plain_test_cut_off():
    y, p = binary(3, 200)
    plain = cs.pseudo_label_test(y, p, n_resamples=5000, rng=1)
    early = cs.pseudo_label_test(y, p, n_resamples=5000, stop_after=20, rng=1)
    above = np.flatnonzero(plain.draws >= plain.statistic)
    assert above.size > 20
    assert early.draws.tolist() == plain.draws[: above[19] + 1].tolist()
    assert early.pvalue == 20 / early.draws.size
    assert early.mc_error == pytest.approx(early.pvalue * np.sqrt((1 - early.pvalue) / 20))
    assert abs(early.pvalue - plain.pvalue) < 4 * early.mc_error
    assert f"{early.draws.size} were made" in str(early)
    # never reached: all draws, and the plain p
    late = cs.pseudo_label_test(y, p, n_resamples=5000, stop_after=above.size + 1, rng=1)
    assert late.pvalue == plain.pvalue
    far = cs.pseudo_label_test(1 - y, p, n_resamples=500, stop_after=3, rng=1)
    assert far.pvalue == 1 / 501


def test_stopping_ends_the_calls_of_a_callable():
    y, p = binary(3, 60)
    calls = []

    def statistic(y, p):
        calls.append(1)
        return abs(y.mean() - p.mean())

    test = cs.pseudo_label_test(y, p, statistic, n_resamples=2000, stop_after=10, rng=1)
    assert len(calls) == test.draws.size + 1 < 1000
    assert np.count_nonzero(test.draws >= test.statistic) == 10
    codes, P = matrix(2, 300)
    classes = cs.pseudo_label_test(codes, P, "classwise_ece", n_resamples=4000, stop_after=5, rng=1)
    assert classes.draws.size < 1024
    assert classes.by_class is None


def test_stopped_pvalues_are_valid():
    rng = np.random.default_rng(8)
    draws = rng.standard_normal((20_000, 200))
    observed = rng.standard_normal(20_000)
    pvalues = np.array(
        [monte_carlo(o, stopped(o, d, 5), stop_after=5).pvalue for o, d in zip(observed, draws, strict=True)]
    )
    assert pvalues.min() == 1 / 201
    for level in (0.01, 0.05, 0.2, 0.5):
        # four standard errors of a share of 20,000
        assert np.mean(pvalues <= level) <= level + 4 * np.sqrt(level * (1 - level) / 20_000)
    # attained exactly at p = h / l
    assert np.mean(pvalues <= 0.1) == pytest.approx(0.1, abs=4 * np.sqrt(0.09 / 20_000))


def test_pseudo_label_test_prints_pickles_and_plots():
    y, P = matrix(5)
    test = cs.pseudo_label_test(y, P, "confidence_ece", bins=15, rng=1)
    for word in ("H0: labels are independent draws", "expected under calibration", "Monte Carlo", "confidence_ece"):
        assert word in str(test)
    statistic, pvalue = test
    assert (statistic, pvalue) == (test.statistic, test.pvalue)
    again = pickle.loads(pickle.dumps(test))
    np.testing.assert_array_equal(again.draws, test.draws)
    assert again.details == test.details
    figure = test.plot()
    assert figure.axes[0].get_xlabel() == "confidence_ece"
    plt.close(figure)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"statistic": "chi2"}, "statistic"),
        ({"groups": np.arange(50)}, "recalibration_test"),
        ({"n_resamples": 0}, "n_resamples"),
        ({"stop_after": 0}, "stop_after"),
        ({"stop_after": 5, "statistic": "brier_score"}, "both sides"),
        ({"freq_weights": np.full(50, 1.5)}, "whole numbers"),
    ],
)
def test_pseudo_label_errors_name_the_argument(options, words):
    y, p = binary(12, 50)
    with pytest.raises(InputError, match=words):
        cs.pseudo_label_test(y, p, **options)


# -- randomness --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda y, p, rng: cs.bootstrap(cs.ece, y, p, bins=5, n_resamples=50, rng=rng).distribution,
        lambda y, p, rng: cs.bootstrap(cs.brier_score, y, p, n_resamples=50, rng=rng).distribution,
        lambda y, p, rng: cs.pseudo_label_test(y, p, n_resamples=50, rng=rng).draws,
        lambda y, p, rng: cs.pseudo_label_test(y, p, "mmce", n_resamples=50, rng=rng).draws,
        lambda y, p, rng: cs.recalibration_test(y, p, method="pseudo_label", n_resamples=50, rng=rng).pvalue,
        lambda y, p, rng: cs.hosmer_lemeshow(y, p, method="pseudo_label", n_resamples=50, rng=rng).pvalue,
    ],
)
def test_randomness_is_an_argument(call):
    y, p = binary(13, 60)
    np.testing.assert_array_equal(call(y, p, 7), call(y, p, 7))
    np.testing.assert_array_equal(call(y, p, np.random.default_rng(7)), call(y, p, 7))
    generator = np.random.default_rng(7)
    first, second = call(y, p, generator), call(y, p, generator)
    third, fourth = call(y, p, None), call(y, p, None)
    if np.ndim(first):
        assert not np.array_equal(first, second)
        assert not np.array_equal(third, fourth)
    with pytest.raises(InputError, match="rng"):
        call(y, p, np.random.RandomState(1))
