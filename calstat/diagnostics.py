"""Tests of calibration: each returns a `CalibrationTest` that prints itself and unpacks to (statistic, pvalue)."""

from __future__ import annotations

from calstat._battery import CalibrationByGroup, CalibrationTests, calibration_by, calibration_tests, compare_forecasts
from calstat._belt import CalibrationBelt, calibration_belt
from calstat._cumulative import corp_test, ks, kuiper
from calstat._goodness import hosmer_lemeshow, spiegelhalter
from calstat._kernel_test import kernel_test
from calstat._optimism import validate
from calstat._recalibration import recalibration_test
from calstat._validation_indexes import val_prob

__all__ = [
    "CalibrationBelt",
    "CalibrationByGroup",
    "CalibrationTests",
    "calibration_belt",
    "calibration_by",
    "calibration_tests",
    "compare_forecasts",
    "corp_test",
    "hosmer_lemeshow",
    "kernel_test",
    "ks",
    "kuiper",
    "recalibration_test",
    "spiegelhalter",
    "val_prob",
    "validate",
]
