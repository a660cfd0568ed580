"""Score tests of matrices against softmax maps: explicit formulae, the fitted models' own tests, enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import calstat as cs
from calstat._input.validation import check_sample
from calstat.diagnostics import goodness
from calstat.exceptions import InputError


def matrix(seed, n=300, K=3, concentration=2.0):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.full(K, concentration), n)
    Q = P**0.7
    Q /= Q.sum(axis=1, keepdims=True)
    return (rng.random((n, 1)) > np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1), P


def jacobian(against, P):
    """Derivatives (n, K, parameters) of the logits by the parameters, with redundant parameters left in."""
    n, K = P.shape
    x = np.log(P)
    if against == "temperature":
        return x[:, :, None]
    eye = np.eye(K)
    if against == "vector":
        return np.concatenate([x[:, :, None] * eye, np.broadcast_to(eye, (n, K, K))], axis=2)
    features = np.concatenate([x, np.ones((n, 1))], axis=1)
    return np.einsum("kl,nq->nklq", eye, features).reshape(n, K, K * (K + 1))


def explicit(against, labels, P, w=None):
    D = jacobian(against, P)
    w = np.ones(len(P)) if w is None else w
    e = np.eye(P.shape[1])[labels] - P
    u = np.einsum("n,nkd,nk->d", w, D, e)
    centred = D - np.einsum("nk,nkd->nd", P, D)[:, None]
    information = np.einsum("n,nk,nkd,nke->de", w, P, centred, centred)
    return u @ np.linalg.pinv(information, rcond=1e-10, hermitian=True) @ u, np.linalg.matrix_rank(
        information, tol=1e-8
    )


@pytest.mark.parametrize(("against", "df"), [("temperature", 1), ("vector", 7), ("dirichlet", 15)])
def test_score_statistic_is_the_formula(against, df):
    y, P = matrix(1, 400, 4)
    statistic, rank = explicit(against, y, P)
    test = cs.recalibration_test(y, P, against=against, method="score")
    # the pseudo-inverse of a redundant information loses a few digits
    assert test.statistic == pytest.approx(statistic, rel=1e-7)
    assert test.df == df == rank
    assert test.pvalue == pytest.approx(stats.chi2.sf(statistic, df), rel=1e-6)


@pytest.mark.parametrize(
    ("against", "model"),
    [("temperature", cs.TemperatureScaling), ("vector", cs.VectorScaling), ("dirichlet", cs.DirichletCalibration)],
)
def test_score_test_needs_no_fit_and_equals_that_of_the_fit(against, model):
    y, P = matrix(2, 500)
    options = {"scores": "probability"} if against != "dirichlet" else {}
    fitted = model(y, P, **options).fit().test_identity("score")
    test = cs.recalibration_test(y, P, against=against, method="score", eps=1e-12 if against == "dirichlet" else 1e-15)
    assert tuple(test) == pytest.approx(tuple(fitted), rel=1e-8)


@pytest.mark.parametrize("against", ["temperature", "vector", "dirichlet"])
def test_drawn_law_is_the_enumeration(against):
    y, P = matrix(3, 6, 3)
    values, chance = [], []
    for labels in itertools.product(range(3), repeat=6):
        codes = np.array(labels)
        values.append(cs.recalibration_test(codes, P, against=against, method="score", classes=range(3)).statistic)
        chance.append(np.prod(P[np.arange(6), codes]))
    test = cs.recalibration_test(
        y, P, against=against, method="pseudo_label", classes=range(3), n_resamples=2000, rng=1
    )
    wanted = np.array(chance)[np.array(values) >= test.statistic - 1e-8].sum()
    # 2000 draws give a p-value to 1.1%
    assert test.pvalue == pytest.approx(wanted, abs=4 * 0.011)


def test_weights_are_copies():
    y, P = matrix(4, 120)
    w = np.random.default_rng(1).integers(0, 4, 120)
    for against in ("temperature", "vector", "dirichlet"):
        weighted = cs.recalibration_test(y, P, against=against, method="score", freq_weights=w)
        repeated = cs.recalibration_test(np.repeat(y, w), np.repeat(P, w, axis=0), against=against, method="score")
        assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-8)
        assert weighted.nobs == w.sum()


def test_order_of_classes_is_void_and_names_are_read():
    y, P = matrix(5)
    names = np.array(["a", "b", "c"])
    table = pd.DataFrame(P, columns=names)
    for against in ("temperature", "vector", "dirichlet"):
        one = cs.recalibration_test(names[y], table, against=against, method="score")
        other = cs.recalibration_test(names[y], table[["c", "a", "b"]], against=against, method="score")
        assert tuple(one) == pytest.approx(tuple(other), rel=1e-8)


def test_sharp_probabilities_are_drawn_by_default():
    y, P = matrix(6, 200, 5, 0.05)
    test = cs.recalibration_test(y, P, against="dirichlet", rng=1)
    assert test.method == "pseudo_label"
    assert test.details["excess"] > 0.1
    assert "chi-square" in test.note
    smooth = cs.recalibration_test(*matrix(7, 2000, 3, 5.0), against="temperature")
    assert smooth.method == "score"


def test_many_classes_are_drawn():
    y, P = matrix(8, 150, 22)
    test = cs.recalibration_test(y, P, against="dirichlet", classes=range(22), n_resamples=50, rng=1)
    assert test.method == "pseudo_label"
    assert 0 < test.pvalue <= 1
    with pytest.raises(InputError, match="20 classes"):
        cs.recalibration_test(y, P, against="dirichlet", classes=range(22), method="score")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"against": "logistic"}, "one event"),
        ({"against": "vector", "method": "lr"}, "fit"),
        ({"against": "vector", "groups": np.arange(300)}, "cluster"),
    ],
)
def test_errors_name_the_argument(options, words):
    y, P = matrix(9)
    with pytest.raises(InputError, match=words):
        cs.recalibration_test(y, P, **options)
    with pytest.raises(InputError, match="one column per class"):
        cs.recalibration_test([0, 1], [0.2, 0.7], against="dirichlet")


# -- Hosmer-Lemeshow of a matrix -----------------------------------------------------------------------------------


def test_hosmer_lemeshow_of_classes_is_the_sum_over_cells():
    y, P = matrix(10, 1000, 3, 5.0)
    test = cs.hosmer_lemeshow(y, P, groups=6, method="chi2")
    value = 0.0
    for label in range(3):
        own = P.argmax(axis=1) == label
        upper = own & (P.max(axis=1) > np.median(P[own].max(axis=1)))
        for group in (own & ~upper, upper):
            for k in range(3):
                o, e = np.sum(y[group] == k), P[group, k].sum()
                value += (o - e) ** 2 / e
    assert test.statistic == pytest.approx(value, rel=1e-10)
    assert test.df == 12
    assert test.pvalue == pytest.approx(stats.chi2.sf(value, 12), rel=1e-9)
    assert cs.hosmer_lemeshow(y, P, groups=6, df="internal").df == 8
    table = test.details["groups"]
    assert table[[f"observed[{k}]" for k in range(3)]].to_numpy().sum() == 1000
    assert table["top_label"].tolist() == ["0", "0", "1", "1", "2", "2"]


def test_hosmer_lemeshow_of_classes_allows_for_rows_that_differ_within_a_group():
    rng = np.random.default_rng(15)
    P = rng.dirichlet(np.full(3, 0.4), 3000).clip(1e-9)
    cumulated = np.cumsum(P / P.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    tests = [
        cs.hosmer_lemeshow((rng.random((3000, 1)) > cumulated).sum(axis=1), P, classes=range(3)) for _ in range(400)
    ]
    assert {t.method for t in tests} == {"scaled_chi2"}
    # standard error 1.1%; the classical law rejects about 1%
    assert 0.025 < np.mean([t.pvalue <= 0.05 for t in tests]) < 0.085
    assert np.mean([t.details["pvalue_chi2"] <= 0.05 for t in tests]) < 0.03
    drawn = cs.hosmer_lemeshow(P.argmax(axis=1), P, method="pseudo_label", n_resamples=4000, rng=1)
    grouped = goodness._grouped(check_sample(P.argmax(axis=1), P), 10, "quantile7")
    draws = grouped.draws(4000, rng)
    mean, variance = grouped.moments()
    # 4000 draws give a mean to 1.6% of a standard deviation, a variance to 3%
    assert draws.mean() == pytest.approx(mean, abs=4 * 0.016 * np.sqrt(variance))
    assert draws.var() == pytest.approx(variance, rel=0.12)
    assert drawn.method == "pseudo_label"
    law = stats.chi2(2 * mean**2 / variance, scale=variance / (2 * mean))
    assert np.mean(draws > law.isf(0.05)) == pytest.approx(0.05, abs=4 * 0.0035)


def test_the_scaled_law_of_one_event_with_equal_p_is_the_classical_one():
    p = np.repeat([0.2, 0.5, 0.8], 100)
    y = np.random.default_rng(16).integers(0, 2, 300)
    scaled, classical = (cs.hosmer_lemeshow(y, p, groups=3, method=m) for m in ("scaled_chi2", "chi2"))
    assert tuple(scaled) == pytest.approx(tuple(classical), rel=1e-10)
    assert scaled.df == pytest.approx(classical.df)


def test_the_scaled_law_of_certain_predictions_knows_0_only():
    P = np.eye(3)[[0, 1, 2, 0]]
    assert cs.hosmer_lemeshow([0, 1, 2, 0], P, method="scaled_chi2").pvalue == 1
    assert cs.hosmer_lemeshow([0, 1, 2, 1], P, method="scaled_chi2").pvalue == 0


def test_hosmer_lemeshow_of_classes_sees_too_extreme_predictions():
    # Classes alike: within a group of all top labels the gaps of each class would cancel.
    rng = np.random.default_rng(14)
    P = rng.dirichlet(np.full(3, 0.4), 3000).clip(1e-9)
    true = P**0.7
    y = (rng.random((3000, 1)) > np.cumsum(true / true.sum(axis=1, keepdims=True), axis=1)[:, :-1]).sum(axis=1)
    assert cs.hosmer_lemeshow(y, P, rng=1).pvalue < 0.001


def test_hosmer_lemeshow_puts_rows_with_two_top_labels_in_a_group_of_their_own():
    P = np.array([[0.5, 0.3, 0.2], [0.4, 0.4, 0.2], [0.2, 0.4, 0.4], [0.1, 0.3, 0.6]])
    table = cs.hosmer_lemeshow([0, 1, 2, 2], P, rng=1).details["groups"]
    assert table["top_label"].tolist() == ["0", "2", "several"]
    assert table["nobs"].tolist() == [1, 1, 2]


def test_hosmer_lemeshow_of_classes_does_not_depend_on_their_order():
    y, P = matrix(11, 400, 4)
    names = np.array(["a", "b", "c", "d"])
    table = pd.DataFrame(P, columns=names)
    one = cs.hosmer_lemeshow(names[y], table, method="chi2")
    other = cs.hosmer_lemeshow(names[y], table[["d", "b", "a", "c"]], method="chi2")
    assert tuple(one) == pytest.approx(tuple(other), rel=1e-9)


def test_hosmer_lemeshow_of_classes_draws_where_cells_are_small():
    y, P = matrix(12, 6, 3)
    values, chance = [], []
    for labels in itertools.product(range(3), repeat=6):
        codes = np.array(labels)
        values.append(cs.hosmer_lemeshow(codes, P, groups=2, method="chi2", classes=range(3)).statistic)
        chance.append(np.prod(P[np.arange(6), codes]))
    test = cs.hosmer_lemeshow(y, P, groups=2, classes=range(3), n_resamples=4000, rng=1)
    assert test.method == "pseudo_label"
    wanted = np.array(chance)[np.array(values) >= test.statistic - 1e-9].sum()
    # 4000 draws give a p-value to 0.8%
    assert test.pvalue == pytest.approx(wanted, abs=4 * 0.008)


def test_hosmer_lemeshow_of_two_columns_is_binary_and_weights_are_copies():
    y, P = matrix(13, 200, 3)
    pair = np.stack([1 - P[:, 0], P[:, 0]], axis=1)
    event = (y == 0).astype(int)
    assert tuple(cs.hosmer_lemeshow(event, pair, method="chi2")) == tuple(
        cs.hosmer_lemeshow(event, P[:, 0], method="chi2")
    )
    w = np.random.default_rng(1).integers(0, 3, 200)
    weighted = cs.hosmer_lemeshow(y, P, freq_weights=w, n_resamples=50, rng=1)
    repeated = cs.hosmer_lemeshow(np.repeat(y, w), np.repeat(P, w, axis=0), n_resamples=50, rng=1)
    assert tuple(weighted) == pytest.approx(tuple(repeated), rel=1e-10)
