"""Inference of the multiclass maps: against statsmodels, invariances, tests of the identity, nested maps."""

from __future__ import annotations

import functools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy import optimize, special

import calstat as cs
from calstat.exceptions import InputError, NotDefinedError
from calstat.multiclass.multinomial import PenalizedMNLogit

FOLDER = Path(__file__).parent / "reference" / "multiclass"


@functools.cache
def inputs(name: str) -> tuple[np.ndarray, np.ndarray]:
    data = json.loads((FOLDER / "inputs.json").read_text())[name]
    return np.array(data["y"]), np.array(data["p"])


@functools.cache
def five_classes() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(8)
    p = rng.dirichlet(np.full(5, 0.7), size=900)
    q = special.softmax(0.7 * np.log(p) + rng.normal(size=5) * 0.3, axis=1)
    return (q.cumsum(axis=1)[:, :-1] < rng.random((900, 1))).sum(axis=1), np.maximum(p, 1e-9)


def data(name: str) -> tuple[np.ndarray, np.ndarray]:
    return five_classes() if name == "five" else inputs(name)


def mnlogit(y: np.ndarray, p: np.ndarray, **fit: Any) -> Any:
    x = np.column_stack([np.log(np.clip(p, 1e-12, 1 - 1e-12)), np.ones(len(y))])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels' own remarks on its optimiser
        return sm.MNLogit(y, x).fit(disp=0, maxiter=200, tol=1e-14, **fit)


def contrast_matrix(K: int) -> np.ndarray:
    """Reported parameters to contrasts with class 0, in the order of MNLogit: class by class, constant last."""
    rows = []
    for k in range(1, K):
        for j in range(K + 1):
            row = np.zeros(K * (K + 1))
            row[[K * k + j, j] if j < K else [K * K + k, K * K]] = [1.0, -1.0]
            rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize("name", ["m1", "m3_vehicle", "five"])
def test_without_a_penalty_it_is_mnlogit(name: str) -> None:
    y, p = data(name)
    ours, theirs = cs.DirichletCalibration(y, p).fit(), mnlogit(y, p)
    R = contrast_matrix(p.shape[1])
    # Both are at the optimum to rounding: 1e-8 as the design asks.
    np.testing.assert_allclose(R @ ours.params, np.asarray(theirs.params).ravel(order="F"), rtol=1e-8, atol=1e-8)
    se = np.sqrt(np.diag(R @ ours.cov_params().to_numpy() @ R.T))
    np.testing.assert_allclose(se, np.asarray(theirs.bse).ravel(order="F"), rtol=1e-8)
    assert np.isclose(ours.llf, theirs.llf, rtol=1e-12)
    assert np.isclose(ours.llf_null, theirs.llnull, rtol=1e-9)  # theirs is found by a search
    assert np.isclose(ours.aic, theirs.aic, rtol=1e-12)
    assert np.isclose(ours.bic, theirs.bic, rtol=1e-12)
    same = ours.mnlogit
    np.testing.assert_allclose(same.params, theirs.params, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(same.bse, theirs.bse, rtol=1e-8)
    assert np.isclose(same.llf, theirs.llf, rtol=1e-12)
    assert "PenalizedMNLogit" in str(same.summary())


@pytest.mark.parametrize("name", ["m1", "five"])
def test_hc0_and_unweighted_clusters_are_statsmodels(name: str) -> None:
    y, p = data(name)
    R = contrast_matrix(p.shape[1])
    groups = np.arange(len(y)) // 6
    hc0 = cs.DirichletCalibration(y, p).fit(cov_type="HC0")
    cluster = cs.DirichletCalibration(y, p, groups=groups).fit(cov_type="cluster")
    theirs = mnlogit(y, p, cov_type="HC0").cov_params()
    np.testing.assert_allclose(R @ hc0.cov_params().to_numpy() @ R.T, theirs, rtol=1e-7, atol=1e-12)
    g, n, k = groups.max() + 1, len(y), R.shape[0]
    theirs = mnlogit(y, p, cov_type="cluster", cov_kwds={"groups": groups, "use_correction": False}).cov_params()
    ours = R @ cluster.cov_params().to_numpy() @ R.T / (g / (g - 1) * (n - 1) / (n - k))
    np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-12)
    hc1 = cs.DirichletCalibration(y, p).fit(cov_type="HC1")
    np.testing.assert_allclose(hc1.cov_params(), hc0.cov_params() * n / (n - k), rtol=1e-10)


