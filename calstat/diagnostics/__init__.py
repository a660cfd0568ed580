"""Tests of calibration: each returns a `CalibrationTest` that prints itself and unpacks to (statistic, pvalue)."""

from __future__ import annotations

from calstat.diagnostics.battery import (
    CalibrationByGroup,
    CalibrationTests,
    calibration_by,
    calibration_tests,
    compare_forecasts,
)
from calstat.diagnostics.belt import CalibrationBelt, calibration_belt
from calstat.diagnostics.cumulative import corp_test, ks, kuiper
from calstat.diagnostics.goodness import hosmer_lemeshow, spiegelhalter
from calstat.diagnostics.kernel_test import kernel_test
from calstat.diagnostics.optimism import validate
from calstat.diagnostics.recalibration import recalibration_test
from calstat.diagnostics.validation_indexes import val_prob

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
