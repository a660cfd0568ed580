"""Beta calibration with full inference on a million rows, beside statsmodels' GLM and betacal, in one run.

    tests/benchmarks/install_peers.sh
    OMP_NUM_THREADS=1 python tests/benchmarks/bench_binary.py [--rows 1000000] [--repeat 5]

CPU seconds, the best of the repeats; programs take turns, so that a busy machine slows all alike. The limit is the
time of the passes over memory that any Newton needs: its exponential, its residual and its cross products.
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import betacal
import numpy as np
import statsmodels.api as sm
from scipy.special import expit

from calstat.binary import BetaCalibration


def sample(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    score = rng.normal(-0.4, 1.6, rows)
    return (rng.random(rows) < expit(-0.3 + 0.7 * score)).astype(float), expit(score)


def calstat_beta(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    res = BetaCalibration(y, p).fit()
    res.summary()
    res.test_identity("wald")
    return np.concatenate([res.params, res.bse, [res.llf, res.test_identity("lr").statistic]])


def statsmodels_glm(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    X = np.column_stack([np.log(p), -np.log1p(-p), np.ones(y.size)])
    res = sm.GLM(y, X, family=sm.families.Binomial()).fit()
    llf0 = float(np.sum(np.log(np.where(y == 1, p, 1 - p))))
    return np.concatenate([res.params, res.bse, [res.llf, 2 * (res.llf - llf0)]])


def betacal_fit(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    a, b, _ = betacal.BetaCalibration(parameters="abm").fit(p, y).calibrator_.map_
    return np.array([a, b])


def bare_pass(y: np.ndarray, p: np.ndarray) -> None:
    """One pass of a Newton over three columns, in blocks, with nothing else."""
    H = np.zeros((3, 3))
    z = np.empty((3, 8192))
    for begin in range(0, y.size - 8191, 8192):
        rows = slice(begin, begin + 8192)
        z[0], z[1], z[2] = p[rows], y[rows], 1.0
        q = 1.0 / (1.0 + np.exp(z[0]))
        H += (z * (q * (1.0 - q))) @ z.T
        H[0] += z @ (y[rows] - q)


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
    runs = {"calstat": calstat_beta, "statsmodels GLM": statsmodels_glm, "betacal": betacal_fit, "one pass": bare_pass}
    best = dict.fromkeys(runs, np.inf)
    for _ in range(options.repeat):
        for name, run in runs.items():
            best[name] = min(best[name], seconds(lambda run=run: run(y, p)))
    ours, glm, peer = (run(y, p) for run in (calstat_beta, statsmodels_glm, betacal_fit))
    print(f"beta calibration, n = {options.rows:,}")
    for name, value in best.items():
        print(f"  {name:<16} {value:8.4f} CPU s   {value / best['calstat']:6.2f} x calstat")
    print(f"  largest relative difference from GLM: {np.max(np.abs(ours / glm - 1)):.1e} (estimates, errors, llf, LR)")
    print(f"  largest difference from betacal's a and b: {np.max(np.abs(ours[:2] - peer)):.1e}")
    print(f"  Newton needs 4 such passes at this size: {best['calstat'] / (4 * best['one pass']):.1f} x the limit")
    for name in ("calstat", "statsmodels GLM"):
        tracemalloc.start()
        runs[name](y, p)
        peak = tracemalloc.get_traced_memory()[1] / (8 * options.rows)
        tracemalloc.stop()
        print(f"  peak memory, {name:<16} {peak:5.1f} arrays of n doubles")
    assert best["statsmodels GLM"] >= 4 * best["calstat"], "slower than a quarter of the GLM's time"
    assert best["calstat"] <= 1.5 * best["betacal"], "slower than 1.5 times betacal"


if __name__ == "__main__":
    main()
