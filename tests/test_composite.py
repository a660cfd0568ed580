"""One-vs-rest and cross-validated calibration: definitions, labels, weights, storage, warnings, errors."""

from __future__ import annotations

import copy
import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import special

import calstat as cs
from calstat.exceptions import (
    DataWarning,
    InputError,
    LabelError,
    NotDefinedError,
    NotEstimableError,
    ProbabilityError,
    SeparationWarning,
)

BINARY = [
    cs.PlattScaling,
    cs.LogisticCalibration,
    cs.BetaCalibration,
    cs.TemperatureScaling,
    cs.IsotonicCalibration,
    cs.HistogramBinning,
]
SCALE = {
    cs.PlattScaling: {"scores": "probability"},
    cs.TemperatureScaling: {"scores": "probability"},
    cs.IsotonicCalibration: {"smoothing": 1},
    cs.HistogramBinning: {"smoothing": 1, "bins": 5},
}
MULTI = [cs.TemperatureScaling, cs.VectorScaling, cs.MatrixScaling, cs.DirichletCalibration, cs.OneVsRest]


def binary(n=120, seed=0):
    rng = np.random.default_rng(seed)
    p = special.expit(1.2 * rng.standard_normal(n))
    return (rng.random(n) < special.expit(0.6 * special.logit(p) + 0.2)).astype(int), p


def multiclass(n=150, seed=0, K=3):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(K), n)
    y = np.array([rng.choice(K, p=q) for q in P**0.7 / (P**0.7).sum(axis=1, keepdims=True)])
    return y, P


def frame(n=150, seed=0):
    """Labels as strings, columns out of the alphabetical order of classes, an index of its own."""
    y, P = multiclass(n, seed)
    table = pd.DataFrame(P, columns=["p_sea", "p_air", "p_land"], index=np.arange(n) + 1000)
    table["way"] = np.array(["sea", "air", "land"])[y]
    return table


COLUMNS = ["p_sea", "p_air", "p_land"]
FORMULA = "way ~ p_sea + p_air + p_land"


def scores_of(method):
    return {"scores": "probability"} if method in {cs.TemperatureScaling, cs.VectorScaling, cs.MatrixScaling} else {}


# -- one-vs-rest ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", BINARY)
def test_one_vs_rest_is_binary_maps_divided_by_their_sum(base):
    y, P = multiclass()
    res = cs.OneVsRest(y, P, base, **SCALE.get(base, {})).fit()
    parts = [base((y == k).astype(int), P[:, k], **SCALE.get(base, {})).fit() for k in range(3)]
    q = np.stack([part.predict(P[:, k]) for k, part in enumerate(parts)], axis=1)
    np.testing.assert_allclose(res.predict(P), q / q.sum(axis=1, keepdims=True), rtol=1e-12)
    np.testing.assert_array_equal(res.fittedvalues, res.predict(P))
    assert res.llf == pytest.approx(np.log(np.asarray(res.predict(P))[np.arange(150), y]).sum(), rel=1e-12)
    for k, part in enumerate(parts):
        np.testing.assert_allclose(res.results[k].predict(P[:, k]), part.predict(P[:, k]), rtol=1e-12)
        assert res.results[k].event == k if base is not cs.TemperatureScaling else res.results[k].classes[1] == k
    table = res.table()
    assert table.index.get_level_values(0).unique().tolist() == [0, 1, 2]
    text = res.summary().as_text()
    assert base.__name__ in text
    assert "Classes" in text


def test_rows_of_zeros_are_uniform_without_a_numpy_warning():
    P = [[0.8, 0.1, 0.1], [0.5, 0.4, 0.1], [0.1, 0.8, 0.1], [0.1, 0.5, 0.4], [0.1, 0.1, 0.8], [0.4, 0.1, 0.5]]
    res = cs.OneVsRest([0, 0, 1, 1, 2, 2], P, cs.IsotonicCalibration).fit()
    with pytest.warns(DataWarning, match="smoothing=1") as caught:
        predicted = res.predict([[1 / 3] * 3, [0.8, 0.1, 0.1]])
    assert len(caught) == 1
    np.testing.assert_allclose(predicted, [[1 / 3] * 3, [1.0, 0.0, 0.0]], rtol=1e-12)
    smooth = cs.OneVsRest([0, 0, 1, 1, 2, 2], P, cs.IsotonicCalibration, smoothing=1).fit()
    assert smooth.n_zero == 0
    assert np.asarray(smooth.predict([[1 / 3] * 3])).min() > 0


