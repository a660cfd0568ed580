"""Bootstrap draws of means over many rows, against rows that are drawn one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calstat as cs
from calstat._arrays.resampling import _rank_cells, mean_draws


@pytest.mark.parametrize("n", [1, 2, 3, 99, 101, 5000])
def test_cells_of_ranks_hold_their_rows_in_order(n):
    cell = _rank_cells(n)
    assert cell[0] == 0
    assert set(np.diff(cell)) <= {0, 1}
    sizes = np.bincount(cell)
    assert sizes[: min(50, n // 2)].max(initial=1) == 1
    assert sizes[len(sizes) - min(50, n // 2) :].max(initial=1) == 1


@pytest.mark.parametrize("heavy", [False, True])
def test_means_have_the_law_of_rows_drawn_one_by_one(heavy):
    rng = np.random.default_rng(1)
    values = rng.pareto(1.8, 3000) if heavy else rng.exponential(size=3000)
    labels = (rng.random(3000) < 0.3).astype(int)
    draws, lost = mean_draws(values, labels, 8000, rng)
    plain = values[rng.integers(0, 3000, size=(8000, 3000))].mean(axis=1)
    assert lost == 0
    assert stats.ks_2samp(draws, plain).pvalue > 0.001
    # the variance of a bootstrap mean is known; 8000 draws give it to 1.6% when normal, to some 5% when skewed
    assert draws.var() == pytest.approx(values.var() / 3000, rel=0.15 if heavy else 0.07)


def test_draws_without_the_rare_outcome_are_counted():
    y = np.zeros(2500, dtype=int)
    y[:2] = 1
    p = np.linspace(0.001, 0.2, 2500)
    with pytest.raises(TypeError):
        cs.bootstrap(cs.brier_score, y, p, rows=3)
    result = cs.bootstrap(cs.brier_score, y, p, n_resamples=4000, rng=2)
    (note,) = (n for n in result.notes if "one outcome only" in n)
    # each draw lacks both events with probability (1 - 2/2500)^2500 = 13.5%
    assert int(note.split()[0]) == pytest.approx(4000 * (1 - 2 / 2500) ** 2500, abs=4 * np.sqrt(4000 * 0.135 * 0.865))


def test_intervals_of_scores_of_many_rows_are_those_of_the_normal_law():
    rng = np.random.default_rng(3)
    P = rng.dirichlet([1.0, 2.0, 3.0], 20_000)
    y = (rng.random((20_000, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)
    rows = -np.log(P[np.arange(20_000), y])
    result = cs.bootstrap(cs.log_loss, y, P, n_resamples=4000, rng=4)
    half = stats.norm.isf(0.025) * rows.std() / np.sqrt(20_000)
    low, high = result.conf_int()
    assert (high - low) / 2 == pytest.approx(half, rel=0.06)
    assert (high + low) / 2 == pytest.approx(rows.mean(), abs=0.1 * half)
