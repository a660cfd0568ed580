"""Multinomial recalibration against a reference class (Van Hoorde et al. 2014), and scores that leave slopes open.

The stored numbers are VGAM's, see tests/reference/multiclass/README.md. Its tolerance of 1e-12 leaves 1e-8 in
coefficients, and 1e-12 in log-likelihoods. Its covariances are those of its last but one step, off by up to 6e-8 here:
`information` works them out anew from the stored coefficients.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import calstat as cs
from calstat.exceptions import InputError, RankWarning

FOLDER = Path(__file__).parent / "reference" / "multiclass"
EXPECTED = json.loads((FOLDER / "syn_tri.json").read_text())
DATA = {k: np.array(v) for k, v in json.loads((FOLDER / "inputs.json").read_text())["syn_tri"].items()}
Y, P = DATA["y"], DATA["p"]
REFERENCES = [1, 2, 3]


def scaled(reference: int, slopes: str = "class") -> Any:
    return cs.VectorScaling(Y, P, scores="probability", slopes=slopes, reference=reference).fit()


def cross(reference: int) -> Any:
    """Every log ratio in every equation: a full map on the log ratios, whose reference column is 0."""
    model = cs.MatrixScaling(Y, np.log(P / P[:, [reference - 1]]))
    with pytest.warns(RankWarning, match="2 direction"):
        return model.fit()


def check(res: Any, names: list[str], stored: dict[str, Any]) -> None:
    assert np.isclose(res.llf, stored["loglik"], rtol=1e-12)
    assert res.df_model == stored["npar"]
    np.testing.assert_allclose(res.params[names], stored["coef"], rtol=1e-8)
    cov = res.cov_params().loc[names, names]
    np.testing.assert_allclose(res.bse[names], stored["se"], rtol=2e-7)
    np.testing.assert_allclose(cov, stored["vcov"], rtol=2e-6, atol=1e-9)
    np.testing.assert_allclose(cov, np.linalg.inv(information(names, stored["coef"])), rtol=1e-9, atol=1e-12)


def information(names: list[str], coef: list[float]) -> np.ndarray:
    """Sum over rows of X' (diag q - q q') X for the two equations against a reference, from its definition."""
    others = [int(name[2]) - 1 for name in names[:2]]
    log_ratio = np.log(P[:, others] / P[:, [({0, 1, 2} - set(others)).pop()]])
    X = np.zeros((len(Y), 2, len(names)))
    X[:, [0, 1], [0, 1]] = 1.0
    eta = np.zeros((len(Y), 2))
    if len(names) == 4:
        X[:, [0, 1], [2, 3]] = log_ratio
    else:
        eta = log_ratio
    e = np.exp(eta + X @ np.array(coef))
    q = e / (1.0 + e.sum(axis=1, keepdims=True))
    V = q[:, :, None] * np.eye(2) - q[:, :, None] * q[:, None, :]
    return np.einsum("nif,nij,njg->fg", X, V, X)


@pytest.mark.parametrize("reference", REFERENCES)
def test_intercepts_and_own_slopes(reference: int) -> None:
    a, b = (k for k in REFERENCES if k != reference)
    fixed, own = scaled(reference, "fixed"), scaled(reference)
    check(fixed, [f"b[{a}]", f"b[{b}]"], EXPECTED[f"ref{reference}_intercepts_only_offset"])
    check(own, [f"b[{a}]", f"b[{b}]", f"s[{a}]", f"s[{b}]"], EXPECTED[f"ref{reference}_diagonal_slopes"])
    assert list(own.params.index) == [f"s[{a}]", f"s[{b}]", f"b[{a}]", f"b[{b}]"]
    np.testing.assert_array_equal(own.scales, own.params[:2])
    np.testing.assert_allclose(own.bias, own.params[2:], rtol=1e-14)


@pytest.mark.parametrize("reference", REFERENCES)
def test_every_slope_in_every_equation(reference: int) -> None:
    others = [k for k in REFERENCES if k != reference]
    stored, res = EXPECTED[f"ref{reference}_full_cross_slopes"], cross(reference)
    assert np.isclose(res.llf, stored["loglik"], rtol=1e-12)
    assert res.df_model == stored["npar"]
    names = list(res.params.index)
    rows = []
    for term in stored["terms"]:
        name, equation = term.split(":")
        i = others[int(equation) - 1]
        if name == "(Intercept)":
            pair = f"b[{i}]", f"b[{reference}]"
        else:
            j = others["ab".index(name[1])]
            pair = f"W[{i},{j}]", f"W[{reference},{j}]"
        rows.append([float(n == pair[0]) - float(n == pair[1]) for n in names])
    R = np.array(rows)
    known = res.estimable.to_numpy()
    assert not R[:, ~known].any()
    np.testing.assert_allclose(R @ res.params, stored["coef"], rtol=1e-8)
    cov = R[:, known] @ res.cov_params().to_numpy()[np.ix_(known, known)] @ R[:, known].T
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), stored["se"], rtol=1e-8)
    np.testing.assert_allclose(cov, stored["vcov"], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("reference", REFERENCES)
def test_likelihood_ratios(reference: int) -> None:
    stored = EXPECTED[f"ref{reference}_LR"]
    fixed, own, full = scaled(reference, "fixed"), scaled(reference), cross(reference)
    table = cs.compare_models([fixed, own, full]).table
    found = {
        "overall_diagonal": (own.test_identity("lr").statistic, own.test_identity("lr").df),
        "overall_full": (full.test_identity("lr").statistic, full.test_identity("lr").df),
        "intercepts": (table["lr"].iloc[1], table["df_diff"].iloc[1]),
        "slopes_given_intercepts": (table["lr"].iloc[2], table["df_diff"].iloc[2]),
        "cross_terms": (table["lr"].iloc[3], table["df_diff"].iloc[3]),
    }
    assert set(found) == set(stored)
    for name, (statistic, df) in found.items():
        assert df == stored[name]["df"]
        # A difference of log-likelihoods near 900 that agree to 1e-12 relative.
        assert np.isclose(statistic, stored[name]["chisq"], rtol=1e-8)
        assert np.isclose(stats.chi2.sf(statistic, df), stored[name]["p"], rtol=1e-7)
    np.testing.assert_allclose(table["pvalue"].iloc[1:], [stored[n]["p"] for n in list(found)[2:]], rtol=1e-7)


def test_predictions_against_the_reference() -> None:
    grid = np.array(EXPECTED["grid"])
    np.testing.assert_allclose(scaled(1).predict(grid), EXPECTED["pred_diagonal_ref1"], rtol=1e-8)


@pytest.mark.parametrize("slopes", ["fixed", "common"])
def test_the_reference_moves_constants_only(slopes: str) -> None:
    free = cs.VectorScaling(Y, P, scores="probability", slopes=slopes).fit()
    for reference in REFERENCES:
        res = scaled(reference, slopes)
        assert np.isclose(res.llf, free.llf, rtol=1e-13)
        np.testing.assert_allclose(res.predict(P), free.predict(P), atol=1e-10)
        np.testing.assert_allclose(res.bias, (free.bias - free.bias[reference]).drop(reference), atol=1e-9)
        assert np.isclose(res.test_identity("wald").statistic, free.test_identity("wald").statistic, rtol=1e-8)


def test_logits_and_labels_and_storage() -> None:
    labels = np.array(["a", "b", "c"])[Y - 1]
    by_logits = cs.VectorScaling(labels, np.log(P) + 3.0, classes=["a", "b", "c"], reference="c").fit()
    own = scaled(3)
    np.testing.assert_allclose(by_logits.params, own.params, rtol=1e-9)
    assert "Reference class:" in str(by_logits.summary())
    assert "each class but the reference" in str(by_logits.summary())
    same = cs.from_json(own.to_json())
    np.testing.assert_array_equal(same.predict(P), own.predict(P))
    assert str(same.summary()) == str(own.summary())
    low, high = own.conf_int(method="profile").to_numpy().T
    assert ((low < own.params) & (own.params < high)).all()
    frame = own.get_prediction(P[:5]).summary_frame()
    assert np.isfinite(frame.to_numpy()).all()


def test_reference_is_checked() -> None:
    with pytest.raises(InputError, match=r"`reference` must be one of the classes .*got 'x'"):
        cs.VectorScaling(Y, P, scores="probability", reference="x")
    with pytest.raises(InputError, match="`center` and `reference`"):
        cs.VectorScaling(Y, P, scores="probability", reference=1, center=True)


@pytest.mark.parametrize("value", [0.0, 2.5])
def test_a_constant_score_has_no_slope(value: float) -> None:
    """The slope of a constant score and its class's constant are one: known are 2 slopes and 2 contrasts."""
    z = np.log(P)
    z[:, 1] = value
    model = cs.VectorScaling(Y, z)
    with pytest.warns(RankWarning, match=r"1 direction.*\(rank 4\).*Use a smaller map") as told:
        res = model.fit()
    assert len(told) == 1
    assert res.df_model == 4
    assert not res.estimable["s[2]"]
    assert res.estimable[["s[1]", "s[3]"]].all()
    # With a slope of 1 the constant score is absorbed by the constant: the same map, without an open direction.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankWarning)
        moved = cs.VectorScaling(Y, z + np.array([0.0, 1.0, 0.0])).fit()
    np.testing.assert_allclose(moved.predict(z + np.array([0.0, 1.0, 0.0])), res.predict(z), atol=1e-9)
    np.testing.assert_allclose(moved.bse[["s[1]", "s[3]"]], res.bse[["s[1]", "s[3]"]], rtol=1e-8)


