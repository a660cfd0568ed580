"""Isotonic regression with pooled ties."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calstat._arrays.pav import interpolate, pav

REFERENCE = Path(__file__).parent / "reference/metrics"
INPUTS = json.loads((REFERENCE / "inputs.json").read_text())
R = json.loads((REFERENCE / "r_statistics.json").read_text())


@st.composite
def samples(draw):
    n = draw(st.integers(1, 40))
    x = draw(arrays(float, n, elements=st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.2, 0.5, 1.0]))))
    y = draw(arrays(np.int64, n, elements=st.integers(0, 1)))
    w = draw(arrays(np.int64, n, elements=st.integers(1, 3)))
    return y, x, w


def minimax(y, x, w):
    """Fit at the distinct scores by the min-max formula, an independent definition."""
    values = np.unique(x)
    total = np.array([np.sum(w[x == v] * y[x == v]) for v in values])
    count = np.array([np.sum(w[x == v]) for v in values])
    fit = []
    for i in range(values.size):
        right = [
            min(total[s : t + 1].sum() / count[s : t + 1].sum() for t in range(i, values.size)) for s in range(i + 1)
        ]
        fit.append(max(right))
    return values, np.array(fit)


@given(samples())
def test_fit_is_the_min_max_formula(sample):
    y, x, w = sample
    values, fit = minimax(y, x, w)
    # 1e-12: means of the same numbers, added in another order.
    np.testing.assert_allclose(pav(y, x, w.astype(float)).predict(values), fit, rtol=1e-12, atol=1e-15)


@given(samples())
def test_weights_are_repetitions_and_row_order_is_nothing(sample):
    y, x, w = sample
    weighted = pav(y, x, w.astype(float))
    repeated = pav(np.repeat(y, w), np.repeat(x, w))
    shuffled = pav(y[::-1], x[::-1], w[::-1].astype(float))
    for other in (repeated, shuffled):
        assert np.array_equal(weighted.lower, other.lower)
        assert np.array_equal(weighted.count, other.count)
        np.testing.assert_allclose(weighted.value, other.value, rtol=1e-12)


@given(samples())
def test_increasing_idempotent_and_unbiased(sample):
    y, x, _ = sample
    fit = pav(y, x)
    fitted = fit.predict(x)
    assert np.all(np.diff(fit.value) > 0)
    assert fit.count @ fit.value == pytest.approx(y.sum(), abs=1e-12)
    np.testing.assert_allclose(pav(fitted, x).predict(x), fitted, rtol=1e-12)


@given(samples())
def test_packed_sort_equals_argsort(sample):
    y, x, _ = sample
    packed, plain = pav(y, x), pav(y, x, np.ones(x.size))
    assert np.array_equal(packed.lower, plain.lower)
    np.testing.assert_allclose(packed.value, plain.value, rtol=1e-12)


def test_scores_outside_the_unit_interval_and_fractional_outcomes():
    fit = pav([0.0, 0.5, 0.25], np.array([-3.0, 2.5, 7.0]))
    assert fit.predict([-9, -3, 2.5, 7, 9]) == pytest.approx([0, 0, 0.375, 0.375, 0.375])


def test_minus_zero_is_zero():
    fit = pav([1, 0, 1, 1], np.array([-0.0, 0.0, 0.5, 1.0]))
    assert fit.lower.tolist() == [0.0, 0.5]
    assert fit.value.tolist() == [0.5, 1.0]


def test_rows_of_weight_zero_are_absent():
    fit = pav([1, 0, 1], np.array([0.1, 0.4, 0.6]), np.array([0.0, 1.0, 2.0]))
    assert fit.lower.tolist() == [0.4, 0.6]


def test_prediction_is_linear_between_blocks_and_constant_beyond():
    fit = pav([0, 0, 1, 1], np.array([0.2, 0.4, 0.6, 0.8]))
    assert fit.predict([0.0, 0.3, 0.5, 0.7, 1.0]) == pytest.approx([0, 0, 0.5, 1, 1])
    assert np.isnan(fit.predict([np.nan])).all()
    assert fit.thresholds.tolist() == [0.2, 0.4, 0.6, 0.8]


def test_denormal_gaps_stay_finite():
    tiny = 5e-324
    thresholds = np.array([0.0, tiny, 1.0])
    values = np.array([0.0, 1.0, 1.0])
    assert interpolate(np.array([0.0, tiny, 0.5]), thresholds, values).tolist() == [0.0, 1.0, 1.0]
    # The reason for not using np.interp: its slope 1 / 5e-324 is infinite.
    with np.errstate(all="ignore"):
        slope = np.float64(1.0) / tiny
    assert np.isinf(slope)


def test_one_score():
    fit = pav([0, 1, 1], np.array([0.3, 0.3, 0.3]))
    assert fit.predict([0.0, 0.3, np.nan, 1.0])[[0, 1, 3]] == pytest.approx(2 / 3)
    assert np.isnan(fit.predict(np.nan))


@pytest.mark.parametrize("name", ["pima_train", "syn_bin", "syn_ties", "syn_small"])
def test_blocks_are_those_of_r(name):
    data, blocks = INPUTS[name], R[name]["reliabilitydiag"]["pav_bins"]
    fit = pav(data["y"], np.array(data["p"]))
    # R keeps neighbouring blocks of equal value apart; ours are merged, so compare the map at R's ends.
    for end in ("x_min", "x_max"):
        np.testing.assert_allclose(fit.predict(blocks[end]), blocks["CEP"], rtol=1e-12, atol=1e-15)
    assert np.array_equal(np.unique(np.round(blocks["CEP"], 12)), np.unique(np.round(fit.value, 12)))
    assert fit.count.sum() == sum(blocks["n"])


def test_far_beyond_corners_that_are_a_denormal_number_apart_the_map_is_constant():
    fit = pav(np.array([0.0, 1.0]), np.array([0.0, 2.2e-311]))
    np.testing.assert_array_equal(fit.predict([-1.0, 0.0, 2.2e-311, 0.5, np.nan]), [0, 0, 1, 1, np.nan])
