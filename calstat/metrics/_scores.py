"""Scores row by row, and their decomposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from calstat._arrays.binning import Strategy, bin_edges, bin_table, top_label
from calstat._arrays.math import clip_probabilities
from calstat._arrays.pav import pav
from calstat._input.validation import BinarySample
from calstat._typing import FloatArray
from calstat.metrics._common import Edges, Sample

LOG_EPS = 1e-15
"""Where the log loss is cut off by default."""


def brier_rows(sample: Sample, average: Literal["rows", "classes"] | None = None) -> FloatArray:
    """Return the squared difference of each row (n,)."""
    if isinstance(sample, BinarySample):
        return (sample.y - sample.p) ** 2
    own = sample.p[np.arange(sample.y.size), sample.y]
    rows = np.einsum("ij,ij->i", sample.p, sample.p) - own**2 + (1 - own) ** 2
    return rows / sample.p.shape[1] if average == "classes" else rows


def log_rows(sample: Sample, eps: float) -> FloatArray:
    """Return minus the log probability, clipped at `eps`, of each row's outcome (n,)."""
    if isinstance(sample, BinarySample):
        q, _ = clip_probabilities(sample.p, eps)
        # Where the outcome is 0 or 1, xlogy leaves out the impossible logarithm.
        return -(special.xlogy(sample.y, q) + special.xlog1py(1 - sample.y, -q))
    own, _ = clip_probabilities(sample.p[np.arange(sample.y.size), sample.y], eps)
    return -special.xlogy(1.0, own)


def hits(sample: Sample) -> np.ndarray:
    """Tell for each row (n,) whether its most probable label is right."""
    if isinstance(sample, BinarySample):
        return (sample.p > 0.5) == (sample.y == 1)
    return top_label(sample.y, sample.p).hit


@dataclass(frozen=True, slots=True, kw_only=True)
class Decomposition:
    """A mean score as miscalibration - discrimination + uncertainty + remainder."""

    score: float
    miscalibration: float
    discrimination: float
    uncertainty: float
    remainder: float


def _mean_score(sample: BinarySample, score: str, eps: float) -> float:
    rows = brier_rows(sample) if score == "brier" else log_rows(sample, eps)
    return float(np.average(rows, weights=sample.weights))


def _entropy(rate: FloatArray, score: str) -> FloatArray:
    """Return the expected score of forecasting a rate where that is the event's rate."""
    return rate * (1 - rate) if score == "brier" else special.entr(rate) + special.entr(1 - rate)


def corp_decomposition(sample: BinarySample, score: str, eps: float) -> Decomposition:
    """Split a score by isotonic recalibration (CORP)."""
    total = _mean_score(sample, score, eps)
    fit = pav(sample.y, sample.p, sample.weights)
    n = fit.count.sum()
    recalibrated = float(fit.count @ _entropy(fit.value, score) / n)
    constant = float(_entropy(fit.count @ fit.value / n, score))
    return Decomposition(
        score=total,
        miscalibration=total - recalibrated,
        discrimination=constant - recalibrated,
        uncertainty=constant,
        remainder=0.0,
    )


def bins_decomposition(sample: BinarySample, score: str, eps: float, bins: Edges, strategy: Strategy) -> Decomposition:
    """Split a score by the bins of the forecast."""
    table = bin_table(sample.y, sample.p, bin_edges(sample.p, bins, strategy, sample.weights), sample.weights)
    filled = table.count > 0
    share = table.count[filled] / table.count.sum()
    forecast, rate = table.mean_p[filled], table.mean_y[filled]
    base = share @ rate
    if score == "brier":
        distance, spread = (forecast - rate) ** 2, (rate - base) ** 2
    else:
        distance, spread = _divergence(rate, forecast, eps), _divergence(rate, base, 0.0)
    total = _mean_score(sample, score, eps)
    reliability, resolution, uncertainty = (
        float(share @ distance),
        float(share @ spread),
        float(_entropy(base, score)),
    )
    return Decomposition(
        score=total,
        miscalibration=reliability,
        discrimination=resolution,
        uncertainty=uncertainty,
        remainder=total - (reliability - resolution + uncertainty),
    )


def _divergence(rate: FloatArray, forecast: FloatArray, eps: float) -> FloatArray:
    """Return the Kullback-Leibler divergence of forecasts, clipped at `eps`, from rates."""
    q = np.clip(forecast, eps, 1 - eps)
    return special.rel_entr(rate, q) + special.rel_entr(1 - rate, 1 - q)
