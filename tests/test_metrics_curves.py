"""Lowess of scores of which many are the same, against local lines by hand."""

from __future__ import annotations

import numpy as np
import pytest

import calstat as cs
from calstat._input.validation import check_sample
from calstat.metrics._curves import curve_cells


def tied(share, n=500, seed=1):
    """Outcomes and scores on a grid coarser than the steps that lowess skips, of which a share is 0.2."""
    rng = np.random.default_rng(seed)
    p = np.where(np.arange(n) < share * n, 0.2, rng.choice(np.arange(3, 48) / 50, n))
    return (rng.random(n) < 0.1 + 0.7 * p).astype(int), p


def local_line(y, p, at):
    """Value at one point of the line through the nearest two thirds of the rows, with tricube weights."""
    distance = np.abs(p - at)
    width = np.sort(distance)[max(int(2 / 3 * p.size + 1e-10), 2) - 1]
    if width == 0:
        return y[distance == 0].mean()
    root = np.sqrt((1 - np.minimum(distance / width, 1) ** 3) ** 3)
    return np.linalg.lstsq(root[:, None] * np.column_stack([np.ones(p.size), p - at]), root * y)[0][0]


@pytest.mark.parametrize("share", [0.6, 0.66, 0.67, 0.7, 0.9])
def test_curve_with_ties_is_local_lines(share):
    y, p = tied(share)
    curve = cs.calibration_curve(y, p)
    wanted = [local_line(y, p, at) for at in curve["p"]]
    np.testing.assert_allclose(curve["calibrated"], wanted, atol=1e-9)
    gap = np.abs(np.interp(p, curve["p"], wanted) - p)
    assert cs.ici(y, p) == pytest.approx(gap.mean(), abs=1e-9)
    assert cs.e50(y, p) == pytest.approx(np.quantile(gap, 0.5), abs=1e-9)
    assert cs.e90(y, p) == pytest.approx(np.quantile(gap, 0.9), abs=1e-9)
    assert cs.emax(y, p) == pytest.approx(gap.max(), abs=1e-9)
    estimate = cs.val_prob(y, p)["estimate"]
    np.testing.assert_allclose(estimate[["Eavg", "E90", "Emax"]], [cs.ici(y, p), cs.e90(y, p), cs.emax(y, p)])
    # The smoother of the intervals is the same curve, on cells.
    assert curve_cells(check_sample(y, p), None).observed() == pytest.approx(cs.ici(y, p), rel=0.02)


@pytest.mark.parametrize("share", [0.6, 0.67, 0.7, 0.9])
def test_rows_of_a_tie_count_alike(share):
    y, p = tied(share)
    value = cs.ici(y, p)
    order = np.random.default_rng(2).permutation(p.size)
    assert cs.ici(y[order], p[order]) == pytest.approx(value, rel=1e-12)
    # Weights are copies.
    weights = np.random.default_rng(3).integers(0, 4, p.size)
    curve = cs.calibration_curve(y, p, freq_weights=weights)
    copied = cs.calibration_curve(np.repeat(y, weights), np.repeat(p, weights))
    np.testing.assert_allclose(curve, copied, rtol=1e-12)
    assert cs.ici(y, p, freq_weights=weights) == pytest.approx(
        cs.ici(np.repeat(y, weights), np.repeat(p, weights)), rel=1e-12
    )


def test_few_rows_with_ties():
    # Two rows are a window: the curve is the rate of each pair.
    curve = cs.calibration_curve([1, 0, 1, 1], [0, 0, 1, 1])
    assert curve["calibrated"].tolist() == [0.5, 1.0]
    assert cs.ici([1, 0, 1, 1], [0, 0, 1, 1]) == 0.25
    assert cs.ici([0, 1], [1, 0], freq_weights=[3, 3]) == 1.0
    # Scores that are the same on the scale of the curve are one tie.
    assert cs.ici([1, 0, 1, 0], [0, 0, 1e-17, 1e-17], scale="logit") == pytest.approx(0.5)


def test_small_changes_of_a_tie_change_little():
    rng = np.random.default_rng(1)
    p = np.r_[np.full(700, 0.2), rng.uniform(0.3, 0.9, 300)]
    y = (rng.random(1000) < p).astype(int)
    apart = p + np.r_[rng.uniform(-1e-3, 1e-3, 700), np.zeros(300)]
    assert cs.ici(y, p) == pytest.approx(cs.ici(y, apart), abs=0.005)
    other = np.r_[1 - y[:700], y[700:]]
    assert cs.ici(other, p) == pytest.approx(cs.ici(other, apart), abs=0.005)
    assert cs.ici(other, p) > 0.4


def test_scores_near_a_tie_are_interpolated_from_its_rate():
    rng = np.random.default_rng(4)
    p = np.r_[np.full(700, 0.2), np.linspace(0.201, 0.205, 5), rng.uniform(0.3, 0.9, 200)]
    y = (rng.random(p.size) < p).astype(int)
    y[0] = 1
    curve = cs.calibration_curve(y, p).set_index("p")["calibrated"].iloc[:6]
    # No line is fitted within 1% of the range of the last one: the curve is drawn straight.
    ends = [y[:700].mean(), local_line(y, p, 0.205)]
    np.testing.assert_allclose(curve, np.interp(curve.index, [0.2, 0.205], ends), rtol=1e-9)


def test_a_tie_does_not_hang_on_the_row_beside_it():
    rng = np.random.default_rng(5)
    p = np.r_[np.full(700, 0.2), 0.198, 0.202, rng.uniform(0.3, 0.9, 200)]
    y = (rng.random(p.size) < p).astype(int)
    for beside in (0, 1):
        y[700:702] = beside
        curve = cs.calibration_curve(y, p).set_index("p")["calibrated"]
        assert curve[0.2] == pytest.approx(y[:700].mean(), rel=1e-12)
