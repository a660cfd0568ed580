"""Calibrators made of others: one map for each class, and cross-validated calibration."""

from calstat.composite.models import CrossValidatedCalibration, OneVsRest

__all__ = ["CrossValidatedCalibration", "OneVsRest"]
