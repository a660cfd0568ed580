"""Classifiers on UCI data, calibrated in nine ways on 25 splits: what the order of the methods depends on.

Run ``python studies/uci_splits.py FOLDER --results splits.csv``. FOLDER holds ``<dataset>.csv.gz``: numeric features,
and a last column `target`. The script needs scikit-learn for the classifiers; calstat itself does not.

As in Kull et al. (2019): five times five folds; within the training rows three folds, of which two train a classifier
and the third fits the maps; the three calibrated predictions for the test rows are averaged. Methods, grids and clip
are those of ``kull2019.py``, and `VARIANTS` of them. Strengths and numbers of bins are chosen by log-loss, twice:

- ``unseen``: on the rows that the other two folds left out, with the predictions of the classifiers that did not see
  them, as in ``kull2019.py``;
- ``training``: on the rows that the classifier was trained on, with its own predictions, as the program of the paper
  does.

A row of results is a split and a measure, a column ``method/rule`` (the method alone where nothing is chosen). Finished
pairs of data set and classifier are kept: run the same command again to go on. With ``--curves``, the file gets L2's
log-loss by its strength instead: the mean over maps and splits, on the rows of the fit (``own``), on those by which
either rule chooses, and on the test rows.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from kull2019 import FLOOR, TINY, Candidate, _dirichlet, _one_vs_rest, methods
from sklearn.base import clone
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import calstat as cs

CLASSIFIERS = {
    "logistic": LogisticRegression(max_iter=1000),
    "nbayes": GaussianNB(),
    "lda": LinearDiscriminantAnalysis(),
    "qda": QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.1),
    "knn": KNeighborsClassifier(3),
    "tree": DecisionTreeClassifier(max_depth=5, random_state=42),
    "svc-linear": SVC(kernel="linear", C=0.025, probability=True, random_state=42),
    "svc-rbf": SVC(gamma=2, C=1, probability=True, random_state=42),
    "forest": RandomForestClassifier(200, random_state=42),
    "mlp": MLPClassifier(random_state=42),
}
RULES = ("unseen", "training")
TASK = ["dataset", "classifier"]


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerFold:
    """Labels and one classifier's probabilities: `own` to fit maps, `training` its own rows, `test` (m, K)."""

    own: tuple[np.ndarray, np.ndarray]
    training: tuple[np.ndarray, np.ndarray]
    test: np.ndarray


def variants() -> dict[str, list[Candidate]]:
    """Candidates of each variant of a method, named ``method-variant``."""
    identity = [cs.L2(10.0**k, center="identity") for k in range(3, -8, -1)]
    return {
        "DirL2-identity": [(f"{q.lam:g}", partial(_dirichlet, penalty=q, eps=TINY)) for q in identity],
        "Beta-free": [("", partial(_one_vs_rest, base=cs.BetaCalibration, monotone=False))],
    }


def inner_folds(x: np.ndarray, y: np.ndarray, new: np.ndarray, classifier: Any, seed: int) -> list[InnerFold]:
    """Classifiers trained without each of three folds of the rows `x` (n, d), and their predictions for `new`."""
    folds = []
    for train, own in StratifiedKFold(3, shuffle=True, random_state=seed).split(x, y):
        model = clone(classifier).fit(x[train], y[train])
        pairs = [(y[rows], model.predict_proba(x[rows])) for rows in (own, train)]
        folds.append(InnerFold(own=pairs[0], training=pairs[1], test=model.predict_proba(new)))
    return folds


