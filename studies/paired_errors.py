"""Coverage of the interval for the difference of two calibration errors, beside a paired bootstrap, by simulation.

    python studies/paired_errors.py --runs 1000 --bootstrap-runs 400 --out docs/_tables/paired_errors.md

A line for each kind of forecasts: coverage of `compare_forecasts(score="squared_ece")` at each n, and of the percentile
and the bias-corrected normal interval of a paired bootstrap of the difference in `ece` with 400 resamples.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import calstat as cs
from calstat._arrays.binning import bin_table, equal_width_edges

EDGES = equal_width_edges(10)
KINDS = {
    "both calibrated": "both calibrated, one sharper",
    "one off": "one calibrated, one over-confident (log odds × 1.4)",
    "both off": "one shifted (log odds + 0.4), one over-confident",
    "alike": "both over-confident (× 1.4, × 1.3)",
    "blunt with a jump": "one shifted, one blunt with a jump",
    "rare": "rare events (2%): one calibrated, one 1.5 times too high",
}
SIZES = (300, 1000, 5000)
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(21)


def expit(x):
    return 1 / (1 + np.exp(-x))


def draw(kind, n, rng):
    """Return the true rates and the two forecasts."""
    if kind == "rare":
        q = rng.beta(0.5, 24.5, n)
        return q, q, np.clip(1.5 * q, 0, 1)
    known, z = rng.normal(-0.3, 1.3, n), rng.normal(0, 1, n)
    z = z + known
    # the rate given one of the two parts of the log odds: calibrated, and less sharp
    blunt = expit(known[:, None] + NODES) @ (WEIGHTS / WEIGHTS.sum())
    pairs = {
        "both calibrated": (expit(z), blunt),
        "one off": (expit(z), expit(1.4 * z)),
        "both off": (expit(z + 0.4), expit(1.4 * z)),
        "alike": (expit(1.4 * z), expit(1.3 * z)),
        "blunt with a jump": (expit(z + 0.4), np.clip(blunt + 0.1 * (blunt > 0.5), 0, 1)),
    }
    return expit(z), *pairs[kind]


def difference(y, p1, p2, norm):
    one, two = (bin_table(y, p, EDGES).error(norm) ** norm for p in (p1, p2))
    return one - two


def coverage(kind, n, runs):
    q, p1, p2 = draw(kind, 1_000_000, np.random.default_rng(4))
    truth = difference(q, p1, p2, 2)
    rng, held = np.random.default_rng(n), 0
    for _ in range(runs):
        q, p1, p2 = draw(kind, n, rng)
        details = cs.compare_forecasts((rng.random(n) < q).astype(float), p1, p2, score="squared_ece").details
        held += details["ci_low"] <= truth <= details["ci_high"]
    return 100 * held / runs


def bootstrap_coverage(kind, n, runs):
    q, p1, p2 = draw(kind, 1_000_000, np.random.default_rng(4))
    truth = difference(q, p1, p2, 1)
    rng, held = np.random.default_rng(n), np.zeros(2)
    for _ in range(runs):
        q, p1, p2 = draw(kind, n, rng)
        y = (rng.random(n) < q).astype(float)
        estimate = difference(y, p1, p2, 1)
        drawn = np.array([difference(y[r], p1[r], p2[r], 1) for r in rng.integers(0, n, (400, n))])
        low, high = np.quantile(drawn, [0.025, 0.975])
        held += low <= truth <= high, abs(2 * estimate - drawn.mean() - truth) <= 1.96 * drawn.std(ddof=1)
    return 100 * held / runs


def row(kind, runs, bootstrap_runs):
    """Return the line of the table for one kind of forecasts."""
    shares = [f"{coverage(kind, n, runs):.1f}" for n in SIZES]
    beside = np.array([bootstrap_coverage(kind, n, bootstrap_runs) for n in SIZES])
    methods = [", ".join(f"{share:.1f}" for share in column) for column in beside.T]
    return f"| {KINDS[kind]} | {' | '.join([*shares, *methods])} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--bootstrap-runs", type=int, default=400)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [
        f"| forecasts | {' | '.join(f'n = {n}' for n in SIZES)} | bootstrap, percentile | bootstrap, normal |",
        "|---|" + "---|" * (len(SIZES) + 2),
    ]
    for kind in KINDS:
        lines.append(row(kind, options.runs, options.bootstrap_runs))
        print(lines[-1], flush=True)
    if options.out is not None:
        options.out.write_text("\n".join([*lines, ""]), encoding="utf-8")


if __name__ == "__main__":
    main()
