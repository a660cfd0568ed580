"""Ways to calibrate, on many sets of predictions: the experiments of Kull et al. (2019).

Run ``python studies/kull2019.py FOLDER --results results.csv``. FOLDER holds ``.npz`` files of one of two kinds.

``<dataset>_<classifier>.npz``, small data sets with nine methods:

- ``cal_probs`` (n, K), ``cal_labels`` (n,), ``cal_fold`` (n,): predictions for training rows by the classifier that did
  not see them, one for each inner fold;
- ``test_probs_by_fold`` (F, m, K), ``test_labels`` (m,): predictions of these F classifiers for the test rows.

For each inner fold a map is fitted on the rows that its classifier did not see, and applied to that classifier's test
predictions; the F calibrated predictions are averaged. Strengths and numbers of bins are those with the lowest log-loss
of that map on the rows of the other folds.

``<data>_<network>.npz``, networks with seven methods: ``val_logits`` (n, K), ``val_labels`` (n,), ``test_logits``
(m, K), ``test_labels`` (m,). Maps are fitted without each of five folds of the validation rows in turn, and their test
predictions are averaged. The strength is the one with the lowest log-loss on rows left out.

``--off-diagonal`` asks of networks with up to 50 classes whether the weights between classes of the full map are real
(tests of vector scaling within matrix scaling, without a penalty, on the validation rows), and whether they help on the
test rows (differences in log-loss with standard errors).

Files of other kinds are passed over. Finished sets are kept: run the same command again to go on.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

import calstat as cs

TINY = float(np.finfo(np.float64).tiny)  # the clip of the paper
FLOOR = float(np.finfo(np.float64).eps)  # of the true class's probability in the log-loss
L2_GRID = [cs.L2(10.0**k) for k in range(3, -8, -1)]
ODIR_GRID = [cs.ODIR(lam, mu) for lam in (1e3, 1e1, 1e-1, 1e-3, 1e-5, 1e-7) for mu in (1e-1, 1e-3, 1e-5)]
BIN_GRID = (5, 10, 15, 20, 25, 30)
NETWORK_L2_GRID = [cs.L2(10.0**k) for k in range(-1, -9, -1)]
NETWORK_ODIR_GRID = [cs.ODIR(10.0**k, 10.0**m) for k in range(2, -4, -1) for m in (1, -1, -3, -5)]
# With 100 classes a map has 10,100 parameters for 5,000 rows, and only strong penalties do. In trials of two networks,
# two folds each, the best ODIR with lambda from 100 to 1e5 and mu from 1e-3 to 100 was lambda = 100 with mu = 0.1; the
# best L2 from 1 to 1e-6 was 0.01. At ODIR's lambda = 100, 10 and 1 the held-out log-loss of one was 1.03, 1.15 and 1.7;
# at L2's 0.01, 0.001 and 0.0001 that of the other was 0.88, 0.90 and 1.32.
MANY_CLASSES = 50
LARGE_L2_GRID = [cs.L2(10.0**k) for k in (-1, -2, -3)]
LARGE_ODIR_GRID = [cs.ODIR(10.0**k, 10.0**m) for k in (3, 2, 1) for m in (1, -1, -3)]
FIELDS = [
    "dataset", "classifier", "method", "n_fit", "n_test", "n_classes", "accuracy", "log_loss", "brier_score", "mce",
    "conf_ece", "cw_ece", "p_conf_ece", "p_cw_ece", "chosen", "seconds", "test_seconds", "warnings",
]  # fmt: skip
OFF_DIAGONAL_FIELDS = [
    "dataset", "classifier", "method", "n_fit", "n_test", "n_classes", "df", "lr", "p_lr_chi2", "converged", "score",
    "p_score_chi2", "p_score", "excess", "n_resamples",
    *(f"{name}{end}" for name in ("penalised", "zeroed", "plain") for end in ("", "_se", "_p")), "seconds",
]  # fmt: skip

Job = tuple[Callable[..., Iterator[dict[str, Any]]], Path, tuple[Any, ...]]
Candidate = tuple[str, Callable[[np.ndarray, np.ndarray], Any]]


def _dirichlet(y: np.ndarray, p: np.ndarray, penalty: Any, eps: float) -> Any:
    return cs.DirichletCalibration(y, p, penalty=penalty, eps=eps).fit(cov=False)


def _one_vs_rest(y: np.ndarray, p: np.ndarray, base: Any, **options: Any) -> Any:
    return cs.OneVsRest(y, p, base, **options).fit()


def _softmax(y: np.ndarray, p: np.ndarray, kind: Any, eps: float) -> Any:
    return kind(y, p, scores="probability", eps=eps).fit()


def methods(eps: float) -> dict[str, list[Candidate]]:
    """Candidates of each method: what to note of the choice, and the fit."""
    binning = partial(_one_vs_rest, base=cs.HistogramBinning, smoothing=1)
    return {
        "Uncal": [],
        "DirL2": [(f"{q.lam:g}", partial(_dirichlet, penalty=q, eps=eps)) for q in L2_GRID],
        "DirODIR": [(f"{q.lam:g}/{q.mu:g}", partial(_dirichlet, penalty=q, eps=eps)) for q in ODIR_GRID],
        "Beta": [("", partial(_one_vs_rest, base=cs.BetaCalibration, monotone=True))],
        "TempS": [("", partial(_softmax, kind=cs.TemperatureScaling, eps=eps))],
        "VecS": [("", partial(_softmax, kind=cs.VectorScaling, eps=eps))],
        "Isot": [("", partial(_one_vs_rest, base=cs.IsotonicCalibration))],
        "WidthB": [(f"{b}", partial(binning, bins=b, strategy="equal_width")) for b in BIN_GRID],
        "FreqB": [(f"{b}", partial(binning, bins=b, strategy="equal_freq")) for b in BIN_GRID],
    }


def calibrate(data: Any, candidates: Sequence[Candidate]) -> tuple[np.ndarray, str]:
    """Calibrated test probabilities (m, K), the mean over inner folds, and the choice in each fold."""
    if not candidates:
        return data["test_probs_by_fold"].mean(axis=0), ""
    predictions, chosen = [], []
    for fold, test in enumerate(data["test_probs_by_fold"]):
        own = data["cal_fold"] == fold
        y, p = data["cal_labels"], data["cal_probs"]
        fits = [(name, fit(y[own], p[own])) for name, fit in candidates]
        if len(fits) > 1:
            losses = [cs.log_loss(y[~own], f.predict(p[~own]), eps=FLOOR) for _, f in fits]
            fits = [fits[int(np.argmin(losses))]]
        name, best = fits[0]
        predictions.append(np.asarray(best.predict(test)))
        chosen.append(name)
    return np.mean(predictions, axis=0), " ".join(chosen)


def network_methods(n_classes: int) -> dict[str, tuple[Any, list[Any]]]:
    """Maps of networks and the strengths to choose from."""
    large = n_classes > MANY_CLASSES
    l2, odir = (LARGE_L2_GRID, LARGE_ODIR_GRID) if large else (NETWORK_L2_GRID, NETWORK_ODIR_GRID)
    return {
        "TempS": (cs.TemperatureScaling, []),
        "VecS": (cs.VectorScaling, []),
        "DirL2": (cs.DirichletCalibration, l2),
        "DirODIR": (cs.DirichletCalibration, odir),
        "MS-ODIR": (cs.MatrixScaling, odir),
    }


def calibrate_network(data: Any, only: Sequence[str] = ()) -> Iterator[tuple[str, np.ndarray, str]]:
    """Name, calibrated test probabilities (m, K) and choice of each method, or of some."""
    y, z, test = data["val_labels"], data["val_logits"].astype(float), data["test_logits"].astype(float)
    yield "Uncal", softmax(test, axis=1), ""
    for name, (kind, grid) in network_methods(z.shape[1]).items():
        if only and name not in only:
            continue
        folds: dict[str, Any] = {"folds": 5, "shuffle": True, "rng": 0}
        options: dict[str, Any] = {"scores": "logit"}
        fit_options: dict[str, Any] = {}
        if grid:
            fit_options = {"cov": False}
            selection = kind(y, z, scores="logit").fit_cv(grid, **folds, **fit_options).selection
            options["penalty"] = selection.chosen
        model = cs.CrossValidatedCalibration(y, z, kind, ensemble=True, **folds, **options)
        results = model.fit(**fit_options)
        yield name, np.asarray(results.predict(test)), str(options.get("penalty", ""))
        if name == "MS-ODIR":
            yield "MS-ODIR-zero", np.mean([_diagonal(r, test) for r in results.fold_results.values()], axis=0), ""


def _diagonal(results: Any, z: np.ndarray) -> np.ndarray:
    """Predictions (m, K) of a full map whose off-diagonal weights are set to zero."""
    return softmax(z * np.diag(results.weights.to_numpy()) + results.bias.to_numpy(), axis=1)


def measures(y: np.ndarray, p: np.ndarray, draws: int, seed: int) -> dict[str, float]:
    """The eight measures of the paper, with 15 bins."""
    values = {
        "accuracy": cs.accuracy(y, p),
        "log_loss": cs.log_loss(y, p, eps=FLOOR),
        "brier_score": cs.brier_score(y, p),
        "mce": cs.mce(y, p, type="confidence", bins=15),
        "conf_ece": cs.confidence_ece(y, p, bins=15),
        "cw_ece": cs.classwise_ece(y, p, bins=15).mean(),
    }
    for name, statistic in (("p_conf_ece", "confidence_ece"), ("p_cw_ece", "classwise_ece")):
        values[name] = cs.pseudo_label_test(y, p, statistic, bins=15, n_resamples=draws, rng=seed).pvalue
    return {name: float(value) for name, value in values.items()}


def run_set(path: Path, eps: float, draws: int) -> Iterator[dict[str, Any]]:
    """Rows of results of one set of predictions, one for each method."""
    with np.load(path) as archive:
        data = dict(archive)
    dataset, classifier = path.stem.split("_", 1)
    network = "val_logits" in data
    runs = calibrate_network(data) if network else ((m, *calibrate(data, c)) for m, c in methods(eps).items())
    labels = data["test_labels"]
    while True:
        start = time.process_time()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            run = next(runs, None)
            if run is None:
                return
            name, p, chosen = run
            fitted = time.process_time()
            values = measures(labels, p, draws, seed=0)
        yield {
            "dataset": dataset,
            "classifier": classifier,
            "method": name,
            "n_fit": data["val_labels" if network else "cal_labels"].size,
            "n_test": labels.size,
            "n_classes": p.shape[1],
            **{key: f"{value:.10g}" for key, value in values.items()},
            "chosen": chosen,
            "seconds": f"{fitted - start:.3f}",
            "test_seconds": f"{time.process_time() - fitted:.3f}",
            "warnings": " ".join(sorted({w.category.__name__ for w in caught})),
        }


def off_diagonal(path: Path, n_resamples: int) -> Iterator[dict[str, Any]]:
    """Are weights between classes real, and do they help? One row for a network."""
    start = time.process_time()
    with np.load(path) as archive:
        data = dict(archive)
    y, z, test_y, test = (data[f"{part}_{name}"] for part in ("val", "test") for name in ("labels", "logits"))
    z, test = z.astype(float), test.astype(float)
    vector, matrix = cs.VectorScaling(y, z).fit(), cs.MatrixScaling(y, z).fit(cov=False)
    chi2, drawn = (
        cs.compare_models([vector, matrix], n_resamples=draws, simulate="score", rng=0).table.loc["MatrixScaling"]
        for draws in (None, n_resamples)
    )
    row = {
        "n_fit": y.size, "n_test": test_y.size, "n_classes": z.shape[1], "df": chi2["df_diff"],
        "lr": chi2["lr"], "p_lr_chi2": chi2["pvalue"], "converged": int(matrix.converged), "score": chi2["score"],
        "p_score_chi2": chi2["pvalue_score"], "p_score": drawn["pvalue_score"], "excess": chi2["excess"],
        "n_resamples": n_resamples,
    }  # fmt: skip
    fits = {name: p for name, p, _ in calibrate_network(data, only=("VecS", "MS-ODIR"))}
    pairs = {
        "penalised": (fits["MS-ODIR"], fits["VecS"]),
        "zeroed": (fits["MS-ODIR-zero"], fits["MS-ODIR"]),
        "plain": (matrix.predict(test), vector.predict(test)),
    }
    for name, (first, second) in pairs.items():
        found = cs.compare_forecasts(test_y, first, second, score="log", eps=FLOOR)
        row |= {name: found.details["difference"], f"{name}_se": found.details["se"], f"{name}_p": found.pvalue}
    dataset, network = path.stem.split("_", 1)
    numbers = {key: value if isinstance(value, int) else f"{value:.6g}" for key, value in row.items()}
    seconds = f"{time.process_time() - start:.3f}"
    yield {"dataset": dataset, "classifier": network, "method": "off-diagonal", **numbers, "seconds": seconds}


def kind_of(path: Path) -> str:
    """What a file holds: "classifier", "network", "large network" or "other"."""
    with np.load(path) as archive:
        if "cal_fold" in archive:
            return "classifier"
        if "val_logits" not in archive:
            return "other"
        return "network" if archive["val_logits"].shape[1] <= MANY_CLASSES else "large network"


def finished(results: Path) -> set[str]:
    """Sets of predictions that the file of results already holds."""
    if not results.exists():
        return set()
    with results.open(newline="", encoding="utf-8") as file:
        return {f"{row['dataset']}_{row['classifier']}" for row in csv.DictReader(file)}


def _run(job: Job) -> list[dict[str, Any]]:
    run, path, arguments = job
    return list(run(path, *arguments))


def completed(jobs: list[Job], processes: int) -> Iterator[list[dict[str, Any]]]:
    """Results of the jobs as they come."""
    if processes == 1:
        yield from map(_run, jobs)
        return
    with Pool(processes) as pool:
        yield from pool.imap_unordered(_run, jobs)


def main() -> None:
    """Run what is not yet in the file of results, the smallest sets first."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder of the sets of predictions")
    parser.add_argument("--results", type=Path, required=True, help="CSV that rows are added to")
    parser.add_argument("--off-diagonal", action="store_true", help="tests of the weights between classes instead")
    parser.add_argument("--datasets", nargs="*", help="only these data sets")
    parser.add_argument("--classifiers", nargs="*", help="only these classifiers or networks")
    parser.add_argument("--eps", type=float, default=TINY, help="clip of probabilities in the nine methods")
    parser.add_argument("--draws", type=int, default=1000, help="draws of each pseudo-label test")
    parser.add_argument("--processes", type=int, choices=(1, 2), default=1)
    options = parser.parse_args()
    if options.off_diagonal:
        run, arguments, kinds, fields = off_diagonal, (options.draws,), {"network"}, OFF_DIAGONAL_FIELDS
    else:
        kinds = {"classifier", "network", "large network"}
        run, arguments, fields = run_set, (options.eps, options.draws), FIELDS
    done = finished(options.results)
    jobs: list[Job] = []
    for path in sorted(options.folder.glob("*_*.npz"), key=lambda path: path.stat().st_size):
        dataset, classifier = path.stem.split("_", 1)
        wanted = dataset in (options.datasets or [dataset]) and classifier in (options.classifiers or [classifier])
        if wanted and path.stem not in done and kind_of(path) in kinds:
            jobs.append((run, path, arguments))
    new = not options.results.exists()
    with options.results.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fields)
        if new:
            writer.writeheader()
        for rows in completed(jobs, options.processes):
            writer.writerows(rows)
            file.flush()


if __name__ == "__main__":
    main()
