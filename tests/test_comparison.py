"""Comparison of nested softmax maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

import calstat as cs
from calstat.exceptions import InputError


@pytest.fixture(scope="module")
def sample() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    p = rng.dirichlet(np.full(3, 1.5), size=500)
    q = special.softmax(0.7 * np.log(p), axis=1)  # a temperature is the whole truth
    return (q.cumsum(axis=1)[:, :-1] < rng.random((500, 1))).sum(axis=1), p


def fits(sample: tuple[np.ndarray, np.ndarray], **options: Any) -> dict[str, Any]:
    y, p = sample
    scores: Any = {"scores": "probability", "eps": 1e-12, **options}
    return {
        "temperature": cs.TemperatureScaling(y, p, **scores).fit(),
        "fixed": cs.VectorScaling(y, p, slopes="fixed", **scores).fit(),
        "common": cs.VectorScaling(y, p, slopes="common", **scores).fit(),
        "vector": cs.VectorScaling(y, p, **scores).fit(),
        "full": cs.DirichletCalibration(y, p, **options).fit(),
        "odir": cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0), **options).fit(),
    }


def test_the_table_by_hand(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    chosen = [maps[k] for k in ("full", "temperature", "vector", "common")]  # any order
    comparison = cs.compare_models(chosen)
    table = comparison.table
    assert list(table.index) == [
        "identity",
        "TemperatureScaling",
        "VectorScaling (common slopes)",
        "VectorScaling",
        "DirichletCalibration",
    ]
    np.testing.assert_array_equal(table["df"], [0, 1, 3, 5, 8])
    np.testing.assert_allclose(
        table["llf"].iloc[1:], [maps[k].llf for k in ("temperature", "common", "vector", "full")]
    )
    assert table["llf"].iloc[0] == maps["full"].llf_identity
    np.testing.assert_allclose(table["lr"].iloc[1:], 2 * np.diff(table["llf"]))
    np.testing.assert_allclose(
        table["pvalue"].iloc[1:], special.chdtrc(np.diff(table["df"]), 2 * np.diff(table["llf"]))
    )
    np.testing.assert_allclose(table["aic"], -2 * table["llf"] + 2 * table["df"])
    np.testing.assert_allclose(table["bic"], -2 * table["llf"] + np.log(500) * table["df"])
    assert table["pvalue"].iloc[1] < 1e-4
    assert (table["pvalue"].iloc[2:] > 0.01).all()
    assert "compare each map with the one before it" in " ".join(str(comparison).split())


def test_penalised_maps_have_a_p_value_only_when_it_is_simulated(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    plain = cs.compare_models([maps["temperature"], maps["odir"]])
    assert np.isnan(plain.table["pvalue"].iloc[2])
    assert plain.table["df"].iloc[2] == maps["odir"].edf
    assert "no chi-square law" in " ".join(str(plain).split())
    drawn = cs.compare_models([maps["temperature"], maps["odir"]], n_resamples=99, rng=1)
    assert drawn.table["reference"].tolist() == ["", "simulated", "simulated"]
    assert drawn.table["pvalue"].iloc[1] == 0.01
    assert drawn.table["pvalue"].iloc[2] > 0.01
    again = cs.compare_models([maps["temperature"], maps["odir"]], n_resamples=99, rng=1)
    np.testing.assert_array_equal(again.table["pvalue"], drawn.table["pvalue"])


def test_simulated_p_values_agree_with_chi_square_ones(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    pair = [maps["temperature"], maps["vector"]]
    chi2 = cs.compare_models(pair).table["pvalue"].iloc[2]
    drawn = cs.compare_models(pair, n_resamples=400, rng=3).table["pvalue"].iloc[2]
    # The chi-square law is good here; the Monte Carlo error of the other is at most 0.025.
    assert abs(chi2 - drawn) < 0.09


def test_weights_are_copies(sample: tuple[np.ndarray, np.ndarray]) -> None:
    y, p = sample
    w = np.random.default_rng(4).integers(0, 3, len(y))
    weighted = fits(sample, freq_weights=w)
    repeated = fits((np.repeat(y, w), np.repeat(p, w, axis=0)))
    names = ("temperature", "vector", "full")
    a, b = (cs.compare_models([m[k] for k in names]).table for m in (weighted, repeated))
    np.testing.assert_allclose(a.drop(columns="reference").astype(float), b.drop(columns="reference").astype(float))
    drawn = cs.compare_models([weighted["temperature"], weighted["vector"]], n_resamples=19, rng=1)
    assert drawn.table["pvalue"].iloc[1:].between(0.05, 1.0).all()


def test_what_is_not_nested_is_refused(sample: tuple[np.ndarray, np.ndarray]) -> None:
    y, p = sample
    maps = fits(sample)
    with pytest.raises(InputError, match="not nested"):
        cs.compare_models([maps["temperature"], maps["fixed"]])
    with pytest.raises(InputError, match="not nested"):
        cs.compare_models([maps["full"], maps["full"]])
    with pytest.raises(InputError, match="same rows"):
        cs.compare_models([maps["temperature"], cs.DirichletCalibration(y[:400], p[:400]).fit()])
    with pytest.raises(InputError, match="same rows"):
        cs.compare_models([maps["temperature"], cs.DirichletCalibration(np.roll(y, 1), p).fit()])
    with pytest.raises(InputError, match="same features"):
        cs.compare_models([maps["vector"], cs.DirichletCalibration(y, p, eps=0.01).fit()])
    with pytest.raises(InputError, match="sequence of fitted softmax maps"):
        cs.compare_models([])
    shifted = cs.TemperatureScaling(y, np.log(p) + 3.0).fit()  # temperature does not see the constant
    assert cs.compare_models([shifted, maps["full"]]).table["df"].tolist() == [0.0, 1.0, 8.0]


def test_the_score_of_the_first_map_is_that_of_the_identity(sample: tuple[np.ndarray, np.ndarray]) -> None:
    for name, map_ in fits(sample).items():
        if name != "odir":
            alone = map_.test_identity("score")
            line = cs.compare_models([map_]).table.iloc[1]
            # The same numbers in another order of summation.
            np.testing.assert_allclose([line["score"], line["pvalue_score"]], tuple(alone), rtol=1e-9)


@pytest.mark.parametrize("smaller", ["temperature", "common", "vector"])
def test_the_score_statistic_by_hand(sample: tuple[np.ndarray, np.ndarray], smaller: str) -> None:
    """U' J^-1 U of the full map at the fitted smaller one, whose own share of U is 0 at its optimum."""
    maps = fits(sample)
    y, p = sample
    x = np.column_stack([np.log(p), np.ones(len(y))])
    fitted = np.asarray(maps[smaller].predict(p))
    residual = np.eye(3)[y][:, 1:] - fitted[:, 1:]
    u = np.einsum("nk,nq->kq", residual, x).ravel()
    spread = np.einsum("nk,kl->nkl", fitted, np.eye(3)) - np.einsum("nk,nl->nkl", fitted, fitted)
    J = np.einsum("nkl,nq,nr->kqlr", spread[:, 1:, 1:], x, x).reshape(8, 8)
    line = cs.compare_models([maps[smaller], maps["full"]]).table.iloc[2]
    # The smaller optimum is known to 1e-8 of its gradient, which enters squared.
    assert line["score"] == pytest.approx(u @ np.linalg.solve(J, u), rel=1e-6)
    assert line["pvalue_score"] == pytest.approx(special.chdtrc(8 - maps[smaller].rank, line["score"]), rel=1e-6)
    # Both have the same law in large samples, and are of the same order of size here.
    assert line["score"] == pytest.approx(line["lr"], rel=0.25)


