"""Tests of calibration: each returns a `CalibrationTest` that prints itself and unpacks to (statistic, pvalue)."""

from __future__ import annotations

from calstat._belt import CalibrationBelt, calibration_belt
from calstat._goodness import hosmer_lemeshow, spiegelhalter
from calstat._recalibration import recalibration_test
from calstat._validation_indexes import val_prob

__all__ = ["CalibrationBelt", "calibration_belt", "hosmer_lemeshow", "recalibration_test", "spiegelhalter", "val_prob"]
