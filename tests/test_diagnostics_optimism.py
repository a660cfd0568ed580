"""Optimism bootstrap and cross-validation, against R's numbers for given resamples and against plain loops."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import calstat as cs
from calstat.exceptions import DataWarning, InputError

REFERENCE = Path(__file__).parent / "reference" / "inference"


def data(seed=1, n=150):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(one=1.0)
    return X, pd.Series((rng.random(n) < 1 / (1 + np.exp(-X["a"]))).astype(int))


def fit(X, y):
    return sm.GLM(y, X, family=sm.families.Binomial()).fit().predict


def test_bootstrap_is_r_for_given_resamples():
    r = json.loads((REFERENCE / "optimism.json").read_text())
    y = np.array(json.loads((REFERENCE / "binary.json").read_text())["pima_train"]["data"]["y"])
    fitted = iter([r["p"], *r["refits"]])

    def stored(rows, _):
        p = np.array(next(fitted))
        assert rows.size == y.size
        return lambda wanted: p[wanted]

    table = cs.validate(stored, np.arange(y.size), y, resamples=r["resamples"])
    wanted = pd.DataFrame(r["values"], index=r["rows"], columns=r["cols"]).rename(columns={"B": "Brier"})
    for name in ("Dxy", "Intercept", "Slope", "U", "Brier"):
        np.testing.assert_allclose(table.loc[name, r["rows"]], wanted[name], rtol=1e-7, atol=1e-7)
    # R's D is that of the recalibrated predictions
    test = table["test"]
    assert test["D"] + test["U"] + 2 / y.size == pytest.approx(wanted.loc["test", "D"], rel=1e-7)
    assert (table["n"] == 40).all()


def test_bootstrap_is_a_plain_loop():
    X, y = data()
    resamples = np.random.default_rng(2).integers(0, 150, (5, 150))
    table = cs.validate(fit, X, y, resamples=resamples)
    optimism = []
    for rows in resamples:
        predict = fit(X.iloc[rows], y.iloc[rows])
        inside = cs.val_prob(y.iloc[rows].to_numpy(), predict(X.iloc[rows]).to_numpy())["estimate"]
        optimism.append(inside - cs.val_prob(y, predict(X))["estimate"])
    apparent = cs.val_prob(y, fit(X, y)(X))["estimate"]
    wanted = (apparent - pd.concat(optimism, axis=1).mean(axis=1))[table.index]
    np.testing.assert_allclose(table["corrected"], wanted, rtol=1e-9)
    np.testing.assert_allclose(table["apparent"], apparent[table.index], rtol=1e-12)


def test_cross_validation_assesses_rows_left_out():
    X, y = data(3)
    seen = []

    def counted(rows, outcome):
        seen.append(len(rows))
        return fit(rows, outcome)

    table = cs.validate(counted, X.to_numpy(), y.to_numpy(), method="cv", folds=5, rng=1)
    assert seen == [150, *[120] * 5]
    assert table.loc["C (ROC)", "corrected"] < table.loc["C (ROC)", "apparent"]
    again = cs.validate(fit, X, y, method="cv", folds=5, rng=1)
    pd.testing.assert_frame_equal(table, again, rtol=1e-9)


def test_resamples_without_both_outcomes_are_told():
    X, y = data(4, 12)
    y[:] = [1] * 11 + [0]

    def constant(rows, _):
        return lambda wanted: np.full(len(wanted), 0.9)

    with pytest.warns(DataWarning, match="one outcome only") as caught:
        table = cs.validate(constant, X, y, n_resamples=40, rng=1)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert 0 < table.loc["Brier", "n"] < 40
    assert table.loc["Slope", "n"] == 0
    assert np.isnan(table.loc["Slope", "corrected"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "jackknife"}, "method"),
        ({"X": np.zeros((3, 2))}, "one row for each"),
        ({"method": "cv", "folds": 1}, "folds"),
        ({"resamples": [[0, 500]]}, "row numbers"),
        ({"fit": lambda *_: lambda X: np.full(len(X), 2.0)}, r"\[0, 1\]"),
    ],
)
def test_errors_name_the_argument(options, words):
    X, y = data(5)
    with pytest.raises(InputError, match=words):
        cs.validate(**{"fit": fit, "X": X, "y": y, **options})
