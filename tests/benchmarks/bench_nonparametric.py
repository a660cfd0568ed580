"""Isotonic calibration and histogram binning of a million rows, beside scikit-learn, in one run.

    tests/benchmarks/install_peers.sh
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_nonparametric.py [--rows 1000000] [--repeat 5]

CPU seconds, the best of the repeats; programs take turns, so that a busy machine slows all alike. "first" is the
first call of each. The limit of the isotonic fit is one sort of the scores with the outcome in their spare bits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy.special import expit
from sklearn.isotonic import IsotonicRegression

import calstat as cs


def sample(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    score = rng.normal(-0.4, 1.6, rows)
    return (rng.random(rows) < expit(-0.3 + 0.7 * score)).astype(float), expit(score)


def isotonic(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return np.asarray(cs.IsotonicCalibration(y, p).fit().predict(p[:1000]))


def scikit_isotonic(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return IsotonicRegression(out_of_bounds="clip").fit(p, y).predict(p[:1000])


def histogram(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    return cs.HistogramBinning(y, p, bins=15).fit().values


def plain_histogram(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    index = np.minimum(np.searchsorted(np.arange(16) / 15, p, side="right") - 1, 14)
    return np.bincount(index, y, 15) / np.bincount(index, minlength=15)


def bare_sort(_: np.ndarray, p: np.ndarray) -> np.ndarray:
    key = p.view(np.int64).copy()
    key.sort()
    return key


def seconds(run: Callable[[], object]) -> float:
    begin = time.process_time()
    run()
    return time.process_time() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    y, p = sample(options.rows)
    runs = {
        "calstat isotonic": isotonic,
        "scikit-learn isotonic": scikit_isotonic,
        "one sort": bare_sort,
        "calstat histogram": histogram,
        "plain numpy histogram": plain_histogram,
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(options.repeat):
        for name, run in runs.items():
            times[name].append(seconds(lambda run=run: run(y, p)))
    print(f"n = {options.rows:,}")
    for name, all_times in times.items():
        print(f"{name:24} {min(all_times):.4f} s   first {all_times[0]:.4f} s")
    best = {name: min(all_times) for name, all_times in times.items()}
    print(f"isotonic: scikit-learn / calstat = {best['scikit-learn isotonic'] / best['calstat isotonic']:.1f}")
    print(f"isotonic: calstat / one sort = {best['calstat isotonic'] / best['one sort']:.1f}")
    print(f"histogram: plain numpy / calstat = {best['plain numpy histogram'] / best['calstat histogram']:.1f}")
    print(f"largest difference, isotonic: {np.abs(isotonic(y, p) - scikit_isotonic(y, p)).max():.1e}")
    print(f"largest difference, histogram: {np.abs(histogram(y, p) - plain_histogram(y, p)).max():.1e}")


if __name__ == "__main__":
    main()