@pytest.mark.parametrize("kind", ["HC0", "HC1", "cluster"])
@pytest.mark.parametrize("penalty", [None, cs.ODIR(0.3)], ids=str)
def test_sandwiches_treat_weights_as_copies(kind: Any, penalty: Any) -> None:
    y, p = data("m1")
    rng = np.random.default_rng(13)
    w, groups = rng.integers(0, 4, len(y)), rng.integers(0, 40, len(y))
    weighted = cs.DirichletCalibration(y, p, penalty=penalty, freq_weights=w, groups=groups).fit(cov_type=kind)
    yy, pp, gg = np.repeat(y, w), np.repeat(p, w, axis=0), np.repeat(groups, w)
    repeated = cs.DirichletCalibration(yy, pp, penalty=penalty, groups=gg).fit(cov_type=kind)
    np.testing.assert_allclose(weighted.cov_params(), repeated.cov_params(), rtol=1e-8, atol=1e-12)


def test_penalised_mnlogit_is_a_penalised_optimum() -> None:
    y, p = data("m1")
    x = np.column_stack([np.log(p), np.ones(len(y))])
    penalty = cs.ODIR(0.5, 0.2).quadratic(3)
    model = PenalizedMNLogit(y, x, penalty=penalty)
    res = model.fit()
    found = optimize.minimize(lambda b: -model.penalized_loglike(b), np.zeros(8), method="BFGS", options={"gtol": 1e-6})
    assert model.penalized_loglike(res.params) >= -found.fun - 1e-9
    assert model.loglike(res.params) == pytest.approx(res.llf)
    numeric = optimize.approx_fprime(res.params.ravel(order="F") + 0.1, model.loglike, 1e-6)
    np.testing.assert_allclose(model.score(res.params.ravel(order="F") + 0.1), numeric, rtol=1e-4)
    np.testing.assert_allclose(model.score_obs(res.params).sum(axis=0), model.score(res.params), atol=1e-9)
    assert np.isfinite(model.cdf(np.array([[800.0, -800.0]]))).all()
    # The covariance is the inverse of minus the Hessian of the penalised log-likelihood.
    full = cs.DirichletCalibration(y, p, penalty=cs.ODIR(0.5, 0.2)).fit()
    R = contrast_matrix(3)
    np.testing.assert_allclose(R @ full.cov_params().to_numpy() @ R.T, res.cov_params(), rtol=1e-7, atol=1e-12)
    assert full.mnlogit.llf == pytest.approx(full.llf, rel=1e-12)


MAPS: dict[str, Any] = {
    "temperature": lambda y, p: cs.TemperatureScaling(y, p, scores="probability"),
    "vector": lambda y, p: cs.VectorScaling(y, p, scores="probability"),
    "common": lambda y, p: cs.VectorScaling(y, p, scores="probability", slopes="common"),
    "dirichlet": cs.DirichletCalibration,
    "odir": lambda y, p: cs.DirichletCalibration(y, p, penalty=cs.ODIR(0.3, 0.1)),
    "l2": lambda y, p: cs.DirichletCalibration(y, p, penalty=cs.L2(0.01)),
}
each_map = pytest.mark.parametrize("kind", list(MAPS))


