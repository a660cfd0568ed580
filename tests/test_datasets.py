"""The shipped data: shape, honesty of the probabilities, and agreement with the script that makes them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm

from calstat import datasets
from calstat.datasets import load_heart_disease, load_vehicle

ROOT = Path(__file__).parents[1]
FOLDER = Path(datasets.__file__).parent


def _slope(y: pd.Series, p: pd.Series) -> float:
    return float(sm.Logit(y, sm.add_constant(np.log(p / (1 - p)))).fit(disp=False).params.iloc[1])


def test_heart_disease_is_the_documented_table() -> None:
    df = load_heart_disease()
    assert df.shape == (297, 7)
    assert df["disease"].sum() == 137
    assert set(df["disease"]) == {0, 1}
    assert set(df["sex"]) == {"female", "male"}
    assert not df.isna().to_numpy().any()
    for column in ("p_logistic", "p_naive_bayes"):
        assert df[column].between(0, 1, inclusive="neither").all()


def test_heart_disease_holds_one_fair_and_one_overconfident_model() -> None:
    df = load_heart_disease()
    # Calibration slopes: 1 is calibrated. The docs rely on this order, not on the digits.
    assert 0.6 < _slope(df["disease"], df["p_logistic"]) < 1
    assert _slope(df["disease"], df["p_naive_bayes"]) < 0.4


def test_vehicle_is_the_documented_table() -> None:
    df = load_vehicle()
    assert list(df.columns) == ["vehicle", "p_bus", "p_opel", "p_saab", "p_van"]
    assert df["vehicle"].value_counts().to_dict() == {"bus": 218, "saab": 217, "opel": 212, "van": 199}
    P = df.drop(columns="vehicle").to_numpy()
    assert (P == 0).sum() == 222
    assert (P == 1).sum() == 70
    assert P.min() >= 0
    assert np.abs(P.sum(axis=1) - 1).max() < 1e-12  # rounding of four doubles


def test_each_call_gives_a_fresh_frame() -> None:
    first = load_heart_disease()
    first["disease"] = -1
    assert set(load_heart_disease()["disease"]) == {0, 1}


@pytest.mark.parametrize("name", ["heart_disease", "vehicle"])
def test_licence_stands_beside_the_data(name: str) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if f"`{name}.csv`" in line)
    assert "CC BY 4.0" in row


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_datasets", ROOT / "docs/scripts/make_datasets.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_folds_are_balanced_and_hold_each_row_once(maker: ModuleType) -> None:
    y = load_heart_disease()["disease"].to_numpy()
    folds = maker.stratified_folds(y)
    assert np.ptp(np.bincount(folds)) <= 1
    assert np.ptp(np.bincount(folds[y == 1])) <= 1


def test_out_of_fold_never_predicts_a_row_it_was_fitted_on(maker: ModuleType) -> None:
    y = np.arange(60) % 2
    X = np.arange(60.0)[:, None]

    def memorise(rows: np.ndarray, labels: np.ndarray, new: np.ndarray) -> np.ndarray:
        assert not set(rows[:, 0]) & set(new[:, 0])
        assert len(rows) == len(labels) == 54
        return np.full((len(new), 2), 0.5)

    assert (maker.out_of_fold(memorise, X, y) == 0.5).all()


def test_classifiers_agree_with_the_definition_of_their_densities(maker: ModuleType) -> None:
    rng = np.random.default_rng(3)
    X, y, new = rng.normal(size=(80, 3)), np.arange(80) % 2, rng.normal(size=(7, 3))
    from scipy.stats import multivariate_normal, norm

    naive = np.column_stack([norm.pdf(new, X[y == k].mean(0), X[y == k].std(0)).prod(axis=1) for k in (0, 1)])
    full = np.column_stack([multivariate_normal(X[y == k].mean(0), np.cov(X[y == k].T)).pdf(new) for k in (0, 1)])
    for make, density in [(maker.naive_bayes, naive), (maker.quadratic_discriminant, full)]:
        # Equal priors, so the posterior is the ratio of densities; 1e-10 leaves room for rounding only.
        np.testing.assert_allclose(make(X, y, new), density / density.sum(axis=1, keepdims=True), rtol=1e-10)


def test_read_table_takes_a_header_and_drops_missing_rows(maker: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,b,class\n1,2,x\n3,?,y\n5,6,y\n", encoding="utf-8")
    table = maker.read_table(path, 3)
    assert table.to_numpy().tolist() == [[1.0, 2.0, "x"], [5.0, 6.0, "y"]]
