"""Intervals of errors without bins: MMCE, smooth ECE, ICI, E50, E90 and Emax."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import calstat as cs
from calstat._arrays.smooth_intervals import PairForm, band_limits, invert_smoothed_error, pair_limits
from calstat._input.validation import check_sample
from calstat.exceptions import InputError, NotDefinedError
from calstat.metrics._curves import curve_cells, kernel_cells
from calstat.metrics._kernel import kernel_error, pair_form

METRICS = {
    "mmce": "ustatistic",
    "smooth_ece": "inversion",
    "ici": "inversion",
    "e50": "band",
    "e90": "band",
    "emax": "band",
}


def draw(n, rng, shift=0.0, power=1.0):
    """Labels and probabilities whose log odds are too high by `shift` and to be multiplied by `power`."""
    z = rng.normal(-0.4, 1.6, n)
    return (rng.random(n) < 1 / (1 + np.exp(shift - power * z))).astype(int), 1 / (1 + np.exp(-z))


def limits(name, y, p, **options):
    return cs.bootstrap(name, y, p, n_resamples=2, rng=1, **options).conf_int()


# -- MMCE --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bandwidth", [0.2, 0.01, 5.0])
def test_pair_form_is_the_sum_over_pairs(bandwidth):
    rng = np.random.default_rng(1)
    y, p = draw(40, rng, 0.5)
    p = np.round(p, 1).clip(0.05, 0.95)
    w = rng.integers(0, 4, 40).astype(float)
    rows = np.repeat(np.arange(40), w.astype(int))
    e, r = (y - p)[rows], p[rows]
    n = rows.size
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    k = {(i, j): np.exp(-abs(r[i] - r[j]) / bandwidth) for i, j in pairs}
    form = pair_form(y.astype(float), p, bandwidth, w)
    assert form.estimate == pytest.approx(sum(k[i, j] * e[i] * e[j] for i, j in pairs) / (n * (n - 1)), rel=1e-10)
    base = max(sum(k[i, j] ** 2 * v[i] * v[j] for i, j in pairs) for v in (e**2, r * (1 - r)))
    assert form.base == pytest.approx(2 * base / (n * (n - 1)) ** 2, rel=1e-10)
    embedding = np.array([sum(e[j] * np.exp(-abs(r[i] - r[j]) / bandwidth) for j in range(n)) / n for i in range(n)])
    square = np.mean(e * embedding)
    assert square == pytest.approx(kernel_error(y[rows], r, bandwidth) ** 2, rel=1e-10)
    along = max(np.mean(v * embedding**2) for v in (e**2, r * (1 - r)))
    assert form.slope == pytest.approx(4 * (along / square - square) / n, rel=1e-10)


@pytest.mark.parametrize(("shift", "power"), [(0.0, 1.0), (0.4, 1.0), (0.0, 0.6)])
def test_pair_form_knows_its_variance(shift, power):
    rng = np.random.default_rng(2)
    forms = []
    for _ in range(2000):
        y, p = draw(300, rng, shift, power)
        forms.append(pair_form(y.astype(float), p, 0.2))
    z = np.random.default_rng(3).normal(-0.4, 1.6, 200_000)
    p, rate = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(shift - power * z))
    square = kernel_error(rate, p, 0.2) ** 2
    estimates = np.array([f.estimate for f in forms])
    # unbiased: within four standard errors
    assert estimates.mean() == pytest.approx(square, abs=4 * estimates.std() / np.sqrt(2000) + 1e-6)
    # a variance of 2000 skewed values is known to about 5%, and the formula leaves out terms of order 1 / n
    claimed = np.mean([f.slope * square + f.base for f in forms])
    assert claimed == pytest.approx(estimates.var(), rel=0.2)


def test_pair_limits_lie_z_standard_errors_from_the_estimate():
    z = stats.norm.isf(0.025)
    for estimate in (0.01, 0.001, 0.0002, -0.0001):
        form = PairForm(estimate=estimate, slope=1e-3, base=1e-7)
        low, high = pair_limits(form, 0.05)
        assert high - estimate == pytest.approx(z * np.sqrt(form.slope * high + form.base))
        if low > 0:
            assert estimate - low == pytest.approx(z * np.sqrt(form.slope * low + form.base))
        else:
            assert estimate <= z * np.sqrt(form.base)
    assert pair_limits(PairForm(estimate=-1.0, slope=1e-3, base=1e-7), 0.05) == (0.0, 0.0)
    assert np.isnan(limits("mmce", [1], [0.4])).all()


# -- curves and smoothed residuals ---------------------------------------------------------------------------------


def test_curve_cells_are_the_smoother():
    y, p = draw(30, np.random.default_rng(4))
    p = p[:20][np.arange(30) % 20]  # ties
    cells = curve_cells(check_sample(y, p), None)
    curve = cs.calibration_curve(y, p)
    assert cells.count.size == 20
    np.testing.assert_allclose(cells.mean_p, curve["p"], rtol=1e-12)
    np.testing.assert_allclose(cells.smoother @ (cells.events / cells.count), curve["calibrated"], atol=1e-9)
    # straight lines pass unchanged, so that the gap is smoothed as the rates are
    np.testing.assert_allclose(cells.gap(), curve["calibrated"] - curve["p"], atol=1e-6)
    assert cells.observed() == pytest.approx(cs.ici(y, p), rel=1e-6)


@pytest.mark.parametrize("n", [400, 20_000])
def test_cells_of_neighbours_stand_for_their_rows(n):
    y, p = draw(n, np.random.default_rng(5), 0.3)
    cells = curve_cells(check_sample(y, p), None)
    assert cells.count.sum() == n
    assert cells.count.size <= 64
    # cells are a 32nd of the range wide at most, the span of the smoother is 2/3
    assert cells.observed() == pytest.approx(cs.ici(y, p), rel=0.02)
    error = cs.smooth_ece(y, p)
    grid = kernel_cells(y, p)
    assert grid.observed() == pytest.approx(error, rel=0.01)
    assert grid.level(grid.events / grid.count - grid.mean_p) == pytest.approx(error, rel=0.01)


def test_fixed_bandwidth_orders_labels_as_the_error_does():
    rng = np.random.default_rng(6)
    y, p = draw(300, rng, 0.2)
    grid = kernel_cells(y, p)
    # residuals at the middles of the cells are the same sample for both
    p = (grid.place[np.searchsorted(grid.place, np.floor(p * grid.size))] + 0.5) / grid.size
    grid = kernel_cells(y, p)
    for _ in range(20):
        other = rng.random(300) < p
        place = np.searchsorted(grid.place, np.floor(p * grid.size))
        excess = np.bincount(place, other - p, minlength=grid.place.size)
        assert (grid.errors(excess) > grid.observed()) == (cs.smooth_ece(other, p) > grid.bandwidth)


@pytest.mark.parametrize("name", ["ici", "smooth_ece"])
def test_inversion_starts_at_zero_where_the_pseudo_label_test_does_not_reject(name):
    rng = np.random.default_rng(7)
    zeros = 0
    for shift in (0.0, 0.6, 0.9):
        y, p = draw(150, rng, shift)
        pvalue = cs.pseudo_label_test(y, p, name, n_resamples=150, rng=1).pvalue
        low, high = limits(name, y, p)
        assert 0 <= low <= high
        # both tails are drawn, that of the test to 1.3%
        if not 0.01 < pvalue < 0.06:
            assert (low == 0) == (pvalue > 0.025)
        zeros += low == 0
    assert 0 < zeros < 3


def test_inversion_tells_of_errors_below_chance():
    p = np.repeat([0.2, 0.4, 0.6, 0.8], 100)
    y = np.tile(np.arange(100), 4) < 100 * p
    cells = curve_cells(check_sample(y.astype(int), p), None)
    interval = invert_smoothed_error(cells, np.random.default_rng(8).random((400, 4)), 0.05)
    assert interval.empty
    assert (interval.low, interval.high) == (0, 0)


@pytest.mark.parametrize("name", METRICS)
def test_default_interval(name):
    y, p = draw(400, np.random.default_rng(9), 0.5)
    result = cs.bootstrap(name, y, p, n_resamples=50, rng=1)
    assert result.ci_method == METRICS[name]
    low, high = result.conf_int()
    assert 0 <= low < result.estimate < high < 1
    assert low > 0 or METRICS[name] == "band"
    wide, narrow = result.conf_int(0.01), result.conf_int(0.5)
    assert wide[0] <= low <= narrow[0] <= narrow[1] <= high <= wide[1]
    assert pickle.loads(pickle.dumps(result)).conf_int() == (low, high)
    assert (low, high) == limits(name, y, p)
    assert name in str(result)
    w = np.random.default_rng(10).integers(0, 4, 400)
    repeated = limits(name, np.repeat(y, w), np.repeat(p, w))
    assert limits(name, y, p, freq_weights=w) == pytest.approx(repeated, rel=1e-6, abs=1e-4)
    if name != "ici":
        with pytest.raises(NotDefinedError, match="independent rows"):
            result.conf_int(method="inversion" if name != "smooth_ece" else "band")


def test_top_labels_have_limits_too():
    rng = np.random.default_rng(11)
    P = rng.dirichlet(np.full(4, 0.6), 500)
    y = (rng.random((500, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
    top = P.argmax(axis=1)
    for name in ("mmce", "smooth_ece"):
        assert limits(name, y, P) == limits(name, (y == top).astype(int), P.max(axis=1))


def test_band_holds_the_mean_as_well():
    y, p = draw(1000, np.random.default_rng(12), 0.5)
    result = cs.bootstrap(cs.ici, y, p, n_resamples=2, rng=1)
    low, high = result.conf_int()
    wide = result.conf_int(method="band")
    assert wide[0] < low < high < wide[1]


def test_extreme_samples_have_limits():
    p = np.linspace(0.001, 0.05, 80)
    for name in METRICS:
        low, high = limits(name, np.zeros(80), p)
        assert low == 0
        assert 0 < high < 0.3
        low, high = limits(name, np.ones(80), np.ones(80))
        assert 0 == low <= high
        low, high = limits(name, np.ones(50), np.zeros(50))
        assert low > 0.5
        assert high == pytest.approx(1)
        low, high = limits(name, np.arange(60) % 2, np.full(60, 0.5))
        assert 0 == low <= high


def test_other_smoothers_and_clusters_have_none():
    y, p = draw(200, np.random.default_rng(13))
    for options in ({"smoother": "logistic"}, {"scale": "logit"}):
        result = cs.bootstrap(cs.ici, y, p, n_resamples=20, rng=1, **options)
        assert result.ci_method is None
        assert np.isnan(result.conf_int()).all()
        assert "lowess" in result.notes[0]
    for name in METRICS:
        result = cs.bootstrap(name, y, p, n_resamples=20, groups=np.arange(200) // 4, rng=1)
        assert np.isnan(result.conf_int()).all()
        assert "clusters" in result.notes[0]
    for name, method in (("mmce", "inversion"), ("emax", "inversion"), ("ece", "band"), ("ici", "ustatistic")):
        with pytest.raises(InputError, match=f"ci_method='{method}' is for"):
            cs.bootstrap(name, y, p, n_resamples=2, ci_method=method)


# -- coverage --------------------------------------------------------------------------------------------------------


def all_limits(y, p, rng):
    """Limits of all metrics, with the smoother of the curve made once."""
    curve, grid = curve_cells(check_sample(y, p), None), kernel_cells(y, p)
    normal = rng.standard_normal((400, curve.count.size))
    found = {"mmce": np.sqrt(pair_limits(pair_form(y, p, 0.2), 0.05))}
    for name, cells in (("ici", curve), ("smooth_ece", grid)):
        interval = invert_smoothed_error(cells, rng.random((400, cells.count.size)), 0.05)
        found[name] = interval.low, interval.high
    for name, share in (("e50", 0.5), ("e90", 0.9), ("emax", 1.0)):
        found[name] = band_limits(replace(curve, share=share), normal, 0.05)
    return found


def held(n, runs, seed, shift=0.0, power=1.0):
    """Shares of intervals that hold the errors of a population of 200,000 true rates, by metric."""
    z = np.random.default_rng(seed).normal(-0.4, 1.6, 200_000)
    p, rate = 1 / (1 + np.exp(-z)), 1 / (1 + np.exp(shift - power * z))
    # Each of 500 p with the share of events that it has: 300 rows, of which the rate are events.
    order = np.argsort(p)[200::400]
    copies = np.round(300 * rate[order]).astype(int)
    y, w = np.tile([1, 0], 500), np.column_stack((copies, 300 - copies)).ravel()
    thin = np.repeat(p[order], 2)
    errors = {name: getattr(cs, name)(y, thin, freq_weights=w) for name in METRICS if name != "mmce"}
    errors["mmce"] = kernel_error(rate, p, 0.2)
    rng = np.random.default_rng(seed)
    hits = dict.fromkeys(METRICS, 0)
    for _ in range(runs):
        found = all_limits(*draw(n, rng, shift, power), rng)
        for name, error in errors.items():
            low, high = found[name]
            # rounded copies, and rows that pair with themselves, leave a truth of 0 at less than 0.001
            hits[name] += low - 1e-3 <= error <= high + 1e-3
    return {name: count / runs for name, count in hits.items()}


@pytest.mark.parametrize("truth", [{}, {"shift": 0.4}])
def test_intervals_cover(truth):
    # three standard errors of a share of 25 below 95%
    assert min(held(100, 25, 14, **truth).values()) >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / 25)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [{}, {"shift": 0.3}, {"power": 0.7}])
@pytest.mark.parametrize("n", [100, 300, 1000])
def test_intervals_cover_in_long_runs(n, truth):
    goal = 0.93 if n > 100 else 0.92
    assert min(held(n, 400, 15, **truth).values()) >= goal - 2 * np.sqrt(goal * (1 - goal) / 400)