def test_scores_that_are_one_line() -> None:
    """Centred logits of two classes are z and -z: one slope can be known, as in Cox's recalibration."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=400)
    y = (rng.random(400) < 1.0 / (1.0 + np.exp(-1.5 * z))).astype(int)
    pair = np.stack([-0.5 * z, 0.5 * z], axis=1)
    with pytest.warns(RankWarning, match="1 direction"):
        res = cs.VectorScaling(y, pair).fit()
    cox = cs.LogisticCalibration(y, z, scores="logit").fit()
    assert res.df_model == 2
    assert np.isclose(res.llf, cox.llf, rtol=1e-12)
    np.testing.assert_allclose(res.scales.mean(), cox.params["slope"], rtol=1e-8)
    # One slope for all has a direction left only where the columns differ by constants.
    with pytest.warns(RankWarning, match="1 direction"):
        equal = cs.VectorScaling(y, np.stack([z, z + 1.0], axis=1), slopes="common").fit()
    assert equal.df_model == 1
    assert not equal.estimable["s"]


def test_many_classes_with_a_constant_score() -> None:
    """Truncated steps leave the open direction alone: the minimum is that of exact steps on the other parameters."""
    rng = np.random.default_rng(2)
    z = rng.normal(size=(2000, 30))
    z[:, 7] = 1.0
    y = np.where(rng.random(2000) < 0.3, rng.integers(0, 30, 2000), z.argmax(axis=1))
    with pytest.warns(RankWarning, match="1 direction"):
        res = cs.VectorScaling(y, z).fit()
    assert res.converged
    assert res.df_model == 58
    assert res.gradient <= 1e-8
    assert list(res.estimable[res.estimable].index) == [f"s[{k}]" for k in range(30) if k != 7]
