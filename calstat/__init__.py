"""Probability calibration with inference: maps, errors and tests, with standard errors, intervals and p-values."""

from calstat import datasets, exceptions, metrics, plots
from calstat._results import CalibrationTest
from calstat.base import from_json, load
from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.diagnostics import hosmer_lemeshow, recalibration_test, spiegelhalter, val_prob
from calstat.metrics import (
    accuracy,
    ace,
    adjust_prevalence,
    brier_score,
    calibration_curve,
    classwise_ece,
    confidence_ece,
    e50,
    e90,
    ece,
    emax,
    evaluate,
    ici,
    log_loss,
    mce,
    mmce,
    reliability_table,
    score_decomposition,
    smooth_ece,
    squared_ece,
)
from calstat.transforms import inv_logit, logit

__all__ = [
    "BetaCalibration",
    "CalibrationTest",
    "LogisticCalibration",
    "PlattScaling",
    "accuracy",
    "ace",
    "adjust_prevalence",
    "brier_score",
    "calibration_curve",
    "classwise_ece",
    "confidence_ece",
    "datasets",
    "e50",
    "e90",
    "ece",
    "emax",
    "evaluate",
    "exceptions",
    "from_json",
    "hosmer_lemeshow",
    "ici",
    "inv_logit",
    "load",
    "log_loss",
    "logit",
    "mce",
    "metrics",
    "mmce",
    "plots",
    "recalibration_test",
    "reliability_table",
    "score_decomposition",
    "smooth_ece",
    "spiegelhalter",
    "squared_ece",
    "val_prob",
]
