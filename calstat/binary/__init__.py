"""Calibration maps for a binary outcome: Platt scaling, logistic recalibration and beta calibration."""

from calstat.binary.models import BetaCalibration, LogisticCalibration, PlattScaling

__all__ = ["BetaCalibration", "LogisticCalibration", "PlattScaling"]
