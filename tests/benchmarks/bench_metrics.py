"""Binned errors, the CORP decomposition and MMCE on a million rows, beside other programs, in one run.

    tests/benchmarks/install_peers.sh
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_metrics.py [--rows 1000000] [--repeat 5]

CPU seconds, the best of the repeats; programs take turns, so that a busy machine slows all alike. The first call is
shown beside it. Peers that are not installed are named and left out. "limit" is the bare passes over memory that any
program for the same task needs.
"""

from __future__ import annotations

import argparse
import importlib
import time
import tracemalloc
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression

import calstat as cs

Program = Callable[[], object]


def race(title: str, programs: dict[str, Program], repeat: int, ours: str = "calstat") -> None:
    """Let programs take turns; print the best and the first CPU seconds of each, and ratios to ours."""
    seconds: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(repeat):
        for name, program in programs.items():
            start = time.process_time()
            program()
            seconds[name].append(time.process_time() - start)
    base = min(seconds[ours])
    print(f"\n{title}")
    for name, taken in sorted(seconds.items(), key=lambda item: min(item[1])):
        print(f"  {name:<42} {min(taken):8.4f} s   first {taken[0]:8.4f} s   {min(taken) / base:7.2f} x ours")


def peak_arrays(program: Program, rows: int) -> float:
    """Return the peak memory of a call in arrays of as many doubles as there are rows."""
    tracemalloc.start()
    program()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / (8 * rows)


def plain_binary(y: np.ndarray, p: np.ndarray, bins: int) -> float:
    index = np.minimum((p * bins).astype(np.int64), bins - 1)
    return float(np.abs(np.bincount(index, y - p, bins)).sum() / y.size)


def plain_matrix(y: np.ndarray, P: np.ndarray, bins: int) -> tuple[float, float]:
    top = P.argmax(axis=1)
    confidence = plain_binary((top == y).astype(float), P[np.arange(y.size), top], bins)
    return confidence, float(np.mean([plain_binary((y == k).astype(float), P[:, k], bins) for k in range(P.shape[1])]))


def ours_matrix(y: np.ndarray, P: np.ndarray, bins: int) -> tuple[float, float]:
    return cs.confidence_ece(y, P, bins=bins), cs.ece(y, P, bins=bins, type="classwise")


def peers_matrix(y: np.ndarray, P: np.ndarray, bins: int) -> dict[str, Program]:
    """Return what each peer offers of the confidence and the classwise error."""
    found: dict[str, Program] = {}

    def offer(module: str, name: str, make: Callable[[object], Program]) -> None:
        try:
            loaded = importlib.import_module(module)
        except ImportError as error:
            print(f"  ({name} is not installed: {error})")
        else:
            found[name] = make(loaded)

    offer("netcal.metrics", "netcal (confidence)", lambda m: lambda: m.ECE(bins).measure(P, y))  # type: ignore[attr-defined]
    offer("calibration", "uncertainty-calibration (confidence)", lambda m: lambda: m.get_ece(P, y, num_bins=bins))  # type: ignore[attr-defined]
    offer(
        "calibration",
        "uncertainty-calibration (classwise)",
        lambda m: lambda: m.get_ece(P, y, num_bins=bins, mode="marginal"),  # type: ignore[attr-defined]
    )
    offer("pycalib.metrics", "pycalib (confidence)", lambda m: lambda: m.conf_ECE(np.eye(P.shape[1])[y], P, bins=bins))  # type: ignore[attr-defined]
    offer(
        "pycalib.metrics", "pycalib (classwise)", lambda m: lambda: m.classwise_ECE(np.eye(P.shape[1])[y], P, bins=bins)
    )  # type: ignore[attr-defined]

    def torchmetrics(module: object) -> Program:
        torch = importlib.import_module("torch")
        torch.set_num_threads(1)
        scores, labels = torch.from_numpy(P), torch.from_numpy(y)
        return lambda: module.multiclass_calibration_error(scores, labels, P.shape[1], n_bins=bins)  # type: ignore[attr-defined]

    offer("torchmetrics.functional.classification", "torchmetrics (confidence)", torchmetrics)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    n, repeat = options.rows, options.repeat
    warnings.simplefilter("ignore")  # peers warn about their own dependencies

    rng = np.random.default_rng(0)
    p = rng.random(n)
    y = (rng.random(n) < p).astype(np.int64)
    assert abs(cs.ece(y, p) - plain_binary(y, p, 10)) < 1e-12
    race(
        f"ECE, n = {n}, 10 bins",
        {
            "calstat": lambda: cs.ece(y, p),
            "scikit-learn calibration_curve": lambda: calibration_curve(y, p, n_bins=10),
            "plain NumPy, no checks": lambda: plain_binary(y, p, 10),
            "limit: one bincount": lambda: np.bincount(y, p),
        },
        repeat,
    )
    race(
        f"CORP decomposition, n = {n}",
        {
            "calstat": lambda: cs.score_decomposition(y, p),
            "scikit-learn IsotonicRegression.fit": lambda: IsotonicRegression(out_of_bounds="clip").fit(p, y),
            "limit: one sort": lambda: np.sort(p),
        },
        repeat,
    )
    race(
        f"MMCE, n = {n}",
        {
            "calstat": lambda: cs.mmce(y, p),
            "calstat, bandwidth 1e-3": lambda: cs.mmce(y, p, bandwidth=1e-3),
            "calstat, bandwidth 1e-7": lambda: cs.mmce(y, p, bandwidth=1e-7),
            "one argsort": lambda: np.argsort(p),
            "five argsorts": lambda: [np.argsort(p) for _ in range(5)],
        },
        repeat,
    )
    race(
        f"Smooth errors, n = {n}",
        {
            "calstat": lambda: cs.smooth_ece(y, p),
            "ICI, lowess": lambda: cs.ici(y, p),
            "ICI, spline": lambda: cs.ici(y, p, smoother="spline"),
        },
        max(1, repeat // 2),
    )
    for name, program in (
        ("ECE", lambda: cs.ece(y, p)),
        ("CORP", lambda: cs.score_decomposition(y, p)),
        ("MMCE", lambda: cs.mmce(y, p)),
    ):
        print(f"  peak memory of {name}: {peak_arrays(program, n):.1f} arrays of n doubles")

    P = rng.dirichlet(np.full(10, 0.3), n)
    k = np.minimum((P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), 9)
    cells = (P * 15).astype(np.int64).ravel()
    np.testing.assert_allclose(ours_matrix(k, P, 15), plain_matrix(k, P, 15), atol=1e-12)
    race(
        f"ECE of matrices, n = {n}, K = 10, 15 bins",
        {
            "calstat": lambda: ours_matrix(k, P, 15),
            "plain NumPy (both), no checks": lambda: plain_matrix(k, P, 15),
            "limit: one bincount of n K cells": lambda: np.bincount(cells, P.ravel()),
            **peers_matrix(k, P, 15),
        },
        repeat,
    )
    print(f"  peak memory: {peak_arrays(lambda: ours_matrix(k, P, 15), n):.1f} arrays of n doubles (P itself is 10)")


if __name__ == "__main__":
    main()
