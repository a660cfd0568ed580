"""Coverage of the intervals, and size of the tests, that other packages print, on the samples of coverage_study.py.

    pip install -r studies/coverage_peers.txt
    python studies/coverage_peers.py --runs 100

For two outcomes. Every package is asked for 95% intervals with its own defaults but for the number of resamples of
probcal and calzone, which is 199 for their 1000: a hundred runs do not tell the two apart.
"""

from __future__ import annotations

import argparse
import warnings
from functools import cache
from pathlib import Path

import calibration
import numpy as np
from calzone.metrics import CalibrationMetrics, get_CI
from coverage_study import (
    POPULATION,
    RESULTS,
    SIZES,
    Answer,
    Job,
    Sample,
    cells,
    draw_binary,
    run,
    seeded,
    study,
    truths,
)
from probcal.metrics import evaluate
from statsmodels.tools.sm_exceptions import PerfectSeparationWarning

from calstat._arrays.binning import bin_table, equal_freq_edges

PEERS = RESULTS.with_name("coverage_peers.csv")
RESAMPLES = 199


def uncertainty_calibration(y: Sample, p: Sample, rng: np.random.Generator) -> Answer:
    """Mirrored bootstrap limits of 15 bins of equal count; its `alpha` is in percent, and 0.1 where not given."""
    np.random.seed(rng.integers(2**32))  # noqa: NPY002  the package draws from the global state
    found = {}
    for norm in (1, 2):
        low, _, high = calibration.get_calibration_error_uncertainties(p, y.astype(int), p=norm, alpha=5)
        found[f"uncertainty-calibration: error of norm {norm}"] = (float(low), float(high))
    return found


def probcal(y: Sample, p: Sample, rng: np.random.Generator) -> Answer:
    """Percentile limits; classes are resampled apart, and errors have 15 bins of equal count."""
    names = ("ece", "brier", "log_loss", "intercept", "slope")
    if y.min() == y.max():
        return {f"probcal: {name}": (np.nan, np.nan) for name in names}
    seed = int(rng.integers(2**31))
    report = evaluate(y, p, n_boot=RESAMPLES, random_state=seed, metrics=names)
    limits = zip(report.names, report.ci_low.tolist(), report.ci_high.tolist(), strict=True)
    return {f"probcal: {name}": (low, high) for name, low, high in limits}


def calzone(y: Sample, p: Sample, rng: np.random.Generator) -> Answer:
    """Percentile limits of its bootstrap, Wald limits of its recalibration, and its p-values."""
    np.random.seed(rng.integers(2**32))  # noqa: NPY002  the package draws from the global state
    P, labels = np.stack([1 - p, p], axis=1), y.astype(int)
    metrics = CalibrationMetrics(class_to_calculate=1, num_bins=10)
    limits = get_CI(metrics.bootstrap(labels, P, metrics=["ECE-H", "ECE-C"], n_samples=RESAMPLES))
    found: Answer = {f"calzone: {name}": tuple(map(float, limits[name])) for name in ("ECE-H", "ECE-C")}
    tests = metrics.calculate_metrics(labels, P, metrics=["SpiegelhalterZ", "HL-H", "HL-C"])
    found |= {f"calzone: {name}": float(tests[f"{name} p-value"]) for name in ("SpiegelhalterZ", "HL-H", "HL-C")}
    try:
        cox = metrics.calculate_metrics(labels, P, metrics=["COX"])
    except (np.linalg.LinAlgError, PerfectSeparationWarning):
        cox = {}
    for name, title in (("intercept", "COX intercept"), ("coef", "COX slope")):
        found[f"calzone: {title}"] = tuple(
            float(cox.get(f"COX {name} {end}", np.nan)) for end in ("lowerci", "upperci")
        )
    return found


@cache
def peer_truths(K: int, kind: str) -> dict[str, float]:
    """Return the truths of the peers' intervals: as for calstat's, with their bins for their errors."""
    own = truths(K, kind)
    p, q = draw_binary(kind, POPULATION, seeded(0, "truth", kind, K))
    by = {bins: bin_table(q, p, equal_freq_edges(p, bins)) for bins in (10, 15)}
    return {
        "uncertainty-calibration: error of norm 1": by[15].error(1),
        "uncertainty-calibration: error of norm 2": by[15].error(2),
        "probcal: ece": by[15].error(1),
        "probcal: brier": own["brier_score"],
        "probcal: log_loss": own["log_loss"],
        "probcal: intercept": own["val_prob: Intercept (slope 1)"],
        "probcal: slope": own["val_prob: Slope"],
        "calzone: ECE-H": own["ece"],
        "calzone: ECE-C": by[10].error(1),
        "calzone: COX intercept": own["val_prob: Intercept"],
        "calzone: COX slope": own["val_prob: Slope"],
    }


def run_peers(job: Job):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs: empty bins, separation, deprecations
        return run(job, peer_truths)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200, help="runs a cell, a multiple of 100")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after this time")
    parser.add_argument("--results", type=Path, default=PEERS)
    options = parser.parse_args()
    study(
        options.results,
        cells([2], options.sizes),
        options.runs,
        every=lambda _: (uncertainty_calibration, probcal, calzone),
        processes=options.processes,
        minutes=options.minutes,
        work=run_peers,
    )


if __name__ == "__main__":
    main()
