"""Ranks of methods over data sets: Friedman's test, critical differences, signed ranks."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import calstat as cs
from calstat.exceptions import InputError, MissingDataError, NotEstimableWarning

REFERENCE = Path(__file__).parent / "reference" / "ranks"
DEMSAR = json.loads((REFERENCE / "demsar.json").read_text())
NINE = json.loads((REFERENCE / "nine_methods.json").read_text())


def drawn(tasks: int, methods: int, *, levels: int | None = None, seed: int = 0) -> np.ndarray:
    """Random scores, with ties if there are `levels`."""
    rng = np.random.default_rng(seed)
    return rng.random((tasks, methods)) if levels is None else rng.integers(levels, size=(tasks, methods)) * 1.0


# Published numbers


def test_the_worked_example_of_demsar() -> None:
    printed = DEMSAR["printed"]
    table = cs.rank_table(DEMSAR["ranks"])
    np.testing.assert_allclose(table.mean_ranks, printed["mean_ranks"], atol=5e-4)
    # The paper's chi-square has no correction for ties.
    details = table.friedman_test().details
    plain = details["chi2"] * details["ties_factor"]
    assert plain == pytest.approx(printed["chi2_without_ties"], abs=5e-3)
    assert 13 * plain / (14 * 3 - plain) == pytest.approx(printed["f_without_ties"], abs=5e-3)
    for alpha in ("0.05", "0.1"):
        assert table.critical_difference(float(alpha)) == pytest.approx(printed["nemenyi"][alpha], abs=5e-3)
        dunn = table.critical_difference(float(alpha), "bonferroni-dunn")
        assert dunn == pytest.approx(printed["bonferroni_dunn"][alpha], abs=5e-3)


def test_the_signed_ranks_of_demsar() -> None:
    pair = cs.pairwise_wilcoxon(pd.DataFrame(DEMSAR["auc"])[["C4.5+m", "C4.5"]]).loc[("C4.5+m", "C4.5")]
    assert (pair["r_plus"], pair["r_minus"]) == (DEMSAR["printed"]["r_plus"], DEMSAR["printed"]["r_minus"])
    assert pair["statistic"] == 12.0
    assert pair["n_zero"] == 2
    assert pair["pvalue"] < 0.05  # the paper rejects


@pytest.mark.parametrize(("measure", "lower"), [("cw_ece", True), ("correct", False)])
def test_nine_calibration_methods_on_231_sets(measure: str, lower: bool) -> None:
    scores = pd.DataFrame(NINE[measure], index=NINE["sets"], columns=NINE["methods"])
    expected = NINE["expected"][measure]
    table = cs.rank_table(scores, lower_is_better=lower)
    np.testing.assert_allclose(table.mean_ranks, [expected["average_rank"][m] for m in NINE["methods"]], atol=5.01e-4)
    by_classifier = table.ranks.groupby(table.ranks.index.str.split("_").str[-1]).mean()
    for classifier, ranks in expected["by_classifier"].items():
        np.testing.assert_allclose(by_classifier.loc[classifier], [ranks[m] for m in NINE["methods"]], atol=5.01e-3)
    assert table.friedman_test("chi2").pvalue == pytest.approx(expected["friedman_p"], rel=1e-9)


# Independent engines


@pytest.mark.parametrize("levels", [None, 2, 4])
@pytest.mark.parametrize(("tasks", "methods"), [(5, 3), (12, 4), (40, 9)])
def test_chi_square_is_scipys(tasks: int, methods: int, levels: int | None) -> None:
    scores = drawn(tasks, methods, levels=levels, seed=1)
    expected = stats.friedmanchisquare(*scores.T)
    test = cs.friedman_test(scores, method="chi2")
    np.testing.assert_allclose(tuple(test), (expected.statistic, expected.pvalue), rtol=1e-10)
    assert (test.df, test.distribution, test.nobs) == (methods - 1, "chi2", tasks)
    assert test.details["chi2"] == test.statistic
    assert test.details["chi2_pvalue"] == test.pvalue


@pytest.mark.parametrize("levels", [None, 3])
def test_f_is_the_two_way_analysis_of_variance_of_the_ranks(levels: int | None) -> None:
    scores = drawn(12, 4, levels=levels, seed=3)
    ranks = stats.rankdata(scores, axis=1)
    between = 12 * ((ranks.mean(axis=0) - 2.5) ** 2).sum()
    residual = ((ranks - ranks.mean(axis=0)) ** 2).sum()  # every task has the mean 2.5
    f = (between / 3) / (residual / 33)
    test = cs.friedman_test(scores)
    np.testing.assert_allclose(tuple(test), (f, stats.f.sf(f, 3, 33)), rtol=1e-10)
    assert "F(3, 33)" in str(test)


@pytest.mark.parametrize("methods", [2, 3, 5, 9])
def test_critical_differences_from_their_definitions(methods: int) -> None:
    tasks = 30
    scale = np.sqrt(methods * (methods + 1) / (6 * tasks))
    # Law of the range of k normal variables, by its integral.
    q = cs.critical_difference(methods, tasks, 0.05) / scale * np.sqrt(2)
    within = integrate.quad(
        lambda z: methods * stats.norm.pdf(z) * (stats.norm.cdf(z) - stats.norm.cdf(z - q)) ** (methods - 1), -8, 14
    )[0]
    assert within == pytest.approx(0.95, abs=1e-7)
    dunn = cs.critical_difference(methods, tasks, 0.05, "bonferroni-dunn") / scale
    assert 2 * (methods - 1) * stats.norm.sf(dunn) == pytest.approx(0.05, rel=1e-10)


@pytest.mark.parametrize("tasks", [6, 13, 30, 60])
def test_signed_ranks_without_ties_are_scipys(tasks: int) -> None:
    scores = drawn(tasks, 2, seed=tasks)
    pair = cs.pairwise_wilcoxon(scores).iloc[0]
    expected = stats.wilcoxon(scores[:, 0], scores[:, 1], method="exact")
    np.testing.assert_allclose((pair["statistic"], pair["pvalue"]), tuple(expected), rtol=1e-9)
    assert pair["r_plus"] + pair["r_minus"] == tasks * (tasks + 1) / 2
    assert pair["median_difference"] == np.median(scores[:, 0] - scores[:, 1])


def test_signed_ranks_of_many_tasks_are_scipys_normal_form() -> None:
    scores = np.round(drawn(400, 2, seed=8), 1)  # ties and zeros
    pair = cs.pairwise_wilcoxon(scores).iloc[0]
    expected = stats.wilcoxon(np.round(scores[:, 0] - scores[:, 1], 12), zero_method="pratt", correction=False)
    rounded = cs.pairwise_wilcoxon(np.column_stack([np.round(scores[:, 0] - scores[:, 1], 12), np.zeros(400)])).iloc[0]
    assert rounded["pvalue"] == pytest.approx(expected.pvalue, rel=1e-10)
    assert pair["n_zero"] == (scores[:, 0] == scores[:, 1]).sum()


def test_the_exact_and_the_normal_law_meet() -> None:
    scores = drawn(200, 2, seed=5)
    exact = cs.pairwise_wilcoxon(scores)["pvalue"].iloc[0]
    normal = stats.wilcoxon(scores[:, 0], scores[:, 1], method="approx", correction=False).pvalue
    assert exact != normal
    assert exact == pytest.approx(normal, rel=0.01)  # the gap is of the order of 1 / n


# Brute force


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9))
def test_signed_ranks_with_ties_by_all_signs(differences: list[int]) -> None:
    d = np.array(differences, dtype=float)
    pair = cs.pairwise_wilcoxon(np.column_stack([d, np.zeros(d.size)])).iloc[0]
    ranks = stats.rankdata(np.abs(d))
    plus, minus = ranks[d > 0].sum(), ranks[d < 0].sum()
    moving = ranks[d != 0]
    signs = np.array(list(itertools.product([0, 1], repeat=moving.size)))
    sums = signs @ moving
    lower = (sums <= min(plus, minus) + 1e-9).mean()
    assert pair["pvalue"] == pytest.approx(min(1.0, 2 * lower), rel=1e-12)
    shared = ranks[d == 0].sum() / 2
    assert (pair["r_plus"], pair["r_minus"]) == (plus + shared, minus + shared)


def test_holm_by_hand() -> None:
    scores = drawn(10, 4, seed=2) + np.array([0.0, 0.3, 0.6, 0.7])
    table = cs.pairwise_wilcoxon(scores)
    p = np.sort(table["pvalue"].to_numpy())
    adjusted = np.minimum(1.0, np.maximum.accumulate(p * np.arange(6, 0, -1)))
    np.testing.assert_allclose(np.sort(table["pvalue_holm"]), adjusted)
    control = cs.pairwise_wilcoxon(scores, control=2)
    assert list(control.index) == [(2, 0), (2, 1), (2, 3)]
    assert control.loc[(2, 3), "pvalue"] == table.loc[(2, 3), "pvalue"]
    assert control.loc[(2, 0), "r_plus"] == table.loc[(0, 2), "r_minus"]


# Size


def test_sizes_under_the_null_hypothesis() -> None:
    rng = np.random.default_rng(11)
    runs, tasks, methods = 1500, 12, 4
    f = chi2 = nemenyi = 0
    distance = cs.critical_difference(methods, tasks)
    for scores in rng.random((runs, tasks, methods)):
        table = cs.rank_table(scores)
        details = table.friedman_test().details
        f += details["f_pvalue"] < 0.05
        chi2 += details["chi2_pvalue"] < 0.05
        nemenyi += np.ptp(table.mean_ranks.to_numpy()) > distance
    # Two standard errors of a share of 5% among 1500 are 1.1%.
    assert f / runs == pytest.approx(0.05, abs=0.015)
    assert chi2 < f  # the chi-square form is the more timid one
    assert nemenyi / runs == pytest.approx(0.05, abs=0.015)


# Behaviour


def test_direction_and_ties() -> None:
    scores = pd.DataFrame({"a": [0.1, 0.2], "b": [0.1, 0.1], "c": [0.3, np.inf]}, index=["iris", "glass"])
    low = cs.rank_table(scores)
    assert low.ranks.to_numpy().tolist() == [[1.5, 1.5, 3.0], [2.0, 1.0, 3.0]]
    high = cs.rank_table(scores, lower_is_better=False)
    np.testing.assert_array_equal(high.ranks, 4.0 - low.ranks)
    assert list(low.ranks.index) == ["iris", "glass"]
    assert low.mean_ranks.to_dict() == {"a": 1.75, "b": 1.25, "c": 3.0}
    assert low.friedman_test().statistic == pytest.approx(high.friedman_test().statistic)


def test_infinite_scores_have_ranks_and_signs() -> None:
    scores = pd.DataFrame({"a": [np.inf, 1.0, 2.0], "b": [np.inf, np.inf, 1.0]})
    assert cs.rank_table(scores).mean_ranks.to_dict() == {"a": 1.5, "b": 1.5}
    pair = cs.pairwise_wilcoxon(scores).iloc[0]
    assert (pair["n_zero"], pair["r_minus"], pair["r_plus"]) == (1, 3.5, 2.5)
    opposed = pd.DataFrame({"a": [np.inf, -np.inf], "b": [0.0, 0.0]})
    assert np.isnan(cs.pairwise_wilcoxon(opposed)["median_difference"].iloc[0])


def test_missing_cells_are_told() -> None:
    scores = pd.DataFrame(drawn(5, 3), index=list("vwxyz"), columns=["a", "b", "c"])
    scores.loc["x", "b"] = np.nan
    scores.loc["z", "a"] = np.nan
    message = r"2 of 15 cells are missing, the first is task 'x', method 'b'.*missing='drop'"
    for function in (cs.rank_table, cs.friedman_test, cs.pairwise_wilcoxon):
        with pytest.raises(MissingDataError, match=message):
            function(scores)
    table = cs.rank_table(scores, missing="drop")
    assert table.dropped == ("x", "z")
    assert list(table.ranks.index) == ["v", "w", "y"]
    assert "Left out for missing scores: 2 tasks, the first is 'x'" in str(table)
    nullable = scores.convert_dtypes()
    pd.testing.assert_frame_equal(cs.rank_table(nullable, missing="drop").ranks, table.ranks)
    with pytest.raises(InputError, match="got 1 tasks and 3 methods"):
        cs.rank_table(scores.loc[["v", "x"]], missing="drop")


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), "`scores` must be numeric; column 'a'"),
        (pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", "a"]), "more than one column named 'a'"),
        ([1.0, 2.0, 3.0], "got 1-D"),
        ([[1.0], [2.0]], "got 2 tasks and 1 methods"),
        ([[1.0, 2.0]], "got 1 tasks and 2 methods"),
    ],
)
def test_what_cannot_be_ranked_is_refused(scores: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cs.rank_table(scores)


def test_options_are_checked() -> None:
    scores = drawn(4, 3)
    with pytest.raises(InputError, match="`control` must be one of the methods"):
        cs.pairwise_wilcoxon(scores, control="a")
    with pytest.raises(InputError, match="`method` must be one of 'f', 'chi2'"):
        cs.friedman_test(scores, method="t")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`test` must be one of 'nemenyi'"):
        cs.critical_difference(3, 4, test="tukey")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="`n_methods` must be a whole number of at least 2"):
        cs.critical_difference(1, 4)
    with pytest.raises(InputError, match="`alpha`"):
        cs.critical_difference(3, 4, 0.0)
    with pytest.raises(InputError, match="`missing` must be one of"):
        cs.rank_table(scores, missing="ignore")  # type: ignore[arg-type]


def test_nothing_to_rank_is_nan_and_told() -> None:
    scores = np.ones((4, 3))
    with pytest.warns(NotEstimableWarning, match="same score in every task") as caught:
        test = cs.friedman_test(scores)
    assert caught[0].filename == __file__
    assert np.isnan(tuple(test)).all()
    assert test.details["ties_factor"] == 0.0
    table = cs.rank_table(scores)
    with pytest.warns(NotEstimableWarning, match="same score") as caught:
        table.friedman_test("chi2")
    assert caught[0].filename == __file__
    assert "= nan" in str(table)  # printing does not warn
    assert cs.pairwise_wilcoxon(scores)["pvalue"].tolist() == [1.0, 1.0, 1.0]


def test_perfect_agreement() -> None:
    test = cs.friedman_test(np.tile([0.1, 0.2, 0.3], (5, 1)))
    assert tuple(test) == (np.inf, 0.0)
    assert test.details["chi2"] == pytest.approx(10.0)  # N (k - 1), its largest value
    assert "its p-value 0 is a" in str(test)


def test_the_result_prints_and_draws() -> None:
    scores = pd.DataFrame(DEMSAR["ranks"], columns=["C4.5", "m", "cf", "m+cf"])
    table = cs.rank_table(scores)
    text = str(table)
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[4:8]] == ["m+cf", "m", "cf", "C4.5"]
    assert lines[4].split()[1:] == ["1.964", "0.000", "7"]
    assert "critical difference at alpha = 0.05: 1.254" in text
    assert "critical difference at alpha = 0.1: 1.118" in str(table.summary(alpha=0.1))
    assert "tabular" in table.summary().as_latex()
    figure = table.plot(0.1, title="four trees")
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert "critical difference 1.12" in texts
    assert "m+cf  1.96" in texts
    assert figure.axes[0].get_title(loc="left") == "four trees"
    pd.testing.assert_frame_equal(table.pairwise_wilcoxon("m"), cs.pairwise_wilcoxon(scores, control="m"))
    again = pickle.loads(pickle.dumps(table))
    assert str(again) == text


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_orders_of_tasks_and_methods_do_not_matter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores = pd.DataFrame(rng.integers(4, size=(7, 4)) * 1.0, columns=list("abcd"))
    mixed = scores.sample(frac=1, random_state=seed)[list("dacb")]
    one, two = cs.rank_table(scores), cs.rank_table(mixed)
    pd.testing.assert_series_equal(one.mean_ranks, two.mean_ranks[list("abcd")])
    if one.ranks.to_numpy().std() > 0:
        np.testing.assert_allclose(tuple(one.friedman_test("chi2")), tuple(two.friedman_test("chi2")))
    a, b = one.pairwise_wilcoxon().loc[("a", "d")], two.pairwise_wilcoxon().loc[("d", "a")]
    assert (a["pvalue"], a["r_plus"]) == (b["pvalue"], b["r_minus"])
    assert a["median_difference"] == -b["median_difference"]


def test_inputs_are_not_changed() -> None:
    scores = pd.DataFrame(drawn(6, 3))
    before = scores.copy()
    table = cs.rank_table(scores)
    table.ranks.iloc[0, 0] = 99.0
    table.scores.iloc[0, 0] = 99.0
    pd.testing.assert_frame_equal(scores, before)


def test_the_printed_table_is_frozen() -> None:
    scores = pd.DataFrame(DEMSAR["ranks"], columns=["C4.5", "m", "cf", "m+cf"])
    scores.loc[14, "m"] = np.nan
    text = str(cs.rank_table(scores, missing="drop")) + "\n"
    assert text == (Path(__file__).parent / "snapshots" / "rank_table.txt").read_text(encoding="utf-8")