def test_zeros_are_counted():
    y, P = multiclass()
    res = cs.OneVsRest(y, P, cs.IsotonicCalibration).fit()
    fitted = np.asarray(res.fittedvalues)
    assert res.n_zero == (fitted == 0).sum() > 0
    assert res.n_uniform == 0


def test_one_vs_rest_reads_labels_by_column_name_and_keeps_index_and_order():
    table = frame()
    by_formula = cs.OneVsRest.from_formula(FORMULA, table).fit()
    by_arrays = cs.OneVsRest(table["way"], table[COLUMNS]).fit()
    shuffled = table.sample(frac=1, random_state=1)
    by_shuffled = cs.OneVsRest(table["way"], shuffled[["p_land", "p_sea", "p_air"]].loc[table.index]).fit()
    assert by_formula.classes == by_arrays.classes == ("sea", "air", "land")
    assert by_shuffled.classes == ("land", "sea", "air")
    q = by_formula.predict(shuffled)
    assert q.index.equals(shuffled.index)
    assert list(q.columns) == ["sea", "air", "land"]
    pd.testing.assert_frame_equal(q.loc[table.index], by_formula.fittedvalues)
    np.testing.assert_allclose(by_arrays.predict(table), by_formula.fittedvalues)
    np.testing.assert_allclose(by_shuffled.predict(table)[["sea", "air", "land"]], by_formula.fittedvalues, rtol=1e-9)
    assert by_formula.results["air"].event == "air"
    text = by_formula.summary().as_text()
    assert "p_land" in text
    assert "sea: a" in text
    gone = table.copy()
    gone.loc[1003, "p_air"] = np.nan
    assert by_formula.predict(gone).isna().all(axis=1).sum() == 1
    dropped = cs.OneVsRest.from_formula(FORMULA, gone).fit()
    assert dropped.nobs == 149
    assert "Rows dropped" in dropped.summary().as_text()


@pytest.mark.parametrize("base", [cs.BetaCalibration, cs.IsotonicCalibration, cs.HistogramBinning])
def test_one_vs_rest_weights_are_repetition(base):
    y, P = multiclass(90)
    w = np.random.default_rng(3).integers(0, 4, 90)
    weighted = cs.OneVsRest(y, P, base, freq_weights=w).fit()
    repeated = cs.OneVsRest(np.repeat(y, w), np.repeat(P, w, axis=0), base).fit()
    present = P[w > 0]
    np.testing.assert_allclose(weighted.predict(present), repeated.predict(present), rtol=1e-8, atol=1e-12)
    assert weighted.llf == pytest.approx(repeated.llf, rel=1e-10)
    assert (weighted.nobs, weighted.n_zero) == (repeated.nobs, repeated.n_zero)
    np.testing.assert_allclose(weighted.table(), repeated.table(), rtol=1e-6, atol=1e-9)


def test_options_and_clusters_reach_the_maps():
    y, P = multiclass()
    groups = np.arange(150) // 5
    res = cs.OneVsRest(y, P, cs.LogisticCalibration, groups=groups).fit(cov_type="cluster")
    one = cs.LogisticCalibration((y == 1).astype(int), P[:, 1], groups=groups).fit(cov_type="cluster")
    np.testing.assert_allclose(res.results[1].bse, one.bse, rtol=1e-10)
    late = cs.OneVsRest(y, P, cs.LogisticCalibration).fit(cov_type="cluster", groups=groups)
    np.testing.assert_allclose(late.results[1].bse, one.bse, rtol=1e-10)


