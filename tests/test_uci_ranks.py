"""The ranks that the study of many splits reports, on losses made up by hand and on the stored results."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

STUDIES = Path(__file__).parents[1] / "studies"
RESULTS = STUDIES / "results" / "uci_splits.csv"


@pytest.fixture(scope="module")
def ranks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("uci_ranks", STUDIES / "uci_ranks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses(values: dict[str, list[float]]) -> pd.DataFrame:
    """One task with three splits."""
    index = pd.MultiIndex.from_product(
        [["a"], ["tree"], [0], range(3)], names=["dataset", "classifier", "repeat", "fold"]
    )
    return pd.DataFrame(values, index=index)


def test_one_large_loss_decides_the_mean_and_not_the_ranks(ranks: ModuleType) -> None:
    table = losses({"steady": [0.5, 0.5, 0.5], "mostly better": [0.4, 0.4, 9.0], "last": [0.6, 0.6, 0.4]})
    by_way = {way: ranks.task_ranks(table, way).loc[("a", "tree")] for way in ranks.WAYS}
    assert by_way["each split"].tolist() == pytest.approx([2.0, 5 / 3, 7 / 3], abs=1e-12)
    assert by_way["mean loss"].tolist() == [1.0, 3.0, 2.0]
    assert by_way["median loss"].tolist() == [2.0, 1.0, 3.0]


def test_a_panel_takes_the_rule_where_there_is_one(ranks: ModuleType) -> None:
    names = ["Uncal", "Beta", "TempS", "VecS", "Isot", "Beta-free"]
    names += [f"{m}/{r}" for m in ("DirL2", "DirODIR", "WidthB", "FreqB") for r in ("unseen", "training")]
    table = losses({name: [float(i)] * 3 for i, name in enumerate(names)})
    panel = ranks.panel(table, "training", {"Beta": "Beta-free"})
    assert list(panel) == ranks.METHODS
    chosen = [names[int(v)] for v in panel.iloc[0]]
    assert chosen == [
        "Uncal", "DirL2/training", "DirODIR/training", "Beta-free", "TempS", "VecS", "Isot", "WidthB/training",
        "FreqB/training",
    ]  # fmt: skip


def test_standard_errors_are_over_data_sets(ranks: ModuleType) -> None:
    index = pd.MultiIndex.from_tuples([("a", "tree"), ("a", "knn"), ("b", "tree"), ("b", "knn")], names=ranks.TASK)
    got = ranks.over_datasets(pd.Series([1.0, 3.0, 4.0, 6.0], index=index))
    # Means of the data sets are 2 and 5: mean 3.5, standard deviation 3 / sqrt(2), over sqrt(2).
    assert got["mean"] == pytest.approx(3.5, abs=1e-12)
    assert got["sem"] == pytest.approx(1.5, abs=1e-12)


def test_the_stored_results_are_complete(ranks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for measure in ("log_loss", "cw_ece"):
        table = ranks.read(RESULTS, measure)
        assert (table.groupby(level=ranks.TASK).size() == 25).all()
        assert np.isfinite(table.to_numpy()).all()
    monkeypatch.setattr(sys, "argv", ["uci_ranks.py", str(RESULTS)])
    ranks.main()


@pytest.mark.parametrize(
    ("rule", "way", "l2", "odir"),
    [
        ("unseen", "each split", 4.42, 3.06),
        ("unseen", "mean loss", 3.85, 2.97),
        ("training", "each split", 3.56, 3.27),
        ("training", "mean loss", 2.65, 3.25),
    ],
)
def test_ranks_of_the_page(ranks: ModuleType, rule: str, way: str, l2: float, odir: float) -> None:
    losses = ranks.read(RESULTS, "log_loss")
    means = ranks.over_datasets(ranks.task_ranks(ranks.panel(losses, rule, {}), way)).loc["mean"]
    # The page has two decimals.
    assert means[["DirL2", "DirODIR"]].tolist() == pytest.approx([l2, odir], abs=0.00501)


def test_strengths_chosen_with_other_classifiers_are_too_strong() -> None:
    curves = pd.read_csv(STUDIES / "results" / "uci_curves.csv").set_index("strength")
    for _, curve in curves.groupby(["dataset", "classifier"]):
        best = curve[["unseen", "training", "test"]].idxmin()
        assert best["unseen"] >= best["test"]
        assert best["training"] < best["unseen"]
