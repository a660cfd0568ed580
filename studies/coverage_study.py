"""Coverage of the default intervals at 95%, and size and power of the default tests at 5%, by simulation.

Long form, which writes the tables that the documentation shows (many hours)::

    python studies/coverage_study.py --runs 5000 --out coverage.md

The short form runs in the test suite. Every cell has its own seed, so that cells can be run alone.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import calstat as cs
from calstat._arrays.binning import bin_table, equal_width_edges
from calstat._arrays.logistic import fit_logistic

BINARY = ("calibrated", "shifted", "overconfident", "local", "rare", "ties")
NULL = ("calibrated", "rare", "ties")
SIZES = (100, 300, 1000, 5000)
EDGES = equal_width_edges(10)
POPULATION = 1_000_000


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


def draw_matrix(kind, K, n, rng):
    """Return a matrix of probabilities and the true ones: for "overconfident", their 0.7th power, normalised."""
    P = rng.dirichlet(np.full(K, 0.4), n).clip(1e-9)
    P /= P.sum(axis=1, keepdims=True)
    if kind == "calibrated":
        return P, P
    Q = P**0.7
    return P, Q / Q.sum(axis=1, keepdims=True)


def draw_codes(Q, rng):
    return (rng.random((Q.shape[0], 1)) > np.cumsum(Q, axis=1)[:, :-1]).sum(axis=1)


@dataclass(frozen=True)
class Interval:
    """An interval: its limits on a sample, and the truth from a large population (labels replaced by true rates)."""

    limits: Callable
    truth: Callable


def _boot(metric, **options):
    method = options.pop("method", None)
    # The limits of binned errors come from sums over bins, not from resamples, unless percentiles are asked for.
    draws = 2 if metric in {cs.ece, cs.ace, cs.confidence_ece} and method != "percentile" else 499

    def limits(y, p, rng):
        return cs.bootstrap(metric, y, p, n_resamples=draws, rng=rng, **options).conf_int(method=method)

    return limits


def _binned_truth(norm):
    return lambda p, q: bin_table(q, p, EDGES).error(norm)


def _row(name):
    return lambda y, p, _: cs.val_prob(y, p).loc[name, ["ci_low", "ci_high"]]


def _brier_truth(p, q):
    return float(np.mean(q * (1 - p) ** 2 + (1 - q) * p**2))


def _log_truth(p, q):
    return float(-np.mean(q * np.log(p) + (1 - q) * np.log1p(-p)))


def _recalibration_truth(p, q, columns):
    z = np.log(p) - np.log1p(-p)
    if columns == 1:
        return float(fit_logistic([np.ones_like(p)], q, offset=z).params[0])
    return float(fit_logistic([np.ones_like(p), z], q).params[1])


INTERVALS = {
    "ece": Interval(_boot(cs.ece), _binned_truth(1)),
    "ece(norm=2)": Interval(_boot(cs.ece, norm=2), _binned_truth(2)),
    "ece(norm=2), ustatistic": Interval(_boot(cs.ece, norm=2, method="ustatistic"), _binned_truth(2)),
    "ace": Interval(_boot(cs.ace), _binned_truth("mean")),
    "ece, percentile (as peers print)": Interval(_boot(cs.ece, method="percentile"), _binned_truth(1)),
    "brier_score": Interval(_boot(cs.brier_score), _brier_truth),
    "log_loss": Interval(_boot(cs.log_loss), _log_truth),
    "O/E": Interval(_row("O/E"), lambda p, q: q.mean() / p.mean()),
    "intercept (slope 1)": Interval(_row("Intercept (slope 1)"), lambda p, q: _recalibration_truth(p, q, 1)),
    "slope": Interval(_row("Slope"), lambda p, q: _recalibration_truth(p, q, 2)),
}

TESTS = {
    "in the large": lambda y, p, rng: cs.recalibration_test(y, p, against="in_the_large", n_resamples=999, rng=rng),
    "logistic": lambda y, p, rng: cs.recalibration_test(y, p, n_resamples=999, rng=rng),
    "beta": lambda y, p, rng: cs.recalibration_test(y, p, against="beta", n_resamples=999, rng=rng),
    "Spiegelhalter": lambda y, p, _: cs.spiegelhalter(y, p),
    "Hosmer-Lemeshow": lambda y, p, rng: cs.hosmer_lemeshow(y, p, n_resamples=999, rng=rng),
    "Hosmer-Lemeshow, chi2(groups - 2) (as peers print)": lambda y, p, _: cs.hosmer_lemeshow(
        y, p, method="chi2", df="internal"
    ),
    "Kolmogorov-Smirnov": lambda y, p, rng: cs.ks(y, p, n_resamples=199, rng=rng),
    "Kuiper": lambda y, p, rng: cs.kuiper(y, p, n_resamples=199, rng=rng),
    "SKCE": lambda y, p, rng: cs.kernel_test(y, p, n_resamples=199, rng=rng),
    "CORP": lambda y, p, rng: cs.corp_test(y, p, n_resamples=199, rng=rng),
    "pseudo-label ECE": lambda y, p, rng: cs.pseudo_label_test(y, p, n_resamples=999, rng=rng),
}


def _classwise_truth(P, Q):
    return float(np.mean([bin_table(Q[:, k], P[:, k], EDGES).error(1) for k in range(P.shape[1])]))


def _confidence_truth(P, Q):
    top = P.argmax(axis=1)
    rows = np.arange(top.size)
    return bin_table(Q[rows, top], P[rows, top], EDGES).error(1)


MATRIX_INTERVALS = {
    "ece[classwise]": Interval(_boot(cs.ece, type="classwise"), _classwise_truth),
    "confidence_ece": Interval(_boot(cs.confidence_ece), _confidence_truth),
    "brier_score (matrix)": Interval(
        _boot(cs.brier_score),
        lambda P, Q: float(np.mean((P**2).sum(axis=1) + 1 - 2 * (P * Q).sum(axis=1))),
    ),
}
MATRIX_TESTS = {
    "temperature": lambda y, p, rng: cs.recalibration_test(y, p, against="temperature", n_resamples=199, rng=rng),
    "Dirichlet": lambda y, p, rng: cs.recalibration_test(y, p, against="dirichlet", n_resamples=199, rng=rng),
    "pseudo-label classwise ECE": lambda y, p, rng: cs.pseudo_label_test(y, p, n_resamples=499, rng=rng),
    "pseudo-label confidence ECE": lambda y, p, rng: cs.pseudo_label_test(
        y, p, "confidence_ece", n_resamples=499, rng=rng
    ),
}


def _rng(*key):
    return np.random.default_rng(zlib.crc32(repr(key).encode()))


def _sampler(kind, K):
    """Return functions that draw (p, true rates), and labels from true rates."""
    if K == 2:
        return lambda n, rng: draw_binary(kind, n, rng), lambda q, rng: (rng.random(q.size) < q).astype(float)
    return lambda n, rng: draw_matrix(kind, K, n, rng), draw_codes


def coverage(name, kind, n, runs, K=2):
    """Return the share of intervals that hold the truth and the share of samples without an interval."""
    interval = (INTERVALS if K == 2 else MATRIX_INTERVALS)[name]
    draw, label = _sampler(kind, K)
    truth = interval.truth(*draw(POPULATION if K == 2 else POPULATION // 5, _rng("truth", kind, K)))
    rng = _rng("coverage", kind, n, K)
    held, none = 0, 0
    for _ in range(runs):
        p, q = draw(n, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.exceptions.CalstatWarning)
            low, high = interval.limits(label(q, rng), p, rng)
        none += bool(np.isnan(low) or np.isnan(high))
        # The truth itself is known to about 1e-4 of a population of a million.
        held += bool(low - 1e-9 <= truth <= high + 1e-9)
    return held / max(runs - none, 1), none / runs


def rejection(name, kind, n, runs, K=2):
    """Return the share of p-values of at most 5% and the share of samples without one."""
    test = (TESTS if K == 2 else MATRIX_TESTS)[name]
    draw, label = _sampler(kind, K)
    rng = _rng("rejection", kind, n, K)
    rejected, none = 0, 0
    for _ in range(runs):
        p, q = draw(n, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cs.exceptions.CalstatWarning)
            pvalue = test(label(q, rng), p, rng).pvalue
        none += bool(np.isnan(pvalue))
        rejected += bool(pvalue <= 0.05)
    return rejected / max(runs - none, 1), none / runs


def table(title: str, cell: Callable, names: Sequence[str], kinds: Sequence[str], runs: int, K: int) -> str:
    """Return a markdown table of one measure: names and kinds down, sample sizes across, in percent."""
    lines = [
        f"### {title}",
        "",
        f"| | data | {' | '.join(f'n = {n}' for n in SIZES)} |",
        "|---|---|" + "---|" * len(SIZES),
    ]
    for name in names:
        for kind in kinds:
            values = [cell(name, kind, n, runs, K) for n in SIZES]
            entries = [f"{100 * v:.1f}" + (f" ({100 * none:.0f}% none)" if none > 0 else "") for v, none in values]
            lines.append(f"| {name} | {kind} | {' | '.join(entries)} |")
            print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the study and write its tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="names of intervals and tests that start with this")
    parser.add_argument("--part", choices=["intervals", "tests", "matrix", "all"], default="all")
    options = parser.parse_args()
    runs, parts = options.runs, []

    def chosen(names):
        return [name for name in names if name.startswith(options.only or "")]

    if options.part in {"intervals", "all"}:
        parts.append(table("Coverage of 95% intervals, %", coverage, chosen(INTERVALS), BINARY, runs, 2))
    if options.part in {"tests", "all"}:
        parts.append(table("Size at 5%, %", rejection, chosen(TESTS), NULL, runs, 2))
        alternatives = [k for k in BINARY if k not in NULL]
        parts.append(table("Power at 5%, %", rejection, chosen(TESTS), alternatives, runs, 2))
    if options.part in {"matrix", "all"}:
        for K in (3, 10):
            kinds = ("calibrated", "overconfident")
            parts.append(table(f"Coverage, {K} classes, %", coverage, chosen(MATRIX_INTERVALS), kinds, runs, K))
            parts.append(table(f"Rejections at 5%, {K} classes, %", rejection, chosen(MATRIX_TESTS), kinds, runs, K))
    options.out.write_text("\n".join([f"{runs} runs a cell.\n", *parts]))


if __name__ == "__main__":
    main()