def test_many_warnings_are_told_once_at_the_line_of_the_user():
    P = np.full((9, 3), 0.1)
    P[np.arange(9), np.arange(9) % 3] = np.linspace(0.7, 0.8, 9)
    with pytest.warns(SeparationWarning, match=r"3 of 3 fits warned \(class 0, class 1, class 2\)") as caught:
        cs.OneVsRest(np.arange(9) % 3, P).fit()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_one_vs_rest_errors():
    y, P = multiclass()
    with pytest.raises(NotEstimableError, match=r"every class to occur; 3"):
        cs.OneVsRest(y, np.c_[P[:, :2], P[:, 2:] / 2, P[:, 2:] / 2])
    with pytest.raises(InputError, match="matrix"):
        cs.OneVsRest(y, P[:, 0])
    with pytest.raises(ProbabilityError, match=r"class 1: .*1.5"):
        cs.OneVsRest(y, np.where([False, True, False], 1.5, P))
    with pytest.raises(InputError, match="`base` must be a class"):
        cs.OneVsRest(y, P, "beta")
    with pytest.raises(InputError, match="one score per class"):
        cs.OneVsRest(y, P, cs.DirichletCalibration)
    with pytest.raises(TypeError, match="bins"):
        cs.OneVsRest(y, P, bins=3)
    with pytest.raises(LabelError):
        cs.OneVsRest(np.array(["a", "b", "c", "d"] * 25), P[:100])
    res = cs.OneVsRest(y, P).fit()
    with pytest.raises(InputError, match=r"3 column\(s\)"):
        res.predict(P[:, :2])
    with pytest.raises(NotEstimableError, match="JSON"):
        cs.from_json(res.to_json()).predict()


# -- cross-validation ----------------------------------------------------------------------------------


def test_out_of_fold_predictions_are_those_of_models_without_the_fold():
    y, p = binary()
    index = pd.Index(np.arange(120) * 3, name="patient")
    folds = np.array(["north", "south", "west"])[np.random.default_rng(0).integers(0, 3, 120)]
    res = cs.CrossValidatedCalibration(
        pd.Series(y, index=index), pd.Series(p, index=index), cs.BetaCalibration, folds=folds
    ).fit()
    assert list(res.fold_results) == ["north", "south", "west"]
    assert res.oof_predictions.index.equals(index)
    assert res.folds.tolist() == folds.tolist()
    for fold in ("north", "south", "west"):
        out = folds == fold
        alone = cs.BetaCalibration(y[~out], p[~out]).fit()
        np.testing.assert_allclose(res.oof_predictions[out], alone.predict(p[out]), rtol=1e-12)
        np.testing.assert_allclose(res.fold_results[fold].params, alone.params, rtol=1e-12)
    whole = cs.BetaCalibration(y, p).fit()
    np.testing.assert_allclose(res.predict(p), whole.predict(p), rtol=1e-12)
    pd.testing.assert_series_equal(res.final.params, whole.params)


def test_default_folds_are_dealt_in_row_order_within_each_class():
    y, p = binary()
    res = cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=4).fit()
    for k in (0, 1):
        assert res.folds[y == k].tolist() == [i % 4 for i in range((y == k).sum())]
    again = cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=4).fit()
    np.testing.assert_array_equal(res.oof_predictions, again.oof_predictions)


def test_shuffled_folds_are_stratified_and_repeat_with_their_seed():
    y, p = binary()
    fit = [
        cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, shuffle=True, rng=seed).fit() for seed in (4, 4, 5)
    ]
    np.testing.assert_array_equal(fit[0].oof_predictions, fit[1].oof_predictions)
    assert (fit[0].folds != fit[2].folds).any()
    table = pd.crosstab(fit[0].folds, y)
    assert (table.max() - table.min()).max() <= 1


def test_ensemble_averages_the_maps_of_the_folds():
    y, P = multiclass()
    res = cs.CrossValidatedCalibration(y, P, cs.DirichletCalibration, folds=3, ensemble=True).fit()
    mean = np.mean([part.predict(P) for part in res.fold_results.values()], axis=0)
    np.testing.assert_allclose(res.predict(P), mean, rtol=1e-14)
    np.testing.assert_allclose(res.predict(), mean, rtol=1e-12)
    np.testing.assert_allclose(np.asarray(res.predict(P)).sum(axis=1), 1.0, rtol=1e-12)
    plain = cs.CrossValidatedCalibration(y, P, cs.DirichletCalibration, folds=3).fit()
    np.testing.assert_array_equal(plain.oof_predictions, res.oof_predictions)
    table = frame()
    named = cs.CrossValidatedCalibration.from_formula(
        FORMULA, table, method=cs.DirichletCalibration, ensemble=True
    ).fit()
    assert named.predict(table.head(4)).index.equals(table.index[:4])
    assert list(named.predict(table.head(4)).columns) == list(named.oof_predictions.columns) == ["sea", "air", "land"]


