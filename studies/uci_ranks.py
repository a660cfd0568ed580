"""Mean ranks of nine ways to calibrate, by how a study is done: from the results of ``uci_splits.py``.

Run ``python studies/uci_ranks.py studies/results/uci_splits.csv``. Tasks are pairs of a data set and a classifier. In
``each split`` methods are ranked in every split, and the ranks are averaged; in ``mean loss`` the losses of the 25
splits are averaged, and ranked once, as in the paper; ``median loss`` tells what rare large losses have to do with it.
Standard errors are those of a mean over data sets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pandas as pd

METHODS = ["Uncal", "DirL2", "DirODIR", "Beta", "TempS", "VecS", "Isot", "WidthB", "FreqB"]
TASK = ["dataset", "classifier"]
WAYS = ("each split", "mean loss", "median loss")
# What replaces a method in a panel beyond the rule of choice.
SWAPS: dict[str, dict[str, str]] = {
    "": {},
    ", L2 to identity": {"DirL2": "DirL2-identity"},
    ", beta free": {"Beta": "Beta-free"},
}


def panel(losses: pd.DataFrame, rule: str, swaps: dict[str, str]) -> pd.DataFrame:
    """The nine methods, chosen by `rule`; columns of `losses` are ``method/rule`` or ``method``."""
    names = {method: swaps.get(method, method) for method in METHODS}
    columns = {m: f"{name}/{rule}" if f"{name}/{rule}" in losses else name for m, name in names.items()}
    return pd.DataFrame({m: losses[column] for m, column in columns.items()})


def task_ranks(losses: pd.DataFrame, way: str) -> pd.DataFrame:
    """Ranks of the methods in each task, one of `WAYS`."""
    if way == "each split":
        return losses.rank(axis=1).groupby(level=TASK).mean()
    return losses.groupby(level=TASK).agg(way.removesuffix(" loss")).rank(axis=1)


def over_datasets(ranks: pd.DataFrame | pd.Series) -> pd.DataFrame | pd.Series:
    """Means and standard errors over data sets, whose classifiers share their rows."""
    return ranks.groupby(level="dataset").mean().agg(["mean", "sem"])


def tables(losses: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean ranks of the methods, and L2's change of rank from the first row, with standard errors."""
    ranks = {
        (rule + swap, way): task_ranks(panel(losses, rule, changes), way)
        for rule in ("unseen", "training")
        for swap, changes in SWAPS.items()
        for way in WAYS
    }
    means = pd.concat({key: over_datasets(table) for key, table in ranks.items()})
    first = next(iter(ranks.values()))["DirL2"]
    change = pd.DataFrame({key: over_datasets(table["DirL2"] - first) for key, table in ranks.items()}).T
    return means, change


def read(path: Path, measure: str) -> pd.DataFrame:
    """Values of a measure in each split, one column per method and rule."""
    table = pd.read_csv(path)
    return table[table["measure"] == measure].drop(columns="measure").set_index([*TASK, "repeat", "fold"])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="CSV of uci_splits.py")
    parser.add_argument("--measure", choices=("log_loss", "cw_ece", "log_loss_alone"), default="log_loss")
    parser.add_argument("--classifiers", nargs="*", help="only these classifiers")
    options = parser.parse_args()
    losses = read(options.results, options.measure)
    if options.classifiers:
        losses = losses[losses.index.get_level_values("classifier").isin(options.classifiers)]
    means, change = tables(losses)
    with pd.option_context("display.width", 200, "display.max_columns", 20, "display.max_rows", 200):
        datasets = losses.index.unique("dataset").size
        print(f"{losses.groupby(level=TASK).ngroups} tasks, {datasets} data sets")
        print(means.round(2))
        print("\nChange of L2's mean rank from the first row:")
        print(change.round(2))
        by_classifier = task_ranks(panel(losses, "training", {}), "mean loss").groupby(level="classifier").mean()
        print("\nBy classifier, training rows, mean loss:")
        print(by_classifier.round(1))


if __name__ == "__main__":
    main()
