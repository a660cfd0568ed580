"""Optimism bootstrap and cross-validation, against R's numbers for given resamples and against plain loops."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

import calstat as cs
from calstat.diagnostics.optimism import optimism_interval
from calstat.exceptions import DataWarning, InputError

STUDY = Path(__file__).parents[1] / "studies" / "optimism_study.py"
REFERENCE = Path(__file__).parent / "reference" / "inference"


def data(seed=1, n=150):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=list("abc")).assign(one=1.0)
    return X, pd.Series((rng.random(n) < 1 / (1 + np.exp(-X["a"]))).astype(int))


def fit(X, y):
    return sm.GLM(y, X, family=sm.families.Binomial()).fit().predict


@pytest.fixture(scope="module")
def study():
    spec = importlib.util.spec_from_file_location("optimism_study", STUDY)
    module = importlib.util.module_from_spec(spec)
    sys.modules["optimism_study"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["optimism_study"]


def exact_fit(X, y):
    """Fit far beyond the default tolerance, so that no two predictions change places."""
    return sm.GLM(y, X, family=sm.families.Binomial()).fit(tol=1e-14).predict


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
    wanted = (apparent - pd.concat(optimism, axis=1).mean(axis=1))[table.index.drop("Log loss")]
    assert [name for name in table.index if name not in apparent] == ["Log loss"]
    np.testing.assert_allclose(table["corrected"].drop("Log loss"), wanted, rtol=1e-9)
    np.testing.assert_allclose(table["apparent"].drop("Log loss"), apparent[wanted.index], rtol=1e-12)
    assert table.loc["Log loss", "apparent"] == pytest.approx(cs.log_loss(y, fit(X, y)(X)), rel=1e-12)


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
        ({"resamples": [[0, 500]]}, r"`resamples` must be .* of 150 row numbers .* shape is \(1, 2\)"),
        ({"resamples": np.zeros((3, 149), int)}, r"`resamples` must be .* of 150 row numbers .* shape is \(3, 149\)"),
        ({"resamples": np.arange(150)}, r"`resamples` must be .* shape is \(150,\)"),
        ({"resamples": np.empty((0, 150), int)}, r"`resamples` must be .* one row at least; its shape is \(0, 150\)"),
        ({"resamples": np.full((2, 150), 500)}, "row numbers, whole numbers from 0 to 149; it holds 500"),
        ({"resamples": np.full((2, 150), -1)}, "row numbers, whole numbers from 0 to 149; it holds -1"),
        ({"resamples": np.full((2, 150), 0.5)}, "row numbers, whole numbers from 0 to 149; it holds 0.5"),
        ({"fit": lambda *_: lambda X: np.full(len(X), 2.0)}, r"\[0, 1\]"),
    ],
)
def test_errors_name_the_argument(options, words):
    X, y = data(5)
    with pytest.raises(InputError, match=words):
        cs.validate(**{"fit": fit, "X": X, "y": y, **options})


@pytest.mark.parametrize("shape", [(149,), (151,), (150, 3), (1, 150), (2, 150), (), (150, 1, 1)])
def test_predictions_of_another_shape_are_refused(shape):
    X, y = data(5)
    for method in ("bootstrap", "cv"):
        with pytest.raises(InputError) as caught:
            cs.validate(lambda *_: lambda _: np.full(shape, 0.5), X, y, method=method, n_resamples=2)
        assert "`fit(X, y)(X)`" in str(caught.value)
        assert f"each of the 150 rows of X; its shape is {shape}" in str(caught.value)
        assert "(150,), or (150, 2)" in str(caught.value)


def test_two_columns_are_distributions():
    X, y = data(5)
    with pytest.raises(InputError, match=r"rows of `fit\(X, y\)\(X\)` must sum to 1"):
        cs.validate(lambda *_: lambda rows: np.full((len(rows), 2), 0.3), X, y, n_resamples=2)


def fit_columns(order, event, make=lambda p, _: p):
    """Fit a model that gives a column for each of two labels."""

    def fitted(rows, labels):
        predict = fit(rows, (np.asarray(labels) == event).astype(int))

        def columns(wanted):
            p = np.asarray(predict(wanted))
            return make(np.column_stack([p if label == event else 1 - p for label in order]), order)

        return columns

    return fitted


@pytest.mark.parametrize("method", ["bootstrap", "cv"])
def test_columns_are_those_of_the_sorted_labels(method):
    X, y = data(3)
    options = {"n_resamples": 3, "folds": 4, "method": method, "rng": 1}
    wanted = cs.validate(fit, X, y, **options)
    for event, other in [(1, 0), (1, -1), (2, 1), (True, False), ("yes", "no"), ("bad", "good")]:
        labels = np.where(y == 1, event, other)
        name = event if isinstance(event, str) else None
        found = cs.validate(fit_columns(sorted([event, other]), event), X, labels, event=name, **options)
        pd.testing.assert_frame_equal(found, wanted)
    # The smaller label is the event: its column is the first.
    found = cs.validate(fit_columns([0, 1], 0), X, 1 - y, event=0, **options)
    pd.testing.assert_frame_equal(found, wanted)
    # scikit-learn sorts the labels of a Categorical too, whatever the order of its levels.
    levels = pd.Series(pd.Categorical(np.where(y == 1, "bad", "good"), categories=["good", "bad"]))
    found = cs.validate(fit_columns(["bad", "good"], "bad"), X, levels, **options)
    pd.testing.assert_frame_equal(found, wanted)
    # Names go before the order.
    named = fit_columns(["yes", "no"], "yes", lambda p, order: pd.DataFrame(p, columns=order))
    found = cs.validate(named, X, np.where(y == 1, "yes", "no"), event="yes", **options)
    pd.testing.assert_frame_equal(found, wanted)
    # One column is the event's.
    found = cs.validate(lambda X, y: lambda rows: np.asarray(fit(X, y)(rows))[:, None], X, y, **options)
    pd.testing.assert_frame_equal(found, wanted)


def test_outcomes_are_aligned_with_a_frame_by_index():
    X, y = data(3)
    wanted = cs.validate(fit, X, y, n_resamples=3, rng=1)
    shuffled = y.sample(frac=1, random_state=1)
    pd.testing.assert_frame_equal(cs.validate(fit, X, shuffled, n_resamples=3, rng=1), wanted)
    pd.testing.assert_frame_equal(cs.validate(fit, X, shuffled.to_frame(), n_resamples=3, rng=1), wanted)
    # Without an index on both sides rows are paired by position.
    pd.testing.assert_frame_equal(cs.validate(fit, X.set_axis(X.index + 7), y.to_numpy(), n_resamples=3, rng=1), wanted)
    with pytest.raises(InputError, match=r"`X` .* and `y` .* have different index labels"):
        cs.validate(fit, X, y.set_axis(y.index + 7), n_resamples=3)


def by_hand(X, y, resamples):
    """C, slope and Brier score of refits: on their resamples, and on all rows."""
    names = ["C (ROC)", "Slope", "Brier"]
    inside, outside = [], []
    for rows in resamples:
        p = fit(X.iloc[rows], y.iloc[rows])(X).to_numpy()
        inside.append(cs.val_prob(y.to_numpy()[rows], p[rows])["estimate"][names])
        outside.append(cs.val_prob(y, p)["estimate"][names])
    return np.array(inside).T, np.array(outside).T


def test_intervals_are_quantiles_of_the_optimism():
    X, y = data(6)
    resamples = np.random.default_rng(7).integers(0, 150, (39, 150))
    (c, _, brier), (c_test, slope_test, brier_test) = by_hand(X, y, resamples)
    table = cs.validate(fit, X, y, resamples=resamples)
    # With 39 draws the quantiles at 2.5 and 97.5% are the smallest and the largest. The slope of a maximum likelihood
    # fit is 1 on its own rows, so that its optimism varies with the slope on all rows alone.
    limits = table[["ci_low", "ci_high"]].astype(float)
    np.testing.assert_allclose(limits.loc["Slope"], [slope_test.min(), slope_test.max()], rtol=1e-6)
    apparent = table["apparent"]
    optimism = np.arcsin(2 * c - 1) - np.arcsin(2 * c_test - 1)
    ends = np.sin(np.arcsin(apparent["Dxy"]) - np.array([optimism.max(), optimism.min()]))
    np.testing.assert_allclose(limits.loc["Dxy"], ends, rtol=1e-9)
    np.testing.assert_allclose(limits.loc["C (ROC)"], (1 + ends) / 2, rtol=1e-9)
    optimism = np.sqrt(brier) - np.sqrt(brier_test)
    ends = (np.sqrt(apparent["Brier"]) - np.array([optimism.max(), optimism.min()])) ** 2
    np.testing.assert_allclose(limits.loc["Brier"], ends, rtol=1e-9)
    named = table.index[table["ci_method"] == "optimism"]
    assert set(table.index.drop(named)) == {"R2", "U", "Q", "Emax", "E90", "Eavg"}
    assert list(table.index[table["ci_low"].notna()]) == list(named)
    wider = cs.validate(fit, X, y, resamples=resamples, alpha=0.2)
    assert (wider["ci_high"] - wider["ci_low"] < table["ci_high"] - table["ci_low"])["Slope"]


def test_published_intervals_are_plain_loops():
    X, y = data(8, 60)
    resamples = np.random.default_rng(9).integers(0, 60, (39, 60))
    (c, _, brier), (_, _, brier_test) = by_hand(X, y, resamples)
    shifted = cs.validate(fit, X, y, resamples=resamples, ci_method="location_shifted")
    lag = np.mean(brier - brier_test)
    wanted = [brier.min() - lag, brier.max() - lag]
    np.testing.assert_allclose(shifted.loc["Brier", ["ci_low", "ci_high"]].astype(float), wanted, rtol=1e-9)
    two = cs.validate(fit, X, y, resamples=resamples, ci_method="two_stage", n_inner=2, rng=3)
    rng = np.random.default_rng(3)
    corrected = []
    for b, rows in enumerate(resamples):
        inside, outside = by_hand(X.iloc[rows], y.iloc[rows], rng.integers(0, 60, (2, 60)))
        corrected.append(c[b] - np.mean(inside[0] - outside[0]))
    wanted = [min(corrected), max(corrected)]
    np.testing.assert_allclose(two.loc["C (ROC)", ["ci_low", "ci_high"]].astype(float), wanted, rtol=1e-9)
    for table in (shifted, two):
        assert np.isnan(table.loc[["Slope", "Intercept", "Intercept (slope 1)", "U"], "ci_low"]).all()
        assert table.loc["Slope", "ci_method"].startswith("none: ")


def test_what_has_no_interval_says_why():
    X, y = data(5)
    table = cs.validate(fit, X, y, n_resamples=38, rng=1)
    assert table["ci_low"].isna().all()
    assert table.loc["Slope", "ci_method"] == "none: takes 39 resamples that determine it, 38 do"
    assert "bounded by 0" in table.loc["Emax", "ci_method"]
    assert "penalised" in table.loc["U", "ci_method"]
    assert np.isfinite(cs.validate(fit, X, y, n_resamples=38, alpha=0.1, rng=1).loc["Slope", "ci_low"])
    assert (
        cs.validate(fit, X, y, n_resamples=2, ci_method=None, rng=1)["ci_method"] == "none: none was asked for"
    ).all()


def test_resamples_of_resamples_without_both_outcomes_are_told():
    X, y = data(4, 12)
    y[:] = [1] * 9 + [0] * 3
    resamples = np.tile(np.arange(12), (2, 1))

    def constant(rows, _):
        return lambda wanted: np.full(len(wanted), 0.7)

    with pytest.warns(DataWarning, match="of 100 resamples of resamples hold one outcome only") as caught:
        cs.validate(constant, X, y, resamples=resamples, ci_method="two_stage", rng=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_labels_and_categories_name_the_event():
    X, y = data(3)
    options = {"n_resamples": 3, "rng": 1}
    numbers = cs.validate(fit, X, y, **options)

    def fit_labels(rows, labels):
        return fit(rows, np.asarray(labels) == "yes")

    words = np.where(y == 1, "yes", "no")
    pd.testing.assert_frame_equal(cs.validate(fit_labels, X, words, event="yes", **options), numbers)
    ordered = pd.Series(pd.Categorical(words, categories=["no", "yes"]))
    pd.testing.assert_frame_equal(cs.validate(fit_labels, X, ordered, **options), numbers)


def test_the_study_measures_the_intervals_of_validate(study):
    cell = study.Cell(200, 4, 0.3)
    X, probability = study.population(cell)
    rng = np.random.default_rng(5)
    rows = rng.integers(0, study.POPULATION, cell.n)
    X, y = X[rows], (rng.random(cell.n) < probability[rows]).astype(float)
    resamples = rng.integers(0, cell.n, (40, cell.n))
    counts = np.array([np.bincount(r, minlength=cell.n) for r in resamples]).astype(float)
    found = study.by_bootstrap(cell, X, y, counts)
    for method in ("optimism", "location_shifted"):
        table = cs.validate(exact_fit, X, y, resamples=resamples, ci_method=method)
        assert set(study.INDEXES) - set(study.WITH_LIMITS) == {"R2", "Q", "U"}
        for name in study.WITH_LIMITS if method == "optimism" else ("C (ROC)", "Brier", "Log loss", "D"):
            limits = table.loc[name, ["ci_low", "ci_high"]].astype(float)
            # Newton's method of the study stops at steps of 1e-6, which leave errors of their squares.
            np.testing.assert_allclose(limits, found[method, name], rtol=1e-6, atol=1e-8, err_msg=name)


def test_the_population_of_the_study_has_the_wanted_share(study):
    assert study.population(study.Cell(100, 6, 0.2))[1].mean() == pytest.approx(0.2, abs=1e-9)


def test_intervals_hold_the_index_of_this_model(study):
    rows = {(row[4], row[5]): row for row in study.measure(study.Cell(200, 8, 0.3), "quick", 100)}
    for name in study.WITH_LIMITS:
        _, _, runs, below, above, none, *_ = rows["optimism", name][4:]
        assert runs == 100
        assert none == 0
        # At a coverage of 93% more than 14 misses in 100 come once in 100 times.
        assert below + above <= 14, name
    # The published interval has no width for an index that the fit makes 1 on its own rows.
    assert rows["location_shifted", "Slope"][7] + rows["location_shifted", "Slope"][8] >= 95


def test_limits_of_an_intercept_allow_for_the_number_of_events() -> None:
    # Refits that are off by log(N / N*) with N = 100 and quantiles of N* at 80 and 120: the limits of log(mu / N) of a
    # rare event are plus and minus 0.2, as far as Wald's go. With rare non-events the other side is the far one.
    training, test = np.zeros(39), -np.log(np.linspace(0.8, 1.2, 39))
    for name in ("Intercept", "Intercept (slope 1)"):
        assert optimism_interval(name, "optimism", 0.1, training, test, training, 0.05, 0.0)[:2] == pytest.approx(
            (0.1 - 0.2, 0.1 + 0.2)
        )
        rare_others = optimism_interval(name, "optimism", 0.1, training, -test, training, 0.05, 1.0)
        assert rare_others[:2] == pytest.approx((0.1 - 0.2, 0.1 + 0.2))
        even = optimism_interval(name, "optimism", 0.1, training, test, training, 0.05, 0.5)
        assert even[:2] == pytest.approx((0.1 - np.log(1.2), 0.1 - np.log(0.8)))
    assert optimism_interval("Intercept", "optimism", 0.0, training, test - 1e4, training, 0.05, 0.1)[0] == -np.inf


def test_limits_of_d_are_as_far_on_either_side() -> None:
    training, test = np.zeros(39), -(np.linspace(0.0, 1.0, 39) ** 2)
    low, high, _ = optimism_interval("D", "optimism", 0.6, training, test, training, 0.05, 0.3)
    assert (low, high) == pytest.approx((0.6 - 0.25 - 0.5, 0.6 - 0.25 + 0.5))