@each_map
def test_a_permutation_of_the_classes_permutes_the_answer(kind: str) -> None:
    """The base class of the contrasts changes with it, so this shows that it does not matter."""
    y, p = five_classes()
    order = np.array([3, 0, 4, 1, 2])
    names = np.array(["a", "b", "c", "d", "e"])
    first = MAPS[kind](names[y], pd.DataFrame(p, columns=names)).fit()
    other = MAPS[kind](names[y], pd.DataFrame(p[:, order], columns=names[order])).fit()
    assert other.classes == tuple(names[order])
    assert np.isclose(first.llf, other.llf, rtol=1e-12)
    assert np.isclose(first.aic, other.aic, rtol=1e-10)
    shared = first.params.index
    np.testing.assert_allclose(other.params[shared], first.params, atol=1e-8)
    np.testing.assert_allclose(other.cov_params().loc[shared, shared], first.cov_params(), atol=1e-9)
    np.testing.assert_allclose(other.predict(p[:9, order])[:, np.argsort(order)], first.predict(p[:9]), atol=1e-10)
    for method in ("lr", "wald", "score"):
        if kind not in {"odir", "l2"}:
            tests = [r.test_identity(method) for r in (first, other)]
            assert np.isclose(tests[0].statistic, tests[1].statistic, rtol=1e-7)
            assert tests[0].df == tests[1].df


@each_map
def test_a_constant_added_to_the_logits_of_a_row(kind: str) -> None:
    y, p = five_classes()
    z = np.log(p)
    shift = np.random.default_rng(9).normal(size=(len(y), 1)) * 5
    if kind == "temperature":
        models = [cs.TemperatureScaling(y, s) for s in (z, z + shift)]
    elif kind in {"vector", "common"}:
        slopes: Any = "class" if kind == "vector" else "common"
        models = [cs.VectorScaling(y, s, center=True, slopes=slopes) for s in (z, z + shift)]
        plain = [cs.VectorScaling(y, s).fit().llf for s in (z, z + shift)]
        assert abs(plain[0] - plain[1]) > 1.0  # without centring it does change the map
    else:
        penalty: Any = {"dirichlet": None, "odir": cs.ODIR(0.3), "l2": cs.L2(0.01)}[kind]
        models = [cs.DirichletCalibration(y, s, scores="logit", penalty=penalty) for s in (z, z + shift)]
    first, other = (m.fit() for m in models)
    np.testing.assert_allclose(other.params, first.params, atol=1e-8)
    np.testing.assert_allclose(other.bse, first.bse, rtol=1e-7)


def test_reported_rows_are_the_cheapest_of_their_kind() -> None:
    y, p = five_classes()
    plain = cs.DirichletCalibration(y, p).fit()
    W, b = plain.weights.to_numpy(), plain.bias.to_numpy()
    np.testing.assert_allclose((W.sum(axis=0) - np.diag(W)), 0.0, atol=1e-12)
    assert abs(b.sum()) < 1e-12
    values = np.linalg.eigvalsh(plain.cov_params())
    assert (values > 1e-10 * values[-1]).sum() == 24  # K^2 - 1
    assert plain.df_model == 24
    assert plain.wald_test("W[0,0] = 1, W[1,1] = 1, b[0] = 0").df == 3
    assert plain.wald_test(dict(plain.identity.items())).df == 24
    ridge = cs.DirichletCalibration(y, p, penalty=cs.L2(0.1)).fit()
    np.testing.assert_allclose(ridge.weights.sum(axis=0), 0.0, atol=1e-10)


def test_two_classes_show_nothing_twice() -> None:
    y, p = inputs("m6_k2")
    res = cs.DirichletCalibration(y, p).fit()
    assert res.bse[["W[1,2]", "W[2,1]"]].isna().all()  # fixed at 0 by the normalisation
    np.testing.assert_allclose(res.params[["W[1,2]", "W[2,1]"]], 0.0, atol=1e-12)
    text = str(res.summary())
    assert "W[1,2]" not in text
    assert text.count("b[1]") + text.count("b[2]") == 1
    assert res.test_identity("wald").df == 3


