"""Engines of draws: exact laws against enumeration and naive sampling, intervals against closed forms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from calstat._arrays import pseudo_labels, resampling


def naive_labels(P, n_resamples, rng):
    return (rng.random((n_resamples, P.shape[0], 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=2)


# -- pseudo-labels -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 9, 64, 501])
def test_poisson_binomial_is_the_convolution(n):
    p = np.random.default_rng(n).random(n)
    law = np.ones(1)
    for q in p:
        law = np.convolve(law, [1 - q, q])
    first, got = pseudo_labels.poisson_binomial(p)
    full = np.zeros(n + 1)
    full[first : first + got.size] = got
    # FFT convolution is exact to a few units of rounding of the largest term
    np.testing.assert_allclose(full, law, atol=1e-15)


def test_poisson_binomial_of_certain_and_of_no_rows():
    assert pseudo_labels.poisson_binomial(np.empty(0))[0] == 0
    first, law = pseudo_labels.poisson_binomial(np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(first + law @ np.arange(law.size), 2)


def test_poisson_binomial_of_many_rows_keeps_its_moments():
    p = np.random.default_rng(0).beta(0.1, 2, 200_000)
    first, law = pseudo_labels.poisson_binomial(p)
    mean = law @ np.arange(law.size)
    assert first + mean == pytest.approx(p.sum(), rel=1e-10)
    assert law @ (np.arange(law.size) - mean) ** 2 == pytest.approx((p * (1 - p)).sum(), rel=1e-9)
    assert law.size < 3000


def test_bin_counts_have_the_enumerated_law():
    # 60,000 draws: the largest Monte Carlo error of a share is 0.2%
    p = np.array([0.1, 0.8, 0.3, 0.5, 0.65])
    index = np.array([0, 2, 0, 2, 2])
    drawn = pseudo_labels.bin_counts(p, index, 4, 60_000, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[:, [1, 3]], 0)
    expected: dict[tuple[int, int], float] = {}
    for labels in itertools.product([0, 1], repeat=5):
        chance = np.prod(np.where(labels, p, 1 - p))
        key = (labels[0] + labels[2], labels[1] + labels[3] + labels[4])
        expected[key] = expected.get(key, 0.0) + chance
    for (a, b), chance in expected.items():
        assert np.mean((drawn[:, 0] == a) & (drawn[:, 2] == b)) == pytest.approx(chance, abs=5 * 0.002)


@pytest.mark.parametrize("concentration", [0.05, 0.5, 5.0])
def test_departures_have_the_law_of_naive_labels(concentration):
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.full(5, concentration), 7)
    P[0] = [0, 1, 0, 0, 0]
    counts = np.zeros((7, 5))
    draws = 30_000
    pairs = np.zeros((5, 5))
    for part in pseudo_labels.departures(P, draws, rng, 1 << 26):
        labels = np.tile(P.argmax(axis=1), (part.stop - part.start, 1))
        labels[part.draw, part.row] = part.label
        for k in range(5):
            counts[:, k] += (labels == k).sum(axis=0)
        np.add.at(pairs, (labels[:, 1], labels[:, 2]), 1)
    # standard error of a share of 30,000: at most 0.29%
    np.testing.assert_allclose(counts / draws, P, atol=5 * 0.0029)
    # rows are independent of each other
    np.testing.assert_allclose(pairs / draws, np.outer(P[1], P[2]), atol=5 * 0.0029)


def test_cell_counts_agree_with_naive_labels():
    # two-sample test of a classwise statistic, 20,000 draws each
    rng = np.random.default_rng(5)
    P = rng.dirichlet(np.full(4, 0.7), 60)
    cells = (P * 3).astype(int).clip(max=2) + 3 * np.arange(4)
    fast = np.concatenate(list(pseudo_labels.cell_counts(P, cells, 12, 20_000, rng, 1 << 26)))
    labels = naive_labels(P, 20_000, rng)
    naive = np.stack([(cells[np.arange(60), labels] == c).sum(axis=1) for c in range(12)], axis=1)
    expected = np.bincount(cells.ravel(), weights=P.ravel(), minlength=12)
    assert np.all(fast.sum(axis=1) == 60)
    for f in (lambda c: np.abs(c - expected).sum(axis=1), lambda c: c[:, 4], lambda c: c[:, 0] - c[:, 8]):
        assert stats.ks_2samp(f(fast), f(naive)).pvalue > 1e-4


def test_linear_draws_are_sums_over_rows():
    rng = np.random.default_rng(6)
    P = rng.dirichlet(np.ones(3), 40)
    values = rng.normal(size=(40, 3, 2))
    drawn = pseudo_labels.linear_draws(P, values, 40_000, rng)
    mean = np.einsum("ik,ikd->d", P, values)
    second = np.einsum("ik,ikd->id", P, values**2) - np.einsum("ik,ikd->id", P, values) ** 2
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * np.sqrt(second.sum(axis=0).max() / 40_000))
    np.testing.assert_allclose(drawn.var(axis=0), second.sum(axis=0), rtol=0.05)


@pytest.mark.parametrize("max_bytes", [1, 10_000, 1 << 30])
def test_memory_bound_leaves_the_number_of_draws(max_bytes):
    rng = np.random.default_rng(7)
    P = rng.dirichlet(np.ones(3), 20)
    cells = np.arange(3) + np.zeros((20, 1), dtype=int)
    blocks = list(pseudo_labels.cell_counts(P, cells, 3, 50, rng, max_bytes))
    assert sum(b.shape[0] for b in blocks) == 50
    assert sum(b.shape[0] for b in pseudo_labels.label_blocks(P[:, 0], 50, rng, max_bytes)) == 50
    counts = list(resampling.count_blocks(20, 50, rng, max_bytes=max_bytes))
    assert sum(b.shape[0] for b in counts) == 50
    if max_bytes == 1:
        assert len(blocks) == len(counts) == 50


def test_monte_carlo_pvalue_counts_ties_and_is_never_zero():
    draws = np.array([1.0, 2.0, 3.0, 3.0])
    assert pseudo_labels.monte_carlo(3.0 * (1 + 1e-14), draws).pvalue == 3 / 5
    assert pseudo_labels.monte_carlo(9.0, draws).pvalue == 1 / 5
    assert pseudo_labels.monte_carlo(0.0, draws, two_sided=True).pvalue == 2 / 5
    assert pseudo_labels.monte_carlo(2.5, draws, two_sided=True).pvalue == 1
    assert np.isnan(pseudo_labels.monte_carlo(np.nan, draws).pvalue)


# -- bootstrap draws ---------------------------------------------------------------------------------------------


def test_counts_are_multinomial():
    rng = np.random.default_rng(8)
    counts = np.concatenate(list(resampling.count_blocks(10, 20_000, rng)))
    assert np.all(counts.sum(axis=1) == 10)
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=5 * np.sqrt(0.9 / 20_000))
    np.testing.assert_allclose(np.cov(counts.T), np.eye(10) - 0.1, atol=0.05)


def test_counts_with_weights_draw_the_sum_of_the_weights():
    rng = np.random.default_rng(9)
    w = np.array([0.0, 1, 3, 6])
    counts = np.concatenate(list(resampling.count_blocks(4, 20_000, rng, weights=w)))
    assert np.all(counts.sum(axis=1) == 10)
    np.testing.assert_allclose(counts.mean(axis=0), w, atol=0.08)


def test_clusters_are_drawn_whole():
    groups = np.array([0, 0, 1, 2, 2, 2])
    w = np.array([1.0, 2, 1, 1, 1, 4])
    for weights in (None, w):
        counts = np.concatenate(
            list(resampling.count_blocks(6, 200, np.random.default_rng(1), weights=weights, groups=groups))
        )
        per_cluster = counts / (1 if weights is None else w)
        assert np.all(per_cluster[:, 0] == per_cluster[:, 1])
        assert np.all(per_cluster[:, 3] == per_cluster[:, 5])
        assert np.all(per_cluster[:, [0, 2, 3]].sum(axis=1) == 3)


def test_cell_sums_agree_with_drawn_rows():
    # the fast draws against resampled rows: two-sample tests at 20,000 draws
    rng = np.random.default_rng(10)
    p = rng.beta(1, 2, 400)
    y = (rng.random(400) < p).astype(int)
    cell = 2 * (p * 5).astype(int) + y
    count, sums = resampling.cell_sum_draws(cell, y - p, 10, 20_000, rng)
    rows = np.concatenate(list(resampling.count_blocks(400, 20_000, rng)))
    naive_count = np.stack([rows[:, cell == c].sum(axis=1) for c in range(10)], axis=1)
    naive = np.stack([rows[:, cell == c] @ (y - p)[cell == c] for c in range(10)], axis=1)
    assert stats.ks_2samp(count[:, 3], naive_count[:, 3]).pvalue > 1e-4
    for f in (lambda s: np.abs(s[:, ::2] + s[:, 1::2]).sum(axis=1), lambda s: s.sum(axis=1)):
        assert stats.ks_2samp(f(sums), f(naive)).pvalue > 1e-4


def test_jackknife_leaves_out_each_unit_once():
    counts = np.array(list(resampling.jackknife_counts(5)))
    np.testing.assert_array_equal(counts, 1 - np.eye(5))
    w = np.array([2.0, 0, 3])
    counts = np.array(list(resampling.jackknife_counts(3, w)))
    np.testing.assert_array_equal((w - counts).sum(axis=0), w)
    np.testing.assert_array_equal((w - counts).sum(axis=1), 1)
    many = np.array(list(resampling.jackknife_counts(1001)))
    assert many.shape == (200, 1001)
    np.testing.assert_array_equal((1 - many).sum(axis=0), 1)
    clusters = np.array(list(resampling.jackknife_counts(4, groups=np.array([0, 1, 1, 0]))))
    np.testing.assert_array_equal(clusters, [[0, 1, 1, 0], [1, 0, 0, 1]])


# -- intervals ---------------------------------------------------------------------------------------------------


def test_bootstrap_intervals_of_a_mean_are_scipys():
    rng = np.random.default_rng(11)
    x = rng.exponential(size=80)
    scipys = {
        name: stats.bootstrap((x,), np.mean, n_resamples=4000, method=method, rng=np.random.default_rng(2))
        for name, method in [("percentile", "percentile"), ("basic", "basic"), ("bca", "BCa")]
    }
    draws = scipys["percentile"].bootstrap_distribution
    a = resampling.acceleration((x.sum() - x) / 79)
    ours = {
        "percentile": resampling.percentile_limits(draws, 0.05),
        "basic": resampling.basic_limits(x.mean(), draws, 0.05),
        "bca": resampling.bca_limits(x.mean(), draws, 0.05, a),
    }
    for name, result in scipys.items():
        np.testing.assert_array_equal(result.bootstrap_distribution, draws)
        # scipy counts only smaller draws in the bias of BCa; ties are halved here, which one draw of 4000 can show
        assert ours[name] == pytest.approx(tuple(result.confidence_interval), rel=1e-3)
    low, high = resampling.normal_limits(x.mean(), draws, 0.05)
    assert (low + high) / 2 == pytest.approx(2 * x.mean() - draws.mean())
    assert high - low == pytest.approx(2 * stats.norm.isf(0.025) * draws.std(ddof=1))


def test_bca_has_no_limits_outside_the_draws():
    assert np.isnan(resampling.bca_limits(5.0, np.arange(4.0), 0.05, 0.0)).all()


def test_acceleration_of_a_constant_is_zero():
    assert resampling.acceleration(np.full(4, 0.3)) == 0


@pytest.mark.parametrize(("n", "rate"), [(1, 0.3), (7, 1e-9), (300, 0.02), (5000, 0.7), (40, 0.0), (40, 1.0)])
def test_binomial_quantiles_are_scipys(n, rate):
    u = np.random.default_rng(n).random((2000, 1))
    got = resampling.BinomialQuantiles(np.array([float(n)]), u).at(np.array([rate]))
    np.testing.assert_array_equal(got, stats.binom.ppf(u, n, rate))


def test_binomial_quantiles_of_unlike_cells_do_not_mix():
    count, rate = np.array([1.0, 2000, 30, 1]), np.array([0.4, 0.03, 1.0, 0.0])
    u = np.random.default_rng(8).random((500, 4))
    u[0], u[1] = 2.0**-53, 1 - 2.0**-53  # the ends of what a generator gives
    got = resampling.BinomialQuantiles(count, u).at(rate)
    np.testing.assert_array_equal(got[2:], stats.binom.ppf(u, count, rate)[2:])
    np.testing.assert_array_less(stats.binom.cdf(got[0] - 1, count, rate), 1e-15)
    np.testing.assert_array_less(stats.binom.sf(got[1], count, rate), 1e-15)


def sample(events, count, mean_p, **options):
    size = len(count)
    defaults = {"correlation": None, "group": np.zeros(size, dtype=int), "norm": 1, "combine": "mean"}
    n, p, k = np.array(count, dtype=float), np.array(mean_p), np.array(events, dtype=float)
    return resampling.BinnedSample(
        count=n,
        mean_p=p,
        events=k,
        square=k * (1 - 2 * p) + n * p**2,
        variance=n * p * (1 - p),
        **{**defaults, **options},
    )


def test_ustatistic_limits_of_one_bin_by_hand():
    # 70 of 100 at p = 0.5: the mean of e_i e_j over pairs is (20^2 - 25) / (100 * 99); rows 2 g e - g^2 have variance
    # 4 g^2 (s^2 - g^2), s^2 = 1/4, g = 0.2, and the pairs add 2 v^2 / (100 * 99), v = 1/4 as under calibration.
    low, high = resampling.ustatistic_limits(sample([70], [100], [0.5]), 0.05)
    assert (low + high) / 2 == pytest.approx(375 / 9900, rel=1e-12)
    variance = 4 * 0.04 * (0.25 - 0.04) / 100 + 2 * 0.0625 / 9900
    assert high - low == pytest.approx(2 * stats.norm.isf(0.025) * np.sqrt(variance), rel=1e-12)
    assert np.isnan(resampling.ustatistic_limits(sample([1, 0], [1, 1], [0.5, 0.2]), 0.05)).all()


def test_inversion_of_one_bin_is_the_binomial_test():
    # one bin: the error is |rate - p|, and the limits are those of inverted binomial tests on the shrunk path
    s = sample([70], [100], [0.5])
    u = np.random.default_rng(1).random((40_000, 1))
    interval = resampling.invert_binned_error(s, u, 0.05)
    # Clopper-Pearson limits of 70 of 100; 40,000 draws give the tails to 0.08%, the limits to about 0.002
    exact = stats.binomtest(70, 100).proportion_ci()
    assert interval.low == pytest.approx(exact.low - 0.5, abs=0.004)
    assert interval.high == pytest.approx(exact.high - 0.5, abs=0.004)
    assert not interval.empty


def test_limits_of_the_largest_gap_are_those_of_exact_intervals():
    events, count, p = [0, 9, 10], [3, 10, 40], [0.02, 0.4, 0.55]
    found = resampling.invert_binned_error(sample(events, count, p, norm="max"), np.zeros((1, 3)), 0.05)

    def limits(level):
        return [stats.binomtest(k, n).proportion_ci(level) for k, n in zip(events, count, strict=True)]

    # the upper limit: each bin by itself; the lower: all three at once, with half of the 5% for each side
    assert found.high == pytest.approx(max(max(c.high - q, q - c.low) for c, q in zip(limits(0.95), p, strict=True)))
    together = limits(0.975 ** (1 / 3))
    assert found.low == pytest.approx(max(max(c.low - q, q - c.high, 0) for c, q in zip(together, p, strict=True)))


def test_inversion_holds_zero_when_calibrated_and_is_empty_when_too_good():
    u = np.random.default_rng(2).random((4000, 5))
    typical = sample([12, 28, 52, 68, 92], [100] * 5, [0.1, 0.3, 0.5, 0.7, 0.9])
    assert resampling.invert_binned_error(typical, u, 0.05).low == 0
    perfect = sample([10, 30, 50, 70, 90], [100] * 5, [0.1, 0.3, 0.5, 0.7, 0.9])
    interval = resampling.invert_binned_error(perfect, u, 0.05)
    assert interval.empty
    assert (interval.low, interval.high) == (0, 0)


@pytest.mark.parametrize("norm", [1, 2, "max", "mean"])
def test_inversion_widens_with_confidence_and_keeps_to_its_range(norm):
    u = np.random.default_rng(3).random((2000, 3))
    s = sample([0, 9, 10], [3, 10, 10], [0.02, 0.4, 0.95], norm=norm)
    limits = [resampling.invert_binned_error(s, u, a) for a in (0.5, 0.1, 0.01)]
    lows, highs = [i.low for i in limits], [i.high for i in limits]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert min(lows) >= 0
    assert max(highs) <= 1


def test_uniforms_follow_the_correlation():
    correlation = np.array([[1, 0.8, 0], [0.8, 1, -0.5], [0, -0.5, 1]])
    u = resampling.uniform_draws(3, correlation, 50_000, np.random.default_rng(4))
    np.testing.assert_allclose(np.corrcoef(stats.norm.ppf(u).T), correlation, atol=0.02)


def test_errors_combine_over_classes():
    options = {"group": np.array([0, 0, 1]), "correlation": np.eye(3)}
    difference = np.array([1.0, -2, 3])
    for combine, wanted in [("mean", 0.3), ("sum", 0.6), ("max", 0.3)]:
        s = sample([5, 5, 5], [4, 6, 10], [0.5] * 3, combine=combine, **options)
        assert resampling.sample_error(s, difference) == pytest.approx(wanted)


@pytest.mark.parametrize("rate", [5e-324, 1e-310, 1e-200])
def test_departures_of_denormal_chance_are_drawn_without_overflow(rate: float) -> None:
    P = np.array([[1.0, rate, 0.0]] * 3)
    parts = list(pseudo_labels.departures(P, 100, np.random.default_rng(0)))
    assert sum(part.row.size for part in parts) == 0