@pytest.mark.parametrize("method", BINARY)
def test_it_works_for_every_binary_map(method):
    y, p = binary()
    options = SCALE.get(method, {})
    labels = pd.Series(np.where(y == 1, "ill", "well"))
    res = cs.CrossValidatedCalibration(labels, pd.Series(p), method, folds=3, event="ill", **options).fit()
    plain = cs.CrossValidatedCalibration(y, p, method, folds=3, **options).fit()
    np.testing.assert_allclose(res.oof_predictions, plain.oof_predictions, rtol=1e-12)
    table = res.fold_table()
    assert list(table.columns) == [0, 1, 2, "mean", "sd", "final"]
    np.testing.assert_allclose(table["sd"], table[[0, 1, 2]].std(axis=1, ddof=1))
    assert res.metrics.loc["log_loss", "out_of_fold"] == pytest.approx(cs.log_loss(y, plain.oof_predictions))
    assert res.metrics.loc["brier_score", "same_rows"] == pytest.approx(cs.brier_score(y, plain.predict(p)))
    loaded = cs.from_json(res.to_json())
    assert loaded.summary().as_text() == res.summary().as_text()
    np.testing.assert_array_equal(loaded.predict(p), res.predict(p))


@pytest.mark.parametrize("method", MULTI)
def test_it_works_for_every_multiclass_map(method):
    table = frame()
    options = {"base": cs.IsotonicCalibration, "smoothing": 1} if method is cs.OneVsRest else scores_of(method)
    res = cs.CrossValidatedCalibration(table["way"], table[COLUMNS], method, folds=3, **options).fit()
    assert res.oof_predictions.index.equals(table.index)
    assert list(res.oof_predictions.columns) == ["sea", "air", "land"]
    np.testing.assert_allclose(res.oof_predictions.sum(axis=1), 1.0, rtol=1e-12)
    out = res.folds == 1
    alone = method(table["way"][~out], table.loc[~out, COLUMNS], **options).fit()
    np.testing.assert_allclose(res.oof_predictions[out], alone.predict(table[out]), rtol=1e-9)
    expected = cs.log_loss(table["way"], res.oof_predictions, classes=["sea", "air", "land"])
    assert res.metrics.loc["log_loss", "out_of_fold"] == pytest.approx(expected)
    folds = res.fold_metrics
    assert np.average(folds["log_loss"], weights=folds["n"]) == pytest.approx(expected)
    loaded = cs.from_json(res.to_json())
    assert loaded.summary().as_text() == res.summary().as_text()
    pd.testing.assert_frame_equal(loaded.predict(table), res.predict(table))
    pd.testing.assert_frame_equal(loaded.fold_table(), res.fold_table())


def test_penalties_are_chosen_anew_in_each_fold():
    y, P = multiclass()
    grid = [cs.ODIR(0.01), cs.ODIR(1.0)]
    model = cs.CrossValidatedCalibration(y, P, cs.DirichletCalibration, folds=3)
    res = model.fit_cv(penalties=grid)
    for fold, part in res.fold_results.items():
        out = res.folds == fold
        alone = cs.DirichletCalibration(y[~out], P[~out]).fit_cv(penalties=grid)
        assert part.selection.chosen == alone.selection.chosen
        np.testing.assert_allclose(res.oof_predictions[out], alone.predict(P[out]), rtol=1e-9)
    assert res.fold_metrics["penalty"].str.startswith("ODIR").all()
    assert "penalty" in res.summary().as_text()
    with pytest.raises(NotDefinedError, match="no penalty"):
        cs.CrossValidatedCalibration(*binary(), cs.BetaCalibration).fit_cv()


def test_weights_go_to_all_fits_and_equal_rows_in_the_same_fold():
    y, p = binary(60)
    w = np.random.default_rng(1).integers(0, 3, 60)
    w[:6] = 2
    folds = np.arange(60) % 3
    weighted = cs.CrossValidatedCalibration(y, p, cs.PlattScaling, folds=folds, freq_weights=w, scores="probability")
    repeated = cs.CrossValidatedCalibration(
        np.repeat(y, w), np.repeat(p, w), cs.PlattScaling, folds=np.repeat(folds, w), scores="probability"
    )
    a, b = weighted.fit(), repeated.fit()
    np.testing.assert_allclose(np.repeat(a.oof_predictions, w), b.oof_predictions, rtol=1e-9)
    np.testing.assert_allclose(a.fold_table(), b.fold_table(), rtol=1e-8)
    np.testing.assert_allclose(a.fold_metrics, b.fold_metrics, rtol=1e-9)
    np.testing.assert_allclose(a.metrics, b.metrics, rtol=1e-6, atol=1e-9)
    # Rows of weight 0 are absent: they move no other row to another fold.
    absent = w == 0
    dealt = cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, folds=3, freq_weights=w).fit()
    without = cs.CrossValidatedCalibration(
        y[~absent], p[~absent], cs.BetaCalibration, folds=3, freq_weights=w[~absent]
    ).fit()
    np.testing.assert_array_equal(dealt.folds[~absent], without.folds)
    np.testing.assert_allclose(dealt.oof_predictions[~absent], without.oof_predictions, rtol=1e-9)


