"""The script of the large study, on two small folders of made-up predictions."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

import calstat as cs

SCRIPT = Path(__file__).parents[1] / "studies" / "kull2019.py"
PRINTED = Path(__file__).parent / "reference" / "multiclass" / "table34.json"


@pytest.fixture(scope="module")
def study() -> object:
    spec = importlib.util.spec_from_file_location("kull2019", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def made_up(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident logits (n, 3), and labels."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, 3)) * 2.0
    return z, (softmax(z / 2.0, axis=1).cumsum(axis=1)[:, :-1] < rng.random((n, 1))).sum(axis=1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (z, y), (new, new_y) = made_up(150, 1), made_up(80, 2)
    np.savez(
        tmp_path / "made-up_tree.npz",
        cal_probs=softmax(z, axis=1),
        cal_labels=y,
        cal_fold=np.arange(150) % 3,
        test_probs_by_fold=np.stack([softmax(new, axis=1), softmax(new * 0.9, axis=1), softmax(new * 1.1, axis=1)]),
        test_labels=new_y,
    )
    np.savez(
        tmp_path / "pictures_small-net.npz",
        val_logits=z.astype(np.float32),
        val_labels=y,
        test_logits=new.astype(np.float32),
        test_labels=new_y,
    )
    return tmp_path


def run(study: object, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr(sys, "argv", ["kull2019.py", *arguments])
    study.main()  # type: ignore[attr-defined]


def test_every_method_once_and_no_set_twice(study: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = folder / "results.csv"
    options = [str(folder), "--results", str(results), "--draws", "99"]
    run(study, monkeypatch, *options, "--datasets", "made-up")
    small = results.read_text()
    run(study, monkeypatch, *options)
    assert results.read_text().startswith(small)
    again = results.read_text()
    run(study, monkeypatch, *options)
    assert results.read_text() == again
    table = pd.read_csv(results).set_index(["classifier", "method"])
    assert list(table.loc["tree"].index) == [
        "Uncal", "DirL2", "DirODIR", "Beta", "TempS", "VecS", "Isot", "WidthB", "FreqB",
    ]  # fmt: skip
    networks = ["Uncal", "TempS", "VecS", "DirL2", "DirODIR", "MS-ODIR", "MS-ODIR-zero"]
    assert list(table.loc["small-net"].index) == networks
    losses = table.loc["tree", "log_loss"]
    assert (losses[["DirL2", "DirODIR", "Beta", "TempS", "VecS"]] < losses["Uncal"]).all()
    assert table[["p_conf_ece", "p_cw_ece"]].to_numpy().min() >= 0.01


def test_the_mean_over_folds(study: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = folder / "results.csv"
    run(study, monkeypatch, str(folder), "--results", str(results), "--draws", "9")
    table = pd.read_csv(results).set_index(["classifier", "method"])
    data = np.load(folder / "made-up_tree.npz")
    y = data["test_labels"]
    plain = data["test_probs_by_fold"].mean(axis=0)
    assert table.loc[("tree", "Uncal"), "brier_score"] == pytest.approx(cs.brier_score(y, plain), rel=1e-9)
    folds = [data["cal_fold"] == f for f in range(3)]
    maps = [
        cs.TemperatureScaling(data["cal_labels"][own], data["cal_probs"][own], scores="probability").fit()
        for own in folds
    ]
    mean = np.mean([m.predict(p) for m, p in zip(maps, data["test_probs_by_fold"], strict=True)], axis=0)
    assert table.loc[("tree", "TempS"), "log_loss"] == pytest.approx(cs.log_loss(y, mean), rel=1e-9)


def test_weights_between_classes(study: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez(folder / "other_thing.npz", test_probs=np.ones((2, 2)) / 2)
    results = folder / "off.csv"
    run(study, monkeypatch, str(folder), "--results", str(results), "--off-diagonal", "--draws", "19")
    table = pd.read_csv(results)
    assert table["classifier"].tolist() == ["small-net"]
    row = table.iloc[0]
    data = np.load(folder / "pictures_small-net.npz")
    maps = [kind(data["val_labels"], data["val_logits"]).fit() for kind in (cs.VectorScaling, cs.MatrixScaling)]
    line = cs.compare_models(maps).table.iloc[2]
    assert row["df"] == 3
    # Written with six digits.
    assert row[["lr", "score"]].tolist() == pytest.approx(line[["lr", "score"]].tolist(), rel=1e-5)
    new = data["test_logits"].astype(float)
    losses = [cs.log_loss(data["test_labels"], m.predict(new)) for m in maps]
    assert row["plain"] == pytest.approx(losses[1] - losses[0], rel=1e-4)
    assert row["p_score"] >= 0.05


def test_many_classes_have_stronger_penalties(study: object) -> None:
    few, many = (study.network_methods(k)["MS-ODIR"][1] for k in (10, 100))  # type: ignore[attr-defined]
    assert max(q.lam for q in few) < max(q.lam for q in many)
    assert min(q.lam for q in few) < min(q.lam for q in many)


def test_two_processes_give_the_same(study: object, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = folder / "one.csv", folder / "two.csv"
    run(study, monkeypatch, str(folder), "--results", str(one), "--draws", "9")
    options = ["--results", str(two), "--draws", "9", "--processes", "2"]
    subprocess.run([sys.executable, str(SCRIPT), str(folder), *options], check=True)
    keys, columns = ["classifier", "method"], ["log_loss", "cw_ece", "p_cw_ece", "chosen"]
    first, second = (pd.read_csv(path).set_index(keys).sort_index()[columns] for path in (one, two))
    pd.testing.assert_frame_equal(first, second)


def test_the_stored_row_of_the_papers_network_against_its_tables() -> None:
    """Log-loss to 0.002, class-wise error (a sum over classes) to 0.004: the paper's folds are not known."""
    networks = pd.read_csv(SCRIPT.parent / "results" / "kull2019_networks.csv").set_index(["classifier", "method"])
    ours = networks.loc["resnet110_kull2019"].rename({"DirL2": "Dir-L2", "DirODIR": "Dir-ODIR"})
    printed = {k: v for k, v in json.loads(PRINTED.read_text())["paper_printed"].items() if k != "note"}
    assert len(printed) == 6
    for method, (error, loss) in printed.items():
        assert abs(ours.loc[method, "log_loss"] - loss) <= 0.002
        assert abs(10 * ours.loc[method, "cw_ece"] - error) <= 0.004
