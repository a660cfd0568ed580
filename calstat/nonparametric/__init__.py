"""Calibration maps without a formula: isotonic regression and histogram binning."""

from calstat.nonparametric.models import HistogramBinning, IsotonicCalibration

__all__ = ["HistogramBinning", "IsotonicCalibration"]
