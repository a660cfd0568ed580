"""Coverage of the default intervals at 95%, and size and power of the default tests at 5%, by simulation.

    python studies/coverage_study.py --runs 5000 --processes 2
    python studies/coverage_tables.py

The first command counts, the second writes docs/reference_tables/coverage.md from the counts. All intervals and tests
are evaluated on the same samples. Counts are kept in studies/results/coverage.csv after each hundred runs of a cell
(number of classes, kind of data, n): stop the command whenever you like, and give it again to go on. Run i of a cell
always draws the same sample, so that an interval or a test that is added later catches up on the samples of the others.

To add one: a function in BINARY or MATRIX that returns its limits or p-values by name, and, for limits, the truth under
the same name in `_binary_truths` or `_matrix_truths`.
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache, partial
from multiprocessing import Pool
from pathlib import Path
from typing import NamedTuple

import numpy as np

import calstat as cs
from calstat._arrays.binning import assign_bins, bin_table, equal_width_edges
from calstat._arrays.logistic import fit_logistic
from calstat._arrays.statistics import concordance
from calstat.metrics._kernel import kernel_error

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "studies" / "results" / "coverage.csv"
CLASSES = (2, 3, 10)
KINDS = ("calibrated", "rare", "ties", "shifted", "overconfident", "local")
NULL = KINDS[:3]
SIZES = (100, 300, 1000, 5000)
EDGES = equal_width_edges(10)
POPULATION = 1_000_000
BATCH = 100
FIRST = 1000  # runs that every cell gets before any cell gets more
DRAWS = 199  # of each drawn test; (199 + 1) * 5% is a whole number, so that the test is exact

Sample = np.ndarray
Answer = dict[str, tuple[float, float] | float]
"""Limits of intervals, and p-values of tests, by name."""


class Cell(NamedTuple):
    """A population and a sample size."""

    K: int
    kind: str
    n: int


class Row(NamedTuple):
    """What is counted in a cell."""

    role: str  # "interval" or "test"
    name: str


class Count(NamedTuple):
    """Sums over runs: intervals that hold the truth, or rejections; runs without an answer; widths; truths."""

    runs: int = 0
    hits: int = 0
    none: int = 0
    width: float = 0.0
    truth: float = 0.0

    def plus(self, other: Count) -> Count:
        """Add the sums of other runs."""
        return Count(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def rate(self) -> float:
        """Share of the runs with an answer."""
        return self.hits / max(self.runs - self.none, 1)

    @property
    def error(self) -> float:
        """Monte Carlo standard error of the rate; at least that of a rate of 2%."""
        return float(np.sqrt(max(self.rate * (1 - self.rate), 0.02) / max(self.runs - self.none, 1)))


Counts = dict[tuple[Cell, Row], Count]


# Data


def expit(x):
    return 1 / (1 + np.exp(-x))


def draw_binary(kind, n, rng):
    """Return probabilities and the true event rates behind them."""
    if kind == "rare":
        p = rng.beta(0.5, 24.5, n)
        return p, p
    p = expit(rng.normal(-0.4, 1.6, n))
    if kind == "ties":
        p = np.round(p, 1).clip(0.05, 0.95)
    z = np.log(p) - np.log1p(-p)
    true = {
        "calibrated": p,
        "ties": p,
        "shifted": expit(z - 0.3),
        "overconfident": expit(0.7 * z),
        "local": np.where((p > 0.6) & (p < 0.8), p - 0.15, p),
    }
    return p, true[kind]


def _normalised(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def draw_matrix(kind, K, n, rng):
    """Return a matrix of probabilities and the true ones."""
    P = _normalised(rng.dirichlet(np.full(K, 0.4), n).clip(1e-9))
    if kind == "rare":
        first = rng.beta(0.5, 24.5, (n, 1))
        P = np.hstack([first, (1 - first) * _normalised(P[:, 1:])])
    if kind == "ties":
        tenths = np.diff(np.round(10 * np.cumsum(P, axis=1)), prepend=0, axis=1) / 10
        P = 0.9 * tenths + 0.1 / K
    if kind == "shifted":
        return P, _normalised(P * np.exp(np.linspace(-0.4, 0.4, K)))
    if kind == "overconfident":
        return P, _normalised(P**0.7)
    if kind == "local":
        top = P.max(axis=1, keepdims=True)
        moved = np.where((top > 0.6) & (top < 0.8), 0.15, 0.0)
        return P, np.where(top == P, P - moved, P + moved / (K - 1))
    return P, P


def draw(cell: Cell, run: int) -> tuple[Sample, Sample]:
    """Draw the labels and the probabilities of one run."""
    rng = seeded(run, *cell)
    if cell.K == 2:
        p, q = draw_binary(cell.kind, cell.n, rng)
        return (rng.random(cell.n) < q).astype(float), p
    P, Q = draw_matrix(cell.kind, cell.K, cell.n, rng)
    return (rng.random((cell.n, 1)) > np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1), P


def seeded(run, *key):
    return np.random.default_rng([run, zlib.crc32(repr(key).encode())])


# Intervals and tests. Each function answers for one sample; one bootstrap may give the limits of several rows.


def _boot(y, p, rng, metric, draws=2, **options):
    # The limits of binned errors come from sums over bins, not from resamples: two draws do.
    return cs.bootstrap(metric, y, p, n_resamples=draws, rng=rng, classes=_classes(p), **options)


def _classes(p):
    """Return the labels of the columns: a small sample need not hold all of them."""
    return None if p.ndim == 1 else range(p.shape[1])


def ece_interval(y, p, rng):
    result = _boot(y, p, rng, cs.ece, draws=199)
    return {"ece": result.conf_int(), "ece, percentile (as peers print)": result.conf_int(method="percentile")}


def ece2_interval(y, p, rng):
    result = _boot(y, p, rng, cs.ece, norm=2)
    return {
        "ece(norm=2), squared_ece": result.conf_int(),
        "ece(norm=2), squared_ece: ustatistic": result.conf_int(method="ustatistic"),
    }


def ace_interval(y, p, rng):
    return {"ace": _boot(y, p, rng, cs.ace).conf_int()}


def mce_interval(y, p, rng):
    return {"mce": _boot(y, p, rng, cs.mce).conf_int()}


def score_intervals(y, p, rng):
    return {f.__name__: _boot(y, p, rng, f, draws=499).conf_int() for f in (cs.brier_score, cs.log_loss)}


SMOOTH = (cs.smooth_ece, cs.ici, cs.e50, cs.e90, cs.emax)


def unbinned_intervals(y, p, rng):
    found = {f.__name__: _boot(y, p, rng, f).conf_int() for f in (cs.mmce, cs.smooth_ece)}
    mean = _boot(y, p, rng, cs.ici)
    found["ici"] = mean.conf_int()
    # The other quantiles speak of the same curve, which takes longest and is made once here.
    for name, share in (("e50", 0.5), ("e90", 0.9), ("emax", 1.0)):
        found[name] = replace(mean, smoothed=replace(mean.smoothed, share=share)).conf_int(method="band")
    return found


INDEXES = ("O/E", "Intercept (slope 1)", "Intercept", "Slope", "C (ROC)", "Brier")


def val_prob_intervals(y, p, _):
    table = cs.val_prob(y, p)
    limits = table.loc[list(INDEXES), ["ci_low", "ci_high"]].to_numpy()
    return {f"val_prob: {name}": tuple(row) for name, row in zip(INDEXES, limits.tolist(), strict=True)}


def robust_shift_interval(y, p, _):
    low, high = cs.val_prob(y, p, cov_type="HC0").loc["Intercept (slope 1)", ["ci_low", "ci_high"]]
    return {"val_prob(cov_type='HC0'): Intercept (slope 1)": (low, high)}


def classwise_interval(y, p, rng):
    return {"ece[classwise]": _boot(y, p, rng, cs.ece, type="classwise").conf_int()}


def confidence_interval(y, p, rng):
    result = _boot(y, p, rng, cs.confidence_ece, draws=199)
    return {
        "confidence_ece": result.conf_int(),
        "confidence_ece, percentile (as peers print)": result.conf_int(method="percentile"),
    }


def class_mce_intervals(y, p, rng):
    return {f"mce[{kind}]": _boot(y, p, rng, cs.mce, type=kind).conf_int() for kind in ("confidence", "classwise")}


def by_title(tests):
    """Return the p-values of tests by the names that the battery prints."""
    return {t.name if t.name != "Pseudo-label test" else f"{t.name} ({t.method})": t.pvalue for t in tests}


def battery(y, p, rng):
    return by_title(cs.calibration_tests(y, p, n_resamples=DRAWS, rng=rng))


def class_tests(y, P, rng):
    """Return the p-values of the battery for classes, but for that of the kernel test, which takes longer."""
    draw = {"n_resamples": DRAWS, "rng": rng, "classes": _classes(P)}
    return by_title(
        [
            *(cs.recalibration_test(y, P, against=kind, **draw) for kind in ("temperature", "vector", "dirichlet")),
            cs.hosmer_lemeshow(y, P, **draw),
            *(cs.pseudo_label_test(y, P, name, **draw) for name in ("confidence_ece", "classwise_ece")),
        ]
    )


def class_kernel_test(y, P, rng):
    return by_title([cs.kernel_test(y, P, n_resamples=DRAWS, rng=rng, classes=_classes(P))])


def internal_hosmer_lemeshow(y, p, _):
    name = "Hosmer-Lemeshow, chi2(groups - 2) (as peers print)"
    return {name: cs.hosmer_lemeshow(y, p, method="chi2", df="internal").pvalue}


Evaluator = Callable[[Sample, Sample, np.random.Generator], Answer]
TESTS: tuple[Evaluator, ...] = (battery, internal_hosmer_lemeshow, class_tests, class_kernel_test)
BINARY: tuple[Evaluator, ...] = (
    ece_interval,
    ece2_interval,
    ace_interval,
    mce_interval,
    unbinned_intervals,
    score_intervals,
    val_prob_intervals,
    robust_shift_interval,
    battery,
    internal_hosmer_lemeshow,
)
MATRIX: tuple[Evaluator, ...] = (
    classwise_interval,
    confidence_interval,
    class_mce_intervals,
    score_intervals,
    class_tests,
    class_kernel_test,
)
# Power is known to 1.6 points by a thousand samples, and nearly 100% in most cells of 5000 rows.
POWER_RUNS = {100: 1000, 300: 1000, 1000: 1000, 5000: 200}


def limit(cell: Cell, evaluate: Evaluator, runs: int) -> int:
    """Return how many runs a function gets in a cell: fewer where it says little or takes long."""
    if evaluate in TESTS and cell.kind not in NULL:
        runs = min(runs, POWER_RUNS[cell.n])
    if evaluate is unbinned_intervals:
        return min(runs, 1000)
    if evaluate is class_kernel_test and cell.n == 5000:  # seconds
        return min(runs, 200) if cell.kind in NULL else 0
    return runs


def evaluators(K: int) -> tuple[Evaluator, ...]:
    return BINARY if K == 2 else MATRIX


# Truths, from a large population whose labels are replaced by their true rates


def _score_truths(P, Q):
    """Return the Brier score and the log-loss of a matrix."""
    return float(np.mean((P**2).sum(axis=1) + 1 - 2 * (P * Q).sum(axis=1))), float(
        -np.mean((Q * np.log(P)).sum(axis=1))
    )


def _occupied(table, combine, p):
    """Combine the gaps of the bins that hold rows of the sample."""
    return combine(np.abs(table.gap[np.unique(assign_bins(p, EDGES))]))


def _top(P):
    return P.max(axis=1)


@cache
def truths(K: int, kind: str) -> dict[str, float | Callable[[Sample], float]]:
    """Return the truth of each interval: a number, or a function of p where it depends on p or takes long."""
    population = _population(K, kind)
    if K > 2:
        return _matrix_truths(*population)
    late = {name: partial(_unbinned_truth, kind, name) for name in ("mmce", *(f.__name__ for f in SMOOTH))}
    return {**_binary_truths(*population), **late}


def _population(K, kind):
    rng = seeded(0, "truth", kind, K)
    return draw_binary(kind, POPULATION, rng) if K == 2 else draw_matrix(kind, K, POPULATION, rng)


def _binary_truths(p, q):
    table, one, z = bin_table(q, p, EDGES), np.ones_like(p), np.log(p) - np.log1p(-p)
    brier, log = _score_truths(np.stack([1 - p, p], axis=1), np.stack([1 - q, q], axis=1))
    intercept, slope = fit_logistic([one, z], q).params
    found = {
        "ece": table.error(1),
        "ece(norm=2), squared_ece": table.error(2),
        "ace": partial(_occupied, table, np.nanmean),
        "mce": partial(_occupied, table, np.nanmax),
        "brier_score": brier / 2,
        "log_loss": log,
        "val_prob: O/E": q.mean() / p.mean(),
        "val_prob: Intercept (slope 1)": float(fit_logistic([one], q, offset=z).params[0]),
        "val_prob: Intercept": float(intercept),
        "val_prob: Slope": float(slope),
        "val_prob: C (ROC)": concordance(q, p).estimate,
        "val_prob: Brier": brier / 2,
    }
    found["ece, percentile (as peers print)"] = found["ece"]
    found["val_prob(cov_type='HC0'): Intercept (slope 1)"] = found["val_prob: Intercept (slope 1)"]
    found["ece(norm=2), squared_ece: ustatistic"] = found["ece(norm=2), squared_ece"]
    return found


def _unbinned_truth(kind, name, _):
    return _unbinned_truths(kind)[name]


@cache
def _unbinned_truths(kind):
    """Return the errors of the true rates, smoothed like outcomes are; 0 under calibration."""
    if kind in NULL:
        return dict.fromkeys(("mmce", *(f.__name__ for f in SMOOTH)), 0.0)
    p, q = _population(2, kind)
    # Each of 2000 p in their order with a thousand outcomes, of which the true rate are events.
    order = np.argsort(p, kind="stable")[p.size // 4000 :: p.size // 2000]
    events = np.round(1000 * q[order])
    y, weights = np.tile([1, 0], events.size), np.column_stack((events, 1000 - events)).ravel()
    found = {f.__name__: f(y, np.repeat(p[order], 2), freq_weights=weights) for f in SMOOTH}
    return {"mmce": kernel_error(q, p, 0.2), **found}


def _class_max(tables, P):
    return max(_occupied(t, np.nanmax, P[:, k]) for k, t in enumerate(tables))


def _matrix_truths(P, Q):
    top = P.argmax(axis=1)
    rows = np.arange(top.size)
    confidence = bin_table(Q[rows, top], P[rows, top], EDGES)
    tables = [bin_table(Q[:, k], P[:, k], EDGES) for k in range(P.shape[1])]
    brier, log = _score_truths(P, Q)
    return {
        "ece[classwise]": float(np.mean([t.error(1) for t in tables])),
        "confidence_ece": confidence.error(1),
        "confidence_ece, percentile (as peers print)": confidence.error(1),
        "mce[confidence]": lambda P: _occupied(confidence, np.nanmax, _top(P)),
        "mce[classwise]": partial(_class_max, tables),
        "brier_score": brier,
        "log_loss": log,
    }


# Runs


class Job(NamedTuple):
    """Runs `start` to `stop` of a cell."""

    cell: Cell
    start: int
    stop: int
    evaluators: tuple[Evaluator, ...]


def run(job: Job, truth_of: Callable = truths) -> tuple[Job, dict[Row, Count]]:
    """Do the runs of a job."""
    truth = truth_of(job.cell.K, job.cell.kind)
    found: dict[Row, Count] = {}
    for i in range(job.start, job.stop):
        y, p = draw(job.cell, i)
        for evaluate in job.evaluators:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", cs.exceptions.CalstatWarning)
                answers = evaluate(y, p, seeded(i, *job.cell, evaluate.__name__))
            for name, answer in answers.items():
                row, one = _counted(name, answer, truth, p)
                found[row] = found.get(row, Count()).plus(one)
    return job, found


def _counted(name, answer, truth, p) -> tuple[Row, Count]:
    if not isinstance(answer, tuple):
        return Row("test", name), Count(1, hits=int(answer <= 0.05), none=int(np.isnan(answer)))
    target = truth[name](p) if callable(truth[name]) else truth[name]
    low, high = answer
    if np.isnan(low) or np.isnan(high):
        return Row("interval", name), Count(1, none=1, truth=float(target))
    # Where the truth is 0, rounding leaves 1e-17 of it.
    held = low - 1e-9 <= target <= high + 1e-9
    return Row("interval", name), Count(1, int(held), 0, float(high - low), float(target))


@cache
def rows_of(evaluate: Evaluator, K: int) -> tuple[str, ...]:
    """Return the names of the rows that a function answers for."""
    y, p = draw(Cell(K, "calibrated", 300), 0)
    return tuple(evaluate(y, p, seeded(0)))


def next_job(counts: Counts, cell: Cell, every: Iterable[Evaluator], runs: int) -> Job | None:
    """Return the next runs of a cell, for all functions with a row that has not had them, or None."""
    done: dict[Evaluator, int] = {}
    had = {row.name: count.runs for (where, row), count in counts.items() if where == cell}
    for evaluate in every:
        start = min(had.get(name, 0) for name in rows_of(evaluate, cell.K))
        if start < limit(cell, evaluate, runs):
            done[evaluate] = start
    if not done:
        return None
    start = min(done.values())
    return Job(cell, start, min(start + BATCH, runs), tuple(f for f, s in done.items() if s == start))


def rounds(counts: Counts, where: list[Cell], every: Callable, runs: int) -> Iterator[list[Job]]:
    """Yield jobs, one a cell at a time: first until every cell has its first runs, then few classes before many."""
    stages = [(where, min(runs, FIRST)), *(([c for c in where if c.K == K], runs) for K in CLASSES)]
    for some, target in stages:
        while jobs := [job for c in some if (job := next_job(counts, c, every(c.K), target)) is not None]:
            yield sorted(jobs, key=lambda job: -job.cell.n * job.cell.K)


def study(
    path: Path,
    where: list[Cell],
    runs: int,
    *,
    every: Callable = evaluators,
    processes: int = 1,
    minutes: float = np.inf,
    work: Callable = run,
) -> Counts:
    """Do what is missing to `runs` runs a cell, and keep the counts in a file."""
    counts, end = read(path), time.monotonic() + 60 * minutes
    with Pool(processes) as pool:
        for jobs in rounds(counts, where, every, runs):
            for job, found in pool.imap_unordered(work, jobs):
                for row, count in found.items():
                    before = counts.get((job.cell, row), Count())
                    # A row that is ahead, since its function gained another one, has these runs already.
                    if before.runs == job.start:
                        counts[job.cell, row] = before.plus(count)
                write(path, counts)
                print(*job.cell, f"runs {job.start} to {job.stop}", flush=True)
                if time.monotonic() > end:
                    return counts
    return counts


def read(path: Path) -> Counts:
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        return {
            (Cell(int(r["K"]), r["kind"], int(r["n"])), Row(r["role"], r["name"])): Count(
                int(r["runs"]), int(r["hits"]), int(r["none"]), float(r["width"]), float(r["truth"])
            )
            for r in csv.DictReader(file)
        }


def write(path: Path, counts: Counts) -> None:
    """Write the counts at once, so that a stop cannot cut the file."""
    part = path.with_suffix(".part")
    with part.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(["K", "kind", "n", "role", "name", *Count._fields])
        for (cell, row), c in sorted(counts.items(), key=lambda item: item[0]):
            out.writerow([*cell, *row, c.runs, c.hits, c.none, f"{c.width:.6g}", f"{c.truth:.6g}"])
    part.replace(path)


def cells(classes: Iterable[int] = CLASSES, sizes: Iterable[int] = SIZES) -> list[Cell]:
    return [Cell(K, kind, n) for K in classes for kind in KINDS for n in sizes]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5000, help="runs a cell, a multiple of 100")
    parser.add_argument("--classes", type=int, nargs="+", choices=CLASSES, default=list(CLASSES))
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--only", nargs="+", help="names of functions, as battery; by default all")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=np.inf, help="stop after this time")
    parser.add_argument("--results", type=Path, default=RESULTS)
    options = parser.parse_args()

    def every(K: int) -> list[Evaluator]:
        return [f for f in evaluators(K) if options.only is None or f.__name__ in options.only]

    study(
        options.results,
        cells(options.classes, options.sizes),
        options.runs,
        every=every,
        processes=options.processes,
        minutes=options.minutes,
    )


if __name__ == "__main__":
    main()