def test_profile_limits_and_their_refusal() -> None:
    y, p = inputs("m1")
    res = cs.DirichletCalibration(y, p).fit()
    wald, profile = res.conf_int(), res.conf_int(method="profile")
    assert profile.notna().all(axis=None)
    assert (np.abs(profile - wald).max(axis=1) < 0.3 * res.bse).all()
    assert (profile["lower"] < res.params).all()
    assert (res.params < profile["upper"]).all()
    with pytest.raises(NotDefinedError, match="nonrobust"):
        cs.DirichletCalibration(y, p).fit(cov_type="HC0").conf_int(method="profile")
    temperature = cs.TemperatureScaling(y, p, scores="probability").fit()
    low, high = temperature.conf_int(method="profile").loc["T"]
    for limit in (low, high):  # the definition: where the likelihood ratio equals the quantile
        llf = np.log(special.softmax(np.log(p) / limit, axis=1)[np.arange(len(y)), y - 1]).sum()
        assert np.isclose(2 * (temperature.llf - llf), special.chdtri(1, 0.05), rtol=1e-8)


@pytest.mark.parametrize("penalty", [cs.ODIR(0.1), cs.L2(0.01, center="identity", intercept=False)], ids=str)
def test_profile_limits_of_a_penalised_fit(penalty: cs.L2 | cs.ODIR) -> None:
    """They are the ends of a coefficient among maps whose penalised log-likelihood is within half a quantile."""
    y, p = inputs("m1")
    res = cs.DirichletCalibration(y, p, penalty=penalty).fit()
    assert res.default_interval == "wald"
    limits = res.conf_int(method="profile")
    # The penalised likelihood is more nearly quadratic than the plain one, so that Wald limits are close.
    assert (np.abs(limits - res.conf_int()).max(axis=1) < 0.15 * res.bse).all()
    features = np.column_stack([np.log(p), np.ones(len(y))])
    lam = penalty.quadratic(3)

    def fall(theta: np.ndarray) -> float:
        eta = features @ theta.reshape(3, 4).T
        loss = (special.logsumexp(eta, axis=1) - eta[np.arange(len(y)), y - 1]).sum()
        return loss + len(y) * float((lam.weights * (theta.reshape(3, 4) - lam.center) ** 2).sum())

    def reported(theta: np.ndarray) -> np.ndarray:
        # The same vector is taken off each row, so that the penalty is least; a free column is centred.
        used = lam.weights.any(axis=0)
        weights, center = np.where(used, lam.weights, 1.0), np.where(used, lam.center, 0.0)
        deviation = theta.reshape(3, 4) - center
        return (theta.reshape(3, 4) - (weights * deviation).sum(axis=0) / weights.sum(axis=0)).ravel()

    for name, place in (("W[1,1]", 0), ("W[2,1]", 4), ("b[3]", 11)):
        for limit in limits.loc[name]:
            held = {"type": "eq", "fun": lambda t, limit=limit, place=place: reported(t)[place] - limit}
            start = np.column_stack([res.weights, res.bias]).ravel()
            options = {"ftol": 1e-13, "maxiter": 500}
            found = optimize.minimize(fall, start, constraints=[held], method="SLSQP", options=options)
            # SLSQP with differences finds the constrained minimum to about 1e-5.
            assert np.isclose(2.0 * (found.fun + res._estimates.objective), special.chdtri(1, 0.05), atol=1e-4), name
    for kind in ("frequentist", "HC0"):
        with pytest.raises(NotDefinedError, match="'nonrobust' or 'bayes'"):
            cs.DirichletCalibration(y, p, penalty=penalty).fit(cov_type=kind).conf_int(method="profile")


