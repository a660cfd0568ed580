"""Probability calibration with inference: maps, errors and tests, with standard errors, intervals and p-values."""

from calstat import datasets, exceptions, metrics, plots
from calstat._inference_results import BootstrapResult, PseudoLabelTest
from calstat._report import CalibrationReport, report
from calstat._results import CalibrationTest
from calstat.base import from_json, load
from calstat.binary import BetaCalibration, LogisticCalibration, PlattScaling
from calstat.comparison import ModelComparison, compare_models
from calstat.composite import CrossValidatedCalibration, OneVsRest
from calstat.diagnostics import calibration_belt, hosmer_lemeshow, recalibration_test, spiegelhalter, val_prob
from calstat.metrics import (
    accuracy,
    ace,
    adjust_prevalence,
    bootstrap,
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
    pseudo_label_test,
    reliability_table,
    score_decomposition,
    smooth_ece,
    squared_ece,
)
from calstat.multiclass import DirichletCalibration, MatrixScaling, TemperatureScaling, VectorScaling
from calstat.nonparametric import HistogramBinning, IsotonicCalibration
from calstat.penalties import L2, ODIR
from calstat.reliability import reliability_diagram
from calstat.transforms import inv_logit, logit

__all__ = [
    "L2",
    "ODIR",
    "BetaCalibration",
    "BootstrapResult",
    "CalibrationReport",
    "CalibrationTest",
    "CrossValidatedCalibration",
    "DirichletCalibration",
    "HistogramBinning",
    "IsotonicCalibration",
    "LogisticCalibration",
    "MatrixScaling",
    "ModelComparison",
    "OneVsRest",
    "PlattScaling",
    "PseudoLabelTest",
    "TemperatureScaling",
    "VectorScaling",
    "accuracy",
    "ace",
    "adjust_prevalence",
    "bootstrap",
    "brier_score",
    "calibration_belt",
    "calibration_curve",
    "classwise_ece",
    "compare_models",
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
    "pseudo_label_test",
    "recalibration_test",
    "reliability_diagram",
    "reliability_table",
    "report",
    "score_decomposition",
    "smooth_ece",
    "spiegelhalter",
    "squared_ece",
    "val_prob",
]