def judging_rows(folds: list[InnerFold], fold: InnerFold) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Labels and probabilities by which each rule chooses a map of `fold`."""
    labels, probabilities = zip(*(other.own for other in folds if other is not fold), strict=True)
    return {"unseen": (np.concatenate(labels), np.concatenate(probabilities)), "training": fold.training}


def calibrate(folds: list[InnerFold], candidates: list[Candidate]) -> dict[str, np.ndarray]:
    """Calibrated test probabilities (m, K), the mean over inner folds, by each rule of choice."""
    if not candidates:
        return {"": np.mean([fold.test for fold in folds], axis=0)}
    rules = RULES if len(candidates) > 1 else ("",)
    predictions: dict[str, list[np.ndarray]] = {rule: [] for rule in rules}
    for fold in folds:
        fits = [fit(*fold.own) for _, fit in candidates]
        rows = judging_rows(folds, fold)
        for rule in rules:
            best = fits[int(np.argmin([loss(f, *rows[rule]) for f in fits]))] if rule else fits[0]
            predictions[rule].append(np.asarray(best.predict(fold.test)))
    return {rule: np.mean(p, axis=0) for rule, p in predictions.items()}


def loss(fit: Any, y: np.ndarray, p: np.ndarray) -> float:
    """Log-loss of a map."""
    return cs.log_loss(y, fit.predict(p), eps=FLOOR)


def splits(path: Path, classifier: str, repeats: int) -> Iterator[tuple[int, int, list[InnerFold], np.ndarray]]:
    """Repeat, fold, inner folds, and labels of the test rows."""
    table = pd.read_csv(path)
    x, y = table.drop(columns="target").to_numpy(float), pd.factorize(table["target"], sort=True)[0]
    x = (x - x.mean(axis=0)) / np.where(x.std(axis=0) > 0.0, x.std(axis=0), 1.0)
    for repeat in range(repeats):
        outer = StratifiedKFold(5, shuffle=True, random_state=repeat).split(x, y)
        for fold, (train, test) in enumerate(outer):
            yield repeat, fold, inner_folds(x[train], y[train], x[test], CLASSIFIERS[classifier], repeat), y[test]


def comparison(path: Path, classifier: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Log-loss and class-wise calibration error of each method and rule in each split."""
    for repeat, fold, folds, y in splits(path, classifier, repeats):
        values: dict[str, dict[str, str]] = {"log_loss": {}, "cw_ece": {}}
        for method, candidates in (methods(TINY) | variants()).items():
            for rule, p in calibrate(folds, candidates).items():
                name = f"{method}/{rule}" if rule else method
                values["log_loss"][name] = f"{cs.log_loss(y, p, eps=FLOOR):.5g}"
                values["cw_ece"][name] = f"{cs.classwise_ece(y, p, bins=15).mean():.4g}"
        for measure, row in values.items():
            yield {"repeat": repeat, "fold": fold, "measure": measure} | row


def curves(path: Path, classifier: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Mean log-loss of the maps with an L2 penalty, by its strength."""
    losses = []
    for _, _, folds, y in splits(path, classifier, repeats):
        for fold in folds:
            rows = {"own": fold.own, **judging_rows(folds, fold), "test": (y, fold.test)}
            for strength, fit in methods(TINY)["DirL2"]:
                results = fit(*fold.own)
                losses.append({"strength": strength} | {name: loss(results, *pair) for name, pair in rows.items()})
    for strength, row in pd.DataFrame(losses).groupby("strength", sort=False).mean().iterrows():
        yield {"strength": strength} | {name: f"{value:.4g}" for name, value in row.items()}


def main() -> None:
    """Run what is not yet in the file of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the data sets")
    parser.add_argument("--results", type=Path, required=True, help="CSV that rows are added to")
    parser.add_argument("--datasets", nargs="+", required=True, help="names of data sets")
    parser.add_argument("--classifiers", nargs="+", choices=CLASSIFIERS, default=list(CLASSIFIERS))
    parser.add_argument("--repeats", type=int, default=5, help="times that the rows are divided into five folds")
    parser.add_argument("--curves", action="store_true", help="L2's log-loss by strength instead")
    options = parser.parse_args()
    run = curves if options.curves else comparison
    new = not options.results.exists()
    done = set() if new else set(pd.read_csv(options.results)[TASK].itertuples(index=False, name=None))
    with options.results.open("a", newline="", encoding="utf-8") as file:
        for task in itertools.product(options.datasets, options.classifiers):
            if task in done:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                rows = list(run(options.folder / f"{task[0]}.csv.gz", task[1], options.repeats))
            writer = csv.DictWriter(file, [*TASK, *rows[0]])
            if new:
                writer.writeheader()
                new = False
            writer.writerows(dict(zip(TASK, task, strict=True)) | row for row in rows)
            file.flush()


if __name__ == "__main__":
    main()
