"""The calibration report: computed once, and given as text, HTML, LaTeX, a table and a picture."""

from __future__ import annotations

from calstat._report.make import report
from calstat._report.result import CalibrationReport

__all__ = ["CalibrationReport", "report"]
