"""Coverage of the 95% intervals of isotonic and histogram maps, by simulation.

    python studies/map_intervals.py --runs 1000 --out docs/_tables/map_intervals.md

Scores are expit(1.5 z) with z standard normal. The bootstrap takes a tenth of the runs, with 199 draws each. Each
cell has its own seed; the short form of the study is in tests/test_nonparametric.py.
"""

from __future__ import annotations

import argparse
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import special

import calstat as cs

TRUTHS = {
    "shrunk": lambda p: special.expit(0.7 * special.logit(p) - 0.3),
    "calibrated": lambda p: p,
    "constant": lambda p: np.full_like(p, 0.3),
    "steep": lambda p: special.expit(3 * special.logit(p)),
}
SIZES = (100, 300, 1000)
LEVELS = np.array([0.1, 0.25, 0.5, 0.75, 0.9])  # quantiles of the scores at which the map is looked at
POINTS = special.expit(1.5 * special.ndtri(LEVELS))


@dataclass(frozen=True)
class Cell:
    """Share of runs whose interval holds the truth, by point (m,) or over all bins (1,), and the mean width."""

    coverage: np.ndarray
    width: float


def draw(truth: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Outcomes, scores and the true probabilities of the event."""
    p = special.expit(1.5 * rng.standard_normal(n))
    q = TRUTHS[truth](p)
    return (rng.random(n) < q).astype(int), p, q


def seeded(*names: object) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(names).encode()))


def isotonic(truth: str, n: int, method: str, runs: int) -> Cell:
    """Intervals of the isotonic map at the points."""
    rng, target = seeded("isotonic", truth, n, method), TRUTHS[truth](POINTS)
    hits, width = np.zeros(POINTS.size), 0.0
    for _ in range(runs):
        y, p, _ = draw(truth, n, rng)
        prediction = cs.IsotonicCalibration(y, p).fit().get_prediction(POINTS, method=method, n_resamples=199, rng=rng)
        low, high = prediction.limits(0.05)
        hits += (low <= target) & (target <= high)
        width += (high - low).mean()
    return Cell(coverage=hits / runs, width=width / runs)


def bins(truth: str, n: int, runs: int) -> Cell:
    """Wilson's intervals of five quantile bins, for the mean true probability of the rows of each bin."""
    rng, hits, width, count = seeded("bins", truth, n), 0, 0.0, 0
    for _ in range(runs):
        y, p, q = draw(truth, n, rng)
        table = cs.HistogramBinning(y, p, bins=5, strategy="equal_freq").fit().table()
        index = np.minimum(np.searchsorted(table["upper"], p, side="right"), len(table) - 1)
        target = np.bincount(index, q, len(table)) / np.bincount(index, minlength=len(table))
        hits += int(((table["ci_low"] <= target) & (target <= table["ci_high"])).sum())
        width += float((table["ci_high"] - table["ci_low"]).sum())
        count += len(table)
    return Cell(coverage=np.array([hits / count]), width=width / count)


def percent(value: float) -> str:
    return f"{100 * value:.0f}"


def row(truth: str, n: int, runs: int) -> str:
    """One line of the table: the least coverage over the points, that at the median, and the mean width."""
    monotone, wilson = isotonic(truth, n, "monotone", runs), bins(truth, n, runs)
    bootstrap = isotonic(truth, n, "bootstrap", max(runs // 10, 1))
    cells = [truth, str(n), percent(monotone.coverage.min()), f"{monotone.width:.2f}"]
    cells += [percent(bootstrap.coverage.min()), percent(bootstrap.coverage[2]), f"{bootstrap.width:.2f}"]
    cells += [percent(wilson.coverage[0]), f"{wilson.width:.2f}"]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    head = (
        "| true map | n | monotone: least % | width | bootstrap: least % | at the median % | width | bins % | width |\n"
        "|---|---|---|---|---|---|---|---|---|\n"
    )
    text = head + "\n".join(row(truth, n, options.runs) for truth in TRUTHS for n in SIZES) + "\n"
    print(text)
    if options.out is not None:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
