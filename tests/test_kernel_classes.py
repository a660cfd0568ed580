"""The kernel test of all classes: independent numbers, brute force, enumeration, and what it finds."""

from __future__ import annotations

import importlib.util
import json
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat._arrays import kernel_pairs, pseudo_labels
from calstat.exceptions import InputError

FOLDER = Path(__file__).parent / "reference"
REFERENCE = json.loads((FOLDER / "inference" / "kernel_classes.json").read_text())
INPUTS = json.loads((FOLDER / "multiclass" / "inputs.json").read_text())
ESTIMATORS = ("unbiased", "linear", "block")


def load_study():
    path = Path(__file__).parents[1] / "studies" / "kernel_classes.py"
    spec = importlib.util.spec_from_file_location("kernel_classes", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


study = load_study()


def stored(name):
    return np.array(INPUTS[name]["y"]) - 1, np.array(INPUTS[name]["p"])


def sample(seed, n=60, K=3, alpha=1.0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, alpha), n)
    return study.draw(P, rng), P


def all_pairs(y, P, width=0.2):
    """Every h_ij by the definition, one at a time; 0 on the diagonal."""
    n, K = P.shape
    h = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j:
                inner = sum(((y[i] == k) - P[i, k]) * ((y[j] == k) - P[j, k]) for k in range(K))
                h[i, j] = inner * np.exp(-0.5 * np.abs(P[i] - P[j]).sum() / width)
    return h


