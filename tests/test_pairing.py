"""Rows of models are paired by their index, also after some were dropped; names decide which column is a class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import calstat as cs
from calstat.exceptions import CalstatError, InputError

RNG = np.random.default_rng(3)
N = 300
P = RNG.dirichlet([1, 1, 1], N)
LABELS = np.array(list("abc"))[(RNG.random((N, 1)) > np.cumsum(P, axis=1)[:, :-1]).sum(axis=1)]
TABLE = pd.DataFrame(P, columns=list("abc"), index=[f"r{i}" for i in range(N)]).assign(
    label=LABELS, y=(LABELS == "a").astype(int), g=RNG.integers(0, 25, N)
)
TABLE.loc["r3", "a"] = np.nan
GROUPS = TABLE["g"].sample(frac=1, random_state=1)
GRID = [cs.L2(1e-3), cs.L2(1e-1)]


@pytest.mark.parametrize("groups", [GROUPS, GROUPS.to_frame(), TABLE["g"].to_numpy(), GROUPS.drop("r3")])
def test_clusters_follow_the_index_when_rows_were_dropped(groups) -> None:
    wanted = cs.LogisticCalibration.from_formula("y ~ a", TABLE, groups="g").fit("cluster").bse
    found = cs.LogisticCalibration.from_formula("y ~ a", TABLE).fit("cluster", groups=groups).bse
    pd.testing.assert_series_equal(found, wanted)
    dropped = cs.LogisticCalibration(TABLE["y"], TABLE["a"], missing="drop").fit("cluster", groups=groups).bse
    np.testing.assert_allclose(dropped, wanted, rtol=1e-8)


def test_clusters_in_a_frame_of_one_column_follow_the_index() -> None:
    clean = TABLE.dropna()
    groups = clean["g"].sample(frac=1, random_state=1).to_frame()
    wanted = cs.LogisticCalibration(clean["y"], clean["a"], groups=clean["g"]).fit("cluster").bse
    pd.testing.assert_series_equal(
        cs.LogisticCalibration(clean["y"], clean["a"]).fit("cluster", groups=groups).bse, wanted
    )
    model = cs.LogisticCalibration.from_formula("y ~ a", clean, groups=groups)
    np.testing.assert_allclose(model.fit("cluster").bse, wanted, rtol=1e-8)


def test_folds_follow_the_index_when_rows_were_dropped() -> None:
    folds = GROUPS % 3
    model = cs.DirichletCalibration(TABLE["label"], TABLE[list("abc")], missing="drop")
    wanted = model.fit_cv(GRID, folds=(TABLE["g"] % 3).to_numpy()).selection.table
    pd.testing.assert_frame_equal(model.fit_cv(GRID, folds=folds).selection.table, wanted)


@pytest.mark.parametrize("given", [False, True])
def test_rows_of_weight_0_belong_to_no_fold(given) -> None:
    w = RNG.integers(0, 3, N)
    k = w > 0
    folds = np.arange(N) % 3 if given else 3
    kept = folds[k] if given else 3
    weighted = cs.DirichletCalibration(LABELS, P, freq_weights=w).fit_cv(GRID, folds=folds)
    absent = cs.DirichletCalibration(LABELS[k], P[k], freq_weights=w[k]).fit_cv(GRID, folds=kept)
    np.testing.assert_allclose(weighted.selection.table["mean"], absent.selection.table["mean"], rtol=1e-8)


def test_a_fold_of_weight_0_is_no_fold() -> None:
    folds = np.arange(N) % 4
    w = np.where(folds == 3, 0, 1)
    assert "fold 3" not in cs.DirichletCalibration(LABELS, P, freq_weights=w).fit_cv(GRID, folds=folds).selection.table
    with pytest.raises(InputError, match="at least 2 folds"):
        cs.DirichletCalibration(LABELS, P, freq_weights=np.where(folds == 0, 1, 0)).fit_cv(GRID, folds=folds)


@pytest.mark.parametrize("model", [cs.VectorScaling, cs.MatrixScaling, cs.DirichletCalibration])
def test_a_table_that_lacks_a_class_is_not_read_by_position(model) -> None:
    result = model(LABELS, pd.DataFrame(P, columns=list("abc")), **_scores(model)).fit()
    with pytest.raises(CalstatError, match="column"):
        result.predict(pd.DataFrame(P, columns=["b", "c", "x"]))


@pytest.mark.parametrize("model", [cs.VectorScaling, cs.MatrixScaling, cs.DirichletCalibration])
def test_a_map_fitted_to_arrays_reads_the_names_of_classes(model) -> None:
    result = model(LABELS, P, **_scores(model)).fit()
    named = pd.DataFrame(P[:, ::-1], columns=["p_c", "p_b", "p_a"])
    np.testing.assert_allclose(result.predict(named)[list("abc")], result.predict(P), rtol=1e-10)
    np.testing.assert_allclose(result.predict(pd.DataFrame(P, columns=["x", "z", "w"])), result.predict(P), rtol=1e-10)


def _scores(model):
    return {} if model is cs.DirichletCalibration else {"scores": "probability"}


def test_a_computed_score_is_not_read_from_other_columns_after_loading() -> None:
    data = pd.DataFrame({"y": TABLE["y"], "p": 0.1 + 0.8 * RNG.random(N), "x": RNG.random(N)})
    result = cs.LogisticCalibration.from_formula("y ~ logit(p)", data, scores="logit").fit()
    loaded = cs.from_json(result.to_json())
    for new in (data[["p"]], data[["p", "x"]], {"p": data["p"]}):
        with pytest.raises(InputError, match=r"logit\(p\)"):
            loaded.predict(new)


def test_groups_are_cut_as_the_report_is() -> None:
    clean = TABLE.dropna()
    by = np.where(clean["g"] < 12, "low", "high")
    result = cs.report(clean["y"], clean["a"], by=by, strategy="equal_freq", n_resamples=19)
    for name in ("low", "high"):
        part = clean[by == name]
        wanted = cs.ece(part["y"], part["a"], strategy="equal_freq")
        assert result.groups.table.loc[name, "ece"] == pytest.approx(wanted)


@pytest.mark.parametrize("formula", ["label == 'a' ~ p", "Q('label') == 'a' ~ p", "I(t > 0) ~ p"])
def test_a_missing_outcome_is_no_nonevent(formula) -> None:
    data = pd.DataFrame({"label": LABELS, "t": np.where(LABELS == "a", 1.0, -1.0), "p": P[:, 0], "a": np.nan})
    wanted = cs.LogisticCalibration.from_formula(formula, data.iloc[1:]).fit()
    data = data.astype({"label": object})
    data.loc[0, ["label", "t"]] = None
    found = cs.LogisticCalibration.from_formula(formula, data).fit()
    assert found.nobs == N - 1
    np.testing.assert_allclose(found.params, wanted.params, rtol=1e-8)