def test_tests_of_the_identity_and_what_they_refuse() -> None:
    y, p = inputs("m1")
    res = cs.DirichletCalibration(y, p).fit()
    assert res.test_identity().method == "lr"
    for method in ("lr", "wald", "score"):
        test = res.test_identity(method)
        assert (test.df, test.distribution) == (8, "chi2")
        assert test.pvalue < 1e-6
    drawn = res.test_identity("pseudo_label", rng=1)
    assert drawn.pvalue == 0.001
    assert abs(drawn.details["expected"] - 8) < 1.0
    robust = cs.DirichletCalibration(y, p).fit(cov_type="HC1")
    assert robust.test_identity().method == "wald"
    with pytest.raises(NotDefinedError, match="nonrobust"):
        robust.test_identity("lr")
    penalised = cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0)).fit()
    assert penalised.test_identity(rng=1, n_resamples=99).method == "pseudo_label"
    with pytest.raises(NotDefinedError, match="no chi-square reference"):
        penalised.test_identity("lr")
    with pytest.raises(NotDefinedError, match="away from the identity"):
        cs.DirichletCalibration(y, p, penalty=cs.L2(0.1)).fit().test_identity()
    assert cs.DirichletCalibration(y, p, penalty=cs.L2(0.1, center="identity")).fit().test_identity(rng=1).pvalue < 0.01
    with pytest.raises(InputError, match="`method` must be one of"):
        res.test_identity("bayes")


def test_sharp_probabilities_get_drawn_labels() -> None:
    rng = np.random.default_rng(10)
    z = rng.normal(size=(300, 5)) + 9.0 * np.eye(5)[rng.integers(0, 5, 300)]
    p = special.softmax(z, axis=1)
    y = (p.cumsum(axis=1)[:, :-1] < rng.random((300, 1))).sum(axis=1)
    res = cs.TemperatureScaling(y, z).fit()
    test = res.test_identity(rng=1)
    assert test.method == "pseudo_label"
    assert test.details["excess"] > 0.05
    assert "poor reference" in " ".join(str(res.summary()).split())


def test_edf_falls_with_the_penalty() -> None:
    y, p = inputs("m1")
    previous = 8.0
    for lam in (1e-6, 1e-2, 1.0, 1e2, 1e6):
        res = cs.DirichletCalibration(y, p, penalty=cs.ODIR(lam)).fit()
        assert res.edf < previous
        previous = res.edf
    assert np.isclose(previous, 3.0, atol=0.01)  # the free diagonal
    assert np.isclose(res.aic, -2 * res.llf + 2 * res.edf)
    frequentist = cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0)).fit(cov_type="frequentist")
    bayes = cs.DirichletCalibration(y, p, penalty=cs.ODIR(1.0)).fit()
    assert (frequentist.bse < bayes.bse).all()


def test_score_wald_and_lr_tests_agree_in_large_samples() -> None:
    rng = np.random.default_rng(11)
    p = rng.dirichlet(np.full(3, 1.5), size=100_000)
    q = special.softmax(np.log(p) * 1.02, axis=1)  # a local alternative
    y = (q.cumsum(axis=1)[:, :-1] < rng.random((100_000, 1))).sum(axis=1)
    res = cs.DirichletCalibration(y, p).fit()
    lr, wald, score = (res.test_identity(m).statistic for m in ("lr", "wald", "score"))
    # Their differences are of the order of the statistic over the root of n.
    assert abs(lr - wald) < 0.02 * lr
    assert abs(lr - score) < 0.02 * lr


def test_robust_covariance_holds_under_clustering() -> None:
    """Cases come in clusters of ten with one label: the plain standard error is too small by the root of ten."""
    rng = np.random.default_rng(12)
    inside = {"nonrobust": 0, "cluster": 0}
    runs, groups = 150, np.repeat(np.arange(60), 10)
    for _ in range(runs):
        p = np.repeat(rng.dirichlet(np.full(3, 1.5), size=60), 10, axis=0)
        y = np.repeat((p[::10].cumsum(axis=1)[:, :-1] < rng.random((60, 1))).sum(axis=1), 10)
        model = cs.TemperatureScaling(y, p, scores="probability", groups=groups)
        for kind in ("nonrobust", "cluster"):
            low, high = model.fit(cov_type=kind).conf_int().loc["T"]  # type: ignore[arg-type]
            inside[kind] += low <= 1.0 <= high
    assert inside["nonrobust"] / runs < 0.7
    assert inside["cluster"] / runs > 0.88  # 60 clusters: a little under 95%, Monte Carlo error 2%
