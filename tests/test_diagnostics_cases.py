"""Cases collected from users' reports about other programs, with the right answers."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy import stats

from calstat.diagnostics import hosmer_lemeshow, recalibration_test, spiegelhalter, val_prob
from calstat.exceptions import NotEstimableWarning

P = [0.03, 0.07, 0.11, 0.16, 0.22, 0.27, 0.31, 0.36, 0.42, 0.47]
P += [0.53, 0.58, 0.63, 0.69, 0.74, 0.79, 0.84, 0.88, 0.93, 0.97]
Y = [0, 0, 1, 0, 0, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 1, 1, 1, 0]


@pytest.mark.parametrize(
    ("alpha", "slope", "large"),
    [
        (0.05, [-0.19791394176255062, 0.9634699920885539], [-1.3964580222099074, 0.7821150322937702]),
        (0.1, [-0.10455403576934519, 0.8701100860953485], [-1.2213295658575316, 0.6069865759413944]),
    ],
)
def test_limits_of_slope_and_intercept_are_returned_and_follow_alpha(alpha, slope, large):
    table = val_prob(Y, P, alpha=alpha)[["ci_low", "ci_high"]]
    assert table.loc["Slope"].tolist() == pytest.approx(slope, rel=1e-6)
    assert table.loc["Intercept (slope 1)"].tolist() == pytest.approx(large, rel=1e-6)


def test_joint_test_of_perfect_calibration():
    test = recalibration_test(Y, P, method="lr")
    assert test.statistic == pytest.approx(3.6432064621341382, rel=1e-6)
    assert test.df == 2
    assert test.pvalue == pytest.approx(0.16176619433651457, rel=1e-6)
    z = (test.details["slope"] - 1) / test.details["se_slope"]
    assert z == pytest.approx(-2.083260850932864, rel=1e-6)
    assert 2 * stats.norm.sf(abs(z)) == pytest.approx(0.03722745314834208, rel=1e-6)


def test_spiegelhalter():
    z, pvalue = spiegelhalter(Y, P)
    assert z == pytest.approx(1.7847609787532757, rel=1e-10)
    assert pvalue == pytest.approx(0.07430009522421396, rel=1e-10)


@pytest.mark.parametrize(("y", "p"), [([0, 1, 1, 1], [0.5] * 4), ([0, 1, 1], [0.0, 1.0, 1.0])])
def test_spiegelhalter_without_variance_is_told(y, p):
    with pytest.warns(NotEstimableWarning, match="variance") as caught:
        test = spiegelhalter(y, p)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isnan(test.statistic)
    assert np.isnan(test.pvalue)
    assert "undefined" in str(test)


def test_an_event_in_a_group_that_expects_none():
    p = [0.0, 0.0, 0.0, 0.0, 0.5, 0.6, 0.7, 0.8]
    y = [0, 0, 0, 1, 1, 0, 1, 1]
    for method in (None, "chi2", "pseudo_label"):
        test = hosmer_lemeshow(y, p, groups=2, method=method, rng=1)
        assert test.statistic == np.inf
        assert test.pvalue == 0


def test_a_negligible_deviation_in_a_million_rows_comes_with_its_size():
    rng = np.random.default_rng(1)
    p = rng.beta(1, 3, 10**6)
    y = rng.random(10**6) < 1 / (1 + np.exp(-(np.log(p) - np.log1p(-p) + 0.02)))
    start = time.process_time()
    test = hosmer_lemeshow(y, p)
    assert time.process_time() - start < 2
    assert test.pvalue < 0.01
    assert test.details["mean_absolute_gap"] < 0.005
    assert "mean absolute gap of 0.00" in str(test)
