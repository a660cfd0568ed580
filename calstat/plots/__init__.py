"""Pictures, drawn from plain arrays: every function here takes numbers and gives back a matplotlib Figure."""

from __future__ import annotations

from calstat.plots.comparison import critical_difference, penalty_path
from calstat.plots.distributions import bootstrap_distribution, null_distribution
from calstat.plots.maps import calibration_map, simplex_map
from calstat.plots.matrices import confusion_change, matrix_heatmap
from calstat.plots.reliability import (
    calibration_belt,
    reliability,
    reliability_overlay,
    reliability_panels,
)

__all__ = [
    "bootstrap_distribution",
    "calibration_belt",
    "calibration_map",
    "confusion_change",
    "critical_difference",
    "matrix_heatmap",
    "null_distribution",
    "penalty_path",
    "reliability",
    "reliability_overlay",
    "reliability_panels",
    "simplex_map",
]
