"""Make the two data sets that calstat ships, from the UCI files.

    python docs/scripts/make_datasets.py --cleveland processed.cleveland.data --vehicle vehicle.csv

Both inputs are tables in UCI's column order, with or without a header row, ``?`` or nothing for a missing
value; the class is the last column. Every probability is out of sample: it comes from a model that was fitted
on the nine folds that do not hold the row.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm

OUT = Path(__file__).resolve().parents[2] / "calstat" / "datasets"
N_FOLDS = 10
SEED = 1988

CLEVELAND = [
    "age", "sex", "cp", "trestbps", "chol", "fbs", "restecg", "thalach", "exang", "oldpeak", "slope", "ca",
    "thal", "num",
]  # fmt: skip
NOMINAL = ["cp", "thal"]


def read_table(path: Path, n_columns: int) -> pd.DataFrame:
    """Read a UCI table and drop the rows with a missing value and a header, if there is one."""
    table = pd.read_csv(path, header=None, na_values="?", skipinitialspace=True, dtype=str)
    if table.shape[1] != n_columns:
        raise SystemExit(f"{path}: {n_columns} columns were expected, {table.shape[1]} were found")
    features = table.iloc[:, :-1].apply(pd.to_numeric, errors="coerce")
    complete = features.notna().all(axis=1) & table.iloc[:, -1].notna()
    return features.assign(target=table.iloc[:, -1])[complete].reset_index(drop=True)


def stratified_folds(y: np.ndarray) -> np.ndarray:
    """Deal the rows of each class to the folds in a seeded random order."""
    order = np.random.default_rng(SEED).permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    folds = np.empty(len(y), dtype=int)
    folds[order] = np.arange(len(y)) % N_FOLDS
    return folds


def out_of_fold(
    fit_predict: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], X: np.ndarray, y: np.ndarray
) -> np.ndarray:
    """Predict each fold with the model of the other folds; (n, K) probabilities."""
    folds = stratified_folds(y)
    probabilities = np.empty((len(y), y.max() + 1))
    for fold in range(N_FOLDS):
        held_out = folds == fold
        probabilities[held_out] = fit_predict(X[~held_out], y[~held_out], X[held_out])
    return probabilities


def logistic(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Unpenalised logistic regression."""
    fit = sm.Logit(y, sm.add_constant(X)).fit(disp=False)
    p = fit.predict(sm.add_constant(new, has_constant="add"))
    return np.column_stack([1 - p, p])


def naive_bayes(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Gaussian naive Bayes: the features are taken as independent and normal within a class."""
    log_joint = []
    for k in range(y.max() + 1):
        mean, var = X[y == k].mean(axis=0), X[y == k].var(axis=0)
        log_joint.append(np.log(np.mean(y == k)) - 0.5 * np.sum(np.log(var) + (new - mean) ** 2 / var, axis=1))
    return normalise(np.column_stack(log_joint))


def quadratic_discriminant(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Gaussian classes, each with its own full covariance matrix."""
    log_joint = []
    for k in range(y.max() + 1):
        rows = X[y == k]
        root = np.linalg.cholesky(np.cov(rows, rowvar=False))
        z = np.linalg.solve(root, (new - rows.mean(axis=0)).T)
        log_joint.append(np.log(np.mean(y == k)) - np.log(np.diag(root)).sum() - 0.5 * np.sum(z**2, axis=0))
    return normalise(np.column_stack(log_joint))


def normalise(log_joint: np.ndarray) -> np.ndarray:
    """Joint log densities to class probabilities."""
    shifted = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def heart_disease(path: Path) -> pd.DataFrame:
    """Cleveland heart disease: outcome, four plain predictors, two sets of probabilities."""
    table = read_table(path, len(CLEVELAND)).set_axis(CLEVELAND, axis=1)
    # The copy we used holds ST depression in whole millimetres; doing it here gives one answer from any copy.
    table["oldpeak"] = np.trunc(table["oldpeak"])
    y = (pd.to_numeric(table.pop("num")) > 0).astype(int).to_numpy()
    dummies = pd.get_dummies(table, columns=NOMINAL, drop_first=True).to_numpy(dtype=float)
    return pd.DataFrame(
        {
            "disease": y,
            "age": table["age"].astype(int),
            "sex": np.where(table["sex"] == 1, "male", "female"),
            "resting_bp": table["trestbps"].astype(int),
            "cholesterol": table["chol"].astype(int),
            "p_logistic": out_of_fold(logistic, dummies, y)[:, 1],
            "p_naive_bayes": out_of_fold(naive_bayes, table.to_numpy(dtype=float), y)[:, 1],
        }
    )


def vehicle(path: Path) -> pd.DataFrame:
    """Vehicle silhouettes: the class and its probabilities under quadratic discriminant analysis."""
    table = read_table(path, 19)
    classes, y = np.unique(table.pop("target").str.strip().to_numpy(dtype=str), return_inverse=True)
    probabilities = out_of_fold(quadratic_discriminant, table.to_numpy(dtype=float), y)
    columns = {f"p_{name}": probabilities[:, k] for k, name in enumerate(classes)}
    return pd.DataFrame({"vehicle": classes[y], **columns})


def main() -> None:
    parser = argparse.ArgumentParser(description="Make the data sets that calstat ships.")
    parser.add_argument("--cleveland", type=Path, help="UCI Heart Disease, the processed Cleveland table")
    parser.add_argument("--vehicle", type=Path, help="UCI Statlog (Vehicle Silhouettes), one table")
    args = parser.parse_args()
    for path, make, name in [
        (args.cleveland, heart_disease, "heart_disease"),
        (args.vehicle, vehicle, "vehicle"),
    ]:
        if path is not None:
            make(path).to_csv(OUT / f"{name}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    main()
