"""Edges, assignment and sums of bins."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calstat._arrays.binning import (
    assign_bins,
    bin_edges,
    bin_table,
    binned_error,
    classwise_tables,
    equal_freq_edges,
    equal_width_edges,
    top_label,
)
from calstat.exceptions import InputError

BOUNDARIES = json.loads((Path(__file__).parent / "reference/metrics/bin_boundaries.json").read_text())
probabilities = arrays(float, st.integers(1, 60), elements=st.floats(0, 1))


def searched(p, edges):
    """Independent assignment: binary search among the edges, p = 1 in the last bin."""
    return np.minimum(np.searchsorted(edges, p, side="right") - 1, edges.size - 2)


@pytest.mark.parametrize("bins", [*range(1, 130), 997, 1000, 4096])
def test_edge_values_and_their_neighbours_fall_where_the_edges_say(bins):
    edges = equal_width_edges(bins)
    above, below = np.nextafter(edges[:-1], 2), np.nextafter(edges[1:], -1)
    points = np.concatenate([edges, above, below])
    assert np.array_equal(assign_bins(points, edges), searched(points, edges))
    assert np.array_equal(assign_bins(edges, edges), [*range(bins), bins - 1])


@pytest.mark.parametrize("bins", [3, 10, 15, 20, 100])
def test_edges_are_the_doubles_nearest_to_the_fractions(bins):
    assert [float(Fraction(j, bins)) for j in range(bins + 1)] == equal_width_edges(bins).tolist()


@pytest.mark.parametrize("case", BOUNDARIES.values(), ids=BOUNDARIES.keys())
def test_j_over_b_is_in_bin_j_as_documented_not_as_r_computes_it(case):
    ours = assign_bins(np.array(case["p_j_over_B"]), equal_width_edges(case["bins"])) + 1
    assert ours.tolist() == case["documented_index_1based"]
    assert np.sum(ours != case["bin_index_1based"]) == case["n_disagree"]


def test_r_moves_rows_in_some_bin_counts_so_the_comparison_can_fail():
    assert {k: c["n_disagree"] for k, c in BOUNDARIES.items() if c["n_disagree"]} == {
        "5": 1,
        "10": 3,
        "20": 7,
        "100": 10,
    }


@given(probabilities, st.integers(1, 40))
def test_assignment_equals_binary_search(p, bins):
    edges = equal_width_edges(bins)
    assert np.array_equal(assign_bins(p, edges), searched(p, edges))


def test_float32_gives_the_bins_of_its_float64_values():
    p = np.float32([0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    # float32 0.3, 0.6 and 0.1 lie above the double, 0.7 and 0.9 below it.
    assert assign_bins(p.astype(float), equal_width_edges(10)).tolist() == [1, 2, 3, 6, 6, 8]


def test_blocks_do_not_show():
    rng, n = np.random.default_rng(0), 40_000
    p = rng.random(n)
    y = (rng.random(n) < p).astype(float)
    w = rng.integers(0, 4, n).astype(float)
    edges = equal_width_edges(7)
    index = searched(p, edges)
    table = bin_table(y, p, edges, w)
    assert np.array_equal(assign_bins(p, edges), index)
    np.testing.assert_allclose(table.count, np.bincount(index, w), rtol=0)
    # 1e-12: the same 40,000 terms added in another order.
    np.testing.assert_allclose(table.sum_p, np.bincount(index, w * p), rtol=1e-12)
    np.testing.assert_allclose(table.sum_y, np.bincount(index, w * y), rtol=0)


def test_sums_do_not_drift_at_a_million_rows():
    # 0.1 a million times: a float32 accumulator would be off by more than 1e-3.
    table = bin_table(np.zeros(10**6), np.full(10**6, 0.1), equal_width_edges(10))
    assert table.count[1] == 10**6
    assert table.sum_p[1] == pytest.approx(1e5, rel=1e-12)


@given(probabilities, st.integers(1, 12))
def test_equal_freq_is_type_8_with_ends_set_and_duplicates_dropped(p, bins):
    expected = np.quantile(p, np.arange(1, bins) / bins, method="median_unbiased")
    expected = np.unique(np.concatenate([[0], expected, [1]]))
    edges = equal_freq_edges(p, bins)
    assert edges[0] == 0
    assert edges[-1] == 1
    # NumPy interpolates with one multiplication less; neighbours that differ by rounding may merge or not.
    gaps = np.abs(edges[:, None] - expected)
    assert gaps.min(axis=1).max() < 1e-14
    assert gaps.min(axis=0).max() < 1e-14


@given(st.data())
def test_equal_freq_with_weights_is_equal_freq_of_the_repeated_rows(data):
    n = data.draw(st.integers(1, 30))
    p = data.draw(arrays(float, n, elements=st.sampled_from([0.0, 0.1, 0.25, 0.3, 0.7, 0.9, 1.0])))
    w = data.draw(arrays(np.int64, n, elements=st.integers(0, 4)))
    if w.sum() == 0:
        w[0] = 1
    for bins in (1, 2, 3, 4, 7):
        assert np.array_equal(equal_freq_edges(p, bins, w.astype(float)), equal_freq_edges(np.repeat(p, w), bins))


def test_equal_freq_edges_do_not_change_when_non_integer_weights_are_scaled():
    rng = np.random.default_rng(1)
    p, w = rng.random(50), rng.random(50)
    np.testing.assert_allclose(equal_freq_edges(p, 5, w), equal_freq_edges(p, 5, 10 * w), rtol=1e-12)


def test_tied_scores_share_a_bin():
    p = np.array([0.2] * 6 + [0.8] * 2)
    for bins in range(2, 9):
        index = assign_bins(p, equal_freq_edges(p, bins))
        assert len(set(index[:6])) == 1
        assert len(set(index[6:])) == 1


def test_tables_of_parts_add_up():
    rng = np.random.default_rng(2)
    p = rng.random(500)
    y = rng.integers(0, 2, 500)
    edges = equal_freq_edges(p, 6)
    whole = bin_table(y, p, edges)
    parts = bin_table(y[:200], p[:200], edges) + bin_table(y[200:], p[200:], edges)
    np.testing.assert_allclose(parts.sum_p, whole.sum_p, rtol=1e-13)
    assert np.array_equal(parts.count, whole.count)
    assert np.array_equal(parts.sum_y, whole.sum_y)
    with pytest.raises(InputError, match="same edges"):
        whole + bin_table(y, p, equal_width_edges(6))


def test_empty_bins_are_nan_and_do_not_count():
    table = bin_table(np.array([1, 1, 0]), np.array([0.9, 0.8, 0.2]), equal_width_edges(3))
    np.testing.assert_array_equal(table.mean_y, [0, np.nan, 1])
    np.testing.assert_allclose(table.gap, [-0.2, np.nan, 0.15], rtol=1e-12)
    assert table.error("mean") == pytest.approx((0.2 + 0.15) / 2)
    assert table.error("max") == pytest.approx(0.2)


def test_errors_of_many_tables_at_once():
    count = np.array([[2.0, 2.0], [4.0, 0.0]])
    difference = np.array([[1.0, -0.5], [2.0, 0.0]])
    np.testing.assert_allclose(binned_error(count, difference, 1), [1.5 / 4, 0.5])
    np.testing.assert_allclose(binned_error(count, difference, 2), [np.sqrt((0.25 + 0.0625) / 2), 0.5])
    np.testing.assert_allclose(binned_error(count, difference, "max"), [0.5, 0.5])
    np.testing.assert_allclose(binned_error(count, difference, "mean"), [0.375, 0.5])


@settings(deadline=None)
@given(st.data())
def test_classwise_in_one_pass_equals_column_by_column(data):
    n, K = data.draw(st.integers(1, 40)), data.draw(st.integers(2, 6))
    P = data.draw(arrays(float, (n, K), elements=st.one_of(st.floats(0, 1), st.sampled_from([0.3, 0.6, 0.7, 1.0]))))
    codes = data.draw(arrays(np.int64, n, elements=st.integers(0, K - 1)))
    w = data.draw(st.none() | arrays(float, n, elements=st.floats(0.5, 3)))
    edges = equal_width_edges(data.draw(st.integers(1, 20)))
    for k, table in enumerate(classwise_tables(codes, P, edges, w)):
        single = bin_table(codes == k, P[:, k], edges, w)
        np.testing.assert_allclose(table.count, single.count, rtol=1e-12)
        np.testing.assert_allclose(table.sum_p, single.sum_p, rtol=1e-12)
        np.testing.assert_allclose(table.sum_y, single.sum_y, rtol=1e-12)


@given(st.data())
def test_top_label_is_the_first_maximum(data):
    n, K = data.draw(st.integers(1, 30)), data.draw(st.integers(2, 8))
    P = data.draw(arrays(float, (n, K), elements=st.sampled_from([0.0, 0.1, 0.2, 0.4])))
    codes = np.zeros(n, dtype=np.int64)
    top = top_label(codes, P)
    assert np.array_equal(top.label, P.argmax(axis=1))
    assert np.array_equal(top.confidence, P.max(axis=1))
    assert np.array_equal(top.hit, P.argmax(axis=1) == 0)


def test_memory_layout_does_not_matter():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), 3000)
    codes = rng.integers(0, 4, 3000)
    edges = equal_width_edges(10)
    expected = [t.sum_p for t in classwise_tables(codes, P, edges)]
    for other in (np.asfortranarray(P), np.repeat(P, 2, axis=1)[:, ::2]):
        assert np.array_equal([t.sum_p for t in classwise_tables(codes, other, edges)], expected)
        assert np.array_equal(top_label(codes, other).confidence, P.max(axis=1))


@pytest.mark.parametrize(
    "bins", [0, -1, 2.5, None, True, "10", np.nan, np.inf, 10**10, [5, 10], [0, 0.5, 0.5, 1], ["a", "b"]]
)
def test_bins_that_are_none(bins):
    with pytest.raises(InputError, match="`bins`"):
        bin_edges(np.array([0.2]), bins)


def test_unknown_strategy():
    with pytest.raises(InputError, match="`strategy`"):
        bin_edges(np.array([0.2]), 10, "unifrom")