def test_the_score_test_finds_weights_off_the_diagonal(sample: tuple[np.ndarray, np.ndarray]) -> None:
    y, p = sample
    W = np.array([[1.0, 0.8, -0.8], [-0.8, 1.0, 0.8], [0.8, -0.8, 1.0]])
    q = special.softmax(np.log(p) @ W.T, axis=1)
    y = (q.cumsum(axis=1)[:, :-1] < np.random.default_rng(5).random((500, 1))).sum(axis=1)
    maps = fits((y, p))
    line = cs.compare_models([maps["vector"], maps["full"]]).table.iloc[2]
    assert line["pvalue_score"] < 1e-4
    assert line["pvalue"] < 1e-4
    drawn = cs.compare_models([maps["vector"], maps["full"]], n_resamples=49, rng=1).table.iloc[2]
    assert drawn[["pvalue", "pvalue_score"]].tolist() == [0.02, 0.02]


def test_simulated_score_tests_agree_with_chi_square_ones(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    pair = [maps["vector"], maps["full"]]
    chi2 = cs.compare_models(pair).table.iloc[2]
    drawn = cs.compare_models(pair, n_resamples=400, simulate="score", rng=3).table.iloc[2]
    assert chi2["excess"] < 0.05
    # Three Monte Carlo errors of 0.025.
    assert abs(chi2["pvalue_score"] - drawn["pvalue_score"]) < 0.075


def test_the_score_test_alone_may_be_simulated(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    pair = [maps["vector"], maps["full"]]
    both, score = (cs.compare_models(pair, n_resamples=49, simulate=s, rng=3).table for s in ("both", "score"))
    assert both["pvalue"].iloc[1:].notna().all()
    assert score["pvalue"].isna().all()
    pd.testing.assert_series_equal(both["pvalue_score"], score["pvalue_score"])
    with pytest.raises(InputError, match="simulate"):
        cs.compare_models(pair, n_resamples=9, simulate="lr")  # type: ignore[arg-type]


def test_sharp_probabilities_are_told() -> None:
    rng = np.random.default_rng(1)
    z = rng.normal(size=(300, 3)) * 6.0
    y = (special.softmax(z, axis=1).cumsum(axis=1)[:, :-1] < rng.random((300, 1))).sum(axis=1)
    comparison = cs.compare_models([cs.VectorScaling(y, z).fit(), cs.MatrixScaling(y, z).fit()])
    assert comparison.table["excess"].iloc[2] > 0.05
    assert "poor reference for" in " ".join(str(comparison).split())


def test_many_classes_and_penalties_have_no_score_test(sample: tuple[np.ndarray, np.ndarray]) -> None:
    maps = fits(sample)
    table = cs.compare_models([maps["vector"], maps["odir"]]).table
    assert table["score"].iloc[1] > 0.0
    assert table[["score", "pvalue_score", "excess"]].iloc[2].isna().all()
