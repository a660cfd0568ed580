"""Measures of calibration and of forecast quality."""

from __future__ import annotations

from calstat.metrics.errors import ace, classwise_ece, confidence_ece, ece, mce, squared_ece
from calstat.metrics.evaluate import evaluate
from calstat.metrics.inference import bootstrap
from calstat.metrics.kernel import mmce
from calstat.metrics.pseudo_labels import pseudo_label_test
from calstat.metrics.scores import accuracy, adjust_prevalence, brier_score, log_loss, score_decomposition
from calstat.metrics.smooth import calibration_curve, e50, e90, emax, ici, smooth_ece
from calstat.metrics.tables import reliability_table

__all__ = [
    "accuracy",
    "ace",
    "adjust_prevalence",
    "bootstrap",
    "brier_score",
    "calibration_curve",
    "classwise_ece",
    "confidence_ece",
    "e50",
    "e90",
    "ece",
    "emax",
    "evaluate",
    "ici",
    "log_loss",
    "mce",
    "mmce",
    "pseudo_label_test",
    "reliability_table",
    "score_decomposition",
    "smooth_ece",
    "squared_ece",
]