def test_a_formula_with_computed_terms_names_of_columns_and_dropped_rows():
    y, p = binary()
    table = pd.DataFrame({"y": y, "p": p, "site": np.arange(120) % 4, "n": 1}, index=np.arange(120) + 7)
    table.loc[[9, 20], "p"] = np.nan
    res = cs.CrossValidatedCalibration.from_formula(
        "y ~ logit(p)", table, method=cs.PlattScaling, folds="site", freq_weights="n", scores="logit"
    ).fit()
    assert res.folds.tolist() == table["site"].drop([9, 20]).tolist()
    assert res.oof_predictions.index.equals(table.index.drop([9, 20]))
    assert res.predict(table).isna().sum() == 2
    kept = table.dropna()
    direct = cs.CrossValidatedCalibration(
        kept["y"], special.logit(kept["p"]), cs.PlattScaling, folds=kept["site"], scores="logit"
    ).fit()
    np.testing.assert_allclose(res.oof_predictions, direct.oof_predictions, rtol=1e-9)


def test_two_columns_of_probabilities_give_the_events():
    y, p = binary()
    pair = np.column_stack([1 - p, p])
    res = cs.CrossValidatedCalibration(y, pair, cs.IsotonicCalibration).fit()
    plain = cs.CrossValidatedCalibration(y, p, cs.IsotonicCalibration).fit()
    np.testing.assert_allclose(res.oof_predictions, plain.oof_predictions)
    both = pd.DataFrame({"yes": p, "no": 1 - p})
    named = cs.CrossValidatedCalibration(np.where(y == 1, "yes", "no"), both, cs.BetaCalibration, event="yes").fit()
    plain = cs.CrossValidatedCalibration(y, p, cs.BetaCalibration).fit()
    np.testing.assert_allclose(named.oof_predictions, plain.oof_predictions, rtol=1e-9)


def test_zeros_on_what_happened_are_counted():
    p = np.linspace(0.05, 0.95, 40)
    y = (p > 0.5).astype(int)
    y[0] = 1  # an event at the lowest score, to which the map without its fold gives probability 0
    res = cs.CrossValidatedCalibration(y, p, cs.IsotonicCalibration).fit()
    oof = np.asarray(res.oof_predictions)
    expected = ((oof == 0) & (y == 1)).sum() + ((oof == 1) & (y == 0)).sum()
    assert res.n_zero == expected > 0
    assert "smoothing=1" in res.summary().as_text()


@pytest.mark.parametrize("ensemble", [False, True])
def test_copies_and_stored_maps_predict_the_same(ensemble):
    y, p = binary()
    res = cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, ensemble=ensemble).fit()
    for other in (pickle.loads(pickle.dumps(res)), copy.deepcopy(res)):
        np.testing.assert_array_equal(other.oof_predictions, res.oof_predictions)
        assert other.summary().as_text() == res.summary().as_text()
    loaded = cs.from_json(res.to_json())
    np.testing.assert_array_equal(loaded.predict(p), res.predict(p))
    assert "tabular" in loaded.summary().as_latex()
    for ask in ("oof_predictions", "folds"):
        with pytest.raises(NotEstimableError, match="JSON"):
            getattr(loaded, ask)
    nested = cs.CrossValidatedCalibration(*multiclass(), cs.OneVsRest, folds=2).fit()
    text = nested.to_json()
    assert cs.from_json(text).to_json() == text
    with pytest.raises(InputError, match=r"damaged|incomplete|unknown kind"):
        cs.from_json(text.replace('"kind": "BetaCalibration"', '"kind": "Nonsense"'))