def mean_in_blocks(h, size):
    blocks = [h[s : s + size, s : s + size] for s in range(0, len(h) // size * size, size)]
    return np.mean([b.sum() / (size * (size - 1)) for b in blocks])


# -- values ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.parametrize("which", ["bandwidth_0.2", "bandwidth_median"])
def test_estimators_are_the_independent_computation(name, which):
    y, P = stored(name)
    wanted = REFERENCE[name][which]
    width = 0.2 if which == "bandwidth_0.2" else REFERENCE[name]["median_bandwidth"]
    unbiased = cs.kernel_test(y, P, bandwidth=width, type="canonical", n_resamples=1, rng=1)
    # sums of up to 600^2 terms of both signs: rounding relative to the size of the terms
    assert unbiased.statistic == pytest.approx(wanted["unbiased"], rel=1e-9, abs=1e-14)
    linear = cs.kernel_test(y, P, bandwidth=width, type="canonical", estimator="linear", method="asymptotic")
    assert linear.statistic == pytest.approx(wanted["linear"], rel=1e-11, abs=1e-15)
    assert linear.details["z"] == pytest.approx(wanted["z"], rel=1e-10)
    assert linear.pvalue == pytest.approx(wanted["p"], rel=1e-9)


@pytest.mark.parametrize("K", [3, 40])  # more classes than blocks, and fewer: two ways to the distances
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_are_the_triple_loop(estimator, K):
    y, P = sample(2, 47, K)
    size = {"unbiased": 47, "linear": 2, "block": 6}[estimator]
    test = cs.kernel_test(y, P, estimator=estimator, bandwidth=0.3, classes=range(K), n_resamples=1, rng=1)
    # a few thousand terms in another order
    assert test.statistic == pytest.approx(mean_in_blocks(all_pairs(y, P, 0.3), size), rel=1e-11, abs=1e-16)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_two_columns_give_twice_the_binary_value(estimator):
    rng = np.random.default_rng(3)
    p = rng.random(101)
    y = (rng.random(101) < p).astype(int)
    P = np.column_stack([1 - p, p])
    one = cs.kernel_test(y, p, estimator=estimator, n_resamples=1, rng=1)
    two = cs.kernel_test(y, P, estimator=estimator, type="canonical", n_resamples=1, rng=1)
    # residuals (-e, e) on the same distances; the binary sum over all pairs goes another way
    assert two.statistic == pytest.approx(2 * one.statistic, rel=1e-9)
    assert tuple(cs.kernel_test(y, P, estimator=estimator, rng=1)) == tuple(
        cs.kernel_test(y, p, estimator=estimator, rng=1)
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_order_of_the_classes_is_void(estimator):
    y, P = sample(4, 80, 4)
    names = np.array(["a", "b", "c", "d"])
    table = pd.DataFrame(P, columns=names)
    first = cs.kernel_test(names[y], table, estimator=estimator, n_resamples=1, rng=1)
    for order in list(permutations(names))[1::5]:
        other = cs.kernel_test(names[y], table[list(order)], estimator=estimator, n_resamples=1, rng=1)
        # sums over classes in another order
        assert other.statistic == pytest.approx(first.statistic, rel=1e-11, abs=1e-16)


def test_order_of_the_rows_is_void_for_all_pairs():
    y, P = sample(5, 90, 3)
    turned = np.random.default_rng(1).permutation(90)
    first = cs.kernel_test(y, P, n_resamples=1, rng=1)
    assert cs.kernel_test(y[turned], P[turned], n_resamples=1, rng=1).statistic == pytest.approx(
        first.statistic, rel=1e-11
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_weights_are_copies(estimator):
    y, P = sample(6, 70, 3)
    w = np.random.default_rng(2).integers(0, 4, 70)
    weighted = cs.kernel_test(y, P, freq_weights=w, estimator=estimator, n_resamples=30, rng=1)
    repeated = cs.kernel_test(np.repeat(y, w), np.repeat(P, w, axis=0), estimator=estimator, n_resamples=30, rng=1)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-11)
    assert weighted.nobs == repeated.nobs == w.sum()


def test_kernel_is_defined_for_any_bandwidth():
    y, P = sample(7, 20, 3)
    twice, certain = np.repeat(P, 2, axis=0), np.eye(3)[y]
    tiny = cs.kernel_test(np.repeat(y, 2), twice, bandwidth=1e-320, n_resamples=9, rng=1)
    residuals = np.eye(3)[y] - P
    # only a row and its copy are neighbours: 2 |e|^2 for each of 20 pairs
    assert tiny.statistic == pytest.approx(2 * (residuals**2).sum() / (40 * 39), rel=1e-12)
    sure = cs.kernel_test(y, certain, n_resamples=9, rng=1)
    assert (sure.statistic, sure.pvalue) == (0.0, 1.0)


# -- laws --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("sharp", [False, True])
def test_null_is_the_enumeration(estimator, sharp):
    P = np.array(
        [[0.5, 0.3, 0.2], [0.1, 0.6, 0.3], [0.45, 0.35, 0.2], [0.2, 0.2, 0.6], [0.1, 0.7, 0.2], [0.3, 0.1, 0.6]]
    )
    if sharp:  # few departures from the most probable class: these alone are drawn
        P = 0.15 * P + 0.85 * np.eye(3)[P.argmax(axis=1)]
    y = np.array([0, 1, 1, 2, 1, 0])
    size = 6 if estimator == "unbiased" else 2
    labels = np.array(list(product(range(3), repeat=6)))
    chance = np.prod(P[np.arange(6), labels], axis=1)
    values = np.array([mean_in_blocks(all_pairs(v, P), size) for v in labels])
    test = cs.kernel_test(y, P, estimator=estimator, n_resamples=20_000, rng=1)
    # 20,000 draws give a p-value to 0.35% and the mean to its standard error
    assert test.pvalue == pytest.approx(chance[values >= test.statistic - 1e-10].sum(), abs=4 * 0.0035)
    assert test.expected == pytest.approx(0, abs=5 * test.draws.std() / np.sqrt(20_000))
    assert test.draws.std() == pytest.approx(np.sqrt(chance @ values**2), rel=0.1)


@pytest.mark.parametrize("alpha", [0.03, 1.0])
def test_draws_have_the_variance_of_the_null(alpha):
    P = np.random.default_rng(8).dirichlet(np.full(5, alpha), 300)
    rows = kernel_pairs.laplace_blocks(P / 2, 300, 0.2)
    covariance = np.array([np.diag(q) - np.outer(q, q) for q in P])
    traces = np.einsum("iab,jba->ij", covariance, covariance)
    wanted = 2 * (rows[0] ** 2 * traces).sum() / (300 * 299) ** 2
    draws = np.concatenate(list(kernel_pairs.class_draws(P, 4000, np.random.default_rng(1))(slice(0, 300), rows)))
    # the variance of 4000 draws of a skewed law: four standard errors are some 15%
    assert draws.var() == pytest.approx(wanted, rel=0.15)
    assert draws.mean() == pytest.approx(0, abs=4 * np.sqrt(wanted / 4000))


def test_departures_alone_give_the_sum_over_all_rows():
    P = np.random.default_rng(9).dirichlet(np.full(6, 0.1), 120)
    kernel = kernel_pairs.laplace_blocks(P / 2, 120, 0.2)
    quick = list(kernel_pairs._departing_sums(P, kernel[0], 50, np.random.default_rng(1)))
    labels = np.tile(P.argmax(axis=1), (50, 1))
    for part in pseudo_labels.departures(P, 50, np.random.default_rng(1), kernel_pairs.WORK_BYTES):
        labels[part.start + part.draw, part.row] = part.label
    whole = kernel_pairs.block_means(kernel, kernel_pairs.class_residuals(P, labels))[:, 0] * 120 * 119
    # sums of some 10^4 terms of order 1
    np.testing.assert_allclose(quick, whole, rtol=0, atol=1e-11)


def test_wild_bootstrap_has_its_conditional_variance():
    y, P = stored("m3_glass")
    test = cs.kernel_test(y, P, method="wild", n_resamples=4000, rng=1)
    assert test.distribution == "wild bootstrap"
    n = len(y)
    rows = kernel_pairs.laplace_blocks(P / 2, n, 0.2)
    residuals = np.eye(P.shape[1])[y] - P
    draws = np.concatenate(list(kernel_pairs.sign_draws(residuals, 4000, np.random.default_rng(1))(slice(0, n), rows)))
    wanted = REFERENCE["m3_glass"]["bandwidth_0.2"]["wild_variance"]
    h = rows[0] * (residuals @ residuals.T)
    assert 2 * (h**2).sum() / (n * (n - 1.0)) ** 2 == pytest.approx(wanted, rel=1e-10)
    # as for the pseudo-labels
    assert draws.var() == pytest.approx(wanted, rel=0.15)


def rejections(kind, n, K, runs, **options):
    return study.rejections(kind, n, K, runs, [options])[0]


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("K", [3, 10])
def test_size_is_five_percent(estimator, K):
    # 300 samples: standard error 1.26%
    assert rejections("calibrated", 40, K, 300, estimator=estimator) == pytest.approx(0.05, abs=4 * 0.0126)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "K", "estimator"), [(30, 3, "unbiased"), (100, 3, "unbiased"), (100, 10, "unbiased"),
                                                    (100, 3, "linear"), (100, 3, "block")])  # fmt: skip
def test_size_is_five_percent_in_many_samples(n, K, estimator):
    # 2000 samples: standard error 0.49%
    assert rejections("calibrated", n, K, 2000, estimator=estimator) == pytest.approx(0.05, abs=4 * 0.0049)


@pytest.mark.parametrize("options", [{}, {"method": "wild"}, {"estimator": "block"}, {"type": "confidence"}])
@pytest.mark.parametrize("alpha", [0.05, 1.0])
def test_stopped_draws_are_the_first_of_all_draws(options, alpha):
    y, P = sample(14, 80, 3, alpha)
    whole = cs.kernel_test(y, P, n_resamples=2000, rng=1, **options)
    early = cs.kernel_test(y, P, n_resamples=2000, stop_after=10, rng=1, **options)
    assert early.statistic == whole.statistic
    made = early.details["n_resamples"]
    assert early.pvalue == 10 / made
    assert f"{made} were made" in early.note
    # ten exceedances know log p to 0.32 (one standard error)
    assert np.log(early.pvalue) == pytest.approx(np.log(whole.pvalue), abs=4 * 0.32)
    if not options:
        np.testing.assert_allclose(early.draws, whole.draws[:made], rtol=1e-12)


def test_stopping_saves_draws():
    made = []

    def parts():
        for k in range(100):
            made.append(k)
            yield np.array([0.0, float(k)])

    # 3 and 4 are as large as 3; the second of them ends the draws
    np.testing.assert_array_equal(pseudo_labels.collected(parts(), 3.0, 2), [0, 0, 0, 1, 0, 2, 0, 3, 0, 4])
    assert made == [0, 1, 2, 3, 4]
    assert pseudo_labels.collected(parts(), 1e9, 2).size == 200


def test_size_of_the_normal_law():
    # the mean of some 30 skewed terms over its standard error: a little below 5%
    assert 0.01 <= rejections("calibrated", 1000, 3, 400, estimator="block", method="asymptotic") <= 0.08


def test_all_classes_see_what_the_top_label_cannot():
    # 60 samples each; the bounds are four standard errors and more from the shares of the study
    readings = [{"type": "canonical"}, {"type": "confidence"}]
    for kind, all_classes, top_label in (
        ("shifted", (0.6, 1.0), (0.0, 0.2)),
        ("overconfident", (0.3, 1.0), (0.8, 1.0)),
    ):
        shares = study.rejections(kind, 300, 3, 60, readings)
        for share, (low, high) in zip(shares, (all_classes, top_label), strict=True):
            assert low <= share <= high


# -- arguments ---------------------------------------------------------------------------------------------------


def test_reading_of_a_matrix_is_named():
    y, P = sample(10, 50, 3)
    whole, top = (cs.kernel_test(y, P, type=t, n_resamples=9, rng=1) for t in (None, "confidence"))
    assert whole.name == "SKCE, all classes (unbiased)"
    assert "every class" in whole.null
    assert top.name == "SKCE, top label (unbiased)"
    alone = cs.kernel_test(y == P.argmax(axis=1), P.max(axis=1), n_resamples=9, rng=1)
    assert tuple(top) == pytest.approx(tuple(alone), rel=1e-12)


def test_too_many_rows_for_the_kernel_are_refused_with_the_way_out():
    y, P = sample(12, 30, 3)
    with pytest.raises(InputError, match=r"30 rows .* `max_bytes` admits.*estimator='block'"):
        cs.kernel_test(y, P, max_bytes=7000)
    assert cs.kernel_test(y, P, max_bytes=7200, n_resamples=9, rng=1).pvalue > 0
    for options in ({"estimator": "block"}, {"type": "confidence"}):
        assert cs.kernel_test(y, P, max_bytes=7000, n_resamples=9, rng=1, **options).pvalue > 0


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"type": "classwise"}, "type"),
        ({"p": np.full(4, 0.5), "y": [0, 1, 0, 1], "type": "canonical"}, "matrices"),
        ({"method": "asymptotic"}, "normal law"),
        ({"max_bytes": 0}, "max_bytes"),
    ],
)
def test_errors_name_the_argument(options, words):
    y, P = sample(13, 20, 3)
    with pytest.raises(InputError, match=words):
        cs.kernel_test(**{"y": y, "p": P, **options})
