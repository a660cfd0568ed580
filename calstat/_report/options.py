"""The options that every part of a report shares."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calstat._arrays.statistics import mean_and_error, mean_limits
from calstat._results import CalibrationTest
from calstat._typing import FloatArray
from calstat.reliability import Look

# Above this many rows the tests without bins take many seconds.
BATTERY_ROWS = 20_000
ERROR_COLUMNS = ("estimate", "ci_low", "ci_high", "expected", "pvalue")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options of a report: what the diagram shows, the seed, and names."""

    look: Look
    seed: int
    title: str
    outcome: str
    predictions: str

    @property
    def alpha(self) -> float:
        """One minus the confidence level."""
        return self.look.alpha

    @property
    def binned(self) -> dict[str, Any]:
        """Options of binned metrics."""
        return {"bins": self.look.bins, "strategy": self.look.strategy}

    @property
    def drawn(self) -> dict[str, Any]:
        """Options of what is simulated."""
        return {"n_resamples": self.look.n_resamples, "rng": self.seed}

    def mean_row(self, values: FloatArray, weights: FloatArray | None, bounds: tuple[float, float]) -> list[float]:
        """Return mean, standard error and limits, kept within `bounds`, of values (n,)."""
        mean, se = mean_and_error(values, weights)
        low, high = np.clip(mean_limits(values, self.alpha, weights), *bounds)
        return [mean, se, float(low), float(high)]


def bins_text(count: int, options: Options) -> str:
    """Describe the bins."""
    if np.ndim(options.look.bins):
        return f"{count}, given edges"
    return f"{count}, {'equal width' if options.look.strategy == 'equal_width' else 'equal frequency'}"


def remarks(notes: Iterable[str], tests: Iterable[CalibrationTest]) -> list[str]:
    """Collect what the reading of the labels and the tests have to say, each remark once."""
    speakers: dict[str, list[str]] = {}
    for test in tests:
        if test.note:
            speakers.setdefault(test.note, []).append(test.name)
    return [*notes, *(f"{', '.join(names)}: {note}." for note, names in speakers.items())]


__all__ = ["BATTERY_ROWS", "ERROR_COLUMNS", "Options", "bins_text", "remarks"]