def test_pictures():
    y, p = binary()
    res = cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, folds=3).fit()
    axes = res.plot().axes[0]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["all rows", "without one fold"]
    assert len(axes.lines) == 5  # identity, final map, three folds
    one_vs_rest = cs.CrossValidatedCalibration(*multiclass(), cs.OneVsRest, folds=2).fit()
    assert [a.get_title(loc="left") or a.get_title() for a in one_vs_rest.plot().axes] == ["0", "1", "2"]
    with pytest.raises(NotDefinedError, match="reliability_diagram"):
        cs.CrossValidatedCalibration(*multiclass(), cs.VectorScaling, folds=2, scores="probability").fit().plot()


def test_warnings_of_the_folds_are_told_once():
    p = np.r_[np.linspace(0.1, 0.45, 10), np.linspace(0.55, 0.9, 10)]
    y = np.repeat([0, 1], 10)
    with pytest.warns(SeparationWarning, match=r"5 of 5 fits warned \(all rows, without fold 0") as caught:
        cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, folds=4).fit()
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_other_warnings_pass_through():
    class Loud(cs.BetaCalibration):
        def fit(self, **options):
            warnings.warn("not ours", UserWarning, stacklevel=1)
            return super().fit(**options)

    with pytest.warns(UserWarning, match="not ours"):
        cs.CrossValidatedCalibration(*binary(), Loud, folds=2).fit()


@pytest.mark.parametrize(
    ("folds", "message"),
    [
        (1, "at least 2"),
        (2.5, "whole number"),
        (None, "whole number"),
        (4, "rows of the smallest class, 1 with 3"),
        ([0, 1], "one label per row"),
        ([0] * 12, "at least 2 folds"),
        ("site", "not a column"),
    ],
)
def test_folds_that_cannot_be_used(folds, message):
    y, p = np.r_[np.zeros(9), np.ones(3)].astype(int), np.linspace(0.1, 0.9, 12)
    with pytest.raises(InputError, match=message):
        cs.CrossValidatedCalibration(y, p, cs.LogisticCalibration, folds=folds)


def test_cross_validation_errors():
    y, p = binary()
    folds = np.where(y == 1, 0, np.arange(120) % 3)
    with pytest.raises(NotEstimableError, match=r"fold 0 holds all \d+ rows of class 1"):
        cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, folds=folds)
    with pytest.raises(NotEstimableError, match="every outcome"):
        cs.CrossValidatedCalibration(np.ones(10), np.linspace(0.1, 0.9, 10), cs.PlattScaling)
    with pytest.raises(InputError, match="one or two columns"):
        cs.CrossValidatedCalibration(*multiclass(), cs.BetaCalibration)
    with pytest.raises(InputError, match="two or more columns"):
        cs.CrossValidatedCalibration(y, p, cs.VectorScaling)
    with pytest.raises(ProbabilityError):
        cs.CrossValidatedCalibration(y, p * 2, cs.BetaCalibration)
    with pytest.raises(InputError, match="`method` must be a class"):
        cs.CrossValidatedCalibration(y, p, "beta")
    with pytest.raises(InputError, match="constructor"):
        cs.CrossValidatedCalibration(y, p, cs.BetaCalibration).fit(cov_type="cluster", groups=np.arange(120))
    with pytest.raises(TypeError):
        cs.CrossValidatedCalibration(y, p, cs.BetaCalibration, bins=3)


# -- print ---------------------------------------------------------------------------------------------

SNAPSHOTS = Path(__file__).parent / "snapshots"


@pytest.mark.parametrize(
    ("name", "model", "options"),
    [
        ("one_vs_rest", cs.OneVsRest, {}),
        ("one_vs_rest_isotonic", cs.OneVsRest, {"base": cs.IsotonicCalibration}),
        ("cross_validated", cs.CrossValidatedCalibration, {"method": cs.VectorScaling, "scores": "probability"}),
        (
            "cross_validated_histogram",
            cs.CrossValidatedCalibration,
            {"method": cs.OneVsRest, "base": cs.HistogramBinning, "bins": 4, "folds": 3, "ensemble": True},
        ),
    ],
)
def test_summaries_read_as_they_did(name, model, options):
    text = str(model.from_formula(FORMULA, frame(), **options).fit().summary()) + "\n"
    assert text == (SNAPSHOTS / f"summary_{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 100
