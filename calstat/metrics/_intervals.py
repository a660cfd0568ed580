"""Intervals for rates of events."""

from __future__ import annotations

import numpy as np
from scipy import special

from calstat._typing import FloatArray


def wilson_interval(events: FloatArray, count: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score limits for rates of `events` in `count` rows; NaN where there are none."""
    z = special.ndtri(1 - alpha / 2)
    n = np.where(count > 0, count, np.nan)
    center = (events + z**2 / 2) / (n + z**2)
    half = z / (n + z**2) * np.sqrt(events * (n - events) / n + z**2 / 4)
    # The limits at 0 and n events are 0 and 1; rounding would leave 1e-17 of them.
    low = np.where(events == 0, 0 * n, center - half)
    high = np.where(events == n, 0 * n + 1, center + half)
    return low, high


def jeffreys_interval(events: FloatArray, count: FloatArray, alpha: float) -> tuple[FloatArray, FloatArray]:
    """Return Jeffreys' equal-tailed limits for rates of `events` in `count` rows; NaN where there are none."""
    n = np.where(count > 0, count, np.nan)
    others = n - events
    low = np.where(events == 0, 0 * n, special.betaincinv(events + 0.5, others + 0.5, alpha / 2))
    high = np.where(others == 0, 0 * n + 1, special.betainccinv(events + 0.5, others + 0.5, alpha / 2))
    return low, high
