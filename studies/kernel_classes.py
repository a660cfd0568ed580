"""Size and power of the kernel test of all classes at several bandwidths, beside that of the top label, by simulation.

    python studies/kernel_classes.py --runs 400 200 --out docs/_tables/kernel_classes.md

A line for each number of classes, 3 and 10, and kind of error: in how many of a hundred samples of 300 rows the
unbiased estimator, with 199 draws of labels, rejects at 5%. Predictions come from the Dirichlet law with all parameters
0.5. `--runs` says how many samples are drawn with 3 and with 10 classes; of calibrated ones it is four times as many.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.spatial.distance import pdist

import calstat as cs

KINDS = {
    "calibrated": "calibrated",
    "overconfident": "overconfident: true probabilities ∝ p^0.6",
    "shifted": "one class more frequent: its log odds + 0.5",
    "exchanged": "35% of two classes exchanged",
    "ranks": "second and third class predicted apart, equally frequent",
}
READINGS = {
    "all, 0.1": {"bandwidth": 0.1},
    "all, 0.2": {"bandwidth": 0.2},
    "all, 0.5": {"bandwidth": 0.5},
    "all, median": {"bandwidth": "median"},
    "top label, 0.2": {"type": "confidence"},
}
LEVEL = 0.05


def truth(kind: str, P: np.ndarray) -> np.ndarray:
    """Return the probabilities (n, K) that labels are drawn from where P is predicted."""
    Q = P.copy()
    if kind == "overconfident":
        Q = P**0.6
    elif kind == "shifted":
        Q[:, 0] *= np.exp(0.5)
    elif kind == "exchanged":
        Q[:, :2] = 0.65 * P[:, :2] + 0.35 * P[:, 1::-1]
    elif kind == "ranks":
        rank, rows = np.argsort(-P, axis=1), np.arange(len(P))[:, None]
        Q[rows, rank[:, 1:3]] = P[rows, rank[:, 1:3]].mean(axis=1, keepdims=True)
    return Q / Q.sum(axis=1, keepdims=True)


def draw(Q: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw labels (n,) from the rows of Q (n, K)."""
    return (rng.random((len(Q), 1)) >= np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1)


def rejections(kind: str, n: int, K: int, runs: int, readings: Sequence[dict]) -> np.ndarray:
    """Return the share of samples in which each reading rejects."""
    rng, hits = np.random.default_rng(11), np.zeros(len(readings))
    for _ in range(runs):
        P = rng.dirichlet(np.full(K, 0.5), n)
        y = draw(truth(kind, P), rng)
        for i, reading in enumerate(readings):
            options = {"classes": range(K), "n_resamples": 199, "rng": rng, **reading}
            if options.get("bandwidth") == "median":
                options["bandwidth"] = float(np.median(pdist(P, "cityblock"))) / 2
            hits[i] += cs.kernel_test(y, P, **options).pvalue <= LEVEL
    return hits / runs


def row(kind: str, K: int, runs: int) -> str:
    """Return the line of the table for one number of classes and kind of error."""
    many = 4 * runs if kind == "calibrated" else runs
    shares = 100 * rejections(kind, 300, K, many, list(READINGS.values()))
    return f"| {K} | {KINDS[kind]} | {' | '.join(f'{share:.1f}' for share in shares)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, nargs=2, default=(400, 200))
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [f"| classes | error | {' | '.join(READINGS)} |", "|---|---|" + "---|" * len(READINGS)]
    for K, runs in zip((3, 10), options.runs, strict=True):
        for kind in KINDS:
            lines.append(row(kind, K, runs))
            print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
