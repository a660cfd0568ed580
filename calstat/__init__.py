"""Probability calibration with inference: maps, errors and tests, with standard errors, intervals and p-values."""

from calstat.base import from_json, load
from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.transforms import inv_logit, logit

__all__ = ["BetaCalibration", "LogisticCalibration", "PlattScaling", "from_json", "inv_logit", "load", "logit"]
